//! What is costly about admission, done before it and without the engine's lock.
//!
//! A first look under the lock finds out what would have to be known: whether scripts pass, and whether a replacement leaves
//! miners better off. Answers are found without the lock. Then admission goes through all checks in their order, under the
//! lock, as if nothing had been before, and finds the answers it needs. A verdict over scripts depends on the transaction and
//! the flags alone, since a wtxid commits to all that scripts see; one over a replacement holds as long as none of the clusters
//! that it is about has changed. So answers are never wrong, at most missing, when a block came in between; then they are
//! found under the lock.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use assay_consensus::script::Flags;
use assay_wire::{Transaction, Txid, Wtxid};

use super::admission::{Admitted, Candidate, Rules, Staged};
use super::graph::ClusterId;
use super::replace::{Plan, Replacement};
use super::turns::PolicyTurn;
use crate::engine::{Engine, State};
use crate::scripts::Cause;
use crate::types::TxReject;

/// Clusters whose order is improved between two looks at the engine's state.
const SETTLED_AT_ONCE: usize = 16;
/// Clusters whose order one submission improves at most; a block may leave more behind.
const SETTLED_PER_TURN: usize = 128;

/// What transactions are submitted for.
#[derive(Clone, Copy)]
pub(super) struct Wish {
    /// Highest fee rate that the caller allows.
    pub(super) fee_sat_per_kvb_max: Option<u64>,
    /// Whether only the verdicts are wanted.
    pub(super) is_trial: bool,
}

/// Answers.
#[derive(Default)]
pub(super) struct Ahead {
    flags: Option<Flags>,
    /// Signature checks that were executed, or what failed.
    scripts: HashMap<Wtxid, Result<u64, Cause>>,
    diagrams: Vec<(Wtxid, Vec<ClusterId>, bool)>,
}

impl Ahead {
    /// What the scripts of a transaction came to under these flags.
    pub(super) fn scripts(&self, wtxid: &Wtxid, flags: Flags) -> Option<Result<u64, Cause>> {
        if self.flags == Some(flags) { self.scripts.get(wtxid).cloned() } else { None }
    }
}

/// A transaction about which something has to be known.
struct Question {
    staged: Staged,
    is_verified: bool,
    plan: Option<Plan>,
}

impl Engine {
    /// Admits transactions, or tries them, in this order; also gives the work that ordering clusters took.
    pub(super) fn admit_in_turn(
        &self,
        candidates: Vec<Result<Candidate, TxReject>>,
        wish: Wish,
    ) -> (Vec<Result<Admitted, TxReject>>, u64) {
        let turn = self.turns.policy();
        let work_before = self.mempool_work();
        let mut ahead = self.look_ahead(&turn, &candidates, wish);
        turn.pause();
        let mut state = self.lock();
        let mut rules = self.rules_of(&state, wish, candidates.len());
        for (wtxid, ids, is_better) in std::mem::take(&mut ahead.diagrams) {
            state.mempool.diagram_verdicts.put(wtxid, ids, is_better);
        }
        rules.ahead = ahead;
        let verdicts = self.admit(&mut state, &rules, candidates);
        if wish.is_trial {
            let new = verdicts.iter().flatten().filter(|admitted| admitted.is_new);
            let tried: Vec<Txid> = new.map(|admitted| admitted.txid).rev().collect();
            state.mempool.remove_all(&tried);
        }
        drop(state);
        self.settle_clusters(&turn);
        (verdicts, self.mempool_work() - work_before)
    }

    fn rules_of(&self, state: &State, wish: Wish, count: usize) -> Rules {
        let mut rules = self.rules(state, wish.fee_sat_per_kvb_max);
        rules.is_trial = wish.is_trial;
        if wish.is_trial && rules.replacement == Replacement::Allowed {
            rules.replacement =
                if count == 1 { Replacement::Trial } else { Replacement::Disallowed };
        }
        rules
    }

