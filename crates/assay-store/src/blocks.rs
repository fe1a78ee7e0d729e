//! Block files in Bitcoin Core's framing, and their undo files.
//!
//! Both only grow. A new file starts when a record would exceed the length limit. An append returns a position, which the block
//! index stores; bytes without a position in the index are not data. Layouts and the durability contract: `docs/formats.md`.

mod removal;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use assay_hash::Sha256;
use assay_wire::BlockHash;
use parking_lot::Mutex;

use crate::defect::{Point, point};
use crate::io::{Io, IoFile};
use crate::xor::XorKey;
pub use removal::FileLengths;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockPos {
    pub file: u32,
    /// Offset of the raw block, after the eight bytes of framing.
    pub offset: u32,
    pub size: u32,
    /// CRC-32 (IEEE) of the raw block, which its framing lacks.
    pub crc: u32,
}

impl BlockPos {
    /// Position of a raw block in a file not written by [`BlockStore::append_block`].
    pub fn of(file: u32, offset: u32, raw: &[u8]) -> Self {
        Self { file, offset, size: raw.len() as u32, crc: crc32fast::hash(raw) }
    }

    /// Offset just after the block.
    pub fn end(&self) -> u64 {
        u64::from(self.offset) + u64::from(self.size)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UndoPos {
    /// Number of the undo file. Undo files rotate on their own: it can differ from the number of the block file.
    pub file: u32,
    /// Offset of the undo data, after the eight bytes of framing.
    pub offset: u32,
    /// Length of the undo data, without framing and checksum.
    pub size: u32,
}

impl UndoPos {
    /// Offset just after the checksum.
    pub fn end(&self) -> u64 {
        u64::from(self.offset) + u64::from(self.size) + CHECKSUM_BYTES as u64
    }
}

#[derive(Debug, thiserror::Error)]
pub enum BlockFileError {
    #[error("{}: {source}", path.display())]
    Io { path: PathBuf, source: io::Error },
    #[error("{}: the record at {offset} ends after the file", path.display())]
    Short { path: PathBuf, offset: u64 },
    /// The eight bytes before the data are not the framing.
    #[error("{}: no record of {size} bytes of this network at {offset}", path.display())]
    Framing { path: PathBuf, offset: u64, size: u32 },
    #[error("{}: the record at {offset} does not have its checksum", path.display())]
    Checksum { path: PathBuf, offset: u64 },
    #[error("a record of {size} bytes does not fit")]
    Size { size: u64 },
    #[error("there is no block or undo file number {file}")]
    FileNumber { file: u32 },
    /// The length limit allows offsets above 32 bits.
    #[error(
        "block files of up to {bytes} bytes: positions are 32 bits wide, so give at most {FILE_BYTES_LIMIT}"
    )]
    FileLimit { bytes: u64 },
}

impl BlockFileError {
    /// True if the record is lost or damaged, as after a power cut, while the device works.
    pub fn is_damage(&self) -> bool {
        matches!(self, Self::Short { .. } | Self::Framing { .. } | Self::Checksum { .. })
    }
}

/// Appends and reads blocks and undo data. All methods may be called from several threads.
pub struct BlockStore {
    io: Arc<dyn Io>,
    dir: PathBuf,
    magic: [u8; 4],
    key: XorKey,
    file_bytes_max: u64,
    /// A panic during an append leaves at worst bytes after the end.
    writer: Mutex<Writer>,
    bytes: AtomicU64,
    handles: Mutex<HashMap<FileId, Arc<dyn IoFile>>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum FileId {
    Block(u32),
    Undo(u32),
}

impl FileId {
    fn parse(name: &str) -> Option<Self> {
        let digits = name.get(3..8)?;
        let number = digits.parse().ok().filter(|_| digits.bytes().all(|b| b.is_ascii_digit()))?;
        match (&name[..3], &name[8..]) {
            ("blk", ".dat") => Some(Self::Block(number)),
            ("rev", ".dat") => Some(Self::Undo(number)),
            _ => None,
        }
    }
}

#[derive(Default)]
struct Writer {
    /// The block file being appended to, and its length.
    file: u32,
    end: u64,
    /// The undo file being appended to, and the end of the last undo data in the index.
    undo_file: u32,
    undo_end: u64,
    /// Files written since the last sync; `names_dirty` is true if one of them is new.
    dirty: BTreeSet<FileId>,
    names_dirty: bool,
    lengths: BTreeMap<FileId, u64>,
}

/// Per file, the end of the data in the block index.
#[derive(Clone, Debug, Default)]
pub(crate) struct KnownEnds {
    pub(crate) blocks: BTreeMap<u32, u64>,
    pub(crate) undo: BTreeMap<u32, u64>,
}

/// Treatment of bytes after the last block in the index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TailRule {
    /// Whole frames are reported, and the bytes after the last one are cut.
    Cut,
    /// All bytes stay for a later scan.
    Keep,
}

