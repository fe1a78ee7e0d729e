//! Extracts block progress from the log of any node or index.
//!
//! [`Parser`] accepts the bytes of a log in pieces of any size and classifies each line: a new tip ([`Progress`]), the step times
//! of a block ([`Steps`]), a start ([`Start`]), or a malformed line of these kinds ([`Fault`]). It buffers at most one line, so
//! it can follow a running process; the caller may then timestamp events on arrival, and compare with the log's own clock in
//! [`Progress::stamp`].
//!
//! ```
//! use assay_lab::logs::{Event, Format, Parser};
//!
//! let mut parser = Parser::new();
//! let mut heights = Vec::new();
//! let text = b"2014-06-27 12:59:10 UpdateTip: new best=00000000000000002a03b175f183c3bbc440f5c2a171e958bfd504582f711f70  height=308004  log2_work=79.405055  tx=41447698  date=2014-06-27 00:04:17 progress=0.998105\n";
//! for piece in text.chunks(7) {
//!     parser.feed(piece, &mut |found| {
//!         if let Ok(Event::Progress(progress)) = found.event {
//!             heights.push((found.line, progress.height, progress.format));
//!         }
//!     });
//! }
//! assert_eq!(heights, [(1, 308004, Format::Core0_9)]);
//! ```
//!
//! [`Sessions`] turns events into a curve: time since the start, corrected for restarts and jumps of the clock. [`read`] does
//! both for a file, compressed or not.

mod core;
mod cursor;
mod envelope;
mod format;
mod head;
mod others;
mod output;
mod parser;
mod read;
mod record;
mod sessions;
mod stamp;
mod steps;
mod summary;

pub use self::format::{Format, Meaning, RECOGNISED};
pub use self::output::{CSV_HEAD, SCHEMA, csv_row, json_row};
pub use self::parser::{Found, LINE_BYTES_MAX, Parser};
pub use self::read::{Throughput, read};
pub use self::record::{Charted, record};
pub use self::sessions::Sessions;
pub use self::stamp::Stamp;
pub use self::steps::{STEPS, Step, Steps};
pub use self::summary::{FaultCount, FileSummary, FormatCount, Row, SessionSummary, StepTotal};

#[derive(Debug, Clone, PartialEq)]
pub enum Event {
    Progress(Progress),
    /// Step times of a block, completed by the last of its lines.
    Steps(Steps),
    Start(Start),
    Headers {
        height: u32,
        /// The log's own clock.
        stamp: Option<Stamp>,
    },
    /// An index timed out waiting for its node.
    Timeout,
}

/// Progress of the chain or index.
#[derive(Debug, Clone, PartialEq)]
pub struct Progress {
    /// Source of the line, which determines its meaning ([`Format::meaning`]).
    pub format: Format,
    pub height: u32,
    /// Hash of the tip, most significant byte first, if complete.
    pub hash: Option<[u8; 32]>,
    pub stamp: Option<Stamp>,
    pub txs: Txs,
    /// Number of blocks that the line covers, if stated.
    pub blocks: Option<u32>,
    /// Seconds that the line covers, if stated.
    pub seconds: Option<f64>,
    /// Size of the cache in bytes, as rounded by the program.
    pub cache_bytes: Option<u64>,
    pub cache_coins: Option<u64>,
    pub inputs: Option<u64>,
    /// Time in the block header, in seconds since 1970.
    pub block_time: Option<i64>,
    /// Completed fraction of the chain, as the program estimates it.
    pub share: Option<f64>,
    /// True for the background chainstate below an assumeutxo snapshot.
    pub background: bool,
}

impl Progress {
    fn new(format: Format, height: u32) -> Self {
        Self {
            format,
            height,
            hash: None,
            stamp: None,
            txs: Txs::Unknown,
            blocks: None,
            seconds: None,
            cache_bytes: None,
            cache_coins: None,
            inputs: None,
            block_time: None,
            share: None,
            background: false,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Txs {
    Unknown,
    /// All of the chain up to here.
    Total(u64),
    /// Since the previous line.
    Since(u64),
    /// Of the block itself; blocks between two lines are not covered.
    OfBlock(u64),
    /// Mean per block since the previous line; computed from two rates that the program rounds.
    PerBlock(f64),
}

/// A program starts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Start {
    /// Name and version in the line; empty if absent.
    pub version: String,
    pub stamp: Option<Stamp>,
}

/// Reason to reject a line.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    #[error("{format}: {field} is missing or malformed")]
    Field {
        /// Format that the line begins as.
        format: &'static str,
        field: &'static str,
    },
    /// A tip without a time, because its prefix has no known form.
    #[error("{format}: the prefix before it is not understood, so it has no time")]
    Prefix {
        /// Format that the line begins as.
        format: &'static str,
    },
    #[error("the log ends within this line")]
    Cut,
    #[error("longer than {LINE_BYTES_MAX} bytes")]
    TooLong,
    /// The compressed data ends early or is damaged.
    #[error("compressed data: {reason}")]
    Compressed {
        /// Error of the decoder.
        reason: String,
    },
}
