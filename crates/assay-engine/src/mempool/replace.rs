//! Replacement by fee (Core `validation.cpp`, `ReplacementChecks`): the rules of BIP125 without signalling, and the comparison of
//! feerate diagrams.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use assay_consensus::amount::format_money;
use assay_wire::Txid;

use super::candidate::{Candidate, Checked};
use super::cluster::{Cluster, Member};
use super::context::Admission;
use super::diagram;
use super::graph::{ClusterId, Graph};
use super::linearize::{CLUSTER_COUNT_MAX, Rate, members};
use super::pool::Mempool;
use super::verdicts::{DiagramVerdict, Newcomers};
use crate::types::TxReject;

/// Core's `MAX_REPLACEMENT_CANDIDATES` (`policy/rbf.h`): limit of clusters changed by conflicts of one transaction.
const CLUSTERS_MAX: usize = 100;

/// Message of a failed diagram check (Core `policy/rbf.cpp`, `ImprovesFeerateDiagram`).
pub(super) const NO_IMPROVEMENT: &str = "insufficient feerate: does not improve feerate diagram";

/// A replacement that passes all rules except possibly the diagram check, and its changes. It has all data for that check, so
/// that the check needs no engine lock.
pub(super) struct Plan {
    touched: Vec<Touched>,
    /// New transactions with their parents, parents before children.
    newcomers: Vec<(Member, Vec<Txid>)>,
    names: Newcomers,
}

/// A cluster that a replacement would change.
struct Touched {
    id: ClusterId,
    cluster: Arc<Cluster>,
    /// Members that conflict with the new transactions.
    conflicts: u64,
    /// Conflicts and their descendants.
    gone: u64,
    /// Members that are parents of the new transactions.
    parents: u64,
}

impl Touched {
    /// The remaining components that the new transaction connects.
    fn joining(&self) -> impl Iterator<Item = u64> {
        let components = self.cluster.components(self.gone);
        components.into_iter().filter(|set| set & self.parents != 0)
    }
}

impl Plan {
    /// The changes when these transactions, parents before children, replace all their conflicts.
    pub(super) fn of(graph: &Graph, new: &[&Checked]) -> Self {
        let conflicts: Vec<Txid> = new.iter().flat_map(|one| one.conflicts.clone()).collect();
        let parents: Vec<Txid> = new.iter().flat_map(|one| one.parents.clone()).collect();
        let newcomer = |one: &&Checked| {
            let (txid, entry) = (one.staged.txid(), &one.entry);
            let member = Member::new(txid, entry.cluster_fee_sat(), entry.adjusted_weight);
            let inside = new.iter().map(|other| other.staged.txid());
            let inside = inside.filter(|other| one.staged.candidate().spends(other));
            (member, one.parents.iter().copied().chain(inside).collect())
        };
        let name = |one: &&Checked| (one.staged.wtxid(), one.entry.cluster_fee_sat());
        Self {
            touched: touched(graph, &conflicts, &parents),
            newcomers: new.iter().map(newcomer).collect(),
            names: new.iter().map(name).collect(),
        }
    }

    /// The known result of the diagram check.
    pub(super) fn known_verdict(&self, pool: &Mempool) -> Option<bool> {
        pool.diagram_verdicts.get(&self.names, &self.cluster_ids())
    }

    /// The result of the diagram check, for [`DiagramVerdicts::put`](super::verdicts::DiagramVerdicts::put).
    pub(super) fn verdict(&self, is_better: bool) -> DiagramVerdict {
        (self.names.clone(), self.cluster_ids(), is_better)
    }

    pub(super) fn gone(&self) -> Vec<Txid> {
        let members = |one: &Touched| {
            let all = one.cluster.members().iter().enumerate();
            let gone = all.filter(|(index, _)| one.gone >> index & 1 == 1);
            gone.map(|(_, member)| member.txid).collect::<Vec<_>>()
        };
        self.touched.iter().flat_map(members).collect()
    }

    /// The clusters it would change: while they exist, the result of [`Plan::judge`] is valid.
    fn cluster_ids(&self) -> Vec<ClusterId> {
        self.touched.iter().map(|one| one.id).collect()
    }

