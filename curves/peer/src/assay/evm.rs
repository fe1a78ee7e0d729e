//! Precompiles of the Ethereum virtual machine, on the inputs of `evm_inputs.rs`.

use std::hint::black_box;
use std::sync::LazyLock;

use anyhow::Result;
use assay_pairing::curve::{Affine, BlsG1, BlsG2, BnG1, BnG2, Curve};
use assay_pairing::evm::{self, ModexpRules, PrecompileError};
use assay_pairing::kzg::Settings;
use assay_pairing::tower::Fp2;
use assay_pairing::{bls12_381, bn254};
use assay_secp::Recoverer;
use assay_secp::ethereum::{ECRECOVER_GAS, ecrecover, ecrecover_all};

use super::{Canonical, points, scalar};
use crate::derive::expand;
use crate::evm_inputs as peer;
use crate::table::{Prepared, Table, Work};

const GROUP: &str = "evm";

/// A precompile: output, or the reason of its failure.
pub type Run = fn(&[u8]) -> Result<Vec<u8>, PrecompileError>;

/// The precompile that is not in `assay_pairing`.
const RECOVER: &str = "ecrecover";

/// All precompiles by address, with the names of their operations.
pub const PRECOMPILES: [(u64, &str, Run); 18] = [
    (0x01, RECOVER, |input| Ok(ecrecover(input).map_or_else(Vec::new, Vec::from))),
    (0x02, "sha256", |input| Ok(evm::sha256(input).to_vec())),
    (0x03, "ripemd160", |input| Ok(evm::ripemd160(input).to_vec())),
    (0x04, "identity", |input| Ok(evm::identity(input))),
    (0x05, "modexp", evm::modexp),
    (0x06, "bn254-add", |input| evm::ec_add(input).map(Vec::from)),
    (0x07, "bn254-mul", |input| evm::ec_mul(input).map(Vec::from)),
    (0x08, "bn254-pairing", |input| evm::ec_pairing(input).map(word)),
    (0x09, "blake2f", |input| evm::blake2f(input).map(Vec::from)),
    (0x0a, "kzg-point-evaluation", |input| evm::point_evaluation(&SETTINGS, input).map(Vec::from)),
    (0x0b, "bls12-381-g1add", |input| evm::bls_g1_add(input).map(Vec::from)),
    (0x0c, "bls12-381-g1msm", |input| evm::bls_g1_msm(input).map(Vec::from)),
    (0x0d, "bls12-381-g2add", |input| evm::bls_g2_add(input).map(Vec::from)),
    (0x0e, "bls12-381-g2msm", |input| evm::bls_g2_msm(input).map(Vec::from)),
    (0x0f, "bls12-381-pairing", |input| evm::bls_pairing(input).map(word)),
    (0x10, "bls12-381-map-fp-to-g1", |input| evm::bls_map_fp_to_g1(input).map(Vec::from)),
    (0x11, "bls12-381-map-fp2-to-g2", |input| evm::bls_map_fp2_to_g2(input).map(Vec::from)),
    (0x100, "p256verify", |input| {
        Ok(if evm::p256_verify(input) { word(true) } else { Vec::new() })
    }),
];

static SETTINGS: LazyLock<Settings> = LazyLock::new(Settings::ethereum);

fn word(is_one: bool) -> Vec<u8> {
    let mut word = vec![0; 32];
    word[31] = u8::from(is_one);
    word
}

/// Gas of a precompile for an input.
pub fn gas(address: u64, input: &[u8]) -> u64 {
    let bytes = input.len();
    match address {
        0x01 => ECRECOVER_GAS,
        0x02 => evm::sha256_gas(bytes),
        0x03 => evm::ripemd160_gas(bytes),
        0x04 => evm::identity_gas(bytes),
        0x05 => evm::modexp_gas(input, ModexpRules::Osaka),
        0x09 => evm::blake2f_gas(input).unwrap_or_default(),
        0x0a => evm::POINT_EVALUATION_GAS,
        0x100 => evm::P256_VERIFY_GAS,
        0x06 => evm::EC_ADD_GAS,
        0x07 => evm::EC_MUL_GAS,
        0x08 => evm::ec_pairing_gas(bytes),
        0x0b => evm::BLS_G1_ADD_GAS,
        0x0c => evm::bls_g1_msm_gas(bytes),
        0x0d => evm::BLS_G2_ADD_GAS,
        0x0e => evm::bls_g2_msm_gas(bytes),
        0x0f => evm::bls_pairing_gas(bytes),
        0x10 => evm::BLS_MAP_FP_TO_G1_GAS,
        _ => evm::BLS_MAP_FP2_TO_G2_GAS,
    }
}

