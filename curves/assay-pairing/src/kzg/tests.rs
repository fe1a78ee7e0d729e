//! Proofs under a setup with a known secret, so that they can be computed directly.

use super::{
    BLOB_BYTES, BLOB_ELEMENTS, KzgError, Prover, Settings, challenge, evaluate, reversed, roots,
};
use crate::bls12_381::Fr;
use crate::curve::{Affine, BlsG1, BlsG2, Curve as _};
use crate::encoding::DecodeError;
use crate::field::Field as _;
use crate::testing::Rng;

pub(super) const SECRET: u64 = 0x1234_5678_9abc_def1;

fn settings() -> Settings {
    let point = BlsG2::GENERATOR.multiply(&[SECRET, 0, 0, 0]).to_affine();
    Settings::new(&point.to_compressed()).expect("a point")
}

pub(super) fn g1(scalar: Fr) -> [u8; 48] {
    BlsG1::GENERATOR.multiply(&scalar.to_limbs()).to_affine().to_compressed()
}

/// `(f(s) - y) / (s - z)`.
fn quotient(f: Fr, z: Fr, y: Fr) -> Fr {
    (f - y) * (Fr::from_u64(SECRET) - z).inverse().expect("z is not the secret")
}

#[test]
fn openings() {
    let settings = settings();
    let mut rng = Rng::new(15);
    for _ in 0..10 {
        // A polynomial of degree 2.
        let c: [Fr; 3] = core::array::from_fn(|_| rng.fe());
        let f = |x: Fr| (c[2] * x + c[1]) * x + c[0];
        let (z, at_secret): (Fr, Fr) = (rng.fe(), f(Fr::from_u64(SECRET)));
        let (commitment, y) = (g1(at_secret), f(z));
        let proof = g1(quotient(at_secret, z, y));
        let verify = |z: Fr, y: Fr| {
            settings.verify_proof(&commitment, &z.to_be_bytes(), &y.to_be_bytes(), &proof)
        };
        assert_eq!(verify(z, y), Ok(true));
        assert_eq!(verify(z, y + Fr::ONE), Ok(false));
        assert_eq!(verify(z + Fr::ONE, y), Ok(false));
        let above = settings.verify_proof(&commitment, &[0xff; 32], &y.to_be_bytes(), &proof);
        assert_eq!(above, Err(KzgError::Number));
        let off = settings.verify_proof(&[0; 48], &z.to_be_bytes(), &y.to_be_bytes(), &proof);
        assert_eq!(off, Err(KzgError::Point(DecodeError::Flags)));
    }
}

#[test]
fn blobs() {
    let settings = settings();
    let mut rng = Rng::new(16);
    let values: Vec<Fr> = (0..BLOB_ELEMENTS).map(|_| rng.fe()).collect();
    let mut blob: Vec<u8> = values.iter().flat_map(Fr::to_be_bytes).collect();
    let at_secret = evaluate(&values, Fr::from_u64(SECRET));
    let commitment = g1(at_secret);
    let z = challenge(&blob, &commitment);
    let proof = g1(quotient(at_secret, z, evaluate(&values, z)));
    assert_eq!(settings.verify_blob_proof(&blob, &commitment, &proof), Ok(true));
    blob[31] ^= 1;
    assert_eq!(settings.verify_blob_proof(&blob, &commitment, &proof), Ok(false));
    blob[..32].copy_from_slice(&[0xff; 32]);
    assert_eq!(settings.verify_blob_proof(&blob, &commitment, &proof), Err(KzgError::Number));
    let short = settings.verify_blob_proof(&blob[1..], &commitment, &proof);
    assert_eq!(short, Err(KzgError::BlobLength(BLOB_BYTES - 1)));
}

/// Against coefficients: the values of `x^k` are powers of the roots.
#[test]
fn evaluation() {
    let bits = BLOB_ELEMENTS.trailing_zeros();
    let mut exponent = Fr::MODULUS;
    exponent[0] -= 1;
    let root =
        Fr::from_u64(7).power(&crate::limbs::divide_small(&exponent, BLOB_ELEMENTS as u64).0);
    let z = Fr::from_u64(0xdead_beef);
    for degree in [0u64, 1, 2, 4095] {
        let values: Vec<Fr> = (0..BLOB_ELEMENTS as u32)
            .map(|place| {
                let index = u64::from(place.reverse_bits() >> (32 - bits));
                root.power(&[index]).power(&[degree])
            })
            .collect();
        assert_eq!(evaluate(&values, z), z.power(&[degree]), "{degree}");
        // At a root itself.
        assert_eq!(evaluate(&values, root), root.power(&[degree]), "{degree}");
    }
}

