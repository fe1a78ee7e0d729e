//! revm's precompiles of the Ethereum virtual machine, by address, as of Osaka.

use anyhow::{Context as _, Result, ensure};
use p256::ecdsa::signature::hazmat::PrehashSigner as _;
use p256::ecdsa::{Signature, SigningKey};
use revm_precompile::{Precompile, Precompiles, u64_to_address};
use secp256k1::ecdsa::{RecoverableSignature, RecoveryId};
use secp256k1::{Message, SecretKey};
use sha2::{Digest as _, Sha256};

use crate::assay::{PRECOMPILES, precompile_input};
use crate::derive::expand;
use crate::kzg;
use crate::table::{Prepared, Table, Work};

pub const VERSION: &str = "43.0.3";

const GROUP: &str = "evm";

/// More gas than any input here costs.
const GAS: u64 = 1 << 60;

pub fn table() -> Table {
    let mut table = Table::default();
    ecrecover(&mut table);
    ecrecover_many(&mut table);
    for (address, name, _) in PRECOMPILES.into_iter().filter(|(address, ..)| *address != 1) {
        let how = format!("Precompiles::osaka, address {address:#04x}");
        table.add(GROUP, name, how, move |work| {
            let (run, input) = (at(address)?, precompile_input(name, work)?);
            let answer = call(run, &input)?;
            Ok(Prepared::repeated(answer, move || call(run, &input).expect("it worked before")))
        });
    }
    table
}

/// revm's precompile at an address.
///
/// # Errors
/// If there is none.
pub fn at(address: u64) -> Result<&'static Precompile> {
    Precompiles::osaka().get(&u64_to_address(address)).context("no such precompile")
}

/// Output and gas; `None` if the precompile fails.
pub fn verdict(precompile: &Precompile, input: &[u8]) -> Option<(Vec<u8>, u64)> {
    let output = precompile.execute(input, GAS, 0).ok()?;
    if !output.is_success() {
        return None;
    }
    Some((output.bytes.to_vec(), output.gas_used))
}

fn call(precompile: &Precompile, input: &[u8]) -> Result<Vec<u8>> {
    let output = precompile.execute(input, GAS, 0).map_err(|error| anyhow::anyhow!("{error:?}"))?;
    ensure!(output.is_success(), "{:?}", output.status);
    Ok(output.bytes.to_vec())
}

/// The signature is part of the order: message, r and s. `v` selects one of the two possible keys; the answer has both.
fn ecrecover(table: &mut Table) {
    table.add(GROUP, "ecrecover", "Precompiles::osaka, address 0x01", |work| {
        let (run, inputs) = (at(1)?, recovery_inputs(work)?);
        let answer = [call(run, &inputs[0])?, call(run, &inputs[1])?].concat();
        Ok(Prepared::repeated(answer, move || call(run, &inputs[1]).expect("it worked before")))
    });
}

/// The given signature with v 28 and 27.
pub(crate) fn recovery_inputs(work: &Work) -> Result<[Vec<u8>; 2]> {
    let given = work.given()?;
    ensure!(given.len() == 96, "96 bytes of inputs are wanted");
    Ok([28, 27].map(|v| {
        let mut word = [0; 32];
        word[31] = v;
        [&given[..32], &word, &given[32..]].concat()
    }))
}

fn ecrecover_many(table: &mut Table) {
    table.add(GROUP, "ecrecover-many", "Precompiles::osaka, address 0x01, one by one", |work| {
        let (run, inputs) = (at(1)?, recoveries(work)?);
        let all = move || -> Result<Vec<Vec<u8>>> {
            inputs.iter().map(|input| call(run, input)).collect()
        };
        Ok(Prepared::repeated(all()?.concat(), move || all().expect("it worked before")))
    });
}

/// Number of signatures without a given size.
const RECOVERIES: usize = 256;

/// Inputs of `ecrecover`: hash, v, r and s.
///
/// # Errors
/// If a hash is not a valid secret.
pub fn recoveries(work: &Work) -> Result<Vec<Vec<u8>>> {
    let count = if work.size == 0 { RECOVERIES } else { work.size };
    (0..count).map(|index| recovery(work, index)).collect()
}

/// Signature (RFC 6979) of the message with this index by its own secret.
pub(crate) fn recovery(work: &Work, index: usize) -> Result<Vec<u8>> {
    let secret = expand("ecrecover", work.seed, index as u64, 32);
    let secret = SecretKey::from_secret_bytes(secret.try_into().expect("32 bytes"))?;
    let message = work.message(index);
    let sig = RecoverableSignature::sign_ecdsa_recoverable(Message::from_digest(message), &secret);
    let (id, compact) = sig.serialize_compact();
    let mut v = [0; 32];
    v[31] = if id == RecoveryId::One { 28 } else { 27 };
    Ok([&message[..], &v, &compact].concat())
}

