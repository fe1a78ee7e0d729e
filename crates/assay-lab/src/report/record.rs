//! Record of the results of a chain: figures of the valid runs, checks of all runs, curves of the middle runs.
//!
//! Rates are counts of the blocks of a phase over the sum of their service times; the case without a name has the sums over the
//! measured phases. `docs/METHODOLOGY.md` describes the method.

use assay_report::number::whole_percent;
use assay_report::record::{Cell, Figure, Outcome, Record, Unit, bytes, count};
use assay_report::stats::{median_of, rate};
use serde_json::json;

use super::series::{self, Series, cases, phase_of};
use super::{headline, index, is_full_size, placement, relay, scaling, sync, verdict};
use crate::machine::DiskUse;
use crate::plan::FigureKind;
use crate::results::{BlockRecord, Check, PhaseResult, Results, Run, Status};

const MIB: f64 = 1_048_576.0;
/// Windows of a curve of CPU time, which comes in ticks of 10 ms.
const CPU_WINDOWS: usize = 240;

pub fn record(results: &Results) -> Record {
    let verdict = verdict::of(results);
    let (headline, caveats) = headline::of(results, verdict.as_ref());
    let mut record = Record {
        kind: "chain".to_owned(),
        schema: assay_report::record::SCHEMA,
        created: results.created.clone(),
        software: results.software.clone(),
        machine: results.machine.clone(),
        command: results.rerun.clone(),
        title: results.plan.title.clone(),
        summary: results.plan.summary.clone(),
        headline,
        notes: caveats,
        ..Record::default()
    };
    set_up(results, &mut record);
    if sync::is_one(results) {
        sync::add(results, &mut record);
    } else {
        add_phases(results, &mut record);
    }
    add_published(results, &mut record);
    add_reference(results, &mut record);
    placement::add(results, &mut record);
    relay::add(results, &mut record);
    scaling::add(results, &mut record);
    index::add(results, &mut record);
    for series in series::all(results) {
        add_resources(&series, &mut record);
    }
    record.bands = series::all(results)
        .first()
        .and_then(Series::middle_run)
        .map(|run| bands(results, run))
        .unwrap_or_default();
    add_profiles(results, &mut record);
    check(results, &mut record);
    if let Some(verdict) = &verdict {
        let sentences = verdict::sentences(results, verdict).into_iter();
        record.notes.extend(sentences.filter(|sentence| *sentence != record.headline));
        if let Ok(comparison) = verdict {
            comparison.add_to(&mut record);
        }
    }
    record
}

fn set_up(results: &Results, record: &mut Record) {
    let plan = &results.plan;
    for target in &results.targets {
        let index = target.index.iter().map(|index| index.version.as_str());
        let versions: Vec<&str> = std::iter::once(target.version.as_str()).chain(index).collect();
        record.set(&format!("target {}", target.name), versions.join(" + "));
        if sync::is_one(results) {
            let blocks = sync::delivery(results, target);
            record.set(&format!("blocks of {}", target.name), blocks);
        }
    }
    for chain in std::iter::once(&results.chain).chain(&results.more_chains) {
        let mut chain = json!(chain);
        // These are curves.
        chain.as_object_mut().and_then(|fields| fields.remove("ranges"));
        let name = if chain["distinct_keys"] == true { "chain, distinct keys" } else { "chain" };
        record.set_all(name, &chain);
    }
    record.set_all("feed", &plan.feed);
    if sync::is_one(results) {
        record.set_all("sync", &plan.sync);
    }
    record.set("rounds", plan.runs.repeat);
    record.set("warm-up rounds", plan.runs.warmup);
    let prepared = |of: fn(&Run) -> Option<&String>| results.runs().find_map(of).cloned();
    record.set_all("page cache", &prepared(|run| run.preparation.page_cache.as_ref()));
    record.set_all("data copied from", &prepared(|run| run.preparation.copied_from.as_ref()));
    for run in results.runs() {
        record.set(&format!("command | {}", run.id), run.command.join(" "));
        if let Some(index) = run.index.as_ref().filter(|index| !index.command.is_empty()) {
            record.set(&format!("command | {}, index", run.id), index.command.join(" "));
        }
        for (message, times) in &run.tx_errors {
            record.set(&format!("rejected | {}: {message}", run.id), times);
        }
    }
    if let Some(published) = &plan.published {
        record.set("published | title", &published.title);
        record.set("published | source", &published.source);
        record.set("published | machine", &published.machine);
        record.set("published | its height minus ours", published.height_offset);
        for note in &published.notes {
            record.set("published | note", note);
        }
    }
}

