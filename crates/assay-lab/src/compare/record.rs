//! Record of a comparison.

use assay_report::number::in_percent;
use assay_report::record::{Outcome, Record, Unit, count};
use assay_report::stats::verdict::Verdict;

use super::pairs::PAIRS_MIN;
use super::{ComparedRow, Comparison, PairComparison, Spread};
use crate::results::Results;

impl Comparison {
    /// Record of a comparison of `results`, and perhaps of others.
    pub fn record(&self, results: &Results) -> Record {
        let mut record = Record {
            kind: "comparison".to_owned(),
            schema: assay_report::record::SCHEMA,
            created: results.created.clone(),
            software: results.software.clone(),
            machine: results.machine.clone(),
            command: results.rerun.clone(),
            ..Record::default()
        };
        let mut verdicts = self.verdicts().into_iter();
        record.headline = verdicts.next().unwrap_or_default();
        record.notes.extend(verdicts);
        self.add_to(&mut record);
        record
    }

    /// Adds all rows. Ratios are the time of the first side over that of the second: above 1, the second is faster.
    pub fn add_to(&self, record: &mut Record) {
        let has_shares = self.rows().any(|row| row.seen > 0.0);
        for compared in &self.comparisons {
            let target = format!("{} against {}", compared.second, compared.first);
            for row in &compared.rows {
                let case = if has_shares {
                    format!("{} % pre-relayed, {}", in_percent(row.seen), row.title)
                } else {
                    row.title.clone()
                };
                row.add_to(record, (&target, &case));
                let medians = row.machines.iter().flat_map(|machines| &machines.medians);
                for (entry, median) in compared.machines.iter().zip(medians) {
                    let case = format!("{case}, on {}", entry.name);
                    let ratio = ("machine | ratio", Unit::Ratio, *median);
                    record.add((&target, &case, None), &[ratio]);
                }
            }
            for entry in &compared.machines {
                record.set(&format!("machine | {}", entry.name), entry.machine.in_short());
                record.add(
                    (&target, &format!("on {}", entry.name), None),
                    &[count("machine | pairs", entry.pairs as u64)],
                );
            }
            let counted: usize = compared.pairs.iter().map(|pairs| pairs.counted).sum();
            let outcome = Outcome::of(counted as u64, None);
            record.check(&format!("{target}: same work and settings in every pair"), outcome);
            record.notes.extend(self.lines(compared));
        }
    }

    /// A sentence per total: verdict, interval, floor and pairs.
    pub fn verdicts(&self) -> Vec<String> {
        let of = |compared: &PairComparison| {
            let totals = compared.rows.iter().filter(|row| row.is_total);
            let sentences = totals.map(|row| {
                let pairs = compared
                    .pairs
                    .iter()
                    .find(|count| in_percent(count.seen) == in_percent(row.seen));
                let pairs = pairs.map_or_else(String::new, |count| {
                    format!("; {} of {} planned pairs", count.counted, count.planned)
                });
                format!("VERDICT: {}{pairs}", self.sentence(compared, row))
            });
            let mut sentences: Vec<String> = sentences.collect();
            if sentences.is_empty() {
                let (first, second) = (&compared.first, &compared.second);
                sentences.push(format!("VERDICT: none on {first} and {second}: no pairs count"));
            }
            sentences
        };
        self.comparisons.iter().flat_map(of).collect()
    }

    /// Differences of other rows than totals, notes, and the measured floor.
    fn lines(&self, compared: &PairComparison) -> Vec<String> {
        let is_shown = |row: &&ComparedRow| !row.is_total && row.verdict.is_difference();
        let rows = compared.rows.iter().filter(is_shown);
        let mut lines: Vec<String> =
            rows.map(|row| format!("{}: {}", row.title, self.sentence(compared, row))).collect();
        let false_ones = compared.rows.iter().filter(|row| row.verdict.is_difference()).count();
        if compared.is_aa && !compared.rows.is_empty() {
            lines.push(format!("false verdicts: {false_ones} of {} rows", compared.rows.len()));
            let floors = compared.rows.iter().filter(|row| row.is_total).map(|row| {
                format!(
                    "{:.2} % ({} % pre-relayed)",
                    row.ratio.reach() * 100.0,
                    in_percent(row.seen)
                )
            });
            lines.push(format!(
                "floor of totals on this machine, from these pairs: {}",
                floors.collect::<Vec<_>>().join(", ")
            ));
        }
        let machines = compared.machines.len();
        if machines > 1 {
            lines.push(format!("ratios within each of {machines} machines, then over machines"));
        }
        lines.extend(compared.notes.clone());
        lines
    }

    fn sentence(&self, compared: &PairComparison, row: &ComparedRow) -> String {
        let away = (row.ratio.median.max(1.0 / row.ratio.median) - 1.0) * 100.0;
        let interval = format!("ratio {:.4}, {}", row.ratio.median, interval(row));
        let seen = format!("{} % pre-relayed", in_percent(row.seen));
        match row.verdict {
            Verdict::Faster | Verdict::Slower => format!(
                "{seen}: {} is {} than {} by {away:.2} % ({interval}, floor {:.2} %)",
                compared.second,
                row.verdict.text(),
                compared.first,
                row.floor * 100.0
            ),
            Verdict::Equivalent => format!(
                "{seen}: {} and {} are equivalent within {:.2} % ({interval})",
                compared.first,
                compared.second,
                self.delta * 100.0
            ),
            Verdict::NotShown if row.ratio.pairs < PAIRS_MIN => format!(
                "{seen}: undecided between {} and {}: fewer than {PAIRS_MIN} pairs count ({interval})",
                compared.first, compared.second
            ),
            Verdict::NotShown => format!(
                "{seen}: no difference shown between {} and {} ({interval}, floor {:.2} %)",
                compared.first,
                compared.second,
                row.floor * 100.0
            ),
        }
    }
}

impl ComparedRow {
    /// Adds the ratio with its interval, and the times of both sides.
    pub fn add_to(&self, record: &mut Record, (target, case): (&str, &str)) {
        let ratio = &self.ratio;
        let percent =
            |metric, share: Option<f64>| (metric, Unit::Percent, share.map(|share| 100.0 * share));
        record.add(
            (target, case, None),
            &[
                ("ratio", Unit::Ratio, Some(ratio.median)),
                ("ratio, low", Unit::Ratio, Some(ratio.interval.low)),
                ("ratio, high", Unit::Ratio, Some(ratio.interval.high)),
                percent("coverage", Some(ratio.coverage)),
                percent("p", self.p_adjusted),
                percent("floor", Some(self.floor)),
                count("pairs", ratio.pairs as u64),
            ],
        );
        for (side, spread) in [("first", &self.first), ("second", &self.second)] {
            let Spread { mean_s, sigma_s, min_s, max_s, .. } = *spread;
            for (what, seconds) in
                [("mean", mean_s), ("σ", sigma_s), ("min", min_s), ("max", max_s)]
            {
                let metric = format!("times | {side}, {what}");
                record.add((target, case, None), &[(&metric, Unit::Seconds, Some(seconds))]);
            }
        }
    }
}

fn interval(row: &ComparedRow) -> String {
    let (interval, coverage) = (row.ratio.interval, row.ratio.coverage * 100.0);
    format!("{:.4} to {:.4} with at least {coverage:.1} %", interval.low, interval.high)
}
