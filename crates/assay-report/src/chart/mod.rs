//! SVG charts with colours defined by the page.
//!
//! The plotting library writes fixed colours. Charts are drawn with unique marker colours, which are then replaced by the page's
//! style variables, so that one drawing serves a light and a dark page.

mod lane_chart;
mod ratio_chart;
mod standalone;

use std::error::Error;

use plotters::coord::Shift;
use plotters::coord::ranged1d::ValueFormatter;
use plotters::coord::types::RangedCoordf64;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};
use serde::{Deserialize, Serialize};

use crate::table::escape;
pub use lane_chart::{LaneChart, LaneGroup};
pub use ratio_chart::{RatioBar, RatioChart};

type Canvas<'a> = DrawingArea<SVGBackend<'a>, Shift>;
type Drawn = Result<(), Box<dyn Error>>;

/// Rules for light and dark pages and standalone charts; colour variables come first.
pub(crate) const STYLE: &str = include_str!("../page.css");
/// Marker of `currentColor`.
const INK: RGBColor = RGBColor(1, 2, 3);
/// Number of series colours that the page defines as `--series-0` and so on.
pub(crate) const SERIES_COLOURS: usize = 8;
/// Width and height of a drawing; the page scales it.
const SIZE: (u32, u32) = (560, 340);
pub(crate) const BAR_OPACITY: f64 = 0.9;
const FONT: &str = "sans-serif";
const FONT_SIZE: i32 = 14;
/// Plot area of a [`LineChart`]: margins, and space for labels.
const MARGIN: i32 = 6;
const MARGIN_RIGHT: i32 = 14;
const Y_LABELS_WIDTH: i32 = 66;
/// Names of bands: upper bounds of letter width and line height, also on narrow screens.
const NAME_LETTER_WIDTH: f64 = 7.0;
const NAME_LINE_HEIGHT: i32 = 13;

/// A drawing with title and legend; made by [`LineChart`] and [`BarChart`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chart {
    pub(crate) title: String,
    pub(crate) svg: String,
    /// Labels with the numbers of their colours.
    pub(crate) legend: Vec<(String, usize)>,
    pub(crate) has_bars: bool,
}

impl Chart {
    pub fn title(&self) -> &str {
        &self.title
    }
}

fn rgb(colour: usize) -> RGBColor {
    RGBColor(250, 251, (colour % SERIES_COLOURS) as u8)
}

/// The style variable of the page.
pub(crate) fn css(colour: usize) -> String {
    format!("var(--series-{})", colour % SERIES_COLOURS)
}

/// Series beyond the colours of the page repeat them with dashed lines.
pub(crate) const fn is_dashed(colour: usize) -> bool {
    colour >= SERIES_COLOURS
}

#[derive(Debug, Clone, Default)]
#[expect(clippy::struct_excessive_bools, reason = "each is about how an axis looks")]
pub struct LineChart {
    pub title: String,
    /// Quantity and unit of the x axis.
    pub x_label: String,
    /// Quantity and unit of the y axis.
    pub y_label: String,
    /// True if the x axis counts things, so that only whole numbers are labelled.
    pub whole_x: bool,
    /// True for a logarithmic x axis; points at or below zero are dropped.
    pub logarithmic_x: bool,
    /// The same for the y axis.
    pub logarithmic: bool,
    /// True if the y axis begins near the smallest value and not at zero: for ratios around 1.
    pub tight_y: bool,
    pub series: Vec<Line>,
    /// Thin background lines outside the legend: single runs behind the median one.
    pub background: Vec<Line>,
    /// Named parts of the x axis: name, begin, end.
    pub bands: Vec<(String, f64, f64)>,
}

