//! Load tests on a small server: correct, wrong and late responses, and hostile clients.

use std::net::{SocketAddr, TcpListener};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use assay_lab::load::{FeedOptions, LoadOptions, Mix, Scripts, run};
use assay_lab::machine::Software;
use assay_lab::progress::Interrupted;
use assay_report::record::{Cell, Outcome, Record};

use crate::chain::{OF_LOAD, script_of_load, write};
use crate::electrum::{Flaws, Index};
use crate::node::{COOKIE, Node, Script};

const BLOCKS: u32 = OF_LOAD.len() as u32;

/// A server, and the chain directory in `dir`.
struct Server {
    address: SocketAddr,
    rpc_port: u16,
}

impl Server {
    fn start(dir: &Path, height: u32, flaws: Flaws) -> Self {
        write(dir, ("tiny", 1, 1.0, false), &OF_LOAD).expect("writable");
        let bind = || TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = |listener: &TcpListener| listener.local_addr().expect("it is bound");
        let (electrum, rpc) = (bind(), bind());
        let server = Self { address: address(&electrum), rpc_port: address(&rpc).port() };
        let index = Index::serve(electrum, vec![script_of_load()], flaws, height);
        thread::spawn(move || Node::serve_all(&rpc, Script::default(), Some(index), height));
        server
    }

    fn feed(&self) -> FeedOptions {
        let every = Duration::from_millis(100);
        FeedOptions { port: self.rpc_port, credentials: COOKIE.to_owned(), every }
    }
}

fn scripts() -> Scripts<'static> {
    Box::new(std::iter::once(script_of_load()))
}

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
        software: Software::default(),
        rerun: "assay load".to_owned(),
    }
}

fn load(options: &LoadOptions) -> Record {
    let stop = AtomicBool::new(false);
    let record = run(options, Some(scripts()), &stop).expect("the server is there");
    let text = record.text();
    assert!(
        text.contains("protocol 1.4") && text.lines().all(|line| line.chars().count() <= 80),
        "{text}"
    );
    record
}

/// The only value of a metric.
fn value(record: &Record, case: &str, metric: &str) -> f64 {
    let values = record.values(case, metric);
    assert_eq!(values.len(), 1, "{metric} of {case:?}: {}", record.text());
    values[0]
}

pub(crate) fn right_answers(dir: &Path) {
    let server = Server::start(dir, BLOCKS, Flaws::default());
    for mix in [Mix::Wallet, Mix::Heavy, Mix::Subscribe] {
        let record = load(&options(&server, dir, mix));
        let text = record.text();
        assert!(record.has_passed(), "{mix:?}: {text}");
        let of = |case: &str, metric: &str| value(&record, case, metric);
        assert!(of("all phases", "right") > 100.0, "{mix:?}: {text}");
        assert!(!text.contains("error: "), "{mix:?}: {text}");
        assert!(of("idle, all", "p99") >= of("idle, all", "p50"));
        assert!(of("idle", "received") > 1000.0 && of("idle", "sent") > 1000.0);
        assert!(of("all phases", "lost connections") < 1.0);
        if mix == Mix::Wallet {
            for method in [
                "batch of scripthash.subscribe",
                "scripthash.get_history",
                "transaction.get",
                "transaction.get_merkle",
                "scripthash.unsubscribe",
            ] {
                assert!(of(&format!("idle, {method}"), "number") > 0.0, "{method}");
            }
        }
    }
}

pub(crate) fn wrong_answers_are_found(dir: &Path) {
    let server = Server::start(dir, BLOCKS, Flaws { satoshi: 1, ..Flaws::default() });
    let record = load(&options(&server, dir, Mix::Heavy));
    let of = |metric| value(&record, "all phases", metric);
    assert!(of("wrong") > 0.0 && of("right") > 0.0);
    let Outcome::Failed(why) = record.outcome() else { panic!("{}", record.text()) };
    assert!(why.contains("get_balance"), "{why}");
    assert!(record.notes.iter().any(|note| note.contains("get_balance")), "{:?}", record.notes);
}

pub(crate) fn clients_are_notified_of_blocks(dir: &Path) {
    let server = Server::start(dir, 3, Flaws::default());
    let mut options = options(&server, dir, Mix::Subscribe);
    (options.feed, options.rate) = (Some(server.feed()), Some(400.0));
    let record = load(&options);
    let of = |case: &str, metric: &str| value(&record, case, metric);
    assert!(record.has_passed(), "{}", record.text());
    let blocks = of("blocks", "blocks");
    assert!(blocks >= 3.0, "{blocks}");
    let notifications =
        ["headers", "scripts"].map(|kind| of(&format!("notified of {kind}"), "number").to_string());
    assert_eq!(notifications, [(blocks * 8.0).to_string(), (blocks * 8.0).to_string()]);
    let series = record.samples.iter().find(|series| series.case == "blocks").expect("blocks");
    let column = |name| series.columns.iter().position(|(column, _)| column == name);
    let [first, last] = ["first header", "last header"].map(column);
    let is_ordered = |row: &Vec<Option<f64>>| row[first.expect("is")] <= row[last.expect("is")];
    assert!(series.rows.iter().all(is_ordered), "{series:?}");
    assert!(of("blocks, all", "number") > 100.0);
    let [right, made] = ["last statuses right", "subscriptions at the start"];
    assert_eq!(record.values("all phases", right), record.values("all phases", made));
    assert!(of("lag", "number") > 0.0);
}

