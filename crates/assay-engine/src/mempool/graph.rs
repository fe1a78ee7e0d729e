//! The clusters of the mempool, updated with every added or removed transaction.
//!
//! Only the affected clusters are rebuilt, and cheaply: their order stays valid, but may become suboptimal. Linearization is more
//! expensive; it runs later, without the engine's lock, and its result is stored unless the cluster has changed meanwhile (Core
//! `txgraph.cpp`: quality levels, `DoWork`).

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use assay_wire::Txid;

use super::cluster::{Cluster, Member};
use super::linearize::{ByRate, Rate};

/// Identifies a cluster. Numbers are never reused, so a cluster with a given number never changes.
pub(super) type ClusterId = u64;

#[derive(Default)]
pub(super) struct Graph {
    clusters: HashMap<ClusterId, Arc<Cluster>>,
    cluster_of: HashMap<Txid, ClusterId>,
    /// The last chunk of each cluster; the last one in mining order comes first.
    lasts: BTreeSet<(ByRate, ClusterId)>,
    /// Clusters with a valid but possibly bad order.
    unsettled: BTreeSet<ClusterId>,
    next_id: ClusterId,
    /// Dependencies of mempool transactions on those returned from a block, parent first; not part of the clusters yet.
    pending: Vec<(Txid, Txid)>,
}

impl Graph {
    pub(super) fn cluster(&self, txid: &Txid) -> Option<(ClusterId, &Arc<Cluster>)> {
        let id = *self.cluster_of.get(txid)?;
        Some((id, &self.clusters[&id]))
    }

    /// Number and weight of the transactions in the clusters of these.
    pub(super) fn extent(&self, txids: &[Txid]) -> (usize, u64) {
        let ids: HashSet<ClusterId> =
            txids.iter().filter_map(|txid| self.cluster_of.get(txid).copied()).collect();
        self.extent_of(&ids)
    }

    /// Number and weight of the transactions in these clusters.
    pub(super) fn extent_of(&self, ids: &HashSet<ClusterId>) -> (usize, u64) {
        let clusters = ids.iter().map(|id| &self.clusters[id]);
        clusters.fold((0, 0), |(count, weight), one| (count + one.len(), weight + one.weight()))
    }

    /// Inserts a transaction that spends from `parents`, which are present, and joins their clusters.
    pub(super) fn insert(&mut self, member: Member, parents: &[Txid]) {
        let ids: BTreeSet<ClusterId> =
            parents.iter().filter_map(|parent| self.cluster_of.get(parent).copied()).collect();
        let parts: Vec<Arc<Cluster>> = ids.iter().filter_map(|id| self.take(*id)).collect();
        let parts: Vec<&Cluster> = parts.iter().map(AsRef::as_ref).collect();
        self.put(Cluster::joined(&parts, Some((member, parents))));
    }