/// Figures of the phases of targets that are fed block by block.
fn add_phases(results: &Results, record: &mut Record) {
    let all = series::all(results);
    for (name, case) in cases(results) {
        for series in &all {
            for (run, round) in series.rounds() {
                let Some(phase) = phase_of(run, &name) else { continue };
                record.add((&series.label, &case, round), &rates(phase));
                record.add((&series.label, &case, round), &times(phase));
                if phase.admission.sent > 0 {
                    record.add((&series.label, &case, round), &admission(phase));
                }
                record.add((&series.label, &case, round), &disk(phase));
                let orphans: u64 = run.blocks.iter().map(|block| block.orphans).sum();
                if case.is_empty() && orphans > 0 {
                    let figure = count("pre-relayed | before a parent", orphans);
                    record.add((&series.label, &case, round), &[figure]);
                }
            }
        }
        let first = all.first().and_then(|series| phase_of(series.runs.first()?, &name));
        if let Some(phase) = first {
            let figures = [
                count("contents | blocks", phase.blocks),
                count("contents | transactions", phase.txs),
                count("contents | inputs", phase.inputs),
                count("contents | outputs", phase.outputs),
                count("contents | signatures", phase.signatures),
                bytes("contents | size", phase.bytes),
            ];
            record.add(("chain", &case, None), &figures);
        }
    }
    for series in &all {
        let Some(run) = series.middle_run() else { continue };
        let is_measured = |block: &&BlockRecord| results.plan.is_measured(&block.phase);
        let row = |block: &BlockRecord| {
            let per_s = |amount: f64| Some(rate(amount, block.service_s)).filter(|y| *y > 0.0);
            [
                count("height", block.height.into()),
                ("transactions of a block", Unit::PerSecond, per_s(block.txs as f64)),
                ("MiB of a block", Unit::PerSecond, per_s(block.bytes as f64 / MIB)),
                ("service time of a block", Unit::Seconds, Some(block.service_s)),
            ]
        };
        let rows: Vec<_> = run.blocks.iter().filter(is_measured).map(row).collect();
        record.add_series((&series.label, "", None), &rows);
    }
}

fn rates(phase: &PhaseResult) -> [Figure<'_>; 6] {
    let rate = |name, value: f64| (name, Unit::PerSecond, Some(value).filter(|rate| *rate > 0.0));
    [
        rate("inputs", phase.inputs_per_s),
        rate("transactions", phase.tx_per_s),
        rate("outputs", phase.outputs_per_s),
        rate("MiB", phase.mib_per_s),
        rate("signatures", phase.signatures_per_s),
        ("service time", Unit::Seconds, Some(phase.seconds)),
    ]
}

fn times(phase: &PhaseResult) -> [Figure<'_>; 6] {
    // Ticks are too coarse for shorter phases.
    let cores = phase.cpu_s.filter(|_| phase.seconds >= 0.5).map(|cpu_s| cpu_s / phase.seconds);
    let time = |name, seconds: f64| (name, Unit::Seconds, Some(seconds));
    [
        time("times | median block", phase.service_s_median),
        time("times | longest block", phase.service_s_max),
        time("times | until the reply", phase.rpc_s),
        time("times | waiting", phase.queue_s),
        ("times | CPU time", Unit::Seconds, phase.cpu_s),
        ("times | cores in use", Unit::Count, cores),
    ]
}

