//! Rules, state and results that all steps of an admission share.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use assay_consensus::block::BlockRules;
use assay_consensus::script::Flags;
use assay_store::CoinStore;
use assay_wire::{BlockHash, Txid, Wtxid};
use rayon::ThreadPool;

use super::candidate::{Candidate, Spends};
use super::entry::Entry;
use super::pool::Mempool;
use super::verdicts::DiagramVerdict;
use crate::config::Config;
use crate::deferred::Place;
use crate::scripts::Cause;
use crate::tree::BlockTree;
use crate::types::TxReject;

#[derive(Clone, Copy)]
pub(crate) struct AcceptOptions {
    /// Maximum fee rate allowed by the caller.
    pub(crate) fee_sat_per_kvb_max: Option<u64>,
    /// True for a trial without admission.
    pub(crate) is_trial: bool,
    /// True if this node announces admitted transactions: a user, not a peer, has submitted them.
    pub(crate) is_announced: bool,
}

impl AcceptOptions {
    /// Submission by a user.
    pub(crate) const fn submit(fee_sat_per_kvb_max: Option<u64>) -> Self {
        Self { fee_sat_per_kvb_max, is_trial: false, is_announced: true }
    }

    /// Admission without an announcement.
    pub(crate) const ADMIT: Self =
        Self { fee_sat_per_kvb_max: None, is_trial: false, is_announced: false };

    pub(crate) const fn trial(fee_sat_per_kvb_max: Option<u64>) -> Self {
        Self { fee_sat_per_kvb_max, is_trial: true, is_announced: false }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Replacement {
    /// Any sufficient fee may replace.
    Allowed,
    /// Trial: nothing is removed.
    Trial,
    /// Not allowed, because several transactions are tried together.
    Disallowed,
    /// Never (Bitcoin Cash).
    Unknown,
}

/// Mode of a validation (Core `validation.cpp`, `ATMPArgs`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Scope {
    /// Each individually.
    Alone,
    /// Individually, as part of a package: room is made after all of them.
    Part,
    /// Several by their total fee.
    Together,
    /// Several at once, each by its own fee, without admission.
    TogetherOnTrial,
}

/// Validation context of a list of transactions.
pub(super) struct Rules {
    pub(super) block: BlockRules,
    /// Position of the next block.
    pub(super) place: Place,
    pub(super) flags: Flags,
    pub(super) is_cash: bool,
    pub(super) scope: Scope,
    /// Maximum fee rate allowed by the caller.
    pub(super) fee_sat_per_kvb_max: Option<u64>,
    /// Ignore fee rates and mempool limits: a block had confirmed these transactions.
    pub(super) bypass_limits: bool,
    pub(super) replacement: Replacement,
    /// True for a trial without admission.
    pub(super) is_trial: bool,
    /// The tip, on which the next block builds.
    pub(super) tip: BlockHash,
    /// Results computed earlier.
    pub(super) ahead: Precheck,
}

impl Rules {
    /// True if a version 3 transaction may evict another child of its parent.
    pub(super) fn may_evict_sibling(&self) -> bool {
        matches!(self.scope, Scope::Alone | Scope::Part)
            && matches!(self.replacement, Replacement::Allowed | Replacement::Trial)
    }

    /// Checks the caller's fee rate limit for one transaction of a package, `prioritisetransaction` included.
    pub(super) fn check_fee_rate_max(
        &self,
        candidate: &Candidate,
        entry: &Entry,
    ) -> Result<(), TxReject> {
        let Some(rate) = self.fee_sat_per_kvb_max else { return Ok(()) };
        let fee = i128::from(entry.modified_fee_sat()) * 1000;
        if fee > i128::from(rate) * i128::from(entry.vsize) {
            return Err(candidate.rejected("max feerate exceeded"));
        }
        Ok(())
    }

    /// Checks that the transaction may replace conflicting ones.
    pub(super) fn check_conflicts(
        &self,
        candidate: &Candidate,
        conflicts: &[Txid],
    ) -> Result<(), TxReject> {
        match self.replacement {
            _ if conflicts.is_empty() => Ok(()),
            Replacement::Allowed | Replacement::Trial => Ok(()),
            Replacement::Disallowed => Err(candidate.rejected("bip125-replacement-disallowed")),
            Replacement::Unknown => Err(candidate.rejected("txn-mempool-conflict")),
        }
    }
}

/// State for admission: the mempool at the tip of a chain, with its coins.
pub(crate) struct View<'s> {
    pub(crate) tree: &'s BlockTree,
    pub(crate) coins: &'s mut CoinStore,
    pub(crate) mempool: &'s mut Mempool,
}

/// The constant parts of admission: rules, limits, threads.
pub(crate) struct Admission {
    pub(crate) config: Arc<Config>,
    pub(super) pool: Arc<ThreadPool>,
    /// Linearization work, in visited transactions.
    work: AtomicU64,
}

