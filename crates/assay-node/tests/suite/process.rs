//! Process-wide state: log and signals, in a process of its own, because nodes of other tests log and stop with it.

use std::env;
use std::fs;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::process::Command;
use std::thread;

use assay_node::{LogConfig, Node, NodeConfig, P2pConfig};
use assay_wire::p2p::Message;
use assay_wire::{Block, Encoding};

use faster_hex::hex_string;

use crate::chain::{block, regtest_genesis};
use crate::p2p::MAGIC;
use crate::support::Client;

/// Set in the process that runs this test alone.
const ALONE: &str = "ASSAY_TEST_ALONE";

#[test]
fn the_log_is_bitcoin_cores_and_sigterm_stops_the_node() {
    if env::var_os(ALONE).is_some() {
        return run_alone();
    }
    let name = "process::the_log_is_bitcoin_cores_and_sigterm_stops_the_node";
    let mut program = Command::new(env::current_exe().unwrap());
    let output = program.args(["--exact", name]).env(ALONE, "1").output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && text.contains("1 passed"), "{}: {text}", output.status);
}

fn run_alone() {
    let dir = tempfile::tempdir().unwrap();
    let mut config = NodeConfig::new("regtest", dir.path()).unwrap();
    config.rpc.bind = vec!["127.0.0.1:0".parse().unwrap()];
    config.log = Some(LogConfig::default());
    config.p2p = Some(P2pConfig::new("127.0.0.1:0".parse().unwrap()));
    let node = Node::start(&config).unwrap();
    let chain_dir = config.chain_dir();
    let cookie = fs::read_to_string(chain_dir.join(".cookie")).unwrap();
    let mut client = Client::connect(node.rpc_addresses()[0], &cookie);
    let genesis = node.engine().blocks().read(&regtest_genesis()).unwrap().unwrap();
    let first = block(&Block::parse(genesis, Encoding::Segwit).unwrap(), 1, &[]);
    let reply = client.call("submitblock", &format!("[\"{}\"]", hex_string(first.bytes())));
    assert_eq!(reply.unwrap(), serde_json::Value::Null);
    // Connecting peers leave no trace in the log.
    let log = || fs::read_to_string(chain_dir.join("debug.log")).unwrap();
    let peers = node.peer_count();
    for sent in [&[][..], &[0xff; 24], &Message::Ping(7).to_bytes(MAGIC)] {
        let mut stream = TcpStream::connect(node.p2p_address().unwrap()).unwrap();
        stream.write_all(sent).unwrap();
        stream.shutdown(Shutdown::Write).unwrap();
        // A reset is an end as well.
        let _ = stream.read_to_end(&mut Vec::new());
    }
    while peers.get() > 0 {
        thread::yield_now();
    }
    assert!(!log().contains("isconnect"), "{}", log());
    // A moved log file is created again.
    let pid = fs::read_to_string(chain_dir.join("bitcoind.pid")).unwrap();
    fs::rename(chain_dir.join("debug.log"), chain_dir.join("debug.log.1")).unwrap();
    assert!(Command::new("kill").args(["-HUP", pid.trim()]).status().unwrap().success());
    while !chain_dir.join("debug.log").exists() {
        client.call("submitblock", "[\"00\"]").unwrap_err();
    }
    let moved = fs::read_to_string(chain_dir.join("debug.log.1")).unwrap();
    let running = thread::spawn(move || node.wait());
    let killed = Command::new("kill").args(["-TERM", pid.trim()]).status().unwrap();
    assert!(killed.success());
    running.join().unwrap().unwrap();
    assert!(!chain_dir.join(".cookie").exists());

    let log = moved + &log();
    let update = log
        .lines()
        .find(|line| line.contains(&format!("UpdateTip: new best={}", first.hash())))
        .unwrap_or_else(|| panic!("no UpdateTip line in:\n{log}"));
    let (time, rest) = update.split_at(28);
    let shape: String = time.chars().map(|c| if c.is_ascii_digit() { '0' } else { c }).collect();
    assert_eq!(shape, "0000-00-00T00:00:00.000000Z ");
    for field in [
        " height=1 ",
        " version=0x20000000 ",
        " log2_work=",
        " tx=2 ",
        " date='",
        " progress=",
        " cache=",
    ] {
        assert!(rest.contains(field), "{field} in {rest}");
    }
    assert!(log.contains("Received SIGTERM") && log.trim_end().ends_with("Shutdown: done"));
}
