//! Expensive checks of admission, run before it and without the engine's lock.
//!
//! A first pass under the lock checks the spent coins, and determines the required results: of scripts, and of feerate diagrams
//! of replacements. They are computed without the lock. Then admission, under the lock, repeats only checks whose outcome other
//! transactions may change: presence, conflicts, parents, fees, room. A script result depends only on the transaction and the
//! flags, since a wtxid commits to all inputs of scripts. Checked coins are valid at the same tip while unconfirmed parents are
//! present, a diagram result as long as none of its clusters has changed. So a result is never wrong, at most missing after a
//! block in between; then it is computed under the lock.

use std::collections::HashMap;
use std::sync::Arc;

use assay_wire::{Transaction, Txid};

use super::candidate::{Candidate, Staged};
use super::cluster::Cluster;
use super::context::{AcceptOptions, Admission, Precheck, Rules, View};
use super::graph::{ClusterId, Graph};
use super::pool::Mempool;
use super::replace::{NO_IMPROVEMENT, Plan};
use crate::types::TxReject;

/// Clusters linearized per lock of the mempool.
const SETTLED_AT_ONCE: usize = 16;
/// Limit of such rounds per submission; a block may leave more behind.
pub(crate) const SETTLING_ROUNDS: usize = 8;

/// Checks required before the admission of transactions.
pub(crate) struct PendingChecks {
    pub(super) rules: Rules,
    pub(super) pending: Vec<PendingCheck>,
}

/// Transactions with required checks: one, or those of a package that only pass together.
pub(super) struct PendingCheck {
    /// With true if the scripts must be verified.
    staged: Vec<(Staged, bool)>,
    plan: Option<Plan>,
}

impl Admission {
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
            return Ok(PendingCheck { staged: Vec::new(), plan: None });
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
        let mut ahead =
            Precheck { flags: Some(rules.flags), tip: Some(rules.tip), ..Precheck::default() };
        // Skip the scripts of transactions that fail other checks here.
        pending.retain(|pending_check| {
            let Some(plan) = &pending_check.plan else { return true };
            let (is_better, cost) = plan.judge(&pause);
            self.note_work(cost);
            ahead.diagrams.push(plan.verdict(is_better));
            is_better
        });
        let staged = || pending.iter().flat_map(|pending_check| &pending_check.staged);
        let unverified = staged().filter(|(_, is_unverified)| *is_unverified);
        let unverified: Vec<&Staged> = unverified.map(|(one, _)| one).collect();
        pause();
        let outcomes = self.run_scripts(&rules, &unverified);
        let wtxids = unverified.iter().map(|staged| staged.wtxid());
        ahead.scripts = wtxids.zip(outcomes).collect();
        ahead.spends = staged().map(|(one, _)| (one.wtxid(), Arc::clone(one.spends()))).collect();
        ahead
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
    match plan.known_verdict(pool) {
        Some(false) => Err(candidate.refused("replacement-failed", NO_IMPROVEMENT)),
        _ => Ok(()),
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
        let staged = staged.into_iter().map(|one| {
            let is_unknown = is_unknown(&one);
            (one, is_unknown)
        });
        let plan = plan.filter(|plan| plan.known_verdict(pool).is_none());
        Self { staged: staged.collect(), plan }
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
