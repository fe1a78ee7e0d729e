//! The mempool in mining order.

use assay_wire::Txid;

use super::cluster::{Cluster, Member};
use super::linearize::Rate;
use super::pool::Mempool;

/// Transactions that are mined together.
#[derive(Clone, Debug)]
pub struct MiningChunk {
    /// Number of its cluster, valid until the mempool changes.
    pub(crate) cluster: usize,
    /// Modified fees, satoshi.
    pub fee_sat: i64,
    /// Weight adjusted for signature operations.
    pub weight: u64,
    /// The transactions, parents before children.
    pub txids: Vec<Txid>,
}

/// Sort key of a chunk among all (Core `txgraph.cpp`, `CompareMainTransactions`).
struct Place {
    rate: Rate,
    /// Weight of the chunks of this fee rate in its cluster, up to and including this one: a tie-breaker.
    prefix_weight: u64,
    txid: Txid,
}

impl Mempool {
    /// All transactions in chunks, best first; `None` without clusters.
    pub(crate) fn chunks_best_first(&mut self) -> Option<Vec<MiningChunk>> {
        let graph = self.graph.as_mut()?;
        graph.settle_some(usize::MAX);
        let mut chunks: Vec<(Place, MiningChunk)> = Vec::new();
        for (number, cluster) in graph.clusters().enumerate() {
            add_chunks(number, cluster, &mut chunks);
        }
        chunks.sort_unstable_by(|(a, _), (b, _)| {
            let by_rate = b.rate.cmp_rate(&a.rate);
            by_rate.then(a.prefix_weight.cmp(&b.prefix_weight)).then(a.txid.cmp(&b.txid))
        });
        Some(chunks.into_iter().map(|(_, chunk)| chunk).collect())
    }
}

impl Mempool {
    pub(crate) fn chunk_of(&self, txid: &Txid) -> Option<MiningChunk> {
        let (_, cluster) = self.graph.as_ref()?.cluster(txid)?;
        let mut chunks = chunks_of(cluster);
        let at = chunks.iter().position(|chunk| chunk.txids.contains(txid))?;
        Some(chunks.swap_remove(at))
    }

    /// The chunks of a transaction's cluster after linearization; `None` if it is in none.
    pub(crate) fn cluster_chunks(&mut self, txid: &Txid) -> Option<Vec<MiningChunk>> {
        let graph = self.graph.as_mut()?;
        graph.settle_some(usize::MAX);
        graph.cluster(txid).map(|(_, cluster)| chunks_of(cluster))
    }
}

fn chunks_of(cluster: &Cluster) -> Vec<MiningChunk> {
    let chunk = |(rate, members): (Rate, &[Member])| MiningChunk {
        cluster: 0,
        fee_sat: rate.fee_sat,
        weight: rate.weight,
        txids: members.iter().map(|member| member.txid).collect(),
    };
    cluster.chunks().map(chunk).collect()
}

fn add_chunks(number: usize, cluster: &Cluster, out: &mut Vec<(Place, MiningChunk)>) {
    let mut same = Rate::default();
    for (rate, members) in cluster.chunks() {
        same = if rate.cmp_rate(&same).is_eq() { same.plus(rate) } else { rate };
        let txids: Vec<Txid> = members.iter().map(|member| member.txid).collect();
        let Some(txid) = txids.iter().max().copied() else { continue };
        let place = Place { rate, prefix_weight: same.weight, txid };
        let (fee_sat, weight) = (rate.fee_sat, rate.weight);
        out.push((place, MiningChunk { cluster: number, fee_sat, weight, txids }));
    }
}
