//! The same tests on every backend of the machine, against the portable one.

use assay_hash::{
    Backend, Chain, MuHash3072, Sha256, TreePath, climb_paths_with, hash160, hash160_many_with,
    merkle_root_with, ripemd160, ripemd160_32_many_with, run_chains_with, sha256,
    sha256_compress_many_with, sha256_many_with, sha256d, sha256d_64_many_with, sha256d_many_with,
};
use proptest::collection::vec;
use proptest::prelude::{any, proptest};

/// Pseudorandom bytes.
fn pattern(length: usize) -> Vec<u8> {
    let mut state = 0x9e37_79b9_7f4a_7c15u64;
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695);
        (state >> 56) as u8
    };
    (0..length).map(|_| next()).collect()
}

/// Hashes `data` in pieces with the given cuts.
fn streamed(backend: Backend, data: &[u8], cuts: &[usize]) -> Sha256 {
    let mut hasher = Sha256::with_backend(backend);
    let mut rest = data;
    for cut in cuts {
        let (piece, after) = rest.split_at((*cut).min(rest.len()));
        hasher.update(piece);
        rest = after;
    }
    hasher.update(rest);
    hasher
}

fn check_stream(data: &[u8], cuts: &[usize]) {
    let expected = streamed(Backend::PORTABLE, data, &[]).finalize();
    assert_eq!(sha256(data), expected, "{} bytes", data.len());
    assert_eq!(sha256d(data), sha256(&expected), "{} bytes", data.len());
    for backend in Backend::available() {
        let hasher = streamed(backend, data, cuts);
        assert_eq!(hasher.clone().finalize(), expected, "{backend:?}, {} bytes", data.len());
        assert_eq!(hasher.finalize_double(), sha256(&expected), "{backend:?}");
    }
}

#[test]
fn names() {
    let available = Backend::available();
    assert_eq!(available[0], Backend::PORTABLE);
    assert_eq!(available.last(), Some(&Backend::detect()));
    assert_eq!(assay_hash::backend(), Backend::detect().name());
    let fastest = Backend::detect();
    for backend in available {
        assert_eq!(Backend::by_name(backend.name()), Some(backend));
        backend.select();
        assert_eq!(Backend::detect(), backend);
    }
    assert_eq!(Backend::detect(), fastest);
    assert_eq!(Backend::by_name("abacus"), None);
    // The tests below run on the available ones.
    for name in ["portable", "avx2", "avx512f", "sha-ni", "avx512", "neon", "sha2"] {
        if Backend::by_name(name).is_none() {
            println!("skipped: this CPU does not run {name}");
        }
    }
}

#[test]
fn every_length() {
    let data = pattern(1025);
    for length in (0..=260).chain([511, 512, 513, 1023, 1024, 1025]) {
        check_stream(&data[..length], &[1, 63, 64, 65]);
    }
}

#[test]
fn every_split() {
    let data = pattern(192);
    for first in 0..=129 {
        check_stream(&data, &[first]);
        check_stream(&data[..130], &[first, 1]);
    }
}

#[test]
fn midstate_continues() {
    // The state after the first block of BIP-340's challenge tag, as in libsecp256k1.
    let state = [
        0x9cecba11, 0x23925381, 0x11679112, 0xd1627e0f, 0x97c87550, 0x003cc765, 0x90f61164,
        0x33e9b66a,
    ];
    let digest = sha256(b"BIP0340/challenge");
    let data = pattern(150);
    let mut hasher = Sha256::from_midstate(state, 64);
    hasher.update(&data);
    assert_eq!(hasher.finalize(), sha256(&[&digest[..], &digest, &data].concat()));
}

fn check_64_many(input: &[u8]) {
    let expected: Vec<u8> = input.chunks(64).flat_map(sha256d).collect();
    let mut output = vec![0; input.len() / 2];
    for backend in Backend::available() {
        output.fill(0);
        sha256d_64_many_with(backend, input, &mut output);
        assert_eq!(output, expected, "{backend:?}, {} messages", input.len() / 64);
    }
}

#[test]
fn many_of_64_bytes() {
    let input = pattern(64 * 130);
    for count in (0..=50).chain([63, 64, 65, 127, 128, 129]) {
        // An odd offset, so that nothing is aligned.
        check_64_many(&input[1..=64 * count]);
    }
}

fn check_many(messages: &[&[u8]]) {
    let expected: Vec<[u8; 32]> = messages.iter().map(|message| sha256d(message)).collect();
    let mut digests = vec![[0; 32]; messages.len()];
    for backend in Backend::available() {
        digests.fill([0; 32]);
        sha256d_many_with(backend, messages, &mut digests);
        assert_eq!(digests, expected, "{backend:?}");
    }

    let expected: Vec<[u8; 32]> = messages.iter().map(|message| sha256(message)).collect();
    for backend in Backend::available() {
        digests.fill([0; 32]);
        sha256_many_with(backend, messages, &mut digests);
        assert_eq!(digests, expected, "{backend:?}");
    }

    let expected: Vec<[u8; 20]> = messages.iter().map(|message| hash160(message)).collect();
    let mut digests = vec![[0; 20]; messages.len()];
    for backend in Backend::available() {
        digests.fill([0; 20]);
        hash160_many_with(backend, messages, &mut digests);
        assert_eq!(digests, expected, "{backend:?}");
    }
}

