//! Scheduling of transaction requests over peers (Core `txrequest.h`).
//!
//! An announcement waits until its time, then becomes a candidate. The best candidate of a transaction is asked:
//! preferred peers first, with unpredictable order among equals. After a timeout the next candidate is asked, and
//! the peer not again.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::hash::{BuildHasher, RandomState};

use assay_engine::RelayId;

type Hash = [u8; 32];

#[derive(Default)]
pub(super) struct Requests {
    offers: HashMap<Hash, Vec<Offer>>,
    /// Timers: end of the delay of an announcement, or timeout of a request.
    due: BTreeSet<(u64, Hash, u64)>,
    /// Best candidates by peer, in order of announcement.
    best: BTreeSet<(u64, u64, Hash)>,
    peers: HashMap<u64, OfPeer>,
    next_number: u64,
    key: RandomState,
}

#[derive(Clone, Copy)]
struct Offer {
    peer: u64,
    id: RelayId,
    /// Sequence number of the announcement, from 0.
    number: u64,
    is_preferred: bool,
    state: State,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    /// Delayed until this time, microseconds.
    Waiting(u64),
    Candidate,
    Best,
    /// Requested, with this deadline.
    Asked(u64),
    /// Answered or timed out.
    Done,
}

#[derive(Default)]
struct OfPeer {
    announced: HashSet<Hash>,
    asked: usize,
}

impl Requests {
    /// Adds an announcement; a request is allowed from `at_us` on.
    pub(super) fn announced(&mut self, peer: u64, id: RelayId, is_preferred: bool, at_us: u64) {
        let hash = id.hash();
        if !self.peers.entry(peer).or_default().announced.insert(hash) {
            return;
        }
        let number = self.next_number;
        self.next_number += 1;
        let state = State::Waiting(at_us);
        self.offers.entry(hash).or_default().push(Offer { peer, id, number, is_preferred, state });
        self.due.insert((at_us, hash, peer));
    }

    /// Requests due to a peer, and expired requests.
    pub(super) fn next_for(
        &mut self,
        peer: u64,
        now_us: u64,
    ) -> (Vec<RelayId>, Vec<(u64, RelayId)>) {
        let late = self.advance(now_us);
        let best = self.best.range((peer, 0, [0; 32])..=(peer, u64::MAX, [u8::MAX; 32]));
        let ask = best.filter_map(|(_, _, hash)| self.find(hash, peer).map(|offer| offer.id));
        (ask.collect(), late)
    }

    pub(super) fn asked(&mut self, peer: u64, hash: &Hash, due_us: u64) {
        self.set(hash, peer, State::Asked(due_us));
    }

    /// Records a response, with or without the transaction.
    pub(super) fn answered(&mut self, peer: u64, hash: &Hash) {
        if self.find(hash, peer).is_some() {
            self.set(hash, peer, State::Done);
            self.choose(hash);
        }
    }

    pub(super) fn forget(&mut self, hash: &Hash) {
        for offer in self.offers.remove(hash).unwrap_or_default() {
            self.unlink(&offer);
            self.strike(offer.peer, hash);
        }
    }

    pub(super) fn left(&mut self, peer: u64) {
        let announced = self.peers.get(&peer).map(|of| &of.announced);
        let announced: Vec<Hash> = announced.into_iter().flatten().copied().collect();
        for hash in announced {
            if let Some(offer) = self.find(&hash, peer).copied() {
                self.unlink(&offer);
                let others = self.offers.get_mut(&hash).expect("it was found there");
                others.retain(|other| other.peer != peer);
                self.choose(&hash);
            }
        }
        self.peers.remove(&peer);
    }

