//! Published vectors and round trips with signatures made by libsecp256k1.

use secp256k1::{Keypair, Scalar, SecretKey};

use super::*;

fn hex<const N: usize>(text: &str) -> [u8; N] {
    assert_eq!(text.len(), 2 * N);
    std::array::from_fn(|i| u8::from_str_radix(&text[2 * i..2 * i + 2], 16).expect("hex"))
}

/// The vectors of the Schnorr module in Bitcoin Cash nodes (their libsecp256k1's `modules/schnorr/tests_impl.h`): key, message,
/// signature, validity.
const BCH_SCHNORR: &[(&str, &str, &str, bool)] = &[
    (
        "0279be667ef9dcbbac55a06295ce870b07029bfcdb2dce28d959f2815b16f81798",
        "0000000000000000000000000000000000000000000000000000000000000000",
        "787a848e71043d280c50470e8e1532b2dd5d20ee912a45dbdd2bd1dfbf187ef67031a98831859dc34dffeedda86831842ccd0079e1f92af177f7f22cc1dced05",
        true,
    ),
    (
        "02dff1d77f2a671c5f36183726db2341be58feae1da2deced843240f7b502ba659",
        "243f6a8885a308d313198a2e03707344a4093822299f31d0082efa98ec4e6c89",
        "2a298dacae57395a15d0795ddbfd1dcb564da82b0f269bc70a74f8220429ba1d1e51a22ccec35599b8f266912281f8365ffc2d035a230434a1a64dc59f7013fd",
        true,
    ),
    (
        "03fac2114c2fbb091527eb7c64ecb11f8021cb45e8e7809d3c0938e4b8c0e5f84b",
        "5e2d58d8b3bcdf1abadec7829054f90dda9805aab56c77333024b9d0a508b75c",
        "00da9b08172a9b6f0466a2defd817f2d7ab437e0d253cb5395a963866b3574be00880371d01766935b92d2ab4cd5c8a2a5837ec57fed7660773a05f0de142380",
        true,
    ),
    (
        "03defdea4cdb677750a420fee807eacf21eb9898ae79b9768766e4faa04a2d4a34",
        "4df3c3f68fcc83b27e9d42c90431a72499f17875c81a599b566c9889b9696703",
        "00000000000000000000003b78ce563f89a0ed9414f5aa28ad0d96d6795f9c6302a8dc32e64e86a333f20ef56eac9ba30b7246d6d25e22adb8c6be1aeb08d49d",
        true,
    ),
    (
        "031b84c5567b126440995d3ed5aaba0565d71e1834604819ff9c17f5e9d5dd078f",
        "0000000000000000000000000000000000000000000000000000000000000000",
        "52818579aca59767e3291d91b76b637bef062083284992f2d95f564ca6cb4e3530b1da849c8e8304adc0cfe870660334b3cfc18e825ef1db34cfae3dfc5d8187",
        true,
    ),
    // R.y is not a square.
    (
        "02dff1d77f2a671c5f36183726db2341be58feae1da2deced843240f7b502ba659",
        "243f6a8885a308d313198a2e03707344a4093822299f31d0082efa98ec4e6c89",
        "2a298dacae57395a15d0795ddbfd1dcb564da82b0f269bc70a74f8220429ba1dfa16aee06609280a19b67a24e1977e4697712b5fd2943914ecd5f730901b4ab7",
        false,
    ),
    // Negated message hash.
    (
        "03fac2114c2fbb091527eb7c64ecb11f8021cb45e8e7809d3c0938e4b8c0e5f84b",
        "5e2d58d8b3bcdf1abadec7829054f90dda9805aab56c77333024b9d0a508b75c",
        "00da9b08172a9b6f0466a2defd817f2d7ab437e0d253cb5395a963866b3574bed092f9d860f1776a1f7412ad8a1eb50daccc222bc8c0e26b2056df2f273efdec",
        false,
    ),
    // Negated s.
    (
        "0279be667ef9dcbbac55a06295ce870b07029bfcdb2dce28d959f2815b16f81798",
        "0000000000000000000000000000000000000000000000000000000000000000",
        "787a848e71043d280c50470e8e1532b2dd5d20ee912a45dbdd2bd1dfbf187ef68fce5677ce7a623cb20011225797ce7a8de1dc6ccd4f754a47da6c600e59543c",
        false,
    ),
    // Negated key.
    (
        "03dff1d77f2a671c5f36183726db2341be58feae1da2deced843240f7b502ba659",
        "243f6a8885a308d313198a2e03707344a4093822299f31d0082efa98ec4e6c89",
        "2a298dacae57395a15d0795ddbfd1dcb564da82b0f269bc70a74f8220429ba1d1e51a22ccec35599b8f266912281f8365ffc2d035a230434a1a64dc59f7013fd",
        false,
    ),
    // r is not the x coordinate of a point.
    (
        "02dff1d77f2a671c5f36183726db2341be58feae1da2deced843240f7b502ba659",
        "243f6a8885a308d313198a2e03707344a4093822299f31d0082efa98ec4e6c89",
        "4a298dacae57395a15d0795ddbfd1dcb564da82b0f269bc70a74f8220429ba1d1e51a22ccec35599b8f266912281f8365ffc2d035a230434a1a64dc59f7013fd",
        false,
    ),
    // r is the field prime.
    (
        "02dff1d77f2a671c5f36183726db2341be58feae1da2deced843240f7b502ba659",
        "243f6a8885a308d313198a2e03707344a4093822299f31d0082efa98ec4e6c89",
        "fffffffffffffffffffffffffffffffffffffffffffffffffffffffefffffc2f1e51a22ccec35599b8f266912281f8365ffc2d035a230434a1a64dc59f7013fd",
        false,
    ),
    // s is the group order.
    (
        "02dff1d77f2a671c5f36183726db2341be58feae1da2deced843240f7b502ba659",
        "243f6a8885a308d313198a2e03707344a4093822299f31d0082efa98ec4e6c89",
        "2a298dacae57395a15d0795ddbfd1dcb564da82b0f269bc70a74f8220429ba1dfffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141",
        false,
    ),
];

