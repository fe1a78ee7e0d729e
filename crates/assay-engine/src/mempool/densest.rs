//! The chunks of a cluster with the best fee rates, exact and slow: reference for tests of [`super::linearize`].
//!
//! A set that includes the parents of all its members is a closure. A maximum flow decides if one beats a given fee rate (J.-C.
//! Picard, "Maximal closure of a graph", 1976), and the iteration with the rate found ends at the best (W. Dinkelbach, "On
//! nonlinear fractional programming", 1967).

use std::collections::VecDeque;

use super::linearize::{CLUSTER_COUNT_MAX, Node, Rate, members};

/// The optimal chunks, by maximum flow.
pub(super) fn exact(nodes: &[Node]) -> Vec<Rate> {
    let mut weights: Vec<Load> = Vec::new();
    for (index, node) in nodes.iter().enumerate() {
        let above = members(node.parents).fold(0, |set, parent| set | weights[parent].ancestors);
        let (fee_sat, weight) = (node.fee_sat, u64::from(node.weight));
        weights.push(Load { fee_sat, weight, ancestors: above | 1 << index });
    }
    let rate = |load: &Load| Rate { fee_sat: load.fee_sat, weight: load.weight };
    let sum =
        |set: u64| members(set).map(|at| rate(&weights[at])).fold(Rate::default(), Rate::plus);
    let mut left = u64::MAX >> (CLUSTER_COUNT_MAX - nodes.len());
    let mut rates = Vec::new();
    while left != 0 {
        let sets = members(left).map(|index| weights[index].ancestors & left);
        let start = sets.max_by(|a, b| sum(*a).cmp_rate(&sum(*b))).expect("something is left");
        let set = densest(&weights, left, start);
        left &= !set;
        rates.push(sum(set));
    }
    rates
}

/// Fee and size of one transaction, and the bits of its ancestors, including itself.
#[derive(Clone, Copy)]
struct Load {
    fee_sat: i64,
    weight: u64,
    ancestors: u64,
}

/// The closure among the members of `left` with the best fee rate, at least that of the closure `start`.
fn densest(weights: &[Load], left: u64, start: u64) -> u64 {
    let mut set = start;
    // Of two transactions only an ancestor set can be the best closure.
    if left.count_ones() <= 2 {
        return set;
    }
    loop {
        let (fee, weight) = sum(weights, set);
        match better_closure(weights, left, fee, weight) {
            0 => return set,
            better => set = better,
        }
    }
}

fn sum(weights: &[Load], set: u64) -> (i128, i128) {
    members(set).fold((0, 0), |(fee, weight), index| {
        let tx = &weights[index];
        (fee + i128::from(tx.fee_sat), weight + i128::from(tx.weight))
    })
}

/// A closure with a fee rate above `fee` per `weight`; the empty set if there is none.
fn better_closure(weights: &[Load], left: u64, fee: i128, weight: i128) -> u64 {
    let gain = |index: usize| {
        let tx = &weights[index];
        i128::from(tx.fee_sat) * weight - i128::from(tx.weight) * fee
    };
    let mut flow = Flow::new(weights.len());
    for index in members(left) {
        let gain = gain(index);
        flow.connect(flow.source, index, gain.max(0));
        flow.connect(index, flow.sink, (-gain).max(0));
        for parent in members(weights[index].ancestors & left & !(1 << index)) {
            flow.connect(index, parent, i128::MAX / 4);
        }
    }
    flow.saturate();
    let closure = flow.reachable() & left;
    if members(closure).map(gain).sum::<i128>() > 0 { closure } else { 0 }
}

/// A flow network as a matrix of residual capacities.
struct Flow {
    rest: Vec<i128>,
    width: usize,
    source: usize,
    sink: usize,
}

impl Flow {
    fn new(count: usize) -> Self {
        let width = count + 2;
        Self { rest: vec![0; width * width], width, source: count, sink: count + 1 }
    }