/// One series of lines; each piece is drawn separately.
#[derive(Debug, Clone)]
pub struct Line {
    /// Name in the legend.
    pub label: String,
    /// Number of its colour.
    pub colour: usize,
    pub pieces: Vec<Vec<(f64, f64)>>,
    /// True to mark the points.
    pub points: bool,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BarChart {
    pub title: String,
    /// Quantity and unit of the y axis.
    pub y_label: String,
    pub groups: Vec<String>,
    /// Bars by name in the legend, one per group; `None` leaves a gap.
    pub bars: Vec<(String, Vec<Option<f64>>)>,
}

impl LineChart {
    /// Draws the chart; `None` without a point above zero.
    pub fn draw(&self) -> Option<Chart> {
        let lines = || self.background.iter().chain(&self.series);
        let points = || lines().flat_map(|line| line.pieces.iter().flatten());
        let has_place = |x: &f64| !self.logarithmic_x || *x > 0.0;
        let (x_min, x_max) = range(points().map(|point| point.0).filter(has_place))?;
        let positive = points().map(|point| point.1).filter(|y| !self.logarithmic || *y > 0.0);
        let (y_min, y_max) = range(positive).filter(|(_, y_max)| *y_max > 0.0)?;
        let x_min = self.bands.iter().map(|band| band.1).fold(x_min, f64::min);
        let x_max = self.bands.iter().map(|band| band.2).fold(x_max, f64::max);
        let x = x_min..x_max.max(x_min + 1e-3);
        let drawing = |canvas: &Canvas<'_>| {
            let mut builder = ChartBuilder::on(canvas);
            let names = self.places_of_names(&x);
            let lines = names.iter().map(|(_, line)| line + 1).max().unwrap_or(0);
            builder.margin(MARGIN).margin_top(10 + lines * NAME_LINE_HEIGHT);
            builder.margin_right(MARGIN_RIGHT).x_label_area_size(42);
            builder.y_label_area_size(Y_LABELS_WIDTH);
            let y_log = || ((y_min / 1.5)..(y_max * 1.5)).log_scale();
            let room = (y_max - y_min).max(0.02) * 0.08;
            let y = if self.tight_y { y_min - room..y_max + room } else { 0.0..headroom(y_max) };
            let x_log = || ((x_min / 1.3)..(x_max * 1.3)).log_scale();
            match (self.logarithmic_x, self.logarithmic) {
                (false, false) => {
                    self.draw_on(canvas, &names, builder.build_cartesian_2d(x.clone(), y)?)
                }
                (false, true) => {
                    self.draw_on(canvas, &names, builder.build_cartesian_2d(x.clone(), y_log())?)
                }
                (true, false) => {
                    self.draw_on(canvas, &names, builder.build_cartesian_2d(x_log(), y)?)
                }
                (true, true) => {
                    self.draw_on(canvas, &names, builder.build_cartesian_2d(x_log(), y_log())?)
                }
            }
        };
        // Series without points are left out of the legend.
        let has_points = |line: &&Line| line.pieces.iter().any(|piece| !piece.is_empty());
        let keys = self.series.iter().filter(has_points).map(|line| (&line.label, line.colour));
        finish(&self.title, keys, false, SIZE, drawing)
    }

    /// Positions of band names: the pixel of their middle, and their line, counted upwards from the plot. Names neither overlap
    /// nor cross the edge, even for narrow bands.
    fn places_of_names(&self, x: &std::ops::Range<f64>) -> Vec<(i32, i32)> {
        let (left, right) = (MARGIN + Y_LABELS_WIDTH, SIZE.0 as i32 - MARGIN_RIGHT);
        let plot_width = f64::from(right - left);
        let mut line_ends: Vec<f64> = Vec::new();
        let place = |(name, from, to): &(String, f64, f64)| {
            let share = (f64::midpoint(*from, *to) - x.start) / (x.end - x.start);
            let width = name.chars().count() as f64 * NAME_LETTER_WIDTH;
            let last = f64::from(SIZE.0) - width / 2.0 - 1.0;
            let middle = (f64::from(left) + share * plot_width).min(last).max(width / 2.0);
            let (from, to) = (middle - width / 2.0, middle + width / 2.0);
            let line = line_ends.iter().position(|end| *end < from).unwrap_or(line_ends.len());
            if line == line_ends.len() {
                line_ends.push(to);
            } else {
                line_ends[line] = to;
            }
            (middle as i32, line as i32)
        };
        self.bands.iter().map(place).collect()
    }

