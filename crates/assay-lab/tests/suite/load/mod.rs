//! Load tests on a small server: correct, wrong and late responses, and hostile clients.

mod chain;
mod server;

use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use assay_lab::load::{FeedOptions, LoadError, LoadOptions, LoadReport, Mix, PassReport, run};
use chain::{BLOCKS, Tiny};
use server::{Flaw, Server};

fn options(server: &Server, dir: &Path, mix: Mix) -> LoadOptions {
    LoadOptions {
        address: server.address.to_string(),
        tls: false,
        clients: 8,
        mix,
        seconds: Duration::from_millis(600),
        subscriptions: 6,
        rate: None,
        depth: 4,
        hostile: 0.0,
        attacks: Vec::new(),
        one_address: false,
        pairs: 1,
        seed: 3,
        chain_dir: Some(dir.to_owned()),
        scripts: Vec::new(),
        feed: None,
        server_pid: Some(std::process::id()),
        server_metrics: None,
        assay_version: "test".to_owned(),
    }
}

fn feed(server: &Server) -> FeedOptions {
    let every = Duration::from_millis(100);
    FeedOptions { port: server.rpc_port, credentials: "user:password".to_owned(), every }
}

fn chain_dir() -> tempfile::TempDir {
    let dir = tempfile::tempdir().expect("a temporary folder");
    Tiny::write(dir.path());
    dir
}

fn load(options: &LoadOptions) -> LoadReport {
    let report = run(options, Some(&Tiny), &AtomicBool::new(false)).expect("the server is there");
    let text = report.text();
    assert!(text.contains("protocol 1.4") && text.contains("answers:"), "{text}");
    let json = serde_json::to_string(&report).expect("it is plain data");
    let again: LoadReport = serde_json::from_str(&json).expect("what was written can be read");
    assert_eq!(again.passes.len(), report.passes.len());
    report
}

#[test]
fn right_answers() {
    let (dir, server) = (chain_dir(), Server::start(BLOCKS, Flaw::None));
    for mix in [Mix::Wallet, Mix::Heavy, Mix::Subscribe] {
        let report = load(&options(&server, dir.path(), mix));
        assert!(report.is_good(), "{mix:?}: {:?}", report.passes[0].checks);
        let pass = &report.passes[0];
        assert!(pass.checks.right > 100, "{mix:?}: {:?}", pass.checks);
        assert!(pass.idle.errors.is_empty(), "{mix:?}: {:?}", pass.idle.errors);
        assert!(pass.idle.latency.is_some_and(|latency| latency.p99_ms >= latency.p50_ms));
        assert!(pass.idle.bytes_in > 1000 && pass.idle.bytes_out > 1000);
        assert_eq!(pass.disconnects, 0);
        let methods: Vec<&str> =
            pass.idle.methods.iter().map(|method| method.method.as_str()).collect();
        if mix == Mix::Wallet {
            for method in [
                "batch of scripthash.subscribe",
                "blockchain.scripthash.get_history",
                "blockchain.transaction.get",
                "blockchain.transaction.get_merkle",
                "blockchain.scripthash.unsubscribe",
            ] {
                assert!(methods.contains(&method), "{method} of {methods:?}");
            }
        }
    }
}

#[test]
fn wrong_answers_are_found() {
    let (dir, server) = (chain_dir(), Server::start(BLOCKS, Flaw::Balance));
    let report = load(&options(&server, dir.path(), Mix::Heavy));
    assert!(!report.is_good());
    let checks = &report.passes[0].checks;
    assert!(checks.wrong > 0 && checks.right > 0, "{checks:?}");
    assert!(checks.examples[0].contains("get_balance"), "{checks:?}");
}

#[test]
fn clients_are_notified_of_blocks() {
    let (dir, server) = (chain_dir(), Server::start(3, Flaw::None));
    let mut options = options(&server, dir.path(), Mix::Subscribe);
    (options.feed, options.rate) = (Some(feed(&server)), Some(400.0));
    let report = load(&options);
    let pass = &report.passes[0];
    assert!(report.is_good(), "{:?}", pass.checks);
    assert!(pass.fed.len() >= 3, "{:?}", pass.fed);
    let headers = pass.header_notifications.expect("all were told");
    assert_eq!(headers.count, pass.fed.len() as u64 * 8);
    assert!(pass.script_notifications.is_some_and(|scripts| scripts.count == headers.count));
    assert!(pass.fed.iter().all(|block| block.first_header_ms <= block.last_header_ms));
    assert!(pass.blocks.as_ref().is_some_and(|blocks| blocks.answers > 100));
    assert_eq!(pass.checks.subscriptions_right, pass.start.subscriptions);
    assert!(pass.lag.is_some());
    let text = report.text();
    assert!(text.contains("blocks/s") && text.contains("notified of headers"), "{text}");
}