    fn connect(&mut self, from: usize, to: usize, capacity: i128) {
        self.rest[from * self.width + to] = capacity;
    }

    /// For each node its predecessor on a shortest path of residual capacity from the source.
    fn ways(&self) -> Vec<Option<usize>> {
        let mut before = vec![None; self.width];
        before[self.source] = Some(self.source);
        let mut open = VecDeque::from([self.source]);
        while let Some(at) = open.pop_front() {
            for (next, rest) in self.rest[at * self.width..][..self.width].iter().enumerate() {
                if *rest > 0 && before[next].is_none() {
                    before[next] = Some(at);
                    open.push_back(next);
                }
            }
        }
        before
    }

    /// Sends the maximum flow (Edmonds and Karp).
    fn saturate(&mut self) {
        loop {
            let before = self.ways();
            if before[self.sink].is_none() {
                return;
            }
            let back = |at: &usize| before[*at].filter(|from| from != at).map(|from| (from, *at));
            let way: Vec<(usize, usize)> = std::iter::successors(back(&self.sink), |(from, _)| {
                if *from == self.source { None } else { back(from) }
            })
            .collect();
            let amount = way.iter().map(|(from, to)| self.rest[from * self.width + to]).min();
            let amount = amount.unwrap_or(0);
            for (from, to) in way {
                self.rest[from * self.width + to] -= amount;
                self.rest[to * self.width + from] += amount;
            }
        }
    }

    /// Nodes still reachable from the source, as bits.
    fn reachable(&self) -> u64 {
        let before = self.ways();
        (0..self.source)
            .filter(|index| before[*index].is_some())
            .fold(0, |set, index| set | 1 << index)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Tries every subset.
    fn best_by_hand(weights: &[Load], left: u64) -> (i128, i128) {
        let is_closed =
            |set: u64| members(set).all(|index| weights[index].ancestors & left & !set == 0);
        (1..1u64 << weights.len())
            .filter(|set| set & !left == 0 && is_closed(*set))
            .map(|set| sum(weights, set))
            .max_by(|(a, b), (c, d)| (a * d).cmp(&(c * b)))
            .unwrap()
    }

    proptest! {
        #[test]
        fn no_subset_is_better(
            parts in prop::collection::vec((0i64..2000, 1u64..300, any::<u64>(), any::<u64>()), 1..10),
            removed in any::<u64>(),
        ) {
            let mut weights: Vec<Load> = Vec::new();
            for (index, (fee_sat, weight, a, b)) in parts.iter().enumerate() {
                // Up to two parents among the earlier ones.
                let mut ancestors = 1 << index;
                for pick in [a, b] {
                    if index > 0 && pick % 3 > 0 {
                        ancestors |= weights[(pick / 3) as usize % index].ancestors;
                    }
                }
                weights.push(Load { fee_sat: *fee_sat, weight: *weight, ancestors });
            }
            // Removed transactions took their ancestors along.
            let all = u64::MAX >> (64 - weights.len());
            let gone = members(removed & all & removed >> 7)
                .fold(0, |gone, index| gone | weights[index].ancestors);
            let left = all & !gone;
            prop_assume!(left != 0);
            let start = members(left).next().map(|index| weights[index].ancestors & left).unwrap();
            let start = if left.count_ones() <= 2 {
                let sets = members(left).map(|index| weights[index].ancestors & left);
                sets.max_by(|x, y| {
                    let ((a, b), (c, d)) = (sum(&weights, *x), sum(&weights, *y));
                    (a * d).cmp(&(c * b))
                }).unwrap()
            } else {
                start
            };
            let found = densest(&weights, left, start);
            prop_assert_eq!(found & !left, 0);
            prop_assert!(members(found).all(|index| weights[index].ancestors & left & !found == 0));
            let ((a, b), (c, d)) = (sum(&weights, found), best_by_hand(&weights, left));
            prop_assert_eq!(a * d, c * b);
        }
    }
}
