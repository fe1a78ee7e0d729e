//! End-to-end tests from a plan to a report, with a fake forge and a fake node as real processes, and of query load on the same
//! node.
//!
//! This program is its own forge and its own node: called with `forge` or `node` it acts as one, otherwise it runs the tests. It
//! therefore has no harness.

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a test program prints")]

mod chain;
mod electrum;
mod load;
mod node;

use std::ffi::OsString;
use std::fs;
use std::panic::{self, AssertUnwindSafe};
use std::path::Path;
use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use assay_lab::plan::{Keys, Plan};
use assay_lab::progress::{Event, Reporter, Silent};
use assay_lab::report;
use assay_lab::results::{self, Results, Run, Status};
use assay_lab::run::{RunOptions, VoidRun, run};

const PLAN: &str = r#"
format = 1
name = "tiny"
title = "Tiny"
summary = "A chain of five blocks."

[chain]
recipe = "tiny"
seed = 3
scale = 0.5

[feed]
seen = [0.0, 0.9]
batch = 7

[runs]

[[phase]]
name = "maturity"
title = "Maturity"
measured = false

[[phase]]
name = "fan-out"
title = "Fan-out"
"#;

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let acted = match args.first().map(String::as_str) {
        Some("forge") => chain::forge(&args[1..]),
        Some("node") => node::main(&args[1..]),
        Some("scripts") => chain::scripts(&args[1..]),
        _ => return run_tests(&args),
    };
    match acted {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("{message}");
            ExitCode::FAILURE
        }
    }
}

/// A test receives a fresh folder.
type Test = fn(&Path);

