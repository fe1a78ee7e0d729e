//! Verifies one block with given spent outputs: every rule that needs nothing else of the chain.

use std::collections::{HashMap, HashSet};

use assay_consensus::block::{self, BlockError, BlockRules, BlockTotals, check_coinbase_amount};
use assay_consensus::header::{HeaderError, check_header, check_version};
use assay_consensus::params::ChainParams;
use assay_consensus::script::RuleSet;
use assay_consensus::signet::check_signet_solution;
use assay_consensus::subsidy::block_subsidy;
use assay_consensus::tx::{SpentCoin, TxError, is_unspendable};
use assay_wire::{Block, BlockHash, OutPoint, TxOut, Txid, Wtxid};
use rayon::prelude::*;

use super::spend_type::TypeCounts;
use crate::checker::ImmediateChecker;
use crate::deferred::default_script_batch;

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum VerifyBlockError {
    #[error(transparent)]
    Invalid(#[from] BlockError),
    /// A given output contradicts the block's own output: they belong to another block.
    #[error(
        "input {input} of transaction {tx_index} spends {prevout}, an output of the same block, but another one was given"
    )]
    OtherPrevout { tx_index: usize, input: usize, prevout: OutPoint },
}

/// Results of the amount rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SpendSums {
    /// Fees, satoshi.
    pub fees: i64,
    /// Cost of the signature operations (BIP141); 0 on Bitcoin Cash.
    pub sigop_cost: u64,
}

/// A block on its own, ready to be verified stage by stage.
///
/// Only the height and optionally the parent's median time past are known of the chain. Rules that need more are applied as far
/// as possible, so a valid block always passes; [`BlockVerifier::unchecked`] lists the open ones. Work is distributed over the
/// current rayon pool.
pub struct BlockVerifier<'a> {
    params: &'a ChainParams,
    pub(super) block: &'a Block,
    hash: BlockHash,
    pub(super) txids: Vec<Txid>,
    /// Empty if no rule requires them.
    wtxids: Vec<Wtxid>,
    pub(super) rules: BlockRules,
    median_time: Option<u32>,
    pub(super) script_batch: Option<usize>,
    pub(super) script_rules: RuleSet,
}

impl<'a> BlockVerifier<'a> {
    /// Prepares a block at `height`, which is at least 1: hashes its transactions.
    ///
    /// `median_time` is the median time past of its parent, if known.
    pub fn new(
        params: &'a ChainParams,
        block: &'a Block,
        height: u32,
        median_time: Option<u32>,
    ) -> Self {
        let hash = block.hash();
        let time = block.header().time;
        let relative_locks = params.csv_active(height);
        // A header is later than the median time past, so its time is an upper bound.
        let parent_median_time_past = median_time.unwrap_or_else(|| time.saturating_sub(1));
        let cutoff_s = if relative_locks { parent_median_time_past } else { time };
        let rules = BlockRules {
            height,
            flags: params.block_script_flags(height, &hash),
            lock_time_cutoff_s: i64::from(cutoff_s),
            parent_median_time_past,
            sequence_locks: relative_locks,
            height_in_coinbase: height >= params.activation.bip34,
            segwit: params.segwit_active(height),
            bip30: false,
            bip54: params.bip54_active(height),
            subsidy: block_subsidy(params, height),
            cash: params.cash,
        };
        let count = block.tx_count();
        let txids: Vec<Txid> =
            (0..count).into_par_iter().map(|index| block.tx(index).txid()).collect();
        let wtxids = if block::needs_wtxids(&rules, block) {
            let wtxid = |index: usize| {
                let tx = block.tx(index);
                if tx.has_witness() { tx.wtxid() } else { Wtxid(txids[index].0) }
            };
            (0..count).into_par_iter().map(wtxid).collect()
        } else {
            Vec::new()
        };
        let (script_batch, script_rules) = (default_script_batch(), RuleSet::TODAY);
        Self { params, block, hash, txids, wtxids, rules, median_time, script_batch, script_rules }
    }

    /// Verifies signatures in batches of about this size; `None` verifies each at once.
    #[must_use]
    pub fn with_script_batch(mut self, script_batch: Option<usize>) -> Self {
        self.script_batch = script_batch;
        self
    }

    /// Verifies under other rules: scripts, and BIP54 if the set includes it.
    #[must_use]
    pub fn with_rules(mut self, rules: RuleSet) -> Self {
        self.rules.bip54 |= rules.bip54;
        self.script_rules = rules;
        self
    }

    pub fn hash(&self) -> BlockHash {
        self.hash
    }

    /// The txids in block order.
    pub fn txids(&self) -> &[Txid] {
        &self.txids
    }

    pub fn rules(&self) -> &BlockRules {
        &self.rules
    }

    /// Inputs with required spent outputs: all except the coinbase's.
    pub fn input_count(&self) -> usize {
        if self.block.tx_count() == 0 {
            return 0;
        }
        self.block.input_count() - self.block.tx(0).input_count()
    }

