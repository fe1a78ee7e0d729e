//! What was seen of each transaction and block at each node, all on one clock.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use super::message::{Content, Traffic};
use crate::purse::Signed;
use crate::wire::Hash;

/// One transaction or block at one node.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Sight {
    /// When a peer's message with it, or an announcement of it, had been handed to the node.
    pub(super) heard: Option<Instant>,
    /// When the node announced it to a peer of the network, or sent it.
    pub(super) passed: Option<Instant>,
    /// When it announced it to the observer.
    pub(super) observed: Option<Instant>,
    /// It was made there.
    pub(super) is_origin: bool,
    /// When a compact block was the first of the block that the node got.
    pub(super) compact: Option<Instant>,
    /// It got the whole block, as the first of it.
    pub(super) is_whole: bool,
    /// It asked for so many transactions of the compact block.
    pub(super) missing: Option<usize>,
    /// It asked for the whole block after it had the compact one.
    pub(super) is_given_up: bool,
}

/// A block at all nodes.
#[derive(Debug, Clone)]
pub(super) struct BlockSights {
    /// How it was made; `None` where that was not by the load.
    pub(super) is_settled: Option<bool>,
    pub(super) nodes: Vec<Sight>,
}

/// Bytes of messages that a node took and gave.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Bytes {
    pub(super) txs: [u64; 2],
    pub(super) blocks: [u64; 2],
    pub(super) other: [u64; 2],
}

/// Everything that was seen.
#[derive(Debug, Default)]
pub(super) struct Sights {
    /// Places in `txs`, by txid and by wtxid.
    places: HashMap<Hash, usize>,
    pub(super) txs: Vec<Vec<Sight>>,
    pub(super) blocks: HashMap<Hash, BlockSights>,
    pub(super) bytes: Vec<Bytes>,
    /// When links were cut or mended.
    pub(super) changes: Vec<Instant>,
}

/// The record, which all links write to.
pub(super) struct Record {
    nodes: usize,
    sights: Mutex<Sights>,
}

