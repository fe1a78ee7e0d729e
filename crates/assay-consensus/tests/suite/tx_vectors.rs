//! Bitcoin Core's transaction vectors, as far as they are about transactions alone.

use assay_consensus::tx::check_transaction;
use assay_testkit::{data, hex};
use assay_wire::{Encoding, Transaction};

/// Every transaction marked `BADTX` breaks a rule, all others break none.
#[test]
fn bad_transactions_and_only_those_are_refused() {
    let mut bad = 0;
    for file in ["vectors/tx_valid.json", "vectors/tx_invalid.json"] {
        let Some(text) = data::read(file) else { return };
        let rows: Vec<serde_json::Value> = serde_json::from_slice(&text).expect("valid JSON");
        let rows: Vec<_> = rows.iter().filter(|row| row[0].is_array()).collect();
        assert!(rows.len() > 80, "{file} has {} rows", rows.len());
        for row in rows {
            let hex = row[1].as_str().expect("a serialised transaction");
            let expected_bad = row[2].as_str() == Some("BADTX");
            bad += u32::from(expected_bad);
            let refused = match Transaction::parse(hex::decode(hex), Encoding::Segwit) {
                Ok(tx) => check_transaction(tx.view()).is_err(),
                // No inputs, and so no transaction to a parser that reads them as a marker.
                Err(_) => true,
            };
            assert_eq!(refused, expected_bad, "{file}: {hex}");
        }
    }
    assert!(bad >= 9, "only {bad} bad transactions");
}
