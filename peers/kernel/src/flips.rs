//! Single flipped bits of real blocks, in signatures, keys, scripts and amounts, verified by both interpreters.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, ensure};
use assay_consensus::params::ChainParams;
use assay_consensus::script::{Flags, Interpreter};
use assay_engine::parse_prevouts;
use assay_wire::{Block, Encoding, TxOut};
use serde::Serialize;

use crate::build::{Output, Rng, Tx};
use crate::scripts::{TxVerdict, describe, judge_tx};

#[derive(Clone, Debug, Default, Serialize)]
pub struct Summary {
    pub seed: u64,
    pub blocks: Vec<String>,
    /// Verified inputs of the unchanged blocks; both interpreters pass all of them.
    pub unchanged: u64,
    pub flips: u64,
    /// Flips after which an input fails.
    pub rejected: u64,
    /// Flips without effect on consensus.
    pub ignored: u64,
    /// Rejected and ignored flips, by target.
    pub targets: BTreeMap<&'static str, (u64, u64)>,
    pub disagreements: Vec<String>,
}

/// A real block with its spent outputs.
struct RealBlock {
    txs: Vec<Tx>,
    spent: Vec<Vec<Output>>,
    flags: Flags,
}

/// Maximum number of inputs verified after a flip in the outputs of a transaction.
const INPUTS_MAX: usize = 40;

/// Flips `flips` bits over all blocks of `data/blocks` that have prevouts.
pub fn run(data: &Path, flips: u64, seed: u64) -> Result<Summary> {
    let mut summary = Summary { seed, ..Summary::default() };
    let mut blocks = Vec::new();
    for path in block_paths(&data.join("blocks"))? {
        let name = path.file_stem().and_then(|name| name.to_str()).unwrap_or_default().to_owned();
        blocks.push(load(&path, &name).with_context(|| format!("reading {}", path.display()))?);
        summary.blocks.push(name);
    }
    ensure!(!blocks.is_empty(), "no blocks with prevouts below {}", data.display());
    let mut interpreter = Interpreter::default();
    for block in &blocks {
        judge_unchanged(block, &mut interpreter, &mut summary);
    }
    let mut rng = Rng::new("assay peer kernel flips", seed, 0);
    for number in 0..flips {
        let block = &blocks[(number % blocks.len() as u64) as usize];
        flip_one(block, &mut rng, &mut interpreter, &mut summary);
    }
    Ok(summary)
}

fn block_paths(dir: &Path) -> Result<Vec<PathBuf>> {
    let mut paths: Vec<PathBuf> = std::fs::read_dir(dir)
        .with_context(|| format!("reading {}", dir.display()))?
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.extension().is_some_and(|extension| extension == "blk"))
        .filter(|path| path.with_extension("prevouts").exists())
        .collect();
    paths.sort();
    Ok(paths)
}

fn load(path: &Path, name: &str) -> Result<RealBlock> {
    let (network, height) = name.split_once('-').context("the name is not network-height")?;
    let params = ChainParams::by_name(network).context("unknown network")?;
    let height: u32 = height.parse().context("the name is not network-height")?;
    let block = Block::parse(std::fs::read(path)?, Encoding::Segwit)?;
    let txs: Vec<Tx> = block.txs().skip(1).map(Tx::from_wire).collect();
    let bytes = std::fs::read(path.with_extension("prevouts"))?;
    let mut outputs = parse_prevouts(&bytes, txs.iter().map(|tx| tx.inputs.len()).sum())?
        .into_iter()
        .map(|TxOut { value, script_pubkey }| Output {
            value,
            script_pubkey: script_pubkey.to_vec(),
        });
    let spent = txs.iter().map(|tx| outputs.by_ref().take(tx.inputs.len()).collect()).collect();
    Ok(RealBlock { txs, spent, flags: params.block_script_flags(height, &block.hash()) })
}

