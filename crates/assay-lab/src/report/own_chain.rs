//! Report parts for chains that were not forged: block files, range of heights, and the reference for the UTXO set.

use assay_ledger::FilesLine;
use assay_report::Table;
use assay_report::number::{count, seconds};

use super::NONE;
use crate::chain::ChainSnapshot;
use crate::results::{ChainSummary, Results, SnapshotLoad, UnableTarget};

/// Block files, if the chain was not forged.
pub(super) fn files(results: &Results) -> Option<&FilesLine> {
    results.chain.files.as_ref()
}

/// One sentence about the chain, without its validators.
pub(super) fn sentence(results: &Results) -> Option<String> {
    let (chain, files) = (&results.chain, files(results)?);
    let (first, start) = match &chain.snapshot {
        Some(snapshot) => (snapshot.height + 1, ", after a UTXO snapshot"),
        None => (1, ""),
    };
    Some(format!(
        "Heights {} to {} of {} with {} transactions, {} inputs and {} outputs, from {} block files{start}",
        count(u64::from(first)),
        count(u64::from(chain.height)),
        chain.chain,
        count(chain.txs),
        count(chain.inputs),
        count(chain.outputs),
        count(files.count as u64),
    ))
}

/// Origin of the chain, in place of a recipe.
pub(super) fn table(chain: &ChainSummary, files: &FilesLine) -> Table {
    let mut table = Table::new("Chain, from block files", &["What", "Value"], 2);
    let known = |value: String| if chain.utxo_count == 0 { NONE.to_owned() } else { value };
    let above = files.best_height.saturating_sub(chain.height);
    let rows = [
        ("Chain", chain.chain.clone()),
        ("Block files", files.path.display().to_string()),
        ("Number of files", count(files.count as u64)),
        ("Bytes of the files", count(files.bytes)),
        ("Obfuscated", if files.xor_key.is_some() { "yes" } else { "no" }.to_owned()),
        ("Blocks", {
            let base = chain.snapshot.as_ref().map_or(0, |snapshot| snapshot.height);
            count(u64::from(chain.height.saturating_sub(base)))
        }),
        ("Tip", chain.tip.clone()),
        ("SHA-256 of the headers, heights 0 to tip", files.headers_sha256.clone()),
        ("Blocks above the tip, left out", count(u64::from(above))),
        ("Blocks of other branches, left out", count(files.stale as u64)),
        ("Transactions", count(chain.txs)),
        ("Inputs", count(chain.inputs)),
        ("Outputs", count(chain.outputs)),
        ("Bytes of the blocks", count(chain.bytes)),
        ("UTXO count", known(count(chain.utxo_count))),
        ("UTXO MuHash", known(chain.utxo_muhash.clone())),
        (
            "Coins first reported by run",
            chain.coins_reported_by.clone().unwrap_or_else(|| NONE.to_owned()),
        ),
        ("Ledger by version", chain.assay_version.clone()),
    ];
    for (what, value) in rows {
        table.push([what.to_owned(), value]);
    }
    if let Some(snapshot) = &chain.snapshot {
        let rows = [
            ("UTXO snapshot", snapshot.path.display().to_string()),
            ("Bytes of the snapshot", count(snapshot.bytes)),
            ("Height of the snapshot", count(u64::from(snapshot.height))),
            ("Block of the snapshot", snapshot.block.clone()),
            ("Coins of the snapshot", count(snapshot.coins)),
            ("Hash of these coins (hash_serialized_3)", snapshot.hash.clone()),
        ];
        for (what, value) in rows {
            table.push([what.to_owned(), value]);
        }
    }
    table
}

/// Initial state of the runs.
pub(super) fn start(snapshot: &ChainSnapshot) -> String {
    format!(
        "Every run begins with a plain copy of a data folder into which the same target had loaded the UTXO snapshot of height {} \
         (`loadtxoutset`), once and not as a part of the run. Blocks below are validated in the background, with the room that \
         those above leave; the run ends at the tip, whether that is done or not.",
        count(u64::from(snapshot.height))
    )
}

/// Snapshot load of each target, or the reason for its failure.
pub(super) fn starts(results: &Results) -> Option<Table> {
    results.chain.snapshot.as_ref()?;
    let head = ["Target", "Version", "loadtxoutset, s", "Stop after it, s", "Why not"];
    let mut table = Table::new("Start from the UTXO snapshot", &head, 2);
    for target in &results.targets {
        let time = |of: fn(SnapshotLoad) -> f64| {
            target.snapshot_load.map_or_else(|| NONE.to_owned(), |load| seconds(of(load)))
        };
        let (load, stop) = (time(|load| load.load_s), time(|load| load.stop_s));
        table.push([target.name.clone(), target.version.clone(), load, stop, String::new()]);
    }
    for UnableTarget { name, version, why } in &results.unable {
        let none = || NONE.to_owned();
        table.push([name.clone(), version.clone(), none(), none(), why.clone()]);
    }
    Some(table)
}

/// Checks of the end state.
pub(super) fn verification(results: &Results) -> Option<String> {
    files(results)?;
    let first = match &results.chain.coins_reported_by {
        Some(run) => format!("those that run {run} reported first"),
        None => "those of the run that reports them first".to_owned(),
    };
    Some(format!(
        "A run counts only if the target ends on the last block of the ledger, which was made of the block files before any run, \
         and has its number of transactions in every block. Nobody had counted the coins beforehand: they are compared with {first}, so a \
         mistake that all programs share would not show. The tip's hash commits to the contents of every block."
    ))
}
