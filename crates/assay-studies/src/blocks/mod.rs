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
use report::Report;
use stages::Subject;

use crate::peer::KernelPeer;
use crate::{cannot_use, one_thread, temporary_folder, threads, write_file};
use anyhow::{Context as _, Result};
use assay_bench::Progress;
use assay_bench::options::BlocksOptions;
use assay_lab::target::kernel;
use assay_report::record::Record;

const ASSAY: &str = "assay";
const ASSAY_LIBSECP: &str = "assay, libsecp256k1";
const KERNEL: &str = "kernel";

const WARM_UP: usize = 1;

pub(crate) fn run(options: &BlocksOptions, progress: &dyn Progress) -> Result<Record> {
    let threads = threads(options.threads);
    let options = &BlocksOptions { threads, ..options.clone() };
    let dir = temporary_folder()?;
    let find = |_| kernel::find(options.kernel.as_deref());
    let kernel = options.against.map(find).transpose()?;
    let kernel = kernel.as_deref().map(KernelPeer::start).transpose()?.map(RefCell::new);
    let versions = kernel.as_ref().map(|kernel| kernel.borrow_mut().versions()).transpose()?;
    let mut report = Report::new(options, versions.as_deref());
    let pool = one_thread()?;
    let mut subjects = forged_subjects(options, dir.path())?;
    let forged = subjects.len();
    if let Some(data) = &options.data {
        subjects.extend(real_subjects(&folder_of_blocks(data)?)?);
    }
    for (index, subject) in subjects.iter().enumerate() {
        let measured = stages::measure(subject, options, (&pool, kernel.as_ref()), progress)?;
        report.add_block(subject, measured, index >= forged);
    }
    let (connect, tip, tips) = connect::measure(options, dir.path(), kernel.as_ref(), progress)?;
    if let Some(large) = large::measure(options, dir.path(), progress)? {
        report.add_large(&large);
    }
    Ok(report.finish(connect, &tip, tips))
}

/// One block of each kind, in files that the kernel can read too.
fn forged_subjects(options: &BlocksOptions, dir: &Path) -> Result<Vec<Subject>> {
    let (mut forge, _) = Forge::new(options.seed);
    Kind::ALL
        .map(|kind| {
            let forged = forge.next(kind, options.txs.get());
            let block = dir.join(kind.name()).with_extension("blk");
            let prevouts = block.with_extension("prevouts");
            write_file(&block, &forged.raw)?;
            write_file(&prevouts, &forged.prevouts)?;
            let name = format!("forged, {}", kind.name());
            let prevouts = Some(prevouts);
            Ok(Subject { name, chain: "regtest", height: forged.height, block, prevouts })
        })
        .into_iter()
        .collect()
}

/// The folder itself, or the one called blocks in it: whichever holds blocks.
fn folder_of_blocks(named: &Path) -> Result<PathBuf> {
    let holds_blocks = |dir: &PathBuf| {
        let mut entries = std::fs::read_dir(dir).into_iter().flatten().flatten();
        entries.any(|entry| entry.path().extension().is_some_and(|ext| ext == "blk"))
    };
    let found = [named.join("blocks"), named.to_owned()].into_iter().find(holds_blocks);
    found.with_context(|| {
        format!("there are no NETWORK-HEIGHT.blk in {} or its blocks", named.display())
    })
}

/// The real blocks in a folder, named `network-height.blk`.
fn real_subjects(dir: &Path) -> Result<Vec<Subject>> {
    let entries = std::fs::read_dir(dir).with_context(|| cannot_use(dir))?;
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
    use std::num::NonZeroUsize;

    use super::*;
    use assay_bench::Silent;

    #[test]
    fn small_runs_come_to_an_end() {
        let [rounds, txs] = [2, 3].map(|number| NonZeroUsize::new(number).expect("not zero"));
        let options = BlocksOptions {
            rounds,
            txs,
            connect_blocks: rounds,
            large_inputs: 40,
            threads: 2,
            seed: 1,
            data: None,
            against: None,
            kernel: None,
        };
        let record = run(&options, &Silent).expect("figures");
        assert!(record.has_passed(), "{:?}", record.checks);
        let text = record.csv();
        for part in ["forged, ecdsa: CheckBlock", "connect, mixed", "40 legacy inputs", "scripts"] {
            assert!(text.contains(part), "{part}:\n{text}");
        }
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
