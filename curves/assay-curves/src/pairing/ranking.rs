//! Fastest library of each benchmark, within comparable code.

use assay_bench::harness::{Figures, Row};
use assay_bench::plan::PairingSettings;
use assay_bench::suite::{Study, StudyTable};
use assay_report::stats::ratio::Ratio;

use super::subjects::timing_of;

/// The fastest library of a benchmark, and its lead.
struct Winner<'a> {
    row: &'a Row,
    name: &'a str,
    second: &'a str,
    ratio: Ratio,
}

impl Winner<'_> {
    /// Name without the kind of timing.
    fn library(&self) -> &str {
        timing_of(self.name)
            .and_then(|timing| self.name.strip_suffix(&format!(" ({timing})")))
            .unwrap_or(self.name)
    }
}

/// The fastest of each benchmark and kind of timing. Constant-time code pays for a guarantee that
/// variable-time code does not make; code without a documented kind may be either.
fn winners(rows: &[Row]) -> Vec<Winner<'_>> {
    let mut winners = Vec::new();
    for row in rows {
        let mut order: Vec<&Figures> = row.figures.iter().collect();
        order.sort_by(|a, b| a.ns_per_op.total_cmp(&b.ns_per_op));
        let mut kinds: Vec<Option<&str>> = order.iter().map(|one| timing_of(&one.name)).collect();
        kinds.sort_unstable();
        kinds.dedup();
        for kind in kinds {
            let mut of_kind = order.iter().filter(|figures| timing_of(&figures.name) == kind);
            if let (Some(first), Some(second)) = (of_kind.next(), of_kind.next())
                && let Some(ratio) = row.ratio(&second.name, &first.name)
            {
                winners.push(Winner { row, name: &first.name, second: &second.name, ratio });
            }
        }
    }
    winners
}

/// `None` if no benchmark has two subjects to rank.
pub(super) fn fastest(settings: &PairingSettings, rows: &[Row]) -> Option<Study> {
    let winners = winners(rows);
    if winners.is_empty() {
        return None;
    }
    let mut prose = vec![
        "The ratio is the time of the second over the time of the fastest, the median of the pairs of a round, with its \
         interval; where the interval holds 1, neither is called the faster."
            .to_owned(),
        "Products with a secret, inversions and signing are ranked within constant-time and within variable-time code, never \
         across: a library that is alone in its kind is not ranked."
            .to_owned(),
    ];
    for curve in &settings.curves {
        let of_curve =
            winners.iter().filter(|winner| winner.row.name.split('/').next() == Some(curve));
        let mut counts: Vec<(&str, usize)> = Vec::new();
        let mut total = 0;
        for winner in of_curve {
            total += 1;
            let name = if winner.ratio.low > 1.0 { winner.library() } else { "nobody" };
            match counts.iter_mut().find(|(known, _)| *known == name) {
                Some((_, count)) => *count += 1,
                None => counts.push((name, 1)),
            }
        }
        counts.sort_by_key(|(_, count)| usize::MAX - count);
        if total > 0 {
            let counts: Vec<String> =
                counts.iter().map(|(name, count)| format!("{name} {count}")).collect();
            prose.push(format!(
                "- `{curve}`, fastest in so many of {total}: {}.",
                counts.join(", ")
            ));
        }
    }
    let line = |winner: &Winner<'_>| {
        let Winner { row, name, second, ratio } = winner;
        let is_clear = ratio.low > 1.0;
        vec![
            row.name.clone(),
            if is_clear { (*name).to_owned() } else { format!("{name} or {second}") },
            (*second).to_owned(),
            interval(ratio),
        ]
    };
    let head = ["operation", "fastest", "second", "ratio"];
    let rows = winners.iter().map(line).collect();
    Some(Study {
        id: "pairing-fastest".to_owned(),
        title: "Who is fastest where".to_owned(),
        prose,
        tables: vec![table("Who is fastest, and by how much", &head, 3, rows)],
        ..Study::default()
    })
}

/// A table of a study; the first `word_columns` columns hold words.
pub(crate) fn table(
    caption: impl Into<String>,
    head: &[&str],
    word_columns: usize,
    rows: Vec<Vec<String>>,
) -> StudyTable {
    let head = head.iter().map(|&word| word.to_owned()).collect();
    StudyTable { caption: caption.into(), head, word_columns, rows }
}

pub(crate) fn interval(ratio: &Ratio) -> String {
    format!("{:.2} ({:.2} to {:.2})", ratio.median, ratio.low, ratio.high)
}

#[cfg(test)]
pub(super) mod tests {
    use assay_bench::harness::{Alternative, Rounds, Sample, compare};

    use super::super::subjects::figures_of;
    use super::*;

    /// A benchmark with the same time per library in every round.
    pub(in crate::pairing) fn row(name: &str, libraries: &[(&str, u64)]) -> Row {
        let alternative =
            |&(name, ns): &(&str, u64)| Alternative::new(name, move || Sample::timed(1, ns, ns));
        let mut alternatives: Vec<_> = libraries.iter().map(alternative).collect();
        let rounds = Rounds { count: 9, warm_up: 0 };
        compare(name, &mut alternatives, rounds, &mut || {}).expect("no failure")
    }

    #[test]
    fn constant_time_is_not_ranked_against_variable_time() {
        let mixed = row(
            "bls12-381/g1-mul",
            &[
                ("blst (constant time)", 100),
                ("gnark-crypto (variable time)", 60),
                ("arkworks (variable time)", 80),
            ],
        );
        let plain = row("bls12-381/fp-mul", &[("blst", 20), ("arkworks", 25)]);
        let rows = [mixed, plain];
        let found: Vec<_> = winners(&rows)
            .iter()
            .map(|one| (one.row.name.clone(), one.library().to_owned(), one.second.to_owned()))
            .collect();
        let expected = [
            ("bls12-381/g1-mul", "gnark-crypto", "arkworks (variable time)"),
            ("bls12-381/fp-mul", "blst", "arkworks"),
        ];
        assert_eq!(found, expected.map(|(a, b, c)| (a.to_owned(), b.to_owned(), c.to_owned())));
        assert_eq!(
            figures_of(&rows[0], "blst").expect("with its kind").name,
            "blst (constant time)"
        );
        assert!(figures_of(&rows[0], "gnark").is_none(), "the name of another subject");
    }

    #[test]
    fn one_subject_has_no_ranking() {
        let settings = PairingSettings::default();
        let fastest_of =
            |subjects: &[(&str, u64)]| fastest(&settings, &[row("bn254/add", subjects)]);
        assert!(fastest_of(&[("alone", 100)]).is_none());
        let two = fastest_of(&[("slow", 200), ("fast", 100)]).expect("two subjects");
        assert_eq!(two.tables[0].rows[0][1], "fast");
    }
}