    /// Returns true if the diagram improves (Core `policy/rbf.cpp`, `ImprovesFeerateDiagram`), and the work in visited
    /// transactions. As in Core, the compared linearizations are the results of bounded work. Calls `pause` between clusters.
    pub(super) fn judge(&self, pause: impl Fn()) -> (bool, u64) {
        let (mut before, mut after): (Vec<Rate>, Vec<Rate>) = (Vec::new(), Vec::new());
        let mut joining = Vec::new();
        let mut cost = 0;
        for Touched { cluster, gone, parents, .. } in &self.touched {
            pause();
            let (settled, work) = cluster.settled();
            cost += work;
            before.extend(settled.rates());
            // The order, and so the bits, may differ now.
            let now = |set: u64| {
                let txids = members(set).map(|index| cluster.members()[index].txid);
                let places = txids.filter_map(|txid| settled.index_of(&txid));
                places.fold(0u64, |set, place| set | 1 << place)
            };
            let (gone, parents) = (now(*gone), now(*parents));
            for set in settled.components(gone) {
                let part = settled.component(gone, set);
                if set & parents != 0 {
                    joining.push(part);
                } else {
                    let (part, work) = part.settled();
                    after.extend(part.rates());
                    cost += work;
                }
            }
        }
        for (newcomer, parents) in &self.newcomers {
            let parts: Vec<&Cluster> = joining.iter().collect();
            joining = vec![Cluster::joined(&parts, Some((*newcomer, parents)))];
        }
        let joined = joining.pop().expect("something comes in");
        let (joined, work) = joined.settled();
        after.extend(joined.rates());
        before.sort_by(|a, b| b.cmp_rate(a));
        after.sort_by(|a, b| b.cmp_rate(a));
        (diagram::improves(&before, &after), cost + work)
    }
}

impl Admission {
    /// Checks everything except the feerate diagram for the replacement of a transaction's conflicts and their descendants.
    pub(super) fn plan_replacement(
        &self,
        pool: &Mempool,
        checked: &Checked,
    ) -> Result<Plan, TxReject> {
        let Some(graph) = &pool.graph else {
            unreachable!("where clusters have no limit nothing is replaced")
        };
        let candidate = checked.staged.candidate();
        let suffix = if checked.evicts_sibling { " (including sibling eviction)" } else { "" };
        let reject = |reason: &str, debug| candidate.refused(&format!("{reason}{suffix}"), debug);
        check_cluster_count(graph, &candidate.txid(), &checked.conflicts)
            .map_err(|debug| reject("too many potential replacements", debug))?;
        let plan = Plan::of(graph, &[checked]);
        check_pays_for_itself(&candidate.txid(), &plan, self.incremental_fee())
            .map_err(|debug| reject("insufficient fee", debug))?;
        if self.is_cluster_too_large(&plan) {
            return Err(candidate.rejected("too-large-cluster"));
        }
        Ok(plan)
    }

    /// Checks the replacement of a transaction's conflicts and their descendants; returns the removed transactions.
    pub(super) fn check_replacement(
        &self,
        pool: &mut Mempool,
        checked: &Checked,
    ) -> Result<Vec<Txid>, TxReject> {
        let plan = self.plan_replacement(pool, checked)?;
        let candidate = checked.staged.candidate();
        if !self.is_improvement(pool, &plan) {
            return Err(candidate.refused("replacement-failed", NO_IMPROVEMENT));
        }
        check_disjoint(candidate, &plan)?;
        Ok(plan.gone())
    }

    pub(super) fn incremental_fee(&self) -> u64 {
        self.config.policy.incremental_fee_sat_per_kvb
    }

    /// True if a replacement improves the feerate diagram.
    pub(super) fn is_improvement(&self, pool: &mut Mempool, plan: &Plan) -> bool {
        plan.known_verdict(pool).unwrap_or_else(|| {
            let (is_better, cost) = plan.judge(|| ());
            self.note_work(cost);
            pool.diagram_verdicts.put(plan.verdict(is_better));
            is_better
        })
    }

