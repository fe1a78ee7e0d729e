//! Common steps of all chains: sign planned blocks, complete and write them, and track unspent outputs.

use std::{ops::Range, path::Path, time::Instant};

use assay_wire::{BlockHash, encode::compact_size};
use faster_hex::hex_string;
use rayon::ThreadPool;

use crate::{
    block::{self, Coinbase},
    coins::{BlockCoins, Coins},
    keys::KeyId,
    kind::Kind,
    ledger::{BlockLine, ChainLine, Line, Phase, RangeLine, TipLine},
    lock::ScriptCache,
    options::Params,
    output::Output,
    plan::Plan,
    sign::Spend,
    signing_threads::{Signed, SigningContext, sign_range},
    summary::{ForgeError, PhaseTime, Progress},
    utxo::{self, UtxoSet},
};

pub(crate) struct ForgeState<'p> {
    pub(crate) params: Params,
    pub(crate) threads: ThreadPool,
    pub(crate) locks: ScriptCache,
    /// Outputs of all blocks; empty for a history, which has a wallet.
    pub(crate) coins: Coins,
    pub(crate) output: Output,
    pub(crate) signing_seconds: f64,
    pub(crate) progress: &'p mut dyn Progress,
    /// Hash of the last block.
    previous: [u8; 32],
    blocks: Vec<BlockLine>,
    schnorr: u64,
    phases: Vec<PhaseTime>,
    phase_begun: Instant,
}

pub(crate) struct Made {
    pub(crate) blocks: Vec<BlockLine>,
    pub(crate) ranges: Vec<RangeLine>,
    pub(crate) tip: TipLine,
    pub(crate) schnorr: u64,
    pub(crate) phases: Vec<PhaseTime>,
    pub(crate) signing_seconds: f64,
    pub(crate) utxo_seconds: f64,
}

impl<'p> ForgeState<'p> {
    /// A chain without blocks in a new folder.
    pub(crate) fn create(
        params: Params,
        threads: ThreadPool,
        chain: &ChainLine,
        dir: &Path,
        progress: &'p mut dyn Progress,
    ) -> Result<Self, ForgeError> {
        let output = Output::create(dir, params.network.params().disk_magic, chain)?;
        Ok(Self::new(params, threads, output, progress))
    }

    pub(crate) fn new(
        params: Params,
        threads: ThreadPool,
        output: Output,
        progress: &'p mut dyn Progress,
    ) -> Self {
        Self {
            locks: ScriptCache::new(params.last_height, params.distinct),
            previous: params.network.params().genesis_hash.0,
            params,
            threads,
            coins: Coins::default(),
            output,
            signing_seconds: 0.0,
            progress,
            blocks: Vec::new(),
            schnorr: 0,
            phases: Vec::new(),
            phase_begun: Instant::now(),
        }
    }

    /// Begins a phase with this many blocks.
    pub(crate) fn phase(&mut self, phase: Phase, blocks: u32) {
        self.progress.phase(phase, blocks);
        self.phases.push(PhaseTime { phase, blocks, signatures: 0, seconds: 0.0 });
        self.phase_begun = Instant::now();
    }

    pub(crate) fn empty_block(&mut self, phase: Phase) -> Result<(), ForgeError> {
        let plan = self.new_plan();
        self.finish_block(phase, plan, Signed::new())
    }

    /// A plan for the next block, with only its coinbase.
    pub(crate) fn new_plan(&self) -> Plan {
        let height = self.coins.next_height();
        let subsidy = self.params.network.subsidy(height);
        Plan::new(height, subsidy, Kind::P2pkh, KeyId::published(height, subsidy))
    }

    /// Derives the locks of all outputs of some transactions.
    pub(crate) fn prepare_locks(&mut self, plan: &Plan, range: Range<u32>) {
        let mut pays = Vec::new();
        for tx in range {
            plan.outputs.pays(self.params.distinct, tx, &mut pays);
            for pay in &pays {
                self.locks.request(pay.kind, &pay.key);
            }
        }
        self.locks.prepare(&self.threads);
    }

    /// Signs planned transactions, all of whose inputs are from earlier blocks.
    pub(crate) fn sign(&mut self, plan: &Plan, range: Range<u32>, signed: &mut Signed) {
        let begun = Instant::now();
        self.prepare_locks(plan, range.clone());
        self.sign_range(plan, range, signed);
        self.signing_seconds += begun.elapsed().as_secs_f64();
    }

    /// The same for transactions with derived locks.
    pub(crate) fn sign_range(&mut self, plan: &Plan, range: Range<u32>, signed: &mut Signed) {
        let Self { params, threads, locks, coins, progress, .. } = self;
        let spends_of = |tx: u32, spends: &mut Vec<Spend>| {
            let inputs = plan.inputs_of(tx).iter();
            spends.extend(inputs.map(|coin| coins.spend_of(params.distinct, *coin)));
        };
        let context = SigningContext::new(params, threads, locks, CHUNK_INPUTS);
        sign_range(context, plan, range, spends_of, signed, *progress);
    }

    /// Completes a signed block and writes it, with its order and its ledger line.
    pub(crate) fn finish_block(
        &mut self,
        phase: Phase,
        plan: Plan,
        mut signed: Signed,
    ) -> Result<(), ForgeError> {
        assert_eq!(signed.txids.len(), plan.len() as usize, "every planned transaction is signed");
        let network = self.params.network;
        let order = block::block_order(network, &signed.txids, &self.threads);
        let pay = plan.outputs.pay(self.params.distinct, 0, 0);
        self.locks.request(pay.kind, &pay.key);
        self.locks.prepare(&self.threads);
        self.append(phase, &plan, network.segwit(), &order, &mut signed)?;
        self.coins.push(BlockCoins::new(plan.outputs, plan.first_ordinary, signed.txids, order));
        plan.inputs.into_iter().for_each(|coin| self.coins.spend(coin));
        Ok(())
    }