pub(crate) fn detects_missing_notifications(dir: &Path) {
    let server = Server::start(dir, 3, Flaws { is_silent: true, ..Flaws::default() });
    let mut options = options(&server, dir, Mix::Subscribe);
    (options.feed, options.rate) = (Some(server.feed()), Some(100.0));
    let record = load(&options);
    assert!(!record.has_passed());
    assert_eq!(record.values("all phases", "last statuses wrong"), [8.0]);
}

pub(crate) fn a_stall_shows_at_a_fixed_rate(dir: &Path) {
    let stall = Some(Duration::from_millis(400));
    let p90 = |rate: Option<f64>| {
        let server = Server::start(dir, BLOCKS, Flaws { stall, ..Flaws::default() });
        let mut options = options(&server, dir, Mix::Heavy);
        (options.rate, options.depth, options.clients) = (rate, 1, 1);
        options.seconds = Duration::from_secs(1);
        value(&load(&options), "idle, all", "p90")
    };
    // 400 of 1000 ms are lost: most requests due then waited for more than 100 ms.
    assert!(p90(Some(300.0)) > 0.1);
    // A client that waits for each response sends nothing meanwhile, and has one slow response among many.
    assert!(p90(None) < 0.1);
}

pub(crate) fn distinguishes_attacks(dir: &Path) {
    let server = Server::start(dir, BLOCKS, Flaws::default());
    let mut options = options(&server, dir, Mix::Heavy);
    (options.clients, options.hostile, options.rate) = (18, 0.56, Some(200.0));
    // A loaded machine needs the longer phases.
    let mut times = [3, 10, 30].map(Duration::from_secs).into_iter();
    let record = loop {
        options.seconds = times.next().expect("each kind shows what it does in half a minute");
        let record = load(&options);
        if each_kind_shows(&record) {
            break record;
        }
    };
    let of = |case: &str, metric: &str| value(&record, case, metric) as u32;
    for (pass, hostile) in [("quiet, all phases", 0), ("hostile, all phases", 10)] {
        assert_eq!((of(pass, "honest clients"), of(pass, "hostile clients")), (8, hostile));
        let memory = ["server memory, peak", "server memory"].map(|metric| of(pass, metric));
        assert!(memory[0] >= memory[1], "{memory:?}");
    }
    let is_attack = |cell: &&Cell| cell.metric == "connections";
    let connections: Vec<f64> = record.cells.iter().filter(is_attack).map(|c| c.value).collect();
    assert!(connections.len() == 10 && connections.iter().all(|count| *count > 0.0));
    assert!(value(&record, "hostile, idle, all / quiet, idle, all", "p99") > 0.0);
    assert!(record.has_passed(), "{}", record.text());
}

fn each_kind_shows(record: &Record) -> bool {
    let of = |attack, metric| {
        let values = record.values(&format!("hostile, {attack}"), metric);
        values.first().copied().unwrap_or_default()
    };
    of("lines without an end", "disconnected") > 0.0
        && of("floods", "responses") > 100.0
        && of("random bytes", "errors") > 0.0
        && of("comes and goes", "connections") > 3.0
        && of("asks much, reconnects", "connections") > 1.0
        && of("outpoints, then leaves", "sent") > 40_000.0
}

pub(crate) fn rejects_impossible_options(dir: &Path) {
    let server = Server::start(dir, BLOCKS, Flaws::default());
    let stop = AtomicBool::new(false);
    let good = options(&server, dir, Mix::Wallet);
    let refuse = |change: fn(&mut LoadOptions)| {
        let mut options = good.clone();
        change(&mut options);
        run(&options, Some(scripts()), &stop).expect_err("it makes no sense").to_string()
    };
    assert_eq!(refuse(|o| o.clients = 0), "give at least one client");
    assert_eq!(refuse(|o| o.hostile = 0.99), "at least one client must behave");
    assert!(refuse(|o| "nowhere".clone_into(&mut o.address)).contains("no address"));
    assert!(refuse(|o| o.chain_dir = Some("/nonexistent".into())).contains("cannot read"));
    let mut unknown = good.clone();
    (unknown.chain_dir, unknown.mix) = (None, Mix::Heavy);
    assert!(run(&unknown, None, &stop).is_err_and(|e| e.to_string().contains("heavy")));
    let mut fed = good.clone();
    fed.feed = Some(server.feed());
    let error = run(&fed, Some(scripts()), &stop).expect_err("all blocks are there");
    let expected = format!("at height {BLOCKS}, and the chain directory has no more blocks");
    assert!(error.to_string().ends_with(&expected), "{error}");
    stop.store(true, Ordering::Relaxed);
    assert!(run(&good, Some(scripts()), &stop).is_err_and(|error| error.is::<Interrupted>()));
}
