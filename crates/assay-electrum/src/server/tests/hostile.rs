//! Hostile clients.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use serde_json::json;

use super::node::{BOB, Client, Node, config, hash, pay};
use crate::server::{Config, Limits, Server, StartError};
use crate::testing::FakeChain;

fn limited(limits: Limits) -> Node {
    Node::with(Config { limits, ..config() })
}

/// A budget that some large responses exhaust, with a refill time longer than any test. A thread that waits for a processor is
/// charged for the time: it holds a tenth of a second.
fn tight() -> Limits {
    Limits {
        units_per_second: 1,
        units_burst: 1500,
        throttle_max: Duration::from_millis(100),
        ..Limits::default()
    }
}

/// Requests large responses until the first rejection.
fn use_up<S: Read + Write>(client: &mut Client<S>) {
    client.call("server.ping", &json!([400_000]));
    for _ in 0..20 {
        let answer = client.ask("server.ping", &json!([400_000]));
        if answer.get("error").is_some() {
            assert_eq!(answer["error"]["code"], -101);
            return;
        }
    }
    panic!("nothing is refused");
}

#[test]
fn garbage_gets_errors_then_disconnect() {
    let node = limited(Limits { refusals_max: 4, ..Limits::default() });
    let mut client = node.client_of("1.6");
    for (line, code) in [("{", -32700), ("\u{1}\u{2}", -32700), ("17", -32600)] {
        client.send(line);
        assert_eq!(client.line()["error"]["code"], code);
    }
    // One valid request resets the count.
    client.call("server.ping", &json!([]));
    client.send("");
    client.send("   ");
    for _ in 0..4 {
        client.send("garbage");
        assert_eq!(client.line()["error"]["code"], -32700);
    }
    assert!(client.is_closed());
    node.wait_for("disconnections_total{reason=\"too-many-refusals\"} 1");
    node.client_of("1.6").call("server.banner", &json!([]));
}

#[test]
fn arbitrary_bytes_do_not_panic() {
    let node = Node::new();
    let mut state = 7u64;
    for _ in 0..50 {
        let mut stream = TcpStream::connect(node.address()).unwrap();
        let bytes: Vec<u8> = (0..2000)
            .map(|_| {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                (state >> 56) as u8
            })
            .collect();
        // The server may disconnect it before all bytes are sent.
        let _ = stream.write_all(&bytes);
    }
    node.client_of("1.6").call("server.banner", &json!([]));
}

#[test]
fn lines_that_are_too_long_end_the_connection() {
    let node = limited(Limits { request_bytes_max: 100_000, ..Limits::default() });
    let mut client = node.client_of("1.6");
    // Maximum length, received in pieces.
    let fill = " ".repeat(99_900);
    client.send(&format!("{fill}{{\"id\":1,\"method\":\"server.ping\"}}"));
    assert_eq!(client.line()["id"], 1);
    let _ = client.stream.get_mut().write_all(&vec![b' '; 200_000]);
    assert_eq!(client.line()["error"]["code"], -101);
    assert!(client.is_closed());
    node.wait_for("disconnections_total{reason=\"oversize-line\"} 1");
}

#[test]
fn slow_reader_is_disconnected_without_affecting_others() {
    let limits = Limits {
        response_bytes_max: 100_000,
        write_stall: Duration::from_millis(500),
        units_per_second: 0,
        ..Limits::default()
    };
    let mut node = limited(limits);
    let mut slow = node.client_of("1.7");
    slow.call("blockchain.scriptpubkey.subscribe", &json!([super::node::hex(BOB)]));
    let ask = json!({"id": 1, "method": "server.ping", "params": [90_000]}).to_string() + "\n";
    let stream = slow.stream.get_mut();
    stream.set_write_timeout(Some(Duration::from_millis(200))).unwrap();
    // Until both sides' buffers are full.
    for _ in 0..2000 {
        if stream.write_all(ask.as_bytes()).is_err() {
            break;
        }
    }
    let mut honest = node.client_of("1.6");
    honest.call("blockchain.scripthash.subscribe", &json!([hash(BOB)]));
    let paid = pay(&node, 1, &[(30, BOB)]);
    node.accept(&paid, 1);
    assert_eq!(honest.notification()["params"][1], node.status(BOB));
    node.wait_for("disconnections_total{reason=\"slow-reader\"} 1");
    node.wait_for("assay_electrum_output_bytes 0\n");
}

