//! Linearizes a cluster within a bounded amount of work.
//!
//! Spanning-forest linearization, as in Bitcoin Core since version 31 (`cluster_linearize.h`, `SpanningForestState`). A set of
//! dependencies is active; they form a forest, and each of its trees is a chunk. Removing an active dependency is an improvement
//! if the subtree on the parent's side has a higher fee rate than the one on the child's side. It splits the chunk, and then the
//! two halves merge with chunks that they depend on, or that depend on them, as fee rates require. When no removal is an
//! improvement, the chunks sorted by fee rate are optimal. The order is valid after every step and no worse than the initial one,
//! since chunks never get worse, so the work can stop at any time. Work is counted in visited transactions, not in time. Choices
//! are random with a seed per process, so that no cluster can be prepared to be slow.

use std::cmp::Ordering;
use std::collections::VecDeque;
use std::hash::{BuildHasher, RandomState};
use std::sync::LazyLock;

/// Maximum number of transactions in a cluster: the bits of a word, and Core's limit (`policy/policy.h`).
pub(super) const CLUSTER_COUNT_MAX: usize = u64::BITS as usize;

/// A transaction to be ordered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Node {
    pub(super) fee_sat: i64,
    pub(super) weight: u32,
    /// Its parents as bits; all of them precede it.
    pub(super) parents: u64,
}

/// An order, and its work.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Linearization {
    /// Indices of the transactions, best first, parents before children.
    pub(super) order: Vec<u8>,
    /// True if the order is proven optimal; otherwise the work limit was reached.
    pub(super) is_optimal: bool,
    /// Work in visited transactions.
    pub(super) cost: u64,
}

/// Fees and size of a set of transactions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Rate {
    pub(super) fee_sat: i64,
    pub(super) weight: u64,
}

impl Rate {
    /// Compares fee rates without rounding.
    pub(super) fn cmp_rate(&self, other: &Self) -> Ordering {
        let (a, b) = (i128::from(self.fee_sat), i128::from(other.fee_sat));
        (a * i128::from(other.weight)).cmp(&(b * i128::from(self.weight)))
    }

    /// Sum of both. Fees of members are bounded (`Entry::cluster_fee_sat`): an overflow is a defect, and a panic is better than a
    /// wrong order.
    pub(super) fn plus(self, other: Self) -> Self {
        Self {
            fee_sat: self.fee_sat.strict_add(other.fee_sat),
            weight: self.weight.strict_add(other.weight),
        }
    }

    fn minus(self, other: Self) -> Self {
        Self {
            fee_sat: self.fee_sat.strict_sub(other.fee_sat),
            weight: self.weight.strict_sub(other.weight),
        }
    }

    /// Satoshi per 1,000 virtual bytes, rounded down.
    pub(super) fn sat_per_kvb(&self) -> u64 {
        let vsize = self.weight.div_ceil(4).max(1);
        u64::try_from(i128::from(self.fee_sat) * 1000 / i128::from(vsize)).unwrap_or(0)
    }
}

/// A fee rate as a sort key: the quotient without rounding.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ByRate(Rate);

impl ByRate {
    pub(crate) const fn new(fee_sat: i64, weight: u64) -> Self {
        Self(Rate { fee_sat, weight })
    }

    pub(super) const fn rate(self) -> Rate {
        self.0
    }
}

impl From<Rate> for ByRate {
    fn from(rate: Rate) -> Self {
        Self(rate)
    }
}

impl Ord for ByRate {
    fn cmp(&self, other: &Self) -> Ordering {
        self.0.cmp_rate(&other.0)
    }
}

