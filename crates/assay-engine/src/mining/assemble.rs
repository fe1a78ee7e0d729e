//! Selects transactions for a block template (Core `node/miner.cpp`, `addChunks`).

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, HashSet};
use std::sync::Arc;

use assay_consensus::locktime::is_final_tx;
use assay_consensus::params::{ChainParams, MAX_BLOCK_SIGOPS_COST};
use assay_wire::Txid;

use super::TemplateTx;
use crate::config::MiningConfig;
use crate::mempool::{ByRate, Entry, Mempool};

/// Core's `DEFAULT_COINBASE_OUTPUT_MAX_ADDITIONAL_SIGOPS`: reserved for additions of miners to the coinbase.
const RESERVED_SIGOPS: u64 = 400;
/// Number of consecutive chunks that do not fit, after which a nearly full block is complete.
const FAILURES_MAX: usize = 1000;
/// Distance of a nearly full block to its limit, in weight.
const NEARLY_FULL_WEIGHT: u64 = 4000;

pub(crate) struct Assembled {
    pub(crate) txs: Vec<TemplateTx>,
    /// Weight, including the reserved weight.
    pub(crate) weight: u64,
    pub(crate) sigops: u64,
    pub(crate) fees_sat: i64,
}

impl Assembled {
    /// Only the reserved weight of header and coinbase.
    pub(crate) fn empty(config: &MiningConfig) -> Self {
        let weight = config.reserved_weight;
        Self { txs: Vec::new(), weight, sigops: RESERVED_SIGOPS, fees_sat: 0 }
    }

    fn add(&mut self, txid: &Txid, entry: &Entry, sigops: u64) {
        self.txs.push(TemplateTx {
            tx: Arc::clone(&entry.tx),
            txid: *txid,
            wtxid: entry.wtxid,
            fee_sat: entry.fee_sat,
            sigop_cost: sigops,
        });
        self.weight += u64::from(entry.weight);
        self.sigops += sigops;
        self.fees_sat += entry.fee_sat;
    }
}

/// Logs the fee rate of a transaction (Core's `-printpriority`).
fn log_fee_rate(txid: &Txid, entry: &Entry) {
    let rate = entry.modified_fee_sat().saturating_mul(1000) / i64::from(entry.vsize.max(1));
    let sign = if rate < 0 { "-" } else { "" };
    let (whole, part) = (rate.unsigned_abs() / 100_000_000, rate.unsigned_abs() % 100_000_000);
    tracing::info!("fee rate {sign}{whole}.{part:08} BTC/kvB txid {txid}");
}

/// Selects from the mempool for the block at `height`; lock times in seconds are compared with `cutoff_s`.
pub(crate) fn assemble(
    mempool: &mut Mempool,
    params: &ChainParams,
    config: &MiningConfig,
    (height, cutoff_s): (u32, i64),
) -> Assembled {
    let mut assembler = Assembler {
        config,
        assembled: Assembled::empty(config),
        is_cash: params.cash.is_some(),
        sigops_max: params.cash.map_or(MAX_BLOCK_SIGOPS_COST, |cash| cash.block_sigchecks_max()),
        is_final: |entry: &Entry| is_final_tx(entry.tx.view(), height, cutoff_s),
        failures: 0,
    };
    match mempool.chunks_best_first() {
        Some(chunks) => assembler.by_chunks(mempool, chunks),
        None => assembler.one_by_one(mempool),
    }
    assembler.assembled
}

struct Assembler<'a, F> {
    config: &'a MiningConfig,
    assembled: Assembled,
    is_cash: bool,
    sigops_max: u64,
    is_final: F,
    /// Consecutive chunks that did not fit.
    failures: usize,
}

