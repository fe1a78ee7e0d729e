//! Flame graph: sampled call stacks drawn as SVG (after Brendan Gregg, <https://www.brendangregg.com/flamegraphs.html>).

use std::collections::BTreeMap;
use std::fmt::Write;

use assay_report::escape;

/// Width of the image, and height of a frame, in pixels.
const WIDTH: f64 = 1200.0;
const ROW: f64 = 17.0;
const MARGIN: f64 = 10.0;
const HEAD: f64 = 46.0;
/// Narrower frames are invisible and left out.
const LEAST_PX: f64 = 0.4;
/// Maximum number of frames above each other.
const ROWS_MAX: usize = 100;
const LETTER_PX: f64 = 6.6;

/// Share of all samples at which a change has the deepest colour.
const FULL_COLOUR: f64 = 0.05;

/// Stacks, outermost frame first and `;` between frames, with their number of samples.
pub(crate) type Folded = BTreeMap<String, u64>;

/// A call from the same callers in two programs; `before` is zero for a single program.
#[derive(Default)]
struct Frame<'a> {
    before: u64,
    after: u64,
    calls: BTreeMap<&'a str, Frame<'a>>,
}

#[derive(Clone, Copy, PartialEq)]
enum Mode {
    /// One program: widths are its samples.
    One,
    /// Two programs with the same work: widths are the mean of both, so that calls of only one are visible as well.
    Change,
}

/// Flame graph of `stacks` as a standalone SVG file.
pub(crate) fn draw(title: &str, stacks: &Folded) -> String {
    let mut root = Frame::default();
    add(&mut root, stacks, |frame| &mut frame.after);
    let says = format!(
        "{} samples; width is share of samples, callers above what they call; point at a frame for its name",
        root.after
    );
    picture(title, &says, &root, Mode::One)
}

/// Differential flame graph of two programs with the same work.
pub(crate) fn draw_change(title: &str, before: &Folded, after: &Folded) -> String {
    let mut root = Frame::default();
    add(&mut root, before, |frame| &mut frame.before);
    add(&mut root, after, |frame| &mut frame.after);
    let says = format!(
        "{} samples, then {}; width is the mean of both; red: more samples than before, blue: fewer, white: as many",
        root.before, root.after
    );
    picture(title, &says, &root, Mode::Change)
}

fn add<'a>(
    root: &mut Frame<'a>,
    stacks: &'a Folded,
    count: impl for<'f> Fn(&'f mut Frame<'a>) -> &'f mut u64,
) {
    for (stack, samples) in stacks {
        *count(root) += samples;
        let mut frame = &mut *root;
        for name in stack.split(';').take(ROWS_MAX) {
            frame = frame.calls.entry(name).or_default();
            *count(frame) += samples;
        }
    }
}

fn picture(title: &str, says: &str, root: &Frame<'_>, mode: Mode) -> String {
    let mut rows = 0;
    let mut frames = String::new();
    let all = mode.weight(root);
    let scale = (WIDTH - 2.0 * MARGIN) / all.max(1.0);
    calls(&mut frames, root, (0, MARGIN, scale, all), mode, &mut rows);
    let height = HEAD + ROW * rows as f64 + MARGIN;
    let title = escape(title);
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" width=\"100%\" role=\"img\">\n\
         <title>{title}</title>\n<style>\n\
         svg {{ background: #fff; color: #222; font: 11px monospace; }}\n\
         @media (prefers-color-scheme: dark) {{ svg {{ background: #16181d; color: #ddd; }} }}\n\
         g text {{ fill: #000; pointer-events: none; }} rect {{ stroke: #fff; stroke-width: 0.4; }}\n</style>\n\
         <text x=\"{MARGIN}\" y=\"18\" fill=\"currentColor\" font-size=\"14\">{title}</text>\n\
         <text x=\"{MARGIN}\" y=\"34\" fill=\"currentColor\">{says}</text>\n{frames}</svg>\n"
    )
}

