//! Connected transactions in mining order.
//!
//! A cluster is immutable: a change creates other clusters. So it can be used without the engine's lock, and its number
//! determines if it is current.

use assay_wire::Txid;

use super::linearize::{CLUSTER_COUNT_MAX, Node, Rate, linearize, members};

/// Limit of the linearization work on one cluster, in visited transactions. Core has such a limit too (`txmempool.h`,
/// `ACCEPTABLE_COST`): clusters of wallets take a hundredth of it, and larger ones get the best linearization found within it.
const COST_MAX: u64 = 60_000;

/// A transaction of a cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Member {
    pub(super) txid: Txid,
    pub(super) node: Node,
}

impl Member {
    /// A member without parents in the mempool.
    pub(super) const fn new(txid: Txid, fee_sat: i64, weight: u32) -> Self {
        Self { txid, node: Node { fee_sat, weight, parents: 0 } }
    }

    pub(super) fn rate(&self) -> Rate {
        Rate { fee_sat: self.node.fee_sat, weight: u64::from(self.node.weight) }
    }
}

/// Transactions that are mined together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Chunk {
    pub(super) rate: Rate,
    /// Index after its last member.
    end: u8,
}

/// Transitively connected transactions, at most [`CLUSTER_COUNT_MAX`].
#[derive(Clone, Debug)]
pub(super) struct Cluster {
    /// Best first, parents before children; parents are bits of this order.
    members: Box<[Member]>,
    /// Chunks of decreasing fee rate.
    chunks: Box<[Chunk]>,
    /// True if the linearization is optimal, or the best within [`COST_MAX`].
    is_settled: bool,
}

impl Cluster {
    /// Creates a cluster of members in a valid order.
    fn of(members: Vec<Member>, is_settled: bool) -> Self {
        assert!(members.len() <= CLUSTER_COUNT_MAX, "limits are checked before clusters are made");
        let chunks = chunks(&members);
        let is_settled = is_settled || members.len() == 1;
        Self { members: members.into(), chunks: chunks.into(), is_settled }
    }

    pub(super) fn members(&self) -> &[Member] {
        &self.members
    }

    pub(super) fn len(&self) -> usize {
        self.members.len()
    }

    pub(super) fn weight(&self) -> u64 {
        self.chunks.iter().map(|chunk| chunk.rate.weight).sum()
    }

    pub(super) const fn is_settled(&self) -> bool {
        self.is_settled
    }

    pub(super) fn rates(&self) -> impl Iterator<Item = Rate> {
        self.chunks.iter().map(|chunk| chunk.rate)
    }

    /// The last chunk in mining order.
    pub(super) fn last_chunk(&self) -> (Rate, &[Member]) {
        let (last, before) = self.chunks.split_last().expect("a cluster has a transaction");
        let start = before.last().map_or(0, |chunk| usize::from(chunk.end));
        (last.rate, &self.members[start..])
    }

    /// The chunks with their members, best first.
    pub(super) fn chunks(&self) -> impl Iterator<Item = (Rate, &[Member])> {
        let mut start = 0;
        self.chunks.iter().map(move |chunk| {
            let end = usize::from(chunk.end);
            (chunk.rate, &self.members[std::mem::replace(&mut start, end)..end])
        })
    }

    pub(super) fn index_of(&self, txid: &Txid) -> Option<usize> {
        self.members.iter().position(|member| member.txid == *txid)
    }

    pub(super) fn rate_of(&self, set: u64) -> Rate {
        members(set).map(|index| self.members[index].rate()).fold(Rate::default(), Rate::plus)
    }

    /// All members, as bits.
    pub(super) fn all(&self) -> u64 {
        u64::MAX >> (CLUSTER_COUNT_MAX - self.members.len())
    }

    /// These members and their descendants.
    pub(super) fn with_descendants(&self, set: u64) -> u64 {
        // Children are after their parents.
        self.members.iter().enumerate().fold(set, |set, (index, member)| {
            if member.node.parents & set == 0 { set } else { set | 1 << index }
        })
    }

    /// The connected components after the removal of some members.
    pub(super) fn components(&self, gone: u64) -> Vec<u64> {
        let mut left = self.all() & !gone;
        let mut components = Vec::new();
        while left != 0 {
            let mut set = left & left.wrapping_neg();
            loop {
                let mut grown = set;
                for index in members(left) {
                    let parents = self.members[index].node.parents & left;
                    if (parents | 1 << index) & grown != 0 {
                        grown |= parents | 1 << index;
                    }
                }
                if grown == set {
                    break;
                }
                set = grown;
            }
            left &= !set;
            components.push(set);
        }
        components
    }

