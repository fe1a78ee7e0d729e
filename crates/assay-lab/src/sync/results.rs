//! Record of a comparison.

use assay_report::record::{Cell, Outcome, Record, Unit, bytes, count};
use assay_report::stats::ratio::Ratio;

use super::{DB_CACHE_MIB, Subject, SyncOptions};
use crate::machine::new_record;
use crate::results::{Results, Run, WholeProcess};

/// One process.
#[derive(Debug, Clone)]
pub(super) struct SyncRun<'a> {
    pub(super) subject: Subject,
    pub(super) pair: usize,
    pub(super) process: &'a WholeProcess,
    /// True if disturbed by the rules of the report.
    pub(super) is_disturbed: bool,
}

/// Record of `runs`, which are those of `results`. Ratios are the first figure over the second: above 1 Assay's engine is faster or
/// smaller than the kernel.
pub(super) fn record(options: &SyncOptions, results: &Results, runs: &[SyncRun<'_>]) -> Record {
    let work = options.chain_dir.as_deref().unwrap_or(std::path::Path::new("."));
    let mut record = new_record("sync", &results.software, &results.rerun, work);
    record.machine = results.machine.clone();
    let chain = &results.chain;
    for (name, value) in [
        ("recipe", &chain.recipe),
        ("scale", &chain.scale.to_string()),
        ("seed", &chain.seed.to_string()),
        ("distinct keys", &chain.distinct_keys.to_string()),
        ("tip", &chain.tip),
        ("MuHash", &chain.utxo_muhash),
        ("amount in satoshi", &chain.utxo_amount.to_string()),
        ("pairs", &options.pairs.to_string()),
        ("threads", &options.threads.to_string()),
        ("coin cache, MiB", &DB_CACHE_MIB.to_string()),
    ] {
        record.set(name, value);
    }
    record.set_all("cores", &options.cores);
    let versions = |run: &Run| run.process.as_ref()?.versions.clone();
    record.set_all("kernel", &results.runs().find_map(versions));
    let page_cache = results.runs().find_map(|run| run.preparation.page_cache.clone());
    record.set_all("page cache", &page_cache);

    record.add(
        ("chain", "", None),
        &[
            count("height", chain.height.into()),
            count("transactions", chain.txs),
            count("inputs", chain.inputs),
            count("signatures", chain.signatures),
            bytes("blocks", chain.bytes),
            count("coins", chain.utxo_count),
        ],
    );
    for SyncRun { subject, pair, process, is_disturbed } in runs {
        let WholeProcess { usage, connect_s, hash_s, .. } = process;
        record.add(
            (subject.name(), "", Some(*pair as u32)),
            &[
                ("wall", Unit::Seconds, Some(usage.wall_s)),
                ("CPU", Unit::Seconds, Some(usage.cpu_s())),
                ("CPU, user", Unit::Seconds, Some(usage.user_s)),
                ("CPU, system", Unit::Seconds, Some(usage.system_s)),
                bytes("memory", usage.rss_bytes_max),
                ("inputs", Unit::PerSecond, Some(chain.inputs as f64 / usage.wall_s)),
                ("connecting", Unit::Seconds, Some(*connect_s)),
                ("hashing the coins", Unit::Seconds, *hash_s),
                count("disturbed", u64::from(*is_disturbed)),
            ],
        );
    }
    for (one, other, metrics) in [
        (Subject::Kernel, Subject::Ours, &["wall", "CPU", "memory"][..]),
        (Subject::OneCore, Subject::TwoCores, &["wall", "connecting"]),
        (Subject::Sampled, Subject::Unsampled, &["wall", "CPU"]),
    ] {
        for metric in metrics {
            let values = |subject| in_pairs(&record, subject, metric);
            if let Some(ratio) = Ratio::of_pairs(&values(one), &values(other)) {
                let case = format!("{} / {}", one.name(), other.name());
                record.add_interval(("ratio", &case), (metric, Unit::Ratio), &ratio);
            }
        }
    }
    let wall = record.values("kernel / assay", "wall");
    let wall = wall.first().map_or_else(|| "unknown".to_owned(), |wall| Unit::Ratio.format(*wall));
    record.headline = format!("Wall time of the kernel over that of our engine: {wall}.");
    // A difference ends the comparison.
    let compared = Outcome::of(runs.len() as u64, None);
    record.check("tip, coins, amount and MuHash as in the ledger", compared);
    record.notes = notes(runs);
    record
}

/// Values of a subject in order of their pairs.
fn in_pairs(record: &Record, subject: Subject, metric: &str) -> Vec<f64> {
    let is_it = |cell: &&Cell| cell.target == subject.name() && cell.metric == metric;
    let mut cells: Vec<&Cell> = record.cells.iter().filter(is_it).collect();
    cells.sort_by_key(|cell| cell.round);
    cells.iter().map(|cell| cell.value).collect()
}

const NOTES: [&str; 4] = [
    "Whole processes, from start to end, each with a new folder; writing the coins out at the end is part of it on both sides.",
    "Our time holds counting and hashing the coins (MuHash) as well, which the kernel is not asked for.",
    "The kernel takes blocks by its process_block and stores them with undo data; ours reads them where they are and stores coins only.",
    "Tip, coin count, amount and MuHash of both were compared with the ledger after each run; the kernel's coins were read out of its database, outside the time measured.",
];

/// Caveats with the number of disturbed runs, which are kept because the number of pairs is fixed in advance.
fn notes(runs: &[SyncRun<'_>]) -> Vec<String> {
    let disturbed = runs.iter().filter(|run| run.is_disturbed).count();
    let note = format!(
        "Something else used the machine during {disturbed} of {} runs; they are included.",
        runs.len()
    );
    NOTES.map(str::to_owned).into_iter().chain((disturbed > 0).then_some(note)).collect()
}
