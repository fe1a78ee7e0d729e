//! Trims clusters to their limits when transactions of disconnected blocks connect them (Core `txgraph.cpp`, `Trim`).
//!
//! The chunks of the former clusters are merged, best first. A transaction that would make its cluster too large is removed with
//! its descendants.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, HashSet};

use assay_wire::Txid;

use super::cluster::Cluster;
use super::context::Admission;
use super::graph::Graph;
use super::linearize::{ByRate, CLUSTER_COUNT_MAX, Rate};
use super::pool::Mempool;

impl Admission {
    /// Trims the clusters of returned transactions to the limits, and connects the returned ones with their spenders.
    pub(super) fn trim_clusters(&self, pool: &mut Mempool, returned: &[Txid]) {
        let Some(count_max) = self.config.cluster_count_max else { return };
        let count_max = count_max.min(CLUSTER_COUNT_MAX);
        let weight_max = self.config.cluster_weight_max();
        let mut seen = HashSet::new();
        for txid in returned {
            if seen.contains(txid) || pool.get(txid).is_none() {
                continue;
            }
            let cluster = pool.cluster_of(txid);
            seen.extend(cluster.iter().copied());
            let entries = cluster.iter().filter_map(|txid| pool.get(txid));
            let weight: u64 = entries.map(|entry| u64::from(entry.adjusted_weight)).sum();
            if cluster.len() > count_max || weight > weight_max {
                let left_over = Trim::new(pool, &cluster).left_over(count_max, weight_max);
                pool.remove_all(&left_over);
            }
        }
        if let Some(graph) = &mut pool.graph {
            graph.link_pending();
        }
    }
}

/// The clusters of these transactions, each once.
fn clusters<'a>(graph: &'a Graph, txids: &[Txid]) -> Vec<&'a Cluster> {
    let mut seen = HashSet::new();
    let found = txids.iter().filter_map(|txid| graph.cluster(txid));
    found.filter(|(id, _)| seen.insert(*id)).map(|(_, cluster)| cluster.as_ref()).collect()
}

/// A transaction whose dependencies are all kept, by its index; the greater is first.
type Ready = (ByRate, Reverse<u64>, Reverse<usize>);

/// A transaction of a cluster that is too large.
struct Member {
    txid: Txid,
    weight: u64,
    /// Rate of its chunk in its former cluster.
    rate: Rate,
    /// Its real parents, and its predecessors in its former cluster.
    waits_for: Vec<usize>,
    /// Inverse of `waits_for`.
    frees: Vec<usize>,
    is_kept: bool,
    /// Union-find parent; the representative refers to itself.
    leader: usize,
    /// Number and weight of its set.
    sum: (usize, u64),
}

struct Trim {
    members: Vec<Member>,
}

impl Trim {
    fn new(pool: &Mempool, connected: &[Txid]) -> Self {
        let entries = connected.iter().filter_map(|txid| Some((*txid, pool.get(txid)?)));
        let parents = entries.map(|(txid, entry)| (txid, pool.parents(entry))).collect();
        let mut members: Vec<Member> = Vec::with_capacity(connected.len());
        // The former clusters: mempool transactions are not connected yet with returned ones.
        for cluster in pool.graph.iter().flat_map(|graph| clusters(graph, connected)) {
            let first = members.len();
            let (cluster, _) = cluster.settled();
            for (rate, chunk) in cluster.chunks() {
                for member in chunk {
                    let index = members.len();
                    let weight = u64::from(member.node.weight);
                    members.push(Member {
                        txid: member.txid,
                        weight,
                        rate,
                        waits_for: if index > first { vec![index - 1] } else { Vec::new() },
                        frees: Vec::new(),
                        is_kept: false,
                        leader: index,
                        sum: (1, weight),
                    });
                }
            }
        }
        let mut trim = Self { members };
        trim.connect(&parents);
        trim
    }

    fn connect(&mut self, parents: &HashMap<Txid, Vec<Txid>>) {
        let index_of: HashMap<Txid, usize> =
            self.members.iter().enumerate().map(|(index, member)| (member.txid, index)).collect();
        for index in 0..self.members.len() {
            let parents = parents.get(&self.members[index].txid).into_iter().flatten();
            let mut waits_for: Vec<usize> =
                parents.filter_map(|parent| index_of.get(parent).copied()).collect();
            waits_for.append(&mut self.members[index].waits_for);
            waits_for.sort_unstable();
            waits_for.dedup();
            for parent in &waits_for {
                self.members[*parent].frees.push(index);
            }
            self.members[index].waits_for = waits_for;
        }
    }

    /// Keeps as many as the limits allow and returns the rest.
    fn left_over(mut self, count_max: usize, weight_max: u64) -> Vec<Txid> {
        let mut waiting: Vec<usize> =
            self.members.iter().map(|member| member.waits_for.len()).collect();
        let mut ready: BinaryHeap<Ready> = (0..self.members.len())
            .filter(|index| waiting[*index] == 0)
            .map(|index| self.ready(index))
            .collect();
        while let Some((.., Reverse(index))) = ready.pop() {
            if !self.join(index, count_max, weight_max) {
                continue;
            }
            for freed in std::mem::take(&mut self.members[index].frees) {
                waiting[freed] -= 1;
                if waiting[freed] == 0 {
                    ready.push(self.ready(freed));
                }
            }
        }
        self.members.iter().filter(|member| !member.is_kept).map(|member| member.txid).collect()
    }

    fn ready(&self, index: usize) -> Ready {
        let rate = self.members[index].rate;
        (rate.into(), Reverse(rate.weight), Reverse(index))
    }

    /// Joins a transaction with its dependencies, unless the set would be too large.
    fn join(&mut self, index: usize, count_max: usize, weight_max: u64) -> bool {
        let mut leaders: Vec<usize> =
            self.members[index].waits_for.iter().map(|below| self.leader(*below)).collect();
        leaders.sort_unstable();
        leaders.dedup();
        let mut sum = (1, self.members[index].weight);
        for leader in &leaders {
            let (count, weight) = self.members[*leader].sum;
            sum = (sum.0 + count, sum.1 + weight);
        }
        if sum.0 > count_max || sum.1 > weight_max {
            return false;
        }
        for leader in leaders {
            self.members[leader].leader = index;
        }
        self.members[index].sum = sum;
        self.members[index].is_kept = true;
        true
    }

    fn leader(&self, index: usize) -> usize {
        let mut at = index;
        while self.members[at].leader != at {
            at = self.members[at].leader;
        }
        at
    }
}