    fn draw_on<X, Y>(
        &self,
        canvas: &Canvas<'_>,
        names: &[(i32, i32)],
        mut chart: ChartContext<'_, SVGBackend<'_>, Cartesian2d<X, Y>>,
    ) -> Drawn
    where
        X: Ranged<ValueType = f64> + ValueFormatter<f64>,
        Y: Ranged<ValueType = f64> + ValueFormatter<f64>,
    {
        chart
            .configure_mesh()
            .x_desc(&self.x_label)
            .y_desc(&self.y_label)
            .axis_style(INK.mix(0.5))
            .bold_line_style(INK.mix(0.12))
            .light_line_style(TRANSPARENT)
            .label_style(text())
            .axis_desc_style(text())
            // A logarithmic axis of less than a decade would otherwise label every digit.
            .y_labels(if self.logarithmic { 5 } else { 10 })
            .x_label_formatter(&|x| {
                let is_between = self.whole_x && (x - x.round()).abs() > 1e-9;
                if is_between { String::new() } else { tick(*x) }
            })
            .y_label_formatter(&|y| tick(*y))
            .draw()?;
        let area = chart.plotting_area();
        let (top, bottom) = ends(&area.get_y_axis_pixel_range());
        let y_start = area.get_y_range().start;
        let pixel = |x: f64| area.map_coordinate(&(x, y_start)).0;
        for (number, ((name, from, to), (middle, line))) in self.bands.iter().zip(names).enumerate()
        {
            let (from, to) = (pixel(*from), pixel(*to));
            if number % 2 == 1 {
                let shade = INK.mix(0.05).filled();
                canvas.draw(&Rectangle::new([(from, top), (to, bottom)], shade))?;
            }
            let style = small().pos(Pos::new(HPos::Center, VPos::Bottom));
            let lift = 2 + line * NAME_LINE_HEIGHT;
            canvas.draw(&Text::new(name.clone(), (*middle, top - lift), style))?;
        }
        let behind = self.background.iter().map(|line| (line, 0.35, 1));
        for (line, opacity, width) in behind.chain(self.series.iter().map(|line| (line, 1.0, 2))) {
            let style = rgb(line.colour).mix(opacity).stroke_width(width);
            for piece in &line.pieces {
                let points =
                    piece.iter().copied().filter(|point| !self.logarithmic_x || point.0 > 0.0);
                if is_dashed(line.colour) {
                    chart.draw_series(DashedLineSeries::new(points.clone(), 6, 4, style))?;
                } else {
                    chart.draw_series(LineSeries::new(points.clone(), style))?;
                }
                if line.points && width > 1 {
                    chart.draw_series(points.map(|point| Circle::new(point, 3, style.filled())))?;
                }
            }
        }
        Ok(())
    }
}

/// Both ends of a pixel range, the smaller first: vertical ranges run upwards.
fn ends(range: &std::ops::Range<i32>) -> (i32, i32) {
    (range.start.min(range.end), range.start.max(range.end))
}

impl BarChart {
    /// Draws the chart; `None` without a bar above zero. A logarithmic axis begins at a power of ten below the shortest bar.
    pub fn draw(&self, is_logarithmic: bool) -> Option<Chart> {
        let values = self.bars.iter().flat_map(|(_, values)| values.iter().flatten().copied());
        let values = values.filter(|value| !is_logarithmic || *value > 0.0);
        let (y_min, y_max) = range(values).filter(|(_, y_max)| *y_max > 0.0)?;
        // On a logarithmic axis, heights are powers of ten above the axis.
        let floor = is_logarithmic.then(|| (y_min * 0.999).log10().floor());
        let height = |value: f64| floor.map_or(value, |floor| (value.log10() - floor).max(0.0));
        let label = |y: &f64| match floor {
            None => tick(*y),
            Some(_) if (y - y.round()).abs() > 1e-9 => String::new(),
            Some(floor) => tick(10f64.powf(y + floor)),
        };
        let names: Vec<Vec<&str>> = self.groups.iter().map(|name| self.name_lines(name)).collect();
        let lines = names.iter().map(Vec::len).max().unwrap_or(1) as i32;
        let drawing = |canvas: &Canvas<'_>| {
            let mut builder = ChartBuilder::on(canvas);
            builder.margin(MARGIN).margin_top(10).margin_right(MARGIN_RIGHT);
            builder.x_label_area_size(17 + lines * NAME_LINE_HEIGHT);
            builder.y_label_area_size(Y_LABELS_WIDTH);
            let x = 0.0..self.groups.len() as f64;
            let mut chart = builder.build_cartesian_2d(x, 0.0..headroom(height(y_max)))?;
            chart
                .configure_mesh()
                .disable_x_mesh()
                .x_labels(0)
                .y_desc(&self.y_label)
                .axis_style(INK.mix(0.5))
                .bold_line_style(INK.mix(0.12))
                .light_line_style(TRANSPARENT)
                .label_style(text())
                .axis_desc_style(text())
                .y_label_formatter(&label)
                .draw()?;
            for (number, (_, values)) in self.bars.iter().enumerate() {
                chart.draw_series(self.bars_of(number, values, height))?;
            }
            for (number, name) in names.iter().enumerate() {
                let (x, y) = chart.plotting_area().map_coordinate(&(number as f64 + 0.5, 0.0));
                for (line, text) in name.iter().enumerate() {
                    let style = small().pos(Pos::new(HPos::Center, VPos::Top));
                    let place = (x, y + 8 + line as i32 * NAME_LINE_HEIGHT);
                    canvas.draw(&Text::new((*text).to_owned(), place, style))?;
                }
            }
            Ok(())
        };
        let keys = self.bars.iter().zip(0..).map(|((label, _), number)| (label, number));
        finish(&self.title, keys, true, SIZE, drawing)
    }

    /// A name wider than its group is split before `+`.
    fn name_lines<'n>(&self, name: &'n str) -> Vec<&'n str> {
        let plot = SIZE.0 as i32 - MARGIN - MARGIN_RIGHT - Y_LABELS_WIDTH;
        let letters = f64::from(plot) / self.groups.len() as f64 / NAME_LETTER_WIDTH;
        let (mut lines, mut rest) = (Vec::new(), name);
        while rest.len() as f64 > letters {
            let breaks = rest.match_indices('+').map(|(at, _)| at).filter(|&at| at > 0);
            let fits = breaks.clone().take_while(|&at| at as f64 <= letters).last();
            let Some(at) = fits.or_else(|| breaks.clone().next()) else { break };
            let (line, after) = rest.split_at(at);
            lines.push(line);
            rest = after;
        }
        lines.push(rest);
        lines
    }

    fn bars_of(
        &self,
        number: usize,
        values: &[Option<f64>],
        height: impl Fn(f64) -> f64,
    ) -> Vec<Rectangle<(f64, f64)>> {
        let width = 0.84 / self.bars.len() as f64;
        let style = rgb(number).mix(BAR_OPACITY).filled();
        let bar = |(group, value): (usize, &Option<f64>)| {
            let left = group as f64 + 0.08 + width * number as f64;
            let right = left + width * 0.92;
            value.map(|value| Rectangle::new([(left, 0.0), (right, height(value))], style))
        };
        values.iter().enumerate().filter_map(bar).collect()
    }
}