/// Draws the callees of `frame`, next to each other from `x` on.
fn calls(
    out: &mut String,
    frame: &Frame<'_>,
    (row, x, scale, all): (usize, f64, f64, f64),
    mode: Mode,
    rows: &mut usize,
) {
    let mut x = x;
    for (name, call) in &frame.calls {
        let width = mode.weight(call) * scale;
        if width >= LEAST_PX {
            *rows = (*rows).max(row + 1);
            let y = HEAD + ROW * row as f64;
            // Writing to a string cannot fail.
            let _ = write!(
                out,
                "<g><title>{} ({})</title><rect x=\"{x:.1}\" y=\"{y}\" width=\"{width:.1}\" \
                 height=\"{ROW}\" fill=\"{}\"/>",
                escape(name),
                mode.samples(call, all),
                mode.colour(name, call, all),
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
            calls(out, call, (row + 1, x, scale, all), mode, rows);
        }
        x += width;
    }
}

impl Mode {
    fn weight(self, frame: &Frame<'_>) -> f64 {
        match self {
            Self::One => frame.after as f64,
            Self::Change => (frame.before + frame.after) as f64 / 2.0,
        }
    }

    /// Label of a frame.
    fn samples(self, frame: &Frame<'_>, all: f64) -> String {
        match self {
            Self::One => {
                let share = 100.0 * frame.after as f64 / all.max(1.0);
                format!("{} samples, {share:.2} %", frame.after)
            }
            Self::Change => format!("{} samples, then {}", frame.before, frame.after),
        }
    }

    /// For a single program, a warm colour derived from the name.
    fn colour(self, name: &str, frame: &Frame<'_>, all: f64) -> String {
        match self {
            Self::One => {
                let hash = name
                    .bytes()
                    .fold(5381_u32, |hash, byte| hash.wrapping_mul(33) ^ u32::from(byte));
                let (hue, light) = (10 + hash % 45, 58 + (hash >> 8) % 14);
                format!("hsl({hue}, 85%, {light}%)")
            }
            Self::Change => {
                let change = frame.after as f64 - frame.before as f64;
                let hue = if change > 0.0 { 5 } else { 220 };
                let depth = (change.abs() / (FULL_COLOUR * all.max(1.0))).min(1.0);
                format!("hsl({hue}, 85%, {:.0}%)", 96.0 - 38.0 * depth)
            }
        }
    }
}

fn shortened(name: &str, letters: usize) -> String {
    if name.chars().count() <= letters {
        return name.to_owned();
    }
    name.chars().take(letters - 1).chain(['…']).collect()
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
    fn shows_changes_and_removed_frames() {
        let folded = |stacks: [(&str, u64); 3]| -> Folded {
            stacks.into_iter().map(|(stack, samples)| (stack.to_owned(), samples)).collect()
        };
        let svg = draw_change(
            "builds",
            &folded([("a;b", 50), ("a;gone", 10), ("same", 40)]),
            &folded([("a;b", 80), ("a;new", 20), ("same", 40)]),
        );
        assert!(svg.contains("100 samples, then 140"), "{svg}");
        let frame = |says: &str| {
            let at = svg.find(says).unwrap_or_else(|| panic!("{says}: {svg}"));
            svg[at..].lines().next().expect("a line").to_owned()
        };
        assert!(frame("b (50 samples, then 80)").contains("hsl(5, 85%, 58%)"));
        assert!(frame("gone (10 samples, then 0)").contains("hsl(220, 85%, 58%)"));
        assert!(frame("new (0 samples, then 20)").contains("hsl(5, 85%, 58%)"));
        assert!(frame("same (40 samples, then 40)").contains("hsl(220, 85%, 96%)"));
        // 65 of a mean of 120 samples, over 1180 pixels.
        assert!(frame("b (50 samples, then 80)").contains("width=\"639.2\""));
    }

    #[test]
    fn long_names_are_cut_at_letters() {
        assert_eq!(shortened("größer", 4), "grö…");
        assert_eq!(shortened("abc", 3), "abc");
    }
}