    /// True if the cluster of the new transactions would be too large.
    pub(super) fn is_cluster_too_large(&self, plan: &Plan) -> bool {
        let own = plan.newcomers.iter().map(|(newcomer, _)| newcomer.rate().weight);
        let (mut count, mut weight) = (plan.newcomers.len(), own.sum::<u64>());
        for one in &plan.touched {
            for set in one.joining() {
                count += set.count_ones() as usize;
                weight += one.cluster.rate_of(set).weight;
            }
        }
        let count_max = self.config.cluster_count_max.map(|max| max.min(CLUSTER_COUNT_MAX));
        count_max.is_some_and(|max| count > max) || weight > self.config.cluster_weight_max()
    }
}

/// The changed clusters: those of the removed transactions, and those of the new ones' parents.
fn touched(graph: &Graph, direct: &[Txid], parents: &[Txid]) -> Vec<Touched> {
    // By number, so that the order is deterministic.
    let mut touched: BTreeMap<ClusterId, Touched> = BTreeMap::new();
    for (txids, is_conflict) in [(direct, true), (parents, false)] {
        for txid in txids {
            let Some((id, cluster)) = graph.cluster(txid) else { continue };
            let one = touched.entry(id).or_insert_with(|| Touched {
                id,
                cluster: Arc::clone(cluster),
                conflicts: 0,
                gone: 0,
                parents: 0,
            });
            let index = cluster.index_of(txid).expect("it is in its cluster");
            *(if is_conflict { &mut one.conflicts } else { &mut one.parents }) |= 1 << index;
        }
    }
    let mut touched: Vec<Touched> = touched.into_values().collect();
    for one in &mut touched {
        one.gone = one.cluster.with_descendants(one.conflicts);
    }
    touched
}

/// BIP125's rule 5, for clusters; the error is Core's message (`policy/rbf.cpp`, `GetEntriesForConflicts`).
pub(super) fn check_cluster_count(
    graph: &Graph,
    txid: &Txid,
    direct: &[Txid],
) -> Result<(), String> {
    let ids = direct.iter().filter_map(|txid| graph.cluster(txid).map(|(id, _)| id));
    let count = ids.collect::<HashSet<_>>().len();
    if count <= CLUSTERS_MAX {
        return Ok(());
    }
    Err(format!(
        "rejecting replacement {txid}; too many conflicting clusters ({count} > {CLUSTERS_MAX})"
    ))
}

/// Its ancestors must not be removed.
fn check_disjoint(candidate: &Candidate, plan: &Plan) -> Result<(), TxReject> {
    let below = |one: &Touched| {
        members(one.conflicts)
            .filter(|index| one.cluster.with_descendants(1 << index) & one.parents != 0)
            .map(|index| one.cluster.members()[index].txid)
            .collect::<Vec<_>>()
    };
    let Some(ancestor) = plan.touched.iter().flat_map(below).min() else { return Ok(()) };
    let debug = format!("{} spends conflicting transaction {ancestor}", candidate.txid());
    Err(candidate.refused("bad-txns-spends-conflicting-tx", debug))
}

/// BIP125's rules 3 and 4: the new transactions pay at least the replaced fees, and for their own relay. The error is Core's
/// message (`policy/rbf.cpp`, `PaysForRBF`).
pub(super) fn check_pays_for_itself(
    txid: &Txid,
    plan: &Plan,
    incremental_sat_per_kvb: u64,
) -> Result<(), String> {
    let fees = plan.touched.iter().map(|one| one.cluster.rate_of(one.gone).fee_sat);
    let fees_gone: i64 = fees.sum();
    let fee: i64 = plan.newcomers.iter().map(|(newcomer, _)| newcomer.rate().fee_sat).sum();
    if fee < fees_gone {
        let (fee, fees_gone) = (format_money(fee), format_money(fees_gone));
        return Err(format!(
            "rejecting replacement {txid}, less fees than conflicting txs; {fee} < {fees_gone}"
        ));
    }
    // Virtual sizes are rounded per transaction.
    let sizes = plan.newcomers.iter().map(|(newcomer, _)| newcomer.rate().weight.div_ceil(4));
    let least =
        (u128::from(incremental_sat_per_kvb) * u128::from(sizes.sum::<u64>())).div_ceil(1000);
    let least = i64::try_from(least).unwrap_or(i64::MAX);
    if fee - fees_gone < least {
        let (added, least) = (format_money(fee - fees_gone), format_money(least));
        return Err(format!(
            "rejecting replacement {txid}, not enough additional fees to relay; {added} < {least}"
        ));
    }
    Ok(())
}