/// Data in the block files beyond the end of the index.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tails {
    pub(crate) unindexed: Vec<BlockPos>,
    pub(crate) bytes_dropped: u64,
}

impl BlockStore {
    /// Opens the files in `dir`, finds whole frames after `known`, and cuts the bytes after the last one. If blocks were removed
    /// before, files without records are removed first.
    pub(crate) fn open(
        io: Arc<dyn Io>,
        dir: &Path,
        (magic, key): ([u8; 4], XorKey),
        file_bytes_max: u64,
        known: &KnownEnds,
        rule: TailRule,
        had_removals: bool,
    ) -> Result<(Self, Tails), BlockFileError> {
        if file_bytes_max > FILE_BYTES_LIMIT {
            return Err(BlockFileError::FileLimit { bytes: file_bytes_max });
        }
        let failed = |source| BlockFileError::Io { path: dir.to_path_buf(), source };
        io.create_dir_all(dir).map_err(failed)?;
        let names = io.list(dir).map_err(failed)?;
        let mut found: BTreeSet<FileId> =
            names.iter().filter_map(|name| FileId::parse(name)).collect();
        let store = Self {
            io,
            dir: dir.to_path_buf(),
            magic,
            key,
            file_bytes_max,
            writer: Mutex::default(),
            bytes: AtomicU64::new(0),
            handles: Mutex::default(),
        };
        // During a reindex, files without records are still to be scanned.
        if had_removals && rule == TailRule::Cut {
            store.remove_leftovers(&mut found, known)?;
        }
        let mut numbers: BTreeSet<u32> = known.blocks.keys().copied().collect();
        numbers.extend(found.iter().filter_map(|id| match id {
            FileId::Block(number) => Some(*number),
            FileId::Undo(_) => None,
        }));
        let mut tails = Tails::default();
        // Undo data after the end of the index are unreachable and are overwritten.
        let (undo_file, undo_end) = known.undo.last_key_value().map_or((0, 0), |(a, b)| (*a, *b));
        let mut writer = Writer { undo_file, undo_end, names_dirty: true, ..Writer::default() };
        for &number in &numbers {
            let start = known.blocks.get(&number).copied().unwrap_or(0);
            writer.file = number;
            writer.end = match rule {
                TailRule::Cut => store.scan_tail(number, start, &mut tails)?,
                TailRule::Keep => {
                    let id = FileId::Block(number);
                    let file = store.existing(id)?;
                    let size = file.map_or(Ok(0), |file| store.size(id, &*file))?;
                    size.max(start)
                }
            };
        }
        if rule == TailRule::Cut
            && let Some(&last) = numbers.last()
        {
            store.cut(FileId::Block(last), writer.end)?;
        }
        for id in found {
            let file = store.handle(id, false)?;
            let bytes = store.size(id, &*file)?;
            writer.lengths.insert(id, bytes);
        }
        store.bytes.store(writer.lengths.values().sum(), Ordering::Relaxed);
        *store.writer.lock() = writer;
        Ok((store, tails))
    }