    /// The clusters that remain without some members. The order is kept, and stays settled if whole chunks at either end are
    /// removed.
    pub(super) fn without(&self, gone: u64) -> Vec<Self> {
        let is_settled = self.is_settled && self.is_between_chunks(self.all() & !gone);
        self.components(gone).into_iter().map(|set| self.part(set, is_settled)).collect()
    }

    /// One of the [components](Self::components) without some members.
    pub(super) fn component(&self, gone: u64, set: u64) -> Self {
        self.part(set, self.is_settled && self.is_between_chunks(self.all() & !gone))
    }

    fn part(&self, set: u64, is_settled: bool) -> Self {
        let place = |index: usize| (set & !(u64::MAX << index)).count_ones();
        let part = members(set).map(|index| {
            let mut member = self.members[index];
            member.node.parents = members(member.node.parents & set)
                .fold(0, |parents, parent| parents | 1 << place(parent));
            member
        });
        Self::of(part.collect(), is_settled)
    }

    /// True if these members form consecutive chunks.
    fn is_between_chunks(&self, set: u64) -> bool {
        if set == 0 {
            return true;
        }
        let (start, end) = (set.trailing_zeros(), u64::BITS - set.leading_zeros());
        let is_boundary =
            |at: u32| at == 0 || self.chunks.iter().any(|chunk| u32::from(chunk.end) == at);
        set.count_ones() == end - start && is_boundary(start) && is_boundary(end)
    }

    /// Joins several clusters, optionally with a new transaction that spends from some of them.
    pub(super) fn joined(parts: &[&Self], newcomer: Option<(Member, &[Txid])>) -> Self {
        Self::of(concatenated(parts, newcomer), false)
    }

    /// Joins one or two clusters in which `child` spends from `parent`.
    pub(super) fn linked(parts: &[&Self], parent: &Txid, child: &Txid) -> Self {
        let mut members = concatenated(parts, None);
        let at = |txid: &Txid| members.iter().position(|member| member.txid == *txid);
        if let (Some(parent), Some(child)) = (at(parent), at(child)) {
            members[child].node.parents |= 1 << parent;
            let mut placed = 0u64;
            let order: Vec<u8> = (0..members.len())
                .map(|_| {
                    let is_next = |index: &usize| {
                        placed >> index & 1 == 0 && members[*index].node.parents & !placed == 0
                    };
                    let next =
                        (0..members.len()).find(is_next).expect("transactions form no circle");
                    placed |= 1 << next;
                    next as u8
                })
                .collect();
            members = ordered(&members, &order);
        }
        Self::of(members, false)
    }

    /// The rank of each member in the order of txids.
    fn ranks(&self) -> Vec<u8> {
        let mut by_txid: Vec<usize> = (0..self.members.len()).collect();
        by_txid.sort_unstable_by_key(|index| self.members[*index].txid);
        let mut ranks = vec![0; self.members.len()];
        for (rank, index) in by_txid.into_iter().enumerate() {
            ranks[index] = rank as u8;
        }
        ranks
    }

    /// The same cluster with another fee of one transaction.
    pub(super) fn with_fee(&self, txid: &Txid, fee_sat: i64) -> Self {
        let mut members = self.members.to_vec();
        if let Some(index) = self.index_of(txid) {
            members[index].node.fee_sat = fee_sat;
        }
        Self::of(members, false)
    }

    /// The cluster with the linearization found within [`COST_MAX`], and the work it took.
    pub(super) fn settled(&self) -> (Self, u64) {
        if self.is_settled {
            return (self.clone(), 0);
        }
        let nodes: Vec<Node> = self.members.iter().map(|member| member.node).collect();
        let found = linearize(&nodes, &self.ranks(), COST_MAX);
        (Self::of(ordered(&self.members, &found.order), true), found.cost)
    }
}

/// The members of clusters, their chunks merged by fee rate, followed by an optional new one.
fn concatenated(parts: &[&Cluster], newcomer: Option<(Member, &[Txid])>) -> Vec<Member> {
    let count = parts.iter().map(|part| part.len()).sum::<usize>();
    let mut all = Vec::with_capacity(count + 1);
    let mut chunks: Vec<(Rate, usize, usize)> = Vec::with_capacity(count);
    for part in parts {
        let first = all.len();
        for (rate, chunk) in part.chunks() {
            let start = all.len();
            all.extend(chunk.iter().map(|member| {
                let mut member = *member;
                member.node.parents <<= first;
                member
            }));
            chunks.push((rate, start, all.len()));
        }
    }
    // A stable sort keeps the order of chunks within a cluster.
    chunks.sort_by(|(a, ..), (b, ..)| b.cmp_rate(a));
    let mut order: Vec<u8> =
        chunks.iter().flat_map(|(_, start, end)| *start as u8..*end as u8).collect();
    if let Some((mut member, parents)) = newcomer {
        let is_parent = |index: &usize| parents.contains(&all[*index].txid);
        member.node.parents =
            (0..all.len()).filter(is_parent).fold(0, |set, index| set | 1 << index);
        order.push(all.len() as u8);
        all.push(member);
    }
    ordered(&all, &order)
}

