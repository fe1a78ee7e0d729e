//! `assay chain ledger`: a ledger for block files of another program.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{BufWriter, Write as _};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, bail, ensure};
use assay_engine::ChainParams;
use assay_forge::ledger::{LEDGER, LEDGER_PART, Line};
use assay_forge::{BlockLine, ChainLine, FilesLine, Ledger, Phase, RangeLine, TipLine};
use assay_stats::{
    BlockRow, BlockSet, Heights, Item, OpenError, OutputKind, ReadOptions, TxRow, detect_chain,
    listing_sha256, read,
};
use faster_hex::hex_string;
use serde_json::json;

use super::source;
use crate::bar::Bar;
use crate::cli::LedgerArguments;
use crate::commands::{chain_with, threads};
use crate::output;

/// Value of the recipe field in a ledger of block files.
const RECIPE: &str = "block-files";
const FORMAT: u32 = 1;
/// A transaction with more inputs than this has many, as in ledgers of a history.
const MANY_INPUTS: u32 = 50;
/// Number of phases in reports.
const PHASES: u32 = 10;
/// Number of ranges with sums of their own.
const RANGES: u32 = 100;

pub(super) fn run(arguments: &LedgerArguments) -> anyhow::Result<()> {
    let (ledger, was_kept) = make(arguments)?;
    report(&ledger, was_kept, arguments.json)
}

/// Checks the files and writes their ledger, or reuses an earlier one; returns true in that case.
pub(crate) fn make(arguments: &LedgerArguments) -> anyhow::Result<(Ledger, bool)> {
    let params = crate::commands::chain(&arguments.chain)?;
    // Rejects unknown names and heights before the first program starts.
    chain_with(&arguments.chain, &arguments.test_activation_height)?;
    let blocks = folder_of(&arguments.blocks, &params);
    check_apart(&arguments.blocks, &arguments.out)?;
    // Resolves the path that the ledger records.
    let real = blocks.canonicalize().unwrap_or_else(|_| blocks.clone());
    let listing =
        hex_string(&listing_sha256(&real, &params).map_err(|error| explain(error, &blocks))?);
    fs::create_dir_all(&arguments.out)
        .with_context(|| format!("cannot make {}", arguments.out.display()))?;
    if let Some(ledger) = kept(arguments, &params, &listing)? {
        return Ok((ledger, true));
    }
    let threads = threads(arguments.threads);
    let set = open(&blocks, &params, threads)?;
    let heights = set.whole_up_to(arguments.stop_height).with_context(|| {
        format!("{}: not all blocks of {} are there", blocks.display(), params.name)
    })?;
    let ledger = write(arguments, (&blocks, &set), heights, listing, threads)?;
    Ok((ledger, false))
}

/// Folder of the block files: `blocks` in a data folder for the main chain, and in a subfolder of it for any other.
fn folder_of(given: &Path, params: &ChainParams) -> PathBuf {
    let below = given.join(params.datadir_subfolder).join("blocks");
    let is_datadir = !params.datadir_subfolder.is_empty() && below.is_dir();
    if is_datadir { below } else { given.to_owned() }
}

/// Rejects an output folder inside the folder of the blocks, which stays read-only.
fn check_apart(blocks: &Path, out: &Path) -> anyhow::Result<()> {
    let blocks = blocks.canonicalize().unwrap_or_else(|_| blocks.to_owned());
    // The deepest existing ancestor decides the location of folders that are to be created.
    let out = std::path::absolute(out)?;
    let there = out.ancestors().find_map(|folder| folder.canonicalize().ok());
    let out = there.unwrap_or(out);
    ensure!(
        !(blocks.is_dir() && out.starts_with(&blocks)),
        "{} lies in the folder of the blocks, which is left unchanged; give another",
        out.display()
    );
    Ok(())
}

/// Adds the name of the chain that the files hold.
fn explain(error: OpenError, blocks: &Path) -> anyhow::Error {
    let found = match &error {
        OpenError::NoBlocks { .. } => detect_chain(blocks).ok().flatten(),
        _ => None,
    };
    match (found, error) {
        (Some(found), OpenError::NoBlocks { path, chain, .. }) if found != chain => {
            anyhow::anyhow!(
                "{} holds blocks of {found}, not of {chain}; give --chain {found}, or the folder of {chain}",
                path.display()
            )
        }
        (_, error) => anyhow::Error::new(error).context(
            "--blocks names Bitcoin Core's data folder, the folder of its blk*.dat, or one file of blocks",
        ),
    }
}

