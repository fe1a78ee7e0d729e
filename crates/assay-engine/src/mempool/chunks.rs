//! Chunks of connected transactions in mining order; reference implementation for tests of [`super::graph`].
//!
//! A cluster is split into chunks of decreasing fee rate, each of which depends only on earlier ones: first the subset with the
//! best fee rate, then the best of the rest. Exact and slow.

use std::cmp::Ordering;
use std::collections::HashMap;

use assay_wire::Txid;

use super::densest::{Load, densest};
use super::linearize::{CLUSTER_COUNT_MAX, members};

/// A transaction to be ordered.
#[derive(Clone)]
pub(super) struct Item {
    pub(super) txid: Txid,
    pub(super) fee_sat: i64,
    pub(super) weight: u64,
    /// Only parents among the other items matter.
    pub(super) parents: Vec<Txid>,
}

/// Transactions that are mined together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Chunk {
    pub(super) fee_sat: i64,
    pub(super) weight: u64,
    pub(super) txids: Vec<Txid>,
}

impl Chunk {
    /// Compares fee rates without rounding.
    pub(super) fn cmp_rate(&self, other: &Self) -> Ordering {
        let (a, b) = (i128::from(self.fee_sat), i128::from(other.fee_sat));
        (a * i128::from(other.weight)).cmp(&(b * i128::from(self.weight)))
    }
}

/// The chunks of any number of clusters, best first; `None` if one has too many transactions.
pub(super) fn chunks(items: &[Item]) -> Option<Vec<Chunk>> {
    let mut out: Vec<Chunk> = chunks_by_cluster(items)?.into_iter().flatten().collect();
    // A stable sort keeps the order of chunks within a cluster.
    out.sort_by(|a, b| b.cmp_rate(a));
    Some(out)
}

/// [`chunks`] per cluster; transactions are after their parents.
pub(super) fn chunks_by_cluster(items: &[Item]) -> Option<Vec<Vec<Chunk>>> {
    components(items).iter().map(|cluster| cluster_chunks(cluster)).collect()
}

/// Splits items into unconnected sets.
fn components(items: &[Item]) -> Vec<Vec<&Item>> {
    let index_of: HashMap<Txid, usize> =
        items.iter().enumerate().map(|(index, item)| (item.txid, index)).collect();
    let mut neighbours = vec![Vec::new(); items.len()];
    for (index, item) in items.iter().enumerate() {
        for parent in item.parents.iter().filter_map(|parent| index_of.get(parent)) {
            neighbours[index].push(*parent);
            neighbours[*parent].push(index);
        }
    }
    let mut is_placed = vec![false; items.len()];
    let mut out = Vec::new();
    for start in 0..items.len() {
        let mut open = vec![start];
        let mut component = Vec::new();
        while let Some(index) = open.pop() {
            if !std::mem::replace(&mut is_placed[index], true) {
                component.push(&items[index]);
                open.extend(&neighbours[index]);
            }
        }
        if !component.is_empty() {
            out.push(component);
        }
    }
    out
}

/// For each item the set of its ancestors, including itself.
fn ancestor_sets(items: &[&Item]) -> Vec<u64> {
    let index_of: HashMap<Txid, usize> =
        items.iter().enumerate().map(|(index, item)| (item.txid, index)).collect();
    let mut sets: Vec<u64> = (0..items.len()).map(|index| 1 << index).collect();
    loop {
        let before = sets.clone();
        for (index, item) in items.iter().enumerate() {
            for parent in item.parents.iter().filter_map(|parent| index_of.get(parent)) {
                sets[index] |= sets[*parent];
            }
        }
        if sets == before {
            return sets;
        }
    }
}

fn cluster_chunks(items: &[&Item]) -> Option<Vec<Chunk>> {
    if items.len() > CLUSTER_COUNT_MAX {
        return None;
    }
    let sets = ancestor_sets(items);
    let weights: Vec<Load> = items
        .iter()
        .zip(&sets)
        .map(|(item, set)| Load { fee_sat: item.fee_sat, weight: item.weight, ancestors: *set })
        .collect();
    let mut left = u64::MAX >> (CLUSTER_COUNT_MAX - items.len());
    let mut chunks: Vec<Chunk> = Vec::new();
    while left != 0 {
        let best = members(left)
            .map(|index| (sets[index] & left, sum(items, &sets, sets[index] & left)))
            .max_by(|(_, a), (_, b)| a.cmp_rate(b).then(b.weight.cmp(&a.weight)));
        let (start, _) = best.expect("something is left");
        let set = densest(&weights, left, start);
        left &= !set;
        chunks.push(sum(items, &sets, set));
    }
    Some(chunks)
}

fn sum(items: &[&Item], ancestors: &[u64], set: u64) -> Chunk {
    let mut chunk = Chunk { fee_sat: 0, weight: 0, txids: Vec::new() };
    let mut order: Vec<usize> = members(set).collect();
    // A child has more ancestors than its parents.
    order.sort_by_key(|index| ancestors[*index].count_ones());
    for index in order {
        chunk.fee_sat += items[index].fee_sat;
        chunk.weight += items[index].weight;
        chunk.txids.push(items[index].txid);
    }
    chunk
}

