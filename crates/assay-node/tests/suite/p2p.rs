//! Block serving, tested over a raw socket.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::time::{Duration, Instant};

use assay_node::{Node, NodeConfig, NodeError, P2pConfig};
use assay_wire::p2p::{
    FrameHeader, Inventory, InventoryKind, Locator, Message, NetAddress, Version,
};
use assay_wire::{BlockHash, Header};
use serde_json::json;

use crate::node::{Fixture, config};
#[cfg(target_os = "linux")]
use crate::support::connect_from;

pub(crate) const MAGIC: [u8; 4] = [0xfa, 0xbf, 0xb5, 0xda];

fn with_p2p(config: &mut NodeConfig) {
    config.p2p = Some(P2pConfig::new("127.0.0.1:0".parse().unwrap()));
}

/// Node with `blocks` blocks and P2P settings from `change`.
pub(crate) fn serving(blocks: usize, change: impl Fn(&mut P2pConfig)) -> Fixture {
    let mut f = Fixture::new();
    for _ in 0..blocks {
        f.mine(&[]);
    }
    f.restart(|config| {
        with_p2p(config);
        change(config.p2p.as_mut().unwrap());
    })
}

pub(crate) struct Client {
    stream: TcpStream,
}

impl Client {
    pub(crate) fn connect(f: &Fixture) -> Self {
        let stream = TcpStream::connect(f.p2p_address()).unwrap();
        stream.set_read_timeout(Some(Duration::from_mins(1))).unwrap();
        Self { stream }
    }

    /// Connects and performs the handshake of a full node.
    pub(crate) fn serving_blocks(f: &Fixture) -> Self {
        Self::with_services(f, 0x409)
    }

    pub(crate) fn with_services(f: &Fixture, services: u64) -> Self {
        let mut client = Self::connect(f);
        let Message::Version(version) = our_version(70016) else { unreachable!() };
        client.send(&Message::Version(Version { services, ..version }));
        client.expect("version");
        client.expect("verack");
        client.send(&Message::Verack);
        client
    }

    /// Accepts the node's connection and performs the handshake of a full node.
    pub(crate) fn called(listener: &TcpListener) -> Self {
        Self::answering(listener.accept().unwrap().0)
    }

    /// Performs the handshake on an inbound connection.
    pub(crate) fn answering(stream: TcpStream) -> Self {
        stream.set_read_timeout(Some(Duration::from_mins(1))).unwrap();
        let mut client = Self { stream };
        client.expect("version");
        let Message::Version(version) = our_version(70016) else { unreachable!() };
        client.send(&Message::Version(Version { services: 0x409, ..version }));
        client.expect("verack");
        client.send(&Message::Verack);
        client
    }

    /// Next message `command`; skips others.
    #[track_caller]
    pub(crate) fn expect_past(&mut self, command: &str) -> Vec<u8> {
        loop {
            let (found, payload) = self.receive().expect("a message");
            if found == command {
                return payload;
            }
        }
    }

    /// True if `command` arrives before the connection ends; skips other messages.
    pub(crate) fn is_answered_with(&mut self, command: &str) -> bool {
        while let Some((found, _)) = self.receive() {
            if found == command {
                return true;
            }
        }
        false
    }

    /// Connects and expects a disconnection.
    #[track_caller]
    pub(crate) fn rejected(f: &Fixture) {
        let mut client = Self::connect(f);
        // It may be closed already.
        let _ = client.stream.write_all(&our_version(70016).to_bytes(MAGIC));
        assert!(client.receive().is_none());
    }

    /// Expects the end of the connection; skips messages before it.
    pub(crate) fn expect_end_past_all(&mut self) {
        let mut rest = Vec::new();
        let ended = self.stream.read_to_end(&mut rest);
        assert!(
            ended.is_ok()
                || ended.is_err_and(|error| error.kind() == std::io::ErrorKind::ConnectionReset)
        );
    }

    /// Connects and performs a handshake with this protocol version.
    pub(crate) fn ready(f: &Fixture, version: i32) -> Self {
        Self::greeting(f.p2p_address(), version)
    }

    /// Connects to this address of the node and performs a handshake.
    pub(crate) fn ready_at(address: SocketAddr) -> Self {
        Self::greeting(address, 70016)
    }

