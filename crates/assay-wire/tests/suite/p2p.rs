//! Round trips, published messages and hostile bytes for the peer-to-peer protocol.

use assay_wire::p2p::{
    Command, Endpoint, FrameError, FrameHeader, Host, INVENTORY_MAX, Inventory, InventoryKind,
    Items, LOCATOR_MAX, Locator, Message, NetAddress, PeerAddress, TimedAddress, Version,
};
use assay_wire::{BlockHash, Header, ParseErrorKind};
use proptest::prelude::*;

const MAGIC: [u8; 4] = [0xf9, 0xbe, 0xb4, 0xd9];

/// Frames a message, parses it and compares.
fn check(message: &Message<'_>) {
    let bytes = message.to_bytes(MAGIC);
    let (head, payload) = bytes.split_first_chunk::<24>().expect("a header comes first");
    let header = FrameHeader::parse(head, MAGIC, u32::MAX).expect("our own header");
    assert_eq!(header.to_bytes(), *head);
    assert_eq!(header.length as usize, payload.len());
    header.check(payload).expect("our own checksum");
    let parsed = Message::parse(header.command, payload).expect("our own payload");
    assert_eq!(parsed, *message);
    assert_eq!(parsed.to_bytes(MAGIC), bytes, "from views as from values");
    let is_opaque = matches!(
        message,
        Message::Block(_)
            | Message::Tx(_)
            | Message::CompactBlock(_)
            | Message::GetBlockTxs(_)
            | Message::BlockTxs(_)
            | Message::Other { .. }
    );
    for length in 0..payload.len() {
        match Message::parse(header.command, &payload[..length]) {
            Ok(cut) => {
                let without_relay =
                    matches!(message, Message::Version(_)) && length + 1 == payload.len();
                assert!(is_opaque || without_relay, "{cut:?} of {message:?}");
            }
            Err(error) => assert!(error.offset <= length, "{error}"),
        }
    }
}

fn any_hash() -> impl Strategy<Value = [u8; 32]> {
    any::<[u8; 32]>()
}

fn any_inventory() -> impl Strategy<Value = Vec<Inventory>> {
    let entry = (any::<u32>(), any_hash())
        .prop_map(|(kind, hash)| Inventory { kind: InventoryKind(kind), hash });
    prop::collection::vec(entry, 0..40)
}

fn any_address() -> impl Strategy<Value = NetAddress> {
    any::<(u64, [u8; 16], u16)>().prop_map(|(services, ip, port)| NetAddress { services, ip, port })
}

fn any_host() -> impl Strategy<Value = Host> {
    prop_oneof![
        any::<[u8; 4]>().prop_map(Host::V4),
        any::<[u8; 16]>()
            .prop_map(Host::from_v1)
            .prop_filter("of IPv6", |host| { !matches!(host, Host::V4(_)) }),
        any_hash().prop_map(Host::Onion),
        any_hash().prop_map(Host::I2p),
        any::<[u8; 16]>().prop_map(Host::Cjdns),
    ]
}

fn any_peer() -> impl Strategy<Value = PeerAddress> {
    (any::<(u32, u64, u16)>(), any_host()).prop_map(|((time, services, port), host)| PeerAddress {
        time,
        services,
        endpoint: Endpoint { host, port },
    })
}

fn any_header() -> impl Strategy<Value = Header> {
    (any_hash(), any_hash(), any::<[u32; 4]>()).prop_map(|(prev, merkle_root, numbers)| Header {
        version: numbers[0] as i32,
        prev_block: BlockHash(prev),
        merkle_root,
        time: numbers[1],
        bits: numbers[2],
        nonce: numbers[3],
    })
}

proptest! {
    #[test]
    fn lists(
        inventory in any_inventory(),
        headers in prop::collection::vec(any_header(), 0..10),
        times in prop::collection::vec((any::<u32>(), any_address()), 0..20),
        peers in prop::collection::vec(any_peer(), 0..20),
    ) {
        check(&Message::Inv(inventory.as_slice().into()));
        check(&Message::GetData(inventory.as_slice().into()));
        check(&Message::NotFound(inventory.as_slice().into()));
        check(&Message::Headers(headers.as_slice().into()));
        let addresses: Vec<_> =
            times.into_iter().map(|(time, address)| TimedAddress { time, address }).collect();
        check(&Message::Addr(addresses.as_slice().into()));
        check(&Message::AddrV2(peers.as_slice().into()));
    }

    #[test]
    fn hosts_have_a_text(host in any_host()) {
        let read = Host::parse(&host.to_string());
        match host {
            Host::Internal(_) => prop_assert_eq!(read, None),
            // Its text does not identify the network.
            Host::Cjdns(ip) => prop_assert_eq!(read, Some(Host::from_v1(ip))),
            _ => prop_assert_eq!(read, Some(host)),
        }
        prop_assert!(!host.is_routable() || host.is_valid());
    }

    #[test]
    fn locators(hashes in prop::collection::vec(any_hash(), 0..=LOCATOR_MAX), stop in any_hash(), version: u32) {
        let hashes: Vec<BlockHash> = hashes.into_iter().map(BlockHash).collect();
        let locator = Locator { version, hashes: hashes.as_slice().into(), stop: BlockHash(stop) };
        check(&Message::GetHeaders(locator));
        check(&Message::GetBlocks(locator));
    }

    #[test]
    fn versions(
        numbers: (i32, u64, i64, u64, i32),
        receiver in any_address(),
        sender in any_address(),
        user_agent in prop::collection::vec(any::<u8>(), 0..=256),
        relay: Option<bool>,
    ) {
        let (version, services, time, nonce, start_height) = numbers;
        let user_agent = user_agent.as_slice();
        check(&Message::Version(Version {
            version, services, time, receiver, sender, nonce, user_agent, start_height, relay,
        }));
    }

    #[test]
    fn numbers_and_opaque_bytes(number: u64, announce: u8, payload in prop::collection::vec(any::<u8>(), 0..100)) {
        for message in [
            Message::Verack, Message::Ping(number), Message::Pong(number), Message::FeeFilter(number),
            Message::SendHeaders, Message::SendAddrV2, Message::WtxidRelay, Message::GetAddr, Message::Mempool,
            Message::SendCompact { announce, version: number },
            Message::Block(&payload), Message::Tx(&payload), Message::CompactBlock(&payload),
            Message::GetBlockTxs(&payload), Message::BlockTxs(&payload),
            Message::Other { command: Command::new("sendtxrcncl"), payload: &payload },
        ] {
            check(&message);
        }
    }

    #[test]
    fn arbitrary_bytes_parse_or_fail(bytes in prop::collection::vec(any::<u8>(), 24..400), name in 0usize..NAMES.len()) {
        let (head, payload) = bytes.split_first_chunk::<24>().expect("at least 24");
        if let Ok(header) = FrameHeader::parse(head, [head[0], head[1], head[2], head[3]], 1 << 20) {
            prop_assert_eq!(header.to_bytes(), *head);
        }
        if let Ok(message) = Message::parse(Command::new(NAMES[name]), payload) {
            let mut again = Vec::new();
            message.encode(&mut again);
            prop_assert_eq!(Message::parse(Command::new(NAMES[name]), &again), Ok(message));
        }
    }
}