    /// Walks the frames of a file from `start`; returns the end of the last whole frame, or `start`.
    fn scan_tail(&self, number: u32, start: u64, tails: &mut Tails) -> Result<u64, BlockFileError> {
        let id = FileId::Block(number);
        // If a file named by the index is missing, reads of its blocks report the damage.
        let Some(file) = self.existing(id)? else { return Ok(start) };
        let size = self.size(id, &*file)?;
        let mut end = start;
        while size.saturating_sub(end) >= FRAME_BYTES as u64 {
            let mut frame = [0u8; FRAME_BYTES];
            self.read(id, &*file, &mut frame, end)?;
            let block_size = u32::from_le_bytes([frame[4], frame[5], frame[6], frame[7]]);
            let offset = end + FRAME_BYTES as u64;
            let block_end = offset + u64::from(block_size);
            let Ok(offset) = u32::try_from(offset) else { break };
            if frame[..4] != self.magic || block_end > size || block_size == 0 {
                break;
            }
            let mut raw = vec![0u8; block_size as usize];
            self.read(id, &*file, &mut raw, u64::from(offset))?;
            let crc = crc32fast::hash(&raw);
            tails.unindexed.push(BlockPos { file: number, offset, size: block_size, crc });
            end = block_end;
        }
        tails.bytes_dropped += size.saturating_sub(end);
        Ok(end)
    }

    fn existing(&self, id: FileId) -> Result<Option<Arc<dyn IoFile>>, BlockFileError> {
        match self.handle(id, false) {
            Err(BlockFileError::Io { source, .. }) if source.kind() == io::ErrorKind::NotFound => {
                Ok(None)
            }
            other => other.map(Some),
        }
    }

    fn size(&self, id: FileId, file: &dyn IoFile) -> Result<u64, BlockFileError> {
        file.size().map_err(|source| self.io_error(id, source))
    }

    fn cut(&self, id: FileId, end: u64) -> Result<(), BlockFileError> {
        let file = self.handle(id, true)?;
        let size = self.size(id, &*file)?;
        // A file shorter than its data in the index lost bytes in a power cut; the gap keeps positions apart.
        if size > end {
            file.set_size(end).map_err(|source| self.io_error(id, source))?;
        }
        Ok(())
    }

    /// Appends a raw block. When this returns, the block survives the death of the process.
    ///
    /// # Errors
    /// On an I/O error nothing was appended.
    pub fn append_block(&self, raw: &[u8]) -> Result<BlockPos, BlockFileError> {
        let pos = self.reserve_block(raw)?;
        self.write_reserved(pos, raw).map(|()| pos)
    }

    /// Reserves a position for [`BlockStore::write_reserved`]; it must not enter the index before that write.
    pub fn reserve_block(&self, raw: &[u8]) -> Result<BlockPos, BlockFileError> {
        let too_long = BlockFileError::Size { size: raw.len() as u64 };
        let Ok(size) = u32::try_from(raw.len()) else { return Err(too_long) };
        let crc = crc32fast::hash(raw);
        let mut writer = self.writer.lock();
        let record_bytes = FRAME_BYTES as u64 + u64::from(size);
        let (file, start) = self.rotate(writer.file, writer.end, record_bytes)?;
        let Ok(offset) = u32::try_from(start + FRAME_BYTES as u64) else { return Err(too_long) };
        (writer.file, writer.end) = (file, start + record_bytes);
        Ok(BlockPos { file, offset, size, crc })
    }

    /// Writes a raw block at its reserved position. When this returns, the block survives the death of the process.
    ///
    /// # Errors
    /// After an I/O error nothing valid was written, and the reservation is released unless a later one exists in the file.
    pub fn write_reserved(&self, pos: BlockPos, raw: &[u8]) -> Result<(), BlockFileError> {
        point(Point::BlockAppend);
        let (id, start) = (FileId::Block(pos.file), u64::from(pos.offset) - FRAME_BYTES as u64);
        let file = self.handle(id, true).inspect_err(|_| self.give_back(pos, None))?;
        let written = self
            .write(&*file, &self.frame(pos.size), start)
            .and_then(|()| self.write(&*file, raw, u64::from(pos.offset)));
        if let Err(source) = written {
            self.give_back(pos, Some(&*file));
            return Err(self.io_error(id, source));
        }
        point(Point::BlockAppended);
        let mut writer = self.writer.lock();
        // A sync since then may have missed this file.
        writer.names_dirty |= start == 0;
        writer.dirty.insert(id);
        self.note_length(&mut writer, id, pos.end());
        Ok(())
    }

    /// Releases an unused reservation, unless a later one exists in the file.
    fn give_back(&self, pos: BlockPos, file: Option<&dyn IoFile>) {
        let mut writer = self.writer.lock();
        if (writer.file, writer.end) == (pos.file, pos.end()) {
            writer.end = u64::from(pos.offset) - FRAME_BYTES as u64;
            // Bytes after the end are not data and get overwritten; cutting them only saves disk space.
            file.and_then(|file| file.set_size(writer.end).ok());
        }
    }

