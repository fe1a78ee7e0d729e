//! Reads the block progress of any node or index out of its log.
//!
//! [`Parser`] takes the bytes of a log in pieces of any size and says what each line is: a new tip
//! ([`Progress`]), the step times of a block ([`Steps`]), a start ([`Start`]), or a line that should
//! be one of these and is not ([`Fault`]). It keeps no more than one line, so it can follow a
//! process while it runs; who follows one stamps the events when they arrive, and has the log's own
//! clock beside that in [`Progress::stamp`].
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
//! [`Sessions`] turns events into a curve: time since the start, restarts and jumps of the clock
//! accounted for. [`read`] does both for a file, compressed or not.

mod core;
mod cursor;
mod electrum;
mod envelope;
mod format;
mod head;
mod others;
mod output;
mod page;
mod parser;
mod read;
mod sessions;
mod stamp;
mod steps;
mod summary;

pub use self::format::{Format, Meaning, RECOGNISED};
pub use self::output::{CSV_HEAD, SCHEMA, csv_row, json_row};
pub use self::page::{Charted, html, svg, terminal};
pub use self::parser::{Found, LINE_BYTES_MAX, Parser};
pub use self::read::{ReadError, Throughput, read};
pub use self::sessions::Sessions;
pub use self::stamp::Stamp;
pub use self::steps::{STEPS, Step, Steps};
pub use self::summary::{FaultCount, FileSummary, FormatCount, Row, SessionSummary, StepTotal};

/// What a line says.
#[derive(Debug, Clone, PartialEq)]
pub enum Event {
    /// How far the chain or index has come.
    Progress(Progress),
    /// The step times of a block, told by the last of the lines that belong to it.
    Steps(Steps),
    /// A program starts.
    Start(Start),
    /// How far the headers have come, which need no validation worth speaking of.
    Headers {
        height: u32,
        /// The log's own clock.
        stamp: Option<Stamp>,
    },
    /// An index waited for its node in vain.
    Timeout,
}

/// How far the chain or index has come.
#[derive(Debug, Clone, PartialEq)]
pub struct Progress {
    /// Whose line it is, and with that what it means ([`Format::meaning`]).
    pub format: Format,
    /// Height of the tip.
    pub height: u32,
    /// Hash of the tip as programs print it, most significant byte first, where it is there whole.
    pub hash: Option<[u8; 32]>,
    /// The log's own clock.
    pub stamp: Option<Stamp>,
    /// Transactions.
    pub txs: Txs,
    /// Blocks that the line speaks of, where it says so.
    pub blocks: Option<u32>,
    /// Time that the line speaks of in seconds, where it says so.
    pub seconds: Option<f64>,
    /// Memory of the cache in bytes; programs round it.
    pub cache_bytes: Option<u64>,
    pub cache_coins: Option<u64>,
    /// Inputs of the block.
    pub inputs: Option<u64>,
    /// Time in the block's header, in seconds since 1970.
    pub block_time: Option<i64>,
    /// Share of the whole chain that is done, as the program estimates it.
    pub share: Option<f64>,
    /// Whether this is the chain state below a snapshot (assumeutxo), validated in the background.
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

/// What a line says of transactions.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Txs {
    /// Nothing.
    Unknown,
    /// All of the chain up to here.
    Total(u64),
    /// Those since the line before.
    Since(u64),
    /// Those of the block; blocks between two lines are not told of.
    OfBlock(u64),
    /// As many per block since the line before; computed from two rates that the program rounds.
    PerBlock(f64),
}

/// A program starts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Start {
    /// Name and version as the line has them; empty where it has none.
    pub version: String,
    /// The log's own clock.
    pub stamp: Option<Stamp>,
}

/// Why a line that should be an event is none.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// A field is missing or is not what stands there in sound lines.
    #[error("{format}: {field} is missing or malformed")]
    Field {
        /// What the line begins as.
        format: &'static str,
        field: &'static str,
    },
    /// A tip without a time: what stands before it is in no form that is known.
    #[error("{format}: the prefix before it is not understood, so it has no time")]
    Prefix {
        /// What the line begins as.
        format: &'static str,
    },
    /// The log ends within a line.
    #[error("the log ends within this line")]
    Cut,
    /// The line is too long to be one.
    #[error("longer than {LINE_BYTES_MAX} bytes")]
    TooLong,
    /// The compressed data ends early or is damaged.
    #[error("compressed data: {reason}")]
    Compressed {
        /// What the decoder says.
        reason: String,
    },
}