impl PartialOrd for ByRate {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for ByRate {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for ByRate {}

/// Nonzero, since zero is a fixed point of xorshift. One seed per process: the same cluster always has the same order.
static SEED: LazyLock<u64> = LazyLock::new(|| RandomState::new().hash_one(0u64) | 1);

/// The set bits, lowest first.
pub(super) fn members(set: u64) -> impl Iterator<Item = usize> {
    let mut left = set;
    std::iter::from_fn(move || {
        let index = left.trailing_zeros() as usize;
        left &= left.wrapping_sub(1);
        (index < CLUSTER_COUNT_MAX).then_some(index)
    })
}

/// Improves a valid order: `nodes` are in that order. Stops after the step in which the work reaches `cost_max`.
///
/// Ties are broken by rank, lower first; `ranks` has one per node.
pub(super) fn linearize(nodes: &[Node], ranks: &[u8], cost_max: u64) -> Linearization {
    assert!(nodes.len() <= CLUSTER_COUNT_MAX, "a cluster fits into a word");
    let mut forest = Forest::of_order(nodes);
    let is_optimal = forest.improve(cost_max);
    Linearization { order: forest.order(ranks), is_optimal, cost: forest.cost }
}

/// A tree of the forest.
#[derive(Clone, Copy, Default)]
struct Chunk {
    members: u64,
    /// Parents and children of its members, outside of it.
    up: u64,
    down: u64,
    rate: Rate,
}

struct Forest<'a> {
    nodes: &'a [Node],
    /// Reduced parents: without those that are ancestors of other parents.
    parents: Vec<u64>,
    children: Vec<u64>,
    /// Parents with an active dependency, in the same tree.
    active_parents: Vec<u64>,
    active_children: Vec<u64>,
    chunk_of: Vec<u8>,
    chunks: Vec<Chunk>,
    /// Chunks that may have a removable dependency.
    queue: VecDeque<u8>,
    queued: u64,
    random: u64,
    cost: u64,
}

impl<'a> Forest<'a> {
    /// The trees for the chunks of this order.
    fn of_order(nodes: &'a [Node]) -> Self {
        let mut forest = Self::new(nodes);
        for index in 0..nodes.len() {
            forest.merge_upwards(index);
        }
        forest
    }

    fn new(nodes: &'a [Node]) -> Self {
        let count = nodes.len();
        let parents = reduced_parents(nodes);
        let mut children = vec![0; count];
        for (index, above) in parents.iter().enumerate() {
            for parent in members(*above) {
                children[parent] |= 1 << index;
            }
        }
        let chunk = |index: usize| Chunk {
            members: 1 << index,
            up: parents[index],
            down: children[index],
            rate: rate_of(&nodes[index]),
        };
        let chunks = (0..count).map(chunk).collect();
        Self {
            nodes,
            chunks,
            parents,
            children,
            active_parents: vec![0; count],
            active_children: vec![0; count],
            chunk_of: (0..count as u8).collect(),
            queue: (0..count as u8).collect(),
            queued: if count == 0 { 0 } else { u64::MAX >> (CLUSTER_COUNT_MAX - count) },
            random: *SEED,
            cost: 0,
        }
    }

    /// Works until no improvement is left or the work limit is reached; returns true if none is left.
    fn improve(&mut self, cost_max: u64) -> bool {
        while let Some(&chunk) = self.queue.front() {
            let is_gone = self.chunks[usize::from(chunk)].members == 0;
            if !is_gone && self.cost >= cost_max {
                return false;
            }
            self.queue.pop_front();
            self.queued &= !(1 << chunk);
            if is_gone {
                continue;
            }
            if let Some((parent, child, top)) = self.worst_dependency(usize::from(chunk)) {
                self.take_out(parent, child, top);
            }
        }
        true
    }

    fn enqueue(&mut self, chunk: usize) {
        if self.queued >> chunk & 1 == 0 {
            self.queued |= 1 << chunk;
            self.queue.push_back(chunk as u8);
        }
    }

    /// A random active dependency of a chunk whose removal is an improvement, and the set on its parent's side.
    fn worst_dependency(&mut self, chunk: usize) -> Option<(usize, usize, u64)> {
        let Chunk { members: all, rate: sum, .. } = self.chunks[chunk];
        let mut walk = [(0u8, 0u8); CLUSTER_COUNT_MAX];
        let root = all.trailing_zeros() as u8;
        walk[0] = (root, root);
        let mut seen = 1u64 << root;
        let (mut at, mut end) = (0, 1);
        while at < end {
            let from = usize::from(walk[at].0);
            let next = (self.active_parents[from] | self.active_children[from]) & !seen;
            seen |= next;
            for index in members(next) {
                walk[end] = (index as u8, from as u8);
                end += 1;
            }
            at += 1;
        }
        self.cost += 2 * end as u64;
        // The subtree of each transaction, away from the root.
        let mut sets = [0u64; CLUSTER_COUNT_MAX];
        let mut rates = [Rate::default(); CLUSTER_COUNT_MAX];
        let mut found = None;
        let mut count = 0;
        for (index, from) in
            walk[1..end].iter().rev().map(|(a, b)| (usize::from(*a), usize::from(*b)))
        {
            let set = sets[index] | 1 << index;
            let rate = rates[index].plus(rate_of(&self.nodes[index]));
            sets[from] |= set;
            rates[from] = rates[from].plus(rate);
            let is_parent = self.active_children[index] >> from & 1 == 1;
            let (top, bottom) =
                if is_parent { (rate, sum.minus(rate)) } else { (sum.minus(rate), rate) };
            if top.cmp_rate(&bottom).is_gt() {
                count += 1;
                if self.pick(count) == 0 {
                    let (parent, child) = if is_parent { (index, from) } else { (from, index) };
                    found = Some((parent, child, if is_parent { set } else { all & !set }));
                }
            }
        }
        found
    }

