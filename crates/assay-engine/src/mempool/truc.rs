//! Version 3 (TRUC) transactions: small, with at most one unconfirmed parent and one unconfirmed child, so that the cost of a
//! replacement is bounded (BIP431, Core `policy/truc_policy.cpp`).

use assay_wire::{Transaction, Txid, Wtxid};

use super::candidate::Candidate;
use super::entry::Entry;
use super::pool::Mempool;

/// Core's `TRUC_VERSION`.
pub(super) const TRUC_VERSION: i32 = 3;
/// Core's `TRUC_MAX_VSIZE`.
const VSIZE_MAX: u32 = 10_000;
/// Core's `TRUC_CHILD_MAX_VSIZE`.
const CHILD_VSIZE_MAX: u32 = 1_000;

#[derive(Debug)]
pub(super) struct Violation {
    pub(super) debug: String,
    /// The only other child of the parent: its eviction would satisfy the rule.
    pub(super) sibling: Option<Txid>,
}

impl From<String> for Violation {
    fn from(debug: String) -> Self {
        Self { debug, sibling: None }
    }
}

/// Notation of a transaction in messages.
fn name(txid: &Txid, wtxid: &Wtxid) -> String {
    format!("tx {txid} (wtxid={wtxid})")
}

fn name_of(candidate: &Candidate) -> String {
    name(&candidate.txid(), &candidate.wtxid())
}

pub(super) fn is_truc(tx: &Transaction) -> bool {
    tx.view().version() == TRUC_VERSION
}

/// Checks one transaction and its mempool parents (Core `SingleTRUCChecks`).
pub(super) fn check_alone(
    pool: &Mempool,
    candidate: &Candidate,
    vsize: u32,
    parents: &[Txid],
    conflicts: &[Txid],
) -> Result<(), Violation> {
    let parents = entries(pool, parents);
    for (txid, parent) in &parents {
        check_versions(candidate, &parent.tx, txid, &parent.wtxid)?;
    }
    if !is_truc(candidate.tx()) {
        return Ok(());
    }
    check_size(candidate, vsize, VSIZE_MAX, "version=3")?;
    let Some((txid, parent)) = parents.first() else { return Ok(()) };
    if parents.len() > 1 || !pool.parents(parent).is_empty() {
        return Err(too_many_ancestors(candidate).into());
    }
    check_size(candidate, vsize, CHILD_VSIZE_MAX, "version=3 child")?;
    check_children(pool, txid, parent, conflicts)
}

/// The parent may have no other child, unless that one is replaced.
fn check_children(
    pool: &Mempool,
    txid: &Txid,
    parent: &Entry,
    conflicts: &[Txid],
) -> Result<(), Violation> {
    let descendants = pool.with_descendants([*txid]);
    let mut others = descendants.iter().filter(|other| *other != txid);
    let Some(first) = others.clone().next() else { return Ok(()) };
    if others.any(|other| conflicts.contains(other)) {
        return Ok(());
    }
    // After a reorg there may be more children, and they may have more parents: then nothing is evicted.
    let is_only_child = descendants.len() == 2
        && pool.get(first).is_some_and(|child| pool.parents(child).len() == 1)
        && pool.parents(parent).is_empty();
    let debug = too_many_descendants(txid, &parent.wtxid);
    Err(Violation { debug, sibling: is_only_child.then_some(*first) })
}

/// One transaction of a package, with its parents in the mempool.
pub(super) struct PackageMember {
    pub(super) candidate: Candidate,
    pub(super) vsize: u32,
    pub(super) parents: Vec<Txid>,
}

/// Checks one transaction of a package together with the others (Core `PackageTRUCChecks`).
pub(super) fn check_in_package(
    pool: &Mempool,
    package: &[PackageMember],
    index: usize,
) -> Result<(), String> {
    let PackageMember { candidate, vsize, parents } = &package[index];
    let (vsize, parents) = (*vsize, entries(pool, parents));
    let inside: Vec<&Candidate> = package[..index]
        .iter()
        .map(|one| &one.candidate)
        .filter(|one| candidate.spends(&one.txid()))
        .collect();
    let outer = parents.iter().map(|(txid, entry)| (&*entry.tx, *txid, entry.wtxid));
    let inner = inside.iter().map(|one| (&**one.tx(), one.txid(), one.wtxid()));
    let all: Vec<(&Transaction, Txid, Wtxid)> = outer.chain(inner).collect();
    if !is_truc(candidate.tx()) {
        return all
            .iter()
            .try_for_each(|(tx, txid, wtxid)| check_versions(candidate, tx, txid, wtxid));
    }
    check_size(candidate, vsize, VSIZE_MAX, "version=3")?;
    let Some((tx, txid, wtxid)) = all.first() else { return Ok(()) };
    let has_grandparent = parents.iter().any(|(_, parent)| !pool.parents(parent).is_empty());
    if all.len() > 1 || has_grandparent {
        return Err(too_many_ancestors(candidate));
    }
    check_size(candidate, vsize, CHILD_VSIZE_MAX, "version=3 child")?;
    check_versions(candidate, tx, txid, wtxid)?;
    check_relatives(candidate, package, txid, wtxid)?;
    if !pool.children(txid).is_empty() {
        return Err(too_many_descendants(txid, wtxid));
    }
    Ok(())
}

/// A transaction with a parent has no sibling and no child in its package.
fn check_relatives(
    candidate: &Candidate,
    package: &[PackageMember],
    parent: &Txid,
    parent_wtxid: &Wtxid,
) -> Result<(), String> {
    let others = package.iter().map(|one| &one.candidate);
    for other in others.filter(|other| other.txid() != candidate.txid()) {
        for input in other.tx().view().inputs() {
            if input.prevout.txid == *parent {
                return Err(too_many_descendants(parent, parent_wtxid));
            }
            if input.prevout.txid == candidate.txid() {
                return Err(too_many_ancestors(other));
            }
        }
    }
    Ok(())
}

fn entries<'a>(pool: &'a Mempool, txids: &[Txid]) -> Vec<(Txid, &'a Entry)> {
    txids.iter().filter_map(|txid| Some((*txid, pool.get(txid)?))).collect()
}

/// Version 3 transactions only spend unconfirmed outputs of version 3; other versions only those of other versions.
fn check_versions(
    candidate: &Candidate,
    parent: &Transaction,
    txid: &Txid,
    wtxid: &Wtxid,
) -> Result<(), String> {
    let (child, parent_name) = (name_of(candidate), name(txid, wtxid));
    match (is_truc(candidate.tx()), is_truc(parent)) {
        (false, true) => {
            Err(format!("non-version=3 {child} cannot spend from version=3 {parent_name}"))
        }
        (true, false) => {
            Err(format!("version=3 {child} cannot spend from non-version=3 {parent_name}"))
        }
        _ => Ok(()),
    }
}

fn check_size(candidate: &Candidate, vsize: u32, max: u32, what: &str) -> Result<(), String> {
    if vsize <= max {
        return Ok(());
    }
    Err(format!("{what} {} is too big: {vsize} > {max} virtual bytes", name_of(candidate)))
}

fn too_many_ancestors(candidate: &Candidate) -> String {
    format!("{} would have too many ancestors", name_of(candidate))
}

fn too_many_descendants(txid: &Txid, wtxid: &Wtxid) -> String {
    format!("{} would exceed descendant count limit", name(txid, wtxid))
}
