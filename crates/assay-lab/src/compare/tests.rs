//! Comparisons of synthetic results.

use super::*;
use crate::plan::Delivery;
use crate::results::{Results, Run, Status, fixture};

const ROUNDS: u32 = 6;

type Change = fn(&mut Results);

/// Two interleaved targets of the same software; the second takes `factor` times as long.
fn turns(factor: f64) -> Results {
    let mut results = fixture::node_results();
    results.plan.runs.repeat = ROUNDS;
    results.pairs_planned = Some(ROUNDS);
    results.plan.feed.seen = vec![0.0];
    let mut first = results.targets.remove(0);
    results.targets.clear();
    let template = first.runs.swap_remove(0);
    let mut second = first.clone();
    second.name = "assay-2".to_owned();
    let run = |name: &str, round: u32, factor: f64| {
        let mut run = template.clone();
        run.id = format!("{name}-0-{}", round + 1);
        run.repeat = round;
        let is_first = (name == "assay") == round.is_multiple_of(2);
        run.started = format!("2026-01-02T03:{:02}:00Z", 2 * round + u32::from(!is_first));
        run.command = [
            "assay",
            "--datadir",
            &format!("datadirs/{}", run.id),
            "--rpc",
            &format!("127.0.0.1:{}", 4000 + round),
        ]
        .map(str::to_owned)
        .into();
        run.control_ns = vec![50_000_000, 50_200_000];
        // Different small noise in each round.
        let factor = factor * (1.0 + 0.001 * f64::from((round * 7) % 5));
        scale(&mut run, factor);
        run
    };
    first.runs = (0..ROUNDS).map(|round| run("assay", round, 1.0)).collect();
    second.runs = (0..ROUNDS).map(|round| run("assay-2", round, factor)).collect();
    for (round, run) in first.runs.iter_mut().enumerate() {
        scale(run, 1.0 + 0.0005 * (round % 3) as f64);
    }
    results.targets = vec![first, second];
    results
}

fn scale(run: &mut Run, factor: f64) {
    for phase in run.phases.iter_mut().chain([&mut run.total]) {
        phase.seconds *= factor;
        phase.cpu_s = phase.cpu_s.map(|cpu| cpu * factor);
    }
}

fn source(name: &str, results: Results) -> Source {
    Source { name: name.to_owned(), results }
}

fn text(comparison: &Comparison) -> String {
    let record = comparison.record(&turns(1.0));
    let setup = record.setup.iter().map(|(_, value)| value);
    let all: Vec<&str> = [&record.headline]
        .into_iter()
        .chain(&record.notes)
        .chain(setup)
        .map(String::as_str)
        .collect();
    all.join("\n")
}

fn of_one(results: Results) -> Comparison {
    compare(&[source("r", results)], &CompareOptions::default()).expect("comparable")
}

/// Results with the first target alone, as from a separate execution.
fn alone(factor: f64) -> Results {
    let mut results = turns(factor);
    results.targets.remove(0);
    results.targets[0].name = "assay".to_owned();
    results
}

#[test]
fn same_software() {
    let comparison = of_one(turns(1.0));
    let [compared] = &comparison.comparisons[..] else { panic!("one comparison") };
    assert!(compared.is_aa && compared.took_turns, "{:?}", compared.notes);
    assert_eq!((compared.pairs[0].planned, compared.pairs[0].counted), (6, 6));
    assert!(comparison.rows().all(|row| row.verdict == Verdict::Equivalent));
    let floor = comparison.floor.as_ref().expect("a floor");
    assert!(floor.of(0.0, "total") < 0.005 && floor.of(0.5, "other") < 0.005);
    let text = text(&comparison);
    assert!(text.contains("false verdicts: 0 of 7 rows"), "{text}");
    assert!(text.contains("equivalent within 1.00 %"), "{text}");
}

#[test]
fn detects_five_percent_both_ways() {
    let comparison = of_one(turns(1.05));
    assert!(comparison.rows().all(|row| row.verdict == Verdict::Slower));
    assert!(comparison.is_slower());
    assert!(text(&comparison).contains("assay-2 is slower than assay by"), "{}", text(&comparison));
    let options =
        CompareOptions { baseline: Some("assay-2".to_owned()), ..CompareOptions::default() };
    let comparison = compare(&[source("r", turns(1.05))], &options).expect("comparable");
    assert!(comparison.rows().all(|row| row.verdict == Verdict::Faster));
    let record = comparison.record(&turns(1.05));
    let ratios = record.cells.iter().filter(|cell| cell.metric == "ratio");
    assert!(ratios.clone().all(|cell| cell.target == "assay against assay-2" && cell.value > 1.04));
    assert_eq!(ratios.count(), 7);
    assert!(record.has_passed() && !record.text().contains("first, mean"));
    // Differences below the floor are ignored.
    let options = CompareOptions { floor: Some(0.06), ..CompareOptions::default() };
    let comparison = compare(&[source("r", turns(1.05))], &options).expect("comparable");
    assert!(comparison.rows().all(|row| row.verdict == Verdict::NotShown));
}

