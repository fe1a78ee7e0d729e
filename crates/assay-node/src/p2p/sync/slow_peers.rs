//! Block download rates: requests per peer, and detection of late peers, whose blocks are also requested from
//! others. Core requests 16 blocks from every peer, and waits until one stalls the whole window of 1,024, or ten
//! minutes at the end of a chain.

use std::collections::HashSet;

use assay_wire::BlockHash;

use super::blocks::IN_FLIGHT_MAX;
use super::pace::{FACTOR, PING_MOST_MS, Usual};
use super::{PeerSync, Table};

impl Table {
    /// Peers whose current block takes several times the usual time and which have sent much less than usual in it;
    /// empty without another source of blocks.
    pub(super) fn late_peers(&self, now_ms: u64) -> Vec<u64> {
        let Some(usual) = self.usual_block() else { return Vec::new() };
        let is_late = |state: &PeerSync| {
            let elapsed_ms = now_ms.saturating_sub(state.downloading_since_ms);
            let patience_ms = (FACTOR * usual.time_us / 1000).max(state.pace.patience_ms());
            // A large block takes longer: a normal transfer rate is not late.
            let due_bytes = usual.bytes_in(elapsed_ms) / FACTOR;
            !state.in_flight.is_empty()
                && elapsed_ms > patience_ms
                && state.pace.bytes_since_block() <= due_bytes
        };
        // Blocks owed by a resting peer do not make it late again.
        let owes = |state: &PeerSync| state.pace.rests(now_ms) && !state.in_flight.is_empty();
        let late = self
            .peers
            .iter()
            .filter(|(peer, state)| is_late(state) || owes(state) || self.drips(**peer, now_ms));
        late.map(|(peer, _)| *peer).collect()
    }

    /// True if a peer sends much slower than others at the same time, although some blocks arrive: small blocks
    /// arrive in time even at a thousand bytes a second, but not those behind them.
    fn drips(&self, peer: u64, now_ms: u64) -> bool {
        let Some(state) = self.peers.get(&peer) else { return false };
        let span_ms = state.pace.patience_ms();
        let within = |state: &PeerSync| {
            state.pace.bytes_within(span_ms, now_ms).filter(|_| !state.in_flight.is_empty())
        };
        let Some(bytes) = within(state) else { return false };
        let others = self.peers.iter().filter(|(other, _)| **other != peer);
        let mut others: Vec<u64> = others.filter_map(|(_, state)| within(state)).collect();
        let Some(middle) = others.len().checked_sub(1).map(|last| last / 2) else { return false };
        bytes.saturating_mul(FACTOR) < *others.select_nth_unstable(middle).1
    }

    /// Medians of block time and size over peers that have sent blocks.
    fn usual_block(&self) -> Option<Usual> {
        let usual = self.peers.values().filter_map(|state| state.pace.usual);
        let (mut times, mut sizes): (Vec<u64>, Vec<u64>) =
            usual.map(|usual| (usual.time_us, usual.bytes)).unzip();
        let middle = times.len().checked_sub(1)? / 2;
        let time_us = *times.select_nth_unstable(middle).1;
        Some(Usual { time_us, bytes: *sizes.select_nth_unstable(middle).1 })
    }

    /// True if another peer sends blocks at a normal rate.
    pub(super) fn has_another_source(&self, peer: u64) -> bool {
        let is_sound = |state: &PeerSync| state.pace.usual.is_some() && state.pace.lapses == 0;
        self.peers.iter().any(|(other, state)| *other != peer && is_sound(state))
    }

    /// True if a block source exists that is neither late nor resting.
    pub(super) fn has_prompt_source(&self, late: &[u64], now_ms: u64) -> bool {
        self.peers.iter().any(|(peer, state)| {
            let may_be_asked = state.traits.serves_blocks && state.best.is_some();
            may_be_asked && !late.contains(peer) && !state.pace.rests(now_ms)
        })
    }

