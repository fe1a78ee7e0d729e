//! State of a peer connection.

use std::collections::HashMap;
use std::sync::Arc;

use crate::feed::ready::Ready;
use crate::results::SeenAs;
use crate::wire::tx::each_parent;
use crate::wire::{HEADERS_MAX, Hash, RawHeader, double_sha256, read_count};

/// Shared by the reading and the feeding thread.
#[derive(Default)]
pub(crate) struct Talk {
    pub(super) is_ready: bool,
    /// Reason for the end of the connection.
    pub(super) closed: Option<String>,
    /// Headers from height 1 up to the last announced block.
    headers: Vec<RawHeader>,
    heights: HashMap<Hash, usize>,
    pub(super) block: Option<Arc<Ready>>,
    /// True if the block itself may be requested.
    pub(super) is_open: bool,
    pub(super) prefilled: Vec<usize>,
    /// True if the node selected this peer for unsolicited compact blocks.
    pub(super) is_chosen: bool,
    txs: Vec<TxState>,
    pub(super) announced: usize,
    pub(super) asked: usize,
    pub(super) stamps: Stamps,
    pub(super) pong: Option<(u64, f64)>,
    /// Hashes of the latest `headers`.
    pub(super) answer: Option<Vec<Hash>>,
    pub(super) looked_for: Option<Hash>,
    pub(super) sighting: Option<Sighting>,
}

#[derive(Clone, Copy, Default)]
struct TxState {
    is_announced: bool,
    is_asked: bool,
    is_sent: bool,
}

/// Times of one block and its transactions on the run's clock.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Stamps {
    pub(crate) first_tx_at_s: Option<f64>,
    pub(crate) last_tx_at_s: Option<f64>,
    /// Number and size of the transactions sent.
    pub(crate) txs: u64,
    pub(crate) tx_bytes: u64,
    /// Sent before a parent in the block.
    pub(crate) orphans: u64,
    /// Request for the compact or full block.
    pub(crate) asked_at_s: Option<f64>,
    pub(crate) block_at_s: Option<f64>,
    pub(crate) compact_at_s: Option<f64>,
    pub(crate) missing_asked_at_s: Option<f64>,
    pub(crate) missing_sent_at_s: Option<f64>,
    /// Number and size of the compact block's transactions that the node requested.
    pub(crate) missing: u64,
    pub(crate) missing_bytes: u64,
}

/// The node's announcement of the block.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Sighting {
    pub(crate) at_s: f64,
    pub(crate) as_what: SeenAs,
}

impl Talk {
    pub(super) fn take_up(&mut self, block: Arc<Ready>) {
        self.txs = vec![TxState::default(); block.txs.len()];
        (self.announced, self.asked, self.is_open) = (0, 0, false);
        self.stamps = Stamps::default();
        self.prefilled = vec![0];
        self.block = Some(block);
    }

    pub(super) fn announce(&mut self, places: &[usize]) {
        for &at in places {
            self.announced += usize::from(!std::mem::replace(&mut self.txs[at].is_announced, true));
        }
    }

    /// Records a request for a transaction; an orphan's parent may be requested before its announcement.
    pub(super) fn ask(&mut self, at: usize) {
        let Some(tx) = self.txs.get_mut(at) else { return };
        self.announced += usize::from(!std::mem::replace(&mut tx.is_announced, true));
        self.asked += usize::from(!std::mem::replace(&mut tx.is_asked, true));
    }

    pub(super) fn note_tx(&mut self, at: usize, sent_s: f64) {
        let Some(block) = self.block.clone() else { return };
        if std::mem::replace(&mut self.txs[at].is_sent, true) {
            return;
        }
        let mut is_orphan = false;
        each_parent(block.tx(at), |txid| {
            is_orphan |= block.find(txid).is_some_and(|parent| !self.txs[parent].is_sent);
        });
        self.stamps.first_tx_at_s.get_or_insert(sent_s);
        self.stamps.last_tx_at_s = Some(sent_s);
        self.stamps.txs += 1;
        self.stamps.tx_bytes += block.tx(at).len() as u64;
        self.stamps.orphans += u64::from(is_orphan);
    }

    pub(super) fn open_block(&mut self, header: RawHeader) {
        self.is_open = true;
        self.add_header(header);
    }

    pub(super) fn add_header(&mut self, header: RawHeader) {
        self.heights.insert(double_sha256(&header), self.headers.len());
        self.headers.push(header);
    }

    /// Headers after the first known block of a locator, or from the first one if none is known.
    pub(super) fn headers_for(&self, payload: &[u8]) -> Vec<RawHeader> {
        let mut rest = payload.get(4..).unwrap_or_default();
        let count = read_count(&mut rest).unwrap_or(0);
        let mut hashes = rest.chunks_exact(32).take(count);
        let known = hashes.find_map(|hash| {
            let hash: Hash = hash.try_into().expect("chunks of 32");
            self.heights.get(&hash)
        });
        let from = known.map_or(0, |at| at + 1);
        self.headers[from..].iter().take(HEADERS_MAX).copied().collect()
    }

    pub(super) fn see(&mut self, hashes: &[Hash], as_what: SeenAs, at_s: f64) {
        if self.sighting.is_none() && self.looked_for.is_some_and(|hash| hashes.contains(&hash)) {
            self.sighting = Some(Sighting { at_s, as_what });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::HEADER_BYTES;

    #[test]
    fn headers_follow_the_locator() {
        let headers: Vec<RawHeader> = (0..5).map(|byte| [byte; HEADER_BYTES]).collect();
        let mut talk = Talk::default();
        for header in &headers {
            talk.add_header(*header);
        }
        let locator = |hashes: &[Hash]| {
            let mut payload = vec![0; 4];
            payload.push(hashes.len() as u8);
            payload.extend(hashes.concat());
            payload.extend([0; 32]);
            payload
        };
        assert_eq!(talk.headers_for(&locator(&[[9; 32]])), headers);
        let known = double_sha256(&headers[2]);
        assert_eq!(talk.headers_for(&locator(&[[9; 32], known])), headers[3..]);
        assert_eq!(talk.headers_for(&[]), headers);
    }

    #[test]
    fn the_first_announcement_counts() {
        let mut talk = Talk::default();
        talk.see(&[[1; 32]], SeenAs::Inv, 1.0);
        assert_eq!(talk.sighting, None, "nothing is looked for");
        talk.looked_for = Some([1; 32]);
        talk.see(&[[2; 32]], SeenAs::Inv, 1.0);
        talk.see(&[[2; 32], [1; 32]], SeenAs::Compact, 2.0);
        talk.see(&[[1; 32]], SeenAs::Headers, 3.0);
        assert_eq!(talk.sighting, Some(Sighting { at_s: 2.0, as_what: SeenAs::Compact }));
    }
}
