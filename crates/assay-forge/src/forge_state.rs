//! Common steps of all chains: sign planned blocks, complete and write them, and track unspent outputs.

use std::{path::Path, time::Instant};

use assay_wire::BlockHash;
use faster_hex::hex_string;
use rayon::ThreadPool;

use crate::{
    block::{self, Coinbase, CoinbaseParts},
    coins::{BlockCoins, Coins},
    keys::KeyId,
    ledger::{BlockLine, ChainLine, Line, Phase, RangeLine, TipLine},
    lock::ScriptCache,
    network::Network,
    options::Params,
    output::Output,
    outputs::Outputs,
    plan::Plan,
    signing_threads::{Signed, SigningContext, sign_range},
    summary::{ForgeError, PhaseTime, Progress},
    utxo::{self, UtxoSet},
};

pub(crate) struct ForgeState<'p> {
    pub(crate) params: Params,
    pub(crate) threads: ThreadPool,
    pub(crate) locks: ScriptCache,
    pub(crate) coins: Coins,
    pub(crate) tail: Tail,
    pub(crate) signing_seconds: f64,
    pub(crate) progress: &'p mut dyn Progress,
}

/// The chain directory and its tip, to which blocks are appended.
pub(crate) struct Tail {
    pub(crate) output: Output,
    pub(crate) previous: [u8; 32],
    pub(crate) blocks: Vec<BlockLine>,
    pub(crate) schnorr: u64,
}

/// A block whose transactions are signed, except the coinbase.
pub(crate) struct SignedBlock<'a> {
    pub(crate) params: &'a Params,
    pub(crate) phase: Phase,
    /// True if the block commits to witnesses (BIP141).
    pub(crate) commits: bool,
    /// Transactions in block order.
    pub(crate) order: &'a [u32],
    /// Of all transactions, without the commitment.
    pub(crate) outputs: &'a Outputs,
    pub(crate) inputs: u64,
}

/// A chain whose ledger lacks only its last line.
pub(crate) struct Made {
    pub(crate) tail: Tail,
    pub(crate) ranges: Vec<RangeLine>,
    pub(crate) phases: Vec<PhaseTime>,
    pub(crate) set: UtxoSet,
    pub(crate) signing_seconds: f64,
    pub(crate) utxo_seconds: f64,
}

impl Tail {
    /// A chain without blocks.
    pub(crate) fn new(output: Output, network: Network) -> Self {
        let previous = network.params().genesis_hash.0;
        Self { output, previous, blocks: Vec::new(), schnorr: 0 }
    }

    /// Completes a block by its coinbase, whose txid it adds to `signed`, and writes it, with its order and its ledger line.
    pub(crate) fn append(
        &mut self,
        signed_block: &SignedBlock<'_>,
        signed: &mut Signed,
        locks: &ScriptCache,
        progress: &mut dyn Progress,
    ) -> Result<(), ForgeError> {
        let SignedBlock { params, phase, commits, order, outputs, inputs } = *signed_block;
        let (height, time) = (outputs.height, params.time(outputs.height));
        // BIP141 uses zero as the coinbase's own wtxid, as in `signed`.
        let witness_root = if commits { block::root(&signed.wtxids, order) } else { [0; 32] };
        let pay = outputs.pay(params.distinct, 0, 0);
        let coinbase = locks.with(pay.kind, &pay.key, |lock| {
            Coinbase::new(&CoinbaseParts {
                commits,
                height,
                seed: params.seed,
                amount: pay.amount,
                script: lock.script(),
                witness_root,
            })
        });
        signed.txids[0] = coinbase.txid;
        let signed: &Signed = signed;
        let root = block::root(&signed.txids, order);
        let mined = block::mine(params.network, &self.previous, &root, time);
        let count = block::count_bytes(order.len() as u64);

        let mut offsets = vec![0u32; order.len()];
        let mut bytes = (mined.bytes.len() + count.len() + coinbase.bytes.len()) as u64;
        for tx in &order[1..] {
            offsets[*tx as usize] = bytes as u32;
            bytes += u64::from(signed.places[*tx as usize].bytes);
        }
        let head = [&mined.bytes[..], &count, &coinbase.bytes];
        let body = order[1..].iter().map(|tx| signed.tx(*tx));
        let place = self.output.block(bytes, head.into_iter().chain(body))?;
        self.output.order(height, &order_records(signed, &offsets))?;

        let line = BlockLine {
            height,
            hash: BlockHash(mined.hash).to_string(),
            phase,
            file: place.file,
            offset: place.offset,
            bytes,
            weight: 4 * (80 + count.len() as u64) + coinbase.weight + signed.weight,
            txs: order.len() as u64,
            inputs,
            outputs: outputs.len() as u64 + u64::from(commits),
            signatures: signed.signatures,
            time,
        };
        self.output.line(&Line::Block(line.clone()))?;
        progress.block(&line);
        self.blocks.push(line);
        self.previous = mined.hash;
        self.schnorr += signed.schnorr;
        Ok(())
    }

