//! Options of the caller, and the parameters that all chains take from them.

use std::num::NonZero;

use thiserror::Error;

use crate::network::Network;

/// Behaviour where the published report and generator differ.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Variant {
    /// As described in the report.
    #[default]
    Intended,
    /// As by the published generator: steady-1 blocks that draw on the first fan-out blocks only, and small steady-2 blocks.
    Faithful,
}

impl Variant {
    /// Name in ledgers.
    pub fn name(self) -> &'static str {
        match self {
            Self::Intended => "intended",
            Self::Faithful => "faithful",
        }
    }
}

#[derive(Clone, Debug)]
pub(crate) struct Params {
    pub(crate) network: Network,
    pub(crate) seed: u64,
    pub(crate) scale: f64,
    pub(crate) distinct: bool,
    pub(crate) threads: usize,
    /// Height of the last block of the whole recipe.
    pub(crate) last_height: u32,
    pub(crate) end_time: u32,
    pub(crate) block_interval_s: u32,
}

impl Params {
    /// Of a chain whose length is not known yet; the end time and the interval are those of the recipe.
    pub(crate) fn new(
        options: &ForgeOptions,
        network: Network,
        (end_time, block_interval_s): (u32, u32),
    ) -> Result<Self, OptionsError> {
        Ok(Self {
            network,
            seed: options.seed,
            scale: options.scale,
            distinct: options.distinct_keys,
            threads: threads(options.threads)?,
            last_height: 0,
            end_time: options.end_time.unwrap_or(end_time),
            block_interval_s,
        })
    }

    /// The same for a chain with this last height. Genesis must be older than its first block.
    pub(crate) fn ending_at(self, last_height: u32) -> Result<Self, OptionsError> {
        let Self { network, end_time, block_interval_s, .. } = self;
        let min = u64::from(network.params().genesis.time)
            + u64::from(last_height) * u64::from(block_interval_s)
            + 1;
        if u64::from(end_time) < min {
            return Err(OptionsError::EndTime { end_time, min });
        }
        Ok(Self { last_height, ..self })
    }

    /// Header time of a block.
    pub(crate) fn time(&self, height: u32) -> u32 {
        self.end_time - (self.last_height - height) * self.block_interval_s
    }
}

#[derive(Clone, Debug, PartialEq)]
pub struct ForgeOptions {
    pub seed: u64,
    /// Size: 1 is the recipe's. For a history, the number of blocks.
    pub scale: f64,
    /// For a history: factor on the number of transactions per block; 1 otherwise.
    pub byte_scale: f64,
    pub variant: Variant,
    /// Include transaction and output index in the key derivation, so that no key repeats.
    pub distinct_keys: bool,
    /// Signing threads; 0 uses one per core.
    pub threads: usize,
    /// Stop after this height; blocks up to it are those of the whole chain.
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

#[derive(Debug, Error)]
pub enum OptionsError {
    /// The scale is too small for a block to hold its transactions, or too large for the available coins.
    #[error("scale {scale} is impossible for {chain}: choose {min} to {max}")]
    Scale { scale: f64, chain: &'static str, min: f64, max: f64 },
    /// The scale needs coinbases that are worth too little after halvings.
    #[error(
        "scale {scale} needs the coinbases of {coinbases} blocks, but only {available} are worth enough, as halvings go on; choose a smaller scale or fewer fan-out and steady-3 blocks"
    )]
    Coinbases { scale: f64, coinbases: u32, available: u32 },
    /// Byte scale at which blocks would be empty or too large.
    #[error(
        "byte scale {byte_scale} is impossible for {recipe}: choose more than 0, at most {max}"
    )]
    ByteScale { byte_scale: f64, recipe: String, max: f64 },
    /// A byte scale for a recipe without this parameter.
    #[error(
        "a byte scale means nothing to {recipe}: its scale sets the size of blocks; leave it out"
    )]
    NoByteScale { recipe: String },
    #[error("stop height {height} is impossible: this chain has heights 1 to {last}")]
    StopHeight { height: u32, last: u32 },
    /// End time so early that the first block would not be younger than genesis.
    #[error(
        "end time {end_time} is impossible: the first block would not be younger than genesis; choose {min} or later"
    )]
    EndTime { end_time: u32, min: u64 },
    #[error("{threads} threads are impossible: choose 0 (one for each core) to {max}")]
    Threads { threads: usize, max: usize },
}

/// The stop height, limited to the chain.
pub(crate) fn check_stop(stop_height: Option<u32>, last: u32) -> Result<u32, OptionsError> {
    let height = stop_height.unwrap_or(last);
    if (1..=last).contains(&height) {
        Ok(height)
    } else {
        Err(OptionsError::StopHeight { height, last })
    }
}

fn threads(asked: usize) -> Result<usize, OptionsError> {
    if asked > THREADS_MAX {
        return Err(OptionsError::Threads { threads: asked, max: THREADS_MAX });
    }
    let cores = || std::thread::available_parallelism().map_or(1, NonZero::get);
    Ok(if asked == 0 { cores() } else { asked })
}

const THREADS_MAX: usize = 1024;
