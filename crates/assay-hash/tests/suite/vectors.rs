//! Published vectors of the single-message functions.

use assay_hash::{
    Sha512, TaggedHasher, hash160, keccak_256, ripemd160, sha1, sha3_256, sha256, sha256d, sha512,
    tagged_hash,
};

use crate::hex;

const ALPHABET: &str = "abcdefghijklmnopqrstuvwxyz";
const ALPHANUMERIC: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
const NIST_448: &str = "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq";
const NIST_896: &str = "abcdefghbcdefghicdefghijdefghijkefghijklfghijklmghijklmn\
                        hijklmnoijklmnopjklmnopqklmnopqrlmnopqrsmnopqrstnopqrstu";

#[track_caller]
fn check<const N: usize>(hash: fn(&[u8]) -> [u8; N], message: &[u8], expected: &str) {
    assert_eq!(hex::encode(&hash(message)), expected);
}

/// FIPS 180 example messages and the million letters of NIST's example document.
#[test]
fn sha256_nist() {
    let million = "a".repeat(1_000_000);
    let table = [
        ("", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"),
        ("abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"),
        (NIST_448, "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"),
        (NIST_896, "cf5b16a778af8380036ce59e7b0492370b249b11e8f07a51afac45037afee9d1"),
        (&million, "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0"),
    ];
    for (message, expected) in table {
        check(sha256, message.as_bytes(), expected);
    }
}

/// NIST's example values for SHA-3, and lengths around the edge of a block (from Python's hashlib).
#[test]
fn sha512_nist() {
    let table = [
        (
            "",
            "cf83e1357eefb8bdf1542850d66d8007d620e4050b5715dc83f4a921d36ce9ce\
             47d0d13c5d85f2b0ff8318d2877eec2f63b931bd47417a81a538327af927da3e",
        ),
        (
            "abc",
            "ddaf35a193617abacc417349ae20413112e6fa4e89a97ea20a9eeee64b55d39a\
             2192992a274fc1a836ba3c23a3feebbd454d4423643ce80e2a9ac94fa54ca49f",
        ),
        (
            NIST_896,
            "8e959b75dae313da8cf4f72814fc143f8f7779c6eb9f7fa17299aeadb6889018\
             501d289e4900f7e4331b99dec4b5433ac7d329eeb6dd26545e96e55b874be909",
        ),
    ];
    for (message, expected) in table {
        check(sha512, message.as_bytes(), expected);
    }
}

/// Every length around the padding, in one piece and in two; the hash of all digests is from Python.
#[test]
fn sha512_of_every_length() {
    let counting: Vec<u8> = (0..400u32).map(|number| (number % 251) as u8).collect();
    let mut all = Sha512::new();
    for length in 0..400 {
        let digest = sha512(&counting[..length]);
        for cut in [1, 127, 128, 129] {
            let (first, second) = counting[..length].split_at(cut.min(length));
            let mut hasher = Sha512::default();
            hasher.update(first);
            hasher.update(second);
            assert_eq!(hasher.finalize(), digest, "{length} bytes, cut at {cut}");
        }
        all.update(&digest);
    }
    let expected = "c397a6302e684830e16ea7f73c86f97cba1fa5dfc4b2da8338bfe788cfa1d195\
                    da3cee6888ea9eb7b0ed414a9a1846c4ed95ae189bdc9ca4b517df11cb507384";
    assert_eq!(hex::encode(&all.finalize()), expected);
}

#[test]
fn sha3_nist() {
    let table = [
        ("", "a7ffc6f8bf1ed76651c14756a061d662f580ff4de43b49fa82d80a4b80f8434a"),
        ("abc", "3a985da74fe225b2045c172d6bd390bd855f086e3e9d525b46bfe24511431532"),
        (NIST_448, "41c0dba2a9d6240849100376a8235e2c82e1b9998a999e21db32dd97496d3376"),
        (NIST_896, "916f6061fe879741ca6469b43971dfdb28b1a32dc36cb3254e812be27aad1d18"),
    ];
    for (message, expected) in table {
        check(sha3_256, message.as_bytes(), expected);
    }
    let counting: Vec<u8> = (0..300u32).map(|number| (number % 251) as u8).collect();
    for (length, expected) in [
        (135, "fded8fd9d6551c601eeb3b7c6bc5e5cfd8aad1d015b7e9aaa9c9b9475231d5e2"),
        (136, "cf3ccff92480a29160c2d38317c430e14749bfee1788106957dfe73f8c4930e5"),
        (137, "ce9d7dc90913ee5d92745019479a5352c6d6279bef18ed07dc0a83ee8084daca"),
        (300, "4be64d77dff18f218eeb40368f86ed78e6d4f2381c71675ab5ada46aa4fee621"),
    ] {
        check(sha3_256, &counting[..length], expected);
    }
}

/// The hash of the empty string (Yellow Paper, appendix B, as the code hash of accounts without code), and of a function
/// signature (Solidity's ABI specification: selector `cdcd77c0`).
#[test]
fn keccak_of_ethereum() {
    check(keccak_256, b"", "c5d2460186f7233c927e7db2dcc703c0e500b653ca82273b7bfad8045d85a470");
    assert_eq!(keccak_256(b"baz(uint32,bool)")[..4], [0xcd, 0xcd, 0x77, 0xc0]);
}

#[test]
fn sha1_nist() {
    let million = "a".repeat(1_000_000);
    let table = [
        ("", "da39a3ee5e6b4b0d3255bfef95601890afd80709"),
        ("abc", "a9993e364706816aba3e25717850c26c9cd0d89d"),
        (NIST_448, "84983e441c3bd26ebaae4aa1f95129e5e54670f1"),
        (NIST_896, "a49b2446a02c645bf419f995b67091253a04a259"),
        (&million, "34aa973cd4c4daa4f61eeb2bdbad27316534016f"),
    ];
    for (message, expected) in table {
        check(sha1, message.as_bytes(), expected);
    }
}

/// The table of the RIPEMD-160 paper, all nine entries.
#[test]
fn ripemd160_authors() {
    let million = "a".repeat(1_000_000);
    let digits = "1234567890".repeat(8);
    let table = [
        ("", "9c1185a5c5e9fc54612808977ee8f548b2258d31"),
        ("a", "0bdc9d2d256b3ee9daae347be6f4dc835a467ffe"),
        ("abc", "8eb208f7e05d987a9b044a8e98c6b087f15a0bfc"),
        ("message digest", "5d0689ef49d2fae572b881b123a85ffa21595f36"),
        (ALPHABET, "f71c27109c692c1b56bbdceb5b9d2865b3708dbc"),
        (NIST_448, "12a053384a9c0c88e405a06c27dcf49ada62eb2b"),
        (ALPHANUMERIC, "b0e20b6e3116640286ed3a87a5713079b21f5189"),
        (&digits, "9b752e45573d4b39f4dbd3323cab82bf63326bfb"),
        (&million, "52783243c1697bdbe16d37f97f68f08325dc1528"),
    ];
    for (message, expected) in table {
        check(ripemd160, message.as_bytes(), expected);
    }
}

/// The key of the first coin, whose address is 1A1zP1eP5QGefi2DMPTfTL5SLmv7DivfNa.
#[test]
fn hash160_of_the_genesis_key() {
    let key = hex::decode(
        "04678afdb0fe5548271967f1a67130b7105cd6a828e03909a67962e0ea1f61deb6\
         49f6bc3f4cef38c4f35504e51ec112de5c384df7ba0b8d578a4c702b6bf11d5f",
    );
    check(hash160, &key, "62e907b15cbf27d5425399ebf6f0fb50ebb88f18");
}

#[test]
fn sha256d_of_the_genesis_header() {
    let header = hex::decode(
        "0100000000000000000000000000000000000000000000000000000000000000000000003ba3edfd\
         7a7b12b27ac72c3e67768f617fc81bc3888a51323a9fb8aa4b1e5e4a29ab5f49ffff001d1dac2b7c",
    );
    let hash = "000000000019d6689c085ae165831e934ff763ae46a2a6c172b3f1b60a8ce26f";
    assert_eq!(sha256d(&header), hex::decode_reversed(hash));
}

/// Compile-time constants equal the definition computed at run time.
#[test]
fn tags() {
    let table = [
        ("TapLeaf", TaggedHasher::TAP_LEAF),
        ("TapBranch", TaggedHasher::TAP_BRANCH),
        ("TapTweak", TaggedHasher::TAP_TWEAK),
        ("TapSighash", TaggedHasher::TAP_SIGHASH),
        ("BIP0340/challenge", TaggedHasher::BIP340_CHALLENGE),
    ];
    for (tag, constant) in table {
        assert_eq!(constant, TaggedHasher::new(tag), "{tag}");
        check_tag(tag, &[b"", b"some ", b"data"]);
    }
    for length in [0, 1, 55, 56, 64, 200] {
        check_tag(&"t".repeat(length), &[b"data"]);
    }
}

/// BIP-340: the tag's hash twice, then the data.
fn check_tag(tag: &str, data: &[&[u8]]) {
    let digest = sha256(tag.as_bytes());
    let whole = [&digest[..], &digest[..], &data.concat()].concat();
    assert_eq!(tagged_hash(tag, data), sha256(&whole), "{tag}");
    assert_eq!(TaggedHasher::new(tag).hash(data), sha256(&whole), "{tag}");
}

/// The root of the script tree of BIP-341's second wallet vector: one leaf, version 0xc0.
#[test]
fn tap_leaf_of_bip341() {
    let script = "20d85a959b0290bf19bb89ed43c916be835475d013da4b362117393e25a48229b8ac";
    let leaf = [vec![0xc0, 34], hex::decode(script)].concat();
    assert_eq!(
        hex::encode(&TaggedHasher::TAP_LEAF.hash(&[&leaf])),
        "5b75adecf53548f3ec6ad7d78383bf84cc57b55a3127c72b9a2481752dd88b21"
    );
}