/// Results of the steps before admission ([`precheck`](super::precheck)), each usable while what it depends on is unchanged.
#[derive(Default)]
pub(crate) struct Precheck {
    pub(super) flags: Option<Flags>,
    /// Executed signature checks, or the failure.
    pub(super) scripts: HashMap<Wtxid, Result<u64, Cause>>,
    pub(super) diagrams: Vec<DiagramVerdict>,
    pub(super) tip: Option<BlockHash>,
    pub(super) spends: HashMap<Wtxid, Arc<Spends>>,
}

impl Precheck {
    /// The script result of a transaction under these flags.
    pub(super) fn scripts(&self, wtxid: &Wtxid, flags: Flags) -> Option<Result<u64, Cause>> {
        if self.flags == Some(flags) { self.scripts.get(wtxid).cloned() } else { None }
    }

    /// Stores the diagram results for the admission.
    pub(super) fn store_diagrams(&mut self, mempool: &mut Mempool) {
        for verdict in std::mem::take(&mut self.diagrams) {
            mempool.diagram_verdicts.put(verdict);
        }
    }

    /// The checked coins of a transaction at this tip.
    pub(super) fn spends(&self, wtxid: &Wtxid, tip: &BlockHash) -> Option<Arc<Spends>> {
        if self.tip.as_ref() == Some(tip) { self.spends.get(wtxid).cloned() } else { None }
    }
}

impl Admission {
    pub(crate) fn new(config: Arc<Config>, pool: Arc<ThreadPool>) -> Self {
        Self { config, pool, work: AtomicU64::new(0) }
    }

    /// Linearization work since the start, in visited transactions.
    pub(crate) fn work(&self) -> u64 {
        self.work.load(Ordering::Relaxed)
    }

    pub(super) fn note_work(&self, cost: u64) {
        self.work.fetch_add(cost, Ordering::Relaxed);
    }

    /// Validation context of the next block.
    pub(super) fn rules(&self, view: &View<'_>, fee_sat_per_kvb_max: Option<u64>) -> Rules {
        let block = BlockRules::next(&self.config.params, &view.tree.ancestors(view.tree.tip()));
        let is_cash = self.config.params.cash.is_some();
        let standard = if is_cash { Flags::BCH_STANDARD } else { Flags::BITCOIN_STANDARD };
        let flags = block.flags | standard;
        let replacement = if is_cash { Replacement::Unknown } else { Replacement::Allowed };
        let (bypass_limits, is_trial) = (false, false);
        let place = Place {
            height: block.height,
            best_height: view.tree.get(view.tree.best_header()).height,
            time_s: view.tree.tip_node().header.time,
            now_s: self.config.clock.now_s(),
        };
        Rules {
            block,
            place,
            flags,
            is_cash,
            scope: Scope::Alone,
            fee_sat_per_kvb_max,
            bypass_limits,
            replacement,
            is_trial,
            tip: view.tree.tip_node().hash,
            ahead: Precheck::default(),
        }
    }

    /// [`Self::rules`] of a list of `count` transactions, each by itself.
    pub(super) fn rules_of(&self, view: &View<'_>, options: AcceptOptions, count: usize) -> Rules {
        let mut rules = self.rules(view, options.fee_sat_per_kvb_max);
        rules.is_trial = options.is_trial;
        if options.is_trial && rules.replacement == Replacement::Allowed {
            rules.replacement =
                if count == 1 { Replacement::Trial } else { Replacement::Disallowed };
        }
        rules
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_for_one_transaction_under_the_same_flags() {
        let (wtxid, flags) = (Wtxid([7; 32]), Flags::BITCOIN_STANDARD);
        let scripts = HashMap::from([(wtxid, Ok(2))]);
        let ahead = Precheck { flags: Some(flags), scripts, ..Precheck::default() };
        assert_eq!(ahead.scripts(&wtxid, flags), Some(Ok(2)));
        assert_eq!(ahead.scripts(&Wtxid([8; 32]), flags), None);
        for (name, flag) in Flags::NAMED {
            let other = if flags.contains(*flag) { flags.without(*flag) } else { flags | *flag };
            assert_eq!(ahead.scripts(&wtxid, other), None, "{name}");
        }
        assert_eq!(Precheck::default().scripts(&wtxid, flags), None);
    }

    #[test]
    fn checked_coins_are_used_at_their_tip_only() {
        let (wtxid, tip) = (Wtxid([7; 32]), BlockHash([8; 32]));
        let spends = HashMap::from([(wtxid, Arc::new(Spends::default()))]);
        let ahead = Precheck { tip: Some(tip), spends, ..Precheck::default() };
        assert!(ahead.spends(&wtxid, &tip).is_some());
        assert!(ahead.spends(&Wtxid([8; 32]), &tip).is_none());
        assert!(ahead.spends(&wtxid, &BlockHash([9; 32])).is_none());
        assert!(Precheck::default().spends(&wtxid, &tip).is_none());
    }
}
