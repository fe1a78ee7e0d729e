//! Orphan transactions (Core `node/txorphanage.h`).
//!
//! Orphans cannot be validated, so their number and size are bounded. Each peer has a reserved share: above the
//! limits, announcements of the peer with the largest relative usage are evicted.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use assay_wire::{OutPoint, Transaction, Txid, Wtxid};

use crate::p2p::rng::random;

#[derive(Default)]
pub(super) struct Orphans {
    by_wtxid: HashMap<Wtxid, Orphan>,
    spenders: HashMap<OutPoint, BTreeSet<Wtxid>>,
    peers: BTreeMap<u64, Share>,
    next_number: u64,
    /// Total weight, each orphan counted once.
    weight: u64,
    input_score: u64,
    announcements: u64,
}

struct Orphan {
    tx: Arc<Transaction>,
    txid: Txid,
    weight: u64,
    input_score: u64,
    announcers: BTreeMap<u64, Announcement>,
}

#[derive(Clone, Copy)]
struct Announcement {
    number: u64,
    /// True if this peer's announcement is due for reconsideration.
    is_due: bool,
}

#[derive(Default)]
struct Share {
    /// Due ones last; otherwise in order of announcement.
    order: BTreeSet<(bool, u64, Wtxid)>,
    weight: u64,
    score: u64,
}

impl Share {
    /// Used fraction of its share, the larger of two kinds, in millionths.
    fn excess(&self, score_max: u64) -> u64 {
        let score = self.score * 1_000_000 / score_max.max(1);
        score.max(self.weight * 1_000_000 / PEER_WEIGHT)
    }
}

pub(crate) struct OrphanInfo {
    pub(crate) tx: Arc<Transaction>,
    pub(crate) announcers: Vec<u64>,
}

impl Orphans {
    /// Adds an orphan that a peer has sent or announced; true if new.
    pub(super) fn add(&mut self, tx: &Arc<Transaction>, wtxid: Wtxid, peer: u64) -> bool {
        let view = tx.view();
        let weight = view.weight() as u64;
        if weight > WEIGHT_MAX {
            return false;
        }
        let is_new = !self.have(&wtxid);
        if is_new {
            let input_score = view.input_count() as u64 / INPUTS_PER_POINT;
            let (tx, txid, announcers) = (Arc::clone(tx), view.txid(), BTreeMap::new());
            for input in tx.view().inputs() {
                self.spenders.entry(input.prevout).or_default().insert(wtxid);
            }
            let orphan = Orphan { tx, txid, weight, input_score, announcers };
            self.by_wtxid.insert(wtxid, orphan);
            self.weight += weight;
            self.input_score += input_score;
        }
        self.add_announcer(&wtxid, peer);
        is_new
    }

    pub(super) fn add_announcer(&mut self, wtxid: &Wtxid, peer: u64) {
        let Some(orphan) = self.by_wtxid.get_mut(wtxid) else { return };
        if orphan.announcers.contains_key(&peer) {
            return;
        }
        let number = self.next_number;
        self.next_number += 1;
        orphan.announcers.insert(peer, Announcement { number, is_due: false });
        let share = self.peers.entry(peer).or_default();
        share.order.insert((false, number, *wtxid));
        share.weight += orphan.weight;
        share.score += 1 + orphan.input_score;
        self.announcements += 1;
        self.limit();
    }

    pub(super) fn have(&self, wtxid: &Wtxid) -> bool {
        self.by_wtxid.contains_key(wtxid)
    }

    pub(super) fn have_from(&self, wtxid: &Wtxid, peer: u64) -> bool {
        self.by_wtxid.get(wtxid).is_some_and(|orphan| orphan.announcers.contains_key(&peer))
    }

    pub(super) fn get(&self, wtxid: &Wtxid) -> Option<&Arc<Transaction>> {
        self.by_wtxid.get(wtxid).map(|orphan| &orphan.tx)
    }

