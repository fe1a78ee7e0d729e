//! Validation of a folder of block files by the kernel alone, for speed and for verdicts on chains.

use std::path::PathBuf;
use std::time::Instant;

use anyhow::{Context as _, Result, bail, ensure};
use assay_consensus::params::ChainParams;
use serde::Serialize;

use crate::bench::cpu_ns;
use crate::blockfile::Folder;
use crate::kernel::{Kernel, Settings, VERSIONS, chain_of_name};
use crate::verdict::Verdict;

#[derive(Clone, Debug, clap::Args)]
pub struct Options {
    /// Folder with blk*.dat in it or in its `blocks`, obfuscated (xor.dat) or plain, blocks in any order; or one file
    #[arg(long, value_name = "DIR")]
    pub blocks: PathBuf,
    /// main, test, testnet4, signet or regtest
    #[arg(long, value_name = "NAME")]
    pub chain: String,
    /// Folder for the kernel's chain
    #[arg(long, value_name = "DIR")]
    pub datadir: PathBuf,
    /// Submit no blocks above this height
    #[arg(long, value_name = "N")]
    pub stop_height: Option<u32>,
    /// Script check threads in addition to the submitting one [default: number of cores less one]
    #[arg(long, value_name = "N")]
    pub worker_threads: Option<i32>,
    /// Keep index and coins in memory only
    #[arg(long)]
    pub in_memory: bool,
}

/// Progress, as one line of the output.
#[derive(Clone, Debug, Serialize)]
pub struct Progress {
    /// `"height"`, or `"end"` for the last line.
    pub kind: &'static str,
    pub height: u32,
    pub hash: String,
    pub blocks: u64,
    pub bytes: u64,
    /// Seconds since the first block was submitted.
    pub elapsed_s: f64,
    /// CPU time of all threads since the start of the process, in seconds.
    pub cpu_s: f64,
}

/// Settings that affect speed, printed before the first block.
#[derive(Clone, Debug, Serialize)]
pub struct Explicit {
    /// `"settings"`.
    pub kind: &'static str,
    pub versions: &'static str,
    pub chain: String,
    pub blocks: u64,
    /// Number of script check threads in addition to the submitting one.
    pub worker_threads: i32,
    /// Core's default for kernel applications, which the interface cannot change.
    pub db_cache_mib: u32,
    /// True if index and coins are kept in memory only.
    pub in_memory: bool,
}

/// `DEFAULT_KERNEL_CACHE` of Core's `kernel/caches.h`.
const DB_CACHE_MIB: u32 = 450;

/// Submits all blocks in order of height; `settings` is called once, `progress` about every half second and at the end.
pub fn run(
    options: &Options,
    settings: &dyn Fn(&Explicit),
    progress: &dyn Fn(&Progress),
) -> Result<Progress> {
    let params = ChainParams::by_name(&options.chain).context("unknown chain")?;
    let chain = chain_of_name(params.name).context("the kernel does not know this chain")?;
    let _tap = crate::kernel::listen()?;
    let folder = Folder::open(&options.blocks, params.disk_magic)?;
    let order = folder.in_order(params.genesis_hash);
    ensure!(
        !order.is_empty(),
        "{} blocks in the files of {}, and none of them leads back to the genesis block of {}",
        folder.count(),
        options.blocks.display(),
        options.chain
    );
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let workers = options.worker_threads.unwrap_or(cores as i32 - 1);
    std::fs::create_dir_all(&options.datadir)
        .with_context(|| format!("making {}", options.datadir.display()))?;
    settings(&Explicit {
        kind: "settings",
        versions: VERSIONS,
        chain: options.chain.clone(),
        blocks: folder.count(),
        worker_threads: workers,
        db_cache_mib: DB_CACHE_MIB,
        in_memory: options.in_memory,
    });
    let kernel_settings = Settings { workers, in_memory: options.in_memory };
    let kernel = Kernel::open(&chain, &options.datadir, &kernel_settings)?;
    let start = Instant::now();
    let mut last_line = start;
    let (mut blocks, mut bytes) = (0, 0);
    let line = |kind: &'static str, blocks: u64, bytes: u64| {
        let (height, hash) = kernel.tip();
        let elapsed_s = start.elapsed().as_secs_f64();
        let cpu_s = cpu_ns() as f64 / 1e9;
        Progress { kind, height, hash: hash.to_string(), blocks, bytes, elapsed_s, cpu_s }
    };
    for (height, place) in order {
        if options.stop_height.is_some_and(|stop| height > stop) {
            break;
        }
        let raw = folder.read(place)?;
        match kernel.submit(&raw) {
            Verdict::Accepted | Verdict::Inconclusive | Verdict::Duplicate => {}
            other => bail!("block at height {height}: {other}"),
        }
        blocks += 1;
        bytes += raw.len() as u64;
        if last_line.elapsed().as_millis() >= 20 {
            last_line = Instant::now();
            progress(&line("height", blocks, bytes));
        }
    }
    let end = line("end", blocks, bytes);
    progress(&end);
    Ok(end)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_without_blocks_is_an_error() {
        let dir = tempfile::tempdir().unwrap();
        let options = Options {
            blocks: dir.path().to_owned(),
            chain: "regtest".to_owned(),
            datadir: dir.path().join("data"),
            stop_height: None,
            worker_threads: Some(0),
            in_memory: true,
        };
        let error = run(&options, &|_| {}, &|_| {}).unwrap_err().to_string();
        assert!(error.contains("holds no blk*.dat"), "{error}");
    }
}