    fn look_ahead(
        &self,
        turn: &PolicyTurn<'_>,
        candidates: &[Result<Candidate, TxReject>],
        wish: Wish,
    ) -> Ahead {
        let mut state = self.lock();
        let rules = self.rules_of(&state, wish, candidates.len());
        self.load_coins(&mut state, candidates);
        let mut earlier = HashMap::new();
        let mut questions = Vec::new();
        for candidate in candidates.iter().flatten() {
            questions.extend(self.question(&mut state, &rules, candidate, &earlier));
            if candidates.len() > 1 {
                earlier.insert(candidate.txid(), Arc::clone(candidate.tx()));
            }
        }
        drop(state);
        let mut ahead = Ahead { flags: Some(rules.flags), ..Ahead::default() };
        // What fails here for other reasons than scripts is not worth looking at them.
        questions.retain(|question| {
            let Some(plan) = &question.plan else { return true };
            let (is_better, cost) = plan.judge(|| turn.pause());
            self.note_policy_work(cost);
            let wtxid = question.staged.wtxid();
            ahead.diagrams.push((wtxid, plan.cluster_ids(), is_better));
            is_better
        });
        let unverified = questions.iter().filter(|question| !question.is_verified);
        let unverified: Vec<&Staged> = unverified.map(|question| &question.staged).collect();
        turn.pause();
        let outcomes = self.run_scripts(&rules, &unverified);
        let wtxids = unverified.iter().map(|staged| staged.wtxid());
        ahead.scripts = wtxids.zip(outcomes).collect();
        ahead
    }

    /// What has to be known of a transaction; `None` when it will be rejected without that, as things stand.
    fn question(
        &self,
        state: &mut State,
        rules: &Rules,
        candidate: &Candidate,
        earlier: &HashMap<Txid, Arc<Transaction>>,
    ) -> Option<Question> {
        let conflicts = candidate.conflicts(&state.mempool);
        let (staged, entry) =
            self.check_all_but_scripts(state, rules, candidate, &conflicts, earlier).ok()??;
        let is_verified = state.verdicts.get(&staged.wtxid(), rules.flags).is_some();
        if conflicts.is_empty() {
            return (!is_verified).then_some(Question { staged, is_verified, plan: None });
        }
        let plan = self.plan_replacement(&state.mempool, candidate, &entry, &conflicts).ok()?;
        let plan = match state.mempool.diagram_verdicts.get(&staged.wtxid(), &plan) {
            Some(false) => return None,
            Some(true) => None,
            None => Some(plan),
        };
        Some(Question { staged, is_verified, plan })
    }

    /// Improves the order of clusters that have changed.
    fn settle_clusters(&self, turn: &PolicyTurn<'_>) {
        for _ in 0..SETTLED_PER_TURN / SETTLED_AT_ONCE {
            let graph_is_settled = |state: &State| {
                state.mempool.graph.as_ref().map(|graph| graph.unsettled(SETTLED_AT_ONCE))
            };
            let Some(unsettled) = graph_is_settled(&self.lock()) else { return };
            if unsettled.is_empty() {
                return;
            }
            let mut settled = Vec::with_capacity(unsettled.len());
            for (id, cluster) in &unsettled {
                turn.pause();
                let (cluster, cost) = cluster.settled();
                self.note_policy_work(cost);
                settled.push((*id, cluster));
            }
            if let Some(graph) = &mut self.lock().mempool.graph {
                for (id, cluster) in settled {
                    graph.settle(id, cluster);
                }
            }
        }
    }

    pub(super) fn note_policy_work(&self, cost: u64) {
        self.policy_work.fetch_add(cost, Ordering::Relaxed);
    }

    /// Work that ordering clusters of the mempool has taken since the engine was opened, in visits of transactions.
    pub fn mempool_work(&self) -> u64 {
        self.policy_work.load(Ordering::Relaxed)
    }
}
