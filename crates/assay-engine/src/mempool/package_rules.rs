//! Package validation: a child pays for its parents (Core `validation.cpp`, `AcceptMultipleTransactions`).

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use assay_wire::{Transaction, Txid};

use super::candidate::{Admitted, Candidate, Checked, Staged};
use super::context::{Admission, Rules, Scope, View};
use super::entry::Entry;
use super::graph::ClusterId;
use super::linearize::CLUSTER_COUNT_MAX;
use super::pool::Mempool;
use super::replace::Plan;
use super::truc::{self, PackageMember};
use super::{ephemeral, package_form};
use crate::package::{PackageFault, PackageFees, PackageReject, PackageVerdict};
use crate::types::TxReject;

/// Transactions of the same list whose outputs may be spent.
pub(super) type Earlier = HashMap<Txid, Arc<Transaction>>;

/// Transactions that pass all checks except diagrams, room, dust of parents and scripts.
pub(super) struct Together {
    checked: Vec<Checked>,
    pub(super) plan: Option<Plan>,
    /// All of them, and earlier ones.
    earlier: Earlier,
}

impl Together {
    pub(super) fn into_parts(self) -> (Vec<Staged>, Option<Plan>) {
        (self.checked.into_iter().map(|one| one.staged).collect(), self.plan)
    }

    /// Their total fee and virtual size.
    fn sums(&self) -> (i64, u64) {
        sums(&self.checked)
    }
}

/// Rejection of a package, and the transaction at fault.
pub(super) struct Failure {
    reject: PackageReject,
    of: Option<(usize, Box<TxReject>)>,
}

impl From<PackageReject> for Failure {
    fn from(reject: PackageReject) -> Self {
        Self { reject, of: None }
    }
}

impl Failure {
    fn of_tx(index: usize, reject: TxReject) -> Self {
        Self { reject: PackageReject::tx_failed(), of: Some((index, Box::new(reject))) }
    }
}

pub(super) struct Judged {
    pub(super) reject: Option<PackageReject>,
    pub(super) verdicts: Vec<PackageVerdict>,
}

impl Judged {
    fn failed(count: usize, failure: Failure) -> Self {
        let mut verdicts = vec![PackageVerdict::NotValidated; count];
        if let Some((index, reject)) = failure.of {
            verdicts[index] = PackageVerdict::Rejected(*reject);
        }
        Self { reject: Some(failure.reject), verdicts }
    }
}

impl Admission {
    /// Admits or tests transactions together; none of them is in the mempool yet.
    pub(super) fn admit_together(
        &self,
        view: &mut View<'_>,
        rules: &Rules,
        package: &[&Candidate],
    ) -> Judged {
        let outcome = self.check_together(view, rules, package);
        match outcome {
            Ok((together, gone)) => self.finish_together(view, rules, together, &gone),
            Err(failure) => Judged::failed(package.len(), failure),
        }
    }

    /// All checks except scripts; also returns the replaced transactions.
    fn check_together(
        &self,
        view: &mut View<'_>,
        rules: &Rules,
        package: &[&Candidate],
    ) -> Result<(Together, Vec<Txid>), Failure> {
        let together = self.judge_together(view, rules, package, Earlier::new())?;
        let gone = match &together.plan {
            Some(plan) => self.check_package_diagram(view.mempool, plan)?,
            None => Vec::new(),
        };
        self.check_together_last(view, &together)?;
        Ok((together, gone))
    }

    /// The checks before diagrams. Outputs of `earlier` may be spent too.
    pub(super) fn judge_together(
        &self,
        view: &mut View<'_>,
        rules: &Rules,
        package: &[&Candidate],
        mut earlier: Earlier,
    ) -> Result<Together, Failure> {
        package_form::check(package)?;
        let mut checked = Vec::with_capacity(package.len());
        for (index, candidate) in package.iter().enumerate() {
            let one = self.check_member(view, rules, candidate, &earlier);
            checked.push(one.map_err(|reject| Failure::of_tx(index, reject))?);
            earlier.insert(candidate.txid(), Arc::clone(candidate.tx()));
        }
        check_truc(view.mempool, &checked)?;
        if let (Scope::Together, Some(last)) = (rules.scope, package.last()) {
            let (fee, vsize) = sums(&checked);
            self.check_fee_rate(view.mempool, last, fee, vsize)
                .map_err(|reject| Failure::of_tx(package.len() - 1, reject))?;
        }
        let plan = self.plan_package_replacement(view.mempool, &checked)?;
        Ok(Together { checked, plan, earlier })
    }

    fn check_member(
        &self,
        view: &mut View<'_>,
        rules: &Rules,
        candidate: &Candidate,
        earlier: &Earlier,
    ) -> Result<Checked, TxReject> {
        let candidate = candidate.clone().checked(&self.config)?;
        let checked = self.pre_check(view, rules, &candidate, earlier)?;
        let checked = checked.ok_or_else(|| candidate.rejected("txn-already-in-mempool"))?;
        rules.check_fee_rate_max(&candidate, &checked.entry)?;
        Ok(checked)
    }