impl<F: Fn(&Entry) -> bool> Assembler<'_, F> {
    fn by_chunks(&mut self, mempool: &Mempool, chunks: Vec<crate::mempool::MiningChunk>) {
        // Later chunks of the same cluster may depend on a skipped one.
        let mut skipped = HashSet::new();
        for chunk in chunks {
            if skipped.contains(&chunk.cluster) {
                continue;
            }
            if self.is_below_minimum(chunk.fee_sat, chunk.weight) {
                return;
            }
            let entries: Vec<(&Txid, &Entry)> =
                chunk.txids.iter().filter_map(|txid| Some((txid, mempool.get(txid)?))).collect();
            if !self.offer(&entries, chunk.weight) {
                skipped.insert(chunk.cluster);
                if self.is_full() {
                    return;
                }
            }
        }
    }

    /// Without clusters: repeatedly adds the best transaction whose parents are all selected.
    fn one_by_one(&mut self, mempool: &Mempool) {
        let mut missing: HashMap<Txid, usize> = HashMap::new();
        let mut open = BinaryHeap::new();
        for (txid, entry) in mempool.iter() {
            match mempool.parents(entry).len() {
                0 => open.push(ready(*txid, entry)),
                count => _ = missing.insert(*txid, count),
            }
        }
        while let Some((_, Reverse(txid))) = open.pop() {
            let Some(entry) = mempool.get(&txid) else { continue };
            let is_cheap = self.is_below_minimum(entry.modified_fee_sat(), u64::from(entry.weight));
            if is_cheap || !self.offer(&[(&txid, entry)], u64::from(entry.weight)) {
                if !is_cheap && self.is_full() {
                    return;
                }
                continue;
            }
            for child in mempool.children(&txid) {
                let Some(count) = missing.get_mut(&child) else { continue };
                *count -= 1;
                if let (0, Some(entry)) = (*count, mempool.get(&child)) {
                    open.push(ready(child, entry));
                }
            }
        }
    }

    fn is_below_minimum(&self, fee_sat: i64, weight: u64) -> bool {
        let vsize = weight.div_ceil(4);
        i128::from(fee_sat) * 1000 < i128::from(self.config.min_fee_sat_per_kvb) * i128::from(vsize)
    }

    /// Adds all of the transactions if they fit, otherwise none.
    fn offer(&mut self, entries: &[(&Txid, &Entry)], weight: u64) -> bool {
        let sigops: u64 = entries.iter().map(|(_, entry)| self.sigops_of(entry)).sum();
        let fits = self.assembled.weight + weight < self.config.weight_max
            && self.assembled.sigops + sigops < self.sigops_max
            && entries.iter().all(|(_, entry)| (self.is_final)(entry));
        if !fits {
            self.failures += 1;
            return false;
        }
        self.failures = 0;
        for (txid, entry) in entries {
            if self.config.print_fee_rates {
                log_fee_rate(txid, entry);
            }
            let sigops = self.sigops_of(entry);
            self.assembled.add(txid, entry, sigops);
        }
        true
    }

    /// The count for the block limit: executed signature checks on Bitcoin Cash (May 2020), otherwise signature operations
    /// (BIP141).
    fn sigops_of(&self, entry: &Entry) -> u64 {
        u64::from(if self.is_cash { entry.sigchecks } else { entry.sigop_cost })
    }

    fn is_full(&self) -> bool {
        self.failures > FAILURES_MAX
            && self.assembled.weight + NEARLY_FULL_WEIGHT > self.config.weight_max
    }
}

/// A transaction that can be selected next; the greatest is first.
fn ready(txid: Txid, entry: &Entry) -> (ByRate, Reverse<Txid>) {
    (ByRate::new(entry.modified_fee_sat(), u64::from(entry.weight.max(1))), Reverse(txid))
}

#[cfg(test)]
mod tests {
    use assay_testkit::chain::TxBuilder;
    use assay_wire::Transaction;

    use super::*;

    /// A mempool of five unrelated transactions, the later ones with higher fees.
    fn mempool(
        has_clusters: bool,
        params: &ChainParams,
        sigop_cost: u32,
        sigchecks: u32,
    ) -> Mempool {
        let mut mempool = Mempool::new(has_clusters, None, None);
        for id in 1..=5 {
            let raw = TxBuilder::new(2).input(id, 0, &[], 0).output(1, &[0x51]).bytes();
            let tx = Transaction::parse(raw, params.encoding).unwrap();
            let fee_sat = 1000 * i64::from(id);
            let entry = Entry { sigop_cost, sigchecks, ..Entry::for_test(tx, fee_sat, 100) };
            mempool.insert(entry.tx.view().txid(), entry);
        }
        mempool
    }

    /// Fees of the selected transactions if each has a given share of the block limits, in per cent: of signature operations and
    /// of executed checks.
    #[track_caller]
    fn check(chain: &str, (sigops, sigchecks): (u64, u64), expected: &[i64]) {
        let params = ChainParams::by_name(chain).unwrap();
        let sigops_max =
            params.cash.map_or(MAX_BLOCK_SIGOPS_COST, |cash| cash.block_sigchecks_max());
        let part = |share: u64| u32::try_from(sigops_max * share / 100).unwrap();
        let (sigop_cost, sigchecks) = (part(sigops), part(sigchecks));
        let mut mempool = mempool(params.cash.is_none(), &params, sigop_cost, sigchecks);
        let config = MiningConfig::new(4 * params.block_vsize_max());
        let assembled = assemble(&mut mempool, &params, &config, (2, 0));
        let fees: Vec<i64> = assembled.txs.iter().map(|tx| tx.fee_sat).collect();
        assert_eq!(fees, expected, "{chain}");
        let counted: u64 = assembled.txs.iter().map(|tx| tx.sigop_cost).sum();
        assert_eq!(assembled.sigops, RESERVED_SIGOPS + counted, "{chain}");
    }

    #[test]
    fn signature_operations_fit_a_block() {
        let all = [5000, 4000, 3000, 2000, 1000];
        check("regtest", (1, 0), &all);
        check("regtest", (40, 0), &all[..2]);
        // Executed checks, as with taproot, only count on Bitcoin Cash, where signature operations do not.
        check("regtest", (0, 40), &all);
        check("bch-regtest", (0, 40), &all[..2]);
        check("bch-regtest", (0, 10), &all);
    }
}
