//! A file as Bitcoin Core's `AutoFile` was before the report: every field goes through the obfuscation byte by byte and then
//! through the small buffer of the C library's stream.

use std::fs::File;
use std::io::{self, BufReader, BufWriter, Read, Seek, SeekFrom, Write};
use std::path::Path;

use assay_hash::Sha256;

use super::serial::{Sink, Source};

/// Bytes of the C library's buffer, and of the one through which `AutoFile` obfuscates.
const STREAM_BYTES: usize = 4096;

/// Combines bytes at `offset` of their file with the key, one by one, counting through the key as Core's `util::Xor` did.
pub(super) fn xor_bytewise(bytes: &mut [u8], key: [u8; 8], offset: u64) {
    let mut at = (offset % key.len() as u64) as usize;
    for byte in bytes {
        *byte ^= key[at];
        at += 1;
        if at == key.len() {
            at = 0;
        }
    }
}

/// The same by words of eight bytes, as the report does it; how wide the machine's steps are is up to the compiler.
pub(super) fn xor_wordwise(bytes: &mut [u8], mut key: [u8; 8], offset: u64) {
    key.rotate_left((offset % 8) as usize);
    let word = u64::from_ne_bytes(key);
    let (words, rest) = bytes.as_chunks_mut::<8>();
    for chunk in words {
        *chunk = (u64::from_ne_bytes(*chunk) ^ word).to_ne_bytes();
    }
    for (byte, key) in rest.iter_mut().zip(key) {
        *byte ^= key;
    }
}

/// Writes fields.
pub(super) struct StreamWriter {
    file: BufWriter<File>,
    key: [u8; 8],
    position: u64,
    buffer: [u8; STREAM_BYTES],
}

impl StreamWriter {
    /// Appends to `file`, whose length is `position`.
    pub(super) fn new(file: File, key: [u8; 8], position: u64) -> Self {
        let file = BufWriter::with_capacity(STREAM_BYTES, file);
        Self { file, key, position, buffer: [0; STREAM_BYTES] }
    }

    pub(super) fn finish(mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl Sink for StreamWriter {
    fn put(&mut self, bytes: &[u8]) -> io::Result<()> {
        for part in bytes.chunks(STREAM_BYTES) {
            let buffer = &mut self.buffer[..part.len()];
            buffer.copy_from_slice(part);
            xor_bytewise(buffer, self.key, self.position);
            self.file.write_all(buffer)?;
            self.position += part.len() as u64;
        }
        Ok(())
    }
}

/// Reads fields.
pub(super) struct StreamReader {
    file: BufReader<File>,
    key: [u8; 8],
    position: u64,
}

impl StreamReader {
    pub(super) fn open(path: &Path, key: [u8; 8], position: u64) -> io::Result<Self> {
        let mut file = BufReader::with_capacity(STREAM_BYTES, File::open(path)?);
        file.seek(SeekFrom::Start(position))?;
        Ok(Self { file, key, position })
    }
}

impl Source for StreamReader {
    fn get(&mut self, buffer: &mut [u8]) -> io::Result<()> {
        self.file.read_exact(buffer)?;
        xor_bytewise(buffer, self.key, self.position);
        self.position += buffer.len() as u64;
        Ok(())
    }
}

/// Hashes what goes through, field by field (Core's `HashVerifier` and `HashWriter`).
pub(super) struct Hashed<'s, S> {
    pub(super) inner: &'s mut S,
    pub(super) hasher: Sha256,
}

impl<S: Sink> Sink for Hashed<'_, S> {
    fn put(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.hasher.update(bytes);
        self.inner.put(bytes)
    }
}

impl<S: Source> Source for Hashed<'_, S> {
    fn get(&mut self, buffer: &mut [u8]) -> io::Result<()> {
        self.inner.get(buffer)?;
        self.hasher.update(buffer);
        Ok(())
    }
}
