//! Bitcoin Core's undo files (`rev00000.dat` …): the coins that blocks spent, in the order in which blocks were connected
//! (`node/blockstorage.cpp`, `WriteBlockUndo`; `undo.h`).
//!
//! A record does not name its block: its file has the number of the block's file, and its checksum covers the hash of the
//! previous block. The data are not trusted: callers verify them by other means.

use std::fs::File;
use std::io::{BufReader, Read};
use std::path::{Path, PathBuf};

use assay_hash::Sha256;
use assay_wire::{BlockHash, Coin};

use crate::block_files::{numbered_below, read_key};
use crate::spent_files::{HEADS_BYTES, SpentFilesError, SpentPlace, lengths, read_record};
use crate::utxo_snapshot::{KeyForms, decode_core_undo};
use crate::xor::XorKey;

/// The undo files next to block files.
#[derive(Debug)]
pub struct CoreUndoFiles {
    dir: PathBuf,
    files: Vec<(u32, u64)>,
    key: XorKey,
    magic: [u8; 4],
}

impl CoreUndoFiles {
    /// Finds the files in `dir`, or in its `blocks`.
    pub fn open(dir: &Path, magic: [u8; 4]) -> Result<Self, SpentFilesError> {
        let (files, found) = numbered_below(dir, PREFIX)?;
        if files.is_empty() {
            return Err(SpentFilesError::NoUndo { path: dir.to_path_buf() });
        }
        let key = read_key(&found.join("xor.dat"))?;
        Ok(Self { dir: found, files: lengths(&files), key, magic })
    }

    /// Numbers and lengths of the files.
    pub fn files(&self) -> &[(u32, u64)] {
        &self.files
    }

    /// The records of a file in order. The bytes after the last one are preallocated space.
    pub fn records(&self, number: u32) -> Result<Vec<SpentPlace>, SpentFilesError> {
        let path = self.path_of(number);
        let failed = |source| SpentFilesError::Io { path: path.clone(), source };
        let file = File::open(&path).map_err(failed)?;
        let size = file.metadata().map_err(failed)?.len();
        let mut reader = BufReader::with_capacity(HEADS_BYTES, file);
        let (mut records, mut at) = (Vec::new(), 0u64);
        while at + HEAD_BYTES <= size {
            let mut head = [0; HEAD_BYTES as usize];
            reader.read_exact(&mut head).map_err(failed)?;
            self.key.apply(&mut head, at);
            let bytes = u32::from_le_bytes([head[4], head[5], head[6], head[7]]);
            let offset = at + HEAD_BYTES;
            let end = offset + u64::from(bytes) + CHECKSUM_BYTES as u64;
            if head[..4] != self.magic || end > size {
                break;
            }
            records.push(SpentPlace { file: number, offset, bytes });
            let rest = i64::from(bytes) + CHECKSUM_BYTES as i64;
            reader.seek_relative(rest).map_err(failed)?;
            at = end;
        }
        Ok(records)
    }

    /// True if a record belongs to the block after `parent`.
    pub fn is_of(&self, place: &SpentPlace, parent: &BlockHash) -> Result<bool, SpentFilesError> {
        let (undo, checksum) = self.read_raw(place)?;
        Ok(checksum_of(parent, &undo) == checksum)
    }

    /// Reads the coins that the block after `parent` spent.
    pub fn read(
        &self,
        place: &SpentPlace,
        parent: &BlockHash,
        keys: KeyForms,
    ) -> Result<Vec<Coin>, SpentFilesError> {
        let (undo, checksum) = self.read_raw(place)?;
        let (path, offset) = (self.path_of(place.file), place.offset - HEAD_BYTES);
        if checksum_of(parent, &undo) != checksum {
            return Err(SpentFilesError::Damaged { path, offset });
        }
        let coins = decode_core_undo(&undo, keys).ok();
        let coins = coins.ok_or_else(|| SpentFilesError::Damaged { path: path.clone(), offset })?;
        if coins.iter().any(|coin| coin.height == 0) {
            return Err(SpentFilesError::OldUndo { path, offset });
        }
        Ok(coins)
    }

