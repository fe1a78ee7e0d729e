//! Finds the records of a block file among arbitrary other bytes.

use memchr::memmem::Finder;

use super::{BlockFiles, BlockFilesError, BlockPlace};
use crate::blocks::FRAME_BYTES;

/// Result of a scan at one position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Finding {
    Block {
        place: BlockPlace,
        /// First bytes of the raw block.
        header: [u8; HEADER_BYTES],
    },
    /// Bytes that belong to no record.
    Stray {
        file: u32,
        /// Offset of the first of these bytes.
        offset: u64,
        bytes: u64,
        kind: StrayKind,
    },
}

/// Kind of the bytes outside records.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum StrayKind {
    /// Zeros: space that a node preallocated.
    Padding,
    /// A record that extends beyond the end of the file.
    Truncated,
    /// A valid record start, followed by bytes that are no block header.
    BadHeader,
    /// A valid record start with an impossible block length.
    BadLength,
    Garbage,
}

/// Criteria that separate records from random bytes.
pub struct RecordRules<'a> {
    /// Largest block length. Like Core, a scan skips records of a greater length (`validation.cpp`, `LoadExternalBlockFile`).
    pub bytes_max: u32,
    /// Returns true for a plausible block header, preferably by its proof of work.
    pub is_header: &'a (dyn Fn(&[u8; HEADER_BYTES]) -> bool + Sync),
}

impl StrayKind {
    pub fn describe(self) -> &'static str {
        match self {
            Self::Padding => "padding",
            Self::Truncated => "a record that is cut off",
            Self::BadHeader => "a record that does not begin with a header and its proof of work",
            Self::BadLength => "a record whose length no block can have",
            Self::Garbage => "garbage",
        }
    }
}

impl BlockFiles {
    /// Walks through one file and reports everything in it, in order. Reads headers, not blocks.
    ///
    /// `on_finding` also receives the position of the scan. After bytes that are no record, the search continues at the byte
    /// after the first of them, as in Core, and so finds records hidden by a damaged length. A record may be longer than its
    /// block.
    pub fn scan(
        &self,
        file: u32,
        rules: &RecordRules<'_>,
        on_finding: &mut dyn FnMut(Finding, u64),
    ) -> Result<(), BlockFilesError> {
        let mut scan = Scan {
            files: self,
            file,
            end: self.files()[file as usize].bytes,
            magic: Finder::new(&self.magic).into_owned(),
            rules,
        };
        scan.run(on_finding)
    }
}

struct Scan<'a> {
    files: &'a BlockFiles,
    file: u32,
    end: u64,
    magic: Finder<'static>,
    rules: &'a RecordRules<'a>,
}

/// Contents of a position where a record may start.
enum Candidate {
    Record { place: BlockPlace, header: [u8; HEADER_BYTES] },
    Other(StrayKind),
}

