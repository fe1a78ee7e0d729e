//! Messages of peers: a stream of them is taken apart, and whatever parses is written and read again unchanged.

#![no_main]

use assay_wire::p2p::{FrameHeader, MESSAGE_BYTES_MAX, Message};
use libfuzzer_sys::fuzz_target;

const MAGIC: [u8; 4] = [0xfa, 0xbf, 0xb5, 0xda];

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
        match Message::parse(header.command, payload) {
            Ok(message) => {
                let bytes = message.to_bytes(MAGIC);
                let (again, payload) = bytes.split_first_chunk().expect("a header comes first");
                let again = FrameHeader::parse(again, MAGIC, u32::MAX).expect("our own header");
                again.check(payload).expect("our own checksum");
                assert_eq!(Message::parse(again.command, payload), Ok(message));
            }
            Err(error) => assert!(error.offset <= payload.len()),
        }
        rest = next;
    }
});