    /// Number of blocks in flight for a peer during IBD: those of one round trip, and some more.
    pub(super) fn blocks_at_once(&self, peer: u64) -> usize {
        let Some(state) = self.peers.get(&peer) else { return 0 };
        if state.pace.lapses > 0 {
            return 1;
        }
        let Some(usual) = state.pace.usual else { return FIRST_BLOCKS };
        let ahead_us = 1000 * (2 * state.pace.ping_ms().min(PING_MOST_MS) + AHEAD_MS);
        let count = usize::try_from(ahead_us / usual.time_us.max(1)).unwrap_or(usize::MAX);
        // Requests cannot be withdrawn, and the next blocks may be a thousand times larger. The limit therefore grows with the
        // blocks received, up to an equal share per potential source, which may not have announced its headers yet.
        let sources = self.peers.values().filter(|state| state.traits.serves_blocks).count();
        let share = (BLOCKS_MOST / sources.max(1)).max(IN_FLIGHT_MAX);
        let known = KNOWN_LEAST + state.pace.blocks / BLOCKS_PER_MORE;
        // One is in transit while the next is requested.
        count.saturating_add(1).clamp(BLOCKS_LEAST, share.min(known))
    }

    /// Stride of a peer's first requests. Unless only this peer has announced its chain, it is the number of peers
    /// without requests so far. The first blocks are thus distributed: consecutive blocks arrive over all links at
    /// once, and none queues behind large ones on a single link.
    pub(super) fn stride(&self, peer: u64) -> usize {
        let is_new = |state: &PeerSync| {
            state.traits.serves_blocks
                && !state.traits.is_limited
                && (state.pace.usual.is_none() && state.pace.lapses == 0)
                && state.in_flight.is_empty()
        };
        let shows = self.peers.values().filter(|state| state.best.is_some()).count();
        if shows < 2 || !self.peers.get(&peer).is_some_and(is_new) {
            return 1;
        }
        self.peers.values().filter(|state| is_new(state)).count().min(STRIDE_MOST)
    }

    /// Blocks requested from other peers that this one would deliver much sooner, with the id of that peer, whose queue is long.
    pub(super) fn far_back(&self, peer: u64) -> HashSet<(u64, BlockHash)> {
        let Some((own, own_us)) =
            self.peers.get(&peer).and_then(|own| Some((own, own.block_us()?)))
        else {
            return HashSet::new();
        };
        let next_us = 1000 * own.pace.ping_ms() + own_us * (own.in_flight.len() as u64 + 1);
        let others = self.peers.iter().filter(|(other, _)| **other != peer);
        let of_one = |(other, state): (&u64, &PeerSync)| {
            // On a fast network no block qualifies.
            let sooner_us = FAR_BACK * next_us + FAR_BACK_LEAST_US;
            let sooner = sooner_us / state.block_us().unwrap_or(own_us).max(1);
            let sooner = usize::try_from(sooner).unwrap_or(usize::MAX);
            let later = state.in_flight.iter().skip(sooner);
            later.map(|block| (*other, *block)).collect::<Vec<_>>()
        };
        others.flat_map(of_one).collect()
    }
}

impl PeerSync {
    fn block_us(&self) -> Option<u64> {
        self.pace.usual.map(|usual| usual.time_us)
    }

    pub(super) fn note_block_time(&mut self, block: &BlockHash, now_ms: u64) {
        if self.in_flight.front() != Some(block) {
            return;
        }
        self.pace.note_block(1000 * now_ms.saturating_sub(self.downloading_since_ms));
    }
}