/// Hash of a commitment, then the result of [`kzg::point_evaluation`].
pub(crate) fn point_evaluation(work: &Work) -> Result<Vec<u8>> {
    let (commitment, rest) = kzg::point_evaluation(work)?;
    let mut hash = Sha256::digest(commitment).to_vec();
    hash[0] = 1;
    Ok([hash, rest].concat())
}

/// Twelve rounds, as in `BLAKE2b`, on random words; the last block.
pub(crate) fn blake2f(work: &Work) -> Vec<u8> {
    [&[0, 0, 0, 12][..], &expand("blake2f", work.seed, 0, 208), &[1]].concat()
}

/// A valid signature: hash, r and s, key.
pub(crate) fn p256_verify(work: &Work) -> Result<Vec<u8>> {
    let key = SigningKey::from_slice(&expand("p256", work.seed, 0, 32))?;
    let hash = work.message(0);
    let signature: Signature = key.sign_prehash(&hash)?;
    let point = key.verifying_key().to_encoded_point(false);
    Ok([&hash[..], &signature.to_bytes()[..], &point.as_bytes()[1..]].concat())
}

pub(crate) fn modexp(work: &Work) -> Vec<u8> {
    let mut length = [0; 32];
    length[24..].copy_from_slice(&(work.size as u64).to_be_bytes());
    let part = |label| expand(label, work.seed, 0, work.size);
    let mut modulus = part("modulus");
    modulus[0] |= 0x80;
    modulus[work.size - 1] |= 1;
    [length.repeat(3), part("base"), part("exponent"), modulus].concat()
}

#[cfg(test)]
mod tests {
    use assay_pairing::curve::{BlsG1, Curve as _};

    use super::*;

    fn bytes_of(hex: &str) -> Vec<u8> {
        let mut bytes = vec![0; hex.len() / 2];
        faster_hex::hex_decode(hex.as_bytes(), &mut bytes).expect("hexadecimal");
        bytes
    }

    /// EIP-2537, `bls_g1add_(g1+g1=2*g1)`.
    #[test]
    fn twice_the_generator() {
        let generator = BlsG1::GENERATOR.to_evm();
        let sum = call(at(0x0b).expect("there"), &generator.repeat(2)).expect("points");
        let x = "0572cbea904d67468808c8eb50a9450c9721db309128012543902d0ac358a62ae28f75bb8f1c7c42c39a8c5529bf0f4e";
        let y = "166a9d8cabc673a322fda673779d8e3822ba3ecb8670e461f73bb9021d5fd76a4c56d9d4cd16bd1bba86881979749d28";
        let zeros = "00".repeat(16);
        assert_eq!(sum, bytes_of(&[&zeros, x, &zeros, y].concat()));
    }

    /// c-kzg-4844, `verify_kzg_proof_case_correct_proof_4_4`, in the input format of the precompile of EIP-4844.
    #[test]
    fn a_point_evaluation() {
        let commitment = bytes_of(
            "8f59a8d2a1a625a17f3fea0fe5eb8c896db3764f3185481bc22f91b4aaffcca25f26936857bc3a7c2539ea8ec3a952b7",
        );
        let z = bytes_of("73eda753299d7d483339d80809a1d80553bda402fffe5bfeffffffff00000000");
        let y = bytes_of("1522a4a7f34e1ea350ae07c29c96c7e79655aa926122e95fe69fcbd932ca49e9");
        let proof = bytes_of(
            "a62ad71d14c5719385c0686f1871430475bf3a00f0aa3f7b8dd99a9abc2160744faf0070725e00b60ad9a026a15b1a8c",
        );
        let mut hash = Sha256::digest(&commitment).to_vec();
        hash[0] = 1;
        let mut input = [hash, z, y, commitment, proof].concat();
        let precompile = at(0x0a).expect("there");
        let output = call(precompile, &input).expect("a right proof");
        let modulus = "73eda753299d7d483339d80809a1d80553bda402fffe5bfeffffffff00000001";
        assert_eq!(output[30..], [&[0x10, 0][..], &bytes_of(modulus)].concat());
        input[95] ^= 1;
        assert!(call(precompile, &input).is_err(), "another value");
    }
}
