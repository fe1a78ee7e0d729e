//! Feature negotiation before `verack` (BIP434). No feature is known yet; the message rules apply.

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
    let (name, rest) = counted(payload, NAME_BYTES_MAX)?;
    let (_, rest) = counted(rest, DATA_BYTES_MAX)?;
    (name.len() >= NAME_BYTES_MIN && rest.is_empty()).then_some(name)
}

/// Splits off at most `max` bytes with a compact size prefix; `max` is below 65,536.
fn counted(bytes: &[u8], max: usize) -> Option<(&[u8], &[u8])> {
    let (&first, rest) = bytes.split_first()?;
    let (length, rest) = if first < LONG {
        (usize::from(first), rest)
    } else {
        let (length, rest) = rest.split_first_chunk()?;
        let length = usize::from(u16::from_le_bytes(*length));
        if first != LONG || length < usize::from(LONG) {
            return None;
        }
        (length, rest)
    };
    if length > max { None } else { rest.split_at_checked(length) }
}

/// Prefix of a compact size in the next two bytes.
const LONG: u8 = 0xfd;
/// Minimum protocol version.
const FEATURES: i32 = 70017;
/// Name length (Core `protocol.h`, `MAX_FEATUREID_LENGTH`).
const NAME_BYTES_MIN: usize = 4;
const NAME_BYTES_MAX: usize = 80;
/// Core `protocol.h`, `MAX_FEATUREDATA_LENGTH`.
const DATA_BYTES_MAX: usize = 512;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checks_lengths_of_names_and_data() {
        let feature = |name: usize, data: usize| {
            let mut payload = Vec::new();
            for length in [name, data] {
                assay_wire::encode::compact_size(&mut payload, length as u64);
                payload.resize(payload.len() + length, b'a');
            }
            payload
        };
        for (name, data, is_right) in [
            (3, 0, false),
            (4, 0, true),
            (80, 512, true),
            (80, 253, true),
            (81, 0, false),
            (4, 513, false),
            (300, 0, false),
            (4, 70_000, false),
        ] {
            assert_eq!(parse(&feature(name, data)).is_some(), is_right, "{name} {data}");
        }
        let right = feature(4, 300);
        for length in 0..right.len() {
            assert_eq!(parse(&right[..length]), None, "cut to {length}");
        }
        assert_eq!(parse(&[&right[..], &[0]].concat()), None, "bytes follow");
        // Non-minimal encodings: 4 in three bytes, 0 in five.
        assert_eq!(parse(b"\xfd\x04\0aaaa\0"), None);
        assert_eq!(parse(b"\x04aaaa\xfe\0\0\0\0"), None);
    }
}
