//! Messages of peers, and the rules that one that parses must keep.

use assay_wire::p2p::{
    BlockTxs, BlockTxsRequest, COMPACT_TXS_MAX, Command, CompactBlock, FrameHeader, Host,
    MESSAGE_BYTES_MAX, Message,
};
use assay_wire::{Block, Encoding, Transaction};

/// Magic of regtest.
pub const MAGIC: [u8; 4] = [0xfa, 0xbf, 0xb5, 0xda];

/// Names of messages, including names unknown to this node.
pub const COMMANDS: [&str; 41] = [
    "version",
    "verack",
    "ping",
    "pong",
    "sendheaders",
    "sendaddrv2",
    "wtxidrelay",
    "getaddr",
    "mempool",
    "feefilter",
    "sendcmpct",
    "getheaders",
    "getblocks",
    "headers",
    "inv",
    "getdata",
    "notfound",
    "addr",
    "addrv2",
    "block",
    "tx",
    "cmpctblock",
    "getblocktxn",
    "blocktxn",
    "filterload",
    "filteradd",
    "filterclear",
    "merkleblock",
    "getcfilters",
    "cfilter",
    "getcfheaders",
    "cfheaders",
    "getcfcheckpt",
    "cfcheckpt",
    "sendtxrcncl",
    "reqrecon",
    "sketch",
    "sendaddr",
    "reject",
    "alert",
    "unknown",
];

pub fn command(kind: u8) -> Command {
    Command::new(COMMANDS[usize::from(kind) % COMMANDS.len()])
}

/// Reads a payload. What parses is written and read again unchanged; a fault lies inside the payload.
pub fn check(command: Command, payload: &[u8]) {
    let message = match Message::parse(command, payload) {
        Ok(message) => message,
        Err(error) => {
            assert!(error.offset <= payload.len());
            return;
        }
    };
    let bytes = message.to_bytes(MAGIC);
    let (head, again) = bytes.split_first_chunk().expect("a header comes first");
    let head = FrameHeader::parse(head, MAGIC, u32::MAX).expect("our own header");
    head.check(again).expect("our own checksum");
    assert_eq!(head.command, command);
    assert_eq!(Message::parse(command, again), Ok(message));
    read_later(&message);
    addresses(&message);
}

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

/// Parts of a payload that a node parses only later are written and read again unchanged, too.
fn read_later(message: &Message<'_>) {
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
        Message::Block(payload) => {
            let Ok(block) = Block::parse(payload.to_vec(), Encoding::Segwit) else { return };
            assert!(block.txs().count() == block.tx_count());
        }
        Message::Tx(payload) => drop(Transaction::parse(payload.to_vec(), Encoding::Segwit)),
        _ => {}
    }
}

/// Messages of peers: a stream is taken apart, and each message that parses is written and read again unchanged.
pub fn p2p(data: &[u8]) {
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
}

/// One payload, under the name of any message: what parses is written and read again unchanged.
pub fn message(data: &[u8]) {
    if let Some((kind, payload)) = data.split_first() {
        check(command(*kind), payload);
    }
}