    /// Splits a chunk at an active dependency and merges the halves with others, or with each other by another dependency.
    fn take_out(&mut self, parent: usize, child: usize, top: u64) {
        self.active_children[parent] &= !(1 << child);
        self.active_parents[child] &= !(1 << parent);
        let upper = usize::from(self.chunk_of[parent]);
        let bottom = self.chunks[upper].members & !top;
        // The new tree needs an unused index: that of one of its members is free, if the other half does not use it.
        let lower = self.free_index();
        self.chunks[upper] = self.chunk(top);
        self.chunks[lower] = self.chunk(bottom);
        for index in members(bottom) {
            self.chunk_of[index] = lower as u8;
        }
        self.cost += u64::from((top | bottom).count_ones());
        if self.chunks[upper].up & bottom != 0 {
            let merged = self.merge(lower, upper);
            self.enqueue(merged);
        } else {
            self.merge_upwards(upper);
            self.merge_downwards(lower);
        }
    }

    fn free_index(&self) -> usize {
        let free = self.chunks.iter().position(|chunk| chunk.members == 0);
        free.expect("there are no more chunks than transactions")
    }

    fn chunk(&self, set: u64) -> Chunk {
        let mut chunk = Chunk { members: set, ..Chunk::default() };
        for index in members(set) {
            chunk.up |= self.parents[index];
            chunk.down |= self.children[index];
            chunk.rate = chunk.rate.plus(rate_of(&self.nodes[index]));
        }
        chunk.up &= !set;
        chunk.down &= !set;
        chunk
    }

    /// Merges a chunk with the worst of its dependencies, as long as that one is not better.
    fn merge_upwards(&mut self, start: usize) {
        let mut chunk = start;
        loop {
            let Chunk { up, rate, .. } = self.chunks[chunk];
            let Some(other) = self.extreme(up, |a, b| a.cmp_rate(b).is_lt()) else { break };
            if self.chunks[other].rate.cmp_rate(&rate).is_gt() {
                break;
            }
            chunk = self.merge(other, chunk);
        }
        self.enqueue(chunk);
    }

    /// Merges a chunk with the best of its dependents, as long as that one is not worse.
    fn merge_downwards(&mut self, start: usize) {
        let mut chunk = start;
        loop {
            let Chunk { down, rate, .. } = self.chunks[chunk];
            let Some(other) = self.extreme(down, |a, b| a.cmp_rate(b).is_gt()) else { break };
            if self.chunks[other].rate.cmp_rate(&rate).is_lt() {
                break;
            }
            chunk = self.merge(chunk, other);
        }
        self.enqueue(chunk);
    }

    /// The first, by `is_before`, of the chunks of these transactions.
    fn extreme(&mut self, txs: u64, is_before: impl Fn(&Rate, &Rate) -> bool) -> Option<usize> {
        let mut left = txs;
        let mut found: Option<usize> = None;
        while left != 0 {
            let chunk = usize::from(self.chunk_of[left.trailing_zeros() as usize]);
            left &= !self.chunks[chunk].members;
            self.cost += 1;
            if found.is_none_or(|best| is_before(&self.chunks[chunk].rate, &self.chunks[best].rate))
            {
                found = Some(chunk);
            }
        }
        found
    }

    /// Activates a random dependency between two chunks, and returns the merged chunk.
    fn merge(&mut self, upper: usize, lower: usize) -> usize {
        let (above, below) = (self.chunks[upper], self.chunks[lower]);
        let child = self.pick_member(above.down & below.members);
        let parent = self.pick_member(self.parents[child] & above.members);
        self.active_children[parent] |= 1 << child;
        self.active_parents[child] |= 1 << parent;
        let all = above.members | below.members;
        self.chunks[lower] = Chunk {
            members: all,
            up: (above.up | below.up) & !all,
            down: (above.down | below.down) & !all,
            rate: above.rate.plus(below.rate),
        };
        self.chunks[upper] = Chunk::default();
        for index in members(above.members) {
            self.chunk_of[index] = lower as u8;
        }
        self.cost += 2 + u64::from(above.members.count_ones());
        lower
    }

