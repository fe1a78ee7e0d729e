//! A parsed block with its hashes, and its checks without coins: on all cores for a single block, on one thread if many blocks
//! are checked in parallel.

use std::borrow::Cow;
use std::ops::Range;

use assay_consensus::block::{self, BlockError, BlockRules, TxFacts, is_overwritten_coinbase};
use assay_consensus::header::check_header;
use assay_consensus::params::ChainParams;
use assay_consensus::signet::check_signet_solution;
use assay_consensus::tx::is_unspendable;
use assay_store::CoinRef;
use assay_store::defect::{Point, point};
use assay_wire::{Block, BlockHash, OutPoint, Txid, Wtxid};
use rayon::ThreadPool;
use rayon::prelude::*;

use crate::checker::ImmediateChecker;
use crate::types::TxIds;

/// Transactions hashed or checked per task.
const TXS_PER_TASK: usize = 256;

/// A parsed block with its hashes and the data that later steps need.
///
/// Facts and outpoints are contiguous copies from the block, so that moving its coins does not wait for bytes scattered over the
/// block that another core has read.
pub(crate) struct Prepared {
    pub(crate) block: Block,
    pub(crate) hash: BlockHash,
    pub(crate) txids: Vec<Txid>,
    /// One per transaction.
    pub(crate) facts: Vec<TxFacts>,
    /// The prevouts of all inputs in order, including the coinbase's.
    pub(crate) prevouts: Vec<OutPoint>,
    /// `None` if no transaction has a witness: then they equal the txids.
    pub(crate) wtxids: Option<Vec<Wtxid>>,
}

impl Prepared {
    /// Computes the hashes of all transactions on this thread.
    pub(crate) fn new(block: Block, hash: BlockHash) -> Self {
        let all = 0..block.tx_count();
        let txids = block.txids(all.clone());
        let has_witness = block.txs().any(|tx| tx.has_witness());
        let wtxids = has_witness.then(|| block.wtxids(all.clone(), &txids));
        let facts = TxFacts::of_range(&block, all.clone());
        let prevouts = prevouts(&block, all).collect();
        Self { block, hash, txids, facts, prevouts, wtxids }
    }

    /// Computes the hashes of the transactions with unknown ids on this thread. Known ids must belong to exactly these bytes.
    pub(crate) fn with_known(block: Block, hash: BlockHash, known: &[Option<TxIds>]) -> Self {
        debug_assert_eq!(known.len(), block.tx_count());
        let has_witness = block.txs().any(|tx| tx.has_witness());
        let mut txids = Vec::with_capacity(known.len());
        let mut wtxids = Vec::with_capacity(if has_witness { known.len() } else { 0 });
        for run in known.chunk_by(|a, b| a.is_some() == b.is_some()) {
            let range = txids.len()..txids.len() + run.len();
            if run[0].is_some() {
                txids.extend(run.iter().flatten().map(|ids| ids.txid));
            } else {
                txids.append(&mut block.txids(range.clone()));
            }
            if has_witness && run[0].is_some() {
                wtxids.extend(run.iter().flatten().map(|ids| ids.wtxid));
            } else if has_witness {
                wtxids.append(&mut block.wtxids(range.clone(), &txids[range]));
            }
        }
        let all = 0..block.tx_count();
        let facts = TxFacts::of_range(&block, all.clone());
        let prevouts = prevouts(&block, all).collect();
        Self { block, hash, txids, facts, prevouts, wtxids: has_witness.then_some(wtxids) }
    }

    /// Computes the hashes of all transactions on the threads of a pool.
    pub(crate) fn in_parallel(block: Block, hash: BlockHash, pool: &ThreadPool) -> Self {
        let ranges = task_ranges(block.tx_count());
        let (txids, facts, prevouts, wtxids) = pool.install(|| {
            let hash_range = |range: &Range<usize>| {
                point(Point::HashTask);
                block.txids(range.clone())
            };
            let txids: Vec<_> = ranges.par_iter().flat_map_iter(hash_range).collect();
            let has_witness = block.txs().any(|tx| tx.has_witness());
            let wtxids = has_witness.then(|| {
                ranges
                    .par_iter()
                    .flat_map_iter(|range| block.wtxids(range.clone(), &txids[range.clone()]))
                    .collect()
            });
            let facts_of = |range: &Range<usize>| TxFacts::of_range(&block, range.clone());
            let facts = ranges.par_iter().flat_map_iter(facts_of).collect();
            let prevouts_of = |range: &Range<usize>| prevouts(&block, range.clone());
            let prevouts = ranges.par_iter().flat_map_iter(prevouts_of).collect();
            (txids, facts, prevouts, wtxids)
        });
        Self { block, hash, txids, facts, prevouts, wtxids }
    }

