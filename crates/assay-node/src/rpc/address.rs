//! Address encoding: base58check, bech32 and bech32m (BIP173, BIP350), and cash addresses.

use assay_consensus::params::{AddressParams, ChainParams};
use sha2::{Digest, Sha256};

/// Destination of an output that has an address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Destination<'a> {
    /// HASH160 of a public key.
    PubkeyHash(&'a [u8]),
    /// Hash of a script: 20 bytes, or 32 on Bitcoin Cash.
    ScriptHash(&'a [u8]),
    /// A witness program with its version, 0 to 16.
    Witness { version: u8, program: &'a [u8] },
}

pub(crate) fn encode(params: &ChainParams, destination: Destination<'_>) -> String {
    let AddressParams { base58_pubkey_hash, base58_script_hash, human_readable } = params.address;
    match destination {
        Destination::Witness { version, program } => segwit(human_readable, version, program),
        Destination::PubkeyHash(hash) if params.cash.is_some() => {
            cash(human_readable, CASH_PUBKEY_HASH, hash)
        }
        Destination::ScriptHash(hash) if params.cash.is_some() => {
            cash(human_readable, CASH_SCRIPT_HASH, hash)
        }
        Destination::PubkeyHash(hash) => base58_check(base58_pubkey_hash, hash),
        Destination::ScriptHash(hash) => base58_check(base58_script_hash, hash),
    }
}

fn base58_check(version: u8, payload: &[u8]) -> String {
    base58_check_encode(&[&[version], payload].concat())
}

pub(super) fn base58_check_encode(data: &[u8]) -> String {
    let checksum = Sha256::digest(Sha256::digest(data));
    base58(&[data, &checksum[..4]].concat())
}

fn base58(data: &[u8]) -> String {
    let zeros = data.iter().take_while(|&&byte| byte == 0).count();
    // Base-58 digits, least significant first.
    let mut digits: Vec<u8> = Vec::with_capacity(data.len() * 7 / 5 + 1);
    for &byte in &data[zeros..] {
        let mut carry = u32::from(byte);
        for digit in &mut digits {
            carry += u32::from(*digit) << 8;
            *digit = (carry % 58) as u8;
            carry /= 58;
        }
        while carry > 0 {
            digits.push((carry % 58) as u8);
            carry /= 58;
        }
    }
    let leading = std::iter::repeat_n('1', zeros);
    leading.chain(digits.iter().rev().map(|&d| char::from(BASE58[usize::from(d)]))).collect()
}

fn segwit(human_readable: &str, version: u8, program: &[u8]) -> String {
    let mut data = vec![version];
    data.extend(to_5_bits(program));
    // The checksum also covers the human-readable part: high bits, a zero, low bits.
    let prefix = human_readable.bytes().map(|c| c >> 5);
    let prefix = prefix.chain([0]).chain(human_readable.bytes().map(|c| c & 31));
    let constant = if version == 0 { BECH32 } else { BECH32M };
    let sum = prefix.chain(data.iter().copied()).chain([0; 6]).fold(1, bech32_step) ^ constant;
    data.extend((0..6).map(|i| (sum >> (5 * (5 - i)) & 31) as u8));
    format!("{human_readable}1{}", to_charset(&data))
}

/// One step of the division by BIP173's generator polynomial.
pub(super) fn bech32_step(state: u32, value: u8) -> u32 {
    let top = state >> 25;
    let mut next = (state & 0x1ff_ffff) << 5 ^ u32::from(value);
    for (bit, generator) in BECH32_GENERATOR.into_iter().enumerate() {
        if top >> bit & 1 == 1 {
            next ^= generator;
        }
    }
    next
}

fn cash(prefix: &str, kind: u8, hash: &[u8]) -> String {
    // The version byte holds the type and, in its low bits, the hash length.
    let length_code = if hash.len() == 32 { 3 } else { 0 };
    let mut payload = vec![kind | length_code];
    payload.extend_from_slice(hash);
    let mut data = to_5_bits(&payload);
    let covered = prefix.bytes().map(|c| c & 31).chain([0]).chain(data.iter().copied());
    let sum = covered.chain([0; 8]).fold(1, cash_step) ^ 1;
    data.extend((0..8).map(|i| (sum >> (5 * (7 - i)) & 31) as u8));
    format!("{prefix}:{}", to_charset(&data))
}

/// One step of the division by the cash address generator polynomial.
pub(super) fn cash_step(state: u64, value: u8) -> u64 {
    let top = state >> 35;
    let mut next = (state & 0x07_ffff_ffff) << 5 ^ u64::from(value);
    for (bit, generator) in CASH_GENERATOR.into_iter().enumerate() {
        if top >> bit & 1 == 1 {
            next ^= generator;
        }
    }
    next
}

/// Regroups bytes into 5-bit values, padded with zero bits.
fn to_5_bits(bytes: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(bytes.len() * 8 / 5 + 1);
    let (mut buffer, mut bits) = (0u32, 0);
    for &byte in bytes {
        buffer = buffer << 8 | u32::from(byte);
        bits += 8;
        while bits >= 5 {
            bits -= 5;
            out.push((buffer >> bits & 31) as u8);
        }
    }
    if bits > 0 {
        out.push((buffer << (5 - bits) & 31) as u8);
    }
    out
}

fn to_charset(values: &[u8]) -> String {
    values.iter().map(|&value| char::from(CHARSET[usize::from(value)])).collect()
}

pub(super) const BASE58: &[u8; 58] = b"123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz";
/// The 32 characters common to bech32, cash addresses and descriptor checksums.
pub(crate) const CHARSET: &[u8; 32] = b"qpzry9x8gf2tvdw0s3jn54khce6mua7l";
pub(super) const BECH32: u32 = 1;
pub(super) const BECH32M: u32 = 0x2bc8_30a3;
const BECH32_GENERATOR: [u32; 5] =
    [0x3b6a_57b2, 0x2650_8e6d, 0x1ea1_19fa, 0x3d42_33dd, 0x2a14_62b3];
const CASH_GENERATOR: [u64; 5] =
    [0x98_f2bc_8e61, 0x79_b76d_99e2, 0xf3_3e5f_b3c4, 0xae_2eab_e2a8, 0x1e_4f43_e470];
const CASH_PUBKEY_HASH: u8 = 0;
pub(super) const CASH_SCRIPT_HASH: u8 = 8;

#[cfg(test)]
mod tests {
    use assay_testkit::{data, hex};

    use super::*;

    /// A vector file of Bitcoin Core, if the shared test data is present.
    fn vectors(name: &str) -> Option<Vec<serde_json::Value>> {
        let text = data::read(&format!("vectors/{name}"))?;
        Some(serde_json::from_slice(&text).unwrap())
    }

    /// Every script of `key_io_valid.json` encodes to its address.
    #[test]
    fn addresses_of_bitcoin_core() {
        let Some(rows) = vectors("key_io_valid.json") else { return };
        let mut addresses = 0;
        for row in rows.iter().filter(|row| row[2]["isPrivkey"] == false) {
            let params = ChainParams::by_name(row[2]["chain"].as_str().unwrap()).unwrap();
            let script = hex::decode(row[1].as_str().unwrap());
            let destination = match &script[..] {
                [0x76, 0xa9, 0x14, hash @ .., 0x88, 0xac] => Destination::PubkeyHash(hash),
                [0xa9, 0x14, hash @ .., 0x87] => Destination::ScriptHash(hash),
                [version, _, program @ ..] => {
                    Destination::Witness { version: version.saturating_sub(0x50), program }
                }
                _ => panic!("{row}"),
            };
            assert_eq!(encode(&params, destination), row[0].as_str().unwrap());
            addresses += 1;
        }
        assert!(addresses > 40, "only {addresses} addresses");
    }

    #[test]
    fn base58_file_of_bitcoin_core() {
        let Some(rows) = vectors("base58_encode_decode.json") else { return };
        for row in &rows {
            assert_eq!(base58(&hex::decode(row[0].as_str().unwrap())), row[1].as_str().unwrap());
        }
    }

    #[test]
    fn base58_vectors_of_bitcoin_core() {
        // src/test/data/base58_encode_decode.json
        for (hex, text) in [
            ("", ""),
            ("61", "2g"),
            ("626262", "a3gV"),
            ("73696d706c792061206c6f6e6720737472696e67", "2cFupjhnEsSn59qHXstmK2ffpLv2"),
            (
                "00eb15231dfceb60925886b67d065299925915aeb172c06647",
                "1NS17iag9jJgTHD1VXjvLCEnZuQ3rJDE9L",
            ),
            ("00000000000000000000", "1111111111"),
            ("ecac89cad93923c02321", "EJDM8drfXA6uyA"),
        ] {
            assert_eq!(base58(&hex::decode(hex)), text);
        }
    }

    #[test]
    fn base58_addresses_of_the_genesis_key() {
        let hash = hex::decode("62e907b15cbf27d5425399ebf6f0fb50ebb88f18");
        let main = ChainParams::by_name("main").unwrap();
        assert_eq!(
            encode(&main, Destination::PubkeyHash(&hash)),
            "1A1zP1eP5QGefi2DMPTfTL5SLmv7DivfNa"
        );
    }

    #[test]
    fn segwit_vectors_of_bip173_and_bip350() {
        for (hrp, version, program, text) in [
            (
                "bc",
                0,
                "751e76e8199196d454941c45d1b3a323f1433bd6",
                "bc1qw508d6qejxtdg4y5r3zarvary0c5xw7kv8f3t4",
            ),
            (
                "tb",
                0,
                "1863143c14c5166804bd19203356da136c985678cd4d27a1b8c6329604903262",
                "tb1qrp33g0q5c5txsp9arysrx4k6zdkfs4nce4xj0gdcccefvpysxf3q0sl5k7",
            ),
            (
                "bc",
                1,
                "79be667ef9dcbbac55a06295ce870b07029bfcdb2dce28d959f2815b16f81798",
                "bc1p0xlxvlhemja6c4dqv22uapctqupfhlxm9h8z3k2e72q4k9hcz7vqzk5jj0",
            ),
            ("bc", 16, "751e", "bc1sw50qgdz25j"),
        ] {
            assert_eq!(segwit(hrp, version, &hex::decode(program)), text);
        }
    }

    #[test]
    fn cash_address_vectors_of_the_specification() {
        let hash = hex::decode("76a04053bda0a88bda5177b86a15c3b29f559873");
        for (kind, text) in [
            (CASH_PUBKEY_HASH, "bitcoincash:qpm2qsznhks23z7629mms6s4cwef74vcwvy22gdx6a"),
            (CASH_SCRIPT_HASH, "bitcoincash:ppm2qsznhks23z7629mms6s4cwef74vcwvn0h829pq"),
        ] {
            assert_eq!(cash("bitcoincash", kind, &hash), text);
        }
        let long = hex::decode("3173ef6623c6b48ffd1a3dcc0cc6489b0a07bb47a37f47cfef4fe69de825c060");
        for (prefix, kind, text) in [
            (
                "bitcoincash",
                CASH_PUBKEY_HASH,
                "bitcoincash:qvch8mmxy0rtfrlarg7ucrxxfzds5pamg73h7370aa87d80gyhqxq5nlegake",
            ),
            (
                "bchtest",
                CASH_SCRIPT_HASH,
                "bchtest:pvch8mmxy0rtfrlarg7ucrxxfzds5pamg73h7370aa87d80gyhqxq7fqng6m6",
            ),
        ] {
            assert_eq!(cash(prefix, kind, &long), text);
        }
    }
}
