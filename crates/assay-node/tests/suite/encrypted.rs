//! Encrypted transport (BIP324): between two nodes, and with a raw socket.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::time::Duration;

use assay_node::bip324::{
    self, GARBAGE_BYTES_MAX, HEAD_BYTES, Handshake, KEY_BYTES, LENGTH_BYTES, Session, TAG_BYTES,
    TERMINATOR_BYTES,
};
use assay_wire::p2p::{Command, FrameHeader, Inventory, InventoryKind, Message};
use serde_json::json;

use crate::node::Fixture;
use crate::p2p::{MAGIC, our_version, serving};
use crate::sync::follower;

/// Peer that has sent its key and has the node's.
struct Peer {
    stream: TcpStream,
    session: Session,
    /// True until terminator and version packet of the node are read.
    is_new: bool,
}

impl Peer {
    fn connect(f: &Fixture, garbage: Vec<u8>) -> Self {
        let handshake = Handshake::new([1; 32], [2; 32], garbage, true).unwrap();
        let mut stream = TcpStream::connect(f.p2p_address()).unwrap();
        stream.set_read_timeout(Some(Duration::from_mins(1))).unwrap();
        // For ping-pong of many small messages.
        stream.set_nodelay(true).unwrap();
        stream.write_all(&handshake.opening()).unwrap();
        let mut theirs = [0; KEY_BYTES];
        stream.read_exact(&mut theirs).unwrap();
        Self { stream, session: handshake.finish(theirs, MAGIC), is_new: true }
    }

    fn ready(f: &Fixture) -> Self {
        let mut peer = Self::connect(f, vec![7; 100]);
        peer.stream.write_all(&peer.session.version_packet()).unwrap();
        peer
    }

    fn send(&mut self, message: &Message<'_>) {
        let (name, length) = bip324::name_bytes(message.command());
        let mut contents = name[..length].to_vec();
        message.encode(&mut contents);
        self.send_contents(&contents, false);
    }

    fn send_contents(&mut self, contents: &[u8], is_decoy: bool) {
        let mut packet = [&[0; HEAD_BYTES], contents].concat();
        self.session.sealer.seal(&mut packet, 0, &[], is_decoy);
        self.stream.write_all(&packet).unwrap();
    }

    /// Contents of the next packet.
    fn packet(&mut self, aad: &[u8]) -> Vec<u8> {
        let mut head = [0; LENGTH_BYTES];
        self.stream.read_exact(&mut head).unwrap();
        let length = self.session.opener.length(head);
        let mut packet = vec![0; length + HEAD_BYTES - LENGTH_BYTES + TAG_BYTES];
        self.stream.read_exact(&mut packet).unwrap();
        self.session.opener.open(aad, &mut packet).unwrap().expect("no decoy").to_vec()
    }

    /// Payload of the next message with this name.
    fn expect(&mut self, command: &str) -> Vec<u8> {
        if std::mem::take(&mut self.is_new) {
            let mut garbage = self.session.garbage();
            let mut byte = [0];
            loop {
                self.stream.read_exact(&mut byte).unwrap();
                if garbage.push(&byte).unwrap().1 {
                    break;
                }
            }
            assert!(self.packet(&garbage.into_aad()).is_empty(), "a version packet");
        }
        loop {
            let contents = self.packet(&[]);
            let (found, payload) = bip324::split(&contents).expect("a message");
            if found.as_str() == command {
                return payload.to_vec();
            }
        }
    }

    fn shake_hands(&mut self) {
        self.send(&our_version(70016));
        self.expect("version");
        self.expect("verack");
        self.send(&Message::Verack);
    }

    fn expect_end(mut self) {
        let mut rest = Vec::new();
        let ended = self.stream.read_to_end(&mut rest);
        let is_reset = |error: std::io::Error| error.kind() == std::io::ErrorKind::ConnectionReset;
        assert!(ended.is_ok() || ended.is_err_and(is_reset));
    }
}

/// The only peer of a node, after its handshake.
fn only_peer(f: &mut Fixture) -> serde_json::Value {
    loop {
        let peers = f.call("getpeerinfo", &json!([]));
        if peers[0]["version"].as_u64().is_some_and(|version| version > 0) {
            return peers[0].clone();
        }
        std::thread::yield_now();
    }
}

#[test]
fn two_nodes_sync_over_one_session() {
    let mut source = serving(300, |_| ());
    source.set_clock_to_tip();
    let mut node = follower(&[&source]);
    let tip = source.blocks.last().unwrap().hash().to_string();
    while node.tip() != tip.as_str() {
        std::thread::yield_now();
    }
    let (ours, theirs) = (only_peer(&mut node), only_peer(&mut source));
    for peer in [&ours, &theirs] {
        assert_eq!(peer["transport_protocol_type"], "v2");
        assert_eq!(peer["session_id"].as_str().unwrap().len(), 64);
        assert_eq!(peer["services"], "0000000000000c09");
        assert!(peer["servicesnames"].as_array().unwrap().contains(&json!("P2P_V2")));
    }
    assert_eq!(ours["session_id"], theirs["session_id"]);
}