    fn read_raw(
        &self,
        place: &SpentPlace,
    ) -> Result<(Vec<u8>, [u8; CHECKSUM_BYTES]), SpentFilesError> {
        let path = self.path_of(place.file);
        let (mut undo, mut checksum) = read_record::<CHECKSUM_BYTES>(&path, place, HEAD_BYTES)?;
        self.key.apply(&mut undo, place.offset);
        self.key.apply(&mut checksum, place.offset + u64::from(place.bytes));
        Ok((undo, checksum))
    }

    fn path_of(&self, number: u32) -> PathBuf {
        self.dir.join(format!("{PREFIX}{number:05}.dat"))
    }
}

fn checksum_of(parent: &BlockHash, undo: &[u8]) -> [u8; CHECKSUM_BYTES] {
    let mut hasher = Sha256::new();
    hasher.update(&parent.0);
    hasher.update(undo);
    hasher.finalize_double()
}

const PREFIX: &str = "rev";
/// Magic bytes, length of the coins.
const HEAD_BYTES: u64 = 8;
/// SHA-256d of the parent's hash and the coins.
const CHECKSUM_BYTES: usize = 32;

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    const KEYS: KeyForms = KeyForms { is_point: |_| false, expand: |_| None };
    const MAGIC: [u8; 4] = [0xfa, 0xbf, 0xb5, 0xda];

    /// Two transactions, in Core's encoding: a P2PKH coin of a coinbase at height 7, and a script of one byte from height 200.
    fn undo() -> Vec<u8> {
        let first = [&[1, 15, 0, 50, 0][..], &[0xab; 20]].concat();
        let second = [1, 0x82, 0x10, 0, 9, 7, 0x51];
        [&[2][..], &first, &second].concat()
    }

    fn file(dir: &Path, key: [u8; 8], undo: &[u8], parent: &BlockHash) {
        let mut bytes = MAGIC.to_vec();
        bytes.extend((undo.len() as u32).to_le_bytes());
        bytes.extend_from_slice(undo);
        bytes.extend(checksum_of(parent, undo));
        bytes.extend([0; 100]);
        for (at, byte) in bytes.iter_mut().enumerate() {
            *byte ^= key[at % 8];
        }
        fs::write(dir.join("rev00000.dat"), bytes).unwrap();
        fs::write(dir.join("xor.dat"), key).unwrap();
    }

    #[test]
    fn records_come_back_for_their_block_alone() {
        let (dir, parent) = (tempfile::tempdir().unwrap(), BlockHash([5; 32]));
        for key in [[0; 8], [9, 8, 7, 6, 5, 4, 3, 2]] {
            file(dir.path(), key, &undo(), &parent);
            let files = CoreUndoFiles::open(dir.path(), MAGIC).unwrap();
            let records = files.records(0).unwrap();
            assert_eq!(records.len(), 1);
            assert!(files.is_of(&records[0], &parent).unwrap());
            assert!(!files.is_of(&records[0], &BlockHash::ZERO).unwrap());
            let coins = files.read(&records[0], &parent, KEYS).unwrap();
            let facts: Vec<_> = coins
                .iter()
                .map(|coin| (coin.height, coin.coinbase, coin.value, coin.script_pubkey.len()))
                .collect();
            assert_eq!(facts, [(7, true, 5_000_000_000, 25), (200, false, 100_000_000, 1)]);
            let error = files.read(&records[0], &BlockHash::ZERO, KEYS).unwrap_err();
            assert!(matches!(error, SpentFilesError::Damaged { .. }), "{error}");
        }
    }

    #[test]
    fn rejects_coins_without_a_height() {
        let (dir, parent) = (tempfile::tempdir().unwrap(), BlockHash([5; 32]));
        file(dir.path(), [0; 8], &[1, 1, 0, 9, 7, 0x51], &parent);
        let files = CoreUndoFiles::open(dir.path(), MAGIC).unwrap();
        let records = files.records(0).unwrap();
        let error = files.read(&records[0], &parent, KEYS).unwrap_err();
        assert!(error.to_string().contains("-reindex"), "{error}");
    }
}
