//! Figures for people.

use std::fmt::Write as _;

use assay_lab::ratio::Ratio;

use crate::harness::Row;

/// Rows as a table: a line for each alternative.
pub fn rows(rows: &[Row]) -> String {
    let mut text = format!(
        "{:<40}{:<26}{:>14}{:>14}{:>7}{:>14}{:>9}\n",
        "operation", "by", "ns/op", "op/s", "err%", "CPU ns/op", "total s"
    );
    for row in rows {
        for (index, figures) in row.figures.iter().enumerate() {
            let _ = writeln!(
                text,
                "{:<40}{:<26}{:>14}{:>14}{:>7.1}{:>14}{:>9.2}",
                if index == 0 { &row.name } else { "" },
                figures.name,
                number(figures.ns_per_op),
                number(figures.op_per_s),
                figures.err_percent,
                number(figures.cpu_ns_per_op),
                figures.total_s,
            );
        }
    }
    text
}

/// A ratio of wall times and, where it was taken, of CPU times.
pub type Pair = (Option<Ratio>, Option<Ratio>);

/// A line for each ratio.
pub fn ratios<'a>(ratios: impl IntoIterator<Item = (&'a str, Pair)>) -> String {
    let mut text = String::new();
    for (name, (wall, cpu)) in ratios {
        let Some(Ratio { median, low, high, coverage, pairs }) = wall else { continue };
        let percent = coverage * 100.0;
        let _ = write!(
            text,
            "{name:<44}{median:>7.2}  ({low:.2} to {high:.2}, {percent:.0} % interval of {pairs} pairs)"
        );
        if let Some(Ratio { median, low, high, .. }) = cpu {
            let _ = write!(text, "  CPU {median:.2} ({low:.2} to {high:.2})");
        }
        text.push('\n');
    }
    text
}

/// Three digits that count, at least.
fn number(value: f64) -> String {
    if value >= 1000.0 {
        let digits = format!("{value:.0}");
        let mut text = String::new();
        for (index, digit) in digits.chars().enumerate() {
            if index > 0 && (digits.len() - index).is_multiple_of(3) {
                text.push(',');
            }
            text.push(digit);
        }
        return text;
    }
    if value >= 100.0 { format!("{value:.1}") } else { format!("{value:.2}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_can_be_read() {
        for (value, text) in [
            (0.0, "0.00"),
            (12.345, "12.35"),
            (123.45, "123.5"),
            (1234.5, "1,234"),
            (1e6, "1,000,000"),
        ] {
            assert_eq!(number(value), text);
        }
    }
}
