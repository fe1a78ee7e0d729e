//! Hashes the transactions of a block one at a time and in a batch, and their merkle root.
//!
//! `cargo run --release -p assay-hash --example txids`

#![expect(clippy::print_stdout, reason = "the table is this program's output")]

use std::time::Instant;

use assay_hash::{Backend, merkle_root, sha256d, sha256d_many_with};

fn main() {
    // Lengths of transactions with one to eight inputs; the contents do not matter.
    let txs: Vec<Vec<u8>> =
        (0..4000usize).map(|index| index.to_le_bytes().repeat(14 + 18 * (index % 8))).collect();
    let txs: Vec<&[u8]> = txs.iter().map(Vec::as_slice).collect();

    let start = Instant::now();
    let expected: Vec<[u8; 32]> = txs.iter().map(|tx| sha256d(tx)).collect();
    print("one at a time", assay_hash::backend(), start, txs.len());

    for backend in Backend::available() {
        let mut txids = vec![[0; 32]; txs.len()];
        let start = Instant::now();
        sha256d_many_with(backend, &txs, &mut txids);
        print("all at once", backend.name(), start, txs.len());
        assert_eq!(txids, expected, "{}", backend.name());
    }

    let (root, is_mutated) = merkle_root(expected);
    assert!(!is_mutated, "all transactions differ");
    print!("merkle root ");
    root.iter().rev().for_each(|byte| print!("{byte:02x}"));
    println!();
}

fn print(what: &str, backend: &str, start: Instant, count: usize) {
    let each_ns = start.elapsed().as_nanos() as f64 / count as f64;
    println!("{what:<14} {backend:<9} {each_ns:>8.0} ns per txid");
}
