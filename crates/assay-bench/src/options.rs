//! Options of the experiments of `assay-bench`: flags of the command line, which passes them to that program as JSON.

use std::num::{NonZeroU64, NonZeroUsize};
use std::path::PathBuf;
use std::time::Duration;

use assay_lab::plan::TargetSpec;
use clap::{Args, ValueEnum};
use serde::{Deserialize, Serialize};

/// Reference to compare with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
pub enum Against {
    /// Bitcoin Core's validation library, in a process of its own (peers/kernel).
    Kernel,
}

#[derive(Clone, Debug, Args, Serialize, Deserialize)]
pub struct SignaturesOptions {
    /// Checks in a batch.
    #[arg(long, value_name = "N", default_value = "4096")]
    pub batch: NonZeroUsize,
    /// Rounds; in each every alternative does one batch.
    #[arg(long, value_name = "N", default_value = "21")]
    pub rounds: NonZeroUsize,
    /// Backend that does the arithmetic of batches: ifma, ifma-256, avx-ifma, avx512, avx2 or
    /// libsecp256k1 [default: the fastest on this machine, by measuring].
    #[arg(long, value_name = "NAME", env = "ASSAY_BACKEND")]
    pub backend: Option<String>,
    /// Seed of keys and messages.
    #[arg(long, value_name = "S", default_value_t = 1)]
    pub seed: u64,
}

#[derive(Clone, Debug, Args, Serialize, Deserialize)]
pub struct BlocksOptions {
    /// Reference to compare with.
    #[arg(long, value_enum, value_name = "PEER")]
    pub against: Option<Against>,
    /// The program assay-peer-kernel [default: where Cargo puts it in this checkout].
    #[arg(long, value_name = "PATH", env = "ASSAY_PEER_KERNEL")]
    pub kernel: Option<PathBuf>,
    /// Folder with real blocks, NETWORK-HEIGHT.blk, and the outputs they spend,
    /// NETWORK-HEIGHT.prevouts; or one that holds such a folder called blocks. Without it no real
    /// block is measured.
    #[arg(long, value_name = "DIR", env = "ASSAY_TEST_DATA")]
    pub data: Option<PathBuf>,
    /// Rounds of each stage.
    #[arg(long, value_name = "N", default_value = "11")]
    pub rounds: NonZeroUsize,
    /// Transactions in a forged block.
    #[arg(long, value_name = "N", default_value = "1000")]
    pub txs: NonZeroUsize,
    /// Forged blocks of each kind to connect.
    #[arg(long, value_name = "N", default_value = "9")]
    pub connect_blocks: NonZeroUsize,
    /// Inputs of a legacy transaction in a block of its own, connected on one thread and on all; 0
    /// for none.
    #[arg(long, value_name = "N", default_value_t = 5000)]
    pub large_inputs: usize,
    /// Threads that connect blocks, on both sides; 0 takes one for each core.
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub threads: usize,
    /// Seed of the forged blocks.
    #[arg(long, value_name = "S", default_value_t = 1)]
    pub seed: u64,
}

#[derive(Clone, Debug, Args, Serialize, Deserialize)]
pub struct MempoolOptions {
    /// Pairs of blocks.
    #[arg(long, value_name = "N", default_value = "100")]
    pub blocks: NonZeroUsize,
    /// Transactions in a block; 8000 of one input nearly fill it.
    #[arg(long, value_name = "N", default_value = "8000")]
    pub txs: NonZeroUsize,
    /// Hostile clusters; half of them fit in the mempool.
    #[arg(long, value_name = "N", default_value = "1000")]
    pub clusters: NonZeroUsize,
    /// Threads that submit hostile transactions: every other one replacements, the others clusters.
    #[arg(long, value_name = "N", default_value = "2")]
    pub hostile_threads: NonZeroUsize,
    /// Threads that verify scripts; 0 takes one for each core.
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub threads: usize,
    /// Lead time of the hostile threads before each block under attack.
    #[arg(long, value_name = "DURATION", default_value = "100ms", value_parser = duration)]
    pub lead: Duration,
    /// Seed of fees and dependencies.
    #[arg(long, value_name = "S", default_value_t = 1)]
    pub seed: u64,
}

#[derive(Clone, Debug, Args, Serialize, Deserialize)]
pub struct AgreementOptions {
    /// The node to compare with: `bitcoind=PATH` for a program of Bitcoin Cash Node.
    #[arg(long, value_name = "NAME", value_parser = target)]
    pub target: String,
    /// Transactions, each of which comes in a block as well.
    #[arg(long, value_name = "N", default_value = "10000")]
    pub cases: NonZeroU64,
    /// Seed of everything random.
    #[arg(long, value_name = "S", default_value_t = 1)]
    pub seed: u64,
}

/// A target that can be parsed; programs exchange it as text.
fn target(text: &str) -> Result<String, String> {
    text.parse::<TargetSpec>().map(|_| text.to_owned()).map_err(|error| error.to_string())
}

/// A duration with its unit: 500ms, 30s, 2m.
///
/// # Errors
/// When it is no number with one of these units, zero, or too large.
pub fn duration(text: &str) -> Result<Duration, String> {
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (count, unit) = text.split_at(digits);
    let unit_ms = match unit {
        "ms" => 1,
        "s" | "" => 1000,
        "m" => 60_000,
        _ => return Err("give a number with ms, s or m".to_owned()),
    };
    let count: u64 = count.parse().map_err(|_| "give a number with ms, s or m".to_owned())?;
    match count.checked_mul(unit_ms) {
        Some(0) | None => Err("give more than nothing and less than eternity".to_owned()),
        Some(milliseconds) => Ok(Duration::from_millis(milliseconds)),
    }
}