    fn greeting(address: SocketAddr, version: i32) -> Self {
        let stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(Duration::from_mins(1))).unwrap();
        let mut client = Self { stream };
        client.send(&our_version(version));
        client.expect("version");
        client.expect("verack");
        client.send(&Message::Verack);
        // The node's ping marks the end of the handshake.
        client.expect("ping");
        client
    }

    pub(crate) fn send(&mut self, message: &Message<'_>) {
        self.send_bytes(&message.to_bytes(MAGIC));
    }

    pub(crate) fn send_bytes(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).unwrap();
    }

    fn receive(&mut self) -> Option<(String, Vec<u8>)> {
        let mut head = [0; 24];
        self.stream.read_exact(&mut head).ok()?;
        let header = FrameHeader::parse(&head, MAGIC, 1 << 23).unwrap();
        let mut payload = vec![0; header.length as usize];
        self.stream.read_exact(&mut payload).ok()?;
        header.check(&payload).unwrap();
        Some((header.command.to_string(), payload))
    }

    #[track_caller]
    fn expect(&mut self, command: &str) -> Vec<u8> {
        loop {
            let (found, payload) = self.receive().expect("a message");
            // Feature messages that may arrive at any time.
            let unasked = ["sendaddrv2", "wtxidrelay", "feefilter", "sendcmpct"];
            if unasked.contains(&found.as_str()) && command != found {
                continue;
            }
            assert_eq!(found, command);
            return payload;
        }
    }

    pub(crate) fn headers(&mut self, locator: &[BlockHash], stop: BlockHash) -> Vec<Header> {
        self.send(&Message::GetHeaders(Locator { version: 70016, hashes: locator.into(), stop }));
        headers(&self.expect("headers"))
    }

    /// Blocks and transactions requested in response to everything sent so far.
    pub(crate) fn asked_so_far(&mut self) -> Vec<Inventory> {
        self.send(&Message::Ping(9));
        let mut asked = Vec::new();
        loop {
            let (name, payload) = self.receive().expect("a pong");
            match name.as_str() {
                "getdata" => asked.extend(inventory(&payload)),
                "pong" => return asked,
                _ => {}
            }
        }
    }

    /// Waits until everything sent has taken effect.
    pub(crate) fn answered(&mut self) {
        self.send(&Message::Ping(5));
        self.expect_past("pong");
    }

    pub(crate) fn ask(&mut self, entries: &[Inventory]) {
        self.send(&Message::GetData(entries.into()));
    }

    #[track_caller]
    fn expect_end(&mut self) {
        // A reset is an end as well.
        while let Some((command, _)) = self.receive() {
            assert_eq!(command, "feefilter", "the node says it whenever it likes");
        }
    }
}

pub(crate) fn our_version(version: i32) -> Message<'static> {
    Message::Version(Version {
        version,
        services: 0,
        time: 1_700_000_000,
        receiver: NetAddress::default(),
        sender: NetAddress::default(),
        nonce: 1,
        user_agent: b"/test:1<script>/",
        start_height: 7,
        relay: (version > 70000).then_some(true),
    })
}

fn headers(payload: &[u8]) -> Vec<Header> {
    let command = assay_wire::p2p::Command::new("headers");
    match Message::parse(command, payload).unwrap() {
        Message::Headers(headers) => headers.iter().collect(),
        other => panic!("{other:?}"),
    }
}

pub(crate) fn inventory(payload: &[u8]) -> Vec<Inventory> {
    match Message::parse(assay_wire::p2p::Command::new("inv"), payload).unwrap() {
        Message::Inv(entries) => entries.iter().collect(),
        other => panic!("{other:?}"),
    }
}

fn entry(kind: InventoryKind, hash: BlockHash) -> Inventory {
    Inventory { kind, hash: hash.0 }
}

