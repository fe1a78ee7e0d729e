//! Pairing curves.

use std::fmt::Debug;

use assay_pairing::bls::{PublicKey, SecretKey, Signature, verify};
use assay_pairing::curve::{Affine, BlsG1, BlsG2, BnG1, BnG2, Curve};
use assay_pairing::evm::{self, ModexpRules, PrecompileError};
use assay_pairing::kzg::{CELL_ELEMENTS, CellOf, CellVerifier, Settings};
use blst::{BLST_ERROR, min_pk, min_sig};

use crate::input::Input;

const DST: &[u8] = b"BLS_SIG_BLS12381G2_XMD:SHA-256_SSWU_RO_POP_";
/// Limit of a call, in gas: that of a block of a test chain.
const GAS_MAX: u64 = 300_000;

/// Points of BLS12-381 in every format, signatures over it, and the precompiles of the Ethereum virtual machine: verdicts and
/// bytes are blst's, and what is accepted is written as it was read.
pub fn curves(data: &[u8]) {
    let mut input = Input(data);
    match input.byte() % 5 {
        0 => first_group(&mut input),
        1 => second_group(&mut input),
        2 => signed(&mut input),
        3 => commitments(&mut input),
        _ => precompiles(&mut input),
    }
}

/// A multiple of the generator; infinity among them.
fn point<C: Curve>(input: &mut Input<'_>) -> Affine<C> {
    let number = u64::from_le_bytes(input.array());
    C::GENERATOR.multiply(&[number, 0, 0, number >> 32]).to_affine()
}

/// Bytes with some of them changed: where, and by what.
fn edited<const N: usize>(mut bytes: [u8; N], input: &mut Input<'_>) -> [u8; N] {
    if input.byte() & 1 == 0 {
        for change in input.rest().chunks_exact(2).take(4) {
            bytes[usize::from(change[0]) % N] ^= change[1];
        }
        return bytes;
    }
    input.array()
}

/// Decoders of a group against those of blst's signatures in it, which are not generic.
macro_rules! decoders {
    ($name:ident, $group:ty, $blst:ident) => {
        fn $name(input: &mut Input<'_>) {
            type Point = Affine<$group>;
            let point = point::<$group>(input);
            if input.byte() & 1 == 0 {
                let bytes = edited(point.to_compressed(), input);
                let ours = Point::from_compressed(&bytes);
                let theirs = $blst::Signature::sig_validate(&bytes, false);
                assert_eq!(ours.is_ok(), theirs.is_ok(), "{bytes:02x?} {ours:?} {theirs:?}");
                if let (Ok(point), Ok(other)) = (ours, theirs) {
                    assert_eq!(point.to_compressed(), bytes);
                    assert_eq!(point.to_uncompressed(), other.serialize());
                }
                return;
            }
            let bytes = edited(point.to_uncompressed(), input);
            let ours = Point::from_uncompressed(&bytes);
            // blst takes the compressed format here as well.
            let is_compressed = bytes[0] & 0x80 != 0;
            let theirs = $blst::Signature::sig_validate(&bytes, false);
            let is_valid = theirs.is_ok() && !is_compressed;
            assert_eq!(ours.is_ok(), is_valid, "{bytes:02x?} {ours:?} {theirs:?}");
            if let Ok(point) = ours {
                assert_eq!(point.to_uncompressed(), bytes);
                assert_eq!(Point::from_evm(&point.to_evm()), Ok(point));
            }
        }
    };
}

decoders!(first_group, BlsG1, min_sig);
decoders!(second_group, BlsG2, min_pk);

/// A signature of a message by a key, with bytes of any of them changed.
fn signed(input: &mut Input<'_>) {
    let mut secret: [u8; 32] = input.array();
    secret[0] &= 0x3f;
    let Some(ours) = SecretKey::from_bytes(&secret) else { return };
    let theirs = min_pk::SecretKey::from_bytes(&secret).expect("a secret below the order");
    let message: [u8; 8] = input.array();
    let (key, signature) = (ours.public_key().to_bytes(), ours.sign(&message).to_bytes());
    assert_eq!(key, theirs.sk_to_pk().to_bytes());
    assert_eq!(signature, theirs.sign(&message, DST, &[]).to_bytes());
    let which = input.byte();
    let mut other = message;
    other[0] ^= which & 4;
    let (key, signature) = match which & 3 {
        0 => (edited(key, input), signature),
        1 => (key, edited(signature, input)),
        _ => (key, signature),
    };
    let is_valid = match (PublicKey::from_bytes(&key), Signature::from_bytes(&signature)) {
        (Ok(key), Ok(signature)) => verify(&key, &other, &signature),
        _ => false,
    };
    let by_blst =
        match (min_pk::PublicKey::from_bytes(&key), min_pk::Signature::from_bytes(&signature)) {
            (Ok(key), Ok(signature)) => {
                signature.verify(true, &other, DST, &[], &key, true) == BLST_ERROR::BLST_SUCCESS
            }
            _ => false,
        };
    assert_eq!(is_valid, by_blst, "{key:02x?} {signature:02x?}");
}