fn admission(phase: &PhaseResult) -> [Figure<'_>; 7] {
    let admission = &phase.admission;
    let mib_per_s = rate(admission.bytes as f64 / MIB, admission.seconds);
    [
        ("pre-relayed | transactions", Unit::PerSecond, Some(admission.tx_per_s)),
        ("pre-relayed | MiB", Unit::PerSecond, Some(mib_per_s)),
        ("pre-relayed | in the mempool", Unit::Percent, Some(100.0 * phase.seen_measured)),
        count("pre-relayed | sent", admission.sent),
        count("pre-relayed | accepted", admission.accepted),
        count("pre-relayed | rejected", admission.sent - admission.accepted),
        ("pre-relayed | time", Unit::Seconds, Some(admission.seconds)),
    ]
}

/// Disk use of the node's process past the page cache, an index in it included.
fn disk(phase: &PhaseResult) -> [Figure<'_>; 4] {
    let of = |name, use_of: fn(&DiskUse) -> u64, is_service: bool| {
        let disk = phase.disk.as_ref();
        let disk = disk.map(|disk| if is_service { &disk.service } else { &disk.between });
        (name, Unit::Bytes, disk.map(|disk| use_of(disk) as f64))
    };
    [
        of("disk | read in blocks", |disk| disk.read_bytes, true),
        of("disk | written in blocks", |disk| disk.written_bytes, true),
        of("disk | read between blocks", |disk| disk.read_bytes, false),
        of("disk | written between blocks", |disk| disk.written_bytes, false),
    ]
}

/// Published figures next to ours, and the ratio of ours if the chain has their size.
fn add_published(results: &Results, record: &mut Record) {
    let Some(published) = &results.plan.published else { return };
    for figure in &published.figures {
        let target = format!("published: {}, {}", figure.subject, whole_percent(figure.seen));
        let case = results.plan.phase_title(&figure.phase);
        let rates = [
            ("inputs", figure.inputs_per_s),
            ("transactions", figure.tx_per_s),
            ("outputs", figure.outputs_per_s),
            ("MiB", figure.mib_per_s),
        ];
        for (name, value) in rates {
            let name = match figure.kind {
                FigureKind::Node => name.to_owned(),
                FigureKind::Index => format!("index | {name}"),
            };
            record.add((&target, case, None), &[(&name, Unit::PerSecond, value)]);
        }
        if let Some(note) = &figure.note {
            record.set(&format!("published | {target}, {case}"), note);
        }
    }
    if !is_full_size(results) {
        return;
    }
    let is_distinct =
        |name: &str| results.targets.iter().any(|one| one.name == name && one.distinct_keys);
    for series in series::all(results).into_iter().filter(|series| !is_distinct(series.target)) {
        for (name, case) in cases(results) {
            let figure = series::published(results, FigureKind::Node, &name, series.seen);
            let theirs = figure.and_then(|figure| figure.inputs_per_s);
            let ours = series.phase(&name, |phase| phase.inputs_per_s);
            let ratio = ours.zip(theirs).map(|(ours, theirs)| ours / theirs);
            let metric = "inputs / published";
            record.add((&series.label, &case, None), &[(metric, Unit::Ratio, ratio)]);
        }
    }
}

/// Rates of signatures on all cores without a node, measured in the same execution.
fn add_reference(results: &Results, record: &mut Record) {
    let library = headline::reference_per_s(results, |rates| rates.ecdsa_verify_per_s);
    let batches = headline::reference_per_s(results, |rates| rates.batch_ecdsa_verify_per_s);
    for (target, rate) in
        [("reference library, all cores", library), ("own batches, all cores", batches)]
    {
        record.add((target, "", None), &[("signatures", Unit::PerSecond, rate)]);
    }
    // With transactions seen beforehand many signatures were verified before their block.
    for series in series::all(results).iter().filter(|series| series.seen <= 0.0) {
        let is_it = |cell: &&Cell| {
            (&cell.target, cell.case.as_str(), cell.metric.as_str())
                == (&series.label, "", "signatures")
        };
        let ours = median_of(record.cells.iter().filter(is_it).map(|cell| cell.value));
        let ratio = ours.zip(library).map(|(ours, library)| ours / library);
        let figure = ("signatures / reference library", Unit::Ratio, ratio);
        record.add((&series.label, "", None), &[figure]);
    }
}

