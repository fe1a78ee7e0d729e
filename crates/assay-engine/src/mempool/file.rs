//! The mempool file: Bitcoin Core's `mempool.dat` (`node/mempool_persist.cpp`), byte for byte.
//!
//! Version 1: version, number of transactions, and for each the transaction, the time of its admission and a fee delta; then fee
//! deltas of other transactions, then the ids of transactions not yet sent to a peer. Integers have 64 bits, little endian.
//! Version 2 has a key of eight bytes, with its length, after the version; each later byte is stored XOR the key byte of its file
//! position. Bitcoin Cash Node writes version 1 without the last list.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use assay_wire::{Encoding, ParseErrorKind, Transaction, Txid, encode};

#[derive(Debug, thiserror::Error)]
pub enum MempoolFileError {
    #[error("mempool file {0}")]
    Io(#[from] assay_store::ReplaceError),
    /// The file has another format or a later version.
    #[error("mempool file {}: not of version 1 or 2", path.display())]
    Format { path: PathBuf },
}

/// Position and reason of damage in a mempool file.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("mempool file {}: {kind} at byte {offset}", path.display())]
pub struct MempoolFileDamage {
    pub path: PathBuf,
    pub offset: u64,
    pub kind: ParseErrorKind,
}

/// Options of an import, besides the transactions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MempoolImport {
    /// Use the current time as the time of admission, not that of the file.
    pub use_current_time: bool,
    pub apply_fee_deltas: bool,
    /// Announce the transactions that no peer has fetched, until one has.
    pub apply_unbroadcast: bool,
}

/// Result of loading a mempool file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MempoolLoad {
    pub admitted: u64,
    /// Rejected, for example because of spent inputs.
    pub refused: u64,
    pub expired: u64,
    pub known: u64,
    /// Transactions in the mempool to be announced until a peer has fetched them.
    pub unbroadcast: u64,
    /// Position of damage; everything before it was read.
    pub damage: Option<MempoolFileDamage>,
    /// True if the engine closed before the end.
    pub is_interrupted: bool,
}

pub(crate) struct Saved {
    pub(crate) tx: Transaction,
    pub(crate) time: i64,
    pub(crate) fee_delta_sat: i64,
}

const VERSION_PLAIN: u64 = 1;
const VERSION_OBFUSCATED: u64 = 2;
const KEY_BYTES: usize = 8;
const CHUNK_BYTES: usize = 1 << 20;

/// The bytes of a file with these transactions, in chunks. Without a `key` it has the format of Bitcoin Cash Node.
///
/// `deltas_sat` are the fee deltas of other transactions, `unbroadcast` the transactions that no peer has fetched.
pub(crate) fn write(
    txs: Vec<(Arc<Transaction>, u64, i64)>,
    deltas_sat: Vec<(Txid, i64)>,
    unbroadcast: Vec<Txid>,
    key: Option<[u8; KEY_BYTES]>,
) -> impl Iterator<Item = Vec<u8>> {
    let mut head = match key {
        None => VERSION_PLAIN.to_le_bytes().to_vec(),
        Some(key) => {
            let mut head = VERSION_OBFUSCATED.to_le_bytes().to_vec();
            encode::var_bytes(&mut head, &key);
            head
        }
    };
    let mut count = (txs.len() as u64).to_le_bytes().to_vec();
    let mut at = head.len();
    obfuscate(&mut count, key.unwrap_or_default(), at);
    at += count.len();
    head.append(&mut count);
    let mut txs = txs.into_iter();
    let mut is_done = false;
    let rest = std::iter::from_fn(move || {
        let mut chunk = Vec::with_capacity(CHUNK_BYTES + CHUNK_BYTES / 8);
        while chunk.len() < CHUNK_BYTES && !is_done {
            if let Some((tx, time, fee_delta_sat)) = txs.next() {
                chunk.extend_from_slice(tx.bytes());
                chunk.extend_from_slice(&time.to_le_bytes());
                chunk.extend_from_slice(&fee_delta_sat.to_le_bytes());
            } else {
                encode::compact_size(&mut chunk, deltas_sat.len() as u64);
                for (txid, delta_sat) in &deltas_sat {
                    chunk.extend_from_slice(&txid.0);
                    chunk.extend_from_slice(&delta_sat.to_le_bytes());
                }
                if key.is_some() {
                    encode::compact_size(&mut chunk, unbroadcast.len() as u64);
                    for txid in &unbroadcast {
                        chunk.extend_from_slice(&txid.0);
                    }
                }
                is_done = true;
            }
        }
        obfuscate(&mut chunk, key.unwrap_or_default(), at);
        at += chunk.len();
        (!chunk.is_empty()).then_some(chunk)
    });
    std::iter::once(head).chain(rest)
}