    pub(super) fn remove<'a>(&mut self, gone: impl IntoIterator<Item = &'a Txid>) {
        let mut touched: BTreeMap<ClusterId, u64> = BTreeMap::new();
        for txid in gone {
            let Some(id) = self.cluster_of.remove(txid) else { continue };
            let index = self.clusters[&id].index_of(txid);
            let index = index.expect("a cluster holds the transactions that it is said to hold");
            *touched.entry(id).or_default() |= 1 << index;
        }
        for (id, gone) in touched {
            let cluster = self.take(id).expect("it has just been looked at");
            for left in cluster.without(gone) {
                self.put(left);
            }
        }
    }

    pub(super) fn set_fee(&mut self, txid: &Txid, fee_sat: i64) {
        let Some(id) = self.cluster_of.get(txid).copied() else { return };
        if let Some(cluster) = self.take(id) {
            self.put(cluster.with_fee(txid, fee_sat));
        }
    }

    /// All clusters, in arbitrary order.
    pub(super) fn clusters(&self) -> impl Iterator<Item = &Cluster> {
        self.clusters.values().map(AsRef::as_ref)
    }

    /// Records that `child`, which is present, spends from `parent`, which has returned from a block. Clusters stay separate
    /// until [`Graph::link_pending`], since together they may be too large.
    pub(super) fn add_pending(&mut self, parent: Txid, child: Txid) {
        self.pending.push((parent, child));
    }

    /// Joins the clusters that pending dependencies connect; they must fit the limits now.
    pub(super) fn link_pending(&mut self) {
        for (parent, child) in std::mem::take(&mut self.pending) {
            let ids = [&parent, &child].map(|txid| self.cluster_of.get(txid).copied());
            let [Some(above), Some(below)] = ids else { continue };
            let parts: Vec<Arc<Cluster>> =
                BTreeSet::from([above, below]).iter().filter_map(|id| self.take(*id)).collect();
            let parts: Vec<&Cluster> = parts.iter().map(AsRef::as_ref).collect();
            self.put(Cluster::linked(&parts, &parent, &child));
        }
    }

    /// Up to `count` clusters to be [settled](Cluster::settled).
    pub(super) fn unsettled(&self, count: usize) -> Vec<(ClusterId, Arc<Cluster>)> {
        let ids = self.unsettled.iter().take(count);
        ids.map(|id| (*id, Arc::clone(&self.clusters[id]))).collect()
    }

    /// Replaces a cluster with its improved linearization, if it still exists.
    pub(super) fn settle(&mut self, id: ClusterId, settled: Cluster) {
        if self.take(id).is_some() {
            self.put(settled);
        }
    }

    /// Settles up to `count` clusters at once; returns the work in visited transactions.
    pub(super) fn settle_some(&mut self, count: usize) -> u64 {
        let mut sum = 0;
        for (id, cluster) in self.unsettled(count) {
            let (settled, cost) = cluster.settled();
            self.settle(id, settled);
            sum += cost;
        }
        sum
    }

    /// The last transactions in mining order, and their fee rate.
    pub(super) fn worst(&self) -> Option<(Rate, Vec<Txid>)> {
        let (_, cluster) = self.lasts.first()?;
        let (rate, chunk) = self.clusters[cluster].last_chunk();
        Some((rate, chunk.iter().map(|member| member.txid).collect()))
    }

    fn put(&mut self, cluster: Cluster) {
        let id = self.next_id;
        self.next_id += 1;
        for member in cluster.members() {
            self.cluster_of.insert(member.txid, id);
        }
        self.lasts.insert((cluster.last_chunk().0.into(), id));
        if !cluster.is_settled() {
            self.unsettled.insert(id);
        }
        self.clusters.insert(id, Arc::new(cluster));
    }

    /// Removes a cluster; its transactions still refer to it.
    fn take(&mut self, id: ClusterId) -> Option<Arc<Cluster>> {
        let cluster = self.clusters.remove(&id)?;
        self.lasts.remove(&(cluster.last_chunk().0.into(), id));
        self.unsettled.remove(&id);
        Some(cluster)
    }
}

#[cfg(test)]
mod tests {
    use std::cmp::Ordering;

    use proptest::prelude::*;

    use super::super::densest::exact;
    use super::super::diagram::cmp_diagrams;
    use super::super::linearize::{CLUSTER_COUNT_MAX, Node, members};
    use super::*;

    struct Item {
        txid: Txid,
        fee_sat: i64,
        weight: u32,
        /// Some of them may have left.
        parents: Vec<Txid>,
    }

    /// The transactions without any order.
    #[derive(Default)]
    struct Model {
        items: BTreeMap<Txid, Item>,
    }

    impl Model {
        fn cluster(&self, txid: &Txid) -> BTreeSet<Txid> {
            let mut found = BTreeSet::from([*txid]);
            loop {
                let before = found.len();
                for item in self.items.values() {
                    let parents = item.parents.iter().filter(|one| self.items.contains_key(one));
                    let all: Vec<Txid> = parents.copied().chain([item.txid]).collect();
                    if all.iter().any(|one| found.contains(one)) {
                        found.extend(all);
                    }
                }
                if found.len() == before {
                    return found;
                }
            }
        }

        /// Compares the graph with results computed from scratch.
        fn check(&self, graph: &Graph) {
            let mut count = 0;
            for (id, cluster) in &graph.clusters {
                let txids: BTreeSet<Txid> = cluster.members().iter().map(|one| one.txid).collect();
                assert_eq!(txids.len(), cluster.len());
                assert_eq!(txids, self.cluster(&cluster.members()[0].txid));
                for (index, member) in cluster.members().iter().enumerate() {
                    let item = &self.items[&member.txid];
                    assert_eq!(graph.cluster_of[&member.txid], *id);
                    let Node { fee_sat, weight, .. } = member.node;
                    assert_eq!((fee_sat, weight), (item.fee_sat, item.weight));
                    let parents: BTreeSet<Txid> = members(member.node.parents)
                        .inspect(|parent| assert!(*parent < index, "parents come first"))
                        .map(|parent| cluster.members()[parent].txid)
                        .collect();
                    let expected = item.parents.iter().filter(|one| self.items.contains_key(one));
                    assert_eq!(parents, expected.copied().collect());
                }
                let rates: Vec<Rate> = cluster.rates().collect();
                assert!(rates.is_sorted_by(|a, b| a.cmp_rate(b).is_ge()));
                assert!(graph.lasts.contains(&(cluster.last_chunk().0.into(), *id)));
                assert_eq!(graph.unsettled.contains(id), !cluster.is_settled());
                count += cluster.len();
                if cluster.is_settled() {
                    let nodes: Vec<Node> = cluster.members().iter().map(|one| one.node).collect();
                    assert_eq!(cmp_diagrams(&rates, &exact(&nodes)), Some(Ordering::Equal));
                }
            }
            assert_eq!((count, graph.cluster_of.len()), (self.items.len(), self.items.len()));
            assert_eq!(graph.lasts.len(), graph.clusters.len());
        }
    }

