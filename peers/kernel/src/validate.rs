//! The kernel alone over a folder of block files: a yardstick for speed and a judge of chains.

use std::path::PathBuf;
use std::time::Instant;

use anyhow::{Context as _, Result, bail};
use assay_consensus::params::ChainParams;
use serde::Serialize;

use crate::blockfile::Folder;
use crate::kernel::{Kernel, Settings, chain_of_name};
use crate::verdict::Verdict;

/// What to validate.
#[derive(Clone, Debug)]
pub struct Options {
    /// Folder of block files.
    pub blocks: PathBuf,
    /// Name of the chain.
    pub chain: String,
    /// Where the kernel keeps its chain.
    pub datadir: PathBuf,
    /// Last height to submit.
    pub stop_height: Option<u32>,
    /// Threads that check scripts beside the submitting one.
    pub workers: i32,
    /// Keep index and coins in memory only.
    pub in_memory: bool,
}

/// How far it has come; one line of the output.
#[derive(Clone, Debug, Serialize)]
pub struct Progress {
    /// `"height"`, or `"end"` for the last line.
    pub kind: &'static str,
    /// Height of the tip.
    pub height: u32,
    /// Hash of the tip.
    pub hash: String,
    /// Blocks submitted.
    pub blocks: u64,
    /// Bytes of these blocks.
    pub bytes: u64,
    /// Seconds since the first block was submitted.
    pub elapsed_s: f64,
}

/// The settings that bear on speed, as they are printed before the first block.
#[derive(Clone, Debug, Serialize)]
pub struct Explicit {
    /// `"settings"`.
    pub kind: &'static str,
    /// The chain.
    pub chain: String,
    /// Blocks found in the folder.
    pub blocks: u64,
    /// Threads that check scripts beside the submitting one.
    pub worker_threads: i32,
    /// Core's default for kernel applications, which the interface does not let one change.
    pub db_cache_mib: u32,
    /// Whether index and coins are kept in memory only.
    pub in_memory: bool,
}

/// `DEFAULT_KERNEL_CACHE` of Core's `kernel/caches.h`.
const DB_CACHE_MIB: u32 = 450;

/// Submits all blocks in order of height; `settings` is called once, `progress` about every half second and at the end.
///
/// # Errors
/// When the chain is unknown, files cannot be read, or a block is invalid.
pub fn run(
    options: &Options,
    settings: &dyn Fn(&Explicit),
    progress: &dyn Fn(&Progress),
) -> Result<Progress> {
    let params = ChainParams::by_name(&options.chain).context("unknown chain")?;
    let chain = chain_of_name(&options.chain).context("the kernel does not know this chain")?;
    let _tap = crate::kernel::listen()?;
    let folder = Folder::open(&options.blocks, params.disk_magic)?;
    std::fs::create_dir_all(&options.datadir)
        .with_context(|| format!("making {}", options.datadir.display()))?;
    settings(&Explicit {
        kind: "settings",
        chain: options.chain.clone(),
        blocks: folder.count(),
        worker_threads: options.workers,
        db_cache_mib: DB_CACHE_MIB,
        in_memory: options.in_memory,
    });
    let kernel_settings = Settings { workers: options.workers, in_memory: options.in_memory };
    let kernel = Kernel::open(&chain, &options.datadir, &kernel_settings)?;
    let start = Instant::now();
    let mut last_line = start;
    let (mut blocks, mut bytes) = (0, 0);
    let line = |kind: &'static str, blocks: u64, bytes: u64| {
        let (height, hash) = kernel.tip();
        let elapsed_s = start.elapsed().as_secs_f64();
        Progress { kind, height, hash: hash.to_string(), blocks, bytes, elapsed_s }
    };
    for (height, place) in folder.in_order(params.genesis_hash) {
        if options.stop_height.is_some_and(|stop| height > stop) {
            break;
        }
        let raw = folder.read(place)?;
        match kernel.submit(&raw) {
            Verdict::Accepted | Verdict::Inconclusive | Verdict::Duplicate => {}
            other => bail!("block at height {height} ({place:?}): {other}"),
        }
        blocks += 1;
        bytes += raw.len() as u64;
        if last_line.elapsed().as_millis() >= 500 {
            last_line = Instant::now();
            progress(&line("height", blocks, bytes));
        }
    }
    let end = line("end", blocks, bytes);
    progress(&end);
    Ok(end)
}
