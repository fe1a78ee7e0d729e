//! Hash kernels.

use assay_hash::{
    Backend, MuHash3072, Sha256, SipHash13, SipHash24, hash_outpoint, merkle_root_with, sha256,
    sha256d_64_many_with, sha256d_many_with,
};

use crate::input::Input;

/// Every hash kernel of this machine against the portable one, whole and in pieces.
pub fn hashes(data: &[u8]) {
    let mut input = Input(data);
    let cuts: [u8; 4] = input.array();
    let (k0, k1) = (u64::from_le_bytes(input.array()), u64::from_le_bytes(input.array()));
    let message = input.rest();

    let whole = |backend| {
        let mut hasher = Sha256::with_backend(backend);
        hasher.update(message);
        (hasher.clone().finalize(), hasher.finalize_double())
    };
    let expected = whole(Backend::PORTABLE);
    assert_eq!(sha256(&expected.0), expected.1);
    let leaves: Vec<[u8; 32]> =
        message.chunks_exact(32).map(|leaf| leaf.try_into().expect("32")).collect();
    let pairs = &message[..message.len() / 64 * 64];
    let pieces: Vec<&[u8]> = message.chunks(usize::from(cuts[0]) + 1).collect();
    let many = |backend| {
        let mut digests = vec![0; pairs.len() / 2];
        sha256d_64_many_with(backend, pairs, &mut digests);
        let mut each = vec![[0; 32]; pieces.len()];
        sha256d_many_with(backend, &pieces, &mut each);
        (digests, each)
    };
    let expected_many = many(Backend::PORTABLE);
    let expected_root = merkle_root_with(Backend::PORTABLE, leaves.clone());
    for backend in Backend::available() {
        assert_eq!(whole(backend), expected, "{}", backend.name());
        assert_eq!(many(backend), expected_many, "{}", backend.name());
        assert_eq!(merkle_root_with(backend, leaves.clone()), expected_root, "{}", backend.name());
        let mut hasher = Sha256::with_backend(backend);
        let mut rest = Input(message);
        for cut in cuts {
            hasher.update(rest.bytes(usize::from(cut)));
        }
        hasher.update(rest.rest());
        assert_eq!(hasher.finalize(), expected.0, "{} in pieces", backend.name());
    }
    if let Some((txid, rest)) = message.split_first_chunk::<32>()
        && let Some((vout, _)) = rest.split_first_chunk()
    {
        let outpoint = &message[..36];
        let vout = u32::from_le_bytes(*vout);
        let one = SipHash13::new(k0, k1);
        assert_eq!(one.hash_outpoint(txid, vout), one.hash(outpoint));
        assert_eq!(hash_outpoint(k0, k1, txid, vout), one.hash(outpoint));
        let two = SipHash24::new(k0, k1);
        assert_eq!(two.hash_outpoint(txid, vout), two.hash(outpoint));
    }
}

/// Set hashes: the same on every kernel, in any order, and removing undoes inserting.
pub fn muhash(data: &[u8]) {
    let mut input = Input(data);
    let mut steps = Vec::new();
    while !input.0.is_empty() && steps.len() < 6 {
        let insert = input.byte() % 2 == 0;
        let length = usize::from(input.byte());
        steps.push((insert, input.bytes(length)));
    }
    let raw: Box<[u8; MuHash3072::SIZE]> = Box::new(input.array());
    let run = |backend, reversed: bool| {
        let mut set = MuHash3072::with_backend(backend);
        let mut apply = |&(insert, item): &(bool, &[u8])| {
            if insert { set.insert(item) } else { set.remove(item) }
        };
        if reversed {
            steps.iter().rev().for_each(&mut apply)
        } else {
            steps.iter().for_each(apply)
        }
        set
    };
    let expected = run(Backend::PORTABLE, false);
    let from_bytes = |backend| {
        let mut set = MuHash3072::from_bytes_with(backend, &raw);
        set.insert(b"item");
        set.finalize()
    };
    let expected_raw = from_bytes(Backend::PORTABLE);
    for backend in Backend::available() {
        assert_eq!(
            run(backend, true).finalize(),
            expected.clone().finalize(),
            "{}",
            backend.name()
        );
        assert_eq!(from_bytes(backend), expected_raw, "{}", backend.name());
    }
    // Removing every item leaves the empty set.
    let mut back = expected;
    for &(insert, item) in &steps {
        if insert { back.remove(item) } else { back.insert(item) }
    }
    assert_eq!(back.finalize(), MuHash3072::new().finalize());
}