#[test]
fn handshake_and_getpeerinfo() {
    let mut f = serving(3, |_| ());
    assert_eq!(f.call("getconnectioncount", &json!([])), 0);
    let mut client = Client::connect(&f);
    client.send(&our_version(70016));
    let payload = client.expect("version");
    let command = assay_wire::p2p::Command::new("version");
    let Message::Version(version) = Message::parse(command, &payload).unwrap() else { panic!() };
    assert_eq!((version.version, version.services), (70017, 0xc09));
    assert_eq!((version.start_height, version.relay), (3, Some(true)));
    client.expect("verack");
    client.send(&Message::Verack);
    let nonce = client.expect("ping");
    client.send(&Message::Pong(u64::from_le_bytes(nonce.try_into().unwrap())));
    client.send(&Message::Ping(99));
    assert_eq!(client.expect("pong"), 99u64.to_le_bytes());
    let peers = f.call("getpeerinfo", &json!([]));
    let peer = &peers[0];
    assert_eq!(peer["addr"], client.stream.local_addr().unwrap().to_string());
    // Without characters that could be markup.
    assert_eq!((&peer["subver"], &peer["version"]), (&json!("/test:1script/"), &json!(70016)));
    assert_eq!(peer["inbound"], true);
    assert!(peer["pingtime"].as_f64().unwrap() >= 0.0 && peer["bytesrecv"].as_u64().unwrap() > 100);
    let info = f.call("getnetworkinfo", &json!([]));
    assert_eq!((&info["connections"], &info["networkactive"]), (&json!(1), &json!(true)));
    assert_eq!(info["localservices"], "0000000000000c09");
    let names = ["NETWORK", "WITNESS", "NETWORK_LIMITED", "P2P_V2"];
    assert_eq!(info["localservicesnames"], json!(names));
    drop(client);
    while f.call("getconnectioncount", &json!([])) != 0 {
        std::thread::yield_now();
    }
}

#[test]
fn headers_and_blocks_of_the_whole_chain() {
    let f = serving(5, |_| ());
    let mut client = Client::ready(&f, 70016);
    let hashes: Vec<BlockHash> = f.blocks.iter().map(assay_wire::Block::hash).collect();
    let all: Vec<Header> = f.blocks[1..].iter().map(|block| *block.header()).collect();
    assert_eq!(client.headers(&[hashes[0]], BlockHash::ZERO), all);
    assert_eq!(client.headers(&[BlockHash([9; 32])], BlockHash::ZERO), all, "an unknown branch");
    assert_eq!(client.headers(&[BlockHash([9; 32]), hashes[2]], BlockHash::ZERO), all[2..]);
    assert_eq!(client.headers(&[hashes[1]], hashes[3]), all[1..3]);
    assert_eq!(client.headers(&[], hashes[4]), all[3..4], "without a locator, one header");
    assert_eq!(client.headers(&[hashes[5]], BlockHash::ZERO), []);

    let with_witnesses: Vec<_> =
        hashes.iter().map(|hash| entry(InventoryKind::WITNESS_BLOCK, *hash)).collect();
    client.ask(&with_witnesses);
    for block in &f.blocks {
        assert_eq!(client.expect("block"), block.bytes());
    }
    let unknown = [
        entry(InventoryKind::BLOCK, BlockHash([7; 32])),
        entry(InventoryKind::WITNESS_TX, hashes[1]),
    ];
    client.ask(&[unknown[0], entry(InventoryKind::BLOCK, hashes[1]), unknown[1]]);
    let block = client.expect("block");
    assert!(f.blocks[1].txs().all(|tx| !tx.has_witness()) && block == f.blocks[1].bytes());
    let mut expected = Vec::new();
    Message::NotFound(unknown[..].into()).encode(&mut expected);
    assert_eq!(client.expect("notfound"), expected);
}

#[test]
fn an_old_client_syncs_by_getblocks() {
    let f = serving(503, |_| ());
    let mut client = Client::ready(&f, 60002);
    let hashes: Vec<BlockHash> = f.blocks.iter().map(assay_wire::Block::hash).collect();
    let locator = Locator { version: 60002, hashes: hashes[..1].into(), stop: BlockHash::ZERO };
    client.send(&Message::GetBlocks(locator));
    let told = inventory(&client.expect("inv"));
    let expected: Vec<_> =
        hashes[1..=500].iter().map(|hash| entry(InventoryKind::BLOCK, *hash)).collect();
    assert_eq!(told, expected);
    client.ask(&told);
    for block in &f.blocks[1..=500] {
        assert_eq!(client.expect("block"), block.bytes());
    }
    // The last hash of a batch triggers the tip, for which the client asks again.
    let tip = entry(InventoryKind::BLOCK, hashes[503]);
    assert_eq!(inventory(&client.expect("inv")), [tip]);
    let locator = Locator { version: 60002, hashes: hashes[500..=500].into(), stop: hashes[503] };
    client.send(&Message::GetBlocks(locator));
    assert_eq!(inventory(&client.expect("inv")).len(), 2, "up to the stop, without it");
}