    /// The rules that cannot be decided without the chain, human-readable.
    pub fn unchecked(&self) -> Vec<&'static str> {
        let mut rules = vec![
            "that the parent exists and is valid",
            "that the target is the one the chain requires (bad-diffbits)",
            "that the outputs spent from earlier blocks are those given, exist and are unspent (bad-txns-inputs-missingorspent)",
            "that coinbases of earlier blocks have matured (bad-txns-premature-spend-of-coinbase)",
            "that no output overwrites an unspent one (bad-txns-BIP30)",
        ];
        if self.rules.bip54 {
            rules.push(
                "the times of the first and the last block of a retarget period (time-timewarp-attack, time-negative-interval, BIP54)",
            );
        }
        if self.median_time.is_none() {
            rules.push("that the time is after the median time past (time-too-old)");
        }
        if self.rules.sequence_locks {
            rules.push(
                "relative lock times on outputs of earlier blocks (bad-txns-nonfinal, BIP68)",
            );
            if self.median_time.is_none() {
                rules.push(
                    "lock times in seconds between the median time past and the time of the block (bad-txns-nonfinal, BIP113)",
                );
            }
        }
        rules
    }

    /// All stages, in Core's order.
    ///
    /// # Errors
    /// The first broken rule, or outputs of another block.
    ///
    /// # Panics
    /// `spent` does not have [`BlockVerifier::input_count`] outputs.
    pub fn verify(&self, spent: &[TxOut<'_>]) -> Result<(SpendSums, TypeCounts), VerifyBlockError> {
        self.check_alone()?;
        let sums = self.check_spends(spent)?;
        let counts = self.verify_scripts(spent, 0..self.block.tx_count())?;
        Ok((sums, counts))
    }

    /// Everything except spent outputs: proof of work, merkle root, witness commitment, sizes, context-free transaction checks.
    ///
    /// # Errors
    /// The first broken rule, in Core's order.
    pub fn check_alone(&self) -> Result<(), BlockError> {
        let (params, block, rules) = (self.params, self.block, &self.rules);
        let header = block.header();
        check_header(params, header, &self.hash)?;
        check_signet_solution(params, block, &self.txids, &mut ImmediateChecker)?;
        block::check_block(params, block, &self.txids)?;
        if let Some(median_time_past) = self.median_time.filter(|median| header.time <= *median) {
            return Err(HeaderError::TimeTooOld { time: header.time, median_time_past }.into());
        }
        check_version(params, header.version, rules.height)?;
        block::contextual_check_block(rules, block, &self.txids, &self.wtxids)
    }

    /// Amounts, signature operations, and the rules about spent coins that the block alone decides.
    /// [`BlockVerifier::check_alone`] must have passed.
    ///
    /// # Errors
    /// The first broken rule, in Core's order, or outputs of another block.
    ///
    /// # Panics
    /// `spent` does not have [`BlockVerifier::input_count`] outputs.
    pub fn check_spends(&self, spent: &[TxOut<'_>]) -> Result<SpendSums, VerifyBlockError> {
        assert_eq!(spent.len(), self.input_count(), "one spent output per input");
        let own: HashMap<Txid, usize> =
            self.txids.iter().enumerate().map(|(index, txid)| (*txid, index)).collect();
        let mut gone = HashSet::with_capacity(spent.len());
        let mut totals = BlockTotals::default();
        let mut coins = Vec::new();
        for (tx_index, tx) in self.block.txs().enumerate() {
            let tx_error = |source| BlockError::Tx { tx_index, txid: self.txids[tx_index], source };
            coins.clear();
            let outputs = self.spent_by(spent, tx_index);
            for (input, output) in outputs.iter().enumerate() {
                let prevout = tx.input(input).prevout;
                let coin =
                    self.coin(&own, tx_index, input, output)?.filter(|_| gone.insert(prevout));
                coins.push(coin.ok_or_else(|| tx_error(TxError::MissingOrSpent { prevout }))?);
            }
            let median_time_past = self.median_time.unwrap_or(0);
            let median_time_past_at =
                |height| if height + 1 == self.rules.height { median_time_past } else { 0 };
            let spend = self
                .rules
                .check_spends(tx, coins.iter().copied(), median_time_past_at)
                .map_err(tx_error)?;
            totals.add(tx_index, spend)?;
        }
        check_coinbase_amount(&self.rules, self.block, totals.fees)?;
        Ok(SpendSums { fees: totals.fees, sigop_cost: totals.sigop_cost })
    }

    /// The known data of an input's coin; `None` if the block proves that it does not exist.
    ///
    /// The age of a coin from an earlier block is unknown: the greatest age breaks no rule.
    fn coin<'s>(
        &self,
        own: &HashMap<Txid, usize>,
        tx_index: usize,
        input: usize,
        spent: &TxOut<'s>,
    ) -> Result<Option<SpentCoin<'s>>, VerifyBlockError> {
        let TxOut { value, script_pubkey } = *spent;
        let prevout = self.block.tx(tx_index).input(input).prevout;
        let Some(&creator) = own.get(&prevout.txid) else {
            return Ok(Some(SpentCoin { value, height: 0, coinbase: false, script_pubkey }));
        };
        let tx = self.block.tx(creator);
        let comes_later = self.rules.cash.is_none() && creator >= tx_index;
        if comes_later || prevout.vout as usize >= tx.output_count() {
            return Ok(None);
        }
        let output = tx.output(prevout.vout as usize);
        if is_unspendable(output.script_pubkey) {
            return Ok(None);
        }
        if (output.value, output.script_pubkey) != (value, script_pubkey) {
            return Err(VerifyBlockError::OtherPrevout { tx_index, input, prevout });
        }
        let (height, coinbase) = (self.rules.height, creator == 0);
        Ok(Some(SpentCoin { value, height, coinbase, script_pubkey }))
    }

    /// The outputs spent by one transaction; none for the coinbase.
    pub fn spent_by<'s, 't>(&self, spent: &'s [TxOut<'t>], tx_index: usize) -> &'s [TxOut<'t>] {
        if tx_index == 0 {
            return &[];
        }
        let first = self.block.first_input_of(tx_index) - self.block.first_input_of(1);
        &spent[first..first + self.block.tx(tx_index).input_count()]
    }
}
