//! Address relay state of one peer.

use assay_wire::p2p::{ADDRESSES_MAX, PeerAddress};

use crate::p2p::recent::Recent;
use crate::p2p::rng::random;

#[expect(clippy::struct_excessive_bools, reason = "each says another thing of the peer")]
pub(crate) struct AddressRelay {
    pub(crate) is_enabled: bool,
    /// True if the peer understands `addrv2` (BIP155).
    pub(in crate::p2p) wants_v2: bool,
    /// True while a `getaddr` is unanswered.
    pub(in crate::p2p) was_asked: bool,
    pub(in crate::p2p) has_asked: bool,
    /// Number of further addresses accepted now.
    pub(in crate::p2p) tokens: f64,
    /// Time of the last refill, microseconds by the node's clock; 0 for never.
    pub(in crate::p2p) counted_us: u64,
    pub(crate) processed: u64,
    pub(crate) rate_limited: u64,
    pub(in crate::p2p) known: Recent,
    pub(in crate::p2p) to_send: Vec<PeerAddress>,
    /// Next announcement, microseconds by the node's clock.
    pub(in crate::p2p) next_us: u64,
    /// Next announcement of our own address; 0 before the first one.
    pub(in crate::p2p) next_own_us: u64,
}

impl Default for AddressRelay {
    fn default() -> Self {
        Self {
            is_enabled: false,
            wants_v2: false,
            was_asked: false,
            has_asked: false,
            tokens: 1.0,
            counted_us: 0,
            processed: 0,
            rate_limited: 0,
            known: Recent::new(KNOWN_MAX),
            to_send: Vec::new(),
            next_us: 0,
            next_own_us: 0,
        }
    }
}

impl AddressRelay {
    pub(in crate::p2p) fn fits(&self, address: &PeerAddress) -> bool {
        self.wants_v2 || address.endpoint.host.fits_v1()
    }

    pub(in crate::p2p) fn push(&mut self, address: &PeerAddress) {
        let endpoint = &address.endpoint;
        if !endpoint.host.is_valid() || self.known.contains(endpoint) || !self.fits(address) {
            return;
        }
        if self.to_send.len() < ADDRESSES_MAX {
            self.to_send.push(*address);
        } else {
            let place = random(ADDRESSES_MAX as u64) as usize;
            self.to_send[place] = *address;
        }
    }

    /// Allows all addresses to be sent again.
    pub(in crate::p2p) fn forget_known(&mut self) {
        self.known = Recent::new(KNOWN_MAX);
    }

    pub(in crate::p2p) fn refill(&mut self, now_us: u64) {
        let passed_us = now_us.saturating_sub(self.counted_us);
        if self.counted_us != 0 && self.tokens < TOKENS_MAX {
            let added = passed_us as f64 / 1e6 * TOKENS_PER_S;
            self.tokens = (self.tokens + added).min(TOKENS_MAX);
        }
        self.counted_us = now_us;
    }

    /// Takes the addresses that the peer does not know.
    pub(in crate::p2p) fn take(&mut self) -> Vec<PeerAddress> {
        let mut taken = std::mem::take(&mut self.to_send);
        taken.retain(|address| {
            let is_new = !self.known.contains(&address.endpoint);
            if is_new {
                self.known.insert(&address.endpoint);
            }
            is_new
        });
        taken
    }
}

/// Size of Core's filter of known addresses.
const KNOWN_MAX: usize = 5000;
/// Core `net_processing.cpp`, `MAX_ADDR_RATE_PER_SECOND`, `MAX_ADDR_PROCESSING_TOKEN_BUCKET`.
const TOKENS_PER_S: f64 = 0.1;
const TOKENS_MAX: f64 = ADDRESSES_MAX as f64;
