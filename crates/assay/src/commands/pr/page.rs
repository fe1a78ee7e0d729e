//! The page of `assay pr`, and its first screen for the terminal.

use assay_lab::builds::Build;
use assay_lab::machine;
use assay_report::stats::ratio::Ratio;
use assay_report::stats::verdict::Verdict;
use assay_report::{Figure, Front, Page, Section, Table};

use super::{Micro, PrResults, Syncs};

/// Digits of an abbreviated commit hash.
const HASH: usize = 12;

pub(super) fn of(results: &PrResults) -> Page {
    let (base, head) = (&results.base, &results.head);
    Page {
        title: format!("{} against {}", short(head), short(base)),
        summary: format!("Head: {}. Base: {}.", head.subject, base.subject),
        created: results.created.clone(),
        front: Some(front(results)),
        sections: sections(results),
    }
}

pub(super) fn terminal(results: &PrResults) -> String {
    let mut text = String::new();
    front(results).text(&mut text);
    if let Some(syncs) = &results.syncs {
        text.push('\n');
        for line in syncs.comparison.verdicts() {
            text.push_str(&line);
            text.push('\n');
        }
    }
    if let Some(micro) = &results.micro {
        let is_different = |row: &super::micro::MicroRow| row.verdict.is_difference();
        if micro.rows.iter().any(is_different) {
            text.push('\n');
            differences(micro).text(&mut text);
        }
    }
    text
}

fn short(build: &Build) -> &str {
    build.commit.get(..HASH).unwrap_or(&build.commit)
}

fn front(results: &PrResults) -> Front {
    let mut front = Front {
        answer: format!(
            "Head {} against base {}: {}.",
            short(&results.head),
            short(&results.base),
            results.verdict.text()
        ),
        ..Front::default()
    };
    if let Some(syncs) = &results.syncs {
        of_syncs(syncs, &mut front);
    }
    if let Some(micro) = &results.micro {
        of_micro(micro, &mut front);
    }
    front
}

fn of_syncs(syncs: &Syncs, front: &mut Front) {
    for side in &syncs.comparison.comparisons {
        for row in side.rows.iter().filter(|row| row.is_total) {
            let what = if side.is_aa { "base over base again" } else { "base over head" };
            let ratio = &row.ratio;
            front.figures.push(Figure {
                value: format!("{:.4}", ratio.median),
                unit: String::new(),
                of: format!(
                    "time of a sync, {what} ({:.4} to {:.4}, {} pairs)",
                    ratio.interval.low, ratio.interval.high, ratio.pairs
                ),
            });
        }
    }
    if syncs.void_runs > 0 {
        front.caveats.push(format!(
            "{} runs are discarded: they ended with another state than the chain's.",
            syncs.void_runs
        ));
    }
    front.caveats.extend(
        syncs
            .comparison
            .comparisons
            .iter()
            .filter(|side| !side.is_aa)
            .flat_map(|side| side.notes.clone()),
    );
}

fn of_micro(micro: &Micro, front: &mut Front) {
    let count = |verdict: Verdict| micro.rows.iter().filter(|row| row.verdict == verdict).count();
    for (of, count) in [
        ("benchmarks in which head is faster", count(Verdict::Faster)),
        ("benchmarks in which head is slower", count(Verdict::Slower)),
        ("benchmarks in all", micro.rows.len()),
    ] {
        let (value, unit, of) = (count.to_string(), String::new(), of.to_owned());
        front.figures.push(Figure { value, unit, of });
    }
    if !micro.is_complete {
        front.caveats.push("Not all benchmarks were made: continue with --resume.".to_owned());
    }
    front.caveats.extend(micro.failures.iter().map(|failure| format!("Failed: {failure}")));
}

