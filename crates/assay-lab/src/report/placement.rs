//! Lookup cost of old and recent, adjacent and scattered coins.

use assay_report::Table;
use assay_report::number::{percent, ratio, seconds};
use assay_report::stats::median;
use assay_report::stats::ratio::Ratio;

use super::NONE;
use crate::results::{BlockRecord, Results, Run, Status, TargetResults};

/// Phase names of the forge: an age and an order.
const AGES: [&str; 2] = ["old", "recent"];
const CLUSTERED: &str = "clustered";
const SCATTERED: &str = "scattered";

/// True if the chain has such blocks.
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

/// Summary sentence.
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

pub(super) fn prose(results: &Results) -> Vec<String> {
    let counts = |name: &str| {
        let target = results.targets.first()?;
        let run = valid_runs(target).next()?;
        let block = run.blocks.iter().find(|block| block.phase == name)?;
        Some(format!("{} transactions, {} inputs", block.txs - 1, block.inputs))
    };
    let counts = counts(&phase(AGES[0], CLUSTERED)).unwrap_or_default();
    vec![format!(
        "Every block of every kind has the same number of the same transactions ({counts}) and signatures; sizes differ by the \
         length of signatures alone. Neighbours are all outputs of one transaction after the other in the order of their ids, \
         in which databases of coins are sorted; scattered ones are a seeded shuffle. Old ones are of the earlier half of the \
         fan-out blocks, recent ones of the later half. A round of the chain has a block of each kind, in an order that turns \
         round by round; ratios are of blocks of the same round and run. Blocks of a run share what their node did before, so \
         the intervals say less about other machines than those between runs."
    )]
}

pub(super) fn tables(results: &Results) -> Vec<Table> {
    let head = [
        "Target",
        "Coins",
        "Pairs of blocks",
        "Clustered, s",
        "Scattered, s",
        "Scattered / clustered",
        "Read in clustered, KiB",
        "Read in scattered, KiB",
    ];
    let mut orders = Table::new("Clustered and scattered coins: medians of blocks", &head, 2);
    let head = ["Target", "Order", "Pairs of blocks", "Old, s", "Recent, s", "Old / recent"];
    let mut ages = Table::new("Old and recent coins: medians of blocks", &head, 2);
    for target in &results.targets {
        for age in AGES {
            let [clustered, scattered] = [CLUSTERED, SCATTERED].map(|order| phase(age, order));
            let Some(value) = compared(target, &scattered, &clustered) else { continue };
            orders.push([
                target.name.clone(),
                age.to_owned(),
                value.pairs.to_string(),
                seconds(median(&times(target, &clustered))),
                seconds(median(&times(target, &scattered))),
                interval_with_coverage(&value),
                read_kib(target, &clustered),
                read_kib(target, &scattered),
            ]);
        }
        for order in [CLUSTERED, SCATTERED] {
            let [old, recent] = AGES.map(|age| phase(age, order));
            let Some(value) = compared(target, &old, &recent) else { continue };
            ages.push([
                target.name.clone(),
                order.to_owned(),
                value.pairs.to_string(),
                seconds(median(&times(target, &old))),
                seconds(median(&times(target, &recent))),
                interval_with_coverage(&value),
            ]);
        }
    }
    vec![orders, ages]
}

fn interval_with_coverage(value: &Ratio) -> String {
    format!("{}, {}", with_interval(value), percent(value.coverage))
}

/// Median of the node's disk reads per block.
fn read_kib(target: &TargetResults, name: &str) -> String {
    let of_phase = |run: &Run| -> Vec<f64> {
        let blocks = run.blocks.iter().filter(|block| block.phase == name);
        blocks.filter_map(|block| Some(block.disk?.service.read_bytes as f64 / 1024.0)).collect()
    };
    let values: Vec<f64> = valid_runs(target).flat_map(of_phase).collect();
    if values.is_empty() { NONE.to_owned() } else { format!("{:.0}", median(&values)) }
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
        let tables = tables(&results);
        assert_eq!(tables.iter().map(|table| table.rows.len()).collect::<Vec<_>>(), [4, 4]);
        assert!(tables[1].rows[0].last().is_some_and(|cell| cell.starts_with("2.00× ")));
        assert!(prose(&results)[0].contains("(10 transactions, 250 inputs)"));
        for run in results.targets.iter_mut().flat_map(|target| &mut target.runs) {
            run.status = Status::Void;
        }
        assert!(answer(&results).starts_with("No run is valid"));
    }
}