    /// A parent was admitted or confirmed: assigns each child to a random announcer.
    pub(super) fn parent_arrived(&mut self, txid: Txid, output_count: usize) {
        for vout in 0..output_count as u32 {
            let Some(spenders) = self.spenders.get(&OutPoint { txid, vout }) else { continue };
            for wtxid in spenders.clone() {
                self.make_due(&wtxid);
            }
        }
    }

    fn make_due(&mut self, wtxid: &Wtxid) {
        let Some(orphan) = self.by_wtxid.get_mut(wtxid) else { return };
        if orphan.announcers.values().any(|announcement| announcement.is_due) {
            return;
        }
        let chosen = random(orphan.announcers.len() as u64);
        let Some((peer, announcement)) = orphan.announcers.iter_mut().nth(chosen as usize) else {
            return;
        };
        announcement.is_due = true;
        let share = self.peers.get_mut(peer).expect("who announces has a share");
        share.order.remove(&(false, announcement.number, *wtxid));
        share.order.insert((true, announcement.number, *wtxid));
    }

    pub(super) fn take_due(&mut self, peer: u64) -> Option<Arc<Transaction>> {
        let share = self.peers.get_mut(&peer)?;
        let first = *share.order.range((true, 0, Wtxid([0; 32]))..).next()?;
        let (_, number, wtxid) = first;
        share.order.remove(&first);
        share.order.insert((false, number, wtxid));
        let orphan = self.by_wtxid.get_mut(&wtxid).expect("what is announced is here");
        let announcement = orphan.announcers.get_mut(&peer).expect("it announced it");
        announcement.is_due = false;
        Some(Arc::clone(&orphan.tx))
    }

    pub(super) fn has_due(&self, peer: u64) -> bool {
        let last = self.peers.get(&peer).and_then(|share| share.order.last());
        last.is_some_and(|(is_due, ..)| *is_due)
    }

    pub(super) fn peers_with_due(&self) -> Vec<u64> {
        self.peers.keys().copied().filter(|peer| self.has_due(*peer)).collect()
    }

    /// Children of a transaction announced by the same peer: due ones first, then the latest.
    pub(super) fn children_from(&self, parent: &Txid, peer: u64) -> Vec<Arc<Transaction>> {
        let Some(share) = self.peers.get(&peer) else { return Vec::new() };
        let orphans = share.order.iter().rev().map(|(_, _, wtxid)| &self.by_wtxid[wtxid]);
        let is_child =
            |orphan: &&Orphan| orphan.tx.view().inputs().any(|input| input.prevout.txid == *parent);
        orphans.filter(is_child).map(|orphan| Arc::clone(&orphan.tx)).collect()
    }

    /// Removes an orphan; true if it was present.
    pub(super) fn remove(&mut self, wtxid: &Wtxid) -> bool {
        let Some(orphan) = self.by_wtxid.get(wtxid) else { return false };
        for peer in orphan.announcers.keys().copied().collect::<Vec<_>>() {
            self.remove_announcement(wtxid, peer);
        }
        self.limit();
        true
    }

    pub(super) fn left(&mut self, peer: u64) {
        let Some(share) = self.peers.get(&peer) else { return };
        let wtxids: Vec<Wtxid> = share.order.iter().map(|(_, _, wtxid)| *wtxid).collect();
        let count = wtxids.len();
        tracing::debug!(target: "txpackages", "Erased {count} orphan transaction(s) from peer={peer}");
        for wtxid in &wtxids {
            self.remove_announcement(wtxid, peer);
        }
        self.limit();
    }