#[test]
fn bch_schnorr_vectors() {
    for (index, (key, msg, sig, valid)) in BCH_SCHNORR.iter().enumerate() {
        let key = hex::<33>(key);
        assert_eq!(verify_schnorr_bch(&key, &hex(sig), &hex(msg)), *valid, "vector {index}");
    }
}

#[test]
fn bch_schnorr_challenge_covers_the_compressed_key() {
    let (key, msg, sig, _) = BCH_SCHNORR[2];
    let key = PublicKey::from_slice(&hex::<33>(key)).expect("a key");
    let mut uncompressed = key.serialize_uncompressed();
    assert!(verify_schnorr_bch(&uncompressed, &hex(sig), &hex(msg)));
    uncompressed[0] = 6 | uncompressed[64] & 1;
    assert!(verify_schnorr_bch(&uncompressed, &hex(sig), &hex(msg)), "hybrid");
    uncompressed[0] ^= 1;
    assert!(!verify_schnorr_bch(&uncompressed, &hex(sig), &hex(msg)), "hybrid, wrong parity");
}

/// Signs per the specification, with public operations only: `s = k + e*x`.
fn sign_bch(secret: &SecretKey, nonce: &SecretKey, msg: &[u8; 32]) -> [u8; 64] {
    let key = PublicKey::from_secret_key(secret).serialize();
    let point = PublicKey::from_secret_key(nonce).serialize_uncompressed();
    let mut y = [0; 32];
    y.copy_from_slice(&point[33..]);
    let nonce = if jacobi::is_square(&y) { *nonce } else { nonce.negate() };
    let mut hasher = assay_hash::Sha256::new();
    hasher.update(&point[1..33]);
    hasher.update(&key);
    hasher.update(msg);
    let e = Scalar::from_be_bytes(hasher.finalize()).expect("below the order");
    let s = secret
        .mul_tweak(&e)
        .and_then(|product| product.add_tweak(&Scalar::from(nonce)))
        .expect("not zero");
    let mut sig = [0; 64];
    sig[..32].copy_from_slice(&point[1..33]);
    sig[32..].copy_from_slice(&s.to_secret_bytes());
    sig
}

fn secret(seed: u8) -> SecretKey {
    SecretKey::from_secret_bytes(assay_hash::sha256(&[seed])).expect("below the order")
}

#[test]
fn bch_schnorr_round_trip_and_every_flipped_byte() {
    for seed in 0..20 {
        let (key, msg) = (secret(seed), assay_hash::sha256(&[seed, 1]));
        let public = PublicKey::from_secret_key(&key).serialize();
        let mut sig = sign_bch(&key, &secret(seed + 100), &msg);
        assert!(verify_schnorr_bch(&public, &sig, &msg), "seed {seed}");
        for position in (usize::from(seed) % 7..64).step_by(7) {
            sig[position] ^= 0x10;
            assert!(!verify_schnorr_bch(&public, &sig, &msg), "seed {seed}, byte {position}");
            sig[position] ^= 0x10;
        }
    }
}

