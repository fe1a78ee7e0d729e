//! A chart as a standalone image with its own colours and legend.

use std::fmt::Write;

use super::{Chart, STYLE, css, is_dashed};
use crate::table::escape;

/// Height of a row of the legend.
const ROW: usize = 20;

impl Chart {
    /// A standalone SVG file for light and dark backgrounds.
    pub fn standalone(&self) -> String {
        // The drawing begins with its size and its title, which `finish` writes.
        let (width, height) = size(&self.svg).unwrap_or((560, 340));
        let all = height + ROW * self.legend.len() + 10;
        // Colour variables are the first rules of the page.
        let colours = STYLE.split("* { box-sizing").next().unwrap_or_default();
        let mut out = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{all}\" \
             viewBox=\"0 0 {width} {all}\" style=\"color:var(--ink);background:var(--paper)\">\n\
             <style>\n{colours}</style>\n"
        );
        let inner = format!("<svg width=\"{width}\" height=\"{height}\"");
        out.push_str(&self.svg.replacen("<svg", &inner, 1));
        for (index, (label, colour)) in self.legend.iter().enumerate() {
            let is_dashed = is_dashed(*colour) && !self.has_bars;
            legend(&mut out, label, (*colour, is_dashed), height + ROW * index + ROW / 2);
        }
        out.push_str("</svg>\n");
        out
    }
}

fn legend(out: &mut String, label: &str, (colour, is_dashed): (usize, bool), y: usize) {
    let dashes = if is_dashed { " stroke-dasharray=\"6 4\"" } else { "" };
    // Writing to a string cannot fail.
    let _ = writeln!(
        out,
        "<line x1=\"14\" x2=\"40\" y1=\"{y}\" y2=\"{y}\" stroke=\"{}\" \
         stroke-width=\"3\"{dashes}/>\n<text x=\"48\" y=\"{}\" fill=\"currentColor\" \
         font-family=\"sans-serif\" font-size=\"13\">{}</text>",
        css(colour),
        y + 4,
        escape(label)
    );
}

/// Width and height of a drawing, from its `viewBox`.
fn size(svg: &str) -> Option<(usize, usize)> {
    let (_, rest) = svg.split_once("viewBox=\"0 0 ")?;
    let (size, _) = rest.split_once('"')?;
    let (width, height) = size.split_once(' ')?;
    Some((width.parse().ok()?, height.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use crate::chart::{Line, LineChart};

    #[test]
    fn brings_its_colours_and_its_legend() {
        let pieces = vec![vec![(0.0, 1.0), (1.0, 2.0)]];
        let line = Line { label: "a & b".to_owned(), colour: 1, pieces, points: false };
        let chart = LineChart { title: "T".to_owned(), series: vec![line], ..LineChart::default() };
        let svg = chart.draw().expect("points").standalone();
        assert!(svg.starts_with("<svg xmlns=") && svg.ends_with("</svg>\n"), "{svg}");
        assert_eq!(svg.matches("<svg").count(), svg.matches("</svg>").count());
        for part in ["a &amp; b", "--series-1:", "var(--series-1)", "prefers-color-scheme: dark"] {
            assert!(svg.contains(part), "{part}");
        }
        assert!(!svg.contains("#FAFB"), "no marker colour is left");
    }
}
