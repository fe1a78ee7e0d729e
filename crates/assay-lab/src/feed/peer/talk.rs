//! State of a peer connection.

use std::collections::HashMap;
use std::sync::Arc;

use assay_wire::p2p::{HEADERS_MAX, Locator};
use assay_wire::{BlockHash, Header};

use crate::feed::ready::Ready;
use crate::results::SeenAs;

/// Shared by the reading and the feeding thread.
#[derive(Default)]
pub(crate) struct Talk {
    pub(super) is_ready: bool,
    /// Reason for the end of the connection.
    pub(super) closed: Option<String>,
    /// Headers from height 1 up to the last announced block.
    headers: Vec<Header>,
    heights: HashMap<BlockHash, usize>,
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
    pub(super) answer: Option<Vec<BlockHash>>,
    pub(super) looked_for: Option<BlockHash>,
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
        self.txs = vec![TxState::default(); block.tx_count()];
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
        let mut parents = block.parents(at).filter_map(|txid| block.find(&txid.0));
        let is_orphan = parents.any(|parent| !self.txs[parent].is_sent);
        self.stamps.first_tx_at_s.get_or_insert(sent_s);
        self.stamps.last_tx_at_s = Some(sent_s);
        self.stamps.txs += 1;
        self.stamps.tx_bytes += block.tx(at).len() as u64;
        self.stamps.orphans += u64::from(is_orphan);
    }

    pub(super) fn open_block(&mut self, header: Header) {
        self.is_open = true;
        self.add_header(header);
    }

    pub(super) fn add_header(&mut self, header: Header) {
        self.heights.insert(header.hash(), self.headers.len());
        self.headers.push(header);
    }

    /// Headers after the first known block of a locator, or from the first one if none is known.
    pub(super) fn headers_for(&self, locator: &Locator<'_>) -> Vec<Header> {
        let known = locator.hashes.iter().find_map(|hash| self.heights.get(&hash));
        let from = known.map_or(0, |at| at + 1);
        self.headers[from..].iter().take(HEADERS_MAX).copied().collect()
    }

    pub(super) fn see(&mut self, hashes: &[BlockHash], as_what: SeenAs, at_s: f64) {
        if self.sighting.is_none() && self.looked_for.is_some_and(|hash| hashes.contains(&hash)) {
            self.sighting = Some(Sighting { at_s, as_what });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_follow_the_locator() {
        let headers: Vec<Header> =
            (0..5).map(|byte| Header::parse(&[byte; Header::SIZE])).collect();
        let mut talk = Talk::default();
        for header in &headers {
            talk.add_header(*header);
        }
        let headers_for = |hashes: &[BlockHash]| {
            talk.headers_for(&Locator { version: 0, hashes: hashes.into(), stop: BlockHash::ZERO })
        };
        let unknown = BlockHash([9; 32]);
        assert_eq!(headers_for(&[unknown]), headers);
        assert_eq!(headers_for(&[unknown, headers[2].hash()]), headers[3..]);
        assert_eq!(headers_for(&[]), headers);
    }

    #[test]
    fn the_first_announcement_counts() {
        let mut talk = Talk::default();
        let [one, two] = [BlockHash([1; 32]), BlockHash([2; 32])];
        talk.see(&[one], SeenAs::Inv, 1.0);
        assert_eq!(talk.sighting, None, "nothing is looked for");
        talk.looked_for = Some(one);
        talk.see(&[two], SeenAs::Inv, 1.0);
        talk.see(&[two, one], SeenAs::Compact, 2.0);
        talk.see(&[one], SeenAs::Headers, 3.0);
        assert_eq!(talk.sighting, Some(Sighting { at_s: 2.0, as_what: SeenAs::Compact }));
    }
}
