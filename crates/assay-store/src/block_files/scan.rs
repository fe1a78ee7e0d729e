//! Finding the records of a block file, whatever lies between them.

use memchr::memmem::Finder;

use super::{BlockFiles, BlockFilesError, BlockPlace};
use crate::blocks::FRAME_BYTES;

/// What a scan came across.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Finding {
    /// A record.
    Block {
        /// Where the raw block lies.
        place: BlockPlace,
        /// Its first bytes.
        header: [u8; HEADER_BYTES],
    },
    /// Bytes that belong to no record.
    Stray {
        /// Index of the file.
        file: u32,
        /// Where they begin.
        offset: u64,
        /// How many there are.
        bytes: u64,
        /// What they look like.
        kind: StrayKind,
    },
}

/// What bytes outside records look like.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum StrayKind {
    /// Zeros: room that a node reserved.
    Padding,
    /// A record that the file does not hold to its end.
    Truncated,
    /// A record that begins as it should, but with something other than a block header.
    BadHeader,
    /// Anything else.
    Garbage,
}

impl StrayKind {
    /// The kind in a few words.
    pub fn describe(self) -> &'static str {
        match self {
            Self::Padding => "padding",
            Self::Truncated => "a record that is cut off",
            Self::BadHeader => "a record that does not begin with a header and its proof of work",
            Self::Garbage => "bytes that are no record",
        }
    }
}

impl BlockFiles {
    /// Walks through one file and reports everything in it, in order; reads headers, not blocks.
    ///
    /// `is_header` says whether bytes can be a block header, best by its proof of work: records are told from chance by it.
    /// `on_finding` also learns how far the scan has come. A record whose length runs over a record that follows is
    /// reported with the room it really has.
    ///
    /// # Errors
    /// An I/O error.
    pub fn scan(
        &self,
        file: u32,
        is_header: &dyn Fn(&[u8; HEADER_BYTES]) -> bool,
        on_finding: &mut dyn FnMut(Finding, u64),
    ) -> Result<(), BlockFilesError> {
        let mut scan = Scan {
            files: self,
            file,
            end: self.files()[file as usize].bytes,
            magic: Finder::new(&self.magic).into_owned(),
            is_header,
        };
        scan.run(on_finding)
    }
}

struct Scan<'a> {
    files: &'a BlockFiles,
    file: u32,
    end: u64,
    magic: Finder<'static>,
    is_header: &'a dyn Fn(&[u8; HEADER_BYTES]) -> bool,
}

/// What lies at a position where a record may begin.
enum Candidate {
    Record { place: BlockPlace, header: [u8; HEADER_BYTES] },
    Other(StrayKind),
}

impl Scan<'_> {
    fn run(&mut self, on_finding: &mut dyn FnMut(Finding, u64)) -> Result<(), BlockFilesError> {
        let mut at = 0;
        // Held back until it is clear that what follows is where its length says.
        let mut pending: Option<(BlockPlace, [u8; HEADER_BYTES])> = None;
        while at < self.end {
            let kind = match self.candidate(at)? {
                Candidate::Record { place, header } => {
                    if let Some((place, header)) = pending.replace((place, header)) {
                        on_finding(Finding::Block { place, header }, at);
                    }
                    at = place.offset + u64::from(place.size);
                    continue;
                }
                Candidate::Other(kind) => kind,
            };
            // No record where one should follow: the length of the one before may be wrong.
            let mut swallowed = None;
            let (next, is_zero) = self.find_record(at, self.end)?;
            if let Some((place, _)) = &pending
                && !is_zero
            {
                let inside = place.offset + HEADER_BYTES as u64;
                swallowed = self.find_record(inside, at)?.0;
            }
            if let Some((mut place, header)) = pending.take() {
                if let Some(inner) = swallowed {
                    place.size = (inner - place.offset) as u32;
                }
                on_finding(Finding::Block { place, header }, at);
            }
            if let Some(inner) = swallowed {
                at = inner;
                continue;
            }
            let stop = next.unwrap_or(self.end);
            let kind = if is_zero { StrayKind::Padding } else { kind };
            let (file, offset, bytes) = (self.file, at, stop - at);
            on_finding(Finding::Stray { file, offset, bytes, kind }, stop);
            at = stop;
        }
        if let Some((place, header)) = pending {
            on_finding(Finding::Block { place, header }, self.end);
        }
        Ok(())
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
        if (size as usize) < HEADER_BYTES || !(self.is_header)(&header) {
            return Ok(Candidate::Other(StrayKind::BadHeader));
        }
        let offset = at + FRAME_BYTES as u64;
        if offset + u64::from(size) > self.end {
            return Ok(Candidate::Other(StrayKind::Truncated));
        }
        Ok(Candidate::Record { place: BlockPlace { file: self.file, offset, size }, header })
    }

    /// Where the first record after `from` begins that begins before `to`, and whether all bytes up to it are zero, be it
    /// on disk or with the obfuscation off.
    fn find_record(&self, from: u64, to: u64) -> Result<(Option<u64>, bool), BlockFilesError> {
        let mut window = vec![0u8; WINDOW_BYTES.min((to - from) as usize)];
        let (mut is_zero_plain, mut is_zero_raw) = (true, true);
        let mut start = from;
        while start < to {
            let length = window.len().min((to - start) as usize);
            let window = &mut window[..length];
            self.files.read_at(self.file, start, window)?;
            for found in self.magic.find_iter(window) {
                let at = start + found as u64;
                // What is known to be no record stands at `from`.
                if at > from && matches!(self.candidate(at)?, Candidate::Record { .. }) {
                    let is_zero =
                        self.is_zero(&mut window[..found], start, is_zero_plain, is_zero_raw);
                    return Ok((Some(at), is_zero.0 || is_zero.1));
                }
            }
            // The magic may lie across the border of two windows.
            let last = start + length as u64 == to;
            let step = if last { length } else { length - (MAGIC_BYTES - 1) };
            (is_zero_plain, is_zero_raw) =
                self.is_zero(&mut window[..step], start, is_zero_plain, is_zero_raw);
            start += step as u64;
        }
        Ok((None, is_zero_plain || is_zero_raw))
    }

    /// Whether bytes are zero with the obfuscation off, and with it on; destroys them.
    fn is_zero(&self, bytes: &mut [u8], offset: u64, plain: bool, raw: bool) -> (bool, bool) {
        let plain = plain && bytes.iter().all(|byte| *byte == 0);
        if !raw {
            return (plain, false);
        }
        self.files.key.apply(bytes, offset);
        (plain, bytes.iter().all(|byte| *byte == 0))
    }
}

/// Bytes of a block header.
const HEADER_BYTES: usize = 80;

const MAGIC_BYTES: usize = 4;

/// Bytes read at a time where records must be searched for.
const WINDOW_BYTES: usize = 1 << 20;
