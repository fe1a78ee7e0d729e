//! Utilisation of threads over time: lanes over a common axis, each slice shaded by its share.

use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};
use serde::{Deserialize, Serialize};

use super::{BAR_OPACITY, Canvas, Chart, Drawn, INK, axis_under_rows, finish, rgb, small};

/// Vertically stacked groups of lanes.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct LaneChart {
    pub title: String,
    /// Quantity and unit of the x axis.
    pub x_label: String,
    /// End of the axis, which begins at 0.
    pub x_end: f64,
    /// Groups from the top.
    pub groups: Vec<LaneGroup>,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct LaneGroup {
    pub label: String,
    /// Second line below the label.
    pub note: String,
    /// End of its lanes.
    pub end: f64,
    /// For each lane, shares from 0 to 1 of equal slices of the whole axis.
    pub lanes: Vec<Vec<f64>>,
}

/// Width of a drawing; the page scales it.
const WIDTH: u32 = 560;
/// Height of everything but groups.
const FRAME_HEIGHT: u32 = 66;
/// Height of a group: its lanes, at least two lines of text, and the gap to the next.
const LANES_HEIGHT: usize = 96;
const LANE_HEIGHT_MIN: usize = 3;
const LANE_HEIGHT_MAX: usize = 16;
const LABEL_HEIGHT: usize = 32;
const GROUP_GAP: usize = 10;
const LABELS_WIDTH: u32 = 130;
/// Levels of opacity: adjacent slices of the same level are merged.
const LEVELS: u8 = 20;

impl LaneChart {
    /// Draws the chart; `None` without lanes or an axis.
    pub fn draw(&self) -> Option<Chart> {
        let lanes_max = self.groups.iter().map(|group| group.lanes.len()).max()?;
        if lanes_max == 0 || !self.x_end.is_finite() || self.x_end <= 0.0 {
            return None;
        }
        let lane = (LANES_HEIGHT / lanes_max).clamp(LANE_HEIGHT_MIN, LANE_HEIGHT_MAX);
        let heights: Vec<usize> = self
            .groups
            .iter()
            .map(|group| (lane * group.lanes.len()).max(LABEL_HEIGHT) + GROUP_GAP)
            .collect();
        let total: usize = heights.iter().sum();
        let drawing = |canvas: &Canvas<'_>| {
            let mut builder = ChartBuilder::on(canvas);
            builder.margin(6).margin_right(14).x_label_area_size(42);
            builder.y_label_area_size(LABELS_WIDTH);
            // Downwards, one unit per pixel.
            let y = (total as f64)..0.0;
            let mut chart = builder.build_cartesian_2d(0.0..self.x_end, y)?;
            axis_under_rows(&mut chart, &self.x_label, 8)?;
            let mut top = GROUP_GAP as f64 / 2.0;
            for (group, height) in self.groups.iter().zip(&heights) {
                for (number, shares) in group.lanes.iter().enumerate() {
                    let upper = top + (number * lane) as f64;
                    chart.draw_series(self.lane(
                        group.end,
                        shares,
                        (upper, upper + lane as f64),
                    ))?;
                }
                let middle = top + (height - GROUP_GAP) as f64 / 2.0;
                let place = chart.plotting_area().map_coordinate(&(0.0, middle));
                label(canvas, group, place)?;
                top += *height as f64;
            }
            Ok(())
        };
        finish(&self.title, std::iter::empty(), true, (WIDTH, FRAME_HEIGHT + total as u32), drawing)
    }

    /// A pale strip up to `end` with its filled part; a pixel at the bottom separates it from the next lane.
    fn lane(&self, end: f64, shares: &[f64], (top, bottom): (f64, f64)) -> Vec<Bar> {
        let bar = |from: f64, to: f64, style: ShapeStyle| {
            Rectangle::new([(from, top), (to, bottom - 1.0)], style)
        };
        let mut bars = vec![bar(0.0, end.min(self.x_end), INK.mix(0.1).filled())];
        let slice = self.x_end / shares.len().max(1) as f64;
        let level = |share: &f64| (share.clamp(0.0, 1.0) * f64::from(LEVELS)).round() as u8;
        let mut from = 0;
        for run in shares.chunk_by(|a, b| level(a) == level(b)) {
            let (start, stop) = (from as f64 * slice, (from + run.len()) as f64 * slice);
            from += run.len();
            let solidity = f64::from(level(&run[0])) / f64::from(LEVELS);
            if solidity > 0.0 {
                let style = rgb(0).mix(BAR_OPACITY * solidity).filled();
                bars.push(bar(start, stop, style));
            }
        }
        bars
    }
}

type Bar = Rectangle<(f64, f64)>;

fn label(canvas: &Canvas<'_>, group: &LaneGroup, (x, y): (i32, i32)) -> Drawn {
    for (words, side) in [(&group.label, VPos::Bottom), (&group.note, VPos::Top)] {
        let style = small().pos(Pos::new(HPos::Right, side));
        canvas.draw(&Text::new(words.clone(), (x - 8, y), style))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn group(label: &str, lanes: Vec<Vec<f64>>) -> LaneGroup {
        LaneGroup { label: label.to_owned(), note: "20 ms".to_owned(), end: 20.0, lanes }
    }

    fn chart(groups: Vec<LaneGroup>) -> LaneChart {
        LaneChart { title: "a < b".to_owned(), x_label: "ms".to_owned(), x_end: 20.0, groups }
    }

    #[test]
    fn merges_equal_slices() {
        let chart = chart(vec![]);
        let bars = |shares: &[f64]| chart.lane(10.0, shares, (0.0, 8.0)).len() - 1;
        assert_eq!(bars(&[1.0, 1.0, 0.99, 1.0]), 1);
        assert_eq!(bars(&[1.0, 0.5, 0.0, 1.0]), 3);
        assert_eq!(bars(&[0.0; 4]), 0);
        assert_eq!(bars(&[]), 0);
    }

    #[test]
    fn groups_have_names_and_colours_of_the_page() {
        let groups = vec![
            group("even", vec![vec![1.0; 4], vec![1.0; 4]]),
            group("uneven", vec![vec![1.0; 4], vec![1.0, 0.25, 0.0, 0.0]]),
        ];
        let svg = chart(groups).draw().expect("there are lanes").svg;
        for part in ["even", "uneven", "20 ms", "var(--series-0)", "currentColor", "a &lt; b"] {
            assert!(svg.contains(part), "{part}");
        }
        // Four full lanes are a bar each, and a quarter of one is another.
        assert_eq!(svg.matches("var(--series-0)").count(), 5);
        assert!(!svg.contains("=\"#"), "a fixed colour is left");
    }

    #[test]
    fn many_lanes_stay_on_the_page() {
        let svg = chart(vec![group("many", vec![vec![1.0]; 128])]).draw().expect("lanes").svg;
        let height = svg.split("viewBox=\"0 0 560 ").nth(1).and_then(|rest| rest.split('"').next());
        let height: u32 = height.and_then(|height| height.parse().ok()).expect("a size");
        assert!(height <= FRAME_HEIGHT + 3 * 128 + 10, "{height}");
    }

    #[test]
    fn empty_charts_are_none() {
        assert!(chart(vec![]).draw().is_none());
        assert!(chart(vec![group("none", vec![])]).draw().is_none());
        let mut empty = chart(vec![group("one", vec![vec![1.0]])]);
        empty.x_end = 0.0;
        assert!(empty.draw().is_none());
    }
}
