//! Chains that model the history of the main chain, era by era.
//!
//! Memory: 16 bytes per unspent coin (up to 64 while a block's coins are being spent, see [`wallet`]), 8 per block, and the
//! current block; txids are on disk. One thread plans, all threads sign.

mod eras;
mod plan;
mod resume;
mod shapes;
mod txids;
mod wallet;

use std::{collections::BTreeMap, path::Path, time::Instant};

use rayon::{ThreadPool, prelude::*};

pub(crate) use self::eras::HistoryShape;
use self::{
    plan::{Planned, Planner},
    resume::Kept,
    txids::Txids,
    wallet::Coin,
};
use crate::{
    forge_state::{ForgeState, Made},
    keys::KeyId,
    kind::Kind,
    ledger::{ChainLine, Line, Phase, RangeLine},
    lock::ScriptCache,
    output::{Output, OutputError},
    plan::Plan,
    sign::Spend,
    signing_threads::{Signed, SigningContext, sign_range},
    summary::{ForgeError, Progress},
    utxo::Partial,
};

struct HistoryForge<'a, 'p> {
    shape: &'a HistoryShape,
    state: ForgeState<'p>,
    ranges: Vec<RangeLine>,
    planner: Planner<'a>,
    tally: Tally,
    txids: Txids,
}

/// Makes the chain, or the rest of one from an interrupted forge in the same folder.
pub(crate) fn make(
    shape: &HistoryShape,
    threads: ThreadPool,
    chain: &ChainLine,
    dir: &Path,
    progress: &mut dyn Progress,
) -> Result<Made, ForgeError> {
    let magic = shape.params.network.params().disk_magic;
    let mut begun = None;
    if Output::is_interrupted(dir)? {
        let mut txids = Txids::create(dir)?;
        let kept = resume::kept(dir, chain, magic, &mut txids, progress)?;
        if let Some((last, _)) = kept.blocks.last() {
            begun = Some((Output::resume(dir, magic, last, kept.ledger_end)?, txids, kept));
        }
    }
    let (output, txids, kept) = if let Some(begun) = begun {
        begun
    } else {
        (Output::create(dir, magic, chain)?, Txids::create(dir)?, Kept::default())
    };
    let mut forge = HistoryForge {
        shape,
        state: ForgeState::new(shape.params.clone(), threads, output, progress),
        ranges: Vec::new(),
        planner: Planner::new(shape),
        tally: Tally::default(),
        txids,
    };
    forge.phases(kept)?;
    forge.finish()
}

impl HistoryForge<'_, '_> {
    /// Makes all blocks; existing ones are only planned.
    fn phases(&mut self, kept: Kept) -> Result<(), ForgeError> {
        let shape = self.shape;
        let mut height = 0;
        let mut kept = kept.blocks.into_iter();
        for (phase, blocks) in shape.phases_made() {
            self.state.phase(phase, blocks);
            for _ in 0..blocks {
                height += 1;
                let planned = self.planner.block(height);
                self.tally.add(height, &planned.plan);
                let is_last_kept = kept.len() < 2;
                if let Some((line, hash)) = kept.next() {
                    let spent = planned.plan.inputs.iter();
                    let schnorr = spent.filter(|(_, coin)| coin.kind.is_taproot()).count();
                    self.state.keep(line, hash, schnorr as u64);
                } else {
                    self.block(phase, height, &planned)?;
                }
                self.end_range(height, is_last_kept)?;
            }
        }
        Ok(())
    }

    /// Writes the summary line of a range at its end, unless a previous forge has written it.
    fn end_range(&mut self, height: u32, is_new: bool) -> Result<(), OutputError> {
        if height != self.shape.range(height).1 {
            return Ok(());
        }
        let line = self.tally.take(self.planner.wallet.total());
        if is_new {
            self.state.output.line(&Line::Range(line.clone()))?;
        }
        self.ranges.push(line);
        Ok(())
    }

    fn block(&mut self, phase: Phase, height: u32, planned: &Planned) -> Result<(), ForgeError> {
        let begun = Instant::now();
        let Planned { plan, second_wave } = planned;
        let mut signed = Signed::new();
        let mut spends = Vec::with_capacity(plan.inputs.len());
        for wave in [1..*second_wave, *second_wave..plan.len()] {
            for tx in wave.clone() {
                for (made, coin) in plan.inputs_of(tx) {
                    spends.push(self.spend(height, *made, coin, &signed)?);
                }
            }
            let ForgeState { params, threads, locks, progress, .. } = &mut self.state;
            let context = SigningContext::new(params, threads, locks, CHUNK_INPUTS);
            let spends_of = |tx: u32, found: &mut Vec<Spend>| {
                found.extend_from_slice(&spends[plan.input_range(tx)]);
            };
            sign_range(context, plan, wave, spends_of, &mut signed, *progress);
        }
        self.state.signing_seconds += begun.elapsed().as_secs_f64();
        let order: Vec<_> = (0..plan.len()).collect();
        let commits = self.shape.segwit().is_some_and(|segwit| height >= segwit);
        self.state.append(phase, plan, commits, &order, &mut signed)?;
        self.txids.push(signed.txids)?;
        if height.is_multiple_of(FLUSHED_TOGETHER) {
            self.state.output.flush()?;
        }
        Ok(())
    }