    #[derive(Clone, Debug)]
    enum Step {
        Insert { fee_sat: i64, weight: u32, parents: Vec<prop::sample::Index>, is_late: bool },
        Remove { which: Vec<prop::sample::Index>, with_descendants: bool },
        Settle { count: usize },
        EvictWorst,
    }

    fn steps() -> impl Strategy<Value = Vec<Step>> {
        let which = || prop::collection::vec(any::<prop::sample::Index>(), 0..4);
        let step = prop_oneof![
            6 => (0i64..3000, 1u32..300, which(), prop::bool::weighted(0.15)).prop_map(
                |(fee_sat, weight, parents, is_late)| Step::Insert { fee_sat, weight, parents, is_late }
            ),
            2 => (which(), any::<bool>())
                .prop_map(|(which, with_descendants)| Step::Remove { which, with_descendants }),
            2 => (1usize..5).prop_map(|count| Step::Settle { count }),
            1 => Just(Step::EvictWorst),
        ];
        prop::collection::vec(step, 1..80)
    }

    fn remove(model: &mut Model, graph: &mut Graph, mut gone: BTreeSet<Txid>, is_deep: bool) {
        loop {
            let before = gone.len();
            let builds = |item: &&Item| item.parents.iter().any(|parent| gone.contains(parent));
            let more: Vec<Txid> = model.items.values().filter(builds).map(|one| one.txid).collect();
            if is_deep {
                gone.extend(more);
            }
            if gone.len() == before {
                break;
            }
        }
        model.items.retain(|txid, _| !gone.contains(txid));
        graph.remove(&gone);
    }

    fn play(steps: &[Step]) {
        let (mut model, mut graph) = (Model::default(), Graph::default());
        for (number, step) in steps.iter().enumerate() {
            let all: Vec<Txid> = model.items.keys().copied().collect();
            let pick = |which: &[prop::sample::Index]| -> BTreeSet<Txid> {
                let which = which.iter().filter(|_| !all.is_empty());
                which.map(|index| all[index.index(all.len())]).collect()
            };
            match step {
                Step::Insert { fee_sat, weight, parents, is_late } => {
                    let txid = Txid([number as u8 + 1; 32]);
                    let (fee_sat, weight) = (*fee_sat, *weight);
                    let others: Vec<Txid> = pick(parents).into_iter().collect();
                    let (count, _) = graph.extent(&others);
                    if count >= CLUSTER_COUNT_MAX {
                        continue;
                    }
                    let own = if *is_late { Vec::new() } else { others.clone() };
                    let item = Item { txid, fee_sat, weight, parents: own.clone() };
                    model.items.insert(txid, item);
                    graph.insert(Member::new(txid, fee_sat, weight), &own);
                    if *is_late {
                        // It has returned, and the others spend from it.
                        for child in others {
                            model.items.get_mut(&child).unwrap().parents.push(txid);
                            graph.add_pending(txid, child);
                        }
                        graph.link_pending();
                    }
                }
                Step::Remove { which, with_descendants } => {
                    let gone = pick(which);
                    remove(&mut model, &mut graph, gone, *with_descendants);
                }
                Step::Settle { count } => {
                    graph.settle_some(*count);
                }
                Step::EvictWorst => {
                    let Some((rate, gone)) = graph.worst() else { continue };
                    let lasts = graph.clusters.values().map(|cluster| cluster.last_chunk().0);
                    assert!(lasts.map(|last| last.cmp_rate(&rate)).all(Ordering::is_ge));
                    remove(&mut model, &mut graph, gone.into_iter().collect(), false);
                }
            }
            model.check(&graph);
        }
        graph.settle_some(usize::MAX);
        model.check(&graph);
        assert!(graph.unsettled.is_empty());
    }

    proptest! {
        #[test]
        fn clusters_are_those_that_are_found_from_nothing(steps in steps()) {
            play(&steps);
        }
    }
}