#[test]
fn runs_during_which_the_machine_moved_do_not_count() {
    let mut results = turns(1.0);
    results.targets[0].runs[2].control_ns = vec![50_000_000, 56_000_000];
    results.targets[1].runs[3].control_ns = vec![60_000_000, 60_000_000];
    results.targets[1].runs[4].status = Status::Void;
    let comparison = of_one(results);
    let count = &comparison.comparisons[0].pairs[0];
    assert_eq!((count.counted, count.left_out.len()), (3, 3), "{count:?}");
    let text = text(&comparison);
    assert!(text.contains("moved by 12.0 % during the run"), "{text}");
    assert!(text.contains("away from its median"), "{text}");
    assert!(text.contains("cannot show a difference"), "{text}");
    assert!(comparison.rows().all(|row| row.verdict == Verdict::NotShown));
}

#[test]
fn jitter_widens_the_control_limit() {
    let mut results = turns(1.0);
    for (number, run) in results.targets.iter_mut().flat_map(|target| &mut target.runs).enumerate()
    {
        // Alternates between −4 % and +4 %.
        let ns = if number % 2 == 0 { [48, 52] } else { [52, 48] };
        run.control_ns = ns.map(|ns| ns * 1_000_000).to_vec();
    }
    results.targets[1].runs[3].control_ns = vec![80_000_000, 80_000_000];
    let comparison = of_one(results);
    let count = &comparison.comparisons[0].pairs[0];
    assert_eq!((count.counted, count.left_out.len()), (5, 1), "{count:?}");
    assert!(text(&comparison).contains("away from its median"), "{}", text(&comparison));
}

#[test]
fn ignores_added_pairs() {
    let mut results = turns(1.05);
    results.pairs_planned = Some(4);
    let count = of_one(results).comparisons[0].pairs[0].clone();
    assert_eq!((count.planned, count.counted, count.added), (4, 4, 2));
    let mut results = turns(1.05);
    results.plan.runs.repeat = 8;
    results.pairs_planned = Some(8);
    results.targets[1].runs.remove(0);
    let count = of_one(results).comparisons[0].pairs[0].clone();
    assert_eq!((count.planned, count.counted, count.missing), (8, 5, 3));
    // A reduced number of rounds adds no pairs beyond the plan.
    let mut results = turns(1.05);
    results.plan.runs.repeat = 3;
    assert_eq!(of_one(results).comparisons[0].pairs[0].planned, 3);
}

#[test]
fn two_executions() {
    let sources = [source("before", alone(1.0)), source("after", alone(1.1))];
    let comparison = compare(&sources, &CompareOptions::default()).expect("comparable");
    let compared = &comparison.comparisons[0];
    assert_eq!(compared.second, "assay of after");
    assert!(!compared.is_aa, "two executions may hold two builds of one version");
    // Their rounds alternate in time.
    assert!(compared.took_turns);
    assert!(comparison.rows().all(|row| row.verdict == Verdict::Slower && row.floor > 0.0099));
    let floor = Floor::measured(&[source("r", turns(1.0))], &of_one(turns(1.0)).comparisons);
    let options = CompareOptions { aa: floor, ..CompareOptions::default() };
    let text = text(&compare(&sources, &options).expect("comparable"));
    assert!(!text.contains("--aa"), "{text}");
}

#[test]
fn executions_one_after_the_other_have_a_higher_floor() {
    let mut later = alone(1.015);
    for run in &mut later.targets[0].runs {
        run.started = run.started.replace("T03", "T09");
    }
    let mut before = alone(1.0);
    for run in &mut before.targets[0].runs {
        run.started = run.started.replace("T03", "T02");
    }
    let sources = [source("before", before), source("after", later)];
    let comparison = compare(&sources, &CompareOptions::default()).expect("comparable");
    assert!(!comparison.comparisons[0].took_turns);
    assert!(comparison.rows().all(|row| row.verdict == Verdict::NotShown && row.floor >= 0.02));
}