#[test]
fn ecdsa_accepts_lax_encodings_high_s_and_hybrid_keys() {
    let (key, msg) = (secret(1), [7; 32]);
    let public = PublicKey::from_secret_key(&key);
    let sig = ecdsa::sign(Message::from_digest(msg), &key);
    let der = sig.serialize_der().to_vec();
    assert!(verify_ecdsa(&public.serialize(), &der, &msg));
    let mut hybrid = public.serialize_uncompressed();
    assert!(verify_ecdsa(&hybrid, &der, &msg));
    hybrid[0] = 6 | hybrid[64] & 1;
    assert!(verify_ecdsa(&hybrid, &der, &msg));
    hybrid[0] ^= 1;
    assert!(!verify_ecdsa(&hybrid, &der, &msg));

    // n - s instead of s, with a superfluous leading zero: two violations of strictness.
    let compact = sig.serialize_compact();
    let mut s = [0; 32];
    s.copy_from_slice(&compact[32..]);
    let high = SecretKey::from_secret_bytes(s).expect("not zero").negate().to_secret_bytes();
    let mut lax = vec![0x30, 2 + 32 + 2 + 34, 2, 32];
    lax.extend(&compact[..32]);
    lax.extend([2, 34, 0, 0]);
    lax.extend(high);
    assert!(verify_ecdsa(&public.serialize(), &lax, &msg));

    for bad in [&[][..], &[0x30], &der[..der.len() - 1]] {
        assert!(!verify_ecdsa(&public.serialize(), bad, &msg));
    }
    assert!(!verify_ecdsa(&[], &der, &msg));
    assert!(!verify_ecdsa(&public.serialize()[..32], &der, &msg));
    assert!(!verify_ecdsa(&public.serialize(), &der, &[8; 32]));
}

/// Vectors 0 and 1 of BIP-0340, and 5 (key not on the curve), 12 (r is the prime), 13 (s is the order).
#[test]
fn bip340_vectors() {
    let key = "dff1d77f2a671c5f36183726db2341be58feae1da2deced843240f7b502ba659";
    let msg = "243f6a8885a308d313198a2e03707344a4093822299f31d0082efa98ec4e6c89";
    let r = "6896bd60eeae296db48a229ff71dfe071bde413e6d43f917dc8dcf8c78de3341";
    let s = "8906d11ac976abccb20b091292bff4ea897efcb639ea871cfa95f6de339e4b0a";
    let order = "fffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141";
    let prime = "fffffffffffffffffffffffffffffffffffffffffffffffffffffffefffffc2f";
    for (key, msg, sig, valid) in [
        (
            "f9308a019258c31049344f85f89d5229b531c845836f99b08601f113bce036f9",
            "0000000000000000000000000000000000000000000000000000000000000000",
            "e907831f80848d1069a5371b402410364bdf1c5f8307b0084c55f1ce2dca821525f66a4a85ea8b71e482a74f382d2ce5ebeee8fdb2172f477df4900d310536c0",
            true,
        ),
        (key, msg, &*format!("{r}{s}"), true),
        (
            "eefdea4cdb677750a420fee807eacf21eb9898ae79b9768766e4faa04a2d4a34",
            msg,
            &format!("{r}{s}"),
            false,
        ),
        (key, msg, &format!("{prime}{s}"), false),
        (key, msg, &format!("{r}{order}"), false),
    ] {
        assert_eq!(verify_schnorr(&hex(key), &hex(sig), &hex::<32>(msg)), valid, "{sig}");
    }
}

#[test]
fn taproot_tweak_checks_coordinate_and_parity() {
    for seed in 0..8 {
        let (internal, _) = Keypair::from_secret_key(&secret(seed)).x_only_public_key();
        let tweak = assay_hash::sha256(&[seed, 9]);
        let scalar = Scalar::from_be_bytes(tweak).expect("below the order");
        let (output, parity) = internal.add_tweak(&scalar).expect("not infinity");
        let odd = parity == Parity::Odd;
        let (internal, output) = (internal.to_byte_array(), output.to_byte_array());
        assert!(taproot_tweak_ok(&internal, &tweak, &output, odd));
        assert!(!taproot_tweak_ok(&internal, &tweak, &output, !odd));
        assert!(!taproot_tweak_ok(&internal, &tweak, &internal, odd));
        assert!(!taproot_tweak_ok(&internal, &[0xff; 32], &output, odd), "tweak above the order");
        assert!(!taproot_tweak_ok(&[0xff; 32], &tweak, &output, odd), "not a coordinate");
    }
}