fn open(blocks: &Path, params: &Arc<ChainParams>, threads: usize) -> anyhow::Result<BlockSet> {
    let bar =
        Bar::new("looking for blocks [{bar:25}] {bytes}/{total_bytes}  {bytes_per_sec}  ETA {eta}");
    let on_bytes = |done, total| bar.set(done, total);
    let set = BlockSet::open(blocks, Arc::clone(params), threads, &on_bytes)
        .map_err(|error| explain(error, blocks))?;
    drop(bar);
    source::report_rest(&set);
    Ok(set)
}

/// The earlier ledger, if it is of the same files up to the same height.
fn kept(
    arguments: &LedgerArguments,
    params: &ChainParams,
    listing: &str,
) -> anyhow::Result<Option<Ledger>> {
    if !arguments.out.join(LEDGER).exists() {
        return Ok(None);
    }
    // An unreadable ledger is written again.
    let Ok(ledger) = Ledger::read(&arguments.out) else { return Ok(None) };
    let Some(files) = &ledger.chain.files else {
        bail!("{} holds a forged chain; give another folder", arguments.out.display());
    };
    let is_same = files.listing_sha256 == listing
        && ledger.chain.chain == params.name
        && ledger.chain.stop_height == arguments.stop_height
        && ledger.chain.activation == activation(arguments)
        && ledger.chain.assay_version == env!("CARGO_PKG_VERSION");
    Ok(is_same.then_some(ledger))
}

fn activation(arguments: &LedgerArguments) -> BTreeMap<String, u32> {
    let pair = |text: &String| {
        let (name, height) = text.split_once('@')?;
        Some((name.to_owned(), height.parse().ok()?))
    };
    arguments.test_activation_height.iter().filter_map(pair).collect()
}

/// Reads every block and writes the ledger.
fn write(
    arguments: &LedgerArguments,
    (blocks, set): (&Path, &BlockSet),
    heights: Heights,
    listing: String,
    threads: usize,
) -> anyhow::Result<Ledger> {
    let mut ledger = Ledger {
        chain: chain_line(arguments, (blocks, set), heights, listing)?,
        blocks: Vec::with_capacity(heights.last as usize),
        ranges: Vec::new(),
        tip: TipLine {
            height: heights.last,
            hash: set.hash(heights.last).unwrap_or_default().to_string(),
            utxo_count: 0,
            utxo_amount: 0,
            utxo_muhash: String::new(),
            txs: 0,
            inputs: 0,
            outputs: 0,
            bytes: 0,
            signatures: 0,
        },
    };
    let bar =
        Bar::new("reading blocks [{bar:25}] {bytes}/{total_bytes}  {bytes_per_sec}  ETA {eta}");
    let (bytes, mut damage) = (set.bytes(heights), None);
    let mut counter = Counter::new(heights.last);
    let options = ReadOptions { threads, many_inputs: MANY_INPUTS, txs: true };
    read(set, heights, &options, &mut |item| match item {
        Item::Txs(rows) => {
            counter.txs(&rows);
            ControlFlow::Continue(())
        }
        Item::Block(row) => {
            counter.block(set, &row, &mut ledger);
            bar.set(ledger.tip.bytes, bytes);
            ControlFlow::Continue(())
        }
        Item::Damage(found) => {
            damage = Some(found);
            ControlFlow::Break(())
        }
    });
    drop(bar);
    if let Some(damage) = damage {
        bail!(
            "{damage}, or take the chain up to the block before: --stop-height {}",
            damage.height.saturating_sub(1)
        );
    }
    if let Some(last) = ledger.blocks.last().map(|block| block.time) {
        ledger.chain.end_time = last;
    }
    put(&arguments.out, &ledger)
        .with_context(|| format!("cannot write the ledger in {}", arguments.out.display()))?;
    Ok(ledger)
}

fn chain_line(
    arguments: &LedgerArguments,
    (blocks, set): (&Path, &BlockSet),
    heights: Heights,
    listing_sha256: String,
) -> anyhow::Result<ChainLine> {
    let (count, bytes) = set.files();
    let path = if blocks.is_file() { blocks } else { set.folder() };
    let files = FilesLine {
        path: path.canonicalize().with_context(|| format!("cannot read {}", path.display()))?,
        xor_key: set.is_obfuscated().then(|| hex_string(&set.key())),
        genesis: hex_string(&set.params().genesis_block()),
        count,
        bytes,
        listing_sha256,
        headers_sha256: hex_string(&set.headers_sha256(heights.last)?),
        best_height: set.heights().last,
        best_hash: set.tip().to_string(),
        stale: set.found().stale,
    };
    Ok(ChainLine {
        format: FORMAT,
        recipe: RECIPE.to_owned(),
        chain: set.params().name.to_owned(),
        seed: 0,
        scale: 1.0,
        variant: "intended".to_owned(),
        distinct_keys: false,
        stop_height: arguments.stop_height,
        byte_scale: None,
        activation: activation(arguments),
        end_time: 0,
        magic: hex_string(&set.params().disk_magic),
        assay_version: env!("CARGO_PKG_VERSION").to_owned(),
        recipe_sha256: String::new(),
        files: Some(Box::new(files)),
    })
}

