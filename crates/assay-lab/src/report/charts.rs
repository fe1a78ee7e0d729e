//! Charts of the report.

use assay_report::number::in_percent;
use assay_report::stats::rate;
use assay_report::{Band, BarChart, Bars, Chart, Line, LineChart, Look, number};

use super::series::{self, Series, measured_phases};
use crate::plan::{Figure, FigureKind};
use crate::results::{BlockRecord, PhaseResult, Results, Run};

const MIB: f64 = 1_048_576.0;
/// Maximum number of points of a resource curve.
const CURVE_POINTS: usize = 240;

/// Bars per phase: transactions, inputs, MiB, signatures.
pub(super) fn per_phase(results: &Results) -> Vec<Chart> {
    type Published = fn(&Figure) -> Option<f64>;
    type Kind = (&'static str, &'static str, fn(&PhaseResult) -> f64, Published);
    // Phases of many widths have charts over the width instead.
    if !results.plan.scaling.is_empty() {
        return Vec::new();
    }
    let kinds: [Kind; 4] = [
        ("Transactions per second", "tx/s", |phase| phase.tx_per_s, |figure| figure.tx_per_s),
        ("Inputs per second", "inputs/s", |phase| phase.inputs_per_s, |figure| figure.inputs_per_s),
        (
            "Outputs per second",
            "outputs/s",
            |phase| phase.outputs_per_s,
            |figure| figure.outputs_per_s,
        ),
        ("MiB per second", "MiB/s", |phase| phase.mib_per_s, |figure| figure.mib_per_s),
    ];
    kinds
        .into_iter()
        .filter_map(|(title, unit, ours, published)| {
            phase_bars(results, title, unit, ours, Some(published))
        })
        .collect()
}

/// The chart of inputs for the summary.
pub(super) fn inputs_per_phase(results: &Results) -> Option<Chart> {
    phase_bars(results, "Inputs per second", "inputs/s", |phase| phase.inputs_per_s, None)
}

fn phase_bars(
    results: &Results,
    title: &str,
    unit: &str,
    ours: fn(&PhaseResult) -> f64,
    published: Option<fn(&Figure) -> Option<f64>>,
) -> Option<Chart> {
    let phases = measured_phases(results);
    let all = series::all(results);
    let mut bars: Vec<Bars> = Vec::new();
    for series in &all {
        let value = |(name, _): &(String, String)| series.phase(name, ours);
        let values: Vec<Option<f64>> = phases.iter().map(value).collect();
        // Runs without such values are left out of the legend.
        if values.iter().flatten().any(|value| *value > 0.0) {
            bars.push(Bars { label: series.label.clone(), look: series.look, values });
        }
    }
    let mut shares: Vec<f64> = all.iter().map(|series| series.seen).collect();
    shares.sort_by(f64::total_cmp);
    shares.dedup();
    for (seen, published) in shares.into_iter().filter_map(|seen| Some((seen, published?))) {
        let value = |(name, _): &(String, String)| {
            series::published(results, FigureKind::Node, name, seen).and_then(published)
        };
        let values: Vec<Option<f64>> = phases.iter().map(value).collect();
        if values.iter().any(Option::is_some) {
            let label = format!("published, {} pre-relayed", number::whole_percent(seen));
            let look = Look { colour: None, dashed: in_percent(seen) > 0 };
            bars.push(Bars { label, look, values });
        }
    }
    let chart = BarChart {
        title: format!("{title}, per phase"),
        y_label: unit.to_owned(),
        groups: phases.into_iter().map(|(_, title)| title).collect(),
        series: bars,
        ..BarChart::default()
    };
    chart.draw()
}

/// Curves over heights: rates and service time of every block.
pub(super) fn per_block(results: &Results) -> Vec<Chart> {
    type Kind = (&'static str, &'static str, fn(&BlockRecord) -> f64);
    let kinds: [Kind; 4] = [
        ("Transactions per second", "tx/s", |block| rate(block.txs as f64, block.service_s)),
        ("MiB per second", "MiB/s", |block| rate(block.bytes as f64 / MIB, block.service_s)),
        ("Service time", "seconds", |block| block.service_s),
        ("Waiting before sending", "seconds", |block| block.queue_s),
    ];
    kinds
        .into_iter()
        .filter_map(|(title, unit, value)| block_lines(results, title, unit, value))
        .collect()
}

fn block_lines(
    results: &Results,
    title: &str,
    unit: &str,
    value: fn(&BlockRecord) -> f64,
) -> Option<Chart> {
    let lines = |series: &Series<'_>| {
        let run = series.middle_run()?;
        let phases = pieces(results, run);
        let points = |blocks: &&[BlockRecord]| {
            let point = |block: &BlockRecord| (f64::from(block.height), value(block));
            blocks.iter().map(point).filter(|(_, y)| *y > 0.0).collect()
        };
        let pieces = phases.iter().map(points).collect();
        Some(Line { label: series.label.clone(), look: series.look, pieces, points: true })
    };
    let all = series::all(results);
    let bands = all.first().and_then(Series::middle_run).map(|run| bands(results, run));
    let chart = LineChart {
        title: format!("{title}, per block"),
        x_label: "height".to_owned(),
        y_label: unit.to_owned(),
        logarithmic_x: false,
        logarithmic: true,
        series: all.iter().filter_map(lines).collect(),
        bands: bands.unwrap_or_default(),
        ..LineChart::default()
    };
    chart.draw()
}

