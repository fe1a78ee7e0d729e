//! ZeroMQ notifications, received with a manual ZMTP implementation.

use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use assay_node::{NodeConfig, Publication, Topic};
use faster_hex::hex_string;
use serde_json::{Value, json};

use crate::node::Fixture;

struct Subscriber(UnixStream);

impl Subscriber {
    fn connect(path: &Path, topic: &str) -> Self {
        let stream = UnixStream::connect(path).unwrap();
        stream.set_read_timeout(Some(Duration::from_mins(1))).unwrap();
        let mut one = Self(stream);
        let mut greeting = [0; 64];
        (greeting[0], greeting[9], greeting[10]) = (0xff, 0x7f, 3);
        greeting[12..16].copy_from_slice(b"NULL");
        one.0.write_all(&greeting).unwrap();
        one.0.write_all(b"\x04\x19\x05READY\x0bSocket-Type\x00\x00\x00\x03SUB").unwrap();
        one.0.read_exact(&mut [0; 64]).unwrap();
        one.frame();
        one.0.write_all(&[&[0, topic.len() as u8 + 1, 1], topic.as_bytes()].concat()).unwrap();
        // Once this is answered, the subscription is active.
        one.0.write_all(b"\x04\x07\x04PING\x00\x00").unwrap();
        assert_eq!(one.frame(), b"\x04PONG");
        one
    }

    fn frame(&mut self) -> Vec<u8> {
        let mut flags = [0];
        self.0.read_exact(&mut flags).unwrap();
        let mut length = [0; 8];
        let short = if flags[0] & 2 == 0 { 7 } else { 0 };
        self.0.read_exact(&mut length[short..]).unwrap();
        let mut body = vec![0; u64::from_be_bytes(length) as usize];
        self.0.read_exact(&mut body).unwrap();
        body
    }

    /// Contents of a message with this topic and sequence number.
    fn expect(&mut self, topic: &str, number: u32) -> Vec<u8> {
        assert_eq!(self.frame(), topic.as_bytes());
        let body = self.frame();
        assert_eq!(self.frame(), number.to_le_bytes());
        body
    }

    /// Label, hash and mempool sequence of a `sequence` message.
    fn change(&mut self, number: u32) -> (char, String, Option<u64>) {
        let body = self.expect("sequence", number);
        let sequence = body[33..].try_into().ok().map(u64::from_le_bytes);
        (char::from(body[32]), hex_string(&body[..32]), sequence)
    }
}

#[test]
fn publishes_blocks_and_mempool_changes_in_order() {
    let sockets = tempfile::tempdir().unwrap();
    let path = sockets.path().join("zmq");
    let publish = |config: &mut NodeConfig| {
        let address = format!("unix:{}", path.display());
        let publication =
            |topic| Publication { topic, address: address.clone(), high_water_mark: 0 };
        config.zmq = vec![publication(Topic::Sequence), publication(Topic::RawBlock)];
    };
    let mut f = Fixture::new();
    f.mature();
    f.set_clock_to_tip();
    let now_s = u64::from(f.node.engine().chain().tip().time);
    let mut f = f.restart(|config| {
        config.engine.clock.set(now_s);
        publish(config);
    });
    let shown = format!("ipc://{}", path.display());
    let expected = |kind: &str| json!({ "type": kind, "address": shown, "hwm": 0 });
    let listed = f.call("getzmqnotifications", &json!([]));
    assert_eq!(listed, json!([expected("pubrawblock"), expected("pubsequence")]));
    let mut changes = Subscriber::connect(&path, "sequence");
    let mut blocks = Subscriber::connect(&path, "raw");
    let sequence = |f: &mut Fixture| {
        f.call("getrawmempool", &json!([false, true]))["mempool_sequence"].clone()
    };
    let send = |f: &mut Fixture, height, value| {
        let tx = f.spend_coinbase(height, &[value]);
        f.call("sendrawtransaction", &json!([hex_string(tx.bytes()), 0]));
        (tx.view().txid().to_string(), tx)
    };
    assert_eq!(sequence(&mut f), 1);
    let (first, _) = send(&mut f, 1, 4_999_990_000);
    assert_eq!(changes.change(0), ('A', first.clone(), Some(1)));
    // Test submissions and invalid transactions leave no trace.
    let invalid = f.spend_coinbase(1, &[5_000_000_001]);
    f.call(
        "testmempoolaccept",
        &json!([[hex_string(f.spend_coinbase(1, &[4_000_000_000]).bytes())]]),
    );
    f.error("sendrawtransaction", &json!([hex_string(invalid.bytes())]));
    let (second, tx) = send(&mut f, 1, 4_999_900_000);
    assert_eq!(changes.change(1), ('R', first, Some(2)));
    assert_eq!(changes.change(2), ('A', second.clone(), Some(3)));
    assert_eq!(sequence(&mut f), 4);
    f.mine(&[tx]);
    let block = f.blocks[101].hash().to_string();
    assert_eq!(changes.change(3), ('C', block.clone(), None));
    assert_eq!(blocks.expect("rawblock", 0), f.blocks[101].bytes());
    // The block removed it, which has a number and no message.
    assert_eq!(sequence(&mut f), 5);
    f.call("invalidateblock", &json!([block]));
    assert_eq!(changes.change(4), ('D', block.clone(), None));
    assert_eq!(changes.change(5), ('A', second.clone(), Some(5)));
    // A block with a conflicting spender: the conflict is removed first.
    let rival = f.spend_coinbase(1, &[4_000_000_000]);
    f.blocks.pop();
    f.mine(&[rival]);
    assert_eq!(changes.change(6), ('R', second, Some(6)));
    assert_eq!(changes.change(7), ('C', f.blocks[101].hash().to_string(), None));
    assert_eq!(blocks.expect("rawblock", 1), f.blocks[101].bytes());
    assert_eq!(f.call("getrawmempool", &json!([])), Value::Array(Vec::new()));
}

