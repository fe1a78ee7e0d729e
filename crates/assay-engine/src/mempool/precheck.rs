//! Expensive checks of admission, run before it and without the engine's lock.
//!
//! A first pass under the lock determines the required results: of scripts, and of feerate diagrams of replacements. They are
//! computed without the lock. Then admission runs all checks in order under the lock, and uses the available results. A script
//! result depends only on the transaction and the flags, since a wtxid commits to all inputs of scripts. A diagram result is
//! valid as long as none of its clusters has changed. So a result is never wrong, at most missing after a block in between; then
//! it is computed under the lock.

use std::collections::HashMap;
use std::sync::Arc;

use assay_consensus::script::Flags;
use assay_wire::{Transaction, Txid, Wtxid};

use super::admission::{Admission, Rules, View};
use super::candidate::{Admitted, Candidate, Staged};
use super::cluster::Cluster;
use super::graph::{ClusterId, Graph};
use super::pool::Mempool;
use super::replace::{NO_IMPROVEMENT, Newcomers, Plan, Replacement};
use crate::scripts::Cause;
use crate::types::TxReject;

/// Clusters linearized per lock of the mempool.
const SETTLED_AT_ONCE: usize = 16;
/// Limit of such rounds per submission; a block may leave more behind.
pub(crate) const SETTLING_ROUNDS: usize = 8;

#[derive(Clone, Copy)]
pub(crate) struct AcceptOptions {
    /// Maximum fee rate allowed by the caller.
    pub(crate) fee_sat_per_kvb_max: Option<u64>,
    /// True for a trial without admission.
    pub(crate) is_trial: bool,
}

#[derive(Default)]
pub(crate) struct Precheck {
    flags: Option<Flags>,
    /// Executed signature checks, or the failure.
    scripts: HashMap<Wtxid, Result<u64, Cause>>,
    diagrams: Vec<(Newcomers, Vec<ClusterId>, bool)>,
}

impl Precheck {
    /// The script result of a transaction under these flags.
    pub(super) fn scripts(&self, wtxid: &Wtxid, flags: Flags) -> Option<Result<u64, Cause>> {
        if self.flags == Some(flags) { self.scripts.get(wtxid).cloned() } else { None }
    }
}

/// Checks required before the admission of transactions.
pub(crate) struct PendingChecks {
    pub(super) rules: Rules,
    pub(super) pending: Vec<PendingCheck>,
}

/// Transactions with required checks: one, or those of a package that only pass together.
pub(super) struct PendingCheck {
    unverified: Vec<Staged>,
    plan: Option<Plan>,
}

impl Admission {
    fn rules_of(&self, view: &View<'_>, options: AcceptOptions, count: usize) -> Rules {
        let mut rules = self.rules(view, options.fee_sat_per_kvb_max);
        rules.is_trial = options.is_trial;
        if options.is_trial && rules.replacement == Replacement::Allowed {
            rules.replacement =
                if count == 1 { Replacement::Trial } else { Replacement::Disallowed };
        }
        rules
    }

    /// Step 1, with the lock: determines the required checks.
    pub(crate) fn look_ahead(
        &self,
        view: &mut View<'_>,
        candidates: &[Result<Candidate, TxReject>],
        options: AcceptOptions,
    ) -> PendingChecks {
        let rules = self.rules_of(view, options, candidates.len());
        self.load_coins(view, candidates.iter().flatten());
        let mut earlier = HashMap::new();
        let mut pending = Vec::new();
        for candidate in candidates.iter().flatten() {
            pending.extend(self.pending_check(view, &rules, candidate, &earlier).ok());
            if candidates.len() > 1 {
                earlier.insert(candidate.txid(), Arc::clone(candidate.tx()));
            }
        }
        PendingChecks { rules, pending }
    }

    /// The required checks of a transaction that passes all others in the current state.
    pub(super) fn pending_check(
        &self,
        view: &mut View<'_>,
        rules: &Rules,
        candidate: &Candidate,
        earlier: &HashMap<Txid, Arc<Transaction>>,
    ) -> Result<PendingCheck, TxReject> {
        let Some(checked) = self.pre_check(view, rules, candidate, earlier)? else {
            return Ok(PendingCheck { unverified: Vec::new(), plan: None });
        };
        let plan = if checked.conflicts.is_empty() {
            self.check_room(view.mempool, candidate, checked.entry.adjusted_weight)?;
            None
        } else {
            let plan = self.plan_replacement(view.mempool, &checked)?;
            check_known_verdict(view.mempool, candidate, &plan)?;
            Some(plan)
        };
        self.check_last(view, rules, &checked, earlier)?;
        Ok(PendingCheck::of(view, rules, vec![checked.staged], plan))
    }

