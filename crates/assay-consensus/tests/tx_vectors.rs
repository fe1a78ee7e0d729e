//! Bitcoin Core's transaction vectors, as far as they are about transactions alone.

use std::path::PathBuf;

use assay_consensus::tx::check_transaction;
use assay_wire::{Encoding, Transaction};

/// Where the shared test data lies.
fn test_data() -> PathBuf {
    std::env::var_os("ASSAY_TEST_DATA").map_or_else(
        || PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data"),
        PathBuf::from,
    )
}

fn from_hex(text: &str) -> Vec<u8> {
    let digits: Vec<u8> = text
        .chars()
        .map(|digit| digit.to_digit(16).expect("the vectors are hexadecimal") as u8)
        .collect();
    digits.chunks_exact(2).map(|pair| pair[0] << 4 | pair[1]).collect()
}

/// Every transaction marked `BADTX` breaks a rule, all others break none.
#[test]
fn bad_transactions_and_only_those_are_refused() {
    let mut bad = 0;
    for file in ["vectors/tx_valid.json", "vectors/tx_invalid.json"] {
        let Ok(text) = std::fs::read(test_data().join(file)) else {
            println!("skipped: {file} is not among the test data");
            return;
        };
        let rows: Vec<serde_json::Value> = serde_json::from_slice(&text).expect("valid JSON");
        let rows: Vec<_> = rows.iter().filter(|row| row[0].is_array()).collect();
        assert!(rows.len() > 80, "{file} has {} rows", rows.len());
        for row in rows {
            let hex = row[1].as_str().expect("a serialised transaction");
            let expected_bad = row[2].as_str() == Some("BADTX");
            bad += u32::from(expected_bad);
            let refused = match Transaction::parse(from_hex(hex), Encoding::Segwit) {
                Ok(tx) => check_transaction(tx.view()).is_err(),
                // No inputs, and so no transaction to a parser that reads them as a marker.
                Err(_) => true,
            };
            assert_eq!(refused, expected_bad, "{file}: {hex}");
        }
    }
    assert!(bad >= 9, "only {bad} bad transactions");
}