/// Sums over blocks in order of height.
struct Counter {
    last: u32,
    range: RangeLine,
    /// Spendable outputs less spent ones; without genesis, as in the set of coins.
    coins: u64,
}

impl Counter {
    fn new(last: u32) -> Self {
        Self { last, range: RangeLine { first: 1, ..RangeLine::default() }, coins: 0 }
    }

    fn txs(&mut self, rows: &[TxRow]) {
        let range = &mut self.range;
        for row in rows.iter().filter(|row| !row.is_coinbase) {
            range.txs += 1;
            range.inputs += u64::from(row.inputs);
            range.outputs += u64::from(row.outputs);
            range.segwit_txs += u64::from(row.is_segwit);
            range.consolidations += u64::from(row.inputs >= 5 && row.outputs == 1);
            if row.inputs > MANY_INPUTS {
                range.many_input_txs += 1;
                range.many_input_legacy_txs += u64::from(!row.is_segwit);
            }
        }
    }

    fn block(&mut self, set: &BlockSet, row: &BlockRow, ledger: &mut Ledger) {
        let place = set.place(&row.place);
        let counts = &row.counts;
        let file = place.path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        ledger.blocks.push(BlockLine {
            height: row.height,
            hash: row.hash.to_string(),
            phase: part_of(row.height, self.last),
            file,
            offset: place.offset,
            bytes: counts.bytes,
            weight: counts.weight,
            txs: counts.txs,
            inputs: counts.inputs,
            outputs: counts.outputs,
            signatures: 0,
            time: row.time,
        });
        let tip = &mut ledger.tip;
        tip.txs += counts.txs;
        tip.inputs += counts.inputs;
        tip.outputs += counts.outputs;
        tip.bytes += counts.bytes;
        let spendable = counts.outputs - counts.of_kind(OutputKind::OpReturn).outputs;
        self.coins = (self.coins + spendable).saturating_sub(counts.inputs);
        let step = self.last.div_ceil(RANGES);
        if row.height.is_multiple_of(step) || row.height == self.last {
            self.range.last = row.height;
            self.range.coins = self.coins;
            let next = RangeLine { first: row.height + 1, ..RangeLine::default() };
            ledger.ranges.push(std::mem::replace(&mut self.range, next));
        }
    }
}

/// The phase of a height: one of ten of equal length.
fn part_of(height: u32, last: u32) -> Phase {
    let step = last.div_ceil(PHASES);
    let first = (height - 1) / step * step + 1;
    Phase::Heights { first, last: last.min(first + step - 1) }
}

/// Writes all lines to a temporary file and renames it when complete.
fn put(folder: &Path, ledger: &Ledger) -> std::io::Result<()> {
    let part = folder.join(LEDGER_PART);
    let mut out = BufWriter::new(File::create(&part)?);
    let mut line = |line: &Line| -> std::io::Result<()> {
        serde_json::to_writer(&mut out, line)?;
        out.write_all(b"\n")
    };
    line(&Line::Chain(ledger.chain.clone()))?;
    let mut ranges = ledger.ranges.iter().peekable();
    for block in &ledger.blocks {
        line(&Line::Block(block.clone()))?;
        if let Some(range) = ranges.next_if(|range| range.last == block.height) {
            line(&Line::Range(range.clone()))?;
        }
    }
    line(&Line::Tip(ledger.tip.clone()))?;
    out.into_inner()?.sync_all()?;
    fs::rename(part, folder.join(LEDGER))
}

fn report(ledger: &Ledger, kept: bool, json: bool) -> anyhow::Result<()> {
    let (chain, tip) = (&ledger.chain, &ledger.tip);
    let Some(files) = &chain.files else { return Ok(()) };
    if json {
        return output::print_json(&json!({
            "schema": 1,
            "kept": kept,
            "chain": chain.chain,
            "height": tip.height,
            "tip": tip.hash,
            "txs": tip.txs,
            "inputs": tip.inputs,
            "outputs": tip.outputs,
            "bytes": tip.bytes,
            "files": files,
        }));
    }
    output::print(&format!(
        "chain        {}, from {}{}\ntip          {} at height {}\nheaders      SHA-256 {}\ntransactions {}\ninputs       {}\n\
         outputs      {}\nbytes        {} in {} files\nstale blocks {}\n",
        chain.chain,
        files.path.display(),
        if kept { " (unchanged: the ledger was kept)" } else { "" },
        tip.hash,
        tip.height,
        files.headers_sha256,
        tip.txs,
        tip.inputs,
        tip.outputs,
        tip.bytes,
        files.count,
        files.stale,
    ))
}