/// In flight before the first block, as in Core: early blocks are small, and round trips dominate.
const FIRST_BLOCKS: usize = IN_FLIGHT_MAX;
/// Minimum in flight afterwards, plus one per this many received blocks.
const KNOWN_LEAST: usize = 4;
const BLOCKS_PER_MORE: usize = 8;
const BLOCKS_LEAST: usize = 3;
/// The window has room for this many peers.
const STRIDE_MOST: usize = 64;
const BLOCKS_MOST: usize = 128;
/// Requests ahead of two pings: a peer must not run idle while its blocks are archived.
const AHEAD_MS: u64 = 400;
/// Minimum speedup of a second request.
const FAR_BACK: u64 = 2;
const FAR_BACK_LEAST_US: u64 = 100_000;

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use super::super::pace::{Pace, Usual};
    use super::*;

    /// Peers with their time per block of a million bytes, the start of the current block, and its received bytes.
    fn table(peers: &[(Option<u64>, u64, u64)]) -> Table {
        let mut table = Table::default();
        for (id, (block_ms, since, bytes)) in peers.iter().enumerate() {
            let in_flight = VecDeque::from([BlockHash([id as u8; 32])]);
            let usual = block_ms.map(|ms| Usual { time_us: ms * 1000, bytes: 1_000_000 });
            let mut pace = Pace::default();
            pace.usual = usual;
            pace.look(*bytes, Some(50), 0);
            let state =
                PeerSync { pace, downloading_since_ms: *since, in_flight, ..PeerSync::default() };
            table.peers.insert(id as u64, state);
        }
        table
    }

    #[test]
    fn late_peers_take_much_longer_than_others() {
        let table = table(&[(Some(1_000), 9_000, 0), (Some(1_100), 9_500, 0), (None, 5_000, 0)]);
        assert!(table.late_peers(8_999).is_empty());
        assert_eq!(table.late_peers(9_001), [2]);
    }

    #[test]
    fn single_peers_are_never_late() {
        assert!(table(&[(None, 0, 0)]).late_peers(1_000_000).is_empty());
    }

    #[test]
    fn fast_networks_have_a_minimum_timeout() {
        let mut table = table(&[(Some(5), 10_000, 0), (None, 8_000, 0)]);
        assert!(table.late_peers(8_400).is_empty());
        assert_eq!(table.late_peers(8_401), [1]);
        // A distant peer gets more, and one without pongs as much.
        for ping_ms in [Some(60_000), None] {
            table.peers.get_mut(&1).unwrap().pace.look(0, ping_ms, 0);
            assert!(table.late_peers(10_000).is_empty());
            assert_eq!(table.late_peers(10_001), [1]);
        }
    }

    #[test]
    fn large_blocks_at_normal_rate_are_not_late() {
        // Others send ten million bytes per second.
        let others = [(Some(100), 10_000, 0), (Some(100), 10_000, 0)];
        let large = table(&[others[0], others[1], (Some(100), 8_000, 5_000_001)]);
        assert!(large.late_peers(10_000).is_empty());
        let small = table(&[others[0], others[1], (Some(100), 8_000, 2_000)]);
        assert_eq!(small.late_peers(10_000), [2]);
    }

    #[test]
    fn peers_that_share_a_bottleneck_are_not_late() {
        // A fast peer takes a third of the others' time, on the same link.
        let table = table(&[
            (Some(700), 9_000, 500_000),
            (Some(2_000), 7_800, 900_000),
            (Some(2_100), 7_900, 900_000),
        ]);
        assert!(table.late_peers(10_000).is_empty());
    }

    #[test]
    fn dripping_peers_are_late() {
        let mut table = table(&[(Some(100), 0, 0), (Some(100), 0, 0), (Some(100), 0, 0)]);
        for now_ms in (0..=500).step_by(50) {
            for (id, bytes_per_ms) in [(0, 5_000), (1, 5_000), (2, 1)] {
                let state = table.peers.get_mut(&id).unwrap();
                state.pace.look(now_ms * bytes_per_ms, Some(50), now_ms);
                // A block has just arrived.
                state.downloading_since_ms = now_ms;
            }
            assert_eq!(table.late_peers(now_ms), if now_ms < 400 { vec![] } else { vec![2] });
        }
        // A peer with a new request is not late.
        table.peers.get_mut(&2).unwrap().pace.begin();
        assert!(table.late_peers(500).is_empty());
    }

    #[test]
    fn slower_peers_rest_until_a_block_arrives() {
        let mut table = table(&[(Some(5), 10_000, 0), (None, 5_000, 0)]);
        let block = BlockHash([1; 32]);
        table.ask(1, block, 1, 5_000);
        table.ask(0, block, 1, 10_000);
        table.arrived(&block, 0, 10_010);
        assert!(table.peers[&1].pace.is_slow() && !table.peers[&0].pace.is_slow());
        assert!(table.peers[&1].pace.rests(10_010) && !table.peers[&1].pace.rests(12_010));
        assert_eq!(table.blocks_at_once(1), 1);
        assert!(table.has_another_source(1) && !table.has_another_source(0));
        // An earlier delivery by another peer is irrelevant.
        table.arrived(&block, 1, 10_030);
        assert!(!table.peers[&1].pace.is_slow());
    }

    #[test]
    fn in_flight_covers_two_pings() {
        // A ping of 50 ms: 500 ms ahead, plus one in transit.
        for (block_ms, expected) in [(60, 9), (250, 3), (5_000, 3), (10, 51), (1, 128), (0, 128)] {
            let mut table = table(&[(Some(block_ms), 0, 0)]);
            table.peers.get_mut(&0).unwrap().pace.blocks = 10_000;
            assert_eq!(table.blocks_at_once(0), expected, "{block_ms} ms");
        }
    }

    #[test]
    fn received_blocks_are_not_outstanding() {
        let mut table = table(&[(None, 0, 0)]);
        let block = BlockHash([7; 32]);
        table.ask(0, block, 2, 0);
        let to_come = |table: &Table| table.peers.get(&0).unwrap().still_to_come();
        assert_eq!(to_come(&table), 2);
        table.peers.get_mut(&0).unwrap().in_hand = Some(block);
        assert_eq!(to_come(&table), 1);
        table.arrived(&block, 0, 10);
        assert_eq!(to_come(&table), 1);
        // Unrequested blocks are not counted.
        table.peers.get_mut(&0).unwrap().in_hand = Some(BlockHash([9; 32]));
        assert_eq!(to_come(&table), 1);
    }

    #[test]
    fn in_flight_grows_with_received_blocks() {
        assert_eq!(table(&[(None, 0, 0)]).blocks_at_once(0), 16);
        for (blocks, expected) in [(1, 4), (8, 5), (80, 14), (10_000, 128)] {
            let mut table = table(&[(Some(0), 0, 0)]);
            table.peers.get_mut(&0).unwrap().pace.blocks = blocks;
            assert_eq!(table.blocks_at_once(0), expected, "after {blocks}");
        }
    }

    #[test]
    fn new_peers_share_the_first_blocks() {
        let mut table = table(&[(None, 0, 0), (None, 0, 0), (None, 0, 0), (Some(100), 0, 0)]);
        for state in table.peers.values_mut() {
            state.traits.serves_blocks = true;
            state.in_flight.clear();
            state.best = Some((BlockHash([9; 32]), [0; 32]));
        }
        assert_eq!([0, 1, 2, 3].map(|peer| table.stride(peer)), [3, 3, 3, 1]);
        let others: Vec<_> = [1, 2, 3].map(|peer| table.peers.remove(&peer)).into();
        assert_eq!(table.stride(0), 1);
        table.peers.extend((1..).zip(others.into_iter().flatten()));
        table.ask(0, BlockHash([1; 32]), 1, 0);
        assert_eq!([0, 1, 2].map(|peer| table.stride(peer)), [1, 2, 2]);
        table.peers.get_mut(&1).unwrap().pace.lapse(0);
        assert_eq!([1, 2].map(|peer| table.stride(peer)), [1, 1]);
    }

    #[test]
    fn in_flight_limit_is_shared() {
        for (peers, expected) in [(1, 128), (4, 32), (8, 16), (125, 16)] {
            let mut table = table(&vec![(Some(0), 0, 0); peers]);
            for state in table.peers.values_mut() {
                (state.traits.serves_blocks, state.pace.blocks) = (true, 10_000);
            }
            assert_eq!(table.blocks_at_once(0), expected, "{peers} peers");
        }
    }

    #[test]
    fn far_back_blocks_arrive_twice_as_fast_elsewhere() {
        let mut table = table(&[(Some(100), 0, 0), (Some(100), 0, 0)]);
        let blocks: Vec<BlockHash> = (10..20).map(|byte| BlockHash([byte; 32])).collect();
        for (height, block) in blocks.iter().enumerate() {
            table.ask(1, *block, height as u32, 0);
        }
        // A ping and two blocks are 250 ms: in twice that plus 100 ms the other peer sends six.
        let far_back = table.far_back(0);
        let expected: Vec<_> = blocks[5..].iter().map(|block| (1, *block)).collect();
        assert_eq!(far_back, expected.into_iter().collect());
        assert!(table.far_back(1).is_empty());
        // A peer without blocks has no known rate.
        table.peers.get_mut(&0).unwrap().pace.usual = None;
        assert!(table.far_back(0).is_empty());
    }
}
