//! Charts of a record: bars of the first metrics of its cases, and lines of its series.

use super::render::{Block, Values, label};
use super::{Record, Series, Unit};
use crate::stats::median;
use crate::{BarChart, Chart, Line, LineChart};

const POINTS_MAX: usize = 240;
/// A line of at most so many rows has marked points.
const SPARSE_ROWS: usize = 24;
/// Sparse counts over a wider range than this have logarithmic axes.
const LINEAR_RANGE_MAX: f64 = 100.0;
/// Bar charts of the figures without a group; other groups have one, of rates.
const BAR_CHARTS_MAX: usize = 4;
/// Letters below the bars of a chart.
const LETTERS_MAX: usize = 100;

struct Axes<'a> {
    x: &'a (String, Unit),
    y: &'a (String, Unit),
    /// Series, and the index of the column.
    parts: Vec<(&'a Series, usize)>,
}

impl Record {
    /// A chart for each column of the series over their first one.
    pub(super) fn curves(&self) -> Vec<Chart> {
        let mut all: Vec<Axes<'_>> = Vec::new();
        for series in self.samples.iter().filter(|series| series.is_curve()) {
            let Some((x, ys)) = series.columns.split_first() else { continue };
            for (column, y) in (1..).zip(ys) {
                match all.iter_mut().find(|axes| (axes.x, axes.y) == (x, y)) {
                    Some(axes) => axes.parts.push((series, column)),
                    None => all.push(Axes { x, y, parts: vec![(series, column)] }),
                }
            }
        }
        all.iter().filter_map(|axes| axes.draw(&self.bands)).collect()
    }
}

impl Series {
    /// True if the values of the first column never fall.
    fn is_curve(&self) -> bool {
        let xs: Vec<f64> = self.rows.iter().filter_map(|row| cell(row, 0)).collect();
        xs.len() == self.rows.len() && xs.len() > 1 && xs.is_sorted()
    }
}

impl Axes<'_> {
    fn draw(&self, bands: &[(String, f64, f64)]) -> Option<Chart> {
        let values = |column: Option<usize>| {
            let rows = self.parts.iter().flat_map(move |(series, y)| {
                series.rows.iter().filter_map(move |row| cell(row, column.unwrap_or(*y)))
            });
            rows.collect::<Vec<f64>>()
        };
        let (xs, ys) = (values(Some(0)), values(None));
        let max = |values: &[f64]| values.iter().copied().fold(0.0, f64::max);
        let (x_scale, x_unit) = self.x.1.scale(max(&xs));
        let (y_scale, y_unit) = self.y.1.scale(max(&ys));
        let x_min = xs.iter().copied().fold(f64::MAX, f64::min);
        let is_sparse = self.parts.iter().all(|(series, _)| series.rows.len() <= SPARSE_ROWS);
        let is_wide = is_sparse && self.x.1 == Unit::Count && x_min > 0.0;
        let is_wide = is_wide && max(&xs) / x_min >= LINEAR_RANGE_MAX;
        let (mut names, mut lines, mut background) = (Vec::new(), Vec::new(), Vec::new());
        for (series, column) in &self.parts {
            let name = (series.target.as_str(), series.case.as_str());
            let known = names.iter().position(|known| *known == name);
            let colour = known.unwrap_or(names.len());
            let is_gap = |row: &Vec<Option<f64>>| cell(row, *column).is_none();
            let pieces = series.rows.split(is_gap).filter(|rows| !rows.is_empty());
            let point = |row: &Vec<Option<f64>>| {
                Some((cell(row, 0)? * x_scale, cell(row, *column)? * y_scale))
            };
            let pieces = pieces.map(|rows| thin(rows.iter().filter_map(point).collect()));
            let line =
                Line { label: label(name), colour, pieces: pieces.collect(), points: is_sparse };
            if known.is_some() {
                background.push(line);
            } else {
                names.push(name);
                lines.push(line);
            }
        }
        let axis = |name: &str, unit: &str| match unit.trim() {
            "" => name.to_owned(),
            unit => format!("{name}, {unit}"),
        };
        let (x, y) = (&self.x.0, &self.y.0);
        let chart = LineChart {
            title: format!("{y} against {x}"),
            x_label: axis(x, x_unit),
            y_label: axis(y, y_unit),
            whole_x: self.x.1 == Unit::Count,
            logarithmic_x: is_wide,
            logarithmic: is_wide || self.y.1 == Unit::PerSecond,
            tight_y: self.y.1 == Unit::Ratio,
            series: lines,
            background,
            bands: bands.iter().filter(|_| x == "height").cloned().collect(),
        };
        chart.draw()
    }
}