    /// Memory use, except a few fields.
    pub(crate) fn memory_bytes(&self) -> usize {
        let hashes = self.txids.len() + self.wtxids.as_ref().map_or(0, Vec::len);
        let copies = size_of_val(&self.facts[..]) + size_of_val(&self.prevouts[..]);
        self.block.bytes().len() + 32 * hashes + copies
    }

    /// The prevouts of all inputs except the coinbase's.
    pub(crate) fn spent_prevouts(&self) -> &[OutPoint] {
        let coinbase_inputs = self.block.txs().next().map_or(0, |tx| tx.input_count());
        &self.prevouts[coinbase_inputs..]
    }

    /// Visits the coins that the block creates at `height`, in output order: those that are spendable and not overwritten by a
    /// later coinbase. Hints use this numbering.
    pub(crate) fn for_each_created(
        &self,
        height: u32,
        mut visit: impl FnMut(&OutPoint, CoinRef<'_>),
    ) {
        let from = usize::from(is_overwritten_coinbase(height, &self.hash));
        for (tx_index, tx) in self.block.txs().enumerate().skip(from) {
            let txid = self.txids[tx_index];
            for (output, vout) in tx.outputs().zip(0..) {
                let script_pubkey = output.script_pubkey;
                if is_unspendable(script_pubkey) {
                    continue;
                }
                let coinbase = tx_index == 0;
                let coin = CoinRef { value: output.value, height, coinbase, script_pubkey };
                visit(&OutPoint { txid, vout }, coin);
            }
        }
    }

    pub(crate) fn wtxid(&self, tx_index: usize) -> Wtxid {
        match &self.wtxids {
            Some(wtxids) => wtxids[tx_index],
            None => Wtxid(self.txids[tx_index].0),
        }
    }

    /// The checks of the block itself, in Core's order (`validation.cpp`, `CheckBlock`), on the threads of `pool` or on this one.
    pub(crate) fn check_itself(
        &self,
        params: &ChainParams,
        pool: Option<&ThreadPool>,
    ) -> Result<(), BlockError> {
        if let Some(pool) = pool {
            return pool.install(|| self.check_in_parallel(params));
        }
        let Self { block, hash, txids, .. } = self;
        check_header(params, block.header(), hash)?;
        check_signet_solution(params, block, txids, &mut ImmediateChecker)?;
        block::check_merkle_root(block.header(), txids)?;
        block::check_shape(params, block)?;
        block::check_transactions(block, txids, 0..block.tx_count())?;
        block::check_legacy_sigops(params, self.legacy_sigops())
    }

    /// Core `validation.cpp`, `ContextualCheckBlock`, on the same threads.
    pub(crate) fn check_context(
        &self,
        rules: &BlockRules,
        pool: Option<&ThreadPool>,
    ) -> Result<(), BlockError> {
        if let Some(pool) = pool {
            return pool.install(|| self.check_context_in_parallel(rules));
        }
        let Self { block, txids, .. } = self;
        block::contextual_check_block(rules, block, txids, &self.wtxids_if_needed(rules))
    }

    fn check_in_parallel(&self, params: &ChainParams) -> Result<(), BlockError> {
        let Self { block, hash, txids, .. } = self;
        check_header(params, block.header(), hash)?;
        check_signet_solution(params, block, txids, &mut ImmediateChecker)?;
        self.check_body_in_parallel(params, true)
    }

    /// [`Self::check_itself`] without work and solution, and optionally without the merkle root.
    pub(crate) fn check_body_in_parallel(
        &self,
        params: &ChainParams,
        with_merkle_root: bool,
    ) -> Result<(), BlockError> {
        let Self { block, txids, .. } = self;
        if with_merkle_root {
            block::check_merkle_root(block.header(), txids)?;
        }
        block::check_shape(params, block)?;
        let verdicts: Vec<Result<(), BlockError>> = task_ranges(block.tx_count())
            .into_par_iter()
            .map(|range| block::check_transactions(block, txids, range))
            .collect();
        // In order: of several broken rules the one in the lowest transaction is reported.
        verdicts.into_iter().collect::<Result<(), _>>()?;
        block::check_legacy_sigops(params, self.legacy_sigops())
    }

    fn legacy_sigops(&self) -> u64 {
        self.facts.iter().map(|facts| u64::from(facts.legacy_sigops)).sum()
    }

    fn check_context_in_parallel(&self, rules: &BlockRules) -> Result<(), BlockError> {
        let Self { block, txids, .. } = self;
        let verdicts: Vec<Result<(), BlockError>> = task_ranges(block.tx_count())
            .into_par_iter()
            .map(|range| block::check_order_and_locks(rules, block, txids, range))
            .collect();
        verdicts.into_iter().collect::<Result<(), _>>()?;
        block::check_coinbase_height(rules, block)?;
        block::check_witnesses(rules.segwit, block, &self.wtxids_if_needed(rules))?;
        block::check_weight(rules, block)
    }

    /// Both checks on this thread: all rules except those about the header's position in its branch, and about coins.
    pub(crate) fn check(&self, params: &ChainParams, rules: &BlockRules) -> Result<(), BlockError> {
        self.check_itself(params, None)?;
        self.check_context(rules, None)
    }

    /// The wtxids; empty if neither a witness nor a rule requires them.
    fn wtxids_if_needed(&self, rules: &BlockRules) -> Cow<'_, [Wtxid]> {
        match &self.wtxids {
            Some(wtxids) => Cow::Borrowed(wtxids),
            None if block::needs_wtxids(rules, &self.block) => {
                self.txids.iter().map(|txid| Wtxid(txid.0)).collect()
            }
            None => Cow::Borrowed(&[]),
        }
    }
}