fn add_resources(series: &Series<'_>, record: &mut Record) {
    for (run, round) in series.rounds() {
        let samples = &run.samples;
        let last = |column: &[Option<u64>]| column.iter().rev().find_map(|value| *value);
        let cpu_s = samples.cpu_s.iter().rev().find_map(|value| *value);
        let control_s = median_of(run.control_ns.iter().map(|ns| *ns as f64 / 1e9));
        let threads = samples.threads.iter().copied().max().flatten();
        let time = |name, seconds: Option<f64>| (name, Unit::Seconds, seconds);
        let size = |name, bytes: Option<u64>| (name, Unit::Bytes, bytes.map(|b| b as f64));
        let figures = [
            time("resources | start", run.startup_s),
            time("resources | stop", run.shutdown_s),
            time("resources | CPU time", cpu_s),
            size("resources | peak memory", samples.rss_peak_bytes),
            size("resources | written", last(&samples.write_bytes)),
            size("resources | read", last(&samples.read_bytes)),
            ("resources | threads", Unit::Count, threads.map(|threads| threads as f64)),
            time("resources | CPU time of the laboratory", run.lab_cpu_s),
            time("resources | control load", control_s),
        ];
        record.add((&series.label, "", round), &figures);
    }
    let Some(run) = series.middle_run() else { return };
    let samples = &run.samples;
    let cell = |column: &[Option<u64>], row: usize| Some((*column.get(row)?)? as f64);
    let row = |(row, time_s): (usize, &f64)| {
        [
            ("time of the run", Unit::Seconds, Some(*time_s)),
            ("memory", Unit::Bytes, cell(&samples.rss_bytes, row)),
            ("written", Unit::Bytes, cell(&samples.write_bytes, row)),
            ("read", Unit::Bytes, cell(&samples.read_bytes, row)),
        ]
    };
    let rows: Vec<_> = samples.time_s.iter().enumerate().map(row).collect();
    record.add_series((&series.label, "", None), &rows);
    let point = |(time_s, cores): (f64, f64)| {
        [
            ("time of the run", Unit::Seconds, Some(time_s)),
            ("cores in use", Unit::Count, Some(cores)),
        ]
    };
    let rows: Vec<_> = cores_in_use(run).into_iter().map(point).collect();
    record.add_series((&series.label, "", None), &rows);
}

/// CPU time per time, over windows that hide its granularity of 10 ms.
fn cores_in_use(run: &Run) -> Vec<(f64, f64)> {
    let samples = &run.samples;
    let times = samples.time_s.iter().zip(&samples.cpu_s);
    let points: Vec<(f64, f64)> = times.filter_map(|(time, cpu)| Some((*time, (*cpu)?))).collect();
    let window = (points.len() / CPU_WINDOWS).max(5);
    points
        .windows(window + 1)
        .step_by(window.div_ceil(2))
        .filter_map(|window| {
            let ((from, before), (to, after)) = (*window.first()?, *window.last()?);
            Some((f64::midpoint(from, to), rate(after - before, to - from)))
        })
        .collect()
}