/// c-kzg-4844, `verify_kzg_proof_case_correct_proof_4_4`.
#[test]
fn a_published_proof() {
    fn hex<const N: usize>(text: &str) -> [u8; N] {
        core::array::from_fn(|i| u8::from_str_radix(&text[2 * i..2 * i + 2], 16).expect("digits"))
    }
    let commitment = hex(
        "8f59a8d2a1a625a17f3fea0fe5eb8c896db3764f3185481bc22f91b4aaffcca25f26936857bc3a7c2539ea8ec3a952b7",
    );
    let z = hex("73eda753299d7d483339d80809a1d80553bda402fffe5bfeffffffff00000000");
    let mut y = hex("1522a4a7f34e1ea350ae07c29c96c7e79655aa926122e95fe69fcbd932ca49e9");
    let proof = hex(
        "a62ad71d14c5719385c0686f1871430475bf3a00f0aa3f7b8dd99a9abc2160744faf0070725e00b60ad9a026a15b1a8c",
    );
    let settings = Settings::ethereum();
    assert_eq!(settings.verify_proof(&commitment, &z, &y, &proof), Ok(true));
    y[31] ^= 1;
    assert_eq!(settings.verify_proof(&commitment, &z, &y, &proof), Ok(false));
}

#[test]
fn the_setup_of_ethereum_is_a_point() {
    let settings = Settings::ethereum();
    assert!(settings.secret.is_in_group());
    assert_ne!(settings.secret, Affine::INFINITY);
}

/// A setup with a known secret: `L_i(s) = w_i (s^n - 1) / (n (s - w_i))`.
pub(super) fn prover() -> Prover {
    let secret = Fr::from_u64(SECRET);
    let size = Fr::from_u64(BLOB_ELEMENTS as u64);
    let factor =
        (secret.power(&[BLOB_ELEMENTS as u64]) - Fr::ONE) * size.inverse().expect("not zero");
    let (roots, mut points) = (roots(), vec![[0; 48]; BLOB_ELEMENTS]);
    for (place, root) in roots.iter().enumerate() {
        points[reversed(place)] = g1(*root * factor * (secret - *root).inverse().expect("no root"));
    }
    assert!(matches!(Prover::new(&points[1..], settings()), Err(KzgError::SetupLength(4095))));
    Prover::new(&points, settings()).expect("points")
}

#[test]
fn prover_makes_valid_proofs() {
    let prover = prover();
    let mut rng = Rng::new(18);
    let values: Vec<Fr> = (0..BLOB_ELEMENTS).map(|_| rng.fe()).collect();
    let mut blob: Vec<u8> = values.iter().flat_map(Fr::to_be_bytes).collect();
    let commitment = prover.commit(&blob).expect("a blob");
    assert_eq!(commitment, g1(evaluate(&values, Fr::from_u64(SECRET))));
    let proof = prover.prove_blob(&blob, &commitment).expect("a blob");
    assert_eq!(prover.settings().verify_blob_proof(&blob, &commitment, &proof), Ok(true));
    // At a random point, and at roots of one.
    for z in [rng.fe(), Fr::ZERO, roots()[0], roots()[5]] {
        let (proof, y) = prover.prove(&blob, &z.to_be_bytes()).expect("a blob");
        assert_eq!(y, evaluate(&values, z).to_be_bytes());
        let verdict = prover.settings().verify_proof(&commitment, &z.to_be_bytes(), &y, &proof);
        assert_eq!(verdict, Ok(true), "{z:?}");
    }
    assert_eq!(prover.prove(&blob, &[0xff; 32]), Err(KzgError::Number));
    assert!(matches!(prover.prove_blob(&blob, &[1; 48]), Err(KzgError::Point(_))));
    blob[0] = 0xff;
    assert_eq!(prover.commit(&blob), Err(KzgError::Number));
    assert_eq!(prover.commit(&blob[1..]), Err(KzgError::BlobLength(BLOB_BYTES - 1)));
}