/// Members in another order, with their parents as bits.
fn ordered(all: &[Member], order: &[u8]) -> Vec<Member> {
    let mut places = [0u8; CLUSTER_COUNT_MAX];
    for (place, index) in (0..).zip(order) {
        places[usize::from(*index)] = place;
    }
    let moved = order.iter().map(|index| {
        let mut member = all[usize::from(*index)];
        member.node.parents =
            members(member.node.parents).fold(0, |parents, parent| parents | 1 << places[parent]);
        member
    });
    moved.collect()
}

/// Splits an order into chunks: a transaction joins the preceding chunk as long as that raises the fee rate (Core
/// `cluster_linearize.h`, `ChunkLinearization`).
fn chunks(members: &[Member]) -> Vec<Chunk> {
    let mut chunks: Vec<Chunk> = Vec::with_capacity(members.len());
    for (index, member) in members.iter().enumerate() {
        let mut rate = member.rate();
        while let Some(before) = chunks.pop_if(|before| rate.cmp_rate(&before.rate).is_gt()) {
            rate = rate.plus(before.rate);
        }
        chunks.push(Chunk { rate, end: index as u8 + 1 });
    }
    chunks
}

#[cfg(test)]
pub(super) use tests::chunked;

#[cfg(test)]
mod tests {
    use super::*;

    /// The chunks of transactions in this order.
    pub(in super::super) fn chunked(nodes: &[Node]) -> Vec<Rate> {
        let member = |node: &Node| Member { txid: Txid([0; 32]), node: *node };
        let members: Vec<Member> = nodes.iter().map(member).collect();
        chunks(&members).iter().map(|chunk| chunk.rate).collect()
    }

    fn member(id: u8, fee_sat: i64, weight: u32) -> Member {
        Member::new(Txid([id; 32]), fee_sat, weight)
    }

    fn ids(members: &[Member]) -> Vec<u8> {
        members.iter().map(|member| member.txid.0[0]).collect()
    }

    #[test]
    fn joining_and_leaving() {
        let cluster = Cluster::joined(&[], Some((member(1, 100, 100), &[])));
        assert!(cluster.is_settled());
        let other = Cluster::joined(&[], Some((member(2, 500, 100), &[])));
        let both = [Txid([1; 32]), Txid([2; 32])];
        let three = Cluster::joined(&[&cluster, &other], Some((member(3, 150, 100), &both)));
        assert_eq!(ids(three.members()), [2, 1, 3]);
        assert_eq!((three.len(), three.weight(), three.is_settled()), (3, 300, false));
        let (three, cost) = three.settled();
        assert!(cost > 0 && three.is_settled());
        let chunks: Vec<_> = three.chunks().map(|(rate, part)| (rate.fee_sat, ids(part))).collect();
        assert_eq!(chunks, [(500, vec![2]), (250, vec![1, 3])]);
        assert_eq!(three.last_chunk().0, Rate { fee_sat: 250, weight: 200 });
        assert_eq!(three.with_descendants(0b001), 0b101);
        assert_eq!(three.rate_of(0b101), Rate { fee_sat: 650, weight: 200 });

        // Without the first chunk the rest stays settled; without one in the middle it does not.
        let rest = three.without(0b001);
        assert!(rest.len() == 1 && rest[0].is_settled());
        assert_eq!((ids(rest[0].members()), rest[0].members()[1].node.parents), (vec![1, 3], 1));
        let rest = three.without(0b100);
        assert_eq!(rest.iter().map(Cluster::len).collect::<Vec<_>>(), [1, 1]);
        assert!(three.without(0b111).is_empty());
        assert!(!three.component(0b010, 0b101).is_settled());
    }

    #[test]
    fn a_parent_that_comes_later() {
        let child = Cluster::joined(&[], Some((member(1, 900, 100), &[])));
        let parent = Cluster::joined(&[], Some((member(2, 100, 100), &[])));
        let (id, child_id) = (Txid([2; 32]), Txid([1; 32]));
        let linked = Cluster::linked(&[&child, &parent], &id, &child_id);
        assert_eq!(ids(linked.members()), [2, 1]);
        assert_eq!(linked.rates().collect::<Vec<_>>(), [Rate { fee_sat: 1000, weight: 200 }]);
        let again = Cluster::linked(&[&linked], &id, &child_id);
        assert_eq!(again.members(), linked.members());
    }
}