#[test]
fn rejects_other_work_by_name() {
    let refused = |change: fn(&mut Results), vary: &[&str]| {
        let mut other = alone(1.0);
        change(&mut other);
        let vary = vary.iter().map(|name| (*name).to_owned()).collect();
        let options = CompareOptions { vary, ..CompareOptions::default() };
        let sources = [source("a", alone(1.0)), source("b", other)];
        compare(&sources, &options).map(|comparison| comparison.comparisons[0].varied.len())
    };
    let cases: [(Change, &str); 8] = [
        (|r| r.chain.tip = "cc".repeat(32), "chain.tip"),
        (|r| r.chain.utxo_muhash = "cc".repeat(32), "chain.utxo_muhash"),
        (|r| r.chain.txs += 1, "chain.txs"),
        (|r| r.chain.inputs += 1, "chain.inputs"),
        (|r| r.chain.outputs += 1, "chain.outputs"),
        (|r| r.targets[0].runs[0].total.txs += 1, "work.seen 0 %.txs"),
        (|r| r.plan.feed.batch += 1, "plan.feed.batch"),
        (|r| r.machine.cpu = Some("another".to_owned()), "machine.cpu"),
    ];
    for (change, field) in cases {
        let error = refused(change, &[]).expect_err(field);
        assert!(error.to_string().contains(field), "{field}: {error}");
    }
    let settings: fn(&mut Results) = |r| r.plan.target.bitcoind.dbcache_mib = 4;
    let error = refused(settings, &["plan.target.assay"]).expect_err("not that setting");
    assert!(error.to_string().contains("--vary"), "{error}");
    assert_eq!(refused(settings, &["plan.target"]).expect("on purpose"), 1);
    assert_eq!(refused(settings, &["plan.target.bitcoind.dbcache_mib"]).expect("on purpose"), 1);
    let work: fn(&mut Results) = |r| r.chain.txs += 1;
    let error = refused(work, &["chain"]).expect_err("work is not a setting");
    assert!(!error.to_string().contains("--vary"), "{error}");
}

#[test]
fn sync_settings_are_no_work() {
    let refused = |change: fn(&mut Results), vary: &[&str]| {
        let (before, mut after) = (fixture::syncs(), fixture::syncs());
        change(&mut after);
        let vary = vary.iter().map(|name| (*name).to_owned()).collect();
        let options = CompareOptions { vary, ..CompareOptions::default() };
        compare(&[source("a", before), source("b", after)], &options)
    };
    let cases: [(Change, &str); 4] = [
        (|r| r.plan.sync.dbcache_mib = 4, "plan.sync.dbcache_mib"),
        (|r| r.plan.sync.assumevalid = true, "plan.sync.assumevalid"),
        (|r| r.plan.feed.by = Delivery::LoadBlock, "plan.feed.by"),
        (|r| r.targets[1].delivery = None, "delivery"),
    ];
    for (change, field) in cases {
        let error = refused(change, &[]).expect_err(field);
        assert!(error.to_string().contains(field), "{field}: {error}");
    }
    assert!(refused(|r| r.plan.sync.dbcache_mib = 4, &["plan.sync"]).is_ok(), "on purpose");
}

#[test]
fn notes_different_delivery() {
    let mut results = fixture::syncs();
    let told = |results: &Results| {
        let comparison = compare(&[source("a", results.clone())], &CompareOptions::default());
        let notes = comparison.expect("comparable").comparisons.remove(0).notes;
        notes.into_iter().find(|note| note.contains("different paths"))
    };
    let note = told(&results).expect("one fetches, one reads files");
    assert!(note.contains("peer to assay and files to bchn-28.0.1"), "{note}");
    results.targets[1].delivery = None;
    assert_eq!(told(&results), None);
}

#[test]
fn nothing_to_compare() {
    let error = compare(&[source("a", alone(1.0))], &CompareOptions::default());
    let text = error.expect_err("one target").to_string();
    assert!(text.contains("one target, assay; name a second result"), "{text}");
    // One target on each of two chains is still nothing to compare.
    let mut chains = turns(1.0);
    chains.targets[1].distinct_keys = true;
    let text = compare(&[source("a", chains)], &CompareOptions::default()).expect_err("no pair");
    let text = text.to_string();
    assert!(text.contains("no chain has a second target (assay, assay-2)"), "{text}");
    let options = CompareOptions { baseline: Some("x".to_owned()), ..CompareOptions::default() };
    let error = compare(&[source("a", turns(1.0))], &options).expect_err("no such target");
    assert_eq!(error.to_string(), "a has no target \"x\"; there are: assay, assay-2");
    let mut other = turns(1.0);
    other.targets.iter_mut().for_each(|target| target.name.push_str("-other"));
    let error = compare(&[source("a", turns(1.0)), source("b", other)], &CompareOptions::default());
    let text = error.expect_err("other names").to_string();
    assert!(text.ends_with("have no target in common"), "{text}");
}

#[test]
fn floors_round_trip() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("floor.json");
    let floor = of_one(turns(1.0)).floor.expect("a floor");
    std::fs::write(&path, serde_json::to_vec(&floor).expect("JSON")).expect("writable");
    assert_eq!(Floor::load(&path).expect("readable"), Some(floor));
    std::fs::write(&path, b"{\"schema\":2}").expect("writable");
    assert_eq!(Floor::load(&path).expect("readable"), None, "results are no floor");
    std::fs::write(&path, b"{\"kind\":\"floor\",\"schema\":9}").expect("writable");
    assert!(Floor::load(&path).is_err());
    assert!(Floor::load(&folder.path().join("missing")).is_err());
}