/// The axis below rows without an axis of their own.
fn axis_under_rows<X: Ranged<ValueType = f64> + ValueFormatter<f64>>(
    chart: &mut ChartContext<'_, SVGBackend<'_>, Cartesian2d<X, RangedCoordf64>>,
    label: &str,
    numbers: usize,
) -> Drawn {
    chart
        .configure_mesh()
        .disable_y_mesh()
        .y_labels(0)
        .x_labels(numbers)
        .x_desc(label)
        .axis_style(INK.mix(0.5))
        .bold_line_style(INK.mix(0.12))
        .light_line_style(TRANSPARENT)
        .label_style(text())
        .axis_desc_style(text())
        .x_label_formatter(&|x| tick(*x))
        .draw()?;
    Ok(())
}

/// Draws into a string and replaces the marker colours.
fn finish<'k>(
    title: &str,
    keys: impl Iterator<Item = (&'k String, usize)>,
    has_bars: bool,
    (width, height): (u32, u32),
    drawing: impl FnOnce(&Canvas<'_>) -> Drawn,
) -> Option<Chart> {
    let mut svg = String::new();
    {
        let canvas = SVGBackend::with_string(&mut svg, (width, height)).into_drawing_area();
        // Drawing into a string only fails on impossible ranges; the chart is then left out.
        drawing(&canvas).ok()?;
        canvas.present().ok()?;
    }
    let head = format!("<svg width=\"{width}\" height=\"{height}\"");
    let mut svg = svg.replacen(&head, "<svg role=\"img\"", 1);
    if let Some(end) = svg.find('>') {
        svg.insert_str(end + 1, &format!("<title>{}</title>", escape(title)));
    }
    svg = svg.replace("#010203", "currentColor");
    for number in 0..SERIES_COLOURS {
        svg = svg.replace(&format!("#FAFB{number:02X}"), &format!("var(--series-{number})"));
    }
    let legend = keys.map(|(label, colour)| (label.clone(), colour)).collect();
    Some(Chart { title: title.to_owned(), svg, legend, has_bars })
}

fn text() -> TextStyle<'static> {
    (FONT, FONT_SIZE).into_font().color(&INK.mix(0.85))
}

fn small() -> TextStyle<'static> {
    (FONT, FONT_SIZE - 2).into_font().color(&INK.mix(0.85))
}

/// Smallest and largest value; `None` if empty or not finite.
fn range(values: impl Iterator<Item = f64>) -> Option<(f64, f64)> {
    let ends = values.fold(None, |ends: Option<(f64, f64)>, value| {
        let (low, high) = ends.unwrap_or((value, value));
        Some((low.min(value), high.max(value)))
    });
    ends.filter(|(low, high)| low.is_finite() && high.is_finite())
}