/// Phases of a run on an axis of heights; all widths of a kind share one band.
fn bands(results: &Results, run: &Run) -> Vec<(String, f64, f64)> {
    let mut bands: Vec<(String, f64, f64)> = Vec::new();
    for block in run.blocks.iter().filter(|block| results.plan.is_measured(&block.phase)) {
        let kinds = &results.plan.scaling;
        let kind = kinds.iter().find(|kind| kind.width(&block.phase).is_some());
        let title = results.plan.phase_title(&block.phase);
        let name = kind.map_or(title, |kind| kind.series.as_str());
        let (from, to) = (f64::from(block.height) - 0.5, f64::from(block.height) + 0.5);
        match bands.last_mut().filter(|band| band.0 == name && band.2 >= from) {
            Some(band) => band.2 = to,
            None => bands.push((name.to_owned(), from, to)),
        }
    }
    bands
}

/// Functions with the most samples of their own, and those whose time changed most from the first target.
fn add_profiles(results: &Results, record: &mut Record) {
    for profile in &results.profiles {
        let target = profile.target.as_str();
        for top in &profile.top {
            let share = ("profile | own share", Unit::Percent, Some(100.0 * top.share));
            record.add((target, &top.function, None), &[share]);
        }
        let picture = profile.picture.as_ref();
        let picture = picture.map_or_else(String::new, |file| format!(", flame graph in `{file}`"));
        record.notes.push(match &profile.missing {
            Some(why) => {
                format!("{target}: no profile: {}", why.lines().next().unwrap_or_default())
            }
            None => format!("{target}: profile of {} samples{picture}", profile.samples),
        });
        let Some(change) = &profile.change else { continue };
        let picture = change.picture.as_ref();
        let picture = picture.map_or_else(String::new, |file| format!("; what differs: `{file}`"));
        record.notes.push(format!(
            "from {} to {target}: CPU time {:.2} s, then {:.2} s{picture}",
            change.from, change.before_s, change.after_s
        ));
        for one in &change.changed {
            let figures = [
                ("profile | CPU time before", Unit::Seconds, Some(one.before_s)),
                ("profile | CPU time", Unit::Seconds, Some(one.after_s)),
            ];
            record.add((target, &one.function, None), &figures);
        }
    }
}

/// Ends of the runs: each comparison over all runs, whether they ended in the state of the ledger, and answers of indexes.
fn check(results: &Results, record: &mut Record) {
    let runs = || results.runs();
    let void = results.void_runs().next();
    let void = void.map(|run| {
        format!("{}: {}", run.id, run.void_reason.as_deref().unwrap_or("no reason was kept"))
    });
    let complete = runs().filter(|run| run.status != Status::Void).count();
    record.check("runs end in the state of the chain", Outcome::of(complete as u64, void));
    let mut names: Vec<&str> = runs().flat_map(|run| &run.checks).map(|c| &*c.what).collect();
    let mut known = std::collections::BTreeSet::new();
    names.retain(|name| known.insert(*name));
    for name in names {
        let of_name = |run: &Run| run.checks.iter().find(|check| check.what == name).cloned();
        let all: Vec<(&str, Check)> =
            runs().filter_map(|run| Some((&*run.id, of_name(run)?))).collect();
        let compared = all.iter().filter(|(_, check)| check.found.is_some()).count();
        let failure = all.iter().find(|(_, check)| check.differs()).map(|(run, check)| {
            let found = check.found.as_deref().unwrap_or_default();
            format!("{run}: {name} is {found} instead of {}", check.expected)
        });
        let outcome = match (compared, failure) {
            (0, None) => Outcome::NotRun("no target reports it".to_owned()),
            (compared, failure) => Outcome::of(compared as u64, failure),
        };
        let some = if compared < all.len() { " (of targets that report it)" } else { "" };
        record.check(&format!("{name}{some}"), outcome);
    }
    for run in runs() {
        let Some(ledger) = run.index.as_ref().and_then(|index| index.ledger.as_ref()) else {
            continue;
        };
        let failure = (!ledger.is_good()).then(|| ledger.summary());
        let outcome = Outcome::of(ledger.scripts + ledger.history + ledger.unspent, failure);
        record.check(&format!("{}, {}", run.id, ledger.summary()), outcome);
    }
}
