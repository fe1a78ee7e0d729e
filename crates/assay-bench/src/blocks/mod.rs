//! Blocks by stage and as a whole: parse, hash, check, scripts, connect.
//!
//! Assay runs in this process, the kernel in its own, interleaved. Stages that the kernel's interface does not expose are
//! measured for Assay alone; published figures are shown for comparison with their machine.

mod connect;
mod large;
mod report;
mod stages;

use std::cell::RefCell;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use crate::forged::{Forge, Kind};
use assay_consensus::params::ChainParams;
pub use report::Report;
use stages::{Measured, Subject};

use crate::conditions::Conditions;
use crate::peer::KernelPeer;
use crate::{BenchError, Progress};

/// Names of the alternatives.
const ASSAY: &str = "assay";
const ASSAY_LIBSECP: &str = "assay, libsecp256k1";
const KERNEL: &str = "kernel";

/// Warm-up rounds, which are ignored.
const WARM_UP: usize = 1;

#[derive(Clone, Debug)]
pub struct Options {
    pub rounds: usize,
    /// Transactions of a forged block.
    pub txs: usize,
    /// Connected forged blocks per kind.
    pub connect_blocks: usize,
    /// Inputs of the large legacy transaction that is connected on one thread and on all; 0 skips it.
    pub large_inputs: usize,
    pub threads: usize,
    /// Seed of the keys of forged blocks.
    pub seed: u64,
    /// Folder of real blocks (`*.blk`) with their spent outputs (`*.prevouts`).
    pub data: Option<PathBuf>,
    /// The wrapper of Bitcoin Core's kernel.
    pub kernel: Option<PathBuf>,
}

/// Runs the measurement.
///
/// # Errors
/// When something fails or a result is wrong.
pub fn run(options: &Options, progress: &dyn Progress) -> Result<Report, BenchError> {
    let Options { rounds, txs, connect_blocks, threads, .. } = *options;
    if [rounds, txs, connect_blocks, threads].contains(&0) {
        let what = "--rounds, --txs, --connect-blocks and --threads";
        return Err(BenchError::Parameter { what, wanted: "at least 1" });
    }
    let conditions = Conditions::now();
    let dir = tempfile::tempdir()
        .map_err(|source| BenchError::File { path: std::env::temp_dir(), source })?;
    let kernel = options.kernel.as_deref().map(KernelPeer::start).transpose()?.map(RefCell::new);
    let versions = kernel.as_ref().map(|kernel| kernel.borrow_mut().versions()).transpose()?;
    let pool = rayon::ThreadPoolBuilder::new()
        .num_threads(1)
        .build()
        .map_err(|source| BenchError::Threads { threads: 1, source })?;
    let mut subjects = forged_subjects(options, dir.path())?;
    let forged = subjects.len();
    if let Some(data) = &options.data {
        subjects.extend(real_subjects(data)?);
    }
    let mut measured: Vec<Measured> = Vec::new();
    for subject in &subjects {
        measured.push(stages::measure(subject, options, (&pool, kernel.as_ref()), progress)?);
    }
    let (connect, tip) = connect::measure(options, dir.path(), kernel.as_ref(), progress)?;
    let large = large::measure(options, dir.path(), progress)?;
    let mut report = Report::new(options, conditions, versions);
    for (index, (subject, measured)) in subjects.iter().zip(measured).enumerate() {
        report.add_block(subject, measured, index >= forged);
    }
    if let Some(large) = large {
        report.add_large(large);
    }
    report.finish(connect, tip);
    Ok(report)
}

/// One block of each kind, in files that the kernel can read too.
fn forged_subjects(options: &Options, dir: &Path) -> Result<Vec<Subject>, BenchError> {
    let (mut forge, _) = Forge::new(options.seed);
    Kind::ALL
        .map(|kind| {
            let forged = forge.next(kind, options.txs);
            let block = dir.join(kind.name()).with_extension("blk");
            let prevouts = block.with_extension("prevouts");
            for (path, bytes) in [(&block, &forged.raw), (&prevouts, &forged.prevouts)] {
                std::fs::write(path, bytes)
                    .map_err(|source| BenchError::File { path: path.clone(), source })?;
            }
            let name = format!("forged, {}", kind.name());
            let prevouts = Some(prevouts);
            Ok(Subject { name, chain: "regtest", height: forged.height, block, prevouts })
        })
        .into_iter()
        .collect()
}

/// The real blocks in a folder, named `network-height.blk`.
fn real_subjects(dir: &Path) -> Result<Vec<Subject>, BenchError> {
    let entries = std::fs::read_dir(dir)
        .map_err(|source| BenchError::File { path: dir.to_owned(), source })?;
    let mut subjects: Vec<Subject> =
        entries.flatten().filter_map(|entry| real_subject(&entry.path())).collect();
    subjects.sort_by(|left, right| left.name.cmp(&right.name));
    Ok(subjects)
}

fn real_subject(path: &Path) -> Option<Subject> {
    if path.extension() != Some(OsStr::new("blk")) {
        return None;
    }
    let name = path.file_stem()?.to_str()?;
    let (network, height) = name.split_once('-')?;
    let chain = ChainParams::by_name(network)?.name;
    let prevouts = Some(path.with_extension("prevouts")).filter(|path| path.is_file());
    let (name, block, height) = (name.to_owned(), path.to_owned(), height.parse().ok()?);
    Some(Subject { name, chain, height, block, prevouts })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Silent;

    #[test]
    fn small_runs_come_to_an_end() {
        let options = Options {
            rounds: 2,
            txs: 3,
            connect_blocks: 2,
            large_inputs: 40,
            threads: 2,
            seed: 1,
            data: None,
            kernel: None,
        };
        let report = run(&options, &Silent).expect("figures");
        let text = report.text();
        for part in ["forged, ecdsa: CheckBlock", "connect, mixed", "40 legacy inputs", "scripts"] {
            assert!(text.contains(part), "{part}:\n{text}");
        }
        assert!(run(&Options { txs: 0, ..options }, &Silent).is_err());
    }

    #[test]
    fn names_of_real_blocks() {
        let subject = real_subject(Path::new("blocks/testnet3-928816.blk")).expect("a block");
        assert_eq!((subject.chain, subject.height), ("test", 928_816));
        assert!(subject.prevouts.is_none());
        for other in ["blocks/testnet3-928816.prevouts", "blocks/dogecoin-1.blk", "blocks/x.blk"] {
            assert!(real_subject(Path::new(other)).is_none());
        }
    }
}