#[test]
fn detects_missing_notifications() {
    let (dir, server) = (chain_dir(), Server::start(3, Flaw::Silent));
    let mut options = options(&server, dir.path(), Mix::Subscribe);
    (options.feed, options.rate) = (Some(feed(&server)), Some(100.0));
    let report = load(&options);
    assert!(!report.is_good());
    assert_eq!(report.passes[0].checks.subscriptions_wrong, 8);
}

#[test]
fn a_stall_shows_at_a_fixed_rate() {
    let dir = chain_dir();
    let stall = Flaw::Stall(Duration::from_millis(400));
    let p90 = |rate: Option<f64>| {
        let server = Server::start(BLOCKS, stall);
        let mut options = options(&server, dir.path(), Mix::Heavy);
        (options.rate, options.depth, options.clients) = (rate, 1, 1);
        options.seconds = Duration::from_secs(1);
        let report = load(&options);
        report.passes[0].idle.latency.expect("there are answers").p90_ms
    };
    // 400 of 1000 ms are lost: most requests due then waited for more than 100 ms.
    assert!(p90(Some(300.0)) > 100.0);
    // A client that waits for each response sends nothing meanwhile, and has one slow response among many.
    assert!(p90(None) < 100.0);
}

#[test]
fn distinguishes_attacks() {
    let (dir, server) = (chain_dir(), Server::start(BLOCKS, Flaw::None));
    let mut options = options(&server, dir.path(), Mix::Heavy);
    (options.clients, options.hostile, options.rate) = (18, 0.56, Some(200.0));
    // A loaded machine needs the longer phases.
    let mut times = [3, 10, 30].map(Duration::from_secs).into_iter();
    let report = loop {
        options.seconds = times.next().expect("each kind shows what it does in half a minute");
        let report = load(&options);
        if each_kind_shows(&report.passes[1]) {
            break report;
        }
    };
    let [quiet, hostile] = report.passes.as_slice() else { panic!("two passes") };
    assert_eq!((quiet.honest, quiet.hostile), (8, 0));
    assert_eq!((hostile.honest, hostile.hostile), (8, 10));
    assert_eq!(hostile.hostiles.len(), 10);
    assert!(hostile.hostiles.iter().all(|kind| kind.clients == 1 && kind.connections > 0));
    assert!(report.hostile_ratio.is_some());
    assert!(hostile.server_rss_peak_bytes >= hostile.server_rss_start_bytes);
    assert!(report.is_good(), "{:?}", hostile.checks);
}

fn each_kind_shows(pass: &PassReport) -> bool {
    let of =
        |name| pass.hostiles.iter().find(|kind| kind.kind == name).expect("each kind is reported");
    of("lines without an end").thrown_out > 0
        && of("floods").lines > 100
        && of("random bytes").errors > 0
        && of("comes and goes").connections > 3
        && of("asks much, reconnects").connections > 1
        && of("outpoints, then leaves").bytes_out > 40_000
}

#[test]
fn rejects_impossible_options() {
    let (dir, server) = (chain_dir(), Server::start(BLOCKS, Flaw::None));
    let stop = AtomicBool::new(false);
    let good = options(&server, dir.path(), Mix::Wallet);
    let refuse = |change: fn(&mut LoadOptions)| {
        let mut options = good.clone();
        change(&mut options);
        run(&options, Some(&Tiny), &stop).expect_err("it makes no sense").to_string()
    };
    assert_eq!(refuse(|o| o.clients = 0), "give at least one client");
    assert_eq!(refuse(|o| o.hostile = 0.99), "at least one client must behave");
    assert!(refuse(|o| o.address = "nowhere".to_owned()).contains("no address"));
    assert!(refuse(|o| o.chain_dir = Some("/nonexistent".into())).contains("cannot read"));
    let mut unknown = good.clone();
    (unknown.chain_dir, unknown.mix) = (None, Mix::Heavy);
    assert!(run(&unknown, None, &stop).is_err_and(|e| e.to_string().contains("heavy")));
    let mut fed = good.clone();
    fed.feed = Some(feed(&server));
    assert!(matches!(
        run(&fed, Some(&Tiny), &stop),
        Err(LoadError::NoMoreBlocks { height: BLOCKS })
    ));
    stop.store(true, std::sync::atomic::Ordering::Relaxed);
    assert!(matches!(run(&good, Some(&Tiny), &stop), Err(LoadError::Stopped)));
}