/// Applies or removes the key; `at` is the file position of the first byte.
fn obfuscate(bytes: &mut [u8], key: [u8; KEY_BYTES], at: usize) {
    if key != [0; KEY_BYTES] {
        for (index, byte) in bytes.iter_mut().enumerate() {
            *byte ^= key[(at + index) % KEY_BYTES];
        }
    }
}

/// Reads a file sequentially, one transaction at a time.
pub(crate) struct Reader {
    path: PathBuf,
    bytes: Vec<u8>,
    at: usize,
    encoding: Encoding,
    pub(crate) count: u64,
    left: u64,
}

impl Reader {
    /// Reads the header.
    pub(crate) fn new(
        path: &Path,
        mut bytes: Vec<u8>,
        encoding: Encoding,
    ) -> Result<Result<Self, MempoolFileDamage>, MempoolFileError> {
        let format = || MempoolFileError::Format { path: path.to_path_buf() };
        let version = bytes.first_chunk().map(|version| u64::from_le_bytes(*version));
        let mut at = size_of::<u64>();
        match version {
            Some(VERSION_PLAIN) | None => {}
            Some(VERSION_OBFUSCATED) => {
                let end = at + 1 + KEY_BYTES;
                if let Some([length, key @ ..]) = bytes.get(at..end) {
                    let key = <[u8; KEY_BYTES]>::try_from(key).map_err(|_| format())?;
                    if usize::from(*length) != KEY_BYTES {
                        return Err(format());
                    }
                    obfuscate(&mut bytes[end..], key, end);
                }
                at = end;
            }
            Some(_) => return Err(format()),
        }
        let mut reader = Self { path: path.to_path_buf(), bytes, at, encoding, count: 0, left: 0 };
        Ok(reader.integer().map(|count| {
            (reader.count, reader.left) = (count, count);
            reader
        }))
    }

    /// The next transaction; `None` at the end. After damage nothing more can be read.
    pub(crate) fn next(&mut self) -> Option<Result<Saved, MempoolFileDamage>> {
        self.left = self.left.checked_sub(1)?;
        let saved = self.one();
        if saved.is_err() {
            self.left = 0;
        }
        Some(saved)
    }

    fn one(&mut self) -> Result<Saved, MempoolFileDamage> {
        let rest = self.bytes.get(self.at..).unwrap_or_default();
        let tx = Transaction::parse_first(rest, self.encoding)
            .map_err(|error| self.damage(self.at + error.offset, error.kind))?;
        self.at += tx.bytes().len();
        let time = self.integer()? as i64;
        let fee_delta_sat = self.integer()? as i64;
        Ok(Saved { tx, time, fee_delta_sat })
    }

    /// The fee deltas of other transactions, after the last one, and the ids of transactions that no peer has fetched; as far as
    /// they can be read.
    pub(crate) fn rest(&mut self) -> (Vec<(Txid, i64)>, Vec<Txid>) {
        let entry = |entry: &[u8; 40]| {
            let (txid, delta) = entry.split_first_chunk::<32>()?;
            Some((Txid(*txid), i64::from_le_bytes(delta.try_into().ok()?)))
        };
        let deltas_sat = self.list::<40>().iter().filter_map(entry).collect();
        (deltas_sat, self.list::<32>().iter().map(|txid| Txid(*txid)).collect())
    }

    /// A count and as many entries, or all that are readable.
    fn list<const SIZE: usize>(&mut self) -> Vec<[u8; SIZE]> {
        let rest = self.bytes.get(self.at..).unwrap_or_default();
        let (count, length) = match *rest {
            [0xfd, low, high, ..] => (u64::from(u16::from_le_bytes([low, high])), 3),
            [0xfe, a, b, c, d, ..] => (u64::from(u32::from_le_bytes([a, b, c, d])), 5),
            [count @ 0..0xfd, ..] => (u64::from(count), 1),
            _ => (0, 0),
        };
        let (entries, _) = rest.get(length..).unwrap_or_default().as_chunks::<SIZE>();
        let entries = &entries[..entries.len().min(usize::try_from(count).unwrap_or(0))];
        self.at += length + entries.len() * SIZE;
        entries.to_vec()
    }

    fn integer(&mut self) -> Result<u64, MempoolFileDamage> {
        let rest = self.bytes.get(self.at..).unwrap_or_default();
        let Some(bytes) = rest.first_chunk() else {
            return Err(self.damage(self.bytes.len(), ParseErrorKind::Truncated));
        };
        self.at += size_of::<u64>();
        Ok(u64::from_le_bytes(*bytes))
    }

