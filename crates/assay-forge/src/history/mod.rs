//! Chains that model the history of the main chain, era by era.
//!
//! Memory: 16 bytes per unspent coin (up to 64 while a block's coins are being spent, see [`wallet`]), 8 per block, and the
//! current block; txids are on disk. One thread plans, all threads sign.

mod draw;
mod eras;
mod plan;
mod resume;
mod shapes;
mod share;
mod tally;
mod txids;
mod wallet;

use std::{path::Path, time::Instant};

use rayon::prelude::*;

pub(crate) use self::eras::HistoryShape;
use self::{
    plan::{Planned, Planner},
    resume::Kept,
    tally::Tally,
    txids::Txids,
    wallet::Coin,
};
use crate::{
    forge_state::{Made, SignedBlock, Tail},
    keys::KeyId,
    ledger::{ChainLine, Line, Phase, RangeLine},
    lock::ScriptCache,
    output::{Output, OutputError},
    sign::Spend,
    signing_threads::{Signed, SpendJob},
    summary::{ForgeError, PhaseTime, Progress},
    utxo::Partial,
};

struct HistoryForge<'a, 'p> {
    shape: &'a HistoryShape,
    threads: &'a rayon::ThreadPool,
    locks: ScriptCache,
    tail: Tail,
    ranges: Vec<RangeLine>,
    signing_seconds: f64,
    progress: &'p mut dyn Progress,
    planner: Planner<'a>,
    tally: Tally,
    txids: Txids,
}

/// Inputs of a history.
pub(crate) struct Start<'a, 'p> {
    pub(crate) shape: &'a HistoryShape,
    pub(crate) threads: &'a rayon::ThreadPool,
    pub(crate) chain: &'a ChainLine,
    pub(crate) dir: &'a Path,
    pub(crate) progress: &'p mut dyn Progress,
}

/// Makes the chain, or the rest of one from an interrupted forge in the same folder.
pub(crate) fn make(start: Start<'_, '_>) -> Result<Made, ForgeError> {
    let Start { shape, threads, chain, dir, progress } = start;
    let network = shape.params.network;
    let magic = network.params().disk_magic;
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
        let mut output = Output::create(dir, magic)?;
        output.line(&Line::Chain(chain.clone()))?;
        (output, Txids::create(dir)?, Kept::default())
    };
    let mut forge = HistoryForge {
        shape,
        threads,
        locks: ScriptCache::new(shape.params.last_height, true),
        tail: Tail::new(output, network),
        ranges: Vec::new(),
        signing_seconds: 0.0,
        progress,
        planner: Planner::new(shape),
        tally: Tally::default(),
        txids,
    };
    let phases = forge.phases(kept)?;
    forge.finish(phases)
}

impl HistoryForge<'_, '_> {
    /// Makes all blocks; existing ones are only planned.
    fn phases(&mut self, kept: Kept) -> Result<Vec<PhaseTime>, ForgeError> {
        let mut times = Vec::new();
        let mut height = 0;
        let mut kept = kept.blocks.into_iter();
        for (phase, blocks) in self.shape.phases_made().collect::<Vec<_>>() {
            let begun = Instant::now();
            let before = self.tail.blocks.len();
            self.progress.phase(phase, blocks);
            for _ in 0..blocks {
                height += 1;
                let planned = self.planner.block(height);
                self.tally.add(height, &planned);
                let is_last_kept = kept.len() < 2;
                if let Some((line, hash)) = kept.next() {
                    let spent = planned.inputs.iter();
                    self.tail.schnorr +=
                        spent.filter(|(_, coin)| coin.kind.is_taproot()).count() as u64;
                    self.tail.previous = hash;
                    self.tail.blocks.push(line);
                } else {
                    self.block(phase, height, &planned)?;
                }
                self.end_range(height, is_last_kept)?;
            }
            times.push(PhaseTime::of(phase, blocks, &self.tail.blocks[before..], begun));
        }
        Ok(times)
    }