#[test]
fn failed_bind_disables_notifications() {
    let mut f = Fixture::new().restart(|config| {
        let address = "foo".to_owned();
        config.zmq = vec![Publication { topic: Topic::HashTx, address, high_water_mark: 1 }];
    });
    assert_eq!(f.call("getzmqnotifications", &json!([])), json!([]));
}

/// Receives notifications with libzmq, and prints a line for each message.
const PYZMQ: &str = "
import sys, zmq
socket = zmq.Context().socket(zmq.SUB)
socket.connect(sys.argv[1])
socket.subscribe(b'')
print('ready', flush=True)
while True:
    topic, body, number = socket.recv_multipart()
    print(topic.decode(), body.hex(), int.from_bytes(number, 'little'), flush=True)
";

#[test]
fn libzmq_receives_notifications() {
    let python = ["python3", "/usr/bin/python3"].into_iter().find(|python| {
        let tried = Command::new(python).args(["-c", "import zmq"]).stderr(Stdio::null()).status();
        tried.is_ok_and(|status| status.success())
    });
    let Some(python) = python else { return println!("skipped: there is no Python with pyzmq") };
    let sockets = tempfile::tempdir().unwrap();
    let path = sockets.path().join("zmq");
    let mut f = Fixture::new();
    f.mine(&[]);
    let now_s = u64::from(f.node.engine().chain().tip().time);
    let mut f = f.restart(|config| {
        config.engine.clock.set(now_s);
        let address = format!("unix:{}", path.display());
        let topics = [Topic::HashBlock, Topic::RawBlock, Topic::RawTx, Topic::Sequence];
        let publication =
            |topic| Publication { topic, address: address.clone(), high_water_mark: 0 };
        config.zmq = topics.map(publication).to_vec();
    });
    let address = format!("ipc://{}", path.display());
    let mut child =
        Command::new(python).args(["-c", PYZMQ, &address]).stdout(Stdio::piped()).spawn().unwrap();
    let (lines, received) = mpsc::channel();
    let output = BufReader::new(child.stdout.take().unwrap());
    thread::spawn(move || {
        output.lines().map_while(Result::ok).try_for_each(|line| lines.send(line))
    });
    assert_eq!(received.recv_timeout(Duration::from_mins(1)).unwrap(), "ready");
    // libzmq does not signal the subscription: mine until it is active.
    let first = loop {
        f.mine(&[]);
        if let Ok(line) = received.recv_timeout(Duration::from_millis(300)) {
            break line;
        }
        assert!(f.blocks.len() < 300, "nothing is received");
    };
    let is_of_block = |line: &str| line.starts_with("hashblock ");
    let mut rest =
        std::iter::once(first).chain(received.iter()).skip_while(|line| !is_of_block(line));
    let (hash, raw) = (rest.next().unwrap(), rest.next().unwrap());
    let fields = |line: &str| line.split(' ').map(str::to_owned).collect::<Vec<_>>();
    let (hash, raw) = (fields(&hash), fields(&raw));
    let block = f.blocks.iter().find(|block| block.hash().to_string() == hash[1]).unwrap();
    assert_eq!(raw[..2], ["rawblock".to_owned(), hex_string(block.bytes())]);
    assert_eq!(hash[2], raw[2], "both topics count from the start");
    child.kill().unwrap();
    child.wait().unwrap();
}