    /// The checks after diagrams, and before scripts.
    pub(super) fn check_together_last(
        &self,
        view: &View<'_>,
        together: &Together,
    ) -> Result<(), Failure> {
        // A replacement has no other unconfirmed ancestors, so its cluster is checked already.
        if together.plan.is_none() && !self.is_room_for(view.mempool, &together.checked) {
            return Err(PackageReject::new(PackageFault::Policy, "too-large-cluster", "").into());
        }
        let policy = &self.config.policy;
        if !policy.require_standard {
            return Ok(());
        }
        for (index, one) in together.checked.iter().enumerate() {
            let (candidate, earlier) = (one.staged.candidate(), &together.earlier);
            let dust_fee = policy.dust_fee_sat_per_kvb;
            ephemeral::check_spends(view.mempool, earlier, candidate, dust_fee).map_err(|tx| {
                let reject = PackageReject::new(PackageFault::Tx, "unspent-dust", "");
                Failure { reject, of: Some((index, Box::new(tx))) }
            })?;
        }
        Ok(())
    }

    /// Script checks and their consequences.
    fn finish_together(
        &self,
        view: &mut View<'_>,
        rules: &Rules,
        together: Together,
        gone: &[Txid],
    ) -> Judged {
        let staged: Vec<&Staged> = together.checked.iter().map(|one| &one.staged).collect();
        let outcomes = self.verify(&mut view.mempool.verdicts, rules, &staged);
        let mut sigchecks = Vec::with_capacity(outcomes.len());
        let mut failed = None;
        for (index, outcome) in outcomes.into_iter().enumerate() {
            match outcome {
                Ok(count) => sigchecks.push(count as u32),
                Err(failure) => {
                    failed = Some(Failure::of_tx(index, staged[index].failed(failure)));
                    break;
                }
            }
        }
        let passed = sigchecks.len();
        let mut fees = fees(rules, &together, gone.to_vec()).into_iter();
        if let Some(failure) = failed {
            let mut judged = Judged::failed(together.checked.len(), failure);
            if rules.is_trial {
                let fees = fees.map(PackageVerdict::Admitted);
                judged.verdicts.splice(..passed, fees.take(passed));
            }
            return judged;
        }
        let verdicts = fees.by_ref().map(PackageVerdict::Admitted).collect();
        if !rules.is_trial {
            view.mempool.remove_all(gone);
            for (one, sigchecks) in together.checked.into_iter().zip(sigchecks) {
                let entry = Entry { verified: rules.flags, sigchecks, ..one.entry };
                view.mempool.insert(one.staged.txid(), entry);
            }
        }
        Judged { reject: None, verdicts }
    }

    /// True if the clusters formed by the transactions and the mempool stay within limits.
    fn is_room_for(&self, pool: &Mempool, package: &[Checked]) -> bool {
        let Some(graph) = &pool.graph else { return true };
        let count_max = self.config.cluster_count_max.unwrap_or(usize::MAX).min(CLUSTER_COUNT_MAX);
        let mut groups: Vec<Group> = Vec::new();
        for one in package {
            let mut new = Group {
                clusters: one.parents.iter().filter_map(|id| Some(graph.cluster(id)?.0)).collect(),
                txids: HashSet::from([one.staged.txid()]),
                weight: u64::from(one.entry.adjusted_weight),
            };
            let candidate = one.staged.candidate();
            let joins = |group: &mut Group| {
                !group.clusters.is_disjoint(&new.clusters)
                    || group.txids.iter().any(|txid| candidate.spends(txid))
            };
            for group in groups.extract_if(.., joins).collect::<Vec<_>>() {
                new.clusters.extend(group.clusters);
                new.txids.extend(group.txids);
                new.weight += group.weight;
            }
            groups.push(new);
        }
        groups.iter().all(|group| {
            let (count, weight) = graph.extent_of(&group.clusters);
            let is_light = weight + group.weight <= self.config.cluster_weight_max();
            count + group.txids.len() <= count_max && is_light
        })
    }
}

/// Transactions of a package that will be in the same cluster.
struct Group {
    /// Clusters that become part of it.
    clusters: HashSet<ClusterId>,
    txids: HashSet<Txid>,
    weight: u64,
}

fn sums(checked: &[Checked]) -> (i64, u64) {
    checked.iter().fold((0, 0), |(fee, vsize): (i64, u64), one| {
        let fee = fee.saturating_add(one.entry.modified_fee_sat());
        (fee, vsize + u64::from(one.entry.vsize))
    })
}

fn check_truc(pool: &Mempool, checked: &[Checked]) -> Result<(), PackageReject> {
    let member = |one: &'_ Checked| PackageMember {
        candidate: one.staged.candidate().clone(),
        vsize: one.entry.vsize,
        parents: one.parents.clone(),
    };
    let members: Vec<PackageMember> = checked.iter().map(member).collect();
    let check = |index| truc::check_in_package(pool, &members, index);
    (0..members.len())
        .try_for_each(check)
        .map_err(|debug| PackageReject::new(PackageFault::Policy, "TRUC-violation", debug))
}

/// Fees of each: individually, or all together.
fn fees(rules: &Rules, together: &Together, gone: Vec<Txid>) -> Vec<PackageFees> {
    let all = together.checked.iter().map(|one| one.staged.wtxid()).collect::<Vec<_>>();
    let mut gone = Some(gone);
    let of = |one: &Checked| {
        let fees = Admitted::of(&one.staged, gone.take().unwrap_or_default()).fees();
        if rules.scope != Scope::Together {
            return fees;
        }
        PackageFees { effective: together.sums(), effective_of: all.clone(), ..fees }
    };
    together.checked.iter().map(of).collect()
}
