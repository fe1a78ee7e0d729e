//! A flame graph: how often each call stack was seen, as a picture (after Brendan Gregg, <https://www.brendangregg.com/flamegraphs.html>).

use std::collections::BTreeMap;
use std::fmt::Write;

use assay_report::escape;

/// Width of the picture, and height of a frame, in pixels.
const WIDTH: f64 = 1200.0;
const ROW: f64 = 17.0;
const MARGIN: f64 = 10.0;
/// Room for the title.
const HEAD: f64 = 46.0;
/// Frames that are narrower than this are left out: nobody could see them.
const LEAST_PX: f64 = 0.4;
/// Frames above these are left out.
const ROWS_MAX: usize = 100;
/// Width of a letter.
const LETTER_PX: f64 = 6.6;

/// Stacks, outermost frame first and `;` between frames, with the number of samples of each.
pub(crate) type Folded = BTreeMap<String, u64>;

#[derive(Default)]
struct Frame<'a> {
    samples: u64,
    calls: BTreeMap<&'a str, Frame<'a>>,
}

/// The picture of `stacks`, as an SVG file that needs no page.
pub(crate) fn draw(title: &str, stacks: &Folded) -> String {
    let mut root = Frame::default();
    for (stack, samples) in stacks {
        root.samples += samples;
        let mut frame = &mut root;
        for name in stack.split(';').take(ROWS_MAX) {
            frame = frame.calls.entry(name).or_default();
            frame.samples += samples;
        }
    }
    let mut rows = 0;
    let mut frames = String::new();
    let scale = (WIDTH - 2.0 * MARGIN) / root.samples.max(1) as f64;
    let all = root.samples;
    calls(&mut frames, &root, (0, MARGIN, scale, all), &mut rows);
    let height = HEAD + ROW * rows as f64 + MARGIN;
    let title = escape(title);
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" width=\"100%\" role=\"img\">\n\
         <title>{title}</title>\n<style>\n\
         svg {{ background: #fff; color: #222; font: 11px monospace; }}\n\
         @media (prefers-color-scheme: dark) {{ svg {{ background: #16181d; color: #ddd; }} }}\n\
         g text {{ fill: #000; pointer-events: none; }} rect {{ stroke: #fff; stroke-width: 0.4; }}\n</style>\n\
         <text x=\"{MARGIN}\" y=\"18\" fill=\"currentColor\" font-size=\"14\">{title}</text>\n\
         <text x=\"{MARGIN}\" y=\"34\" fill=\"currentColor\">{all} samples; width is share of samples, callers above what they call; \
         point at a frame for its name</text>\n{frames}</svg>\n"
    )
}

/// Draws what `frame` calls, beside each other from `x` on.
fn calls(
    out: &mut String,
    frame: &Frame<'_>,
    (row, x, scale, all): (usize, f64, f64, u64),
    rows: &mut usize,
) {
    let mut x = x;
    for (name, call) in &frame.calls {
        let width = call.samples as f64 * scale;
        if width >= LEAST_PX {
            *rows = (*rows).max(row + 1);
            let y = HEAD + ROW * row as f64;
            let share = 100.0 * call.samples as f64 / all.max(1) as f64;
            // Writing to a string cannot fail.
            let _ = write!(
                out,
                "<g><title>{} ({} samples, {share:.2} %)</title><rect x=\"{x:.1}\" y=\"{y}\" width=\"{width:.1}\" \
                 height=\"{ROW}\" fill=\"{}\"/>",
                escape(name),
                call.samples,
                colour(name),
            );
            let letters = ((width - 4.0) / LETTER_PX) as usize;
            if letters >= 3 {
                let (x, y) = (x + 2.0, y + 12.0);
                let _ = write!(
                    out,
                    "<text x=\"{x:.1}\" y=\"{y}\">{}</text>",
                    escape(&shortened(name, letters))
                );
            }
            out.push_str("</g>\n");
            calls(out, call, (row + 1, x, scale, all), rows);
        }
        x += width;
    }
}

fn shortened(name: &str, letters: usize) -> String {
    if name.chars().count() <= letters {
        return name.to_owned();
    }
    name.chars().take(letters - 1).chain(['…']).collect()
}

/// A warm colour that a name always has.
fn colour(name: &str) -> String {
    let hash = name.bytes().fold(5381_u32, |hash, byte| hash.wrapping_mul(33) ^ u32::from(byte));
    let (hue, light) = (10 + hash % 45, 58 + (hash >> 8) % 14);
    format!("hsl({hue}, 85%, {light}%)")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn widths_are_shares() {
        let stacks = [("a;b<T>", 3), ("a;c", 1), ("d", 4)];
        let stacks: Folded =
            stacks.into_iter().map(|(stack, samples)| (stack.to_owned(), samples)).collect();
        let svg = draw("node & chain", &stacks);
        assert!(svg.contains("node &amp; chain") && svg.contains("8 samples"), "{svg}");
        assert!(svg.contains("<title>a (4 samples, 50.00 %)</title>"), "{svg}");
        assert!(svg.contains("<title>b&lt;T&gt; (3 samples, 37.50 %)</title>"), "{svg}");
        assert!(svg.contains("width=\"590.0\"") && svg.contains("width=\"442.5\""), "{svg}");
        assert_eq!(svg.matches("<g>").count(), 4);
        assert_eq!(svg.matches("<g>").count(), svg.matches("</g>").count());
        assert!(draw("none", &Folded::new()).contains("0 samples"));
    }

    #[test]
    fn long_names_are_cut_at_letters() {
        assert_eq!(shortened("größer", 4), "grö…");
        assert_eq!(shortened("abc", 3), "abc");
    }
}