impl Record {
    pub(super) fn new(nodes: usize) -> Self {
        let sights = Sights { bytes: vec![Bytes::default(); nodes], ..Sights::default() };
        Self { nodes, sights: Mutex::new(sights) }
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, Sights> {
        // One entry is written at a time: one that is missing is a sight less.
        self.sights.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A transaction is handed to a node by RPC.
    pub(super) fn tx_made(&self, tx: &Signed, node: usize) {
        let mut sights = self.lock();
        let place = sights.txs.len();
        sights.places.insert(tx.txid, place);
        sights.places.insert(tx.wtxid, place);
        let mut nodes = vec![Sight::default(); self.nodes];
        nodes[node].is_origin = true;
        sights.txs.push(nodes);
    }

    /// A block was made at a node. Its peers may have it before its RPC answer is here.
    pub(super) fn block_made(&self, hash: Hash, node: usize, is_settled: bool) {
        let mut sights = self.lock();
        let block = sights.block(hash, self.nodes);
        block.is_settled = Some(is_settled);
        block.nodes[node].is_origin = true;
    }

    /// Links were cut or mended now.
    pub(super) fn changed(&self) {
        self.lock().changes.push(Instant::now());
    }

    /// A node sent a message to a peer of the network.
    pub(super) fn sent(&self, from: usize, command: &str, bytes: usize, content: &Content) {
        let now = Instant::now();
        let mut sights = self.lock();
        sights.count(from, 1, Traffic::of(command, content), bytes);
        match content {
            Content::Missing(hash, count) => {
                let sight = &mut sights.block(*hash, self.nodes).nodes[from];
                sight.missing = Some(sight.missing.unwrap_or(0).max(*count));
            }
            Content::Whole(hashes) => {
                for hash in hashes {
                    let sight = &mut sights.block(*hash, self.nodes).nodes[from];
                    sight.is_given_up |= sight.compact.is_some();
                }
            }
            other => sights.each(other, from, self.nodes, |sight| {
                sight.passed.get_or_insert(now);
            }),
        }
    }

    /// A message was handed to a node.
    pub(super) fn delivered(&self, to: usize, command: &str, bytes: usize, content: &Content) {
        let now = Instant::now();
        let mut sights = self.lock();
        sights.count(to, 0, Traffic::of(command, content), bytes);
        if matches!(content, Content::Missing(..) | Content::Whole(_)) {
            return;
        }
        sights.each(content, to, self.nodes, |sight| {
            sight.heard.get_or_insert(now);
            let is_first = sight.compact.is_none() && !sight.is_whole && !sight.is_origin;
            match content {
                Content::Compact(_) if is_first => sight.compact = Some(now),
                Content::Block(_) if is_first => sight.is_whole = true,
                _ => {}
            }
        });
    }

    /// The observer of a node got a message from it.
    pub(super) fn observed(&self, node: usize, content: &Content) {
        let now = Instant::now();
        self.lock().each(content, node, self.nodes, |sight| {
            sight.observed.get_or_insert(now);
        });
    }
}

impl Sights {
    fn block(&mut self, hash: Hash, nodes: usize) -> &mut BlockSights {
        let blank = || BlockSights { is_settled: None, nodes: vec![Sight::default(); nodes] };
        self.blocks.entry(hash).or_insert_with(blank)
    }

    fn each(
        &mut self,
        content: &Content,
        node: usize,
        nodes: usize,
        mut see: impl FnMut(&mut Sight),
    ) {
        match content {
            Content::Txs(hashes) => hashes.iter().for_each(|hash| {
                if let Some(place) = self.places.get(hash) {
                    see(&mut self.txs[*place][node]);
                }
            }),
            Content::Tx(hash) => {
                if let Some(place) = self.places.get(hash) {
                    see(&mut self.txs[*place][node]);
                }
            }
            Content::Blocks(hashes) => {
                for hash in hashes {
                    see(&mut self.block(*hash, nodes).nodes[node]);
                }
            }
            Content::Block(hash) | Content::Compact(hash) => {
                see(&mut self.block(*hash, nodes).nodes[node]);
            }
            Content::Missing(..) | Content::Whole(_) | Content::WantsCompact | Content::Other => {}
        }
    }

    fn count(&mut self, node: usize, way: usize, traffic: Traffic, bytes: usize) {
        let of = &mut self.bytes[node];
        let sum = match traffic {
            Traffic::Txs => &mut of.txs,
            Traffic::Blocks => &mut of.blocks,
            Traffic::Other => &mut of.other,
        };
        sum[way] += bytes as u64;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HASH: Hash = [5; 32];

    fn at(record: &Record, node: usize) -> Sight {
        record.lock().blocks[&HASH].nodes[node]
    }

    #[test]
    fn the_first_of_a_block_decides() {
        let record = Record::new(3);
        record.block_made(HASH, 0, true);
        record.sent(0, "cmpctblock", 100, &Content::Compact(HASH));
        record.delivered(1, "cmpctblock", 100, &Content::Compact(HASH));
        record.delivered(1, "block", 900, &Content::Block(HASH));
        record.sent(1, "getblocktxn", 40, &Content::Missing(HASH, 3));
        record.delivered(0, "getblocktxn", 40, &Content::Missing(HASH, 3));
        record.delivered(2, "headers", 82, &Content::Blocks(vec![HASH]));
        record.sent(2, "getdata", 37, &Content::Whole(vec![HASH]));
        record.delivered(2, "block", 900, &Content::Block(HASH));
        let (first, second, third) = (at(&record, 0), at(&record, 1), at(&record, 2));
        assert!(first.is_origin && first.passed.is_some() && first.heard.is_none());
        assert!(second.compact.is_some() && !second.is_whole && second.missing == Some(3));
        assert!(third.is_whole && third.compact.is_none() && !third.is_given_up);
        assert_eq!(record.lock().bytes[1].blocks, [1_000, 40]);
    }

    #[test]
    fn transactions_have_two_names() {
        let record = Record::new(2);
        let tx = Signed { raw: Vec::new(), txid: [1; 32], wtxid: [2; 32], outputs: Vec::new() };
        record.tx_made(&tx, 0);
        record.delivered(1, "inv", 37, &Content::Txs(vec![[1; 32], [9; 32]]));
        record.observed(1, &Content::Txs(vec![[2; 32]]));
        let sights = record.lock();
        assert_eq!(sights.txs.len(), 1);
        assert!(sights.txs[0][1].heard <= sights.txs[0][1].observed);
        assert!(sights.txs[0][1].heard.is_some());
    }
}
