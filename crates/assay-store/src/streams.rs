//! Files of several streams of bytes, written once and then only read: what a sort on disk leaves between its steps.
//!
//! Pieces are appended to any stream in any order; a table at the end finds those of each. A file is written under another name
//! and renamed when it is whole, so whatever has its name is finished. Layout: `docs/formats.md`.

use std::fs::{self, File};
use std::io::{self, BufWriter, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Writes a file of streams.
#[derive(Debug)]
pub struct StreamsWriter {
    path: PathBuf,
    fresh: PathBuf,
    file: BufWriter<File>,
    end: u64,
    /// Pieces of each stream.
    pieces: Vec<Vec<Piece>>,
}

/// A piece of a stream.
#[derive(Clone, Copy, Debug)]
struct Piece {
    offset: u64,
    bytes: u32,
    checksum: u32,
}

impl StreamsWriter {
    /// Begins a file with so many streams; `id` says what it belongs to.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn create(path: &Path, id: [u8; 32], streams: u32) -> io::Result<Self> {
        let fresh = fresh_name(path);
        let mut file = BufWriter::with_capacity(BUFFER_BYTES, File::create(&fresh)?);
        file.write_all(&[TITLE, &id[..]].concat())?;
        let pieces = (0..streams).map(|_| Vec::new()).collect();
        Ok(Self { path: path.to_path_buf(), fresh, file, end: HEAD_BYTES, pieces })
    }

    /// Appends a piece to a stream; one without bytes leaves nothing. Records do not span pieces.
    ///
    /// # Errors
    /// It cannot be written, or has 4 GiB or more.
    pub fn append<'b>(
        &mut self,
        stream: u32,
        parts: impl IntoIterator<Item = &'b [u8]>,
    ) -> io::Result<()> {
        let mut checksum = checksum_of(stream);
        let mut bytes = 0u64;
        for part in parts {
            checksum.update(part);
            bytes += part.len() as u64;
            self.file.write_all(part)?;
        }
        let offset = self.end;
        self.end += bytes;
        let bytes = u32::try_from(bytes).map_err(io::Error::other)?;
        if bytes > 0 {
            let piece = Piece { offset, bytes, checksum: checksum.finalize() };
            self.pieces[stream as usize].push(piece);
        }
        Ok(())
    }

    /// Writes the table, syncs the file and gives it its name.
    ///
    /// # Errors
    /// The operating system refuses.
    pub fn finish(mut self) -> io::Result<()> {
        let (mut table, mut directory, mut first) = (Vec::new(), Vec::new(), 0u32);
        for (pieces, stream) in self.pieces.iter().zip(0..) {
            let start = table.len();
            for Piece { offset, bytes, checksum } in pieces {
                table.extend_from_slice(&offset.to_le_bytes());
                table.extend_from_slice(&bytes.to_le_bytes());
                table.extend_from_slice(&checksum.to_le_bytes());
            }
            directory.push((first, checksum_of_entries(stream, &table[start..])));
            first += u32::try_from(pieces.len()).map_err(io::Error::other)?;
        }
        for (first, checksum) in directory {
            table.extend_from_slice(&first.to_le_bytes());
            table.extend_from_slice(&checksum.to_le_bytes());
        }
        table.extend_from_slice(&trailer(self.end, first, self.pieces.len() as u32));
        self.file.write_all(&table)?;
        self.file.flush()?;
        self.file.get_ref().sync_all()?;
        fs::rename(&self.fresh, &self.path)
    }
}

impl Drop for StreamsWriter {
    fn drop(&mut self) {
        // Gone already where it was renamed.
        let _ = fs::remove_file(&self.fresh);
    }
}

/// The name that a file has until it is whole: of this process, so that two that write the same one do not meet.
pub fn fresh_name(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(format!(".{}.new", std::process::id()));
    name.into()
}

/// A finished file of streams.
#[derive(Debug)]
pub struct StreamsFile {
    path: Arc<PathBuf>,
    table: u64,
    entries: u32,
    streams: u32,
}

