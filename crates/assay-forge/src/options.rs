//! What the caller chooses.

use std::num::NonZero;

use thiserror::Error;

use crate::network::Network;

/// Which generator to copy where report and published program differ.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Variant {
    /// What the report says the chain contains.
    #[default]
    Intended,
    /// What the published generator made: steady-1 blocks that draw on the first fan-out blocks only, and small steady-2 blocks.
    Faithful,
}

impl Variant {
    /// The name as ledgers write it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Intended => "intended",
            Self::Faithful => "faithful",
        }
    }
}

/// Choices for one forge.
#[derive(Clone, Debug, PartialEq)]
pub struct ForgeOptions {
    /// Seed of all random choices.
    pub seed: u64,
    /// Size: 1 is the recipe's. Of a history, the number of blocks.
    pub scale: f64,
    /// Of a history: factor on the transactions of its blocks; 1 elsewhere.
    pub byte_scale: f64,
    /// Which generator to copy.
    pub variant: Variant,
    /// Derive keys from transaction and output index too, so that none repeats.
    pub distinct_keys: bool,
    /// Threads that sign; 0 takes one for each core.
    pub threads: usize,
    /// Stop after this height; the blocks up to there are those of the whole chain.
    pub stop_height: Option<u32>,
    /// Time of the last block of the whole recipe, in seconds since 1970, instead of the recipe's.
    pub end_time: Option<u32>,
}

impl Default for ForgeOptions {
    fn default() -> Self {
        Self {
            seed: 1,
            scale: 1.0,
            byte_scale: 1.0,
            variant: Variant::Intended,
            distinct_keys: false,
            threads: 0,
            stop_height: None,
            end_time: None,
        }
    }
}

/// Why options cannot be followed.
#[derive(Debug, Error)]
pub enum OptionsError {
    /// A scale at which a block cannot hold its transactions, or beyond the coins there are.
    #[error("scale {scale} is impossible for {chain}: choose {min} to {max}")]
    Scale {
        /// What was asked for.
        scale: f64,
        /// Name of the chain.
        chain: &'static str,
        /// Smallest possible.
        min: f64,
        /// Largest possible.
        max: f64,
    },
    /// A scale that spends coinbases which are worth too little after halvings.
    #[error(
        "scale {scale} needs the coinbases of {coinbases} blocks, but only {available} are worth enough, as halvings go on; choose a smaller scale or fewer fan-out and steady-3 blocks"
    )]
    Coinbases {
        /// What was asked for.
        scale: f64,
        /// Coinbases needed.
        coinbases: u32,
        /// Coinbases there are.
        available: u32,
    },
    /// A factor on the transactions of a block at which blocks would be too large, or none at all.
    #[error(
        "byte scale {byte_scale} is impossible for {recipe}: choose more than 0, at most {max}"
    )]
    ByteScale {
        /// What was asked for.
        byte_scale: f64,
        /// Name of the recipe.
        recipe: String,
        /// Largest possible.
        max: f64,
    },
    /// A factor on the transactions of a block where the recipe has no such thing.
    #[error(
        "a byte scale means nothing to {recipe}: its scale sets the size of blocks; leave it out"
    )]
    NoByteScale {
        /// Name of the recipe.
        recipe: String,
    },
    /// A height that the chain does not reach.
    #[error("stop height {height} is impossible: this chain has heights 1 to {last}")]
    StopHeight {
        /// What was asked for.
        height: u32,
        /// The last height.
        last: u32,
    },
    /// An end so early that the first block would be older than genesis.
    #[error(
        "end time {end_time} is impossible: the first block would not be younger than genesis; choose {min} or later"
    )]
    EndTime {
        /// What was asked for.
        end_time: u32,
        /// The earliest possible.
        min: u64,
    },
    /// More threads than make sense.
    #[error("{threads} threads are impossible: choose 0 (one for each core) to {max}")]
    Threads {
        /// What was asked for.
        threads: usize,
        /// The most.
        max: usize,
    },
}

/// The height to stop at, within the chain.
pub(crate) fn check_stop(stop_height: Option<u32>, last: u32) -> Result<u32, OptionsError> {
    let height = stop_height.unwrap_or(last);
    if (1..=last).contains(&height) {
        Ok(height)
    } else {
        Err(OptionsError::StopHeight { height, last })
    }
}

/// Genesis must be older than the first block.
pub(crate) fn check_end(
    end_time: u32,
    network: Network,
    last: u32,
    block_interval_s: u32,
) -> Result<(), OptionsError> {
    let min = u64::from(network.params().genesis.time)
        + u64::from(last) * u64::from(block_interval_s)
        + 1;
    if u64::from(end_time) < min {
        return Err(OptionsError::EndTime { end_time, min });
    }
    Ok(())
}

pub(crate) fn threads(asked: usize) -> Result<usize, OptionsError> {
    if asked > THREADS_MAX {
        return Err(OptionsError::Threads { threads: asked, max: THREADS_MAX });
    }
    let cores = || std::thread::available_parallelism().map_or(1, NonZero::get);
    Ok(if asked == 0 { cores() } else { asked })
}

const THREADS_MAX: usize = 1024;