    /// Writes the summary line of a range at its end, unless a previous forge has written it.
    fn end_range(&mut self, height: u32, is_new: bool) -> Result<(), OutputError> {
        if height != self.shape.range(height).1 {
            return Ok(());
        }
        let line = self.tally.take(self.planner.wallet.total());
        if is_new {
            self.tail.output.line(&Line::Range(line.clone()))?;
        }
        self.ranges.push(line);
        Ok(())
    }

    fn block(&mut self, phase: Phase, height: u32, planned: &Planned) -> Result<(), ForgeError> {
        let begun = Instant::now();
        let mut signed = Signed::new();
        let mut spends = Vec::with_capacity(planned.inputs.len());
        for wave in [1..planned.second_wave, planned.second_wave..planned.len()] {
            for tx in wave.clone() {
                for (made, coin) in planned.inputs_of(tx) {
                    spends.push(self.spend(height, *made, coin, &signed)?);
                }
            }
            let job = SpendJob {
                threads: self.threads,
                network: self.shape.params.network,
                locks: &self.locks,
                outputs: &planned.outputs,
                first_input: &planned.first_input,
                spends: &spends,
            };
            job.sign(wave, &mut signed, self.progress);
        }
        self.signing_seconds += begun.elapsed().as_secs_f64();
        self.write(phase, height, planned, signed)
    }

    /// All data of an input.
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

    fn write(
        &mut self,
        phase: Phase,
        height: u32,
        planned: &Planned,
        mut signed: Signed,
    ) -> Result<(), ForgeError> {
        let order: Vec<_> = (0..planned.len()).collect();
        let signed_block = SignedBlock {
            params: &self.shape.params,
            phase,
            commits: self.shape.segwit().is_some_and(|segwit| height >= segwit),
            order: &order,
            outputs: &planned.outputs,
            inputs: planned.inputs.len() as u64,
        };
        self.tail.append(&signed_block, &mut signed, &self.locks, self.progress)?;
        self.txids.push(signed.txids)?;
        if height.is_multiple_of(FLUSHED_TOGETHER) {
            self.tail.output.flush()?;
        }
        Ok(())
    }

    /// Hashes the unspent coins, and removes the forge's temporary files.
    fn finish(mut self, phases: Vec<PhaseTime>) -> Result<Made, ForgeError> {
        let begun = Instant::now();
        let total = self.planner.wallet.total();
        let mut set = Partial::new();
        let mut batch = Vec::new();
        let mut in_batch = 0;
        for (height, coins) in self.planner.wallet.blocks() {
            if coins.is_empty() {
                continue;
            }
            in_batch += coins.len();
            batch.push((height, self.txids.block(height)?, coins));
            if in_batch >= HASHED_TOGETHER {
                set = set.join(hash(self.threads, &self.locks, &batch));
                self.progress.utxo(set.count, total);
                batch.clear();
                in_batch = 0;
            }
        }
        set = set.join(hash(self.threads, &self.locks, &batch));
        self.progress.utxo(set.count, total);
        self.txids.remove()?;
        Ok(Made {
            tail: self.tail,
            ranges: self.ranges,
            phases,
            set: set.finish(),
            signing_seconds: self.signing_seconds,
            utxo_seconds: begun.elapsed().as_secs_f64(),
        })
    }
}

fn key(made: u32, coin: &Coin) -> KeyId {
    KeyId { height: made, amount: coin.amount, index: coin.tx, vout: u32::from(coin.vout) }
}

/// Height, txids and coins of a block.
type BlockCoins = (u32, Vec<[u8; 32]>, Vec<Coin>);

fn hash(threads: &rayon::ThreadPool, locks: &ScriptCache, blocks: &[BlockCoins]) -> Partial {
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

/// Maximum blocks lost when the process is killed.
const FLUSHED_TOGETHER: u32 = 32;
/// Coins hashed per batch.
const HASHED_TOGETHER: usize = 1 << 16;