    /// Records the new length after a write up to `end`.
    fn note_length(&self, writer: &mut Writer, id: FileId, end: u64) {
        let length = writer.lengths.entry(id).or_default();
        let grown = end.saturating_sub(*length);
        *length += grown;
        self.bytes.fetch_add(grown, Ordering::Relaxed);
    }

    /// Position for a record of this length: at `end` of the file, or at the start of the next file.
    fn rotate(&self, file: u32, end: u64, record_bytes: u64) -> Result<(u32, u64), BlockFileError> {
        if end == 0 || end + record_bytes <= self.file_bytes_max {
            return Ok((file, end));
        }
        let file = file + 1;
        if file > FILE_NUMBER_MAX {
            return Err(BlockFileError::FileNumber { file });
        }
        Ok((file, 0))
    }

    /// Reads a block and checks its framing and its CRC.
    ///
    /// # Errors
    /// Damage (see [`BlockFileError::is_damage`]) or an I/O error.
    pub fn read_block(&self, pos: BlockPos) -> Result<Vec<u8>, BlockFileError> {
        let id = FileId::Block(pos.file);
        let raw = self.read_record(id, u64::from(pos.offset), pos.size, pos.size as usize)?;
        if crc32fast::hash(&raw) != pos.crc {
            let path = self.path(id);
            return Err(BlockFileError::Checksum { path, offset: u64::from(pos.offset) });
        }
        Ok(raw)
    }

    /// Reads `length` bytes from `offset` of a block, such as one transaction, and checks its framing alone.
    ///
    /// # Errors
    /// [`BlockFileError::Size`] if the part is not inside the block; damage; or an I/O error.
    pub fn read_block_part(
        &self,
        pos: BlockPos,
        offset: u32,
        length: u32,
    ) -> Result<Vec<u8>, BlockFileError> {
        // Check before allocating: the length may be arbitrary.
        check_part(pos, offset, u64::from(length))?;
        let mut part = vec![0u8; length as usize];
        self.read_block_into(pos, offset, &mut part)?;
        Ok(part)
    }

    /// [`BlockStore::read_block_part`] without disk reads; `None` if the bytes are not in the page cache or the read fails.
    pub fn cached_block_part(&self, pos: BlockPos, offset: u32, length: u32) -> Option<Vec<u8>> {
        check_part(pos, offset, u64::from(length)).ok()?;
        let file = self.open_handle(FileId::Block(pos.file))?;
        let read = |length: usize, at: u64| {
            let mut bytes = vec![0u8; length];
            file.read_cached_at(&mut bytes, at).then(|| {
                self.key.apply(&mut bytes, at);
                bytes
            })
        };
        let start = u64::from(pos.offset).checked_sub(FRAME_BYTES as u64)?;
        read(FRAME_BYTES, start).filter(|frame| *frame == self.frame(pos.size))?;
        read(length as usize, u64::from(pos.offset) + u64::from(offset))
    }

    /// [`BlockStore::read_block_part`] into an existing buffer.
    pub fn read_block_into(
        &self,
        pos: BlockPos,
        offset: u32,
        part: &mut [u8],
    ) -> Result<(), BlockFileError> {
        check_part(pos, offset, part.len() as u64)?;
        let id = FileId::Block(pos.file);
        let file = self.open_record(id, u64::from(pos.offset), pos.size)?;
        self.read(id, &*file, part, u64::from(pos.offset) + u64::from(offset))?;
        // Keep the handle for [`BlockStore::cached_block_part`].
        let mut handles = self.handles.lock();
        if handles.len() >= HANDLES_MAX {
            handles.clear();
        }
        handles.entry(id).or_insert(file);
        Ok(())
    }