    /// A random number below `bound`.
    fn pick(&mut self, bound: u32) -> u32 {
        // Marsaglia's xorshift.
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        (((self.random >> 32) * u64::from(bound)) >> 32) as u32
    }

    fn pick_member(&mut self, set: u64) -> usize {
        let mut left = set;
        for _ in 0..self.pick(set.count_ones()) {
            left &= left - 1;
        }
        left.trailing_zeros() as usize
    }

    /// Chunks from best to worst; within a chunk the best transaction with placed parents first. Of equal ones the smaller is
    /// first, then the one of lower rank; the rank of a chunk is its highest (Core `cluster_linearize.h`, `GetLinearization`).
    fn order(&self, ranks: &[u8]) -> Vec<u8> {
        let mut chunks: Vec<&Chunk> =
            self.chunks.iter().filter(|chunk| chunk.members != 0).collect();
        let rank = |chunk: &Chunk| members(chunk.members).map(|index| ranks[index]).max();
        chunks.sort_by(|a, b| {
            let by_size = a.rate.weight.cmp(&b.rate.weight);
            b.rate.cmp_rate(&a.rate).then(by_size).then_with(|| rank(a).cmp(&rank(b)))
        });
        let mut placed = 0u64;
        let mut order = Vec::with_capacity(self.nodes.len());
        for chunk in chunks {
            let mut left = chunk.members;
            while left != 0 {
                let ready = members(left).filter(|index| self.parents[*index] & !placed == 0);
                let best = ready.min_by(|a, b| {
                    let (of_a, of_b) = (rate_of(&self.nodes[*a]), rate_of(&self.nodes[*b]));
                    let by_size = of_a.weight.cmp(&of_b.weight);
                    of_b.cmp_rate(&of_a).then(by_size).then(ranks[*a].cmp(&ranks[*b]))
                });
                let best =
                    best.expect("a chunk depends only on better ones, and nothing on itself");
                placed |= 1 << best;
                left &= !(1 << best);
                order.push(best as u8);
            }
        }
        order
    }
}

fn rate_of(node: &Node) -> Rate {
    Rate { fee_sat: node.fee_sat, weight: u64::from(node.weight) }
}

/// The parents of each transaction that are not ancestors of another of its parents.
fn reduced_parents(nodes: &[Node]) -> Vec<u64> {
    let mut ancestors: Vec<u64> = Vec::with_capacity(nodes.len());
    let mut reduced = Vec::with_capacity(nodes.len());
    for (index, node) in nodes.iter().enumerate() {
        debug_assert!(node.parents >> index == 0, "parents come first");
        // Later ones first: they may have earlier ones as ancestors.
        let (mut left, mut covered, mut kept) = (node.parents, 0u64, 0u64);
        while left != 0 {
            let parent = (u64::BITS - 1 - left.leading_zeros()) as usize;
            left &= !(1 << parent);
            if covered >> parent & 1 == 0 {
                kept |= 1 << parent;
                covered |= ancestors[parent];
            }
        }
        ancestors.push(covered | 1 << index);
        reduced.push(kept);
    }
    reduced
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::cluster::chunked;
    use super::super::densest::exact;
    use super::super::diagram::cmp_diagrams;
    use super::*;

    fn placed(nodes: &[Node], order: &[u8]) -> Vec<Node> {
        order.iter().map(|index| nodes[usize::from(*index)]).collect()
    }

    fn is_valid(nodes: &[Node], order: &[u8]) -> bool {
        let mut placed = 0u64;
        order.len() == nodes.len()
            && order.iter().all(|index| {
                let is_new = placed >> index & 1 == 0;
                placed |= 1 << index;
                is_new && nodes[usize::from(*index)].parents & !placed == 0
            })
    }

    /// The fee rates of the trees, best first.
    fn trees(forest: &Forest<'_>) -> Vec<Rate> {
        let chunks = forest.chunks.iter().filter(|chunk| chunk.members != 0);
        let mut rates: Vec<Rate> = chunks.map(|chunk| chunk.rate).collect();
        rates.sort_by(|a, b| b.cmp_rate(a));
        rates
    }

    fn is_at_least(diagram: &[Rate], other: &[Rate]) -> bool {
        matches!(cmp_diagrams(diagram, other), Some(Ordering::Equal | Ordering::Greater))
    }

    /// Trees start at least as good as the chunks of the initial order and never get worse. The resulting order is at least as
    /// good as the trees, since the choice within a chunk may be better. So of two stops the earlier one may have the better
    /// order.
    fn check(nodes: &[Node]) -> u64 {
        let before = chunked(nodes);
        let mut forest = Forest::of_order(nodes);
        assert!(is_at_least(&trees(&forest), &before));
        for cost_max in [0, 10, 100, 1000, u64::MAX] {
            let earlier = trees(&forest);
            let is_optimal = forest.improve(cost_max);
            let now = trees(&forest);
            assert!(is_at_least(&now, &earlier), "{now:?} {earlier:?}");
            let ranks: Vec<u8> = (0..nodes.len() as u8).collect();
            let found = linearize(nodes, &ranks, cost_max);
            assert_eq!((&found.order, found.is_optimal), (&forest.order(&ranks), is_optimal));
            assert!(is_valid(nodes, &found.order), "{found:?}");
            let ordered = chunked(&placed(nodes, &found.order));
            assert!(is_at_least(&ordered, &now) && is_at_least(&ordered, &before));
            if is_optimal {
                let exact = exact(nodes);
                assert_eq!(
                    cmp_diagrams(&ordered, &exact),
                    Some(Ordering::Equal),
                    "{ordered:?} {exact:?}"
                );
            }
            if cost_max == u64::MAX {
                assert!(is_optimal);
                return found.cost;
            }
        }
        unreachable!("the last cost has no bound");
    }

    fn graph(parts: &[(i64, u32, u64, u64)]) -> Vec<Node> {
        let node = |(index, part): (usize, &(i64, u32, u64, u64))| {
            let (fee_sat, weight, a, b) = *part;
            Node { fee_sat, weight, parents: a & b & ((1 << index) - 1) }
        };
        parts.iter().enumerate().map(node).collect()
    }

    proptest! {
        #[test]
        fn orders_are_valid_never_worse_and_best_in_the_end(
            parts in prop::collection::vec((0i64..2000, 1u32..300, any::<u64>(), any::<u64>()), 1..12),
        ) {
            check(&graph(&parts));
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(40))]
        #[test]
        fn large_clusters_too(
            parts in prop::collection::vec((0i64..2000, 1u32..300, any::<u64>(), any::<u64>()), 20..=64),
            is_flat in any::<bool>(),
        ) {
            let mut nodes = graph(&parts);
            if is_flat {
                // Two layers with nearly equal fee rates.
                let half = nodes.len() / 2;
                for (index, node) in nodes.iter_mut().enumerate() {
                    node.parents &= if index < half { 0 } else { (1 << half) - 1 };
                    node.fee_sat = i64::from(node.weight) * 10 + node.fee_sat % 40;
                }
            }
            check(&nodes);
        }
    }

