//! Charts over size, and of ratios.

use assay_report::{Chart, Line, LineChart, RatioBar, RatioChart};

use crate::results::Measured;

const RATIOS_MAX: usize = 24;

/// A chart over size for each series of a group, then its ratios.
pub(super) fn of_group(group: &str, measured: &[&Measured]) -> Vec<Chart> {
    let (mut seen, mut charts) = (Vec::new(), Vec::new());
    for series in measured.iter().map(|one| one.series.as_str()) {
        if !seen.contains(&series) {
            seen.push(series);
            let members: Vec<&Measured> =
                measured.iter().copied().filter(|one| one.series == series).collect();
            charts.extend(over_size(series, &members));
        }
    }
    charts.extend(ratios(group, measured));
    charts
}

/// Time over size, a line per alternative; `None` for fewer than two sizes.
pub(super) fn over_size(series: &str, members: &[&Measured]) -> Option<Chart> {
    let mut sizes: Vec<u64> = members.iter().filter_map(|one| one.size).collect();
    sizes.sort_unstable();
    sizes.dedup();
    if sizes.len() < 2 {
        return None;
    }
    let mut names: Vec<&str> = Vec::new();
    for figures in members.iter().flat_map(|one| &one.row.figures) {
        if !names.contains(&figures.name.as_str()) {
            names.push(&figures.name);
        }
    }
    let line = |(colour, name): (usize, &&str)| {
        let mut points: Vec<(f64, f64)> = members
            .iter()
            .filter_map(|one| Some((one.size? as f64, one.row.of(name)?.ns_per_op)))
            .collect();
        points.sort_by(|a, b| a.0.total_cmp(&b.0));
        Line { label: (*name).to_owned(), colour, pieces: vec![points], points: true }
    };
    let unit = members.first().map_or("", |one| &one.unit);
    let chart = LineChart {
        title: format!("{series}, ns/op over {unit}"),
        x_label: unit.to_owned(),
        y_label: "ns/op".to_owned(),
        logarithmic_x: true,
        logarithmic: true,
        series: names.iter().enumerate().map(line).collect(),
        ..LineChart::default()
    };
    chart.draw()
}

/// Ratios of all alternatives to their baseline, split into readable charts.
pub(super) fn ratios(group: &str, measured: &[&Measured]) -> Vec<Chart> {
    let mut bars: Vec<RatioBar> = Vec::new();
    for one in measured {
        let short = one.name.strip_prefix(group).unwrap_or(&one.name).trim_start_matches('/');
        for comparison in &one.comparisons {
            let label = if short.is_empty() { group } else { short };
            bars.push(RatioBar {
                label: label.to_owned(),
                sides: format!("{} against {}", comparison.alternative, one.baseline),
                median: comparison.ratio.median,
                low: comparison.ratio.low,
                high: comparison.ratio.high,
            });
        }
    }
    let parts = bars.len().div_ceil(RATIOS_MAX);
    let name = if group.is_empty() { "Ratios" } else { group };
    let draw = |(number, ratios): (usize, &[RatioBar])| {
        let part = if parts > 1 { format!(", {} of {parts}", number + 1) } else { String::new() };
        let chart = RatioChart {
            title: format!("{name}: baseline's time over this one's{part}"),
            x_label: "ratio: right of 1, the first is faster".to_owned(),
            ratios: ratios.to_vec(),
        };
        chart.draw()
    };
    bars.chunks(RATIOS_MAX).enumerate().filter_map(draw).collect()
}