impl Scan<'_> {
    fn run(&mut self, on_finding: &mut dyn FnMut(Finding, u64)) -> Result<(), BlockFilesError> {
        let mut at = 0;
        // Start of the last record not hidden inside another one, and true if `at` is just after it.
        let mut last_record: Option<u64> = None;
        let mut is_after_record = false;
        while at < self.end {
            let kind = match self.candidate(at)? {
                Candidate::Record { place, header } => {
                    last_record = Some(at);
                    is_after_record = true;
                    at = place.offset + u64::from(place.size);
                    on_finding(Finding::Block { place, header }, at);
                    continue;
                }
                Candidate::Other(kind) => kind,
            };
            // No record follows: the length of the previous one may be wrong and hide others.
            if let Some(record) = last_record.filter(|_| is_after_record)
                && let Some(inside) = self.find_record(record, at)?
            {
                at = inside;
                continue;
            }
            let zeros_end = self.zeros_end(at)?;
            if zeros_end > at + ZEROS_MIN || zeros_end == self.end {
                at = self.padding(at, zeros_end, on_finding)?;
                is_after_record = false;
                continue;
            }
            let stop = self.find_record(at, self.end)?.unwrap_or(self.end);
            let (file, offset, bytes) = (self.file, at, stop - at);
            on_finding(Finding::Stray { file, offset, bytes, kind }, stop);
            at = stop;
            is_after_record = false;
        }
        Ok(())
    }

    /// Reports zeros up to their end, or up to a record that starts just before it: an obfuscated record may start with zeros.
    fn padding(
        &self,
        at: u64,
        zeros_end: u64,
        on_finding: &mut dyn FnMut(Finding, u64),
    ) -> Result<u64, BlockFilesError> {
        let from = at.max(zeros_end.saturating_sub(MAGIC_BYTES as u64 + 1));
        let to = (zeros_end + MAGIC_BYTES as u64).min(self.end);
        let stop = self.find_record(from, to)?.unwrap_or(zeros_end);
        let kind = StrayKind::Padding;
        on_finding(Finding::Stray { file: self.file, offset: at, bytes: stop - at, kind }, stop);
        Ok(stop)
    }

    fn candidate(&self, at: u64) -> Result<Candidate, BlockFilesError> {
        let mut head = [0u8; FRAME_BYTES + HEADER_BYTES];
        let have = head.len().min((self.end - at) as usize);
        self.files.read_at(self.file, at, &mut head[..have])?;
        if have < 4 || head[..4] != *self.magic.needle() {
            return Ok(Candidate::Other(StrayKind::Garbage));
        }
        if have < head.len() {
            return Ok(Candidate::Other(StrayKind::Truncated));
        }
        let size = u32::from_le_bytes([head[4], head[5], head[6], head[7]]);
        let mut header = [0u8; HEADER_BYTES];
        header.copy_from_slice(&head[FRAME_BYTES..]);
        if (size as usize) < HEADER_BYTES || !(self.rules.is_header)(&header) {
            return Ok(Candidate::Other(StrayKind::BadHeader));
        }
        let offset = at + FRAME_BYTES as u64;
        if offset + u64::from(size) > self.end {
            return Ok(Candidate::Other(StrayKind::Truncated));
        }
        if size > self.rules.bytes_max {
            return Ok(Candidate::Other(StrayKind::BadLength));
        }
        Ok(Candidate::Record { place: BlockPlace { file: self.file, offset, size }, header })
    }

    /// Start of the first record after `from` and before `to`.
    fn find_record(&self, from: u64, to: u64) -> Result<Option<u64>, BlockFilesError> {
        // The last magic may end after `to`.
        let end = (to + MAGIC_BYTES as u64 - 1).min(self.end);
        let mut window = vec![0u8; WINDOW_BYTES.min((end - from) as usize)];
        let mut start = from + 1;
        while start < end {
            let length = window.len().min((end - start) as usize);
            let window = &mut window[..length];
            self.files.read_at(self.file, start, window)?;
            for found in self.magic.find_iter(window) {
                let at = start + found as u64;
                if matches!(self.candidate(at)?, Candidate::Record { .. }) {
                    return Ok(Some(at));
                }
            }
            // The magic may cross the boundary of two windows.
            let is_last = start + length as u64 == end;
            start += if is_last { length } else { length - (MAGIC_BYTES - 1) } as u64;
        }
        Ok(None)
    }

    /// End of the zeros that start at `at`: zeros on disk, or zeros after deobfuscation.
    fn zeros_end(&self, at: u64) -> Result<u64, BlockFilesError> {
        let mut window = Vec::new();
        let (mut plain_end, mut raw_end) = (None, None);
        let mut start = at;
        // Usually there are none, so the first read is short.
        let mut bytes = 64;
        while start < self.end && (plain_end.is_none() || raw_end.is_none()) {
            window.resize(bytes.min((self.end - start) as usize), 0);
            self.files.read_at(self.file, start, &mut window)?;
            let first_other = |window: &[u8]| {
                window.iter().position(|byte| *byte != 0).map(|found| start + found as u64)
            };
            plain_end = plain_end.or(first_other(&window));
            self.files.key.apply(&mut window, start);
            raw_end = raw_end.or(first_other(&window));
            start += window.len() as u64;
            bytes = WINDOW_BYTES;
        }
        Ok(plain_end.unwrap_or(self.end).max(raw_end.unwrap_or(self.end)))
    }
}

pub(super) const HEADER_BYTES: usize = 80;

const MAGIC_BYTES: usize = 4;

/// Shorter runs of zeros are not padding.
const ZEROS_MIN: u64 = 8;

/// Bytes read at a time where records must be searched for.
const WINDOW_BYTES: usize = 1 << 20;