impl StreamsFile {
    /// Opens a file and looks at its end.
    ///
    /// # Errors
    /// It cannot be read, is none, or belongs to something else; of kind `InvalidData` unless the operating system refuses.
    pub fn open(path: &Path, id: [u8; 32]) -> io::Result<Self> {
        let mut file = File::open(path)?;
        let size = file.metadata()?.len();
        let mut head = [0; HEAD_BYTES as usize];
        let mut end = [0; TRAILER_BYTES as usize];
        if size < HEAD_BYTES + TRAILER_BYTES {
            return Err(damaged("it is too short"));
        }
        file.read_exact(&mut head)?;
        if head[..TITLE.len()] != *TITLE {
            return Err(damaged("it is another kind of file"));
        }
        if head[TITLE.len()..] != id {
            return Err(damaged("it belongs to another shuffle"));
        }
        file.seek(SeekFrom::Start(size - TRAILER_BYTES))?;
        file.read_exact(&mut end)?;
        let table = u64::from_le_bytes(end[..8].try_into().expect("eight bytes"));
        let word = |at: usize| u32::from_le_bytes(end[at..at + 4].try_into().expect("four bytes"));
        let (entries, streams) = (word(8), word(12));
        let table_bytes =
            u64::from(entries) * ENTRY_BYTES + u64::from(streams) * DIRECTORY_BYTES + TRAILER_BYTES;
        let is_whole = end == trailer(table, entries, streams)
            && table >= HEAD_BYTES
            && table.checked_add(table_bytes) == Some(size);
        if !is_whole {
            return Err(damaged("its end is damaged"));
        }
        Ok(Self { path: Arc::new(path.to_path_buf()), table, entries, streams })
    }

    /// Number of streams.
    pub fn streams(&self) -> u32 {
        self.streams
    }

    /// A stream, to be read from its beginning.
    ///
    /// # Errors
    /// As [`StreamsFile::open`].
    ///
    /// # Panics
    /// If there is no such stream.
    pub fn stream(&self, stream: u32) -> io::Result<StreamReader> {
        assert!(stream < self.streams, "no stream {stream} of {}", self.streams);
        let mut file = File::open(&*self.path)?;
        let directory = self.table + u64::from(self.entries) * ENTRY_BYTES;
        file.seek(SeekFrom::Start(directory + u64::from(stream) * DIRECTORY_BYTES))?;
        // The next stream begins where this one ends; the last one ends with the table.
        let mut words = [0; DIRECTORY_BYTES as usize + 4];
        let is_last = stream + 1 == self.streams;
        let known = if is_last { DIRECTORY_BYTES as usize } else { words.len() };
        file.read_exact(&mut words[..known])?;
        let word =
            |at: usize| u32::from_le_bytes(words[at..at + 4].try_into().expect("four bytes"));
        let (first, checksum) = (word(0), word(4));
        let last = if is_last { self.entries } else { word(8) };
        if first > last || last > self.entries {
            return Err(damaged("its table is damaged"));
        }
        let mut entries = vec![0; ((last - first) as u64 * ENTRY_BYTES) as usize];
        file.seek(SeekFrom::Start(self.table + u64::from(first) * ENTRY_BYTES))?;
        file.read_exact(&mut entries)?;
        if checksum_of_entries(stream, &entries) != checksum {
            return Err(damaged("its table is damaged"));
        }
        let mut pieces = Vec::with_capacity(entries.len() / ENTRY_BYTES as usize);
        for entry in entries.as_chunks::<{ ENTRY_BYTES as usize }>().0 {
            let offset = u64::from_le_bytes(entry[..8].try_into().expect("eight bytes"));
            let word =
                |at: usize| u32::from_le_bytes(entry[at..at + 4].try_into().expect("four bytes"));
            let piece = Piece { offset, bytes: word(8), checksum: word(12) };
            let end = offset.checked_add(piece.bytes.into());
            if offset < HEAD_BYTES || end.is_none_or(|end| end > self.table) {
                return Err(damaged("its table is damaged"));
            }
            pieces.push(piece);
        }
        let left = pieces.iter().map(|piece| u64::from(piece.bytes)).sum();
        let path = Arc::clone(&self.path);
        Ok(StreamReader { path, stream, pieces: pieces.into_iter(), at: None, left })
    }
}

/// Reads a stream. It holds no file open between two reads, since thousands are read at a time: give it a buffer.
#[derive(Debug)]
pub struct StreamReader {
    path: Arc<PathBuf>,
    stream: u32,
    pieces: std::vec::IntoIter<Piece>,
    /// The piece that is read: what is left of it, and the checksum of what was read.
    at: Option<(Piece, crc32fast::Hasher)>,
    left: u64,
}

impl StreamReader {
    /// Bytes that are still to come.
    pub fn bytes_left(&self) -> u64 {
        self.left
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Read for StreamReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let (stream, next) = (self.stream, &mut self.pieces);
        if self.at.is_none() {
            self.at = next.next().map(|piece| (piece, checksum_of(stream)));
        }
        let Some((piece, checksum)) = &mut self.at else { return Ok(0) };
        let wanted = buffer.len().min(piece.bytes as usize);
        let mut file = File::open(&*self.path)?;
        file.seek(SeekFrom::Start(piece.offset))?;
        file.read_exact(&mut buffer[..wanted])?;
        checksum.update(&buffer[..wanted]);
        piece.offset += wanted as u64;
        piece.bytes -= wanted as u32;
        self.left -= wanted as u64;
        if piece.bytes == 0
            && let Some((piece, checksum)) = self.at.take()
            && checksum.finalize() != piece.checksum
        {
            return Err(damaged("a piece is damaged"));
        }
        Ok(wanted)
    }
}