fn sections(results: &PrResults) -> Vec<Section> {
    let mut all = Vec::new();
    if let Some(syncs) = &results.syncs {
        let mut prose = vec![format!("Chain: {}.", syncs.chain)];
        prose.extend(syncs.comparison.verdicts().into_iter().map(|line| format!("- {line}")));
        prose.extend(syncs.comparison.notes().into_iter().map(|note| format!("- note: {note}")));
        prose.push("Curves, phases and single runs: `macro/report.html`.".to_owned());
        all.push(Section::new("syncs", "Syncs", prose, syncs.comparison.tables()));
    }
    if let Some(micro) = &results.micro {
        let mut prose = vec![
            format!("{} rounds; in each, every build makes the benchmark once.", micro.rounds),
            "Every sample: `micro/report.html`.".to_owned(),
        ];
        prose.extend(micro.failures.iter().map(|failure| format!("- failed: {failure}")));
        all.push(Section::new("micro", "bench_bitcoin", prose, vec![table(micro, false)]));
    }
    all.push(Section::new("builds", "Builds", Vec::new(), vec![builds(results)]));
    all.push(Section::new(
        "machine",
        "Machine",
        Vec::new(),
        vec![machine::table(&results.machine)],
    ));
    all.push(Section::new("method", "Method", method(results), Vec::new()));
    all
}

/// Table for the terminal: only the differences, if there are any.
fn differences(micro: &Micro) -> Table {
    table(micro, true)
}

fn table(micro: &Micro, is_short: bool) -> Table {
    let caption = if is_short {
        "bench_bitcoin: differences; time of base over time of head, above 1 head is faster"
    } else {
        "bench_bitcoin: time of base over time of head; above 1 head is faster"
    };
    let head = [
        "Benchmark",
        "base ns/op",
        "head ns/op",
        "ratio",
        "99 % interval",
        "base again",
        "floor",
        "ins ratio",
        "verdict",
    ];
    let mut table = Table::new(caption, &head, 1);
    for row in micro.rows.iter().filter(|row| !is_short || row.verdict.is_difference()) {
        let interval = |ratio: &Ratio| format!("{:.3} to {:.3}", ratio.low, ratio.high);
        table.push([
            row.benchmark.clone(),
            nanoseconds(row.base_ns),
            nanoseconds(row.head_ns),
            format!("{:.3}", row.ratio.median),
            interval(&row.ratio),
            interval(&row.again),
            format!("{:.1} %", row.floor * 100.0),
            row.instructions_ratio.map_or_else(|| "–".to_owned(), |ratio| format!("{ratio:.3}")),
            row.verdict.text().to_owned(),
        ]);
    }
    table
}

/// Formats a time with at least three digits.
pub(crate) fn nanoseconds(ns: f64) -> String {
    if ns >= 100.0 { format!("{ns:.0}") } else { format!("{ns:.3}") }
}

fn builds(results: &PrResults) -> Table {
    let head = ["", "Commit", "Subject", "Version", "Compiler", "Flags", "Preset"];
    let mut table = Table::new("What was measured", &head, 7);
    for (name, build) in [("base", &results.base), ("head", &results.head)] {
        table.push([
            name.to_owned(),
            build.commit.clone(),
            build.subject.clone(),
            build.version.clone(),
            build.compiler.version.clone(),
            build.flags.clone(),
            format!("{} {}", build.preset, build.digest()),
        ]);
    }
    table
}

fn method(results: &PrResults) -> Vec<String> {
    let mut prose = vec![
        "Revisions, rounds, pairs, chain and benchmarks were fixed before the first measurement. Both revisions were built with the same compiler, flags and options.".to_owned(),
    ];
    if results.syncs.is_some() {
        prose.push("- Syncs: base, base again, head; every second round backwards. A difference is shown when its 95 % interval excludes 1, the adjusted t test agrees, and the median is further from 1 than the floor, which is what the base shows against itself. The same rule as `assay compare` (docs/METHODOLOGY.md).".to_owned());
    }
    if results.micro.is_some() {
        prose.push("- `bench_bitcoin`: a process for each build, benchmark and round; median of its epochs. A difference is shown when the 99 % interval of the ratios of rounds excludes 1, and the median is further from 1 than the floor: the far end of the interval of the base against itself, and at least 1 %.".to_owned());
    }
    prose.push(format!("- Again: `{}`", results.rerun));
    prose
}
