//! State of a peer connection.

use std::collections::HashMap;
use std::sync::Arc;

use assay_wire::p2p::{HEADERS_MAX, Locator};
use assay_wire::{BlockHash, Header};

use crate::feed::Sent;
use crate::feed::ready::Ready;
use crate::results::{BlockRelay, SeenAs};

/// Shared by the reading and the feeding thread.
#[derive(Default)]
pub(crate) struct Talk {
    pub(in crate::feed) is_ready: bool,
    /// Reason for the end of the connection.
    pub(in crate::feed) closed: Option<String>,
    /// Headers from height 1 up to the last announced block.
    headers: Vec<Header>,
    heights: HashMap<BlockHash, usize>,
    pub(in crate::feed) block: Option<Arc<Ready>>,
    /// True if the block itself may be requested.
    pub(in crate::feed) is_open: bool,
    pub(in crate::feed) prefilled: Vec<usize>,
    /// True if the node selected this peer for unsolicited compact blocks; it ignores others (Core `net_processing.cpp`,
    /// CMPCTBLOCK).
    pub(in crate::feed) is_chosen: bool,
    txs: Vec<TxState>,
    pub(in crate::feed) announced: usize,
    pub(in crate::feed) asked: usize,
    pub(in crate::feed) stamps: Stamps,
    pub(in crate::feed) pong: Option<(u64, f64)>,
    /// Hashes of the latest `headers`.
    pub(in crate::feed) answer: Option<Vec<BlockHash>>,
    /// Block whose announcement by the node is watched for.
    pub(in crate::feed) looked_for: Option<BlockHash>,
    pub(in crate::feed) sighting: Option<Sighting>,
}

#[derive(Clone, Copy, Default)]
struct TxState {
    is_announced: bool,
    is_asked: bool,
    is_sent: bool,
}

/// Transactions sent, and messages about their block, with times on the run's clock.
#[derive(Clone, Default)]
pub(crate) struct Stamps {
    pub(crate) sent: Sent,
    pub(crate) relay: BlockRelay,
}

/// The node's announcement of the block.
pub(crate) type Sighting = (f64, SeenAs);

impl Talk {
    /// Serves a block's transactions, and the block itself after its announcement.
    pub(in crate::feed) fn take_up(&mut self, block: Arc<Ready>) {
        self.txs = vec![TxState::default(); block.tx_count()];
        (self.announced, self.asked, self.is_open) = (0, 0, false);
        self.stamps = Stamps::default();
        self.prefilled = vec![0];
        self.block = Some(block);
    }

    pub(in crate::feed) fn announce(&mut self, places: &[usize]) {
        for &at in places {
            self.announced += usize::from(!std::mem::replace(&mut self.txs[at].is_announced, true));
        }
    }

    /// Records a request for a transaction; an orphan's parent may be requested before its announcement.
    pub(in crate::feed) fn ask(&mut self, at: usize) {
        let Some(tx) = self.txs.get_mut(at) else { return };
        self.announced += usize::from(!std::mem::replace(&mut tx.is_announced, true));
        self.asked += usize::from(!std::mem::replace(&mut tx.is_asked, true));
    }

    pub(in crate::feed) fn note_tx(&mut self, at: usize, sent_s: f64) {
        let Some(block) = self.block.clone() else { return };
        if std::mem::replace(&mut self.txs[at].is_sent, true) {
            return;
        }
        let mut parents = block.parents(at).filter_map(|txid| block.find(&txid.0));
        let is_orphan = parents.any(|parent| !self.txs[parent].is_sent);
        let sent = &mut self.stamps.sent;
        sent.first_at_s.get_or_insert(sent_s);
        sent.accepted += 1;
        sent.bytes += block.tx(at).len() as u64;
        sent.orphans += u64::from(is_orphan);
    }

    /// Lets the node request the block from now on.
    pub(in crate::feed) fn open_block(&mut self, header: Header) {
        self.is_open = true;
        self.add_header(header);
    }

    /// Adds a header of the node's chain, whose block it may request again.
    pub(in crate::feed) fn add_header(&mut self, header: Header) {
        self.heights.insert(header.hash(), self.headers.len());
        self.headers.push(header);
    }

    /// Headers after the first known block of a locator, or from the first one if none is known.
    pub(in crate::feed) fn headers_for(&self, locator: &Locator<'_>) -> Vec<Header> {
        let known = locator.hashes.iter().find_map(|hash| self.heights.get(&hash));
        let from = known.map_or(0, |at| at + 1);
        self.headers[from..].iter().take(HEADERS_MAX).copied().collect()
    }

    pub(in crate::feed) fn see(&mut self, hashes: &[BlockHash], as_what: SeenAs, at_s: f64) {
        if self.sighting.is_none() && self.looked_for.is_some_and(|hash| hashes.contains(&hash)) {
            self.sighting = Some((at_s, as_what));
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
        assert_eq!(talk.sighting, Some((2.0, SeenAs::Compact)));
    }
}