fn judge_unchanged(block: &RealBlock, interpreter: &mut Interpreter, summary: &mut Summary) {
    for (tx, spent) in block.txs.iter().zip(&block.spent) {
        let raw = tx.bytes();
        let verdict = judge_tx(&raw, spent, 0..spent.len(), block.flags, interpreter);
        let TxVerdict::Inputs(verdicts) = verdict else {
            summary.disagreements.push(format!("undecodable: {}", faster_hex::hex_string(&raw)));
            continue;
        };
        for (input, verdict) in verdicts {
            summary.unchanged += 1;
            if verdict.engine.is_err() || !verdict.kernel {
                summary.disagreements.push(describe(&raw, spent, input, block.flags, &verdict));
            }
        }
    }
}

fn flip_bytes(rng: &mut Rng, bytes: &mut [u8]) -> bool {
    if bytes.is_empty() {
        return false;
    }
    let at = rng.below(bytes.len());
    bytes[at] ^= 1 << rng.below(8);
    true
}

/// Flips one bit of a random transaction or of its spent outputs; returns the target.
fn flip(rng: &mut Rng, tx: &mut Tx, spent: &mut [Output], input: usize) -> Option<&'static str> {
    match rng.below(9) {
        0..=2 if !tx.inputs[input].witness.is_empty() => {
            let item = rng.below(tx.inputs[input].witness.len());
            flip_bytes(rng, &mut tx.inputs[input].witness[item]).then_some("witness")
        }
        0..=3 => flip_bytes(rng, &mut tx.inputs[input].script_sig).then_some("input script"),
        4 | 5 => flip_bytes(rng, &mut spent[input].script_pubkey).then_some("spent script"),
        6 => {
            spent[input].value ^= 1 << rng.below(51);
            Some("spent amount")
        }
        7 => {
            let output = rng.below(tx.outputs.len());
            tx.outputs[output].value ^= 1 << rng.below(51);
            Some("paid amount")
        }
        _ => {
            let output = rng.below(tx.outputs.len());
            flip_bytes(rng, &mut tx.outputs[output].script_pubkey).then_some("paid script")
        }
    }
}

fn flip_one(
    block: &RealBlock,
    rng: &mut Rng,
    interpreter: &mut Interpreter,
    summary: &mut Summary,
) {
    let (tx, spent, target, input) = loop {
        let index = rng.below(block.txs.len());
        let (mut tx, mut spent) = (block.txs[index].clone(), block.spent[index].clone());
        let input = rng.below(tx.inputs.len());
        if let Some(target) = flip(rng, &mut tx, &mut spent, input) {
            break (tx, spent, target, input);
        }
    };
    let raw = tx.bytes();
    // All inputs sign amounts and scripts of outputs, and since Taproot spent outputs too.
    let which: Vec<usize> = match target {
        "input script" | "witness" => vec![input],
        _ => std::iter::once(input)
            .chain((0..spent.len()).filter(|other| *other != input))
            .take(INPUTS_MAX)
            .collect(),
    };
    let verdict = judge_tx(&raw, &spent, which, block.flags, interpreter);
    summary.flips += 1;
    let mut is_rejected = false;
    match verdict {
        TxVerdict::Undecodable(ours, theirs) => {
            is_rejected = true;
            if ours != theirs {
                let hex = faster_hex::hex_string(&raw);
                summary.disagreements.push(format!("engine {ours}, kernel {theirs}: {hex}"));
            }
        }
        TxVerdict::Inputs(verdicts) => {
            for (input, verdict) in verdicts {
                is_rejected |= verdict.engine.is_err();
                if !verdict.agrees() {
                    let text = describe(&raw, &spent, input, block.flags, &verdict);
                    summary.disagreements.push(text);
                }
            }
        }
    }
    let counts = summary.targets.entry(target).or_default();
    if is_rejected {
        summary.rejected += 1;
        counts.0 += 1;
    } else {
        summary.ignored += 1;
        counts.1 += 1;
    }
}