/// The prevouts of these transactions in order.
fn prevouts(block: &Block, txs: Range<usize>) -> impl Iterator<Item = OutPoint> {
    txs.flat_map(|tx_index| block.tx(tx_index).inputs().map(|input| input.prevout))
}

/// Ranges of transactions for parallel tasks.
fn task_ranges(count: usize) -> Vec<Range<usize>> {
    (0..count).step_by(TXS_PER_TASK).map(|start| start..(start + TXS_PER_TASK).min(count)).collect()
}

#[cfg(test)]
mod tests {
    use assay_testkit::chain::{TxBuilder, block_of, coinbase};
    use assay_wire::Encoding;

    use super::*;

    #[test]
    fn facts_and_prevouts_match_the_block() {
        let tx = |n: u32| {
            let inputs = (0..n % 4).fold(TxBuilder::new(2), |tx, at| {
                tx.input(
                    n as u8,
                    at,
                    &[0xac; 3][..at as usize],
                    if n.is_multiple_of(2) { 0 } else { u32::MAX },
                )
            });
            inputs.input(7, n, &[], u32::MAX).output(1, &[0xac]).bytes()
        };
        let txs = [vec![coinbase(7, 1).bytes()], (0..600).map(tx).collect()].concat();
        let block = || block_of(&txs, Encoding::Segwit);
        let pool = rayon::ThreadPoolBuilder::new().num_threads(3).build().expect("it starts");
        let one = Prepared::new(block(), block().hash());
        let many = Prepared::in_parallel(block(), block().hash(), &pool);
        assert_eq!(
            (&one.txids, &one.facts, &one.prevouts),
            (&many.txids, &many.facts, &many.prevouts)
        );
        let mut prevouts = one.prevouts.iter();
        for (tx, facts) in block().txs().zip(&one.facts) {
            assert_eq!(*facts, TxFacts::of(tx));
            assert!(tx.inputs().all(|input| prevouts.next() == Some(&input.prevout)));
        }
        assert_eq!(prevouts.next(), None);
        assert_eq!(one.spent_prevouts(), &one.prevouts[1..]);
    }

    #[test]
    fn known_ids_are_those_that_are_computed() {
        let plain = |n| TxBuilder::new(n).input(n as u8, 0, &[], 0).output(1, &[0x51]);
        let txs: Vec<Vec<u8>> = (0..8)
            .map(|n| if n % 3 == 1 { plain(n).witness(&[&[n as u8; 5]]) } else { plain(n) })
            .map(|tx| tx.bytes())
            .collect();
        let txs = [vec![coinbase(7, 1).bytes()], txs].concat();
        for txs in [&txs[..], &txs[..2]] {
            let block = || block_of(txs, Encoding::Segwit);
            let hash = block().hash();
            let whole = Prepared::new(block(), hash);
            let ids = |place: usize| TxIds { txid: whole.txids[place], wtxid: whole.wtxid(place) };
            for mask in 0..1_u32 << txs.len() {
                let is_known = |place: &usize| mask >> place & 1 == 1;
                let known: Vec<_> =
                    (0..txs.len()).map(|place| Some(place).filter(is_known).map(ids)).collect();
                let prepared = Prepared::with_known(block(), hash, &known);
                assert_eq!(prepared.txids, whole.txids);
                assert_eq!(prepared.wtxids, whole.wtxids);
                assert_eq!(prepared.facts, whole.facts);
                assert_eq!(prepared.prevouts, whole.prevouts);
            }
        }
    }
}
