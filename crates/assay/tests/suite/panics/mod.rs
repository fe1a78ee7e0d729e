//! A panic at any marked point of a running node, at any of its passes: the process must end at once, and after a
//! restart the node must have the state of one that never failed (`assay_store::defect`).
//!
//! `ASSAY_PANIC_STEPS` is the number of passes tried per point, spread over all; `ASSAY_PANIC_POINT` selects one point.

mod chain;
mod node;
mod planted;
mod scenario;

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use assay_engine::default_script_batch;
use assay_engine::defect::{EXIT_STATUS, Point};

use node::Node;
use scenario::{Oracle, Scenario};

/// A pass of a panic point to test.
#[derive(Clone, Copy, Debug)]
struct Case {
    point: Point,
    step: u64,
}

/// Like a signal, a defect in a command leaves no temporary files.
#[test]
fn a_defect_leaves_no_temporary_files() {
    let folder = tempfile::tempdir().expect("a folder");
    let (chain, temporary) = (folder.path().join("chain"), folder.path().join("tmp"));
    fs::create_dir(&temporary).expect("writable");
    crate::forge(&chain.display().to_string(), "--scale 0.01");
    let output = Command::new(env!("CARGO_BIN_EXE_assay"))
        .args(["validate", "--chain", "regtest", "--blocks"])
        .arg(&chain)
        .env("TMPDIR", &temporary)
        .env("ASSAY_PANIC_AT", "MoveCoins:0")
        .output()
        .expect("the program starts");
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(EXIT_STATUS), "{said}");
    assert!(said.contains("stopped by a defect"), "{said}");
    assert_eq!(fs::read_dir(&temporary).expect("readable").count(), 0);
}

#[test]
fn a_defect_anywhere_ends_the_process_and_leaves_nothing_wrong() {
    let folder = tempfile::tempdir().expect("a folder");
    let scenario = Scenario::prepare(folder.path());
    let (oracle, passes) = never_failing(&scenario, folder.path());
    let unreached: Vec<Point> = Point::ALL
        .into_iter()
        .filter(|point| passes.get(&name(*point)) == Some(&0) && is_expected(*point))
        .collect();
    assert!(unreached.is_empty(), "the scenario passes no {unreached:?}: {passes:?}");

    let cases = cases(&passes);
    let (next, start) = (AtomicUsize::new(0), Instant::now());
    let ended = Mutex::new(Vec::new());
    let work = |number: usize| {
        let dir = folder.path().join(format!("case-{number}"));
        while let Some(case) = cases.get(next.fetch_add(1, Ordering::Relaxed)) {
            copy(&scenario.base, &dir);
            if try_case(&scenario, &oracle, &dir, *case) {
                ended.lock().expect("no test thread fails with it").push(case.point);
            }
            fs::remove_dir_all(&dir).expect("it is ours");
        }
    };
    std::thread::scope(|scope| {
        for number in 0..THREADS {
            scope.spawn(move || work(number));
        }
    });
    let ended = ended.into_inner().expect("no test thread fails with it");
    if !is_expected(Point::ScriptBatch) {
        println!(
            "skipped: {:?}, which only processors with lanes for signatures pass",
            Point::ScriptBatch
        );
    }
    for case in &cases {
        assert!(ended.contains(&case.point), "no pass of {:?} that was tried came", case.point);
    }
    println!(
        "{} points, {} passes tried, {} processes ended by a defect, {} starts compared, {:.1} s",
        Point::ALL.len(),
        cases.len(),
        ended.len(),
        cases.len(),
        start.elapsed().as_secs_f64()
    );
}

/// True if nodes on this processor pass the point: scripts are settled in batches only if lanes verify their signatures.
fn is_expected(point: Point) -> bool {
    point != Point::ScriptBatch || default_script_batch().is_some()
}