#[test]
fn ripemd160_many() {
    let data = pattern(32 * 70);
    let messages = data.as_chunks::<32>().0;
    for count in 0..=messages.len() {
        let messages = &messages[..count];
        let expected: Vec<[u8; 20]> = messages.iter().map(|message| ripemd160(message)).collect();
        let mut digests = vec![[0; 20]; count];
        for backend in Backend::available() {
            digests.fill([0; 20]);
            ripemd160_32_many_with(backend, messages, &mut digests);
            assert_eq!(digests, expected, "{backend:?}, {count} messages");
        }
    }
}

#[test]
fn many_of_mixed_lengths() {
    let data = pattern(20_000);
    for count in (0..=40).chain([100, 257]) {
        // Around every padding boundary, and one message far longer than all others.
        let mut messages: Vec<&[u8]> = (0..count).map(|i| &data[i..i + i * 7 % 400]).collect();
        check_many(&messages);
        if let Some(last) = messages.last_mut() {
            *last = &data;
        }
        check_many(&messages);
    }
    let boundaries: Vec<&[u8]> = (0..140).map(|length| &data[..length]).collect();
    check_many(&boundaries);
    let long: Vec<&[u8]> = (0..20).map(|i| &data[i * 10..5000 + i * 300]).collect();
    check_many(&long);
}

#[test]
fn merkle() {
    let data = pattern(32 * 300);
    for count in (0..=70).chain([299, 300]) {
        let leaves = data.as_chunks::<32>().0[..count].to_vec();
        let expected = merkle_root_with(Backend::PORTABLE, leaves.clone());
        for backend in Backend::available() {
            assert_eq!(merkle_root_with(backend, leaves.clone()), expected, "{backend:?}");
        }
    }
}

/// A chain of products: every number depends on all before it.
#[test]
fn muhash() {
    let run = |backend| {
        let mut set = MuHash3072::with_backend(backend);
        let mut states = Vec::new();
        for i in 0..200u32 {
            set.insert(&i.to_le_bytes());
            set.remove(&i.to_be_bytes());
            states.push(set.to_bytes());
        }
        (states, set.finalize())
    };
    let expected = run(Backend::PORTABLE);
    for backend in Backend::available() {
        assert!(run(backend) == expected, "{backend:?}");
    }
}

#[test]
fn the_same_data_for_many() {
    let data = pattern(3000);
    for backend in Backend::available() {
        for count in [0, 1, 2, 3, 5, 6, 8, 9, 15, 16, 17, 33] {
            for (used, length) in
                [(0, 3000), (0, 64), (7, 56), (7, 57), (63, 1), (63, 1090), (5, 0)]
            {
                for out_of_step in [0, 1] {
                    let mut hashers: Vec<Sha256> = (0..count)
                        .map(|i| {
                            let mut hasher = Sha256::with_backend(backend);
                            let more = if i == 1 { out_of_step } else { 0 };
                            hasher.update(&data[i..i + 64 * (i % 3) + used + more]);
                            hasher
                        })
                        .collect();
                    let mut one_by_one = hashers.clone();
                    for hasher in &mut one_by_one {
                        hasher.update(&data[..length]);
                    }
                    Sha256::update_all(&mut hashers, &data[..length]);
                    for (many, one) in hashers.into_iter().zip(one_by_one) {
                        assert_eq!(many.finalize(), one.finalize(), "{backend:?} {count} {length}");
                    }
                }
            }
        }
    }
}

/// Whole groups, a partial group, and a group with a message too long for its lane.
#[test]
fn muhash_many() {
    let data = pattern(30_000);
    let mut elements: Vec<&[u8]> = (0..101).map(|i| &data[i * 3..i * 7 % 180 + i * 3]).collect();
    elements[50] = &data;
    for count in [0, 1, 7, 8, 9, 15, 16, 17, 24, 31, 32, 33, 47, 48, 100, 101] {
        let mut expected = MuHash3072::with_backend(Backend::PORTABLE);
        for element in &elements[..count] {
            expected.insert(element);
        }
        expected.remove(b"spent");
        let expected = expected.finalize();
        for backend in Backend::available() {
            let mut set = MuHash3072::with_backend(backend);
            set.remove(b"spent");
            set.insert_many(&elements[..count]);
            assert_eq!(set.finalize(), expected, "{backend:?}, {count} elements");
        }
    }
}

