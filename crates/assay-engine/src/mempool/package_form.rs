//! Form of a package (Core `policy/packages.cpp`).

use std::collections::HashSet;

use assay_wire::{Transaction, Txid};

use super::candidate::Candidate;
use crate::package::{PackageFault, PackageReject};

/// Core's `MAX_PACKAGE_COUNT`.
const COUNT_MAX: usize = 25;
/// Core's `MAX_PACKAGE_WEIGHT`.
const WEIGHT_MAX: usize = 404_000;

/// Checks that need only the transactions (Core `IsWellFormedPackage`).
pub(super) fn check(package: &[&Candidate]) -> Result<(), PackageReject> {
    let reason = |reason| Err(PackageReject::new(PackageFault::Policy, reason, ""));
    if package.len() > COUNT_MAX {
        return reason("package-too-many-transactions");
    }
    let weight: usize = package.iter().map(|one| one.tx().view().weight()).sum();
    // The weight of a single one is its own fault.
    if package.len() > 1 && weight > WEIGHT_MAX {
        return reason("package-too-large");
    }
    let mut later: HashSet<Txid> = package.iter().map(|one| one.txid()).collect();
    if later.len() != package.len() {
        return reason("package-contains-duplicates");
    }
    for one in package {
        if one.tx().view().inputs().any(|input| later.contains(&input.prevout.txid)) {
            return reason("package-not-sorted");
        }
        later.remove(&one.txid());
    }
    if has_conflict(package) { reason("conflict-in-package") } else { Ok(()) }
}

/// True if two spend the same output, or one spends nothing (Core `IsConsistentPackage`).
fn has_conflict(package: &[&Candidate]) -> bool {
    let mut spent = HashSet::new();
    package.iter().any(|one| {
        // A duplicate within one transaction is its own fault.
        let own: HashSet<_> = one.tx().view().inputs().map(|input| input.prevout).collect();
        let is_conflict = own.is_empty() || own.iter().any(|prevout| spent.contains(prevout));
        spent.extend(own);
        is_conflict
    })
}

/// True if the last one spends from all others (Core `IsChildWithParents`).
pub(super) fn is_child_with_parents(package: &[&Candidate]) -> bool {
    let Some((child, parents)) = package.split_last() else { return false };
    !parents.is_empty() && parents.iter().all(|parent| child.spends(&parent.txid()))
}

/// True if the last one spends from all others, and none of those from another (Core `IsChildWithParentsTree`).
pub fn is_child_with_parents_tree(package: &[Transaction]) -> bool {
    let Some((child, parents)) = package.split_last() else { return false };
    let txids: HashSet<Txid> = parents.iter().map(|parent| parent.view().txid()).collect();
    let spent = |tx: &Transaction| -> HashSet<Txid> {
        tx.view().inputs().map(|input| input.prevout.txid).collect()
    };
    !parents.is_empty()
        && txids.is_subset(&spent(child))
        && parents.iter().all(|parent| spent(parent).is_disjoint(&txids))
}