const NAMES: [&str; 21] = [
    "addrv2",
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
    "block",
    "tx",
];

/// The example from the protocol documentation of 2012: version 60002, user agent `/Satoshi:0.7.2/`.
#[test]
fn version_message_of_2012() {
    let payload: Vec<u8> = [
        "62ea0000",
        "0100000000000000",
        "11b2d05000000000",
        "010000000000000000000000000000000000ffff000000000000",
        "000000000000000000000000000000000000ffff000000000000",
        "3b2eb35d8ce61765",
        "0f2f5361746f7368693a302e372e322f",
        "c03e0300",
    ]
    .concat()
    .as_bytes()
    .chunks(2)
    .map(|pair| u8::from_str_radix(str::from_utf8(pair).expect("digits"), 16).expect("digits"))
    .collect();
    assert_eq!(assay_wire::p2p::checksum(&payload), [0x35, 0x8d, 0x49, 0x32]);
    let Ok(Message::Version(version)) = Message::parse(Command::new("version"), &payload) else {
        panic!("a version message");
    };
    assert_eq!((version.version, version.services, version.relay), (60002, 1, None));
    assert_eq!(version.user_agent, b"/Satoshi:0.7.2/");
    assert_eq!((version.start_height, version.time), (212_672, 1_355_854_353));
}

#[test]
fn an_empty_payload_has_the_well_known_checksum() {
    let bytes = Message::Verack.to_bytes(MAGIC);
    assert_eq!(bytes, *b"\xf9\xbe\xb4\xd9verack\0\0\0\0\0\0\0\0\0\0\x5d\xf6\xe0\xe2");
}

#[test]
fn rejects_bad_frames() {
    let check = |change: fn(&mut [u8; 24]), expected: &str, offset| {
        let mut head = *Message::Ping(1).to_bytes(MAGIC).first_chunk().expect("a header");
        change(&mut head);
        let error = FrameHeader::parse(&head, MAGIC, 100).expect_err(expected);
        assert_eq!((error.to_string().as_str(), error.offset()), (expected, offset));
    };
    check(|head| head[0] = 0, "magic 00beb4d9 instead of f9beb4d9", 0);
    check(|head| head[4] = 0x1f, "the name of a message is not printable", 4);
    check(|head| head[10] = b'x', "the name of a message is not printable", 4);
    check(|head| head[17] = 1, "a message ping of 264 bytes, more than 100", 16);
    let header = FrameHeader::of(MAGIC, Command::new("ping"), b"12345678");
    let wrong = header.check(b"12345679").expect_err("another payload");
    assert_eq!(wrong, FrameError::Checksum { command: Command::new("ping") });
    assert_eq!(wrong.offset(), 20);
}

#[test]
fn rejects_long_lists() {
    let entry = Inventory { kind: InventoryKind::BLOCK, hash: [0; 32] };
    let entries = vec![entry; INVENTORY_MAX + 1];
    let mut payload = Vec::new();
    Message::Inv(entries.as_slice().into()).encode(&mut payload);
    let error = Message::parse(Command::new("inv"), &payload).expect_err("one too many");
    assert_eq!(
        (error.kind, error.offset),
        (ParseErrorKind::TooMany { count: INVENTORY_MAX + 1 }, 0)
    );
    // A count beyond the remaining bytes must not reserve memory.
    let error = Message::parse(Command::new("inv"), &[0xfd, 0x50, 0xc3]).expect_err("no entries");
    assert_eq!((error.kind, error.offset), (ParseErrorKind::Truncated, 0));
    let mut headers = vec![1];
    headers.extend([0; 80]);
    headers.push(1);
    let error = Message::parse(Command::new("headers"), &headers).expect_err("transactions");
    assert_eq!((error.kind, error.offset), (ParseErrorKind::HeaderWithTransactions, 81));
    let empty: Items<'_, Inventory> = [].as_slice().into();
    assert!(empty.is_empty() && empty.get(0).is_none());
}