    /// Checks fees and sizes of the chunks of the best order.
    fn check_best(nodes: &[(i64, u64)], expected: &[(i64, u64)]) {
        let node = |(fee_sat, parents): &(i64, u64)| Node {
            fee_sat: *fee_sat,
            weight: 100,
            parents: *parents,
        };
        let nodes: Vec<Node> = nodes.iter().map(node).collect();
        check(&nodes);
        let rates: Vec<_> = exact(&nodes).iter().map(|one| (one.fee_sat, one.weight)).collect();
        assert_eq!(rates, expected);
    }

    #[test]
    fn children_pay_for_parents_and_parents_do_not_pay_for_children() {
        check_best(&[(1, 0), (9, 1)], &[(10, 200)]);
        check_best(&[(9, 0), (1, 1)], &[(9, 100), (1, 100)]);
        // Two children share the parent; an unrelated transaction is between them.
        check_best(&[(0, 0), (30, 1), (8, 1), (10, 0)], &[(30, 200), (10, 100), (8, 100)]);
        // The second child is better than the parent with the first child.
        check_best(&[(0, 0), (20, 1), (19, 1)], &[(39, 300)]);
    }

    #[test]
    fn ancestors_of_parents_are_no_parents() {
        let node = |parents| Node { fee_sat: 1, weight: 1, parents };
        let nodes = [node(0), node(1), node(3), node(6), node(1)];
        assert_eq!(reduced_parents(&nodes), [0, 1, 2, 4, 1]);
    }
}
