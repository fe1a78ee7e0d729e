use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::time::Duration;

use tokio::runtime::Runtime;

use super::address::Address;
use super::message::{COMMAND, LONG, Message, push_frame};
use super::session::{read_frame, socket_type};
use super::socket::Socket;

/// Subscriber with a manual protocol implementation.
struct Peer(TcpStream);

impl Peer {
    fn connect(address: SocketAddr) -> Self {
        let stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
        let mut peer = Self(stream);
        let mut greeting = [0; 64];
        (greeting[0], greeting[9], greeting[10], greeting[11]) = (0xff, 0x7f, 3, 1);
        greeting[12..16].copy_from_slice(b"NULL");
        peer.0.write_all(&greeting).unwrap();
        let mut theirs = [0; 64];
        peer.0.read_exact(&mut theirs).unwrap();
        assert_eq!((theirs[0], theirs[10], &theirs[12..16]), (0xff, 3, &b"NULL"[..]));
        peer.frame(COMMAND, b"\x05READY\x0bSocket-Type\x00\x00\x00\x03SUB");
        let (flags, body) = peer.read();
        assert_eq!((flags, &body[..6]), (COMMAND, &b"\x05READY"[..]));
        assert_eq!(socket_type(&body[6..]), Some(&b"PUB"[..]));
        peer
    }

    fn frame(&mut self, flags: u8, body: &[u8]) {
        let mut out = Vec::new();
        push_frame(&mut out, flags, body);
        self.0.write_all(&out).unwrap();
    }

    /// Waits until everything sent before has taken effect.
    fn sync(&mut self) {
        self.frame(COMMAND, b"\x04PING\x00\x00hello");
        assert_eq!(self.read(), (COMMAND, b"\x04PONGhello".to_vec()));
    }

    fn read(&mut self) -> (u8, Vec<u8>) {
        let mut head = [0; 2];
        self.0.read_exact(&mut head).unwrap();
        let mut length = u64::from(head[1]);
        if head[0] & LONG != 0 {
            let mut bytes = [0; 8];
            bytes[0] = head[1];
            self.0.read_exact(&mut bytes[1..]).unwrap();
            length = u64::from_be_bytes(bytes);
        }
        let mut body = vec![0; length as usize];
        self.0.read_exact(&mut body).unwrap();
        (head[0] & !LONG, body)
    }

    /// Topic, contents and sequence number of the next message.
    fn message(&mut self) -> (Vec<u8>, Vec<u8>, u32) {
        let parts = [self.read(), self.read(), self.read()];
        let [(1, topic), (1, body), (0, number)] = parts else { panic!("three parts") };
        (topic, body, u32::from_le_bytes(number.try_into().unwrap()))
    }
}

fn socket(high_water_mark: usize) -> (Runtime, Socket, SocketAddr) {
    let runtime = Runtime::new().unwrap();
    let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let socket = Socket::bind(&Address::Tcp(address), high_water_mark, runtime.handle()).unwrap();
    (runtime, socket, address)
}

fn send(socket: &Socket, topic: &'static str, body: &[u8], number: u32) {
    socket.send(&Arc::new(Message::new(topic, body, number)));
}

#[test]
fn subscribers_receive_their_topics() {
    let (_runtime, socket, address) = socket(1000);
    let (mut one, mut other) = (Peer::connect(address), Peer::connect(address));
    // Both forms of a subscription: a message (3.0) and a command (3.1).
    one.frame(0, b"\x01hash");
    one.sync();
    other.frame(COMMAND, b"\x09SUBSCRIBErawtx");
    other.sync();
    let large = vec![7; 300];
    send(&socket, "hashtx", b"id", 1);
    send(&socket, "rawtx", &large, 2);
    send(&socket, "hashblock", b"", u32::MAX);
    assert_eq!(one.message(), (b"hashtx".to_vec(), b"id".to_vec(), 1));
    assert_eq!(one.message(), (b"hashblock".to_vec(), Vec::new(), u32::MAX));
    assert_eq!(other.message(), (b"rawtx".to_vec(), large, 2));
    one.frame(0, b"\x00hash");
    one.frame(COMMAND, b"\x09SUBSCRIBEseq");
    one.sync();
    send(&socket, "hashtx", b"id", 3);
    send(&socket, "sequence", b"s", 4);
    assert_eq!(one.message().2, 4);
}

#[test]
fn slow_subscribers_lose_messages() {
    let (_runtime, socket, address) = socket(2);
    let mut peer = Peer::connect(address);
    peer.frame(0, b"\x01");
    peer.sync();
    // More than the system's buffers hold.
    let body = vec![0; 1 << 20];
    for number in 0..200 {
        send(&socket, "rawblock", &body, number);
    }
    let mut numbers = vec![peer.message().2];
    while numbers.last() != Some(&1000) {
        // Messages may still be dropped until the subscriber has read its queue.
        send(&socket, "rawblock", b"", 1000);
        numbers.push(peer.message().2);
    }
    assert!(numbers.is_sorted() && numbers.len() < 150, "{numbers:?}");
}

#[test]
fn disconnects_invalid_peers() {
    let (_runtime, _socket, address) = socket(10);
    for garbage in [vec![b'G'; 64], vec![0xff; 64]] {
        let mut stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
        stream.write_all(&garbage).unwrap();
        let mut rest = Vec::new();
        // Closed, or reset if unread data was left.
        let _ = stream.read_to_end(&mut rest);
        assert!(rest.len() <= 64);
    }
    let mut peer = Peer::connect(address);
    peer.frame(0, &[1; 1025]);
    let mut rest = Vec::new();
    let _ = peer.0.read_to_end(&mut rest);
    assert!(rest.is_empty());
}

#[test]
fn properties_and_frames_are_bounded() {
    for rest in [&b"\x0bSocket-Type"[..], b"\x0bSocket-Type\xff\xff\xff\xffSUB", b"\xffS", b""] {
        assert_eq!(socket_type(rest), None);
    }
    let rest = b"\x08Identity\x00\x00\x00\x00\x0bsocket-type\x00\x00\x00\x03SUB";
    assert_eq!(socket_type(rest), Some(&b"SUB"[..]));
    let runtime = Runtime::new().unwrap();
    let read = |mut bytes: &[u8]| runtime.block_on(read_frame(&mut bytes)).ok();
    assert_eq!(read(&[0, 2, 5, 6]), Some((0, vec![5, 6])));
    assert_eq!(read(&[2, 0, 0, 0, 0, 0, 0, 0, 1, 9]), Some((2, vec![9])));
    assert_eq!(read(&[2, 0xff, 0, 0, 0, 0, 0, 0, 1, 9]), None);
    assert_eq!(read(&[0, 2, 5]), None);
}

#[test]
fn parses_addresses() {
    let tcp = |text: &str| Some(Address::Tcp(text.parse().unwrap()));
    for (text, expected) in [
        ("tcp://127.0.0.1:28332", tcp("127.0.0.1:28332")),
        ("tcp://[::1]:1", tcp("[::1]:1")),
        ("tcp://*:7", tcp("0.0.0.0:7")),
        ("tcp://localhost:7", tcp("127.0.0.1:7")),
        ("ipc:///tmp/x", Some(Address::Ipc("/tmp/x".into()))),
        ("foo", None),
        ("ipc://", None),
        ("tcp://127.0.0.1", None),
        ("tcp://127.0.0.1:66000", None),
    ] {
        assert_eq!(text.parse().ok(), expected, "{text}");
    }
}