/// A value of a row, which may be too short in a damaged file.
fn cell(row: &[Option<f64>], column: usize) -> Option<f64> {
    row.get(column).copied().flatten()
}

/// Every n-th point, and the last.
fn thin(points: Vec<(f64, f64)>) -> Vec<(f64, f64)> {
    let step = points.len().div_ceil(POINTS_MAX).max(1);
    let last = points.last().copied().filter(|_| !(points.len() - 1).is_multiple_of(step));
    points.into_iter().step_by(step).chain(last).collect()
}

impl Block<'_> {
    /// Bars of the first metrics: a group for each case, or for each target if there are no cases.
    pub(super) fn charts(&self) -> Vec<Chart> {
        let Some(first) = self.figures.first() else { return Vec::new() };
        let most = match (self.group, first.unit) {
            ("", unit) if unit != Unit::Count => BAR_CHARTS_MAX,
            (_, Unit::PerSecond) => 1,
            _ => 0,
        };
        let is_alike = |metric: &usize| {
            self.figures.iter().any(|one| (one.metric, one.unit) == (*metric, first.unit))
        };
        let metrics = (0..self.metrics.len()).filter(is_alike).take(most);
        metrics.filter_map(|metric| self.bars(metric, first.unit)).collect()
    }

    fn bars(&self, metric: usize, unit: Unit) -> Option<Chart> {
        let is_it = |figure: &&Values| (figure.metric, figure.unit) == (metric, unit);
        let value = |figure: &Values| {
            let (target, case) = self.cases[figure.case];
            (target, case, median(&figure.rounds))
        };
        let mut values: Vec<(&str, &str, f64)> =
            self.figures.iter().filter(is_it).map(value).collect();
        let name = self.metrics[metric];
        if values.iter().any(|(_, case, _)| !case.is_empty()) {
            values.retain(|(_, case, _)| !case.is_empty());
        } else {
            for one in &mut values {
                (one.0, one.1) = (name, one.0);
            }
        }
        let (scale, unit) = unit.scale(values.iter().map(|one| one.2).fold(0.0, f64::max));
        let (mut targets, mut cases): (Vec<&str>, Vec<&str>) = (Vec::new(), Vec::new());
        for (target, case, _) in &values {
            if !targets.contains(target) {
                targets.push(target);
            }
            if !cases.contains(case) {
                cases.push(case);
            }
        }
        if values.len() < 2 || cases.iter().map(|case| case.len()).sum::<usize>() > LETTERS_MAX {
            return None;
        }
        let bars = |target: &&str| {
            let of_case =
                |case: &&str| values.iter().find(|one| (one.0, one.1) == (*target, *case));
            let heights = cases.iter().map(|case| of_case(case).map(|one| one.2 * scale));
            ((*target).to_owned(), heights.collect())
        };
        let chart = BarChart {
            title: name.to_owned(),
            y_label: unit.trim().to_owned(),
            groups: cases.iter().map(|&case| case.to_owned()).collect(),
            bars: targets.iter().map(bars).collect(),
        };
        chart.draw(false)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::{Figure, count};

    #[test]
    fn lines_and_bars_of_a_record() {
        let mut record = Record::default();
        let rate = |value| ("blocks", Unit::PerSecond, Some(value));
        for case in ["one", "two"] {
            record.add(("a", case, None), &[rate(5.0), count("number", 7)]);
            record.add(("b", case, None), &[rate(6.0)]);
        }
        let point = |x: u64| -> [Figure<'_>; 3] {
            let seconds = (x != 2).then_some(x as f64);
            [count("height", x), ("time", Unit::Seconds, seconds), count("blocks", x)]
        };
        let rows: Vec<_> = (1..=300).map(point).collect();
        for round in [1, 0] {
            record.add_series(("a", "", Some(round)), &rows);
        }
        record.add_series(("b", "", None), &rows[..1]);
        record.add_series(("c", "", None), &[rows[1], rows[0]]);
        let titles = |charts: Vec<Chart>| -> Vec<String> {
            charts.iter().map(|chart| chart.title().to_owned()).collect()
        };
        assert_eq!(titles(record.curves()), ["time against height", "blocks against height"]);
        assert_eq!(titles(record.blocks()[0].charts()), ["blocks"]);
        let chart = &record.curves()[0];
        assert_eq!(chart.legend.len(), 1, "one row and falling heights are no lines");
    }

    #[test]
    fn thinning_keeps_the_ends() {
        let points: Vec<(f64, f64)> = (0..1001).map(|x| (f64::from(x), 0.0)).collect();
        let thinned = thin(points.clone());
        assert!(thinned.len() <= POINTS_MAX + 1);
        assert_eq!((thinned.first(), thinned.last()), (points.first(), points.last()));
        assert!(thin(Vec::new()).is_empty());
    }
}