/// Runs the tests whose names contain the first argument that is no option.
fn run_tests(args: &[String]) -> ExitCode {
    let tests: [(&str, Test); 25] = [
        ("plan_becomes_report", plan_becomes_report),
        ("random_share_is_sent", random_share_is_sent),
        ("connections_are_kept", connections_are_kept),
        ("repeats_turn_around", repeats_turn_around),
        ("dead_target_voids_its_run_and_resume_completes", dead_target),
        ("interrupted_run_is_void", interrupted),
        ("refused_block_is_told", refused_block),
        ("other_utxo_set_voids_the_run", other_utxo_set),
        ("target_without_muhash_is_compared_otherwise", no_muhash),
        ("target_that_does_not_start", target_does_not_start),
        ("chains_are_reused_and_checked", chains),
        ("unwritable_folders_are_named", unwritable_folders),
        ("index_is_watched_and_compared", index_is_watched),
        ("both_kinds_of_keys", both_kinds_of_keys),
        ("wrong_answer_voids_the_run", wrong_answer),
        ("refused_answer_voids_the_run", refused_answer),
        ("index_that_stays_behind", index_stays_behind),
        ("index_that_hangs_up", index_hangs_up),
        ("load_right_answers", load::right_answers),
        ("load_wrong_answers_are_found", load::wrong_answers_are_found),
        ("load_clients_are_notified_of_blocks", load::clients_are_notified_of_blocks),
        ("load_detects_missing_notifications", load::detects_missing_notifications),
        ("load_a_stall_shows_at_a_fixed_rate", load::a_stall_shows_at_a_fixed_rate),
        ("load_distinguishes_attacks", load::distinguishes_attacks),
        ("load_rejects_impossible_options", load::rejects_impossible_options),
    ];
    let filter = args.iter().find(|arg| !arg.starts_with('-')).map_or("", String::as_str);
    let mut failed = 0;
    for (name, test) in tests.iter().filter(|(name, _)| name.contains(filter)) {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let ok = panic::catch_unwind(AssertUnwindSafe(|| test(folder.path()))).is_ok();
        println!("test {name} ... {}", if ok { "ok" } else { "FAILED" });
        failed += u32::from(!ok);
    }
    if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn plan() -> Plan {
    Plan::parse(PLAN, "test").expect("a valid plan")
}

fn options(folder: &Path, wrongs: &[&str]) -> RunOptions {
    let this = std::env::current_exe().expect("this program has a path").into_os_string();
    let mut node_command: Vec<OsString> = vec![this.clone(), "node".into()];
    node_command.extend(wrongs.iter().map(OsString::from));
    RunOptions {
        out_dir: folder.join("out"),
        forge_command: vec![this.clone(), "forge".into()],
        scripts_command: vec![this, "scripts".into()],
        node_command,
        assay_version: "test".to_owned(),
        rustc_version: "rustc".to_owned(),
        rerun: "again".to_owned(),
        ..RunOptions::default()
    }
}

fn whole(folder: &Path, wrongs: &[&str]) -> Results {
    run(plan(), &options(folder, wrongs), &Silent).expect("the plan runs")
}

fn story(error: &anyhow::Error) -> String {
    format!("{error:#}")
}

fn plan_becomes_report(folder: &Path) {
    let results = whole(folder, &["--refuse-tx", "9"]);
    assert_eq!(results.void_runs().count(), 0);
    let [unseen, seen] = &results.targets[0].runs[..] else { panic!("two runs") };
    assert_eq!((unseen.id.as_str(), seen.id.as_str()), ("assay-0", "assay-90"));
    for run in [unseen, seen] {
        assert_eq!(run.tip.as_deref(), Some(results.chain.tip.as_str()));
        assert_eq!(run.utxo_muhash, Some(chain::muhash()));
        assert!(run.checks.iter().all(|check| check.found.as_ref() == Some(&check.expected)));
        let names: Vec<_> = run.phases.iter().map(|phase| phase.name.as_str()).collect();
        assert_eq!(names, ["maturity", "fan-out", "steady-1"]);
        assert_eq!((run.total.blocks, run.total.txs), (3, 53));
        assert!(run.total.seconds > 0.0 && run.startup_s.is_some() && run.shutdown_s.is_some());
        assert_eq!(run.control_ns.len(), 2);
        for block in &run.blocks {
            assert!(block.service_s > 0.0 && block.queue_s >= 0.0, "{block:?}");
            assert!(block.last_tx_at_s.is_none_or(|last_s| last_s <= block.send_at_s));
        }
    }
    assert!(unseen.seen_measured.abs() < 1e-9 && unseen.tx_errors.is_empty());
    // 18 + 18 + 9 were sent, and every ninth of them was rejected.
    let admission = seen.total.admission;
    assert_eq!((admission.sent, admission.accepted, admission.bytes), (45, 40, 4500));
    assert!((seen.seen_measured - 40.0 / 50.0).abs() < 1e-9);
    assert_eq!(seen.tx_errors.get("-26: dust"), Some(&5));

    let out = folder.join("out");
    for file in report::FILES {
        assert!(out.join(file).exists(), "{file}");
    }
    assert_eq!(results::load(&out).expect("results"), results);
    assert!(!out.join("work/assay-0").exists(), "data folders are removed");
}

fn random_share_is_sent(folder: &Path) {
    let text = PLAN.replace("batch = 7", "batch = 1000\nseen_mode = \"random\"");
    let plan = Plan::parse(&text, "test").expect("a valid plan");
    let results = run(plan, &options(folder, &[]), &Silent).expect("the plan runs");
    let seen = &results.targets[0].runs[1];
    assert!((seen.seen_measured - 0.9).abs() < 1e-9);
}

fn connections_are_kept(folder: &Path) {
    whole(folder, &[]);
    let log = fs::read_to_string(folder.join("out/logs/assay-90.log")).expect("a log");
    // One waited for the start, one feeds, one watches the tip.
    assert_eq!(log.matches("connection").count(), 3);
}

/// Records the order of runs.
#[derive(Default)]
struct Order(Mutex<Vec<String>>);

impl Reporter for Order {
    fn event(&self, event: &Event<'_>) {
        let entry = match event {
            Event::RunStarted { id, .. } => (*id).to_owned(),
            Event::RunSkipped { run } => format!("skipped {}", run.id),
            _ => return,
        };
        self.0.lock().expect("not poisoned").push(entry);
    }
}

fn repeats_turn_around(folder: &Path) {
    let mut plan = plan();
    (plan.runs.repeat, plan.runs.warmup) = (2, 1);
    let order = Order::default();
    let results = run(plan, &options(folder, &[]), &order).expect("the plan runs");
    let expected = ["assay-warmup-1", "assay-0-1", "assay-90-1", "assay-90-2", "assay-0-2"];
    assert_eq!(*order.0.lock().expect("not poisoned"), expected);
    let sorted: Vec<_> = results.runs().map(|run| run.id.as_str()).collect();
    assert_eq!(sorted, ["assay-0-1", "assay-0-2", "assay-90-1", "assay-90-2"]);
}

fn dead_target(folder: &Path) {
    // The first run has a healthy node, the second one that dies.
    let mut first = plan();
    first.feed.seen = vec![0.0];
    run(first, &options(folder, &[]), &Silent).expect("the plan runs");
    let fresh = folder.join("out/runs/assay-0.json");
    let before = fs::read(&fresh).expect("kept");

    let mut dying = options(folder, &["--die-at", "4"]);
    dying.resume = true;
    // Other arguments are other settings, so both runs are repeated, and the first one dies.
    let error = run(plan(), &dying, &Silent).expect_err("the target dies");
    assert!(error.is::<VoidRun>());
    let told = story(&error);
    for part in
        ["assay-0 is void", "block 4 of 5 (fan-out)", "signal: 6", "about to abort", "--resume"]
    {
        assert!(told.contains(part), "{part} is not in: {told}");
    }
    let void = results::load(&folder.join("out")).expect("a report all the same");
    assert_eq!(void.runs().map(|run| run.status).collect::<Vec<_>>(), [Status::Void]);
    assert_eq!(void.targets[0].runs[0].blocks.len(), 3, "what was measured is kept");

    // An invalid run is repeated; a valid one is kept.
    let mut healthy = options(folder, &[]);
    healthy.resume = true;
    fs::write(&fresh, before).expect("writable");
    let order = Order::default();
    let results = run(plan(), &healthy, &order).expect("the plan runs");
    assert_eq!(*order.0.lock().expect("not poisoned"), ["skipped assay-0", "assay-90"]);
    assert!(results.runs().all(|run: &Run| run.status == Status::Valid));
}

/// Requests a stop when the first run has begun.
#[derive(Default)]
struct Impatient(AtomicBool);

impl Reporter for Impatient {
    fn event(&self, event: &Event<'_>) {
        if matches!(event, Event::Block { block, .. } if block.height == 2) {
            self.0.store(true, Ordering::Relaxed);
        }
    }

    fn wants_stop(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

fn interrupted(folder: &Path) {
    let told = run(plan(), &options(folder, &[]), &Impatient::default());
    let told = story(&told.expect_err("interrupted"));
    assert!(told.contains("interrupted at block 3"), "{told}");
}

fn refused_block(folder: &Path) {
    let error = run(plan(), &options(folder, &["--refuse-at", "3"]), &Silent);
    let told = story(&error.expect_err("a block is refused"));
    assert!(
        told.contains("block 3 (") && told.contains("bad-txns-inputs-missingorspent"),
        "{told}"
    );
}

fn other_utxo_set(folder: &Path) {
    let results = whole(folder, &["--other-muhash"]);
    assert_eq!(results.void_runs().count(), 2);
    let reason = results.targets[0].runs[0].void_reason.clone().expect("a reason");
    assert!(reason.starts_with("UTXO MuHash is eeee"), "{reason}");
    let page = fs::read_to_string(folder.join("out/report.md")).expect("a report");
    assert!(
        page.starts_with("# ")
            && page.contains("**No run is valid: nothing was measured. FAILED: assay-0: ")
    );
    assert!(page.contains("- assay-0 is discarded: UTXO MuHash is eeee"), "{page}");
}

fn no_muhash(folder: &Path) {
    let results = whole(folder, &["--no-muhash"]);
    assert_eq!(results.void_runs().count(), 0);
    let run = &results.targets[0].runs[0];
    assert_eq!(run.utxo_muhash, None);
    let told: Vec<_> = run.checks.iter().filter(|check| check.found.is_some()).collect();
    assert_eq!(told.len(), run.checks.len() - 1);
}

fn target_does_not_start(folder: &Path) {
    let error = run(plan(), &options(folder, &["--never-ready"]), &Silent);
    let told = story(&error.expect_err("it does not start"));
    assert!(told.contains("exit status: 1") && told.contains("no space left"), "{told}");
}

fn chains(folder: &Path) {
    let chain = folder.join("chain");
    let with_chain = RunOptions { chain_dir: Some(chain.clone()), ..options(folder, &[]) };
    let of = |seed: u64| {
        let mut plan = plan();
        plan.chain.seed = seed;
        run(plan, &with_chain, &Silent)
    };
    let forged = of(5).expect("the plan runs");
    assert!(forged.chain.forge_s.is_some());
    let reused = of(5).expect("the plan runs");
    assert!(reused.chain.forge_s.is_none());
    let told = story(&of(6).expect_err("another chain"));
    assert!(told.contains("holds another chain: seed is 5"), "{told}");
    assert!(folder.join("out/runs.1").exists(), "earlier runs are moved aside");

    // An unfinished chain is forged again, but other files are kept.
    let ledger = fs::read_to_string(chain.join("ledger.jsonl")).expect("a ledger");
    let cut: Vec<&str> = ledger.lines().take(3).collect();
    fs::write(chain.join("ledger.jsonl.part"), cut.join("\n")).expect("writable");
    fs::remove_file(chain.join("ledger.jsonl")).expect("removable");
    let again = of(5).expect("the plan runs");
    assert!(again.chain.forge_s.is_some());
    fs::remove_file(chain.join("ledger.jsonl")).expect("removable");
    fs::write(chain.join("mine.txt"), "keep me").expect("writable");
    let told = story(&of(5).expect_err("no chain"));
    assert!(told.contains("is not empty and holds no chain"), "{told}");

    let mut impossible = plan();
    "impossible".clone_into(&mut impossible.chain.recipe);
    let told = story(&run(impossible, &options(folder, &[]), &Silent).expect_err("no recipe"));
    assert!(told.contains("a coin of 5 cannot pay 6"), "{told}");
}

fn plan_with_index() -> Plan {
    let text = PLAN.replace("[runs]", "[runs]\ntargets = [\"assay+index\"]");
    Plan::parse(&text, "test").expect("a valid plan")
}

fn with_index(folder: &Path, wrongs: &[&str]) -> anyhow::Result<Results> {
    run(plan_with_index(), &options(folder, wrongs), &Silent)
}

fn index_is_watched(folder: &Path) {
    let results = with_index(folder, &["--index-in-pairs"]).expect("the plan runs");
    assert_eq!(results.void_runs().count(), 0);
    let target = &results.targets[0];
    assert_eq!(target.name, "assay+index");
    assert_eq!(target.index.as_ref().map(|index| index.version.as_str()), Some("Assay test"));
    for run in &target.runs {
        assert!(run.id.starts_with("assay+index-"), "{}", run.id);
        let index = run.index.as_ref().expect("an index");
        assert_eq!((index.server.as_str(), index.protocol.as_str()), ("Fake 1.0", "1.4"));
        assert!(index.lag_end_s.is_some_and(|lag_s| lag_s >= 0.0));
        let names: Vec<_> = index.phases.iter().map(|phase| phase.name.as_str()).collect();
        assert_eq!(names, ["maturity", "fan-out", "steady-1"]);
        assert_eq!((index.total.blocks, index.total.txs), (3, 53));
        let stamps: Vec<_> = run.blocks.iter().filter_map(|block| block.index).collect();
        assert_eq!(stamps.len(), 5, "every block has its moment");
        for (block, stamp) in run.blocks.iter().zip(&stamps) {
            assert!(stamp.reached_at_s >= block.send_at_s, "{block:?}");
            assert!(stamp.pair_s >= stamp.service_s && stamp.queue_s >= 0.0, "{block:?}");
        }
        let ledger = index.ledger.as_ref().expect("a comparison");
        assert_eq!((ledger.scripts, ledger.history, ledger.unspent), (5, 5, 5));
        assert!(ledger.is_good() && ledger.sample_seed.is_none());
        let what: Vec<_> = run.checks.iter().map(|check| check.what.as_str()).collect();
        assert!(what.contains(&"index: header of the tip"), "{what:?}");
    }
    let out = folder.join("out");
    assert_eq!(results::load(&out).expect("results"), results);
    let page = fs::read_to_string(out.join("report.md")).expect("a report");
    assert!(page.contains("ledger check: 5 scripts, 5 history entries, 5 unspent, 0 differences"));
    assert!(!out.join("scripts.jsonl").exists(), "what can be made again is removed");
    // A partial comparison is possible.
    let mut plan = plan_with_index();
    plan.index.scripts_max = 3;
    let results = run(plan, &options(folder, &[]), &Silent).expect("the plan runs");
    let ledger = results.targets[0].runs[0].index.as_ref().and_then(|index| index.ledger.clone());
    let ledger = ledger.expect("a comparison");
    assert_eq!((ledger.scripts, ledger.scripts_total, ledger.sample_seed), (3, 5, Some(1)));
}

fn both_kinds_of_keys(folder: &Path) {
    let mut plan = plan_with_index();
    plan.chain.keys = vec![Keys::Faithful, Keys::Distinct];
    let results = run(plan, &options(folder, &[]), &Silent).expect("the plan runs");
    let names: Vec<_> = results.runs().map(|run| run.id.as_str()).collect();
    let expected =
        ["assay+index-0", "assay+index-90", "assay+index-distinct-0", "assay+index-distinct-90"];
    assert_eq!(names, expected);
    assert!(!results.chain.distinct_keys && results.more_chains[0].distinct_keys);
    let [faithful, distinct] = &results.targets[..] else { panic!("two targets") };
    assert!(!faithful.distinct_keys && distinct.distinct_keys);
    assert!(results.chain_of(distinct).distinct_keys);
    let out = folder.join("out");
    assert!(out.join("chain/ledger.jsonl").exists() && out.join("chain-distinct").exists());
}

fn wrong_answer(folder: &Path) {
    let results = with_index(folder, &["--index-forgets", "4"]).expect("the plan runs");
    assert_eq!(results.void_runs().count(), 2);
    let run = &results.targets[0].runs[0];
    let reason = run.void_reason.as_deref().expect("a reason");
    for part in ["3 different", "get_history of 0404", "expected 1 entries, got 0"] {
        assert!(reason.contains(part), "{part} is not in: {reason}");
    }
    let ledger = run.index.as_ref().and_then(|index| index.ledger.as_ref()).expect("a comparison");
    assert_eq!((ledger.differences, ledger.scripts, ledger.told.len()), (3, 5, 3));
    assert!(folder.join("out/scripts.jsonl").exists(), "kept to be looked into");
}

fn refused_answer(folder: &Path) {
    let results = with_index(folder, &["--index-refuses"]).expect("the plan runs");
    let reason = results.targets[0].runs[0].void_reason.as_deref().expect("a reason");
    assert!(reason.contains("5 rejected") && reason.contains("history too large"), "{reason}");
}

fn index_stays_behind(folder: &Path) {
    let mut plan = plan_with_index();
    plan.feed.block_timeout_s = 1;
    let told = run(plan, &options(folder, &["--index-stops-at", "3"]), &Silent);
    let told = story(&told.expect_err("it never gets there"));
    assert!(told.contains("the index is at height 3, 1 s after the node reached 5"), "{told}");
    let void = results::load(&folder.join("out")).expect("a report all the same");
    let blocks = &void.targets[0].runs[0].blocks;
    assert_eq!(blocks.iter().filter(|block| block.index.is_some()).count(), 3);
}

fn index_hangs_up(folder: &Path) {
    let told = with_index(folder, &["--index-hangs-up-at", "4"]).expect_err("nobody to ask");
    let told = story(&told);
    assert!(told.contains("the index failed when it caught up"), "{told}");
}

fn unwritable_folders(folder: &Path) {
    let mut options = options(folder, &[]);
    options.out_dir = "/dev/null/out".into();
    let told = story(&run(plan(), &options, &Silent).expect_err("not a folder"));
    assert!(told.contains("cannot write /dev/null/out"), "{told}");
}
