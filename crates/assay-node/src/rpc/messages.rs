//! Message signatures with the key of an address (Core `common/signmessage.cpp`).

use assay_hash::{hash160, sha256d};
use assay_wire::encode;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use secp256k1::Message;
use secp256k1::ecdsa::{RecoverableSignature, RecoveryId};

use super::bad_key;
use super::decode::Payee;
use super::descriptor::{Secret, parse_secret};
use super::method::Call;
use crate::jsonrpc::{Code, Json, RpcError};

pub(super) const SIGNMESSAGEWITHPRIVKEY: Call = |node, args, out| {
    let secret = parse_secret(&node.rpc.params, &args.string(0)?);
    let secret = secret.ok_or_else(|| bad_key("Invalid private key"))?;
    let text = sign(&secret, &args.string(1)?);
    Json::new(out).string(&text);
    Ok(())
};

pub(super) const VERIFYMESSAGE: Call = |node, args, out| {
    let type_error = |text| RpcError::new(Code::Type, text);
    let payee = Payee::parse(&node.rpc.params, &args.string(0)?);
    let Payee::PubkeyHash(hash) = payee.map_err(|_| bad_key("Invalid address"))? else {
        return Err(type_error("Address does not refer to key"));
    };
    let signature = STANDARD.decode(&*args.string(1)?);
    let signature = signature.map_err(|_| type_error("Malformed base64 encoding"))?;
    let is_valid = recover(&signature, &args.string(2)?) == Some(hash);
    Json::new(out).bool(is_valid);
    Ok(())
};

fn digest(message: &str) -> Message {
    let mut data = Vec::new();
    encode::var_bytes(&mut data, MAGIC);
    encode::var_bytes(&mut data, message.as_bytes());
    Message::from_digest(sha256d(&data))
}

fn sign(secret: &Secret, message: &str) -> String {
    let signature = RecoverableSignature::sign_ecdsa_recoverable(digest(message), &secret.key);
    let (id, compact) = signature.serialize_compact();
    let header = HEADER + id.to_u8() + if secret.is_compressed { 4 } else { 0 };
    STANDARD.encode([&[header], &compact[..]].concat())
}

/// Key hash recovered from the signature, in the signature's key format.
fn recover(signature: &[u8], message: &str) -> Option<[u8; 20]> {
    let (header, compact) = signature.split_first().filter(|(_, rest)| rest.len() == 64)?;
    // Unchecked, as in Core.
    let header = header.wrapping_sub(HEADER);
    let id = RecoveryId::try_from(i32::from(header & 3)).ok()?;
    let signature = RecoverableSignature::from_compact(compact, id).ok()?;
    let key = signature.recover_ecdsa(digest(message)).ok()?;
    let is_compressed = header & 4 != 0;
    Some(if is_compressed {
        hash160(&key.serialize())
    } else {
        hash160(&key.serialize_uncompressed())
    })
}

const MAGIC: &[u8] = b"Bitcoin Signed Message:\n";
/// First header byte: uncompressed key, first of four candidate points.
const HEADER: u8 = 27;

#[cfg(test)]
mod tests {
    use assay_consensus::params::ChainParams;

    use super::*;

    #[test]
    fn signatures_are_those_of_bitcoin_core() {
        // Core's `rpc_signmessagewithprivkey.py`.
        let params = ChainParams::by_name("regtest").unwrap();
        let key = "cUeKHd5orzT3mz8P9pxyREHfsWtVfgsfDjiZZBcjUBAaGk1BTj7N";
        let secret = parse_secret(&params, key).unwrap();
        let expected = "INbVnW4e6PeRmsv2Qgu8NuopvrVjkcxob+sX8OcZG0SALhWybUjzMLPdAsXI46YZGb0KQTRii+wWIQzRpG/U+S0=";
        assert_eq!(sign(&secret, "This is just a test message"), expected);
        let payee = Payee::parse(&params, "mpLQjfK79b7CCV4VMJWEWAj5Mpx8Up5zxB").unwrap();
        let Payee::PubkeyHash(hash) = payee else { panic!("not of a key") };
        let mut signature = STANDARD.decode(expected).unwrap();
        assert_eq!(recover(&signature, "This is just a test message"), Some(hash));
        assert_ne!(recover(&signature, "another"), Some(hash));
        for header in 0..=255 {
            signature[0] = header;
            let _ = recover(&signature, "This is just a test message");
        }
        assert_eq!(recover(&signature[1..], ""), None);
    }
}
