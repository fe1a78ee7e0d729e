//! Messages of peers: a stream of them is taken apart, and whatever parses is written and read again unchanged.

#![no_main]

use assay_fuzz::messages::{MAGIC, check};
use assay_wire::p2p::{FrameHeader, MESSAGE_BYTES_MAX};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let mut rest = data;
    while let Some((head, after)) = rest.split_first_chunk::<{ FrameHeader::SIZE }>() {
        let header = match FrameHeader::parse(head, MAGIC, MESSAGE_BYTES_MAX) {
            Ok(header) => header,
            Err(error) => {
                assert!(error.offset() < FrameHeader::SIZE);
                return;
            }
        };
        assert_eq!(header.to_bytes(), *head);
        let Some((payload, next)) = after.split_at_checked(header.length as usize) else { return };
        // The checksum is not asked: no mutation would get past it.
        check(header.command, payload);
        rest = next;
    }
});