    fn spend(
        &mut self,
        height: u32,
        made: u32,
        coin: &Coin,
        signed: &Signed,
    ) -> Result<Spend, OutputError> {
        let Coin { amount, tx, vout, kind } = *coin;
        let vout = u32::from(vout);
        let txid =
            if made == height { signed.txids[tx as usize] } else { self.txids.get(made, tx)? };
        Ok(Spend { txid, vout, amount, kind, key: key(made, coin) })
    }

    /// Hashes the unspent coins, and removes the forge's temporary files.
    fn finish(self) -> Result<Made, ForgeError> {
        let begun = Instant::now();
        let Self { state, ranges, planner, mut txids, .. } = self;
        let total = planner.wallet.total();
        let mut set = Partial::new();
        let mut batch = Vec::new();
        let mut in_batch = 0;
        for (height, coins) in planner.wallet.blocks() {
            if coins.is_empty() {
                continue;
            }
            in_batch += coins.len();
            batch.push((height, txids.block(height)?, coins));
            if in_batch >= HASHED_TOGETHER {
                set = set.join(hash(&state.threads, &state.locks, &batch));
                state.progress.utxo(set.count, total);
                batch.clear();
                in_batch = 0;
            }
        }
        set = set.join(hash(&state.threads, &state.locks, &batch));
        state.progress.utxo(set.count, total);
        txids.remove()?;
        state.finish_with(ranges, &set.finish(), begun)
    }
}

/// Counts of the current range of heights, collected while blocks are planned.
#[derive(Default)]
struct Tally {
    line: RangeLine,
    made: [u64; Kind::ALL.len()],
    spent: [u64; Kind::ALL.len()],
}

impl Tally {
    fn add(&mut self, height: u32, block: &Plan<(u32, Coin)>) {
        let line = &mut self.line;
        if line.first == 0 {
            line.first = height;
        }
        line.last = height;
        line.txs += u64::from(block.len()) - 1;
        line.inputs += block.inputs.len() as u64;
        for tx in 1..block.len() {
            let spent = block.inputs_of(tx);
            let outputs = block.outputs.count(tx);
            line.outputs += u64::from(outputs);
            let is_segwit = spent.iter().any(|(_, coin)| coin.kind.has_witness());
            line.segwit_txs += u64::from(is_segwit);
            line.taproot_txs += u64::from(spent.iter().any(|(_, coin)| coin.kind.is_taproot()));
            let is_many = spent.len() > MANY;
            line.many_input_txs += u64::from(is_many);
            line.many_input_legacy_txs += u64::from(is_many && !is_segwit);
            line.consolidations += u64::from(spent.len() >= CONSOLIDATION && outputs == 1);
            for vout in 0..outputs {
                self.made[block.outputs.kind(tx, vout) as usize] += 1;
            }
        }
        for (made, coin) in &block.inputs {
            self.spent[coin.kind as usize] += 1;
            let age = height - made;
            let bucket = if age == 0 { 0 } else { 1 + age.ilog2() as usize };
            if line.ages.len() <= bucket {
                line.ages.resize(bucket + 1, 0);
            }
            line.ages[bucket] += 1;
        }
    }

    /// The line of the finished range, with `coins` in the UTXO set; resets the counts.
    fn take(&mut self, coins: u64) -> RangeLine {
        let named = |counts: &[u64]| -> BTreeMap<String, u64> {
            let named = Kind::ALL.iter().zip(counts).filter(|(_, count)| **count > 0);
            named.map(|(kind, count)| (kind.name().to_owned(), *count)).collect()
        };
        let (made, spent) = (named(&self.made), named(&self.spent));
        let line = std::mem::take(self).line;
        RangeLine { made, spent, coins, ..line }
    }
}

fn key(made: u32, coin: &Coin) -> KeyId {
    KeyId { height: made, amount: coin.amount, index: coin.tx, vout: u32::from(coin.vout) }
}

type BlockCoins = (u32, Vec<[u8; 32]>, Vec<Coin>);

fn hash(threads: &ThreadPool, locks: &ScriptCache, blocks: &[BlockCoins]) -> Partial {
    threads.install(|| {
        let of_block = |(height, txids, coins): &BlockCoins| {
            let mut part = Partial::new();
            for coin in coins {
                let txid = &txids[coin.tx as usize];
                let (height, is_coinbase) = (*height, coin.tx == 0);
                locks.with(coin.kind, &key(height, coin), |lock| {
                    let outpoint = (txid, u32::from(coin.vout));
                    part.add(outpoint, (height, is_coinbase), coin.amount, lock.script());
                });
            }
            part
        };
        blocks.par_iter().map(of_block).reduce(Partial::new, Partial::join)
    })
}

/// Inputs per unit of signing: blocks have few inputs.
const CHUNK_INPUTS: usize = 12;
/// Maximum blocks lost when the process is killed.
const FLUSHED_TOGETHER: u32 = 32;
const HASHED_TOGETHER: usize = 1 << 16;
/// Transactions with more inputs count as many-input transactions, as in Lopp's charts.
const MANY: usize = 50;
/// Minimum inputs of a consolidation, which has one output.
const CONSOLIDATION: usize = 5;