/// Runs the scenario without a panic; returns the final state, and the number of passes of each point.
fn never_failing(scenario: &Scenario, folder: &Path) -> (Oracle, BTreeMap<String, u64>) {
    let dir = folder.join("never-failing");
    copy(&scenario.base, &dir);
    let file = folder.join("passes");
    let mut oracle = Oracle::default();
    let node = Node::start(&dir, &[("ASSAY_PANIC_PASSES", file.as_os_str())]).expect("it starts");
    scenario.run(&node, &mut oracle.watch()).expect("nothing fails");
    oracle.end = node.stop().expect("it stops");
    let text = fs::read_to_string(&file).expect("the node wrote its passes");
    let passes = text.lines().map(|line| {
        let (name, count) = line.split_once(' ').expect("a name and a count");
        (name.to_owned(), count.parse().expect("a count"))
    });
    (oracle, passes.collect())
}

/// The passes to test: the first, the last, and some between them.
fn cases(passes: &BTreeMap<String, u64>) -> Vec<Case> {
    let variable = |name: &str| std::env::var(name).ok();
    let steps = variable("ASSAY_PANIC_STEPS").and_then(|text| text.parse().ok());
    let steps = steps.unwrap_or(if assay_testkit::is_long() { 2 } else { 1 });
    let wanted = variable("ASSAY_PANIC_POINT");
    let mut cases = Vec::new();
    for point in Point::ALL {
        let count = passes.get(&name(point)).copied().unwrap_or(0);
        if count == 0 || wanted.as_ref().is_some_and(|wanted| *wanted != name(point)) {
            continue;
        }
        let mut chosen: Vec<u64> =
            (0..steps).map(|number| number * (count - 1) / (steps - 1_u64).max(1)).collect();
        chosen.dedup();
        cases.extend(chosen.into_iter().map(|step| Case { point, step }));
    }
    cases
}

/// Runs the scenario up to the panic and again to its end. Returns true if the process reached the
/// panic: thread scheduling varies between runs, so the last passes may not occur.
fn try_case(scenario: &Scenario, oracle: &Oracle, dir: &Path, case: Case) -> bool {
    let at = format!("{:?}:{}", case.point, case.step);
    let mut seen = scenario::Acknowledged::default();
    let failed = match Node::start(dir, &[("ASSAY_PANIC_AT", at.as_ref())]) {
        Ok(node) => match scenario.run(&node, &mut seen) {
            Ok(()) => node.stop().err(),
            Err(lost) => Some(node.ended(lost)),
        },
        Err(ended) => Some(ended),
    };
    if let Some(ended) = &failed {
        assert_eq!(ended.status, Some(EXIT_STATUS), "{at}: {}", ended.stderr);
        let reason = format!("injected defect {at}");
        assert!(ended.stderr.contains(&reason), "{at}: standard error: {}", ended.stderr);
        let log = fs::read_to_string(dir.join("regtest/debug.log"));
        assert!(log.is_ok_and(|log| log.contains(&reason)), "{at}: the log lacks the reason");
    }
    let node = Node::start(dir, &[]).unwrap_or_else(|ended| panic!("{at}: {}", ended.stderr));
    scenario.check(&node, oracle, &seen).unwrap_or_else(|wrong| panic!("{at}: {wrong}"));
    scenario.run(&node, &mut seen).unwrap_or_else(|lost| panic!("{at}: once more: {lost:?}"));
    let end = node.stop().unwrap_or_else(|ended| panic!("{at}: {}", ended.stderr));
    assert_eq!(end, oracle.end, "{at}: the end");
    failed.is_some()
}

fn name(point: Point) -> String {
    format!("{point:?}")
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("a folder");
    for entry in fs::read_dir(from).expect("a folder") {
        let entry = entry.expect("an entry");
        let target = to.join(entry.file_name());
        if entry.file_type().expect("its type").is_dir() {
            copy(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), target).expect("a file");
        }
    }
}

const THREADS: usize = 6;
