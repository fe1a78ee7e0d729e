//! The vectors of the standard, and the map at its exceptions.

use super::{HashToCurve, expand_message, first, hash_all, second, vectors};
use crate::bls12_381::Fp;
use crate::curve::{BlsG1, BlsG2};
use crate::field::Field as _;
use crate::msm::Backend;
use crate::testing::{Rng, hex};
use crate::tower::Fp2;

/// The long messages of the standard by their short names.
fn message(name: &str) -> Vec<u8> {
    match name {
        "q128" => format!("q128_{}", "q".repeat(128)).into_bytes(),
        "a512" => format!("a512_{}", "a".repeat(512)).into_bytes(),
        _ => name.as_bytes().to_vec(),
    }
}

#[test]
fn vectors_of_the_standard() {
    let dst = b"QUUX-V01-CS02-with-BLS12381G1_XMD:SHA-256_SSWU_RO_";
    for (name, x, y) in vectors::G1 {
        let point = BlsG1::hash(&message(name), dst);
        assert_eq!([hex(&point.x.to_be_bytes()), hex(&point.y.to_be_bytes())], [x, y], "{name}");
        assert!(point.is_in_group());
    }
    let dst = b"QUUX-V01-CS02-with-BLS12381G2_XMD:SHA-256_SSWU_RO_";
    for (name, x, y) in vectors::G2 {
        let point = BlsG2::hash(&message(name), dst);
        let found = [point.x, point.y].map(|c| [c.c0, c.c1].map(|c| hex(&c.to_be_bytes())));
        assert_eq!(found, [x, y], "{name}");
        assert!(point.is_in_group());
    }
}

/// Appendix K.1 and K.3 for SHA-256.
#[test]
fn expansion() {
    let mut output = [0; 32];
    expand_message(b"", b"QUUX-V01-CS02-with-expander-SHA256-128", &mut output);
    assert_eq!(hex(&output), "68a985b87eb6b46952128911f2a4412bbc302a9d759667f87f7a21d803f07235");
    expand_message(b"abc", b"QUUX-V01-CS02-with-expander-SHA256-128", &mut output);
    assert_eq!(hex(&output), "d8ccab23b5985ccea865c6c97b6e5b8350e794e603b4b97902f53a8a0d605615");
    let long = format!("QUUX-V01-CS02-with-expander-SHA256-128-long-DST-{}", "1".repeat(208));
    expand_message(b"", long.as_bytes(), &mut output);
    assert_eq!(hex(&output), "e8dc0c8b686b7ef2074086fbdd2f30e3f8bfbd3bdf177f73f04b97ce618a3ed3");
}

#[test]
fn maps_agree() {
    let mut rng = Rng::new(19);
    let mut elements: Vec<Fp2<Fp>> = (0..400).map(|_| rng.fp2()).collect();
    elements[3] = Fp2::ZERO;
    elements[4] = Fp2 { c0: Fp::ZERO, c1: Fp::ONE };
    elements[5] = Fp2::ONE;
    let slow: Vec<_> = elements.iter().map(second::map_slowly).collect();
    assert_eq!(second::map_in_words(&elements), slow);
    // Z^2 u^4 + Z u^2 = 0 without u = 0: u^2 = -1 / Z, a square or not.
    let exception = (-Fp::from_u64(11).inverse().expect("not zero")).sqrt();
    let mut elements: Vec<Fp> = (0..1000).map(|_| rng.fe()).collect();
    elements.extend([Fp::ZERO, Fp::ONE, -Fp::ONE].into_iter().chain(exception));
    for pair in elements.windows(2) {
        let pair: &[Fp; 2] = pair.try_into().expect("two");
        assert_eq!(first::map(pair), pair.map(|u| first::map_slowly(&u)), "{pair:?}");
    }
}

#[test]
fn many_at_once() {
    let messages: Vec<Vec<u8>> = (0..19u8).map(|k| vec![k; usize::from(k)]).collect();
    let messages: Vec<&[u8]> = messages.iter().map(Vec::as_slice).collect();
    for count in [0, 1, 7, 8, 19] {
        let right = hash_all(Backend::Scalar, &messages[..count], b"tag");
        for backend in Backend::ALL.into_iter().filter(|backend| backend.is_available()) {
            let found = hash_all(backend, &messages[..count], b"tag");
            assert_eq!(found, right, "{count} messages, {}", backend.name());
        }
    }
}

#[test]
fn maps_end_on_curve_and_in_group() {
    let mut rng = Rng::new(12);
    for case in 0..200 {
        let u: Fp = if case == 0 { Fp::ZERO } else { rng.fe() };
        assert!(first::map_slowly(&u).to_affine().is_on_curve(), "{u:?}");
        assert!(BlsG1::map(&u).is_in_group());
        let u: Fp2<Fp> = if case == 0 { Fp2::ZERO } else { rng.fp2() };
        assert!(second::map_slowly(&u).to_affine().is_on_curve(), "{u:?}");
        assert!(BlsG2::map(&u).is_in_group());
    }
}
