//! Blocks in flight.

use std::collections::HashMap;

use assay_wire::BlockHash;

use super::{PeerSync, Table};
use crate::p2p::compact::Partial;

/// Peers asked for each block, in order; near the tip up to three (Core's `MAX_CMPCTBLOCKS_INFLIGHT_PER_BLOCK`).
#[derive(Default)]
pub(super) struct InFlight(HashMap<BlockHash, Vec<Asked>>);

pub(super) struct Asked {
    pub(super) peer: u64,
    pub(super) height: u32,
    pub(super) rebuilding: Option<Rebuilding>,
}

/// State of a reconstruction from a compact block.
pub(super) enum Rebuilding {
    /// The missing transactions are requested.
    Open(Partial),
    Failed,
}

impl InFlight {
    pub(super) fn contains(&self, block: &BlockHash) -> bool {
        self.0.contains_key(block)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn asked(&self, block: &BlockHash) -> &[Asked] {
        self.0.get(block).map_or(&[], Vec::as_slice)
    }

    pub(super) fn of_peer(&mut self, block: &BlockHash, peer: u64) -> Option<&mut Asked> {
        self.0.get_mut(block)?.iter_mut().find(|asked| asked.peer == peer)
    }

    pub(super) fn is_alone(&self, block: &BlockHash) -> bool {
        self.0.keys().all(|other| other == block)
    }

    /// Number of requests over all peers.
    pub(super) fn count(&self) -> usize {
        self.0.values().map(Vec::len).sum()
    }

    fn remove(&mut self, block: &BlockHash, peer: u64) {
        if let Some(asked) = self.0.get_mut(block) {
            asked.retain(|asked| asked.peer != peer);
            if asked.is_empty() {
                self.0.remove(block);
            }
        }
    }
}

impl PeerSync {
    pub(super) fn still_to_come(&self) -> usize {
        let is_in_hand = self.in_hand.is_some_and(|block| self.in_flight.contains(&block));
        self.in_flight.len() - usize::from(is_in_hand)
    }
}

impl Table {
    pub(super) fn expects_none(&self) -> bool {
        self.in_flight.is_empty()
    }

    pub(super) fn ask(&mut self, peer: u64, block: BlockHash, height: u32, now_ms: u64) {
        let Some(state) = self.peers.get_mut(&peer) else { return };
        let asked = self.in_flight.0.entry(block).or_default();
        if asked.iter().any(|asked| asked.peer == peer) {
            return;
        }
        asked.push(Asked { peer, height, rebuilding: None });
        if state.in_flight.is_empty() {
            state.downloading_since_ms = now_ms;
            state.pace.begin_block();
            state.pace.begin();
        }
        state.in_flight.push_back(block);
    }

    /// Removes a request that is answered or abandoned.
    pub(super) fn forget_asked(&mut self, block: &BlockHash, peer: u64, now_ms: u64) {
        if self.in_flight.of_peer(block, peer).is_none() {
            return;
        }
        self.in_flight.remove(block, peer);
        if let Some(state) = self.peers.get_mut(&peer) {
            state.in_hand = state.in_hand.filter(|other| other != block);
            if state.in_flight.front() == Some(block) {
                state.downloading_since_ms = now_ms;
                state.pace.begin_block();
            }
            state.in_flight.retain(|other| other != block);
            state.stalling_since_ms = None;
        }
    }

    pub(super) fn forget_block(&mut self, block: &BlockHash, now_ms: u64) {
        let peers: Vec<u64> = self.in_flight.asked(block).iter().map(|asked| asked.peer).collect();
        for peer in peers {
            self.forget_asked(block, peer, now_ms);
        }
    }

    /// Records the arrival of a block from `bringer`.
    pub(super) fn arrived(&mut self, block: &BlockHash, bringer: u64, now_ms: u64) {
        let asked = self.in_flight.asked(block);
        // Nearly always only the sender's.
        let late = if asked.len() > 1 { self.late_peers(now_ms) } else { Vec::new() };
        for asked in asked {
            let Some(state) = self.peers.get_mut(&asked.peer) else { continue };
            if asked.peer == bringer {
                state.note_block_time(block, now_ms);
            } else if late.contains(&asked.peer) {
                state.pace.lapse(now_ms);
            }
        }
        if let Some(state) = self.peers.get_mut(&bringer) {
            state.pace.recover();
        }
        self.forget_block(block, now_ms);
    }

    /// Removes a peer; its requests are reassigned.
    pub(super) fn forget_peer(&mut self, peer: u64) {
        let Some(state) = self.peers.remove(&peer) else { return };
        for block in &state.in_flight {
            self.in_flight.remove(block, peer);
        }
    }
}
