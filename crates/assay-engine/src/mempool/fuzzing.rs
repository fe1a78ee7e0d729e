//! Access to the mempool file for the targets in `fuzz/`. Built only under `--cfg fuzzing`, so it is not part of the crate
//! otherwise.

use std::path::Path;
use std::sync::Arc;

use assay_wire::{Encoding, Transaction, Txid};

use super::file::{Reader, write};

/// Reads a mempool file, writes its contents, obfuscated or not, and reads them again.
///
/// # Panics
/// The contents differ, or damage is reported outside of the file.
pub fn mempool_file(bytes: &[u8]) {
    for encoding in [Encoding::Segwit, Encoding::Legacy] {
        let (txs, (deltas, unbroadcast)) = read(bytes, encoding);
        let saved = || {
            let txs = txs.iter().map(|(tx, time, delta)| (Arc::clone(tx), *time as u64, *delta));
            txs.collect::<Vec<_>>()
        };
        for key in [None, Some([3, 1, 4, 1, 5, 9, 2, 6])] {
            let written: Vec<u8> =
                write(saved(), deltas.clone(), unbroadcast.clone(), key).flatten().collect();
            let (again, (deltas_again, unbroadcast_again)) = read(&written, encoding);
            assert_eq!(again.len(), txs.len());
            for ((tx, time, delta), (other, other_time, other_delta)) in txs.iter().zip(&again) {
                assert_eq!((tx.bytes(), time, delta), (other.bytes(), other_time, other_delta));
            }
            assert_eq!(deltas, deltas_again);
            assert!(key.is_none() || unbroadcast == unbroadcast_again);
        }
    }
}

/// Transactions with time and fee delta.
type Txs = Vec<(Arc<Transaction>, i64, i64)>;

fn read(bytes: &[u8], encoding: Encoding) -> (Txs, (Vec<(Txid, i64)>, Vec<Txid>)) {
    let Ok(Ok(mut reader)) = Reader::new(Path::new("mempool.dat"), bytes.to_vec(), encoding) else {
        return Default::default();
    };
    let mut txs = Vec::new();
    while let Some(next) = reader.next() {
        match next {
            Ok(saved) => txs.push((Arc::new(saved.tx), saved.time, saved.fee_delta_sat)),
            Err(damage) => assert!(damage.offset <= bytes.len() as u64),
        }
    }
    assert!(txs.len() as u64 <= reader.count);
    let rest = reader.rest();
    (txs, rest)
}
