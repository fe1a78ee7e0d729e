//! How fast peers send blocks: how many each is asked for at once, and who takes much longer than the others. What such a late
//! peer was asked for is asked of others as well. Core asks every peer for 16 blocks, and waits until one holds up its whole window
//! of 1,024, or at the end of a chain for ten minutes.

use std::collections::HashSet;

use assay_wire::BlockHash;

use super::blocks::UNDER_WAY_MAX;
use super::{PeerSync, Table};

impl Table {
    /// Peers that have been at one block for much longer than peers usually are, and have sent much less of it; none where no
    /// other peer sends blocks.
    pub(super) fn late_peers(&self, now_ms: u64) -> Vec<u64> {
        let Some(usual) = self.usual_block() else { return Vec::new() };
        let is_late = |state: &PeerSync| {
            let elapsed_ms = now_ms.saturating_sub(state.downloading_since_ms);
            let patience_ms = (FACTOR * usual.time_us / 1000).max(state.pace.patience_ms());
            // A large block takes longer, and what comes as fast as elsewhere is not late.
            let due_bytes = usual.bytes_in(elapsed_ms) / FACTOR;
            !state.under_way.is_empty()
                && elapsed_ms > patience_ms
                && state.pace.bytes_since_block() <= due_bytes
        };
        let late = self.peers.iter().filter(|(_, state)| is_late(state));
        late.map(|(peer, _)| *peer).collect()
    }

    /// The median of the times over peers that have sent blocks, and that of the sizes.
    fn usual_block(&self) -> Option<Usual> {
        let usual = self.peers.values().filter_map(|state| state.pace.usual);
        let (mut times, mut sizes): (Vec<u64>, Vec<u64>) =
            usual.map(|usual| (usual.time_us, usual.bytes)).unzip();
        let middle = times.len().checked_sub(1)? / 2;
        let time_us = *times.select_nth_unstable(middle).1;
        Some(Usual { time_us, bytes: *sizes.select_nth_unstable(middle).1 })
    }

    /// Whether another peer sends blocks as it should.
    pub(super) fn has_another_source(&self, peer: u64) -> bool {
        let is_sound = |state: &PeerSync| state.pace.usual.is_some() && state.pace.lapses == 0;
        self.peers.iter().any(|(other, state)| *other != peer && is_sound(state))
    }

    /// How many blocks a peer may be asked for at a time during the initial download: as many as come in the time that an
    /// answer takes, and some more.
    pub(super) fn blocks_at_once(&self, peer: u64) -> usize {
        let Some(state) = self.peers.get(&peer) else { return 0 };
        if state.pace.lapses > 0 {
            return 1;
        }
        let Some(usual) = state.pace.usual else { return FIRST_BLOCKS };
        let ahead_us = 1000 * (2 * state.pace.ping_ms().min(PING_MOST_MS) + AHEAD_MS);
        let count = usize::try_from(ahead_us / usual.time_us.max(1)).unwrap_or(usize::MAX);
        // What was asked for cannot be taken back, and the next blocks may be a thousand times larger than these: the more have
        // come the more are asked for, up to a share for each that may send blocks, though it may not have shown its headers yet.
        let sources = self.peers.values().filter(|state| state.traits.serves_blocks).count();
        let share = (BLOCKS_MOST / sources.max(1)).max(UNDER_WAY_MAX);
        let known = FIRST_BLOCKS + state.pace.blocks / BLOCKS_PER_MORE;
        // One is on its way while the next is asked for.
        count.saturating_add(1).clamp(BLOCKS_LEAST, share.min(known))
    }

