//! libsecp256k1: signatures, and products of points by scalars. Its fields have no public interface.

use std::hint::black_box;

use anyhow::{Context as _, Result, ensure};
use secp256k1::{Message, PublicKey, Scalar, SecretKey, XOnlyPublicKey, ecdsa, schnorr};

use crate::arkworks;
use crate::table::{ANSWERED, Prepared, SPREAD, Table, Work};

/// Version of the crate and of the library in it.
pub const VERSION: &str = "0.8.0 (crate 0.33)";

const CURVE: &str = "secp256k1";

pub fn table() -> Table {
    let mut table = Table::default();
    table.add(CURVE, "g1-mul", "PublicKey::mul_tweak, variable time", |work| {
        let scalar = |label: &str, index: usize| -> Result<[u8; 32]> {
            let element: ark_secp256k1::Fr = arkworks::element(work, label, index);
            arkworks::bytes(&element).try_into().ok().context("32 bytes")
        };
        let point = PublicKey::from_secret_key(&SecretKey::from_secret_bytes(scalar("g1", 0)?)?);
        let scalars: Vec<Scalar> = (0..SPREAD)
            .map(|index| Ok(Scalar::from_be_bytes(scalar("fr", index)?)?))
            .collect::<Result<_>>()?;
        let mut answer = Vec::new();
        for scalar in &scalars[..ANSWERED] {
            // Skips the prefix byte of an uncompressed point.
            answer.extend(&point.mul_tweak(scalar)?.serialize_uncompressed()[1..]);
        }
        Ok(Prepared::spread(answer, move |index| {
            black_box(point.mul_tweak(&scalars[index])).expect("not zero");
        }))
    });
    table.add(CURVE, "ecdsa-verify", "ecdsa::verify, keys and signatures parsed, one by one", |work| {
        signatures(work, 129, |one| {
            let (key, sig) = (PublicKey::from_slice(&one[..33]), &one[33..97]);
            let message = Message::from_digest(one[97..].try_into().expect("32 bytes remain"));
            let sig = ecdsa::Signature::from_compact(sig);
            matches!((key, sig), (Ok(key), Ok(sig)) if ecdsa::verify(&sig, message, &key).is_ok())
        })
    });
    table.add(CURVE, "schnorr-verify", "schnorr::verify, keys parsed, one by one", |work| {
        signatures(work, 128, |one| {
            let part =
                |from: usize| -> [u8; 32] { one[from..from + 32].try_into().expect("32 bytes") };
            let sig: [u8; 64] = one[32..96].try_into().expect("64 bytes");
            let sig = schnorr::Signature::from_byte_array(sig);
            XOnlyPublicKey::from_byte_array(part(0))
                .is_ok_and(|key| schnorr::verify(&sig, &part(96), &key).is_ok())
        })
    });
    table
}

/// Signatures from the order, each after its key and before its message of 32 bytes.
fn signatures(
    work: &Work,
    one_bytes: usize,
    verify: impl Fn(&[u8]) -> bool + Send + 'static,
) -> Result<Prepared> {
    let mut given = work.given()?;
    ensure!(given.len() == one_bytes * work.size, "{one_bytes} bytes for each are wanted");
    let mut answer: Vec<u8> =
        given.chunks_exact(one_bytes).map(|one| u8::from(verify(one))).collect();
    given[one_bytes - 32] ^= 1;
    answer.push(u8::from(verify(&given[..one_bytes])));
    given[one_bytes - 32] ^= 1;
    Ok(Prepared::new(answer, move |iterations| {
        for _ in 0..iterations {
            assert!(given.chunks_exact(one_bytes).all(&verify), "valid signatures");
        }
    }))
}