    /// Removes orphans that spend the inputs of a block: confirmed or conflicting.
    pub(super) fn block_spent(&mut self, outpoints: impl Iterator<Item = OutPoint>) {
        let mut count = 0;
        for outpoint in outpoints {
            for wtxid in self.spenders.get(&outpoint).cloned().unwrap_or_default() {
                count += u32::from(self.remove(&wtxid));
            }
        }
        if count > 0 {
            tracing::debug!(
                target: "txpackages",
                "Erased {count} orphan transaction(s) included or conflicted by block"
            );
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.by_wtxid.is_empty()
    }

    pub(super) fn list(&self) -> Vec<OrphanInfo> {
        let orphans = self.by_wtxid.values();
        let info = |orphan: &Orphan| OrphanInfo {
            tx: Arc::clone(&orphan.tx),
            announcers: orphan.announcers.keys().copied().collect(),
        };
        orphans.map(info).collect()
    }

    fn remove_announcement(&mut self, wtxid: &Wtxid, peer: u64) {
        let Some(orphan) = self.by_wtxid.get_mut(wtxid) else { return };
        let Some(Announcement { number, is_due }) = orphan.announcers.remove(&peer) else { return };
        self.announcements -= 1;
        let share = self.peers.get_mut(&peer).expect("who announces has a share");
        share.order.remove(&(is_due, number, *wtxid));
        share.weight -= orphan.weight;
        share.score -= 1 + orphan.input_score;
        if share.order.is_empty() {
            self.peers.remove(&peer);
        }
        if !orphan.announcers.is_empty() {
            return;
        }
        let orphan = self.by_wtxid.remove(wtxid).expect("it was found");
        self.weight -= orphan.weight;
        self.input_score -= orphan.input_score;
        for input in orphan.tx.view().inputs() {
            if let Some(spenders) = self.spenders.get_mut(&input.prevout) {
                spenders.remove(wtxid);
                if spenders.is_empty() {
                    self.spenders.remove(&input.prevout);
                }
            }
        }
        tracing::debug!(
            target: "txpackages",
            "removed orphan tx {} (wtxid={wtxid}) (1 announcements)", orphan.txid
        );
    }

    fn is_over(&self) -> bool {
        let peers = self.peers.len().max(1) as u64;
        self.announcements + self.input_score > SCORE_MAX || self.weight > PEER_WEIGHT * peers
    }

    /// Evicts the oldest announcements of the peer with the largest relative usage until the limits hold.
    fn limit(&mut self) {
        let score_max = SCORE_MAX / self.peers.len().max(1) as u64;
        while self.is_over() {
            // Of equal peers, the latest.
            let worst =
                self.peers.iter().max_by_key(|(peer, share)| (share.excess(score_max), **peer));
            let Some((&peer, share)) = worst else { return };
            let Some(&(_, _, wtxid)) = share.order.first() else { return };
            tracing::debug!(target: "txpackages", "peer={peer} orphanage overflow, removed 1 of {}", share.order.len());
            self.remove_announcement(&wtxid, peer);
        }
    }
}

/// Core `policy/policy.h`, `MAX_STANDARD_TX_WEIGHT`.
const WEIGHT_MAX: u64 = 400_000;
/// Reserved weight per peer (Core `DEFAULT_RESERVED_ORPHAN_WEIGHT_PER_PEER`).
const PEER_WEIGHT: u64 = 404_000;
/// Limit of announcements, plus one per ten inputs (Core `DEFAULT_MAX_ORPHANAGE_LATENCY_SCORE`).
const SCORE_MAX: u64 = 3000;
const INPUTS_PER_POINT: u64 = 10;

#[cfg(test)]
mod tests {
    use assay_testkit::chain::TxBuilder;
    use assay_wire::Encoding;

    use super::*;

    /// Spends outputs of transaction `parent` from `first` on; `script_bytes` add weight.
    fn tx(parent: u8, first: u32, inputs: u32, script_bytes: usize) -> Arc<Transaction> {
        let mut tx = TxBuilder::new(2);
        for vout in first..first + inputs {
            let txid = Txid([parent; 32]);
            tx = tx.spend(OutPoint { txid, vout }, &[], u32::MAX);
        }
        let raw = tx.output(1, &vec![0x51; script_bytes]).bytes();
        Arc::new(Transaction::parse(raw, Encoding::Segwit).unwrap())
    }

    fn wtxid(tx: &Transaction) -> Wtxid {
        tx.view().wtxid()
    }