#[test]
fn large_excess_is_rejected_then_disconnected() {
    let node = limited(Limits { refusals_max: 5, ..tight() });
    let mut client = node.client_of("1.7");
    use_up(&mut client);
    for _ in 0..3 {
        assert_eq!(client.error("server.ping", &json!([])), -101);
    }
    client.send(r#"{"id":1,"method":"server.ping"}"#);
    assert!(client.is_closed());
}

#[test]
fn slight_excess_is_delayed() {
    let limits = Limits {
        units_per_second: 20,
        units_burst: 40,
        // A thread that waits for a processor is charged: the delay limit exceeds any debt, so that none is rejected.
        throttle_max: Duration::from_mins(2),
        ..Limits::default()
    };
    let node = limited(limits);
    let mut client = node.client_of("1.6");
    let start = Instant::now();
    for _ in 0..45 {
        client.call("server.banner", &json!([]));
    }
    assert!(start.elapsed() >= Duration::from_millis(100), "{:?}", start.elapsed());
    assert!(!node.server.metrics().contains("throttled_total 0\n"));
}

/// An address keeps its debt across reconnects.
#[test]
#[cfg(target_os = "linux")]
fn reconnect_does_not_refill_the_budget() {
    let node = limited(tight());
    let mut client = node.client_from([127, 0, 0, 9]);
    client.call("server.version", &json!(["test", "1.7"]));
    use_up(&mut client);
    drop(client);
    assert!(node.client_from([127, 0, 0, 9]).is_closed());
    node.client_from([127, 0, 0, 8]).call("server.ping", &json!([]));
    // Behind a proxy each connection has its own budget.
    for _ in 0..3 {
        use_up(&mut node.client_of("1.7"));
    }
    assert!(!node.server.metrics().contains("connections_turned_away_total 0\n"));
}

#[test]
#[cfg(target_os = "linux")]
fn connections_of_an_address_share_their_subscriptions() {
    let node = limited(Limits { subscriptions_per_ip_max: 3, ..Limits::default() });
    let subscribe = "blockchain.scripthash.subscribe";
    let (mut one, mut two) = (node.client_from([127, 0, 0, 9]), node.client_from([127, 0, 0, 9]));
    let mut other = node.client_from([127, 0, 0, 8]);
    one.call(subscribe, &json!([hash(b"1")]));
    one.call(subscribe, &json!([hash(b"2")]));
    two.call(subscribe, &json!([hash(b"1")]));
    assert_eq!(two.error(subscribe, &json!([hash(b"3")])), -101);
    other.call(subscribe, &json!([hash(b"3")]));
    drop(one);
    node.wait_for("assay_electrum_clients 2\n");
    two.call(subscribe, &json!([hash(b"3")]));
    two.call(subscribe, &json!([hash(b"4")]));
    assert_eq!(two.error(subscribe, &json!([hash(b"5")])), -101);
}

#[test]
fn flood_does_not_delay_others() {
    let node = Node::new();
    let address = node.address();
    let floods: Vec<_> = (0..20)
        .map(|_| {
            std::thread::spawn(move || {
                let mut client = Client::new(TcpStream::connect(address).unwrap());
                let ask = json!({"id": 1, "method": "blockchain.block.headers", "params": [0, 10]});
                let many = (ask.to_string() + "\n").repeat(2000);
                // Nobody reads responses: the connection either ends or stalls.
                client.stream.get_mut().set_write_timeout(Some(Duration::from_secs(3))).unwrap();
                let _ = client.stream.get_mut().write_all(many.as_bytes());
            })
        })
        .collect();
    let mut client = node.client_of("1.6");
    let mut times = Vec::new();
    for _ in 0..50 {
        let start = Instant::now();
        client.call("blockchain.scripthash.get_balance", &json!([hash(BOB)]));
        times.push(start.elapsed());
    }
    times.sort();
    println!("median {:?}, slowest {:?}", times[25], times[49]);
    assert!(times[25] < Duration::from_secs(2));
    for flood in floods {
        flood.join().unwrap();
    }
}

#[test]
fn silent_clients_are_disconnected() {
    let limits = Limits {
        first_request: Duration::from_secs(1),
        idle: Duration::from_secs(1),
        ..Limits::default()
    };
    let node = limited(limits);
    let mut silent = node.client();
    assert!(silent.is_closed());
    let mut dripping = node.client();
    dripping.stream.get_mut().write_all(b"{").unwrap();
    assert!(dripping.is_closed());
    let mut idle = node.client();
    idle.call("server.ping", &json!([]));
    assert!(idle.is_closed());
    node.wait_for("disconnections_total{reason=\"no-request\"} 2");
    node.wait_for("disconnections_total{reason=\"idle\"} 1");
}

#[test]
fn connections_are_counted() {
    let node = limited(Limits { connections_max: 2, ..Limits::default() });
    let (mut one, mut two) = (node.client_of("1.6"), node.client_of("1.6"));
    let mut three = node.client();
    assert!(three.is_closed());
    drop(one.stream);
    node.wait_for("assay_electrum_clients 1\n");
    one = node.client_of("1.6");
    one.call("server.ping", &json!([]));
    two.call("server.ping", &json!([]));
}

#[test]
fn oversized_results_are_errors() {
    let node = limited(Limits { response_bytes_max: 1000, ..Limits::default() });
    let mut client = node.client_of("1.6");
    assert_eq!(client.error("blockchain.block.headers", &json!([0, 10])), -101);
    client.call("blockchain.block.headers", &json!([0, 2]));
    let ask = json!({"id": 1, "method": "blockchain.block.headers", "params": [0, 3]});
    client.send(&json!(vec![ask; 5]).to_string());
    let answer = client.line();
    let good = answer.as_array().unwrap().iter().filter(|item| item.get("result").is_some());
    assert_eq!(good.count(), 1);
    assert_eq!(answer[4]["error"]["code"], -101);
}

#[test]
fn exposure_needs_an_explicit_option() {
    let all = SocketAddr::from(([0, 0, 0, 0], 0));
    for config in [
        Config { tcp: vec![all], ..Config::default() },
        Config { tls: vec![all], ..Config::default() },
        Config { metrics: Some(all), ..config() },
    ] {
        let refused = Server::start(config, std::sync::Arc::new(FakeChain::default())).err();
        assert!(matches!(refused, Some(StartError::Exposed { address }) if address == all));
    }
    let open = Config { tcp: vec![all], expose: true, ..Config::default() };
    Server::start(open, std::sync::Arc::new(FakeChain::default())).unwrap().stop();
}

#[test]
fn half_closed_client_gets_responses() {
    let node = Node::new();
    let mut client = node.client();
    let ask = json!({"id": 1, "method": "blockchain.block.headers", "params": [0, 10]}).to_string();
    client.stream.get_mut().write_all([&*ask, "\n", &*ask, "\n"].concat().as_bytes()).unwrap();
    client.stream.get_mut().shutdown(std::net::Shutdown::Write).unwrap();
    assert_eq!(client.line()["result"]["count"], 10);
    assert_eq!(client.line()["result"]["count"], 10);
    assert!(client.is_closed());
}

#[test]
fn a_stop_ends_all_connections() {
    let mut node = Node::new();
    let mut client = node.client_of("1.6");
    let taken = std::mem::replace(&mut node, Node::empty(config()));
    let start = Instant::now();
    taken.server.stop();
    assert!(client.is_closed());
    assert!(start.elapsed() < Duration::from_secs(8));
}

#[test]
fn memory_is_bounded_as_configured() {
    let limits = Limits::default();
    let bound = limits.memory_bytes_max(2);
    // The value in docs/electrum.md for the defaults with two workers.
    assert_eq!(bound >> 20, 2_095);
    let half = Limits { connections_max: limits.connections_max / 2, ..limits };
    assert!(half.memory_bytes_max(2) < bound);
}
