//! Opening of a user's blocks, with a progress bar on a terminal.

use std::path::Path;

use anyhow::Context;
use assay_forge::Ledger;
use assay_stats::{BlockSet, InvalidBlock, detect_chain};

use crate::bar::Bar;
use crate::output;

/// Maximum number of listed file positions.
const PLACES_SHOWN: usize = 5;

const LEDGER: &str = assay_forge::ledger::LEDGER;

/// The ledger that the user names, or that of the folder if it holds a forged chain.
pub(super) fn ledger(blocks: &Path, named: Option<&Path>) -> anyhow::Result<Option<Ledger>> {
    let is_ledger = |path: &Path| path.file_name().is_some_and(|name| name == LEDGER);
    let dir = match named {
        Some(path) if is_ledger(path) => path.parent().unwrap_or(Path::new("")),
        Some(path) => path,
        None if blocks.join(LEDGER).is_file() => blocks,
        // The given folder may be the one inside the chain folder.
        None => match blocks.parent() {
            Some(above) if blocks.ends_with("blocks") && above.join(LEDGER).is_file() => above,
            _ => return Ok(None),
        },
    };
    Ok(Some(Ledger::read(dir)?))
}

/// Opens the blocks at a path. The chain is the named one, the ledger's, or that of the first block.
pub(super) fn open(
    blocks: &Path,
    chain: Option<&str>,
    ledger: Option<&Ledger>,
    threads: usize,
) -> anyhow::Result<BlockSet> {
    let name = match (chain, ledger) {
        (Some(name), _) => name,
        (None, Some(ledger)) => &ledger.chain.chain,
        (None, None) => detect_chain(blocks)?.with_context(|| {
            format!("{}: does not begin like block files; name the --chain", blocks.display())
        })?,
    };
    let params = crate::commands::chain(name)?;
    let bar = Bar::new("looking for blocks [{bar:25}] {bytes}/{total_bytes}  {bytes_per_sec}");
    let set = BlockSet::open(blocks, params, threads, &|done, total| bar.set(done, total))?;
    drop(bar);
    report_rest(&set);
    Ok(set)
}

/// Reports everything found outside the best chain.
pub(super) fn report_rest(set: &BlockSet) {
    let found = set.found();
    for stray in found.strays.iter().take(PLACES_SHOWN) {
        output::complain(&stray.to_string());
    }
    if found.stray_count > PLACES_SHOWN {
        output::complain(&format!("{} such places in all", found.stray_count));
    }
    if let Some(bad) = &found.bad_header {
        output::complain(&bad.to_string());
    }
    for missing in &found.missing {
        output::complain(&missing.to_string());
    }
    if found.unconnected > 0 {
        output::complain(&format!("{} blocks do not connect", found.unconnected));
    }
}

/// Reports blocks that could not be counted; `count` is their total number.
pub(super) fn report_damage(damage: &[InvalidBlock], count: u64) {
    for damage in damage {
        output::complain(&format!("not counted: {damage}"));
    }
    if count > damage.len() as u64 {
        output::complain(&format!("{count} blocks were not counted"));
    }
}
