//! Replacement by a parent and a child with their total fee (Core `validation.cpp`, `PackageRBFChecks`).

use assay_wire::Txid;

use super::candidate::Checked;
use super::context::Admission;
use super::package_form::is_child_with_parents;
use super::pool::Mempool;
use super::replace::{NO_IMPROVEMENT, Plan, check_cluster_count, check_pays_for_itself};
use crate::package::{PackageFault, PackageReject, sat_per_kvb};

impl Admission {
    /// Checks everything except the feerate diagram; `None` without a replacement.
    pub(super) fn plan_package_replacement(
        &self,
        pool: &Mempool,
        package: &[Checked],
    ) -> Result<Option<Plan>, PackageReject> {
        let conflicts: Vec<Txid> = package.iter().flat_map(|one| one.conflicts.clone()).collect();
        let Some(graph) = pool.graph.as_ref().filter(|_| !conflicts.is_empty()) else {
            return Ok(None);
        };
        let (parent, child) = parent_and_child(package)?;
        let txid = child.staged.txid();
        check_cluster_count(graph, &txid, &conflicts)
            .map_err(|debug| failed("too many potential replacements", debug))?;
        let plan = Plan::of(graph, &[parent, child]);
        check_pays_for_itself(&txid, &plan, self.incremental_fee())
            .map_err(|debug| failed("insufficient anti-DoS fees", debug))?;
        check_rates(parent, child)?;
        if self.is_cluster_too_large(&plan) {
            return Err(PackageReject::new(PackageFault::Policy, "too-large-cluster", ""));
        }
        Ok(Some(plan))
    }

    /// The diagram check; returns the replaced transactions.
    pub(super) fn check_package_diagram(
        &self,
        pool: &mut Mempool,
        plan: &Plan,
    ) -> Result<Vec<Txid>, PackageReject> {
        if self.is_improvement(pool, plan) {
            Ok(plan.gone())
        } else {
            Err(failed(NO_IMPROVEMENT, ""))
        }
    }
}

fn failed(reason: &str, debug: impl Into<String>) -> PackageReject {
    PackageReject::new(PackageFault::Policy, &format!("package RBF failed: {reason}"), debug)
}

/// The only form that may replace: two transactions without other unconfirmed ancestors.
fn parent_and_child(package: &[Checked]) -> Result<(&Checked, &Checked), PackageReject> {
    let candidates: Vec<_> = package.iter().map(|one| one.staged.candidate()).collect();
    let [parent, child] = package else {
        return Err(failed("package must be 1-parent-1-child", ""));
    };
    if !is_child_with_parents(&candidates) {
        return Err(failed("package must be 1-parent-1-child", ""));
    }
    if package.iter().any(|one| !one.parents.is_empty()) {
        return Err(failed("new transaction cannot have mempool ancestors", ""));
    }
    Ok((parent, child))
}

/// The child must pay for its parent, not only for the relay of both.
fn check_rates(parent: &Checked, child: &Checked) -> Result<(), PackageReject> {
    let of = |one: &Checked| (one.entry.modified_fee_sat(), u64::from(one.entry.vsize));
    let (fee, vsize) = of(parent);
    let (child_fee, child_vsize) = of(child);
    let (sum_fee, sum_vsize) = (fee.saturating_add(child_fee), vsize + child_vsize);
    if i128::from(sum_fee) * i128::from(vsize) > i128::from(fee) * i128::from(sum_vsize) {
        return Ok(());
    }
    let debug = format!(
        "package feerate {} <= parent feerate is {}",
        rate_text(sum_fee, sum_vsize),
        rate_text(fee, vsize)
    );
    Err(failed("package feerate is less than or equal to parent feerate", debug))
}

/// A fee rate in the format of Core's messages (`CFeeRate::ToString`).
fn rate_text(fee_sat: i64, vsize: u64) -> String {
    const COIN: i64 = 100_000_000;
    let rate = sat_per_kvb(fee_sat, vsize);
    format!("{}.{:08} BTC/kvB", rate / COIN, rate % COIN)
}
