//! Chain contents by height below the curves of syncs: shares of `SegWit` and many-input transactions, which are possible causes
//! of the slopes of Bitcoin Core's curves, and the slopes themselves.

use assay_ledger::RangeLine;
use assay_report::number::{count, percent, ratio, seconds};
use assay_report::stats::{median, rate};
use assay_report::{Band, Chart, Line, LineChart, Look, Table};

use super::NONE;
use super::series::{self, Series};
use crate::results::{Results, Run};

/// Maximum number of rows of the slope table.
const ROWS: usize = 20;

/// Shares of `SegWit` and many-input transactions by height; empty if the chain has no such figures.
pub(super) fn charts(results: &Results, bands: &[Band]) -> Vec<Chart> {
    let ranges = &results.chain.ranges;
    let steps = |of: &dyn Fn(&RangeLine) -> f64| -> Vec<(f64, f64)> {
        let step = |range: &RangeLine| {
            let y = of(range);
            [(f64::from(range.first) - 0.5, y), (f64::from(range.last) + 0.5, y)]
        };
        ranges.iter().flat_map(step).collect()
    };
    let line = |label: &str, colour: usize, points: Vec<(f64, f64)>| Line {
        label: label.to_owned(),
        look: Look { colour: Some(colour), dashed: false },
        pieces: vec![points],
        points: false,
    };
    let chart = |title: &str, y_label: &str, series: Vec<Line>| {
        if ranges.is_empty() {
            return None;
        }
        let chart = LineChart {
            title: title.to_owned(),
            x_label: "height".to_owned(),
            y_label: y_label.to_owned(),
            series,
            bands: bands.to_vec(),
            ..LineChart::default()
        };
        chart.draw()
    };
    let per_block = |of: fn(&RangeLine) -> u64| {
        move |range: &RangeLine| rate(of(range) as f64, f64::from(range.last + 1 - range.first))
    };
    let legacy = per_block(|range| range.many_input_legacy_txs);
    let segwit = per_block(|range| range.many_input_txs - range.many_input_legacy_txs);
    let share = |range: &RangeLine| 100.0 * rate(range.segwit_txs as f64, range.txs as f64);
    let coins = |range: &RangeLine| range.coins as f64 / 1e6;
    [
        chart(
            "SegWit share of the chain's transactions",
            "percent",
            vec![line("with a witness", 0, steps(&share))],
        ),
        chart(
            "Transactions of more than 50 inputs",
            "per block",
            vec![
                line("without a witness", 0, steps(&legacy)),
                line("with a witness", 1, steps(&segwit)),
            ],
        ),
        chart("Coins in the set", "millions", vec![line("coins", 0, steps(&coins))]),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// Sum over adjacent ranges.
struct Part {
    first: u32,
    last: u32,
    txs: u64,
    inputs: u64,
    segwit_txs: u64,
    many: u64,
}

impl Part {
    fn of(ranges: &[RangeLine]) -> Option<Self> {
        let sum = |of: fn(&RangeLine) -> u64| ranges.iter().map(of).sum();
        Some(Self {
            first: ranges.first()?.first,
            last: ranges.last()?.last,
            txs: sum(|range| range.txs),
            inputs: sum(|range| range.inputs),
            segwit_txs: sum(|range| range.segwit_txs),
            many: sum(|range| range.many_input_txs),
        })
    }

    fn blocks(&self) -> f64 {
        f64::from(self.last + 1 - self.first)
    }

    /// Seconds that a run took for these blocks.
    fn seconds(&self, run: &Run) -> f64 {
        let within = |height: u32| (self.first..=self.last).contains(&height);
        run.blocks.iter().filter(|block| within(block.height)).map(|block| block.service_s).sum()
    }
}

/// Slope of each target's curve per height range, with the chain contents there.
pub(super) fn slopes(results: &Results) -> Option<Table> {
    let ranges = &results.chain.ranges;
    let all: Vec<Series<'_>> = series::all(results);
    if ranges.is_empty() || all.is_empty() {
        return None;
    }
    let mut head = vec!["Heights", "Inputs per block", "SegWit", "More than 50 inputs, per block"];
    let labels: Vec<(String, String)> = all
        .iter()
        .map(|series| {
            (
                format!("{}, s per 1,000 blocks", series.label),
                format!("{}, µs per input", series.label),
            )
        })
        .collect();
    for (slope, each) in &labels {
        head.extend([slope.as_str(), each.as_str()]);
    }
    let mut table = Table::new("Slopes of the curves, and what the chain has there", &head, 1);
    let rows = ROWS.min(ranges.len());
    for row in 0..rows {
        let from_to = row * ranges.len() / rows..(row + 1) * ranges.len() / rows;
        let Some(part) = Part::of(&ranges[from_to]) else { continue };
        let mut cells = vec![
            format!("{}–{}", part.first, part.last),
            count(rate(part.inputs as f64, part.blocks()).round() as u64),
            percent(rate(part.segwit_txs as f64, part.txs as f64)),
            ratio(rate(part.many as f64, part.blocks())).trim_end_matches('×').to_owned(),
        ];
        for series in &all {
            let times: Vec<f64> = series.runs.iter().map(|run| part.seconds(run)).collect();
            let time_s = median(&times);
            cells.push(seconds(1_000.0 * time_s / part.blocks()));
            cells.push(match part.inputs {
                0 => NONE.to_owned(),
                inputs => format!("{:.1}", 1e6 * time_s / inputs as f64),
            });
        }
        table.rows.push(cells);
    }
    Some(table)
}

/// Soft fork activation heights, and the programs that receive them.
pub(super) fn soft_forks(results: &Results) -> Option<String> {
    let forks = &results.chain.activation;
    if forks.is_empty() {
        return None;
    }
    let mut forks: Vec<_> = forks.iter().collect();
    forks.sort_by_key(|(_, height)| **height);
    let forks: Vec<_> =
        forks.iter().map(|(name, height)| format!("{name} from height {height}")).collect();
    let when = if super::own_chain::files(results).is_some() {
        "Soft forks activate at given heights"
    } else {
        "Soft forks activate with the eras"
    };
    Some(format!(
        "- {when}: {}. Programs that have `-testactivationheight` (Bitcoin Core from 22 on, our node \
         and engine) get these heights; others enforce each where their own regtest has it, and the blocks are valid there as \
         well. Programs of before a soft fork verify what they know of it.",
        forks.join(", ")
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::fixture;

    fn with_ranges() -> Results {
        let mut results = fixture::syncs();
        let last = results.targets[0].runs[0].blocks.last().expect("blocks").height;
        let half = last / 2;
        let range = |first, last, segwit_txs, many| RangeLine {
            first,
            last,
            txs: 1_000,
            inputs: 2_500,
            outputs: 2_600,
            segwit_txs,
            many_input_txs: many,
            many_input_legacy_txs: many / 2,
            coins: 1_000_000,
            ..RangeLine::default()
        };
        results.chain.ranges = vec![range(1, half, 0, 10), range(half + 1, last, 800, 100)];
        results.chain.activation = [("segwit".to_owned(), half + 1), ("csv".to_owned(), 9)].into();
        results
    }

    #[test]
    fn charts_and_slopes_need_phases_of_the_chain() {
        let plain = fixture::syncs();
        assert!(charts(&plain, &[]).is_empty() && slopes(&plain).is_none());
        assert_eq!(soft_forks(&plain), None);
        let results = with_ranges();
        assert_eq!(charts(&results, &[]).len(), 3);
        let said = soft_forks(&results).expect("there are");
        assert!(said.contains("csv from height 9, segwit from height"), "{said}");
    }

    #[test]
    fn slopes_add_up_to_the_time_of_the_curve() {
        let results = with_ranges();
        let table = slopes(&results).expect("there are ranges");
        assert_eq!(table.rows.len(), 2);
        assert_eq!((table.rows[0][2].as_str(), table.rows[1][2].as_str()), ("0.0 %", "80.0 %"));
        let value = |text: &str| text.replace(',', "").parse::<f64>().expect("a number");
        let blocks = |range: &RangeLine| f64::from(range.last + 1 - range.first);
        let sum: f64 = (table.rows.iter().zip(&results.chain.ranges))
            .map(|(row, range)| value(&row[4]) / 1_000.0 * blocks(range))
            .sum();
        let ends: Vec<f64> = (results.targets[0].runs.iter())
            .map(|run| run.blocks.iter().map(|block| block.service_s).sum())
            .collect();
        assert!((sum - median(&ends)).abs() < 0.05 * median(&ends), "{sum} {ends:?}");
    }
}