    /// Blocks that other peers were asked for and that this one would bring much sooner, each with who was asked: there is much
    /// before them in that peer's queue.
    pub(super) fn far_back(&self, peer: u64) -> HashSet<(u64, BlockHash)> {
        let Some((own, own_us)) =
            self.peers.get(&peer).and_then(|own| Some((own, own.block_us()?)))
        else {
            return HashSet::new();
        };
        let next_us = 1000 * own.pace.ping_ms() + own_us * (own.under_way.len() as u64 + 1);
        let others = self.peers.iter().filter(|(other, _)| **other != peer);
        let of_one = |(other, state): (&u64, &PeerSync)| {
            // On a fast network nothing is far back.
            let sooner_us = FAR_BACK * next_us + FAR_BACK_LEAST_US;
            let sooner = sooner_us / state.block_us().unwrap_or(own_us).max(1);
            let sooner = usize::try_from(sooner).unwrap_or(usize::MAX);
            let later = state.under_way.iter().skip(sooner);
            later.map(|block| (*other, *block)).collect::<Vec<_>>()
        };
        others.flat_map(of_one).collect()
    }
}

/// How long a block of a peer takes, and how large it is, on average; the latest count most.
#[derive(Clone, Copy)]
struct Usual {
    time_us: u64,
    bytes: u64,
}

impl Usual {
    /// So many bytes come in this time.
    fn bytes_in(self, time_ms: u64) -> u64 {
        let bytes = u128::from(self.bytes) * u128::from(time_ms) * 1000;
        u64::try_from(bytes / u128::from(self.time_us.max(1))).unwrap_or(u64::MAX)
    }
}

/// How fast a peer sends blocks.
#[derive(Default)]
pub(super) struct Pace {
    usual: Option<Usual>,
    /// How many it has sent.
    blocks: usize,
    ping_ms: Option<u64>,
    /// Bytes that came from it, as last looked at, and when the block that it is at was begun.
    received_bytes: u64,
    begun_at_bytes: u64,
    /// How often others were faster with blocks that it was asked for, since it sent one last.
    lapses: u32,
    rests_until_ms: u64,
}

impl Pace {
    /// What was received from the peer so far, and its fastest answer to a ping.
    pub(super) fn look(&mut self, received_bytes: u64, ping_ms: Option<u64>) {
        (self.received_bytes, self.ping_ms) = (received_bytes, ping_ms);
    }

    /// The peer is at another block from now on.
    pub(super) fn begin_block(&mut self) {
        self.begun_at_bytes = self.received_bytes;
    }

    fn bytes_since_block(&self) -> u64 {
        self.received_bytes.saturating_sub(self.begun_at_bytes)
    }

    /// Without an answer to a ping it may be anywhere.
    fn ping_ms(&self) -> u64 {
        self.ping_ms.unwrap_or(PING_MOST_MS)
    }

    fn patience_ms(&self) -> u64 {
        (FACTOR * self.ping_ms()).clamp(PATIENCE_LEAST_MS, PATIENCE_MOST_MS)
    }

    /// Another peer was asked for a block of its, and was faster: it is asked for nothing for a while, then for one at a time.
    pub(super) fn lapse(&mut self, now_ms: u64) {
        if now_ms < self.rests_until_ms {
            return;
        }
        self.rests_until_ms = now_ms + (REST_LEAST_MS << self.lapses.min(REST_DOUBLINGS));
        self.lapses += 1;
    }

    /// It has sent a block.
    pub(super) fn recover(&mut self) {
        (self.lapses, self.rests_until_ms) = (0, 0);
    }

    pub(super) fn is_slow(&self) -> bool {
        self.lapses > 0
    }

    /// Whether it is not asked for anything now, where others are there.
    pub(super) fn rests(&self, now_ms: u64) -> bool {
        now_ms < self.rests_until_ms
    }
}

impl PeerSync {
    /// How long it takes for a block, usually.
    fn block_us(&self) -> Option<u64> {
        self.pace.usual.map(|usual| usual.time_us)
    }

    /// A block of this peer has come.
    pub(super) fn note_block_time(&mut self, block: &BlockHash, now_ms: u64) {
        if self.under_way.front() != Some(block) {
            return;
        }
        let took_us = 1000 * now_ms.saturating_sub(self.downloading_since_ms);
        let bytes = self.pace.bytes_since_block();
        self.pace.blocks += 1;
        let part = |before: u64, now: u64| (before * (WEIGHT - 1) + now) / WEIGHT;
        self.pace.usual = Some(match self.pace.usual {
            Some(before) => {
                Usual { time_us: part(before.time_us, took_us), bytes: part(before.bytes, bytes) }
            }
            None => Usual { time_us: took_us, bytes },
        });
    }
}

