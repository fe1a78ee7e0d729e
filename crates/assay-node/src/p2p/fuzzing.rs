//! Access to the parsers of peer files for the targets in `fuzz/`, built only under `--cfg fuzzing`.

use super::addrman::{self, seal};
use super::{bans, outbound};

/// Magic of regtest.
pub const MAGIC: [u8; 4] = [0xfa, 0xbf, 0xb5, 0xda];

/// Reads `peers.dat`; checks consistency and the round trip.
///
/// # Panics
/// On a failed check.
pub fn address_file(bytes: &[u8], is_sealed: bool) {
    addrman::fuzz_file(&sealed(bytes, is_sealed), MAGIC);
}

/// Reads `anchors.dat` and checks the round trip.
///
/// # Panics
/// On a failed check.
pub fn anchors_file(bytes: &[u8], is_sealed: bool) {
    let Some(anchors) = outbound::parse_anchors(&sealed(bytes, is_sealed), MAGIC) else { return };
    let again = outbound::anchors_file(&anchors, MAGIC);
    assert_eq!(outbound::parse_anchors(&again, MAGIC), Some(anchors));
}

/// Reads `banlist.json` and checks the round trip.
///
/// # Panics
/// On a failed check.
pub fn ban_list(text: &[u8]) {
    let Some(list) = bans::parse(text) else { return };
    for range in list.keys() {
        assert_eq!(bans::Range::parse(&range.to_string()).as_ref(), Some(range));
        assert!(range.address().is_none_or(|address| range.contains(address)));
    }
    let again = bans::to_text(&list);
    assert_eq!(bans::parse(again.as_bytes()), Some(list));
}

/// Appends the checksum if `is_sealed`, which mutations would not find.
fn sealed(bytes: &[u8], is_sealed: bool) -> Vec<u8> {
    if is_sealed { bytes.to_vec() } else { seal(bytes.to_vec()) }
}
