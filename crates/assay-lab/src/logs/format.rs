//! Known formats and the meaning of their lines.

use std::fmt;

/// Source of a line. Versions with equal lines share a format.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Format {
    /// Bitcoin Core 0.7: work as a number, no transactions.
    Core0_7,
    /// Bitcoin Core 0.8.0 and 0.8.1: work as a number.
    Core0_8_0,
    /// Bitcoin Core 0.8.2 to 0.8.6.
    Core0_8_2,
    Core0_9,
    /// Bitcoin Core 0.10: cache in coins.
    Core0_10,
    /// Bitcoin Core 0.11 and 0.12: cache in MiB, two blanks between fields.
    Core0_11,
    /// Bitcoin Core 0.13 and 0.14: version, quoted date.
    Core0_13,
    /// Bitcoin Core 0.15 and 0.16: cache in `txo`.
    Core0_15,
    /// Bitcoin Core 0.17 to today, Knots, BCHN: ISO time.
    Core0_17,
    /// btcd, bchd.
    Btcd,
    BtcdIndex,
    /// bcoin, a block.
    Bcoin,
    /// bcoin, its status every 20 blocks.
    BcoinStatus,
    /// Fulcrum during the initial sync.
    Fulcrum,
    FulcrumTip,
    /// Fulcrum with `-d`, a block.
    FulcrumBlock,
    Electrs0_8,
    /// electrs 0.9 to 0.11, a batch begins.
    Electrs0_9Batch,
    /// electrs 0.9 to 0.11, the tip moved.
    Electrs0_9,
    /// electrs 0.12 and later (bindex).
    Electrs0_12,
    /// `ElectrumX`, progress.
    ElectrumX,
    ElectrumXFlush,
    Libbitcoin3,
    /// libbitcoin 4, its events file.
    Libbitcoin4,
}

/// Programs with recognised logs.
pub const RECOGNISED: &str = "Bitcoin Core 0.7 and later, Knots, BCHN, btcd, bchd, bcoin, libbitcoin 3 and 4, Fulcrum, \
                              electrs and ElectrumX, plain or gzip-compressed";

/// Blocks covered by one line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Meaning {
    /// One block; every block has a line.
    PerBlock,
    /// One block; some blocks have no line.
    SomeBlocks,
    /// All blocks since the previous line, after a minimum interval.
    PerInterval { seconds: u32 },
    /// A fixed number of blocks since the previous line.
    PerBlocks { blocks: u32 },
    /// All blocks since the previous line; their number varies.
    PerBatch,
}

impl Format {
    /// Programs and versions that print it, and the meaning of a line.
    const fn facts(self) -> (&'static str, Meaning) {
        use Meaning::{PerBatch, PerBlock, PerBlocks, PerInterval, SomeBlocks};
        match self {
            Self::Core0_7 => ("Bitcoin Core 0.7", PerBlock),
            Self::Core0_8_0 => ("Bitcoin Core 0.8.0-0.8.1", PerBlock),
            Self::Core0_8_2 => ("Bitcoin Core 0.8.2-0.8.6", PerBlock),
            Self::Core0_9 => ("Bitcoin Core 0.9", PerBlock),
            Self::Core0_10 => ("Bitcoin Core 0.10", PerBlock),
            Self::Core0_11 => ("Bitcoin Core 0.11-0.12", PerBlock),
            Self::Core0_13 => ("Bitcoin Core 0.13-0.14", PerBlock),
            Self::Core0_15 => ("Bitcoin Core 0.15-0.16", PerBlock),
            Self::Core0_17 => ("Bitcoin Core 0.17 and later, Knots, BCHN", PerBlock),
            Self::Btcd => ("btcd", PerInterval { seconds: 10 }),
            Self::BtcdIndex => ("btcd, index", PerInterval { seconds: 10 }),
            // Every 20th block below height 325,000 of mainnet; libbitcoin skips as many while it is far from the tip.
            Self::Bcoin => ("bcoin", SomeBlocks),
            Self::BcoinStatus => ("bcoin, status", PerBlocks { blocks: 20 }),
            Self::Fulcrum => ("Fulcrum", PerBlocks { blocks: 1000 }),
            Self::FulcrumTip => ("Fulcrum, at the tip", PerBatch),
            Self::FulcrumBlock => ("Fulcrum, per block", PerBlock),
            Self::Electrs0_8 => ("electrs 0.8", PerBlock),
            Self::Electrs0_9Batch => ("electrs 0.9-0.11, batch begins", PerBatch),
            Self::Electrs0_9 => ("electrs 0.9-0.11", PerBatch),
            Self::Electrs0_12 => ("electrs 0.12 and later", PerBatch),
            Self::ElectrumX => ("ElectrumX", PerBatch),
            Self::ElectrumXFlush => ("ElectrumX, flush", PerBatch),
            Self::Libbitcoin3 => ("libbitcoin 3", SomeBlocks),
            Self::Libbitcoin4 => ("libbitcoin 4", PerBlock),
        }
    }

    /// Programs and versions that print it.
    pub const fn name(self) -> &'static str {
        self.facts().0
    }

    pub const fn meaning(self) -> Meaning {
        self.facts().1
    }

    /// True if `-debug=bench` lines may accompany it.
    pub fn is_core(self) -> bool {
        self <= Self::Core0_17
    }
}

impl fmt::Display for Meaning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::PerBlock => f.write_str("per block"),
            Self::SomeBlocks => f.write_str("per block, not every block"),
            Self::PerInterval { seconds } => write!(f, "per interval of {seconds} s or more"),
            Self::PerBlocks { blocks: 1000 } => f.write_str("per thousand blocks"),
            Self::PerBlocks { blocks } => write!(f, "per {blocks} blocks"),
            Self::PerBatch => f.write_str("per batch"),
        }
    }
}
