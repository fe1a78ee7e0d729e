//! Ratios as bars from 1 with intervals on a logarithmic axis.

use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use super::{Canvas, Chart, INK, axis_under_rows, finish, rgb, small};

#[derive(Debug, Clone, Default)]
pub struct RatioChart {
    pub title: String,
    /// Meaning of the ratio.
    pub x_label: String,
    /// Ratios from the top.
    pub ratios: Vec<RatioBar>,
}

#[derive(Debug, Clone)]
pub struct RatioBar {
    /// Measured quantity.
    pub label: String,
    /// Numerator and denominator, in a second line.
    pub sides: String,
    /// End of the bar.
    pub median: f64,
    /// Lower end of the interval.
    pub low: f64,
    pub high: f64,
}

/// Width of a drawing; the page scales it.
const WIDTH: u32 = 560;
/// Height of a ratio, and of everything else.
const ROW_HEIGHT: u32 = 34;
const FRAME_HEIGHT: u32 = 66;
/// Width of the labels, and the number of letters that fit.
const LABELS_WIDTH: u32 = 236;
const LABEL_LETTERS: usize = 26;

impl RatioChart {
    /// Draws the chart; `None` without a ratio above zero. Ratios that are not numbers are left out.
    pub fn draw(&self) -> Option<Chart> {
        let is_drawable = |bar: &&RatioBar| bar.low > 0.0 && bar.high.is_finite();
        let bars: Vec<&RatioBar> = self.ratios.iter().filter(is_drawable).collect();
        let low = bars.iter().map(|bar| bar.low).reduce(f64::min)?.min(1.0) / 1.1;
        let high = bars.iter().map(|bar| bar.high).reduce(f64::max)?.max(1.0) * 1.1;
        let height = FRAME_HEIGHT + ROW_HEIGHT * bars.len() as u32;
        let drawing = |canvas: &Canvas<'_>| {
            let mut builder = ChartBuilder::on(canvas);
            builder.margin(6).margin_right(14).x_label_area_size(42);
            builder.y_label_area_size(LABELS_WIDTH);
            let rows = bars.len() as f64;
            let mut chart = builder.build_cartesian_2d((low..high).log_scale(), 0.0..rows)?;
            axis_under_rows(&mut chart, &self.x_label, 6)?;
            for (number, bar) in bars.iter().enumerate() {
                let middle = rows - number as f64 - 0.5;
                // One colour: the compared sides differ from bar to bar, and the label names them.
                let fill = rgb(0).mix(0.75).filled();
                let (from, to) = (bar.median.min(1.0), bar.median.max(1.0));
                let corners = [(from, middle - 0.32), (to, middle + 0.32)];
                let line = INK.mix(0.8).stroke_width(2);
                let whisker = PathElement::new(vec![(bar.low, middle), (bar.high, middle)], line);
                chart.draw_series([Rectangle::new(corners, fill)])?;
                chart.draw_series([whisker])?;
                let place = chart.plotting_area().map_coordinate(&(low, middle));
                let words = format!("{}  {:.2}", shortened(&bar.label), bar.median);
                for (words, side) in [(words, VPos::Bottom), (shortened(&bar.sides), VPos::Top)] {
                    let style = small().pos(Pos::new(HPos::Right, side));
                    canvas.draw(&Text::new(words, (place.0 - 8, place.1), style))?;
                }
            }
            let one = PathElement::new(vec![(1.0, 0.0), (1.0, rows)], INK.mix(0.6));
            chart.draw_series([one])?;
            Ok(())
        };
        finish(&self.title, std::iter::empty(), true, (WIDTH, height), drawing)
    }
}

/// Drops the beginning of a label, since its end is more specific.
fn shortened(label: &str) -> String {
    let letters = label.chars().count();
    if letters <= LABEL_LETTERS {
        return label.to_owned();
    }
    let rest: String = label.chars().skip(letters + 1 - LABEL_LETTERS).collect();
    format!("…{rest}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_begin_at_one() {
        let bar = |label: &str, median: f64| RatioBar {
            label: label.to_owned(),
            sides: "ours against theirs".to_owned(),
            median,
            low: median * 0.9,
            high: median * 1.1,
        };
        let mut chart = RatioChart {
            title: "a < b".to_owned(),
            ratios: vec![bar("faster", 3.0), bar("slower", 0.5), bar("nothing", 0.0)],
            ..RatioChart::default()
        };
        let svg = chart.draw().expect("there are ratios").svg;
        assert!(svg.contains("faster") && svg.contains("slower") && !svg.contains("nothing"));
        assert!(svg.contains("ours against theirs") && svg.contains("var(--series-0)"));
        assert!(svg.contains("a &lt; b"));
        assert!(!svg.contains("=\"#"), "a fixed colour is left");
        chart.ratios.truncate(0);
        assert!(chart.draw().is_none());
    }

    #[test]
    fn labels_that_are_too_long() {
        assert_eq!(shortened("short"), "short");
        let long = shortened(&"x".repeat(99));
        assert!(long.chars().count() == LABEL_LETTERS && long.starts_with('…'), "{long}");
    }
}