fn damaged(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("{what}; remove the file and make it again"))
}

fn checksum_of(stream: u32) -> crc32fast::Hasher {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(&stream.to_le_bytes());
    hasher
}

fn checksum_of_entries(stream: u32, entries: &[u8]) -> u32 {
    let mut hasher = checksum_of(stream);
    hasher.update(entries);
    hasher.finalize()
}

fn trailer(table: u64, entries: u32, streams: u32) -> [u8; TRAILER_BYTES as usize] {
    let mut out = [0; TRAILER_BYTES as usize];
    out[..8].copy_from_slice(&table.to_le_bytes());
    out[8..12].copy_from_slice(&entries.to_le_bytes());
    out[12..16].copy_from_slice(&streams.to_le_bytes());
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(&out[..16]);
    out[16..].copy_from_slice(&hasher.finalize().to_le_bytes());
    out
}

/// Name and version of the format.
const TITLE: &[u8; 16] = b"assay streams 1\n";
/// The title, and what the file belongs to.
const HEAD_BYTES: u64 = 48;
/// Offset (8), length and checksum of a piece.
const ENTRY_BYTES: u64 = 16;
/// The first entry of a stream, and the checksum of all its entries.
const DIRECTORY_BYTES: u64 = 8;
/// Where the table begins (8), entries, streams, checksum of these.
const TRAILER_BYTES: u64 = 20;
/// What is written at a time.
const BUFFER_BYTES: usize = 1 << 20;

#[cfg(test)]
mod tests {
    use super::*;

    const ID: [u8; 32] = [5; 32];

    fn file(dir: &Path) -> PathBuf {
        let path = dir.join("some.bin");
        let mut writer = StreamsWriter::create(&path, ID, 4).unwrap();
        writer.append(2, [&b"one"[..], b"two"]).unwrap();
        writer.append(0, [&b"zero"[..]]).unwrap();
        writer.append(3, []).unwrap();
        assert!(!path.exists());
        writer.append(2, [&b"three"[..]]).unwrap();
        writer.finish().unwrap();
        path
    }

    fn read(path: &Path, stream: u32, at_once: usize) -> io::Result<Vec<u8>> {
        let mut stream = StreamsFile::open(path, ID)?.stream(stream)?;
        let mut all = Vec::new();
        io::BufReader::with_capacity(at_once, &mut stream).read_to_end(&mut all)?;
        assert_eq!(stream.bytes_left(), 0);
        Ok(all)
    }

    #[test]
    fn streams_come_back_whole() {
        let dir = tempfile::tempdir().unwrap();
        let path = file(dir.path());
        for at_once in [1, 2, 5, 100] {
            let all: Vec<_> = (0..4).map(|stream| read(&path, stream, at_once).unwrap()).collect();
            assert_eq!(all, [&b"zero"[..], b"", b"onetwothree", b""]);
        }
        let left = fs::read_dir(dir.path()).unwrap().count();
        assert_eq!(left, 1, "nothing but the file");
        let error = StreamsFile::open(&path, [6; 32]).unwrap_err();
        assert!(error.to_string().contains("another shuffle"), "{error}");
    }

    #[test]
    fn every_changed_byte_and_every_cut_is_found() {
        let dir = tempfile::tempdir().unwrap();
        let path = file(dir.path());
        let right = fs::read(&path).unwrap();
        let all = || (0..4).map(|stream| read(&path, stream, 7)).collect::<io::Result<Vec<_>>>();
        for at in 0..right.len() {
            for bit in 0..8 {
                let mut bytes = right.clone();
                bytes[at] ^= 1 << bit;
                fs::write(&path, &bytes).unwrap();
                assert!(all().is_err(), "bit {bit} of byte {at}");
            }
            fs::write(&path, &right[..at]).unwrap();
            assert!(all().is_err(), "cut at {at}");
        }
        fs::write(&path, &right).unwrap();
        all().unwrap();
    }

    #[test]
    fn a_file_that_was_given_up_leaves_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let mut writer = StreamsWriter::create(&dir.path().join("x"), ID, 1).unwrap();
        writer.append(0, [&b"abc"[..]]).unwrap();
        drop(writer);
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
    }
}
