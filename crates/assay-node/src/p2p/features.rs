//! Feature negotiation before `verack` (BIP434). No feature is known yet; the message rules apply.

use assay_wire::Reader;
use assay_wire::p2p::Command;

use super::ended::Ended;
use super::peers::{Peer, printable};

/// Handles `feature`. An error ends the connection (Core `net_processing.cpp`, FEATURE).
pub(super) fn handle_feature(peer: &Peer, payload: &[u8]) -> Result<(), Ended> {
    let version = peer.facts().version.min(super::PROTOCOL_VERSION);
    if peer.is_ready() {
        return Err(Ended::Late { command: Command::new("feature") });
    }
    if version < FEATURES {
        return Err(Ended::FeatureVersion { version });
    }
    let name = parse(payload).ok_or(Ended::FeaturePayload)?;
    net!("unknown feature advertised: {}", printable(name));
    Ok(())
}

/// Feature name, 4 to 80 bytes; `None` unless at most 512 bytes of data follow.
fn parse(payload: &[u8]) -> Option<&[u8]> {
    let mut reader = Reader::new(payload, 0);
    let mut counted = |bytes_max: usize| {
        let length = reader.count(1).ok().filter(|length| *length <= bytes_max)?;
        reader.bytes(length).ok()
    };
    let (name, _) = (counted(NAME_BYTES_MAX)?, counted(DATA_BYTES_MAX)?);
    (name.len() >= NAME_BYTES_MIN && reader.remaining() == 0).then_some(name)
}

/// Minimum protocol version.
const FEATURES: i32 = 70017;
/// Name length (Core `protocol.h`, `MAX_FEATUREID_LENGTH`).
const NAME_BYTES_MIN: usize = 4;
const NAME_BYTES_MAX: usize = 80;
/// Core `protocol.h`, `MAX_FEATUREDATA_LENGTH`.
const DATA_BYTES_MAX: usize = 512;