    /// Appends the undo data of the block `block_hash`, with a checksum over both. The number of its file is at least
    /// `block_file`, the number of the block's file, because programs that read Core's files expect as many undo files as block
    /// files.
    ///
    /// # Errors
    /// After an I/O error nothing was appended.
    pub fn append_undo(
        &self,
        block_file: u32,
        block_hash: &BlockHash,
        undo: &[u8],
    ) -> Result<UndoPos, BlockFileError> {
        let too_long = BlockFileError::Size { size: undo.len() as u64 };
        let Ok(size) = u32::try_from(undo.len()) else { return Err(too_long) };
        point(Point::UndoAppend);
        let checksum = undo_checksum(block_hash, undo);
        let mut record = Vec::with_capacity(FRAME_BYTES + undo.len() + CHECKSUM_BYTES);
        record.extend_from_slice(&self.frame(size));
        record.extend_from_slice(undo);
        record.extend_from_slice(&checksum);
        let mut writer = self.writer.lock();
        if block_file > writer.undo_file {
            (writer.undo_file, writer.undo_end) = (block_file, 0);
        }
        let (file, start) = self.rotate(writer.undo_file, writer.undo_end, record.len() as u64)?;
        (writer.undo_file, writer.undo_end) = (file, start);
        let Ok(offset) = u32::try_from(start + FRAME_BYTES as u64) else { return Err(too_long) };
        let id = FileId::Undo(file);
        let handle = self.handle(id, true)?;
        writer.names_dirty |= start == 0;
        writer.dirty.insert(id);
        if let Err(source) = self.write(&*handle, &record, start) {
            handle.set_size(start).ok();
            return Err(self.io_error(id, source));
        }
        let pos = UndoPos { file, offset, size };
        writer.undo_end = pos.end();
        self.note_length(&mut writer, id, pos.end());
        Ok(pos)
    }

    /// Reads the undo data of the block `block_hash` and checks framing and checksum.
    ///
    /// # Errors
    /// Damage (see [`BlockFileError::is_damage`]) or an I/O error.
    pub fn read_undo(
        &self,
        pos: UndoPos,
        block_hash: &BlockHash,
    ) -> Result<Vec<u8>, BlockFileError> {
        let id = FileId::Undo(pos.file);
        let offset = u64::from(pos.offset);
        let length = pos.size as usize;
        let mut record = self.read_record(id, offset, pos.size, length + CHECKSUM_BYTES)?;
        let (undo, checksum) = record.split_at(length);
        if undo_checksum(block_hash, undo) != *checksum {
            return Err(BlockFileError::Checksum { path: self.path(id), offset });
        }
        record.truncate(length);
        Ok(record)
    }

    /// Makes everything appended so far survive a power cut.
    ///
    /// # Errors
    /// After an I/O error the data are still considered unsynced.
    pub fn sync(&self) -> Result<(), BlockFileError> {
        let (dirty, names_dirty) = {
            let mut writer = self.writer.lock();
            (std::mem::take(&mut writer.dirty), std::mem::take(&mut writer.names_dirty))
        };
        // Without the lock: appends continue during the sync.
        let result = self.sync_files(&dirty, names_dirty);
        if result.is_err() {
            let mut writer = self.writer.lock();
            writer.dirty.extend(dirty);
            writer.names_dirty |= names_dirty;
        }
        result
    }

    /// [`BlockStore::sync`] of all files, including files written by an earlier process.
    pub(crate) fn sync_all(&self) -> Result<(), BlockFileError> {
        let failed = |source| BlockFileError::Io { path: self.dir.clone(), source };
        let names = self.io.list(&self.dir).map_err(failed)?;
        self.writer.lock().dirty.extend(names.iter().filter_map(|name| FileId::parse(name)));
        self.sync()
    }

    fn sync_files(
        &self,
        dirty: &BTreeSet<FileId>,
        names_dirty: bool,
    ) -> Result<(), BlockFileError> {
        for &id in dirty {
            let file = self.handle(id, false)?;
            file.sync_data().map_err(|source| self.io_error(id, source))?;
        }
        if names_dirty {
            let failed = |source| BlockFileError::Io { path: self.dir.clone(), source };
            self.io.sync_dir(&self.dir).map_err(failed)?;
        }
        Ok(())
    }

    /// Reads `length` bytes from `offset` of a record whose framing is checked.
    fn read_record(
        &self,
        id: FileId,
        offset: u64,
        size: u32,
        length: usize,
    ) -> Result<Vec<u8>, BlockFileError> {
        let file = self.open_record(id, offset, size)?;
        let mut data = vec![0u8; length];
        self.read(id, &*file, &mut data, offset)?;
        Ok(data)
    }

