//! Messages of peers: a stream of them is taken apart, and whatever parses is written and read again unchanged.

#![no_main]

use assay_wire::Encoding;
use assay_wire::p2p::{
    BlockTxs, BlockTxsRequest, COMPACT_TXS_MAX, CompactBlock, FrameHeader, Host, MESSAGE_BYTES_MAX,
    Message,
};
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
                compact_blocks(&message);
                addresses(&message);
            }
            Err(error) => assert!(error.offset <= payload.len()),
        }
        rest = next;
    }
});

/// The text of an address is read again as that address, unless it says of another network (CJDNS) or names a source.
fn addresses(message: &Message<'_>) {
    let Message::AddrV2(list) = message else { return };
    for host in list.iter().map(|address| address.endpoint.host) {
        match host {
            Host::Internal(_) => assert!(!host.is_valid()),
            Host::Cjdns(ip) => assert_eq!(Host::parse(&host.to_string()), Some(Host::from_v1(ip))),
            _ => assert_eq!(Host::parse(&host.to_string()), Some(host)),
        }
        assert!(!host.is_routable() || host.is_valid());
        assert!(!host.group().is_empty());
    }
}

/// What stands in messages about compact blocks is written and read again unchanged, too.
fn compact_blocks(message: &Message<'_>) {
    let mut written = Vec::new();
    match message {
        Message::CompactBlock(payload) => {
            let parse = |payload| CompactBlock::parse(payload, Encoding::Segwit, COMPACT_TXS_MAX);
            let Ok(block) = parse(payload) else { return };
            assert!(block.tx_count() <= COMPACT_TXS_MAX);
            block.encode(&mut written);
            assert_eq!(parse(&written).as_ref(), Ok(&block));
        }
        Message::GetBlockTxs(payload) => {
            let parse = |payload| BlockTxsRequest::parse(payload, COMPACT_TXS_MAX);
            let Ok(request) = parse(payload) else { return };
            assert!(request.indexes.is_sorted());
            request.encode(&mut written);
            assert_eq!(parse(&written), Ok(request));
        }
        Message::BlockTxs(payload) => {
            let parse = |payload| BlockTxs::parse(payload, Encoding::Segwit);
            let Ok(txs) = parse(payload) else { return };
            txs.encode(&mut written);
            assert_eq!(parse(&written).as_ref(), Ok(&txs));
        }
        _ => {}
    }
}
