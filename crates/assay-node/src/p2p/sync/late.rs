//! Peers that take much longer for a block than the others: what they were asked for is asked of others as well. Core waits until
//! such a peer holds up its whole window of 1,024 blocks, and at the end of a chain for ten minutes.

use assay_wire::BlockHash;

use super::{PeerSync, Table};

impl Table {
    /// Peers that have been at one block for much longer than peers usually are; none where no other peer sends blocks.
    pub(super) fn late_peers(&self, now_ms: u64) -> Vec<u64> {
        let Some(usual_ms) = self.usual_block_ms() else { return Vec::new() };
        let patience_ms = (FACTOR * usual_ms).max(PATIENCE_LEAST_MS);
        let is_late = |state: &PeerSync| {
            !state.under_way.is_empty() && now_ms > state.downloading_since_ms + patience_ms
        };
        let late = self.peers.iter().filter(|(_, state)| is_late(state));
        late.map(|(peer, _)| *peer).collect()
    }

    /// The median over peers that have sent blocks.
    fn usual_block_ms(&self) -> Option<u64> {
        let mut times: Vec<u64> =
            self.peers.values().filter_map(|state| state.pace.block_ms).collect();
        let middle = times.len().checked_sub(1)? / 2;
        Some(*times.select_nth_unstable(middle).1)
    }
}

/// How fast a peer sends blocks.
#[derive(Default)]
pub(super) struct Pace {
    /// How long it takes for a block, milliseconds, on average; the latest count most.
    block_ms: Option<u64>,
    /// Another peer was asked for a block of its, and was faster: it is asked for one at a time until it sends one.
    pub(super) is_slow: bool,
}

impl PeerSync {
    /// A block of this peer has come.
    pub(super) fn note_block_time(&mut self, block: &BlockHash, now_ms: u64) {
        if self.under_way.front() != Some(block) {
            return;
        }
        let took_ms = now_ms.saturating_sub(self.downloading_since_ms);
        self.pace.block_ms = Some(match self.pace.block_ms {
            Some(before_ms) => (before_ms * (WEIGHT - 1) + took_ms) / WEIGHT,
            None => took_ms,
        });
    }
}

/// So many times the usual time is late.
const FACTOR: u64 = 4;
/// As Core's least patience with a peer that holds up the window (`net_processing.cpp`, `BLOCK_STALLING_TIMEOUT_DEFAULT`).
const PATIENCE_LEAST_MS: u64 = 2_000;
/// Of so many blocks the latest makes one part of the average.
const WEIGHT: u64 = 8;

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use super::*;

    fn table(peers: &[(Option<u64>, u64)]) -> Table {
        let mut table = Table::default();
        for (id, (block_ms, since)) in peers.iter().enumerate() {
            let under_way = VecDeque::from([BlockHash([id as u8; 32])]);
            let state = PeerSync {
                pace: Pace { block_ms: *block_ms, is_slow: false },
                downloading_since_ms: *since,
                under_way,
                ..PeerSync::default()
            };
            table.peers.insert(id as u64, state);
        }
        table
    }

    #[test]
    fn late_is_who_takes_much_longer_than_the_others() {
        let table = table(&[(Some(1_000), 9_000), (Some(1_100), 9_500), (None, 5_000)]);
        assert!(table.late_peers(8_999).is_empty());
        assert_eq!(table.late_peers(9_001), [2]);
    }

    #[test]
    fn without_others_to_compare_with_no_peer_is_late() {
        assert!(table(&[(None, 0)]).late_peers(1_000_000).is_empty());
    }

    #[test]
    fn a_fast_network_leaves_two_seconds() {
        let table = table(&[(Some(5), 10_000), (None, 8_000)]);
        assert!(table.late_peers(10_000).is_empty());
        assert_eq!(table.late_peers(10_001), [1]);
    }

    #[test]
    fn a_peer_slower_than_another_is_asked_for_less_until_it_sends_a_block() {
        let mut table = table(&[(Some(5), 10_000), (None, 5_000)]);
        let block = BlockHash([1; 32]);
        table.ask(1, block, 1, 5_000);
        table.ask(0, block, 1, 10_000);
        table.arrived(&block, 0, 10_010);
        assert!(table.peers[&1].pace.is_slow && !table.peers[&0].pace.is_slow);
        let next = BlockHash([7; 32]);
        table.ask(1, next, 2, 10_020);
        table.arrived(&next, 1, 10_030);
        assert!(!table.peers[&1].pace.is_slow);
    }
}
