//! Common steps of all chains: sign planned blocks, complete and write them, and track unspent outputs.

use std::time::Instant;

use assay_wire::BlockHash;
use faster_hex::hex_string;
use rayon::ThreadPool;

use crate::{
    block::{self, Coinbase, CoinbaseParts},
    coins::{BlockCoins, Coins},
    keys::KeyId,
    ledger::{BlockLine, Line, Phase, TipLine},
    lock::ScriptCache,
    network::Network,
    options::Params,
    output::Output,
    plan::Plan,
    sign::{Signed, SigningContext, sign_range},
    summary::{ForgeError, Progress},
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

pub(crate) struct SignedBlock<'a> {
    pub(crate) network: Network,
    pub(crate) height: u32,
    pub(crate) phase: Phase,
    pub(crate) time: u32,
    /// Transactions in block order.
    pub(crate) order: &'a [u32],
    pub(crate) coinbase: &'a Coinbase,
    /// With the coinbase's txid.
    pub(crate) signed: &'a Signed,
    pub(crate) inputs: u64,
    pub(crate) outputs: u64,
}

impl Tail {
    /// Completes a signed block and writes it, with its order and its ledger line.
    pub(crate) fn append(
        &mut self,
        signed_block: &SignedBlock<'_>,
        progress: &mut dyn Progress,
    ) -> Result<(), ForgeError> {
        let SignedBlock { network, height, order, coinbase, signed, .. } = *signed_block;
        let root = block::root(&signed.txids, order);
        let mined = block::mine(network, &self.previous, &root, signed_block.time);
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
            phase: signed_block.phase,
            file: place.file,
            offset: place.offset,
            bytes,
            weight: 4 * (80 + count.len() as u64) + coinbase.weight + signed.weight,
            txs: order.len() as u64,
            inputs: signed_block.inputs,
            outputs: signed_block.outputs,
            signatures: signed.signatures,
            time: signed_block.time,
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

impl ForgeState<'_> {
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
        let height = plan.outputs.height;
        let order = block::block_order(network, &signed.txids, &self.threads);
        let coinbase = self.coinbase(&plan, &signed, &order);
        signed.txids[0] = coinbase.txid;
        let signed_block = SignedBlock {
            network,
            height,
            phase,
            time: self.params.time(height),
            order: &order,
            coinbase: &coinbase,
            signed: &signed,
            inputs: plan.inputs.len() as u64,
            outputs: plan.outputs.len() as u64 + u64::from(network.segwit()),
        };
        self.tail.append(&signed_block, self.progress)?;
        self.remember(plan, signed.txids, order);
        Ok(())
    }

    fn coinbase(&mut self, plan: &Plan, signed: &Signed, order: &[u32]) -> Coinbase {
        let network = self.params.network;
        let pay = plan.outputs.pay(self.params.distinct, 0, 0);
        self.locks.request(pay.kind, &pay.key);
        self.locks.prepare(&self.threads);
        // BIP141 uses zero as the coinbase's own wtxid, as in `signed`.
        let witness_root =
            if network.segwit() { block::root(&signed.wtxids, order) } else { [0; 32] };
        self.locks.with(pay.kind, &pay.key, |lock| {
            Coinbase::new(&CoinbaseParts {
                commits: network.segwit(),
                height: plan.outputs.height,
                seed: self.params.seed,
                amount: pay.amount,
                script: lock.script(),
                witness_root,
            })
        })
    }

    /// Stores the block's outputs and marks the spent ones.
    fn remember(&mut self, plan: Plan, txids: Vec<[u8; 32]>, order: Vec<u32>) {
        self.coins.push(BlockCoins::new(plan.outputs, plan.first_ordinary, txids, order));
        for coin in plan.inputs {
            self.coins.spend(coin);
        }
    }

    pub(crate) fn tip(&mut self) -> TipLine {
        let set = utxo::summarise(
            &self.coins,
            &self.locks,
            self.params.distinct,
            &self.threads,
            self.progress,
        );
        self.tail.tip(&set)
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