#[test]
fn reconnects_without_encryption() {
    let mut source = serving(3, |config| config.encrypted = false);
    source.set_clock_to_tip();
    let mut node = follower(&[&source]);
    while node.call("getblockcount", &json!([])) != 3 {
        std::thread::yield_now();
    }
    for peer in [only_peer(&mut node), only_peer(&mut source)] {
        assert_eq!(
            (&peer["transport_protocol_type"], &peer["session_id"]),
            (&json!("v1"), &json!(""))
        );
    }
    // Without encryption, the node does not initiate it either.
    let address = node.p2p_address().to_string();
    let error = source.error("addnode", &json!([address, "onetry", true]));
    let text = "Error: v2transport requested but not enabled (see -v2transport)";
    assert_eq!(error, (-8, text.to_owned()));
    let error = source.error("addconnection", &json!([address, "outbound-full-relay", true]));
    let text = "Error: Adding v2transport connections requires -v2transport init flag to be set.";
    assert_eq!(error, (-8, text.to_owned()));
}

#[test]
fn encryption_can_be_disabled() {
    let mut node = serving(1, |_| ());
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    node.call("addnode", &json!([address, "onetry", false]));
    let (mut stream, _) = listener.accept().unwrap();
    let mut head = [0; FrameHeader::SIZE];
    stream.read_exact(&mut head).unwrap();
    let header = FrameHeader::parse(&head, MAGIC, 1000).unwrap();
    assert_eq!(header.command, Command::new("version"));
}

#[test]
fn messages_decoys_and_blocks() {
    let f = serving(2, |_| ());
    let mut peer = Peer::connect(&f, vec![9; GARBAGE_BYTES_MAX]);
    for byte in &peer.session.version_packet() {
        peer.stream.write_all(&[*byte]).unwrap();
    }
    peer.send_contents(b"a decoy", true);
    peer.shake_hands();
    // Crosses key rotations in both directions.
    for number in 0..600 {
        peer.send_contents(&[0; 3], true);
        peer.send(&Message::Ping(number));
        assert_eq!(peer.expect("pong"), number.to_le_bytes());
    }
    // Contents without a type, or with an unassigned or unknown one, are ignored.
    peer.send_contents(&[], false);
    peer.send_contents(&[200, 1, 2], false);
    peer.send(&Message::Other { command: Command::new("unknown"), payload: &vec![1; 70_000] });
    let block = &f.blocks[2];
    let wanted = Inventory { kind: InventoryKind::WITNESS_BLOCK, hash: block.hash().0 };
    peer.send(&Message::GetData([wanted][..].into()));
    assert_eq!(peer.expect("block"), block.bytes());
}

#[test]
fn first_packet_authenticates_garbage() {
    let f = serving(1, |_| ());
    let mut peer = Peer::connect(&f, vec![5; 5]);
    peer.stream.write_all(&peer.session.terminator).unwrap();
    let mut decoy = vec![1; HEAD_BYTES + 70_000];
    let garbage = std::mem::take(&mut peer.session.garbage);
    peer.session.sealer.seal(&mut decoy, 0, &garbage, true);
    peer.stream.write_all(&decoy).unwrap();
    peer.send_contents(b"another decoy", true);
    // The version packet; later versions may use its contents.
    peer.send_contents(b"contents", false);
    peer.shake_hands();
    peer.send(&Message::Ping(3));
    assert_eq!(peer.expect("pong"), 3_u64.to_le_bytes());
}

#[test]
fn faults_end_the_connection() {
    let f = serving(1, |_| ());
    // No terminator within the maximum length.
    let mut peer = Peer::connect(&f, Vec::new());
    peer.stream.write_all(&[0; GARBAGE_BYTES_MAX + TERMINATOR_BYTES]).unwrap();
    peer.expect_end();
    // A version packet that authenticates other garbage.
    let mut peer = Peer::connect(&f, vec![7; 50]);
    peer.session.garbage[0] ^= 1;
    peer.stream.write_all(&peer.session.version_packet()).unwrap();
    peer.expect_end();
    // An oversized packet is rejected before its contents arrive.
    let mut peer = Peer::ready(&f);
    peer.shake_hands();
    let mut packet = vec![0; HEAD_BYTES + 5_000_000];
    peer.session.sealer.seal(&mut packet, 0, &[], false);
    peer.stream.write_all(&packet[..LENGTH_BYTES]).unwrap();
    peer.expect_end();
    // A message above the limit of its type.
    let mut peer = Peer::ready(&f);
    peer.shake_hands();
    peer.send(&Message::Other { command: Command::new("ping"), payload: &vec![1; 70_000] });
    peer.expect_end();
    // A version message of another chain.
    let mut stream = TcpStream::connect(f.p2p_address()).unwrap();
    stream.write_all(&our_version(70016).to_bytes([1, 2, 3, 4])).unwrap();
    let mut rest = Vec::new();
    let _ = stream.read_to_end(&mut rest);
}