/// True if miners are nowhere worse off with `new` than with `old`, and somewhere better: compares, for every size of a block
/// template, the fees of the best chunks that fit (Core `util/feefrac.h`, `CompareChunks`). Both are best first.
pub(super) fn improves(old: &[Chunk], new: &[Chunk]) -> bool {
    let mut is_better = false;
    for weight in corners(old).into_iter().chain(corners(new)) {
        match compare_at(new, old, weight) {
            Ordering::Less => return false,
            Ordering::Equal => {}
            Ordering::Greater => is_better = true,
        }
    }
    is_better
}

/// Sizes at which the slope changes.
fn corners(chunks: &[Chunk]) -> Vec<u64> {
    let mut sum = 0;
    let mut corners = Vec::with_capacity(chunks.len());
    for chunk in chunks {
        sum += chunk.weight;
        corners.push(sum);
    }
    corners
}

fn compare_at(a: &[Chunk], b: &[Chunk], weight: u64) -> Ordering {
    let ((a_fee, a_per), (b_fee, b_per)) = (fees_at(a, weight), fees_at(b, weight));
    (a_fee * b_per).cmp(&(b_fee * a_per))
}

/// Fees of the first `weight` virtual bytes, as a fraction; a chunk that does not fit counts in part.
fn fees_at(chunks: &[Chunk], weight: u64) -> (i128, i128) {
    let mut fees = 0i128;
    let mut left = weight;
    for chunk in chunks {
        let (fee_sat, of) = (i128::from(chunk.fee_sat), i128::from(chunk.weight));
        if chunk.weight > left {
            return (fees * of + fee_sat * i128::from(left), of);
        }
        fees += fee_sat;
        left -= chunk.weight;
    }
    (fees, 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn item(id: u8, fee_sat: i64, weight: u64, parents: &[u8]) -> Item {
        let parents = parents.iter().map(|id| Txid([*id; 32])).collect();
        Item { txid: Txid([id; 32]), fee_sat, weight, parents }
    }

    /// Checks fees, sizes and ids of the chunks.
    fn check(items: &[Item], expected: &[(i64, u64, &[u8])]) {
        let found = chunks(items).unwrap();
        let found: Vec<_> = found
            .into_iter()
            .map(|chunk| {
                let mut ids: Vec<u8> = chunk.txids.iter().map(|txid| txid.0[0]).collect();
                ids.sort_unstable();
                (chunk.fee_sat, chunk.weight, ids)
            })
            .collect();
        let expected: Vec<_> =
            expected.iter().map(|(fee, weight, ids)| (*fee, *weight, ids.to_vec())).collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn children_pay_for_parents_and_parents_do_not_pay_for_children() {
        check(&[item(1, 1, 100, &[]), item(2, 9, 100, &[1])], &[(10, 200, &[1, 2])]);
        check(&[item(2, 1, 100, &[1]), item(1, 9, 100, &[])], &[(9, 100, &[1]), (1, 100, &[2])]);
        // Two children share the parent; an unrelated transaction is between them.
        check(
            &[
                item(1, 0, 100, &[]),
                item(2, 30, 100, &[1]),
                item(3, 8, 100, &[1]),
                item(4, 10, 100, &[]),
            ],
            &[(30, 200, &[1, 2]), (10, 100, &[4]), (8, 100, &[3])],
        );
        // The second child is better than the parent with the first child.
        check(
            &[item(1, 0, 100, &[]), item(2, 20, 100, &[1]), item(3, 19, 100, &[1])],
            &[(39, 300, &[1, 2, 3])],
        );
        let many: Vec<_> = (0..65).map(|id| item(id, 1, 1, &[id.wrapping_sub(1)])).collect();
        assert!(chunks(&many).is_none());
        assert_eq!(chunks(&many[..64]).unwrap().len(), 64, "equal rates are not merged");
    }

    #[test]
    fn more_fees_in_less_room_are_better_and_mixed_results_are_not() {
        let line = |parts: &[(i64, u64)]| -> Vec<Chunk> {
            let chunk = |(fee_sat, weight): &(i64, u64)| Chunk {
                fee_sat: *fee_sat,
                weight: *weight,
                txids: Vec::new(),
            };
            parts.iter().map(chunk).collect()
        };
        let old = line(&[(100, 100)]);
        assert!(improves(&old, &line(&[(101, 100)])));
        assert!(improves(&old, &line(&[(100, 99)])));
        assert!(improves(&old, &line(&[(100, 100), (1, 100)])));
        assert!(!improves(&old, &old));
        assert!(!improves(&old, &line(&[(150, 200)])), "less in a small block");
        assert!(!improves(&old, &line(&[(99, 50)])), "less in a large one");
        assert!(!improves(&line(&[(100, 100), (10, 100)]), &line(&[(105, 90)])));
    }
}