    pub(crate) fn tip(&self, set: &UtxoSet) -> TipLine {
        let last = self.blocks.last().expect("there is at least one block");
        let sum = |count: fn(&BlockLine) -> u64| self.blocks.iter().map(count).sum();
        TipLine {
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
        }
    }
}

impl<'p> ForgeState<'p> {
    /// A chain without blocks in a new folder.
    pub(crate) fn new(
        params: Params,
        threads: ThreadPool,
        chain: &ChainLine,
        dir: &Path,
        progress: &'p mut dyn Progress,
    ) -> Result<Self, ForgeError> {
        let network = params.network;
        let mut output = Output::create(dir, network.params().disk_magic)?;
        output.line(&Line::Chain(chain.clone()))?;
        Ok(Self {
            locks: ScriptCache::new(params.last_height, params.distinct),
            params,
            threads,
            coins: Coins::default(),
            tail: Tail::new(output, network),
            signing_seconds: 0.0,
            progress,
        })
    }

    pub(crate) fn empty_block(&mut self, phase: Phase) -> Result<(), ForgeError> {
        let plan = self.new_plan();
        self.finish_block(phase, plan, Signed::new())
    }

    /// A plan for the next block, with only its coinbase.
    pub(crate) fn new_plan(&self) -> Plan {
        let height = self.coins.next_height();
        let subsidy = self.params.network.subsidy(height);
        Plan::new(height, subsidy, KeyId::published(height, subsidy))
    }

    /// Signs the planned transactions from this one on, all of whose inputs are from earlier blocks.
    pub(crate) fn sign(&mut self, plan: &Plan, from: u32, signed: &mut Signed) {
        let begun = Instant::now();
        request_locks(&mut self.locks, self.params.distinct, plan, from);
        self.locks.prepare(&self.threads);
        let context = signing_context(&self.params, &self.threads, &self.locks, &self.coins);
        sign_range(context, plan, from..plan.len(), signed, self.progress);
        self.signing_seconds += begun.elapsed().as_secs_f64();
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
        let signed_block = SignedBlock {
            params: &self.params,
            phase,
            commits: network.segwit(),
            order: &order,
            outputs: &plan.outputs,
            inputs: plan.inputs.len() as u64,
        };
        self.tail.append(&signed_block, &mut signed, &self.locks, self.progress)?;
        self.remember(plan, signed.txids, order);
        Ok(())
    }

    /// Stores the block's outputs and marks the spent ones.
    fn remember(&mut self, plan: Plan, txids: Vec<[u8; 32]>, order: Vec<u32>) {
        self.coins.push(BlockCoins::new(plan.outputs, plan.first_ordinary, txids, order));
        for coin in plan.inputs {
            self.coins.spend(coin);
        }
    }

    /// Hashes the unspent outputs of the finished chain.
    pub(crate) fn finish(self, phases: Vec<PhaseTime>) -> Made {
        let begun = Instant::now();
        let set = utxo::summarise(
            &self.coins,
            &self.locks,
            self.params.distinct,
            &self.threads,
            self.progress,
        );
        Made {
            tail: self.tail,
            ranges: Vec::new(),
            phases,
            set,
            signing_seconds: self.signing_seconds,
            utxo_seconds: begun.elapsed().as_secs_f64(),
        }
    }
}

pub(crate) fn signing_context<'a>(
    params: &Params,
    threads: &'a ThreadPool,
    locks: &'a ScriptCache,
    coins: &'a Coins,
) -> SigningContext<'a> {
    SigningContext { threads, network: params.network, distinct: params.distinct, locks, coins }
}

/// Requests the locks of all outputs from transaction `from` on.
pub(crate) fn request_locks(locks: &mut ScriptCache, distinct: bool, plan: &Plan, from: u32) {
    let mut pays = Vec::new();
    for tx in from..plan.len() {
        plan.outputs.pays(distinct, tx, &mut pays);
        for pay in &pays {
            locks.request(pay.kind, &pay.key);
        }
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
