//! A door to the mempool file for the targets in `fuzz/`. Built under `--cfg fuzzing` alone, so that
//! nothing here is part of the crate for anyone else.

use std::path::Path;
use std::sync::Arc;

use assay_wire::Encoding;

use super::file::{Reader, write};

/// Reads a mempool file; what it holds is written, obfuscated or not, and read again.
///
/// # Panics
/// When something else comes out, or damage is not where the file is.
pub fn mempool_file(bytes: &[u8]) {
    for encoding in [Encoding::Segwit, Encoding::Legacy] {
        let txs = read(bytes, encoding);
        let saved = || {
            let txs = txs.iter().map(|(tx, time)| (Arc::clone(tx), *time as u64));
            txs.collect::<Vec<_>>()
        };
        for key in [None, Some([3, 1, 4, 1, 5, 9, 2, 6])] {
            let written: Vec<u8> = write(saved(), key).flatten().collect();
            let again = read(&written, encoding);
            assert_eq!(again.len(), txs.len());
            for ((tx, time), (other, other_time)) in txs.iter().zip(&again) {
                assert_eq!((tx.bytes(), time), (other.bytes(), other_time));
            }
        }
    }
}

fn read(bytes: &[u8], encoding: Encoding) -> Vec<(Arc<assay_wire::Transaction>, i64)> {
    let Ok(Ok(mut reader)) = Reader::new(Path::new("mempool.dat"), bytes.to_vec(), encoding) else {
        return Vec::new();
    };
    let mut txs = Vec::new();
    while let Some(next) = reader.next() {
        match next {
            Ok(saved) => txs.push((Arc::new(saved.tx), saved.time)),
            Err(damage) => assert!(damage.offset <= bytes.len() as u64),
        }
    }
    assert!(txs.len() as u64 <= reader.count);
    txs
}