    /// Opens a file and checks the framing at `offset - 8`. Missing or unwritten (preallocated) data is an error, not zeros.
    fn open_record(
        &self,
        id: FileId,
        offset: u64,
        size: u32,
    ) -> Result<Arc<dyn IoFile>, BlockFileError> {
        point(Point::ArchiveRead);
        let wrong = || BlockFileError::Framing { path: self.path(id), offset, size };
        let start = offset.checked_sub(FRAME_BYTES as u64).ok_or_else(wrong)?;
        // Open by name, as Core does: this detects a file removed during operation at once instead of at the next start.
        let file = match self.io.open(&self.path(id), false) {
            Err(source) if source.kind() == io::ErrorKind::NotFound => {
                return Err(BlockFileError::Short { path: self.path(id), offset });
            }
            other => other.map_err(|source| self.io_error(id, source))?,
        };
        let mut frame = [0u8; FRAME_BYTES];
        self.read(id, &*file, &mut frame, start)?;
        if frame != self.frame(size) {
            return Err(wrong());
        }
        Ok(file)
    }

    fn read(
        &self,
        id: FileId,
        file: &dyn IoFile,
        buffer: &mut [u8],
        offset: u64,
    ) -> Result<(), BlockFileError> {
        file.read_exact_at(buffer, offset).map_err(|source| {
            if source.kind() == io::ErrorKind::UnexpectedEof {
                BlockFileError::Short { path: self.path(id), offset }
            } else {
                self.io_error(id, source)
            }
        })?;
        self.key.apply(buffer, offset);
        Ok(())
    }

    fn write(&self, file: &dyn IoFile, plain: &[u8], offset: u64) -> io::Result<()> {
        if self.key == XorKey::NONE {
            return file.write_all_at(plain, offset);
        }
        let mut bytes = plain.to_vec();
        self.key.apply(&mut bytes, offset);
        file.write_all_at(&bytes, offset)
    }

    fn frame(&self, size: u32) -> [u8; FRAME_BYTES] {
        let mut frame = [0u8; FRAME_BYTES];
        frame[..4].copy_from_slice(&self.magic);
        frame[4..].copy_from_slice(&size.to_le_bytes());
        frame
    }

    /// Returns an open handle, unless another thread holds the lock.
    fn open_handle(&self, id: FileId) -> Option<Arc<dyn IoFile>> {
        self.handles.try_lock()?.get(&id).map(Arc::clone)
    }

    fn handle(&self, id: FileId, create: bool) -> Result<Arc<dyn IoFile>, BlockFileError> {
        let mut handles = self.handles.lock();
        if let Some(file) = handles.get(&id) {
            return Ok(Arc::clone(file));
        }
        if handles.len() >= HANDLES_MAX {
            handles.clear();
        }
        let opened = self.io.open(&self.path(id), create);
        let file = opened.map_err(|source| self.io_error(id, source))?;
        handles.insert(id, Arc::clone(&file));
        Ok(file)
    }

    fn path(&self, id: FileId) -> PathBuf {
        self.dir.join(match id {
            FileId::Block(number) => format!("blk{number:05}.dat"),
            FileId::Undo(number) => format!("rev{number:05}.dat"),
        })
    }

    fn io_error(&self, id: FileId, source: io::Error) -> BlockFileError {
        BlockFileError::Io { path: self.path(id), source }
    }
}

/// True if the part lies in the block.
fn check_part(pos: BlockPos, offset: u32, length: u64) -> Result<(), BlockFileError> {
    let end = u64::from(offset) + length;
    if end > u64::from(pos.size) { Err(BlockFileError::Size { size: end }) } else { Ok(()) }
}

fn undo_checksum(block_hash: &BlockHash, undo: &[u8]) -> [u8; CHECKSUM_BYTES] {
    let mut hasher = Sha256::new();
    hasher.update(&block_hash.0);
    hasher.update(undo);
    hasher.finalize_double()
}

/// Magic and length before each record, as in Core.
pub(crate) const FRAME_BYTES: usize = 8;

const CHECKSUM_BYTES: usize = 32;

/// Upper bound of the file length limit: every record offset fits in 32 bits.
const FILE_BYTES_LIMIT: u64 = u32::MAX as u64;

/// Largest number with five digits.
const FILE_NUMBER_MAX: u32 = 99_999;

/// Limit of open files; far below any descriptor limit.
const HANDLES_MAX: usize = 64;