/// The order of the scalar field, big-endian.
const ORDER: [u8; 32] = [
    0x73, 0xed, 0xa7, 0x53, 0x29, 0x9d, 0x7d, 0x48, 0x33, 0x39, 0xd8, 0x08, 0x09, 0xa1, 0xd8, 0x05,
    0x53, 0xbd, 0xa4, 0x02, 0xff, 0xfe, 0x5b, 0xfe, 0xff, 0xff, 0xff, 0xff, 0x00, 0x00, 0x00, 0x01,
];

/// A proof of EIP-4844 or of a cell of EIP-7594 for a polynomial that is a constant, with bytes of any part changed: decoded where
/// blst decodes the points and numbers are below the order, and valid where nothing is changed.
fn commitments(input: &mut Input<'_>) {
    let number = u64::from_le_bytes(input.array());
    let mut value = [0; 32];
    value[24..].copy_from_slice(&number.to_be_bytes());
    let commitment = BlsG1::GENERATOR.multiply(&[number, 0, 0, 0]).to_affine().to_compressed();
    let proof = Affine::<BlsG1>::INFINITY.to_compressed();
    let which = input.byte();
    let z: [u8; 32] = input.array();
    let (mut given, mut y, mut proven) = (commitment, value, proof);
    match which % 4 {
        0 => given = edited(commitment, input),
        1 => y = edited(value, input),
        2 => proven = edited(proof, input),
        _ => {}
    }
    let is_point = |bytes: &[u8; 48]| min_sig::Signature::sig_validate(bytes, false).is_ok();
    let are_points = is_point(&given) && is_point(&proven);
    let is_changed = (given, y, proven) != (commitment, value, proof);
    let (verdict, is_decoded) = if which & 4 == 0 {
        let verdict = Settings::ethereum().verify_proof(&given, &z, &y, &proven);
        (verdict, are_points && z < ORDER && y < ORDER)
    } else {
        let mut cell = value.repeat(CELL_ELEMENTS);
        cell[..32].copy_from_slice(&y);
        let index = u64::from(z[0] % 128);
        let cell = CellOf { commitment: &given, index, cell: &cell, proof: &proven };
        (CellVerifier::ethereum().verify(&[cell]), are_points && y < ORDER)
    };
    assert_eq!(
        verdict.is_ok(),
        is_decoded,
        "{given:02x?} {z:02x?} {y:02x?} {proven:02x?} {verdict:?}"
    );
    if let Ok(is_valid) = verdict {
        assert_eq!(is_valid, !is_changed, "{given:02x?} {z:02x?} {y:02x?} {proven:02x?}");
    }
}

/// No input makes a precompile do anything but answer, and points in answers are points.
fn precompiles(input: &mut Input<'_>) {
    let which = input.byte();
    let mut bytes = Vec::new();
    if input.byte() & 1 == 0 {
        bytes.extend(match which % 9 {
            0..3 => point::<BnG1>(input).to_evm().to_vec(),
            3 | 5 => point::<BlsG1>(input).to_evm().to_vec(),
            _ => point::<BlsG2>(input).to_evm().to_vec(),
        });
    }
    bytes.extend(input.rest());
    let bytes = bytes.as_slice();
    match which % 9 {
        0 => written(evm::ec_add(bytes), Affine::<BnG1>::from_evm),
        1 => written(evm::ec_mul(bytes), Affine::<BnG1>::from_evm),
        2 if evm::ec_pairing_gas(bytes.len()) < GAS_MAX => {
            let _ = evm::ec_pairing(bytes);
        }
        3 => written(evm::bls_g1_add(bytes), Affine::<BlsG1>::from_evm),
        4 => written(evm::bls_g2_add(bytes), Affine::<BlsG2>::from_evm),
        5 if evm::bls_g1_msm_gas(bytes.len()) < GAS_MAX => {
            written(evm::bls_g1_msm(bytes), Affine::<BlsG1>::from_evm);
        }
        6 if evm::bls_pairing_gas(bytes.len()) < GAS_MAX => {
            let _ = evm::bls_pairing(bytes);
        }
        7 if evm::modexp_gas(bytes, ModexpRules::Osaka) < GAS_MAX => {
            let _ = evm::modexp(bytes);
        }
        8 if evm::blake2f_gas(bytes).is_none_or(|gas| gas < GAS_MAX) => {
            let _ = evm::blake2f(bytes);
        }
        _ => {
            let _ = (evm::p256_verify(bytes), Affine::<BnG2>::from_evm(&Input(bytes).array()));
        }
    }
}

/// The answer, if there is one, is a point.
fn written<P, E: Debug, const N: usize>(
    answer: Result<[u8; N], PrecompileError>,
    point: impl Fn(&[u8; N]) -> Result<P, E>,
) {
    if let Ok(bytes) = answer
        && let Err(error) = point(&bytes)
    {
        panic!("{bytes:02x?}: {error:?}");
    }
}