    /// Redundant state is consistent, and the limits hold.
    fn check(orphans: &Orphans) {
        let all = || orphans.by_wtxid.values();
        assert_eq!(orphans.weight, all().map(|orphan| orphan.weight).sum::<u64>());
        assert_eq!(orphans.input_score, all().map(|orphan| orphan.input_score).sum::<u64>());
        let announcements: usize = all().map(|orphan| orphan.announcers.len()).sum();
        assert_eq!(orphans.announcements, announcements as u64);
        let in_shares: usize = orphans.peers.values().map(|share| share.order.len()).sum();
        assert_eq!(in_shares, announcements);
        for share in orphans.peers.values() {
            let of_share = || share.order.iter().map(|(_, _, wtxid)| &orphans.by_wtxid[wtxid]);
            assert_eq!(share.weight, of_share().map(|orphan| orphan.weight).sum::<u64>());
            let score: u64 = of_share().map(|orphan| 1 + orphan.input_score).sum();
            assert_eq!(share.score, score);
        }
        let spent: usize = all().map(|orphan| orphan.tx.view().input_count()).sum();
        assert_eq!(orphans.spenders.values().map(BTreeSet::len).sum::<usize>(), spent);
        assert!(!orphans.is_over());
    }

    #[test]
    fn flooding_peers_lose_their_own_orphans() {
        let mut orphans = Orphans::default();
        let quiet: Vec<_> = (0..20).map(|vout| tx(1, vout, 1, 1)).collect();
        for tx in &quiet {
            assert!(orphans.add(tx, wtxid(tx), 1));
        }
        for vout in 0..4000 {
            let small = tx(2, vout, 1, 1);
            orphans.add(&small, wtxid(&small), 2);
        }
        check(&orphans);
        for vout in 0..20 {
            // Heavy ones, and ones with many inputs.
            let heavy = tx(3, vout, 1, 90_000);
            orphans.add(&heavy, wtxid(&heavy), 3);
            let wide = tx(4, vout * 1000, 1000, 1);
            orphans.add(&wide, wtxid(&wide), 4);
            check(&orphans);
        }
        assert!(quiet.iter().all(|tx| orphans.have_from(&wtxid(tx), 1)), "it keeps its share");
        assert!(!orphans.add(&tx(5, 0, 1, 100_000), Wtxid([5; 32]), 5), "no block would relay it");
        for peer in 1..=4 {
            orphans.left(peer);
            check(&orphans);
        }
        assert!(orphans.is_empty() && orphans.spenders.is_empty() && orphans.peers.is_empty());
    }

    #[test]
    fn children_are_due_with_one_announcer() {
        let mut orphans = Orphans::default();
        let parent = tx(1, 0, 1, 1);
        let view = parent.view();
        let raw = TxBuilder::new(2).spend(OutPoint { txid: view.txid(), vout: 0 }, &[], 0);
        let child = Transaction::parse(raw.output(1, &[0x51]).bytes(), Encoding::Segwit).unwrap();
        let child = Arc::new(child);
        assert!(orphans.add(&child, wtxid(&child), 1));
        assert!(!orphans.add(&child, wtxid(&child), 2), "it is here already");
        assert!(orphans.peers_with_due().is_empty());
        orphans.parent_arrived(view.txid(), view.output_count());
        orphans.parent_arrived(view.txid(), view.output_count());
        let due = orphans.peers_with_due();
        assert_eq!(due.len(), 1);
        assert_eq!(orphans.take_due(due[0]).as_deref().map(wtxid), Some(wtxid(&child)));
        assert!(orphans.take_due(due[0]).is_none() && orphans.peers_with_due().is_empty());
        for peer in [1, 2] {
            assert_eq!(orphans.children_from(&view.txid(), peer).len(), 1);
        }
        check(&orphans);
        let spent = child.view().inputs().map(|input| input.prevout);
        orphans.block_spent(spent);
        assert!(orphans.is_empty());
        check(&orphans);
    }
}