/// Blocks of a run without set-up phases, split where the phase changes.
fn pieces<'a>(results: &Results, run: &'a Run) -> Vec<&'a [BlockRecord]> {
    let same_phase = |a: &BlockRecord, b: &BlockRecord| a.phase == b.phase;
    let is_measured = |blocks: &&[BlockRecord]| results.plan.is_measured(&blocks[0].phase);
    run.blocks.chunk_by(same_phase).filter(is_measured).collect()
}

pub(super) fn bands(results: &Results, run: &Run) -> Vec<Band> {
    let mut bands: Vec<Band> = Vec::new();
    for blocks in pieces(results, run) {
        let (Some(first), Some(last)) = (blocks.first(), blocks.last()) else { continue };
        let scaling =
            results.plan.scaling.iter().find(|scaling| scaling.width(&first.phase).is_some());
        let name = match scaling {
            Some(scaling) => scaling.series.clone(),
            None => results.plan.phase_title(&first.phase).to_owned(),
        };
        let to = f64::from(last.height) + 0.5;
        match bands.last_mut().filter(|before| scaling.is_some() && before.name == name) {
            // All widths of a kind share one band, since names of each would not fit.
            Some(before) => before.to = to,
            None => bands.push(Band { name, from: f64::from(first.height) - 0.5, to }),
        }
    }
    bands
}

/// Bars of transactions admitted per second.
pub(super) fn admission(results: &Results) -> Vec<Chart> {
    let chart = |title, unit, value| phase_bars(results, title, unit, value, None);
    let any = results.runs().any(|run| run.total.admission.sent > 0);
    if !any {
        return Vec::new();
    }
    chart("Transactions admitted per second", "tx/s", |phase| phase.admission.tx_per_s)
        .into_iter()
        .collect()
}

/// Curves over time: CPU, memory, disk.
pub(super) fn resources(results: &Results) -> Vec<Chart> {
    let all = series::all(results);
    let curve = |title: &str, unit: &str, points: fn(&Run) -> Vec<(f64, f64)>| {
        let line = |series: &Series<'_>| {
            let pieces = vec![thin(&points(series.middle_run()?))];
            Some(Line { label: series.label.clone(), look: series.look, pieces, points: false })
        };
        let chart = LineChart {
            title: title.to_owned(),
            x_label: "seconds since the start of the run".to_owned(),
            y_label: unit.to_owned(),
            series: all.iter().filter_map(line).collect(),
            ..LineChart::default()
        };
        chart.draw()
    };
    [
        curve("Processor cores in use", "cores", cores_in_use),
        curve("Resident memory", "MiB", |run| column(run, &run.samples.rss_bytes)),
        curve("Written to disk, in all", "MiB", |run| column(run, &run.samples.write_bytes)),
        curve("Read from disk, in all", "MiB", |run| column(run, &run.samples.read_bytes)),
    ]
    .into_iter()
    .flatten()
    .collect()
}

fn column(run: &Run, bytes: &[Option<u64>]) -> Vec<(f64, f64)> {
    let times = run.samples.time_s.iter();
    let point = |(time, bytes): (&f64, &Option<u64>)| {
        Some((*time, bytes.as_ref().map(|bytes| *bytes as f64 / MIB)?))
    };
    times.zip(bytes).filter_map(point).collect()
}

/// CPU time per time, over windows that hide its granularity of 10 ms.
fn cores_in_use(run: &Run) -> Vec<(f64, f64)> {
    let samples = &run.samples;
    let times = samples.time_s.iter().zip(&samples.cpu_s);
    let points: Vec<(f64, f64)> = times.filter_map(|(time, cpu)| Some((*time, (*cpu)?))).collect();
    let window = (points.len() / CURVE_POINTS).max(5);
    points
        .windows(window + 1)
        .step_by(window.div_ceil(2))
        .filter_map(|window| {
            let ((from, before), (to, after)) = (*window.first()?, *window.last()?);
            Some((f64::midpoint(from, to), rate(after - before, to - from)))
        })
        .collect()
}

/// Every n-th point, and the last.
pub(super) fn thin(points: &[(f64, f64)]) -> Vec<(f64, f64)> {
    let step = points.len().div_ceil(CURVE_POINTS).max(1);
    let mut thinned: Vec<(f64, f64)> = points.iter().copied().step_by(step).collect();
    if let Some(last) = points.last()
        && thinned.last() != Some(last)
    {
        thinned.push(*last);
    }
    thinned
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::fixture;

    #[test]
    fn charts_of_a_plan() {
        let results = fixture::results();
        let count = |charts: &[Chart]| charts.len();
        assert_eq!(count(&per_phase(&results)), 4);
        assert_eq!(count(&per_block(&results)), 4);
        assert_eq!(count(&admission(&results)), 1);
        assert_eq!(count(&resources(&results)), 3, "nothing was read from disk");
    }

    #[test]
    fn void_runs_are_not_drawn() {
        let mut results = fixture::results();
        for run in results.targets.iter_mut().flat_map(|target| &mut target.runs) {
            run.status = crate::results::Status::Void;
        }
        assert!(per_phase(&results).is_empty() && per_block(&results).is_empty());
        assert!(resources(&results).is_empty() && admission(&results).is_empty());
    }

    #[test]
    fn thinning_keeps_the_ends() {
        let points: Vec<(f64, f64)> = (0..1001).map(|x| (f64::from(x), 0.0)).collect();
        let thinned = thin(&points);
        assert!(thinned.len() <= CURVE_POINTS + 1);
        assert_eq!((thinned.first(), thinned.last()), (points.first(), points.last()));
        assert!(thin(&[]).is_empty());
    }
}
