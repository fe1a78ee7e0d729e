//! Compares two results files: the same benchmarks before and after a change, or on two machines.
//!
//! Their samples were not interleaved and cannot be paired. So the interval is wider, and the floor is higher: differences
//! between runs, such as code placement in memory, do not vary within a run.

use assay_lab::machine;
use assay_report::record::{Outcome, Record, SCHEMA, Unit};
use assay_report::stats::ratio::Ratio;
use assay_report::stats::verdict::{COVERAGE, Verdict};

use crate::experiment::TIMES;
use crate::harness::Figures;
use crate::results::{BenchResults, Measured};

/// Smallest floor between two runs, as a fraction.
const FLOOR_MIN: f64 = 0.02;

/// Compares two files; the default floor is the larger of both runs' own, and at least 2 %. A slower alternative fails the check.
pub fn compare(before: &BenchResults, after: &BenchResults, floor: Option<f64>) -> Record {
    let floor = floor.unwrap_or(before.floor.max(after.floor).max(FLOOR_MIN));
    let mut record = Record {
        kind: "bench compare".to_owned(),
        schema: SCHEMA,
        created: machine::utc_now(),
        machine: after.conditions.machine.clone(),
        notes: differences(before, after),
        ..Record::default()
    };
    let mut found: Vec<(Verdict, String)> = Vec::new();
    for (measured, first) in alternatives(before) {
        let Some(second) = find(after, &measured.name, &first.name) else { continue };
        let verdict = add(&mut record, &measured.name, (first, second), floor);
        found.push((verdict, format!("{} by {}", measured.name, first.name)));
    }
    let of = |verdict| found.iter().filter(move |(of, _)| *of == verdict).map(|(_, name)| name);
    record.headline = format!(
        "{} faster, {} slower, {} without a difference shown; floor {:.1} %.",
        of(Verdict::Faster).count(),
        of(Verdict::Slower).count(),
        of(Verdict::NotShown).count(),
        floor * 100.0
    );
    let slower = of(Verdict::Slower).next().map(|name| format!("{name} is slower"));
    record.check("no alternative is slower", Outcome::of(found.len() as u64, slower));
    for verdict in [Verdict::Slower, Verdict::Faster] {
        record.notes.extend(of(verdict).map(|name| format!("{}: {name}", verdict.text())));
    }
    for (names, file) in [(missing(before, after), "first"), (missing(after, before), "second")] {
        record.notes.extend(names.iter().map(|name| format!("only in the {file} file: {name}")));
    }
    record.notes.push(
        "Ratios are the first file over the second: above 1 the second is faster.".to_owned(),
    );
    record
}

fn add(
    record: &mut Record,
    benchmark: &str,
    (first, second): (&Figures, &Figures),
    floor: f64,
) -> Verdict {
    let instructions = first.instructions_per_op.zip(second.instructions_per_op);
    let seconds = |figures: &Figures| Some(figures.ns_per_op / 1e9);
    let figures = [
        ("first", Unit::Seconds, seconds(first)),
        ("second", Unit::Seconds, seconds(second)),
        ("ratio of instructions", Unit::Ratio, instructions.map(|(first, second)| first / second)),
    ];
    record.add((benchmark, &first.name, None), &figures);
    let ratio = Ratio::of_medians(&first.samples_ns, &second.samples_ns, COVERAGE);
    let Some(ratio) = ratio else { return Verdict::NotShown };
    record.add_interval((benchmark, &first.name), (TIMES, Unit::Ratio), &ratio);
    Verdict::of(&ratio, floor)
}

fn alternatives(results: &BenchResults) -> impl Iterator<Item = (&Measured, &Figures)> {
    let of = |measured| move |figures| (measured, figures);
    results
        .benchmarks
        .iter()
        .flat_map(move |measured| measured.row.figures.iter().map(of(measured)))
}

fn find<'a>(results: &'a BenchResults, benchmark: &str, name: &str) -> Option<&'a Figures> {
    results.benchmarks.iter().find(|measured| measured.name == benchmark)?.row.of(name)
}

fn missing(from: &BenchResults, there: &BenchResults) -> Vec<String> {
    alternatives(from)
        .filter(|(measured, figures)| find(there, &measured.name, &figures.name).is_none())
        .map(|(measured, figures)| format!("{} by {}", measured.name, figures.name))
        .collect()
}

fn differences(before: &BenchResults, after: &BenchResults) -> Vec<String> {
    let text = |value: &Option<String>| value.clone().unwrap_or_else(|| "unknown".to_owned());
    let of = |results: &BenchResults| {
        let (machine, software) = (&results.conditions.machine, &results.software);
        [
            ("processor", text(&machine.cpu)),
            ("cores", machine.cores.to_string()),
            ("system", text(&machine.system)),
            ("kernel", text(&machine.kernel)),
            ("frequency governor", text(&machine.governor)),
            ("compiler", software.rustc.clone()),
            ("build", software.profile.clone()),
            ("version of assay", software.assay.clone()),
            ("extent", results.extent.text().to_owned()),
            ("rounds", results.rounds.to_string()),
            ("counts", text(&results.counting.by)),
        ]
    };
    let mut differences: Vec<String> = of(before)
        .into_iter()
        .zip(of(after))
        .filter(|((_, before), (_, after))| before != after)
        .map(|((what, before), (_, after))| format!("not the same: {what}: {before} and {after}"))
        .collect();
    if before.plan != after.plan {
        differences.push("not the same: the plan or its settings".to_owned());
    }
    differences
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::fixture;

    #[test]
    fn the_same_twice_shows_nothing() {
        let results = fixture::results();
        let same = compare(&results, &results, None);
        assert!(same.has_passed() && same.headline.starts_with("0 faster, 0 slower, "), "{same:?}");
        assert_eq!(same.notes.len(), 1, "{:?}", same.notes);
        let nothing = BenchResults { benchmarks: Vec::new(), ..results.clone() };
        assert!(!compare(&results, &nothing, None).has_passed(), "nothing is compared");
    }

    #[test]
    fn reports_differences() {
        let before = fixture::results();
        let mut after = before.clone();
        after.conditions.machine.cpu = Some("another".to_owned());
        after.rounds = 3;
        let measured = &mut after.benchmarks[0];
        let figures = &mut measured.row.figures[0];
        figures.samples_ns.iter_mut().for_each(|sample| *sample *= 1.5);
        figures.ns_per_op *= 1.5;
        let (benchmark, case) = (measured.name.clone(), figures.name.clone());
        measured.row.figures[1].name = "new".to_owned();
        let found = compare(&before, &after, Some(0.05));
        let slower = format!("{benchmark} by {case} is slower");
        assert_eq!(found.outcome(), Outcome::Failed(slower));
        assert!((found.values(&case, TIMES)[0] - 1.0 / 1.5).abs() < 1e-9, "{found:?}");
        assert!(found.headline.contains(" 1 slower"), "{}", found.headline);
        let notes = found.notes.join("\n");
        for words in
            ["same: processor", "same: rounds", "slower: ", "first file: ", "second file: "]
        {
            assert_eq!(notes.matches(words).count(), 1, "{words}: {notes}");
        }
    }
}