fn headroom(largest: f64) -> f64 {
    largest * 1.08
}

/// An axis label: short, and exact if possible.
fn tick(value: f64) -> String {
    let size = value.abs();
    match size {
        size if size >= 1e9 => format!("{}G", plain(value / 1e9)),
        size if size >= 1e6 => format!("{}M", plain(value / 1e6)),
        size if size >= 1e4 => format!("{}k", plain(value / 1e3)),
        _ => plain(value),
    }
}

fn plain(value: f64) -> String {
    let text = format!("{value:.3}");
    let text = text.trim_end_matches('0').trim_end_matches('.');
    if text.is_empty() || text == "-0" { "0".to_owned() } else { text.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(colour: usize) -> Line {
        let pieces = vec![vec![(1.0, 10.0), (2.0, 1000.0)], vec![(3.0, 5.0)]];
        Line { label: "a & b".to_owned(), colour, pieces, points: true }
    }

    #[test]
    fn things_are_counted_in_whole_numbers() {
        let labels = |whole_x: bool| {
            let series = vec![line(0)];
            let chart = LineChart { whole_x, series, ..LineChart::default() };
            chart.draw().expect("there are points").svg.matches("\n2.4\n").count()
        };
        assert_eq!((labels(false), labels(true)), (1, 0));
    }

    #[test]
    fn names_of_narrow_bands_do_not_meet() {
        let band = |number: u32| {
            let from = 100.0 + f64::from(number);
            ("Steady state".to_owned(), from, from + 1.0)
        };
        let chart = LineChart { bands: (0..6).map(band).collect(), ..LineChart::default() };
        let places = chart.places_of_names(&(0.0..106.0));
        let half = 12.0 * NAME_LETTER_WIDTH / 2.0;
        for (index, (middle, line)) in places.iter().enumerate() {
            assert!(f64::from(*middle) + half <= f64::from(SIZE.0), "cut at the edge");
            for (other, other_line) in &places[..index] {
                let apart = f64::from((middle - other).abs()) >= 2.0 * half - 1.0;
                assert!(apart || line != other_line, "{places:?}");
            }
        }
    }

    #[test]
    fn colours_come_from_the_page() {
        for logarithmic in [false, true] {
            let chart = LineChart {
                title: "Rate".to_owned(),
                logarithmic,
                series: vec![line(0), line(1 + SERIES_COLOURS)],
                bands: vec![("one".to_owned(), 0.5, 3.5)],
                ..LineChart::default()
            };
            let svg = chart.draw().expect("there are points").svg;
            assert!(svg.contains("var(--series-1)") && svg.contains("currentColor"));
            assert!(!svg.contains("=\"#"), "a fixed colour is left");
            assert!(!svg.contains("width=\"560\" height"), "the page sets the size");
        }
    }

    #[test]
    fn bars_with_gaps() {
        let chart = BarChart {
            groups: vec!["x".to_owned(), "y".to_owned()],
            bars: vec![("a".to_owned(), vec![Some(5.0), None])],
            ..BarChart::default()
        };
        let svg = chart.draw(false).expect("there is a bar").svg;
        assert_eq!(svg.matches("var(--series-0)").count(), 1);
    }

    #[test]
    fn long_names_of_groups_are_broken() {
        let chart = BarChart { groups: vec![String::new(); 11], ..BarChart::default() };
        for (name, lines) in [
            ("today", vec!["today"]),
            ("pqsig+slh+ml", vec!["pqsig", "+slh", "+ml"]),
            ("report-8000+slh+ml", vec!["report-8000", "+slh", "+ml"]),
            ("no-place-to-break", vec!["no-place-to-break"]),
            ("+slh+ml-with-more", vec!["+slh", "+ml-with-more"]),
        ] {
            assert_eq!(chart.name_lines(name), lines, "{name}");
        }
    }

    #[test]
    fn empty_charts_are_none() {
        assert!(LineChart::default().draw().is_none());
        assert!(BarChart::default().draw(false).is_none());
        let zero = Line { pieces: vec![vec![(1.0, 0.0)]], ..line(0) };
        let chart = LineChart { series: vec![zero], logarithmic: true, ..LineChart::default() };
        assert!(chart.draw().is_none(), "zero has no place on a logarithmic axis");
    }

    #[test]
    fn ticks() {
        let shown = [0.0, 0.05, 12.5, 9000.0, 25_000.0, 1_500_000.0, 2e9].map(tick);
        assert_eq!(shown, ["0", "0.05", "12.5", "9000", "25k", "1.5M", "2G"]);
    }
}
