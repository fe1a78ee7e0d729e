//! SipHash against published vectors and the standard library.

use std::env;
use std::fs;
use std::hash::{DefaultHasher, Hasher};
use std::path::PathBuf;

use assay_hash::{SipHash13, SipHash24, hash_outpoint};
use proptest::collection::vec;
use proptest::prelude::{any, proptest};
use serde_json::Value;

use crate::hex;

/// The key 00 01 .. 0f of the authors' vectors.
const KEY: (u64, u64) = (0x0706050403020100, 0x0f0e0d0c0b0a0908);

/// The paper's example and the first vectors of the reference implementation.
#[test]
fn authors() {
    let message: Vec<u8> = (0..15).collect();
    let hash = SipHash24::new(KEY.0, KEY.1);
    let table = [
        (0, 0x726fdb47dd0e0e31),
        (1, 0x74f839c593dc67fd),
        (2, 0x0d6c8009d9a94f5a),
        (8, 0x93f5f5799a932462),
        (15, 0xa129ca6149be45e5),
    ];
    for (length, expected) in table {
        assert_eq!(hash.hash(&message[..length]), expected, "{length} bytes");
    }
    assert_eq!(SipHash13::new(KEY.0, KEY.1).hash(&[]), 0xabac0158050fc4dc);
}

/// Bitcoin Core's vectors; its `siphash13uj` column is a different function.
#[test]
fn core_vectors() {
    let folder = env::var_os("ASSAY_TEST_DATA").map(PathBuf::from);
    let read = |folder: PathBuf| fs::read_to_string(folder.join("vectors/siphash.json"));
    let Some(Ok(text)) = folder.map(read) else {
        println!("skipped: no vectors/siphash.json in ASSAY_TEST_DATA");
        return;
    };
    let vectors: Value = serde_json::from_str(&text).expect("the vectors are JSON");
    let vectors = vectors.as_array().expect("the vectors are a list");
    assert!(vectors.len() > 30);
    let number = |value: &Value| {
        u64::from_str_radix(value.as_str().expect("a string"), 16).expect("a 64-bit number")
    };
    for vector in vectors {
        let hash = SipHash24::new(number(&vector["key"][0]), number(&vector["key"][1]));
        let pieces = vector["input"].as_array().expect("a list");
        let input: Vec<u8> =
            pieces.iter().flat_map(|piece| hex::decode(piece.as_str().expect("hex"))).collect();
        assert_eq!(hash.hash(&input), number(&vector["expected"]["siphash24"]), "{vector}");
    }
}

proptest! {
    /// The standard library's default hasher has been SipHash-1-3 with a zero key since 1.13.
    #[test]
    fn standard_library(data in vec(any::<u8>(), 0..80)) {
        let mut oracle = DefaultHasher::new();
        oracle.write(&data);
        assert_eq!(SipHash13::new(0, 0).hash(&data), oracle.finish());
    }

    #[test]
    fn outpoint_path(k0: u64, k1: u64, txid: [u8; 32], vout: u32) {
        let bytes = [&txid[..], &vout.to_le_bytes()].concat();
        let (one, two) = (SipHash13::new(k0, k1), SipHash24::new(k0, k1));
        assert_eq!(one.hash_outpoint(&txid, vout), one.hash(&bytes));
        assert_eq!(two.hash_outpoint(&txid, vout), two.hash(&bytes));
        assert_eq!(hash_outpoint(k0, k1, &txid, vout), one.hash(&bytes));
    }
}