    /// Other peers that may have a transaction.
    pub(super) fn candidates(&self, hash: &Hash) -> impl Iterator<Item = u64> + use<'_> {
        let offers = self.offers.get(hash).into_iter().flatten();
        offers.filter(|offer| offer.state != State::Done).map(|offer| offer.peer)
    }

    pub(super) fn count(&self, peer: u64) -> usize {
        self.peers.get(&peer).map_or(0, |of| of.announced.len())
    }

    pub(super) fn asked_count(&self, peer: u64) -> usize {
        self.peers.get(&peer).map_or(0, |of| of.asked)
    }

    fn advance(&mut self, now_us: u64) -> Vec<(u64, RelayId)> {
        let mut late = Vec::new();
        while let Some((_, hash, peer)) = self.due.first().filter(|due| due.0 <= now_us).copied() {
            let offer = *self.find(&hash, peer).expect("what is due was announced");
            if let State::Asked(_) = offer.state {
                late.push((peer, offer.id));
                self.set(&hash, peer, State::Done);
            } else {
                self.set(&hash, peer, State::Candidate);
            }
            self.choose(&hash);
        }
        late
    }

    /// Selects the next peer for a transaction without an outstanding request; removes the transaction without candidates.
    fn choose(&mut self, hash: &Hash) {
        let Some(offers) = self.offers.get(hash) else { return };
        if offers.iter().all(|offer| offer.state == State::Done) {
            return self.forget(hash);
        }
        let is_asked = offers.iter().any(|offer| matches!(offer.state, State::Asked(_)));
        let is_open = |offer: &&Offer| matches!(offer.state, State::Candidate | State::Best);
        let chance = |peer: u64| self.key.hash_one((hash, peer));
        let best = offers.iter().filter(is_open);
        let best = best.max_by_key(|offer| (offer.is_preferred, chance(offer.peer)));
        let best = best.filter(|_| !is_asked).map(|offer| offer.peer);
        let before = offers.iter().find(|offer| offer.state == State::Best).map(|offer| offer.peer);
        if best == before {
            return;
        }
        if let Some(peer) = before {
            self.set(hash, peer, State::Candidate);
        }
        if let Some(peer) = best {
            self.set(hash, peer, State::Best);
        }
    }

    fn find(&self, hash: &Hash, peer: u64) -> Option<&Offer> {
        self.offers.get(hash)?.iter().find(|offer| offer.peer == peer)
    }

    fn set(&mut self, hash: &Hash, peer: u64, state: State) {
        let Some(before) = self.find(hash, peer).copied() else { return };
        self.unlink(&before);
        let offers = self.offers.get_mut(hash).into_iter().flatten();
        offers.filter(|offer| offer.peer == peer).for_each(|offer| offer.state = state);
        match state {
            State::Waiting(at) => {
                self.due.insert((at, *hash, peer));
            }
            State::Asked(at) => {
                self.due.insert((at, *hash, peer));
                self.peers.entry(peer).or_default().asked += 1;
            }
            State::Best => {
                self.best.insert((peer, before.number, *hash));
            }
            State::Candidate | State::Done => {}
        }
    }

    /// Removes an announcement from the timer and peer indexes.
    fn unlink(&mut self, offer: &Offer) {
        let (peer, hash) = (offer.peer, offer.id.hash());
        match offer.state {
            State::Waiting(at) => {
                self.due.remove(&(at, hash, peer));
            }
            State::Asked(at) => {
                self.due.remove(&(at, hash, peer));
                if let Some(of) = self.peers.get_mut(&peer) {
                    of.asked -= 1;
                }
            }
            State::Best => {
                self.best.remove(&(peer, offer.number, hash));
            }
            State::Candidate | State::Done => {}
        }
    }

    fn strike(&mut self, peer: u64, hash: &Hash) {
        if let Some(of) = self.peers.get_mut(&peer) {
            of.announced.remove(hash);
            if of.announced.is_empty() {
                self.peers.remove(&peer);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use assay_wire::Wtxid;

    use super::*;

    fn id(number: u8) -> RelayId {
        RelayId::Wtxid(Wtxid([number; 32]))
    }

    fn ask(requests: &mut Requests, peer: u64, now_us: u64) -> Vec<RelayId> {
        let (ask, _) = requests.next_for(peer, now_us);
        for id in &ask {
            requests.asked(peer, &id.hash(), now_us + 60);
        }
        ask
    }

    #[test]
    fn preferred_peers_first_then_next_after_timeout() {
        let mut requests = Requests::default();
        requests.announced(1, id(1), false, 12);
        requests.announced(2, id(1), true, 10);
        assert!(ask(&mut requests, 1, 9).is_empty() && ask(&mut requests, 2, 9).is_empty());
        assert!(ask(&mut requests, 1, 12).is_empty());
        assert_eq!(ask(&mut requests, 2, 12), [id(1)]);
        assert_eq!((requests.asked_count(2), requests.count(2)), (1, 1));
        assert!(ask(&mut requests, 1, 71).is_empty() && ask(&mut requests, 2, 71).is_empty());
        let (ask_now, late) = requests.next_for(1, 72);
        assert_eq!((ask_now, late), (vec![id(1)], vec![(2, id(1))]));
        requests.answered(1, &id(1).hash());
        assert!(requests.offers.is_empty() && requests.due.is_empty() && requests.best.is_empty());
        assert!(requests.peers.is_empty(), "who was late is not remembered either");
    }

    #[test]
    fn disconnected_peers_are_replaced() {
        let mut requests = Requests::default();
        for peer in 0..3 {
            requests.announced(peer, id(1), false, 0);
            requests.announced(peer, id(2), false, 0);
            requests.announced(peer, id(1), false, 0);
        }
        let mut asked = Vec::new();
        for peer in 0..3 {
            assert_eq!(requests.count(peer), 2);
            asked.extend(ask(&mut requests, peer, 1).iter().map(|id| (*id, peer)));
        }
        asked.sort_unstable();
        assert_eq!(asked.iter().map(|(id, _)| *id).collect::<Vec<_>>(), [id(1), id(2)]);
        let first = asked[0].1;
        requests.left(first);
        let again: Vec<_> = (0..3).flat_map(|peer| ask(&mut requests, peer, 2)).collect();
        assert!(again.contains(&id(1)) && requests.count(first) == 0);
        assert!(requests.candidates(&id(1).hash()).all(|peer| peer != first));
        requests.forget(&id(1).hash());
        requests.forget(&id(2).hash());
        assert!(requests.offers.is_empty() && requests.peers.is_empty() && requests.due.is_empty());
    }
}
