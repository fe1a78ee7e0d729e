//! Lookup cost of old and recent, adjacent and scattered coins.

use assay_report::number::ratio;
use assay_report::record::{Record, Unit};
use assay_report::stats::median_of;
use assay_report::stats::ratio::Ratio;

use crate::results::{BlockRecord, Results, Run, Status, TargetResults};

/// Phase names of the forge: an age and an order.
const AGES: [&str; 2] = ["old", "recent"];
const CLUSTERED: &str = "clustered";
const SCATTERED: &str = "scattered";

pub(super) fn is_there(results: &Results) -> bool {
    let name = phase(AGES[0], SCATTERED);
    results.plan.phases.iter().any(|phase| phase.name == name)
}

fn phase(age: &str, order: &str) -> String {
    format!("{age}-{order}")
}

fn valid_runs(target: &TargetResults) -> impl Iterator<Item = &Run> {
    target.runs.iter().filter(|run| run.status == Status::Valid)
}

/// Service times of the blocks of a phase, per run.
fn times(target: &TargetResults, name: &str) -> Vec<f64> {
    let of_run = |run: &Run| -> Vec<f64> {
        let of_phase = |block: &&BlockRecord| block.phase == name;
        run.blocks.iter().filter(of_phase).map(|block| block.service_s).collect()
    };
    valid_runs(target).flat_map(of_run).collect()
}

/// Ratio of the times of some blocks to those of others, per round.
fn compared(target: &TargetResults, above: &str, below: &str) -> Option<Ratio> {
    Ratio::of_pairs(&times(target, above), &times(target, below))
}

fn with_interval(value: &Ratio) -> String {
    format!("{} ({} to {})", ratio(value.median), ratio(value.low), ratio(value.high))
}

pub(super) fn answer(results: &Results) -> String {
    let part = |target: &TargetResults| {
        let of_age = |age: &str| {
            let value = compared(target, &phase(age, SCATTERED), &phase(age, CLUSTERED))?;
            Some(format!("{} where they are {age}", with_interval(&value)))
        };
        let ages: Vec<String> = AGES.iter().filter_map(|age| of_age(age)).collect();
        (!ages.is_empty()).then(|| format!("{} {}", target.name, ages.join(", ")))
    };
    let parts: Vec<String> = results.targets.iter().filter_map(part).collect();
    if parts.is_empty() {
        return "No run is valid: nothing was measured.".to_owned();
    }
    format!("Time for a block of scattered coins against one of neighbours: {}.", parts.join("; "))
}

/// Adds times and ratios of the blocks, paired by round and run. Every block has as many transactions, inputs and signatures.
pub(super) fn add(results: &Results, record: &mut Record) {
    if !is_there(results) {
        return;
    }
    for target in &results.targets {
        let name = target.name.as_str();
        for age in AGES {
            for order in [CLUSTERED, SCATTERED] {
                let kind = phase(age, order);
                let figures = [
                    ("placement | median block", Unit::Seconds, median_of(times(target, &kind))),
                    ("placement | read in a block", Unit::Bytes, read_bytes(target, &kind)),
                ];
                record.add((name, &format!("{age}, {order}"), None), &figures);
            }
        }
        let by_age = AGES.map(|age| [phase(age, SCATTERED), phase(age, CLUSTERED)]);
        let by_order = [CLUSTERED, SCATTERED].map(|order| AGES.map(|age| phase(age, order)));
        for [above, below] in by_age.iter().chain(&by_order) {
            let Some(ratio) = compared(target, above, below) else { continue };
            let case = format!("{above} / {below}");
            record.add_interval((name, &case), ("placement ratios | time", Unit::Ratio), &ratio);
        }
    }
}

/// Median of the node's disk reads per block.
fn read_bytes(target: &TargetResults, name: &str) -> Option<f64> {
    let of_phase = |run: &Run| -> Vec<f64> {
        let blocks = run.blocks.iter().filter(|block| block.phase == name);
        blocks.filter_map(|block| Some(block.disk?.service.read_bytes as f64)).collect()
    };
    median_of(valid_runs(target).flat_map(of_phase))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::fixture;

    #[test]
    fn scattered_over_clustered_of_the_same_round() {
        let mut results = fixture::results();
        assert!(!is_there(&results));
        results.plan = crate::plan::Plan::builtin("placement").expect("built in");
        assert!(is_there(&results));
        let template = results.targets[0].runs[0].blocks[0].clone();
        for (target, slowness) in results.targets.iter_mut().zip([1.5, 3.0]) {
            for run in &mut target.runs {
                let round = |round: u32| {
                    let luck = 1.0 + f64::from(round) / 10.0;
                    let block = |(name, service_s): (&str, f64)| BlockRecord {
                        phase: name.to_owned(),
                        txs: 11,
                        inputs: 250,
                        service_s: service_s * luck,
                        ..template.clone()
                    };
                    [
                        ("old-clustered", 2.0),
                        ("old-scattered", 2.0 * slowness),
                        ("recent-scattered", slowness),
                        ("recent-clustered", 1.0),
                    ]
                    .map(block)
                };
                run.blocks = (0..8).flat_map(round).collect();
            }
        }
        let said = answer(&results);
        let first = "assay+index 1.50× (1.50× to 1.50×) where they are old, 1.50× (1.50× to 1.50×) where they are recent";
        assert!(
            said.contains(first) && said.contains("bchn-28.0.1 3.00× (3.00× to 3.00×)"),
            "{said}"
        );
        let mut record = Record::default();
        add(&results, &mut record);
        let values = |case: &str| record.values(case, "placement ratios | time");
        for (case, first, second) in [
            ("old-scattered / old-clustered", 1.5, 3.0),
            ("recent-scattered / recent-clustered", 1.5, 3.0),
            ("old-clustered / recent-clustered", 2.0, 2.0),
            ("old-scattered / recent-scattered", 2.0, 2.0),
        ] {
            let values = values(case);
            let close = |value: f64, of: f64| (value - of).abs() < 1e-9;
            assert!(close(values[0], first) && close(values[1], second), "{case}: {values:?}");
        }
        for run in results.targets.iter_mut().flat_map(|target| &mut target.runs) {
            run.status = Status::Void;
        }
        assert!(answer(&results).starts_with("No run is valid"));
    }
}