/// Splits the pairs of `results` over machines: one result per pair, as `assay run --pair` writes it.
fn on_machines(results: &Results, pairs_of: &[(&str, &[u32])]) -> tempfile::TempDir {
    let dir = tempfile::tempdir().expect("a folder");
    for (name, pairs) in pairs_of {
        for pair in *pairs {
            let mut one = results.clone();
            one.targets.iter_mut().for_each(|target| target.runs.retain(|run| run.repeat == *pair));
            one.machine.cpu = Some(format!("processor of {name}"));
            let folder = dir.path().join(name).join(format!("pair-{:05}", pair + 1));
            std::fs::create_dir_all(&folder).expect("a folder");
            let json = serde_json::to_vec(&one).expect("JSON");
            std::fs::write(folder.join(results::FILE), json).expect("a file");
        }
    }
    dir
}

fn over_machines(dir: &Path) -> anyhow::Result<Comparison> {
    compare_machines(&load_machines(dir)?, &CompareOptions::default())
}

#[test]
fn pairs_of_one_machine_equal_one_execution() {
    let results = turns(1.08);
    let dir = on_machines(&results, &[("a", &[0, 1, 2, 3, 4, 5])]);
    let (one, many) = (of_one(results), over_machines(dir.path()).expect("comparable"));
    let (one, many) = (&one.comparisons[0], &many.comparisons[0]);
    assert_eq!(one.pairs, many.pairs);
    for (left, right) in one.rows.iter().zip(&many.rows) {
        assert_eq!((left.ratio, left.verdict), (right.ratio, right.verdict), "{}", left.what);
        let ratios = right.machines.as_ref().expect("machines");
        assert_eq!((&ratios.pairs, ratios.p), (&vec![6], None));
    }
    assert_eq!(one.rows.len(), many.rows.len());
    assert_eq!(many.rows[0].verdict, Verdict::Slower);
}

#[test]
fn machines_share_the_pairs_of_a_plan() {
    let dir = on_machines(&turns(1.0), &[("a", &[0, 3, 5]), ("b", &[1]), ("c", &[4])]);
    let comparison = over_machines(dir.path()).expect("comparable");
    let [compared] = &comparison.comparisons[..] else { panic!("one comparison") };
    let [count] = &compared.pairs[..] else { panic!("one share") };
    assert_eq!((count.planned, count.counted, count.missing, count.added), (6, 5, 1, 0));
    assert!(compared.is_aa && compared.took_turns, "{:?}", compared.notes);
    assert!(compared.rows.iter().all(|row| !row.verdict.is_difference()));
    let pairs: Vec<_> =
        compared.machines.iter().map(|entry| (entry.name.as_str(), entry.pairs)).collect();
    assert_eq!(pairs, [("a", 3), ("b", 1), ("c", 1)]);
    let text = text(&comparison);
    for words in ["processor of b", "3 of at least 6 machines", "within each of 3 machines"] {
        assert!(text.contains(words), "{text}");
    }
    assert!(comparison.floor.is_some_and(|floor| floor.rows.iter().all(|row| row.share < 0.02)));
}

#[test]
fn rejects_pairs_of_different_plans() {
    let results = turns(1.0);
    let rejected =
        |dir: &tempfile::TempDir| over_machines(dir.path()).expect_err("rejected").to_string();
    let twice = on_machines(&results, &[("a", &[0, 1]), ("b", &[1])]);
    assert!(rejected(&twice).contains("pair 2 is in a and in b"), "{}", rejected(&twice));
    let changes: [(Change, &str); 4] = [
        (|results| results.targets[1].version = "9.9".to_owned(), "targets: "),
        (|results| results.pairs_planned = Some(7), "pairs_planned: 6 against 7"),
        (|results| results.chain.tip = "00".to_owned(), "chain.tip: "),
        (|results| results.software.assay = "9.9".to_owned(), "software.assay: "),
    ];
    for (change, words) in changes {
        let dir = on_machines(&results, &[("a", &[0, 1])]);
        let mut other = results.clone();
        change(&mut other);
        let more = on_machines(&other, &[("b", &[2])]);
        std::fs::rename(more.path().join("b"), dir.path().join("b")).expect("a folder");
        assert!(rejected(&dir).contains(words), "{}", rejected(&dir));
    }
    let empty = tempfile::tempdir().expect("a folder");
    assert!(rejected(&empty).contains("no results there"));
    let missing = over_machines(&empty.path().join("no")).expect_err("missing").to_string();
    assert!(missing.starts_with("cannot read "), "{missing}");
}
