//! The block index: the records of all headers, as an append-only log of groups with checksums.
//!
//! The log is small (137 bytes per record). It is read whole at open and rewritten when most of it is out of date. The caller
//! owns the records in memory. Layout: `docs/formats.md`.

use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use assay_wire::{BlockHash, Header};
use parking_lot::Mutex;

use crate::blocks::{BlockPos, KnownEnds, UndoPos};
use crate::defect::{Point, point};
use crate::io::{Io, IoFile};
use crate::replace::{ReplaceError, replace_file};

/// Index record of one block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlockRecord {
    pub header: Header,
    pub height: u32,
    /// Flags of the caller; opaque here.
    pub status: u32,
    /// Number of transactions; 0 if only the header is known.
    pub tx_count: u32,
    /// Transactions in the chain, up to and including this block.
    pub chain_tx_count: u64,
    /// Order of arrival, for choosing between chains of equal work.
    pub sequence: u64,
    /// Position of the block, if it is archived.
    pub block: Option<BlockPos>,
    /// Position of its undo data, if it was ever connected.
    pub undo: Option<UndoPos>,
    /// True if block and undo data were pruned at some time. The block may be archived again.
    pub was_pruned: bool,
}

#[derive(Debug, thiserror::Error)]
pub enum IndexError {
    #[error("{}: {source}", path.display())]
    Io { path: PathBuf, source: io::Error },
    /// A group that had been synced does not match its checksum.
    #[error("{}: damaged at {offset}, before records that were synced after it", path.display())]
    Damaged { path: PathBuf, offset: u64 },
    #[error("{}: not a block index of version {VERSION}", path.display())]
    Format { path: PathBuf },
    #[error("{}: belongs to the network with message start {}, not {}", path.display(), hex(*found), hex(*expected))]
    Network { path: PathBuf, found: [u8; 4], expected: [u8; 4] },
}

/// The log; see the module. Methods may be called from several threads.
pub struct BlockIndex {
    path: PathBuf,
    /// A panic cannot leave it inconsistent: `end` moves after the write.
    log: Mutex<Log>,
}

struct Log {
    file: Arc<dyn IoFile>,
    end: u64,
}

/// Contents of a log at open.
#[derive(Debug, Default)]
pub(crate) struct Loaded {
    /// The last record of each header, in order of first appearance.
    pub(crate) records: Vec<BlockRecord>,
    /// For each record, true if it was written after the last checkpoint, so that its data may be lost.
    pub(crate) unsure: Vec<bool>,
    /// End of the last whole group.
    pub(crate) end: u64,
    /// Bytes after `end`.
    pub(crate) bytes_dropped: u64,
    /// Records in the log, including replaced ones.
    logged: usize,
}

impl Loaded {
    /// Per file, the end of the blocks and undo data named by the records.
    pub(crate) fn known_ends(&self) -> KnownEnds {
        let mut ends = KnownEnds::default();
        for record in &self.records {
            if let Some(pos) = record.block {
                let end = ends.blocks.entry(pos.file).or_default();
                *end = pos.end().max(*end);
            }
            if let Some(pos) = record.undo {
                let end = ends.undo.entry(pos.file).or_default();
                *end = pos.end().max(*end);
            }
        }
        ends
    }

    fn absorb(&mut self, group: Vec<BlockRecord>, places: &mut HashMap<BlockHash, usize>) {
        self.logged += group.len();
        for record in group {
            let next = self.records.len();
            let place = *places.entry(record.header.hash()).or_insert(next);
            if place == next {
                self.records.push(record);
                self.unsure.push(true);
            } else {
                self.records[place] = record;
                self.unsure[place] = true;
            }
        }
    }

    /// True if most of the records in the log are replaced by later ones.
    pub(crate) fn is_mostly_stale(&self) -> bool {
        self.logged > 2 * self.records.len() + STALE_MIN
    }
}

impl BlockIndex {
    /// Opens or creates the log in `dir`. Drops a damaged group and everything after it.
    pub(crate) fn open(
        io: &dyn Io,
        dir: &Path,
        magic: [u8; 4],
    ) -> Result<(Self, Loaded), IndexError> {
        let path = dir.join(FILE_NAME);
        let dir_failed = |source| IndexError::Io { path: dir.to_path_buf(), source };
        io.create_dir_all(dir).map_err(dir_failed)?;
        let failed = |source| IndexError::Io { path: path.clone(), source };
        let file = io.open(&path, true).map_err(failed)?;
        let size = file.size().map_err(failed)?;
        let mut bytes = vec![0u8; usize::try_from(size).map_err(|e| failed(io::Error::other(e)))?];
        file.read_exact_at(&mut bytes, 0).map_err(failed)?;

        let mut loaded = Loaded::default();
        let end = if is_torn_head(&bytes, magic) {
            file.set_size(0).and_then(|()| file.write_all_at(&head(magic), 0)).map_err(failed)?;
            HEAD_BYTES
        } else {
            check_head(&path, &bytes, magic)?;
            let end = load_groups(&bytes, &mut loaded);
            loaded.end = end as u64;
            loaded.bytes_dropped = (bytes.len() - end) as u64;
            // A power cut can tear only bytes written since the last sync, and these contain at most one checkpoint, the one
            // being synced. Damage before a second checkpoint is therefore real damage, and the rest must not be dropped.
            if count_checkpoints(&bytes[end..]) > 1 {
                return Err(IndexError::Damaged { path, offset: end as u64 });
            }
            if loaded.bytes_dropped > 0 {
                file.set_size(end as u64).map_err(failed)?;
            }
            end
        };
        // A process that died between the write and the sync of a checkpoint left a log that looks synced.
        file.sync_data().map_err(failed)?;
        io.sync_dir(dir).map_err(dir_failed)?;
        let log = Mutex::new(Log { file, end: end as u64 });
        Ok((Self { path, log }, loaded))
    }

