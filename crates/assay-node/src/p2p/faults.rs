//! Punishment of misbehaving peers.

use assay_engine::{BlockFault, FaultKind};
use assay_wire::{ParseError, ParseErrorKind};

use super::dns::same_host;
use super::peers::{Connection, Peer, Peers};
use super::permissions::Permissions;

impl Peers {
    /// Handles a rejected block or header. The kind of fault determines the punishment (Core `net_processing.cpp`,
    /// `MaybePunishNodeForBlock`). Compact blocks may be relayed before validation.
    pub(super) fn punish(&self, peer: &Peer, fault: &BlockFault, message: &str, is_compact: bool) {
        let is_guilty = match fault.kind {
            // The work was not checked, or a clock may be wrong.
            FaultKind::LittleWork | FaultKind::TimeTooNew => false,
            // An outbound peer follows the wrong chain; an inbound one may only relay.
            FaultKind::KnownInvalid => !is_compact && !peer.connection.is_inbound(),
            FaultKind::Consensus | FaultKind::Mutated if is_compact => false,
            FaultKind::Mutated => {
                let (reason, evidence) = (&fault.reason, &fault.debug);
                tracing::debug!(target: "validation", "Block mutated: {reason}, {evidence}");
                net!("Received mutated block from peer={}", peer.id);
                return self.misbehaving(peer, "mutated block");
            }
            FaultKind::Consensus
            | FaultKind::InvalidHeader
            | FaultKind::MissingParent
            | FaultKind::InvalidParent => true,
        };
        if is_guilty {
            self.misbehaving(peer, message);
        } else if !message.is_empty() {
            net!("peer={}: {message}", peer.id);
        }
    }

    /// Disconnects a peer that broke the rules, unless it has `noban`.
    pub(super) fn misbehaving(&self, peer: &Peer, message: &str) {
        let prefix = if message.is_empty() { "" } else { ": " };
        net!("Misbehaving: peer={}{prefix}{message}", peer.id);
        if peer.permissions.has(Permissions::NO_BAN) {
            tracing::warn!("Not punishing noban peer {}!", peer.id);
        } else if peer.connection == Connection::Manual {
            tracing::warn!("Not punishing manually connected peer {}!", peer.id);
        } else if peer.address.host.is_local() {
            // All Tor peers, and all local ones, share one address.
            let kind = if peer.is_onion { "inbound onion" } else { "local" };
            net!("Warning: disconnecting but not discouraging {kind} peer {}!", peer.id);
            peer.close();
        } else {
            net!("Disconnecting and discouraging peer {}!", peer.id);
            let host = peer.address.host;
            if host.is_valid() {
                self.bans.discourage(&host);
            }
            let peers = self.list();
            let same = peers.iter().filter(|other| same_host(&other.address.host, &host));
            same.for_each(|other| other.close());
            peer.close();
        }
    }
}

/// Core's log text for a rejection (`validation.cpp`, `AcceptBlockHeader`, `AcceptBlock`).
pub(super) fn described(fault: &BlockFault) -> String {
    let BlockFault { hash, reason, debug, .. } = fault;
    if debug.is_empty() {
        format!("Block not accepted: {hash}, {reason}")
    } else {
        format!("Block not accepted: {hash}, {reason}, {debug}")
    }
}

/// Logs a malformed message, which is ignored as in Core.
pub(super) fn log_malformed(command: &str, bytes: usize, error: &ParseError, peer: &Peer) {
    let ParseError { offset, kind } = error;
    // Core's wording (`serialize.h`, `streams.h`, `primitives/transaction.h`); its tests match it.
    let words = match kind {
        ParseErrorKind::NonCanonicalSize => "non-canonical ReadCompactSize()".to_owned(),
        ParseErrorKind::OversizedCount => "ReadCompactSize(): size too large".to_owned(),
        ParseErrorKind::Truncated => "DataStream::read(): end of data".to_owned(),
        ParseErrorKind::SuperfluousWitness => "Superfluous witness record".to_owned(),
        ParseErrorKind::UnknownFlag => "Unknown transaction optional data".to_owned(),
        other => other.to_string(),
    };
    net!(
        "ProcessMessages({command}, {bytes} bytes): Exception '{words}' at byte {offset} caught, peer={}",
        peer.id
    );
}