#[test]
fn announces_new_blocks_as_requested() {
    let mut f = serving(2, |_| ());
    f.set_clock_to_tip();
    let mut old = Client::ready(&f, 60002);
    let mut new = Client::ready(&f, 70016);
    new.send(&Message::SendHeaders);
    // Header announcements go to peers that have the parent.
    new.headers(&[f.blocks[0].header().prev_block], BlockHash::ZERO);
    // Messages are handled in order.
    new.send(&Message::Ping(1));
    new.expect("pong");
    for _ in 0..2 {
        f.mine(&[]);
        let block = f.blocks.last().unwrap();
        assert_eq!(inventory(&old.expect("inv")), [entry(InventoryKind::BLOCK, block.hash())]);
        assert_eq!(headers(&new.expect("headers")), [*block.header()]);
    }
    let tip = f.blocks[4].hash();
    f.call("invalidateblock", &json!([tip.to_string()]));
    f.call("reconsiderblock", &json!([tip.to_string()]));
    // Independent of that announcement, the next block is announced as well.
    f.mine(&[]);
    let next = f.blocks[5].hash();
    loop {
        let found = headers(&new.expect("headers"));
        if found.iter().any(|header| header.hash() == next) {
            break;
        }
    }
}

#[test]
fn garbage_ends_only_its_connection() {
    let f = serving(1, |config| config.encrypted = false);
    let ping = Message::Ping(1).to_bytes(MAGIC);
    let mut wrong_checksum = ping.clone();
    wrong_checksum[20] ^= 1;
    let mut too_long = ping.clone();
    too_long[19] = 0x7f;
    let huge_list =
        FrameHeader::of(MAGIC, assay_wire::p2p::Command::new("getdata"), &[0xfd, 0xff, 0xff]);
    let huge_list = [&huge_list.to_bytes()[..], &[0xfd, 0xff, 0xff]].concat();
    let version = our_version(70016).to_bytes(MAGIC);
    for garbage in [&too_long, &vec![0xa5; 1000]] {
        let mut client = Client::ready(&f, 70016);
        client.stream.write_all(garbage).unwrap();
        client.expect_end();
    }
    // One message is damaged, the next is valid.
    for garbage in [&wrong_checksum, &huge_list, &version] {
        let mut client = Client::ready(&f, 70016);
        client.stream.write_all(garbage).unwrap();
        client.send(&Message::Ping(5));
        assert_eq!(client.expect("pong"), 5u64.to_le_bytes());
    }
    // Before the handshake: closed without a byte, as by a node without BIP324.
    for garbage in [&[0x55; 64][..], &our_version(31799).to_bytes(MAGIC)] {
        let mut client = Client::connect(&f);
        client.stream.write_all(garbage).unwrap();
        client.expect_end();
    }
    // A premature message is ignored.
    let mut client = Client::connect(&f);
    client.stream.write_all(&ping).unwrap();
    client.send(&our_version(70016));
    client.expect("version");
    // Random bytes with a valid message header.
    let mut state = 1u64;
    for round in 0..40 {
        let mut client = Client::ready(&f, 70016);
        let names = ["getdata", "getheaders", "getblocks", "version", "ping", "feefilter", "inv"];
        for _ in 0..5 {
            let payload: Vec<u8> = (0..(round * 7) % 90)
                .map(|_| {
                    state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                    (state >> 60) as u8
                })
                .collect();
            let command = assay_wire::p2p::Command::new(names[round % names.len()]);
            let message = Message::Other { command, payload: &payload };
            if client.stream.write_all(&message.to_bytes(MAGIC)).is_err() {
                break;
            }
        }
    }
    let mut client = Client::ready(&f, 70016);
    assert_eq!(client.headers(&[f.blocks[0].hash()], BlockHash::ZERO).len(), 1);
}