pub(super) fn operations(table: &mut Table) {
    recover(table);
    // Signatures are part of the order.
    for (address, name, run) in PRECOMPILES.into_iter().filter(|(_, name, _)| *name != RECOVER) {
        let how = format!("assay_pairing::evm, address {address:#04x}");
        table.add(GROUP, name, how, move |work| {
            let input = input(name, work)?;
            Ok(Prepared::repeated(run(&input)?, move || run(&input).expect("it worked before")))
        });
    }
}

/// Recovery of both keys of a signature from the order one by one, and of many at once.
fn recover(table: &mut Table) {
    table.add(GROUP, RECOVER, "assay_secp::ethereum::ecrecover", |work| {
        let inputs = peer::recovery_inputs(work)?;
        let answer: Vec<u8> =
            inputs.iter().filter_map(|input| ecrecover(input)).flatten().collect();
        Ok(Prepared::repeated(answer, move || ecrecover(&inputs[1]).expect("it worked before")))
    });
    table.add(GROUP, "ecrecover-many", "assay_secp::ethereum::ecrecover_all", |work| {
        let (inputs, mut recoverer) = (peer::recoveries(work)?, Recoverer::new());
        let mut all = move || {
            let inputs: Vec<&[u8]> = inputs.iter().map(Vec::as_slice).collect();
            ecrecover_all(&mut recoverer, &inputs)
        };
        let answer = all().into_iter().flatten().flatten().collect();
        Ok(Prepared::new(answer, move |iterations| {
            for _ in 0..iterations {
                assert!(black_box(all()).iter().all(Option::is_some), "valid signatures");
            }
        }))
    });
}

/// Input of the operation of this name.
///
/// # Errors
/// If another library fails to generate its part.
pub fn input(name: &str, work: &Work) -> Result<Vec<u8>> {
    let count = work.size;
    Ok(match name {
        "sha256" | "ripemd160" | "identity" => expand("data", work.seed, 0, count),
        "modexp" => peer::modexp(work),
        "blake2f" => peer::blake2f(work),
        RECOVER => peer::recovery(work, 0)?,
        "kzg-point-evaluation" => peer::point_evaluation(work)?,
        "p256verify" => peer::p256_verify(work)?,
        "bn254-add" => encoded::<BnG1>(work, "g1", 2),
        "bn254-mul" => {
            let scalar = bn254::Fr::element(work, "fr", 0).bytes();
            [encoded::<BnG1>(work, "g1", 1), scalar].concat()
        }
        "bn254-pairing" => pairs::<BnG1, BnG2>(work),
        "bls12-381-g1add" => encoded::<BlsG1>(work, "g1", 2),
        "bls12-381-g2add" => encoded::<BlsG2>(work, "g2", 2),
        "bls12-381-g1msm" => products::<BlsG1>(work, "g1"),
        "bls12-381-g2msm" => products::<BlsG2>(work, "g2"),
        "bls12-381-pairing" => pairs::<BlsG1, BlsG2>(work),
        "bls12-381-map-fp-to-g1" => padded(&bls12_381::Fp::element(work, "fp", 0)),
        _ => padded(&Fp2::<bls12_381::Fp>::element(work, "fp2", 0)),
    })
}

/// Groups whose points have an encoding here.
trait Encoded: Curve {
    fn encode(point: &Affine<Self>) -> Vec<u8>;
}

macro_rules! encoded {
    ($($group:ty),+) => {$(
        impl Encoded for $group {
            fn encode(point: &Affine<Self>) -> Vec<u8> {
                point.to_evm().to_vec()
            }
        }
    )+};
}

encoded!(BnG1, BnG2, BlsG1, BlsG2);

fn encoded<C: Encoded>(work: &Work, label: &str, count: usize) -> Vec<u8> {
    points::<C>(work, label, count).iter().flat_map(C::encode).collect()
}

/// Each point followed by its scalar.
fn products<C: Encoded>(work: &Work, label: &str) -> Vec<u8> {
    let mut input = Vec::new();
    for (index, point) in points::<C>(work, label, work.size).iter().enumerate() {
        input.extend(C::encode(point));
        let limbs = scalar::<C>(work, "fr", index);
        input.extend(limbs.iter().rev().flat_map(|limb| limb.to_be_bytes()));
    }
    input
}

/// Every second pair cancels the one before.
fn pairs<P: Encoded, Q: Encoded>(work: &Work) -> Vec<u8> {
    let mut p = points::<P>(work, "g1", work.size);
    let mut q = points::<Q>(work, "g2", work.size);
    for index in (1..work.size).step_by(2) {
        p[index] = -p[index - 1];
        q[index] = q[index - 1];
    }
    p.iter().zip(&q).flat_map(|(p, q)| [P::encode(p), Q::encode(q)].concat()).collect()
}

/// Numbers of EIP-2537: 64 bytes with 16 leading zero bytes.
fn padded(x: &impl Canonical) -> Vec<u8> {
    x.bytes().chunks_exact(48).flat_map(|part| [&[0; 16], part].concat()).collect()
}