/// A message of whole blocks, absorbed block by block into its own state, is that message's hash.
#[test]
fn compressions_from_given_states() {
    let data = pattern(64 * 4 * 40);
    for count in (0..=35).chain([40]) {
        let messages: Vec<&[[u8; 64]]> = data.as_chunks::<64>().0.chunks(4).take(count).collect();
        let mut padding = [0; 64];
        padding[0] = 0x80;
        padding[62..].copy_from_slice(&(4 * 64 * 8u16).to_be_bytes());
        for backend in Backend::available() {
            let mut states = vec![Sha256::INITIAL_STATE; count];
            for i in 0..4 {
                let blocks: Vec<[u8; 64]> = messages.iter().map(|message| message[i]).collect();
                sha256_compress_many_with(backend, &mut states, &blocks);
            }
            sha256_compress_many_with(backend, &mut states, &vec![padding; count]);
            for (state, message) in states.iter().zip(&messages) {
                let digest: Vec<u8> = state.iter().flat_map(|word| word.to_be_bytes()).collect();
                assert_eq!(digest, sha256(message.as_flattened()), "{backend:?}, {count} states");
            }
        }
    }
}

/// Chains as whole messages through the streaming hash, against every backend.
fn check_chains<const N: usize>(count: usize, end: u8, seed: usize) {
    let data = pattern(5000);
    let first_blocks: Vec<[u8; 64]> =
        (0..3).map(|i| data[i * 50..i * 50 + 64].try_into().expect("64 bytes")).collect();
    let mut states = [Sha256::INITIAL_STATE; 3];
    sha256_compress_many_with(Backend::PORTABLE, &mut states, &first_blocks);
    let chains: Vec<Chain<'_, N>> = (0..count)
        .map(|i| Chain {
            state: &states[i % 3],
            prefix: data[i..i + 20].try_into().expect("20 bytes"),
            start: data[i + seed] % (end + 2),
            value: data[2 * i..2 * i + N].try_into().expect("N bytes"),
        })
        .collect();
    let mut expected = chains.clone();
    for (i, chain) in expected.iter_mut().enumerate() {
        for step in chain.start..end {
            let message =
                [&first_blocks[i % 3][..], &chain.prefix, &[0, step], &chain.value].concat();
            chain.value.copy_from_slice(&sha256(&message)[..N]);
        }
    }
    for backend in Backend::available() {
        let mut chains = chains.clone();
        run_chains_with(backend, &mut chains, end);
        assert_eq!(chains, expected, "{backend:?}, {count} chains of {N} bytes up to {end}");
    }
}

#[test]
fn chains() {
    for count in (0..=35).chain([560, 1001]) {
        for end in [0, 1, 14, 15, 253] {
            if end == 253 && count > 40 {
                continue;
            }
            check_chains::<16>(count, end, count);
            check_chains::<24>(count, end, 2 * count + 1);
            check_chains::<32>(count, end, 3 * count + 2);
        }
    }
}

/// Paths as whole messages through the streaming hash, against every backend.
#[test]
fn paths() {
    let data = pattern(9000);
    let first_block: [u8; 64] = data[..64].try_into().expect("64 bytes");
    let mut state = [Sha256::INITIAL_STATE];
    sha256_compress_many_with(Backend::PORTABLE, &mut state, &[first_block]);
    for count in (0..=35).chain([100]) {
        for height in [0u32, 1, 2, 9, 12, 31] {
            let paths: Vec<TreePath<'_>> = (0..count)
                .map(|i| TreePath {
                    state: &state[0],
                    prefix: data[3 * i..3 * i + 14].try_into().expect("14 bytes"),
                    index: u32::from_le_bytes(data[5 * i..5 * i + 4].try_into().expect("four")),
                    node: data[7 * i..7 * i + 16].try_into().expect("16 bytes"),
                    siblings: &data[11 * i..11 * i + 16 * 31],
                })
                .collect();
            let mut expected = paths.clone();
            for path in &mut expected {
                for row in 1..=height {
                    let sibling = &path.siblings[16 * (row as usize - 1)..][..16];
                    let mut children = [&path.node[..], sibling].concat();
                    if path.index & 1 == 1 {
                        children = [sibling, &path.node[..]].concat();
                    }
                    path.index >>= 1;
                    let numbers = [row.to_be_bytes(), path.index.to_be_bytes()].concat();
                    let message = [&first_block[..], &path.prefix, &numbers, &children].concat();
                    path.node.copy_from_slice(&sha256(&message)[..16]);
                }
            }
            for backend in Backend::available() {
                let mut paths = paths.clone();
                climb_paths_with(backend, &mut paths, height);
                assert_eq!(paths, expected, "{backend:?}, {count} paths of height {height}");
            }
        }
    }
}

proptest! {
    #[test]
    fn streams(data in vec(any::<u8>(), 0..600), cuts in vec(0usize..140, 0..8)) {
        check_stream(&data, &cuts);
    }

    #[test]
    fn lists(lengths in vec(0usize..700, 0..60), offset in 0usize..64) {
        let data = pattern(800);
        let messages: Vec<&[u8]> = lengths.iter().map(|n| &data[offset..offset + n]).collect();
        check_many(&messages);
    }
}