/// So many times the usual time is late, and so many pings.
const FACTOR: u64 = 4;
/// Shorter than that nobody is late, whatever the others do.
const PATIENCE_LEAST_MS: u64 = 400;
/// A peer that answers late to pings gets no longer than that: Core's least patience with a peer that holds up the window
/// (`net_processing.cpp`, `BLOCK_STALLING_TIMEOUT_DEFAULT`).
const PATIENCE_MOST_MS: u64 = 2_000;
/// Of so many blocks the latest makes one part of the average.
const WEIGHT: u64 = 8;
/// Blocks of a peer that has sent none: should it send none at all, few have to be asked of others.
const FIRST_BLOCKS: usize = 4;
/// One more is asked for per so many that have come.
const BLOCKS_PER_MORE: usize = 8;
const BLOCKS_LEAST: usize = 3;
const BLOCKS_MOST: usize = 128;
/// What is asked for ahead of the two pings: a peer must not run dry while its blocks are being archived.
const AHEAD_MS: u64 = 400;
/// So many times sooner a block has to come for being asked of a second peer.
const FAR_BACK: u64 = 2;
const FAR_BACK_LEAST_US: u64 = 100_000;
const PING_MOST_MS: u64 = 2_000;
/// The first rest, which doubles so often: up to about a minute.
const REST_LEAST_MS: u64 = 2_000;
const REST_DOUBLINGS: u32 = 5;

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use super::*;

    /// Peers with the time that they take for a block of a million bytes, since when they are at one, and what has come of it.
    fn table(peers: &[(Option<u64>, u64, u64)]) -> Table {
        let mut table = Table::default();
        for (id, (block_ms, since, bytes)) in peers.iter().enumerate() {
            let under_way = VecDeque::from([BlockHash([id as u8; 32])]);
            let usual = block_ms.map(|ms| Usual { time_us: ms * 1000, bytes: 1_000_000 });
            let mut pace = Pace { usual, ..Pace::default() };
            pace.look(*bytes, Some(50));
            let state =
                PeerSync { pace, downloading_since_ms: *since, under_way, ..PeerSync::default() };
            table.peers.insert(id as u64, state);
        }
        table
    }

    #[test]
    fn late_is_who_takes_much_longer_than_the_others() {
        let table = table(&[(Some(1_000), 9_000, 0), (Some(1_100), 9_500, 0), (None, 5_000, 0)]);
        assert!(table.late_peers(8_999).is_empty());
        assert_eq!(table.late_peers(9_001), [2]);
    }

    #[test]
    fn without_others_to_compare_with_no_peer_is_late() {
        assert!(table(&[(None, 0, 0)]).late_peers(1_000_000).is_empty());
    }

    #[test]
    fn a_fast_network_leaves_some_time() {
        let mut table = table(&[(Some(5), 10_000, 0), (None, 8_000, 0)]);
        assert!(table.late_peers(8_400).is_empty());
        assert_eq!(table.late_peers(8_401), [1]);
        // A peer that is far away gets more, and one that does not answer pings as much as that.
        for ping_ms in [Some(60_000), None] {
            table.peers.get_mut(&1).unwrap().pace.look(0, ping_ms);
            assert!(table.late_peers(10_000).is_empty());
            assert_eq!(table.late_peers(10_001), [1]);
        }
    }

    #[test]
    fn a_large_block_that_comes_as_fast_as_others_is_not_late() {
        // Others send ten million bytes a second.
        let others = [(Some(100), 10_000, 0), (Some(100), 10_000, 0)];
        let large = table(&[others[0], others[1], (Some(100), 8_000, 5_000_001)]);
        assert!(large.late_peers(10_000).is_empty());
        let small = table(&[others[0], others[1], (Some(100), 8_000, 2_000)]);
        assert_eq!(small.late_peers(10_000), [2]);
    }

    #[test]
    fn peers_that_share_a_bottleneck_are_not_late() {
        // A fast one takes a third of the time of the others, on the same line.
        let table = table(&[
            (Some(700), 9_000, 500_000),
            (Some(2_000), 7_800, 900_000),
            (Some(2_100), 7_900, 900_000),
        ]);
        assert!(table.late_peers(10_000).is_empty());
    }

    #[test]
    fn a_peer_slower_than_another_rests_until_it_sends_a_block() {
        let mut table = table(&[(Some(5), 10_000, 0), (None, 5_000, 0)]);
        let block = BlockHash([1; 32]);
        table.ask(1, block, 1, 5_000);
        table.ask(0, block, 1, 10_000);
        table.arrived(&block, 0, 10_010);
        assert!(table.peers[&1].pace.is_slow() && !table.peers[&0].pace.is_slow());
        assert!(table.peers[&1].pace.rests(10_010) && !table.peers[&1].pace.rests(12_010));
        assert_eq!(table.blocks_at_once(1), 1);
        assert!(table.has_another_source(1) && !table.has_another_source(0));
        // Whether somebody else has brought it meanwhile does not matter.
        table.arrived(&block, 1, 10_030);
        assert!(!table.peers[&1].pace.is_slow());
    }

    #[test]
    fn rests_grow() {
        let mut pace = Pace::default();
        let mut now_ms = 0;
        let mut rests = Vec::new();
        for _ in 0..8 {
            pace.lapse(now_ms);
            rests.push(pace.rests_until_ms - now_ms);
            // Other blocks of the same rest do not count.
            pace.lapse(now_ms + 1);
            now_ms = pace.rests_until_ms;
        }
        assert_eq!(rests, [2_000, 4_000, 8_000, 16_000, 32_000, 64_000, 64_000, 64_000]);
    }

    #[test]
    fn as_many_blocks_are_under_way_as_come_in_two_pings_and_some_more() {
        // A ping of 50 ms: 500 ms ahead, and one on its way.
        for (block_ms, expected) in [(60, 9), (250, 3), (5_000, 3), (10, 51), (1, 128), (0, 128)] {
            let mut table = table(&[(Some(block_ms), 0, 0)]);
            table.peers.get_mut(&0).unwrap().pace.blocks = 10_000;
            assert_eq!(table.blocks_at_once(0), expected, "{block_ms} ms");
        }
    }

    #[test]
    fn more_blocks_are_asked_for_the_more_have_come() {
        assert_eq!(table(&[(None, 0, 0)]).blocks_at_once(0), 4);
        for (blocks, expected) in [(1, 4), (8, 5), (80, 14), (10_000, 128)] {
            let mut table = table(&[(Some(0), 0, 0)]);
            table.peers.get_mut(&0).unwrap().pace.blocks = blocks;
            assert_eq!(table.blocks_at_once(0), expected, "after {blocks}");
        }
    }

    #[test]
    fn the_most_blocks_are_for_all_that_serve_them() {
        for (peers, expected) in [(1, 128), (4, 32), (8, 16), (125, 16)] {
            let mut table = table(&vec![(Some(0), 0, 0); peers]);
            for state in table.peers.values_mut() {
                (state.traits.serves_blocks, state.pace.blocks) = (true, 10_000);
            }
            assert_eq!(table.blocks_at_once(0), expected, "{peers} peers");
        }
    }

    #[test]
    fn far_back_is_what_another_would_bring_in_half_the_time() {
        let mut table = table(&[(Some(100), 0, 0), (Some(100), 0, 0)]);
        let blocks: Vec<BlockHash> = (10..20).map(|byte| BlockHash([byte; 32])).collect();
        for (height, block) in blocks.iter().enumerate() {
            table.ask(1, *block, height as u32, 0);
        }
        // A ping and two blocks are 250 ms: in twice that and 100 ms the other one sends six.
        let far_back = table.far_back(0);
        let expected: Vec<_> = blocks[5..].iter().map(|block| (1, *block)).collect();
        assert_eq!(far_back, expected.into_iter().collect());
        assert!(table.far_back(1).is_empty());
        // Nothing is known of one that has sent none.
        table.peers.get_mut(&0).unwrap().pace.usual = None;
        assert!(table.far_back(0).is_empty());
    }
}