#[test]
fn peer_limit_is_enforced() {
    let f = serving(1, |config| {
        config.peers_max = 2;
        config.inbound_relay_percent = 100;
    });
    let first = Client::ready(&f, 70016);
    let mut second = Client::ready(&f, 70016);
    Client::connect(&f).expect_end();
    drop(first);
    let deadline = Instant::now() + Duration::from_mins(1);
    loop {
        let mut third = Client::connect(&f);
        let _ = third.stream.write_all(&our_version(70016).to_bytes(MAGIC));
        if third.receive().is_some() {
            break;
        }
        assert!(Instant::now() < deadline, "the place never became free");
    }
    assert_eq!(second.headers(&[f.blocks[0].hash()], BlockHash::ZERO).len(), 1);
}

#[test]
#[cfg(target_os = "linux")]
fn one_host_does_not_take_every_place() {
    let f = serving(1, |config| config.peers_max = 40);
    let from = |source| {
        let stream = connect_from(source, f.p2p_address());
        stream.set_read_timeout(Some(Duration::from_mins(1))).unwrap();
        Client { stream }
    };
    // A quarter of the slots, without a handshake.
    let greedy: Vec<Client> = (0..10).map(|_| from([127, 0, 0, 9])).collect();
    let is_full = || {
        let mut next = from([127, 0, 0, 9]);
        let _ = next.stream.write_all(&our_version(70016).to_bytes(MAGIC));
        next.receive().is_none()
    };
    assert!(is_full());
    let mut other = Client::ready(&f, 70016);
    assert_eq!(other.headers(&[f.blocks[0].hash()], BlockHash::ZERO).len(), 1);
    drop(greedy);
    let deadline = Instant::now() + Duration::from_mins(1);
    while is_full() {
        assert!(Instant::now() < deadline, "the places never became free");
    }
}

#[test]
fn disconnects_silent_and_stalled_peers() {
    let f = serving(1, |config| {
        config.peer_timeout = Duration::from_millis(200);
        config.timeouts.idle = Duration::from_millis(400);
        config.timeouts.stall = Duration::from_millis(300);
    });
    // No version message.
    Client::connect(&f).expect_end();
    // Nothing after the handshake.
    Client::ready(&f, 70016).expect_end();
    // Requests the same block repeatedly and never reads: the node queues a few requests, no blocks, and then disconnects.
    let mut greedy = Client::ready(&f, 70016);
    let entries = vec![entry(InventoryKind::WITNESS_BLOCK, f.blocks[1].hash()); 50_000];
    let request = Message::GetData(entries[..].into()).to_bytes(MAGIC);
    let start = Instant::now();
    while greedy.stream.write_all(&request).is_ok() {
        assert!(start.elapsed() < Duration::from_mins(1), "the node takes requests for ever");
    }
}

#[test]
fn rate_limit_holds_and_stop_is_prompt() {
    let f = serving(40, |config| config.rate = Some(20_000));
    let mut client = Client::ready(&f, 70016);
    let hashes: Vec<_> = f.blocks[1..]
        .iter()
        .map(|block| entry(InventoryKind::WITNESS_BLOCK, block.hash()))
        .collect();
    let start = Instant::now();
    client.ask(&hashes);
    let bytes: usize = hashes.iter().map(|_| client.expect("block").len()).sum();
    // The last piece is paid for by the next one.
    let least = Duration::from_secs_f64((bytes - 2 * bytes / hashes.len()) as f64 / 20_000.0);
    assert!(start.elapsed() >= least, "{bytes} bytes in {:?}", start.elapsed());
    client.ask(&vec![hashes[0]; 50_000]);
    client.stream.shutdown(Shutdown::Write).unwrap();
    let start = Instant::now();
    let _ = f.restart(|_| ());
    assert!(start.elapsed() < Duration::from_secs(30));
}

#[test]
fn remote_access_is_opt_in() {
    let dir = tempfile::tempdir().unwrap();
    let mut config = config(dir.path());
    with_p2p(&mut config);
    let p2p = config.p2p.as_mut().unwrap();
    p2p.binds = vec!["0.0.0.0:0".parse().unwrap()];
    let refused = Node::start(&config);
    assert!(matches!(refused, Err(NodeError::P2pExposed { .. })), "{refused:?}");
    config.p2p.as_mut().unwrap().expose = true;
    let node = Node::start(&config).unwrap();
    assert!(node.p2p_address().is_some());
    node.stop_handle().stop();
    node.wait().unwrap();
}