    /// Replaces the log with one of only `records`. Their data must be synced.
    pub(crate) fn rewrite(
        &self,
        io: &dyn Io,
        magic: [u8; 4],
        records: &[BlockRecord],
    ) -> Result<(), IndexError> {
        let mut bytes = head(magic).to_vec();
        for group in records.chunks(GROUP_MAX) {
            write_group(&mut bytes, KIND_RECORDS, &encode_records(group));
        }
        write_group(&mut bytes, KIND_CHECKPOINT, &[]);
        let mut log = self.log.lock();
        let end = replace_file(io, &self.path, std::iter::once(bytes))
            .map_err(|ReplaceError { path, source }| IndexError::Io { path, source })?;
        let file = io.open(&self.path, false).map_err(|source| self.io_error(source))?;
        *log = Log { file, end };
        Ok(())
    }

    /// Writes records as one group: after a crash all or none of them exist. When this returns they survive the death of the
    /// process. A later record of the same header replaces the earlier one.
    ///
    /// # Errors
    /// On an I/O error nothing was written.
    pub fn put(&self, records: &[BlockRecord]) -> Result<(), IndexError> {
        if records.is_empty() {
            return Ok(());
        }
        self.append(KIND_RECORDS, &encode_records(records)).map(|_| ())
    }

    /// Makes all records survive a power cut, and records that their data are synced: call
    /// [`BlockStore::sync`](crate::BlockStore::sync) first, or use [`commit`](crate::commit).
    ///
    /// # Errors
    /// After an I/O error the records are still considered unsynced.
    pub fn sync(&self) -> Result<(), IndexError> {
        let file = self.append(KIND_CHECKPOINT, &[])?;
        file.sync_data().map_err(|source| self.io_error(source))
    }

    fn append(&self, kind: u8, payload: &[u8]) -> Result<Arc<dyn IoFile>, IndexError> {
        let mut group = Vec::with_capacity(payload.len() + GROUP_HEAD_BYTES);
        write_group(&mut group, kind, payload);
        point(Point::RecordWrite);
        let mut log = self.log.lock();
        if let Err(source) = log.file.write_all_at(&group, log.end) {
            // Without the cut, the rest of a torn group would look like damage after the next append.
            log.file.set_size(log.end).ok();
            return Err(self.io_error(source));
        }
        point(Point::RecordWritten);
        log.end += group.len() as u64;
        Ok(Arc::clone(&log.file))
    }

    pub(crate) fn damaged(&self, offset: u64) -> IndexError {
        IndexError::Damaged { path: self.path.clone(), offset }
    }

    fn io_error(&self, source: io::Error) -> IndexError {
        IndexError::Io { path: self.path.clone(), source }
    }
}

/// True if the file is new, or the process died while it wrote the head.
fn is_torn_head(bytes: &[u8], magic: [u8; 4]) -> bool {
    bytes.len() < HEAD_BYTES && (head(magic).starts_with(bytes) || bytes.iter().all(|&b| b == 0))
        || bytes.len() == HEAD_BYTES && bytes.iter().all(|&b| b == 0)
}

fn head(magic: [u8; 4]) -> [u8; HEAD_BYTES] {
    let mut head = [0u8; HEAD_BYTES];
    head[..8].copy_from_slice(FILE_TAG);
    head[8..12].copy_from_slice(&VERSION.to_le_bytes());
    head[12..].copy_from_slice(&magic);
    head
}

fn check_head(path: &Path, bytes: &[u8], magic: [u8; 4]) -> Result<(), IndexError> {
    let Some(found) = bytes.first_chunk::<HEAD_BYTES>() else {
        return Err(IndexError::Format { path: path.to_path_buf() });
    };
    if found[..12] != head(magic)[..12] {
        return Err(IndexError::Format { path: path.to_path_buf() });
    }
    let found = [found[12], found[13], found[14], found[15]];
    if found != magic {
        return Err(IndexError::Network { path: path.to_path_buf(), found, expected: magic });
    }
    Ok(())
}