    /// Step 2, without the lock: runs the checks; calls `pause` between expensive steps.
    pub(crate) fn run_checks(&self, pending: PendingChecks, pause: impl Fn()) -> Precheck {
        let PendingChecks { rules, mut pending } = pending;
        let mut ahead = Precheck { flags: Some(rules.flags), ..Precheck::default() };
        // Skip the scripts of transactions that fail other checks here.
        pending.retain(|pending_check| {
            let Some(plan) = &pending_check.plan else { return true };
            let (is_better, cost) = plan.judge(&pause);
            self.note_work(cost);
            ahead.diagrams.push((plan.names(), plan.cluster_ids(), is_better));
            is_better
        });
        let unverified = pending.iter().flat_map(|pending_check| &pending_check.unverified);
        let unverified: Vec<&Staged> = unverified.collect();
        pause();
        let outcomes = self.run_scripts(&rules, &unverified);
        let wtxids = unverified.iter().map(|staged| staged.wtxid());
        ahead.scripts = wtxids.zip(outcomes).collect();
        ahead
    }

    /// Step 3, with the lock: admits or tests transactions, in this order.
    pub(crate) fn admit_with(
        &self,
        view: &mut View<'_>,
        candidates: Vec<Result<Candidate, TxReject>>,
        options: AcceptOptions,
        mut ahead: Precheck,
    ) -> Vec<Result<Admitted, TxReject>> {
        let mut rules = self.rules_of(view, options, candidates.len());
        note_diagrams(view, &mut ahead);
        rules.ahead = ahead;
        let updates = view.mempool.updates();
        let verdicts = self.admit(view, &rules, candidates);
        if options.is_trial {
            let new = verdicts.iter().flatten().filter(|admitted| admitted.is_new);
            let tried: Vec<Txid> = new.map(|admitted| admitted.txid).rev().collect();
            view.mempool.remove_all(&tried);
            view.mempool.forget_updates_since(updates);
        }
        verdicts
    }

    /// Step 4, without the lock: improves the linearization of changed clusters from [`Mempool::unsettled`].
    pub(crate) fn settle(&self, unsettled: Unsettled, pause: impl Fn()) -> Settled {
        let settle = |(id, cluster): (ClusterId, Arc<Cluster>)| {
            pause();
            let (cluster, cost) = cluster.settled();
            self.note_work(cost);
            (id, cluster)
        };
        Settled(unsettled.0.into_iter().map(settle).collect())
    }
}

fn check_known_verdict(pool: &Mempool, candidate: &Candidate, plan: &Plan) -> Result<(), TxReject> {
    match pool.diagram_verdicts.get(plan) {
        Some(false) => Err(candidate.refused("replacement-failed", NO_IMPROVEMENT)),
        _ => Ok(()),
    }
}

/// Stores diagram results for the admission.
pub(super) fn note_diagrams(view: &mut View<'_>, ahead: &mut Precheck) {
    for (names, ids, is_better) in std::mem::take(&mut ahead.diagrams) {
        view.mempool.diagram_verdicts.put(names, ids, is_better);
    }
}

impl PendingCheck {
    /// The required checks of transactions, and perhaps of their replacement, without known results.
    pub(super) fn of(
        view: &View<'_>,
        rules: &Rules,
        staged: Vec<Staged>,
        plan: Option<Plan>,
    ) -> Self {
        let pool = &view.mempool;
        let is_unknown = |one: &Staged| pool.verdicts.get(&one.wtxid(), rules.flags).is_none();
        let unverified = staged.into_iter().filter(is_unknown).collect();
        let plan = plan.filter(|plan| pool.diagram_verdicts.get(plan).is_none());
        Self { unverified, plan }
    }
}

/// Clusters with a possibly suboptimal linearization.
pub(crate) struct Unsettled(Vec<(ClusterId, Arc<Cluster>)>);

impl Unsettled {
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// The same clusters with the best linearization found by bounded work.
pub(crate) struct Settled(Vec<(ClusterId, Cluster)>);

impl Mempool {
    /// Some clusters with a possibly suboptimal linearization.
    pub(crate) fn unsettled(&self) -> Unsettled {
        let unsettled = |graph: &Graph| graph.unsettled(SETTLED_AT_ONCE);
        Unsettled(self.graph.as_ref().map_or_else(Vec::new, unsettled))
    }

    /// Stores improved linearizations of clusters that still exist.
    pub(crate) fn settle(&mut self, settled: Settled) {
        let Some(graph) = &mut self.graph else { return };
        for (id, cluster) in settled.0 {
            graph.settle(id, cluster);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_for_one_transaction_under_the_same_flags() {
        let (wtxid, flags) = (Wtxid([7; 32]), Flags::BITCOIN_STANDARD);
        let scripts = HashMap::from([(wtxid, Ok(2))]);
        let ahead = Precheck { flags: Some(flags), scripts, diagrams: Vec::new() };
        assert_eq!(ahead.scripts(&wtxid, flags), Some(Ok(2)));
        assert_eq!(ahead.scripts(&Wtxid([8; 32]), flags), None);
        for (name, flag) in Flags::NAMED {
            let other = if flags.contains(*flag) { flags.without(*flag) } else { flags | *flag };
            assert_eq!(ahead.scripts(&wtxid, other), None, "{name}");
        }
        assert_eq!(Precheck::default().scripts(&wtxid, flags), None);
    }
}
