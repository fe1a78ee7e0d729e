//! Results as a record, of which tables, CSV and the text for a terminal are forms.

use assay_report::record::{Outcome, Record, SCHEMA, Unit};

use super::prose;
use crate::experiment::TIMES;
use crate::results::{BenchResults, Measured};

pub fn record(results: &BenchResults) -> Record {
    let mut record = Record {
        kind: "bench".to_owned(),
        schema: SCHEMA,
        created: results.created.clone(),
        software: results.software.clone(),
        machine: results.conditions.machine.clone(),
        command: results.rerun.clone(),
        headline: prose::headline(results),
        notes: prose::caveats(results),
        ..Record::default()
    };
    let all = || results.benchmarks.iter().chain(&results.builds);
    all().for_each(|measured| add(&mut record, measured));
    let done = all().count() + results.studies.len();
    record.check("results of benchmarks and studies", Outcome::of(done as u64, None));
    for failure in &results.failures {
        record.check(&failure.name, Outcome::Failed(failure.error.clone()));
    }
    if !results.is_complete {
        let reason = "the run was stopped before its end".to_owned();
        record.check("all benchmarks", Outcome::NotRun(reason));
    }
    record.set("extent", results.extent.text());
    record.set("rounds", results.rounds);
    record.set("counts", &results.counting.note);
    if let Some(load) = results.conditions.load_1m {
        record.set("load at the beginning", format!("{load:.2}"));
    }
    for build in results.plan.iter().flat_map(|plan| &plan.builds) {
        record.set(&format!("build {}", build.name), build.command.join(" "));
    }
    record
}

fn add(record: &mut Record, measured: &Measured) {
    for figures in &measured.row.figures {
        let place = (measured.name.as_str(), figures.name.as_str());
        let seconds: Vec<f64> = figures.samples_ns.iter().map(|ns| ns / 1e9).collect();
        record.add_rounds(place, ("time", Unit::Seconds), &seconds);
        let comparison = measured.comparison(&figures.name);
        if let Some(found) = comparison {
            record.add_interval(place, (TIMES, Unit::Ratio), &found.ratio);
        }
        let cpu_ratio = comparison.and_then(|found| found.cpu_ratio);
        let bytes_per_s = measured.bytes_per_s(figures.ns_per_op);
        let counters = [
            ("Counters | CPU time", Unit::Seconds, Some(figures.cpu_ns_per_op / 1e9)),
            ("Counters | ratio of CPU times", Unit::Ratio, cpu_ratio.map(|ratio| ratio.median)),
            ("Counters | instructions", Unit::Count, figures.instructions_per_op),
            ("Counters | cycles", Unit::Count, figures.cycles_per_op),
            ("Counters | branches", Unit::Count, figures.branches_per_op),
            ("Counters | mispredicted branches", Unit::Count, figures.branch_misses_per_op),
            ("Counters | bytes per second", Unit::PerSecond, bytes_per_s),
        ];
        record.add((place.0, place.1, None), &counters);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stored_results_become_records() {
        let reports = concat!(env!("CARGO_MANIFEST_DIR"), "/../../reports");
        let mut read = 0;
        for machine in std::fs::read_dir(reports).expect("the folder of reports").flatten() {
            for entry in std::fs::read_dir(machine.path()).into_iter().flatten().flatten() {
                let Ok(results) = super::super::load(&entry.path().join("results.json.gz")) else {
                    continue;
                };
                let record = record(&results);
                let all = results.benchmarks.iter().chain(&results.builds);
                let alternatives = all.map(|one| one.row.figures.len());
                let times = record
                    .cells
                    .iter()
                    .filter(|cell| cell.metric == "time" && cell.round == Some(0));
                assert_eq!(
                    times.count(),
                    alternatives.sum::<usize>(),
                    "{}",
                    entry.path().display()
                );
                assert!(record.has_passed() || !results.failures.is_empty(), "{:?}", record.checks);
                read += 1;
            }
        }
        assert!(read >= 5, "{read} results of benchmarks");
    }
}