/// Reads groups until a torn one; returns the end of the last whole group.
fn load_groups(bytes: &[u8], loaded: &mut Loaded) -> usize {
    let mut places = HashMap::new();
    let mut end = HEAD_BYTES;
    while let Some((kind, payload)) = read_group(&bytes[end..]) {
        match kind {
            KIND_CHECKPOINT => loaded.unsure.fill(false),
            KIND_RECORDS => match decode_records(payload) {
                Some(group) => loaded.absorb(group, &mut places),
                None => break,
            },
            _ => break,
        }
        end += GROUP_HEAD_BYTES + payload.len();
    }
    end
}

/// Number of checkpoints in bytes that may start inside a group.
fn count_checkpoints(bytes: &[u8]) -> usize {
    let mut checkpoint = Vec::new();
    write_group(&mut checkpoint, KIND_CHECKPOINT, &[]);
    bytes.windows(checkpoint.len()).filter(|window| *window == checkpoint).count()
}

/// Appends payload length, CRC-32 of kind and payload, kind, payload.
fn write_group(out: &mut Vec<u8>, kind: u8, payload: &[u8]) {
    out.extend_from_slice(&(payload.len() as u32).to_le_bytes());
    out.extend_from_slice(&group_crc(kind, payload).to_le_bytes());
    out.push(kind);
    out.extend_from_slice(payload);
}

fn read_group(bytes: &[u8]) -> Option<(u8, &[u8])> {
    let (head, rest) = bytes.split_first_chunk::<GROUP_HEAD_BYTES>()?;
    let length = u32::from_le_bytes([head[0], head[1], head[2], head[3]]) as usize;
    let crc = u32::from_le_bytes([head[4], head[5], head[6], head[7]]);
    let payload = rest.get(..length)?;
    (group_crc(head[8], payload) == crc).then_some((head[8], payload))
}

fn group_crc(kind: u8, payload: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(&[kind]);
    hasher.update(payload);
    hasher.finalize()
}

fn encode_records(records: &[BlockRecord]) -> Vec<u8> {
    let mut out = Vec::with_capacity(records.len() * RECORD_BYTES);
    for record in records {
        out.extend_from_slice(&record.header.to_bytes());
        for word in [record.height, record.status, record.tx_count] {
            out.extend_from_slice(&word.to_le_bytes());
        }
        out.extend_from_slice(&record.chain_tx_count.to_le_bytes());
        out.extend_from_slice(&record.sequence.to_le_bytes());
        out.push(
            u8::from(record.block.is_some())
                | u8::from(record.undo.is_some()) << 1
                | u8::from(record.was_pruned) << 2,
        );
        let block = record.block.map_or([0; 4], |pos| [pos.file, pos.offset, pos.size, pos.crc]);
        let undo = record.undo.map_or([0; 3], |pos| [pos.file, pos.offset, pos.size]);
        for word in block.into_iter().chain(undo) {
            out.extend_from_slice(&word.to_le_bytes());
        }
    }
    out
}

fn decode_records(payload: &[u8]) -> Option<Vec<BlockRecord>> {
    let (records, rest) = payload.as_chunks::<RECORD_BYTES>();
    rest.is_empty().then(|| records.iter().map(decode_record).collect())
}

fn decode_record(bytes: &[u8; RECORD_BYTES]) -> BlockRecord {
    let u32_at =
        |at: usize| u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
    let u64_at = |at: usize| u64::from(u32_at(at)) | u64::from(u32_at(at + 4)) << 32;
    let mut header = [0u8; Header::SIZE];
    header.copy_from_slice(&bytes[..Header::SIZE]);
    let has = bytes[108];
    let block =
        BlockPos { file: u32_at(109), offset: u32_at(113), size: u32_at(117), crc: u32_at(121) };
    let undo = UndoPos { file: u32_at(125), offset: u32_at(129), size: u32_at(133) };
    BlockRecord {
        header: Header::parse(&header),
        height: u32_at(80),
        status: u32_at(84),
        tx_count: u32_at(88),
        chain_tx_count: u64_at(92),
        sequence: u64_at(100),
        block: (has & 1 != 0).then_some(block),
        undo: (has & 2 != 0).then_some(undo),
        was_pruned: has & 4 != 0,
    }
}

const FILE_NAME: &str = "index.log";
const FILE_TAG: &[u8; 8] = b"assayidx";
const VERSION: u32 = 1;
const HEAD_BYTES: usize = 16;
const GROUP_HEAD_BYTES: usize = 9;
const RECORD_BYTES: usize = 137;
const KIND_RECORDS: u8 = 1;
const KIND_CHECKPOINT: u8 = 2;

/// Records per group when the log is rewritten.
const GROUP_MAX: usize = 10_000;

/// Minimum of replaced records for a rewrite.
const STALE_MIN: usize = 10_000;
/// Usual notation of a message start: `f9beb4d9`.
fn hex(start: [u8; 4]) -> String {
    format!("{:08x}", u32::from_be_bytes(start))
}