    fn damage(&self, offset: usize, kind: ParseErrorKind) -> MempoolFileDamage {
        MempoolFileDamage { path: self.path.clone(), offset: offset as u64, kind }
    }
}

#[cfg(test)]
mod tests {
    use assay_testkit::chain::TxBuilder;

    use super::*;

    fn tx(lock_time: u32) -> Transaction {
        let tx = TxBuilder::new(2).input(7, 7, &[0x51], u32::MAX).output(1000, &[0x51]);
        tx.lock_time(lock_time).build()
    }

    fn file(count: u32, key: Option<[u8; 8]>) -> Vec<u8> {
        let txs = (0..count).map(|n| (Arc::new(tx(n)), 1_700_000_000 + u64::from(n), 5)).collect();
        write(txs, Vec::new(), Vec::new(), key).flatten().collect()
    }

    fn read(bytes: Vec<u8>) -> (Vec<Saved>, Option<MempoolFileDamage>) {
        let mut reader = match Reader::new(Path::new("f"), bytes, Encoding::Segwit).unwrap() {
            Ok(reader) => reader,
            Err(damage) => return (Vec::new(), Some(damage)),
        };
        let mut txs = Vec::new();
        while let Some(next) = reader.next() {
            match next {
                Ok(saved) => txs.push(saved),
                Err(damage) => {
                    assert!(reader.next().is_none());
                    return (txs, Some(damage));
                }
            }
        }
        (txs, None)
    }

    #[test]
    fn reads_back_written_coins() {
        let plain = file(3, None);
        assert_eq!(plain.len(), 8 + 8 + 3 * (tx(0).bytes().len() + 16) + 1);
        assert_eq!(plain[..16], [1, 0, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0]);
        let key = [1, 2, 3, 4, 5, 6, 7, 8];
        let hidden = file(3, Some(key));
        assert_eq!(hidden[..17], [&[2, 0, 0, 0, 0, 0, 0, 0, 8][..], &key].concat());
        // The count starts at byte 17, which uses the second byte of the key.
        assert_eq!(hidden[17..25], [3 ^ 2, 3, 4, 5, 6, 7, 8, 1]);
        assert_eq!(hidden.len(), plain.len() + 9 + 1);
        let large = file(20_000, Some(key));
        for (bytes, count) in [(plain, 3), (hidden, 3), (large, 20_000), (file(0, None), 0)] {
            let (txs, damage) = read(bytes);
            assert!(damage.is_none() && txs.len() == count);
            for (n, saved) in txs.iter().enumerate() {
                assert_eq!(saved.tx.bytes(), tx(n as u32).bytes());
                assert_eq!((saved.time, saved.fee_delta_sat), (1_700_000_000 + n as i64, 5));
            }
        }
    }

    #[test]
    fn keeps_fee_deltas_and_unbroadcast_transactions() {
        for key in [None, Some([9; 8])] {
            for count in [0u8, 1, 3] {
                let deltas: Vec<_> =
                    (0..count).map(|id| (Txid([id; 32]), -7 * i64::from(id))).collect();
                let txs = vec![(Arc::new(tx(1)), 1, 0)];
                let sent: Vec<_> = (0..count).map(|id| Txid([id + 9; 32])).collect();
                let bytes = write(txs, deltas.clone(), sent.clone(), key).flatten().collect();
                let mut reader =
                    Reader::new(Path::new("f"), bytes, Encoding::Segwit).unwrap().unwrap();
                assert!(reader.next().is_some() && reader.next().is_none());
                let sent = if key.is_some() { sent } else { Vec::new() };
                assert_eq!(reader.rest(), (deltas, sent));
            }
        }
    }

    #[test]
    fn of_a_torn_file_the_whole_transactions_are_read() {
        for key in [None, Some([9; 8])] {
            let bytes = file(3, key);
            let first =
                bytes.len() - 3 * (tx(0).bytes().len() + 16) - 1 - usize::from(key.is_some());
            for length in 0..bytes.len() {
                let (txs, damage) = read(bytes[..length].to_vec());
                let whole = length.saturating_sub(first) / (tx(0).bytes().len() + 16);
                assert_eq!(txs.len(), whole.min(3), "length {length}");
                match damage {
                    Some(damage) => assert!(whole < 3 && damage.offset <= length as u64),
                    None => assert_eq!(whole, 3),
                }
            }
        }
        let mut later = file(1, None);
        later[0] = 3;
        assert!(Reader::new(Path::new("f"), later, Encoding::Segwit).is_err());
    }
}