    /// Completes a block by its coinbase, whose txid it adds to `signed`, and writes it in `order`, with its order and its ledger
    /// line. With `commits` it commits to witnesses (BIP141).
    pub(crate) fn append<I>(
        &mut self,
        phase: Phase,
        plan: &Plan<I>,
        commits: bool,
        order: &[u32],
        signed: &mut Signed,
    ) -> Result<(), ForgeError> {
        let (params, outputs) = (&self.params, &plan.outputs);
        let (height, time) = (outputs.height, params.time(outputs.height));
        // BIP141 uses zero as the coinbase's own wtxid, as in `signed`.
        let witness_root = commits.then(|| block::root(&signed.wtxids, order));
        let pay = outputs.pay(params.distinct, 0, 0);
        let coinbase = self.locks.with(pay.kind, &pay.key, |lock| {
            Coinbase::new((height, params.seed), (pay.amount, lock.script()), witness_root)
        });
        signed.txids[0] = coinbase.txid;
        let signed: &Signed = signed;
        let root = block::root(&signed.txids, order);
        let (header, hash) = block::mine(params.network, &self.previous, &root, time);
        let mut count = Vec::with_capacity(9);
        compact_size(&mut count, order.len() as u64);

        let mut offsets = vec![0u32; order.len()];
        let mut bytes = (header.len() + count.len() + coinbase.bytes.len()) as u64;
        for tx in &order[1..] {
            offsets[*tx as usize] = bytes as u32;
            bytes += u64::from(signed.places[*tx as usize].bytes);
        }
        let head = [&header[..], &count, &coinbase.bytes];
        let body = order[1..].iter().map(|tx| signed.tx(*tx));
        let (file, offset) = self.output.block(bytes, head.into_iter().chain(body))?;
        self.output.order(height, &order_records(signed, &offsets))?;

        let line = BlockLine {
            height,
            hash: BlockHash(hash).to_string(),
            phase,
            file,
            offset,
            bytes,
            weight: 4 * (80 + count.len() as u64) + coinbase.weight + signed.weight,
            txs: order.len() as u64,
            inputs: plan.inputs.len() as u64,
            outputs: outputs.len() as u64 + u64::from(commits),
            signatures: signed.signatures,
            time,
        };
        self.output.line(&Line::Block(line.clone()))?;
        self.progress.block(&line);
        self.keep(line, hash, signed.schnorr);
        Ok(())
    }

    /// Counts a written block as the tip.
    pub(crate) fn keep(&mut self, line: BlockLine, hash: [u8; 32], schnorr: u64) {
        if let Some(phase) = self.phases.last_mut() {
            phase.signatures += line.signatures;
            phase.seconds = self.phase_begun.elapsed().as_secs_f64();
        }
        self.blocks.push(line);
        self.previous = hash;
        self.schnorr += schnorr;
    }

    /// Hashes the unspent outputs of the finished chain, and finishes the ledger.
    pub(crate) fn finish(mut self) -> Result<Made, ForgeError> {
        let begun = Instant::now();
        let Self { coins, locks, params, threads, progress, .. } = &mut self;
        let set = utxo::summarise(coins, locks, params.distinct, threads, *progress);
        self.finish_with(Vec::new(), &set, begun)
    }

    /// Finishes the ledger of a chain with this UTXO set, which has been hashed since `begun`.
    pub(crate) fn finish_with(
        self,
        ranges: Vec<RangeLine>,
        set: &UtxoSet,
        begun: Instant,
    ) -> Result<Made, ForgeError> {
        let utxo_seconds = begun.elapsed().as_secs_f64();
        let Self { mut output, blocks, schnorr, phases, signing_seconds, .. } = self;
        let last = blocks.last().expect("there is at least one block");
        let sum = |count: fn(&BlockLine) -> u64| blocks.iter().map(count).sum();
        let tip = TipLine {
            height: last.height,
            hash: last.hash.clone(),
            utxo_count: set.count,
            utxo_amount: set.amount,
            utxo_muhash: hex_string(&set.muhash),
            txs: sum(|line| line.txs),
            inputs: sum(|line| line.inputs),
            outputs: sum(|line| line.outputs),
            bytes: sum(|line| line.bytes),
            signatures: sum(|line| line.signatures),
        };
        output.line(&Line::Tip(tip.clone()))?;
        output.finish()?;
        Ok(Made { blocks, ranges, tip, schnorr, phases, signing_seconds, utxo_seconds })
    }
}

/// The generation order in file format: txid, offset in the raw block, length.
fn order_records(signed: &Signed, offsets: &[u32]) -> Vec<u8> {
    let mut records = Vec::with_capacity(40 * (offsets.len() - 1));
    for ((txid, offset), place) in signed.txids.iter().zip(offsets).zip(&signed.places).skip(1) {
        records.extend_from_slice(txid);
        records.extend_from_slice(&offset.to_le_bytes());
        records.extend_from_slice(&place.bytes.to_le_bytes());
    }
    records
}

/// Inputs per unit of signing, about two milliseconds.
pub(crate) const CHUNK_INPUTS: usize = 128;
