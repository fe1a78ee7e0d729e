//! Doors to the readers of the files that are kept about peers, for the targets in `fuzz/`. Built under `--cfg fuzzing` alone.

use super::addrman::{self, seal};
use super::{bans, open};

/// What a file of addresses begins with, on regtest.
pub const MAGIC: [u8; 4] = [0xfa, 0xbf, 0xb5, 0xda];

/// Reads `peers.dat`. What was read is whole, and is the same when it is written and read again.
///
/// # Panics
/// When it is not.
pub fn address_file(bytes: &[u8], is_sealed: bool) {
    addrman::fuzz_file(&sealed(bytes, is_sealed), MAGIC);
}

/// Reads `anchors.dat`; what was read is the same when it is written and read again.
///
/// # Panics
/// When it is not.
pub fn anchors_file(bytes: &[u8], is_sealed: bool) {
    let Some(anchors) = open::parse_anchors(&sealed(bytes, is_sealed), MAGIC) else { return };
    let again = open::anchors_file(&anchors, MAGIC);
    assert_eq!(open::parse_anchors(&again, MAGIC), Some(anchors));
}

/// Reads `banlist.json`; what was read is the same when it is written and read again.
///
/// # Panics
/// When it is not.
pub fn ban_list(text: &[u8]) {
    let Some(list) = bans::parse(text) else { return };
    for range in list.keys() {
        assert_eq!(bans::Range::parse(&range.to_string()).as_ref(), Some(range));
        assert!(range.address().is_none_or(|address| range.contains(address)));
    }
    let again = bans::to_text(&list);
    assert_eq!(bans::parse(again.as_bytes()), Some(list));
}

/// With the hash at the end that no mutation would find, or as it is.
fn sealed(bytes: &[u8], is_sealed: bool) -> Vec<u8> {
    if is_sealed { bytes.to_vec() } else { seal(bytes.to_vec()) }
}
