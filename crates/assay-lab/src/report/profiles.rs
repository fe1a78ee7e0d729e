//! What profiled runs showed.

use assay_report::Table;
use assay_report::number::percent;

use crate::results::Results;

/// What was done, and where the pictures are.
pub(super) fn prose(results: &Results) -> Vec<String> {
    if results.profiles.is_empty() {
        return Vec::new();
    }
    let mut out = vec![
        "After the runs that count each target ran once more under `perf`, which interrupts every thread 199 times per second \
         of its CPU time and copies the end of its stack: a function's own share is the share of samples in itself, without \
         what it calls. Profiled runs are slower and are in no other figure; short ones have few samples."
            .to_owned(),
    ];
    for profile in &results.profiles {
        let target = &profile.target;
        out.push(match (&profile.missing, &profile.picture) {
            (Some(why), _) => {
                format!("- {target}: no profile: {}", why.lines().next().unwrap_or_default())
            }
            (None, Some(picture)) => {
                format!("- {target}: {} samples, flame graph in `{picture}`", profile.samples)
            }
            (None, None) => format!("- {target}: {} samples", profile.samples),
        });
    }
    out
}

/// The functions with the most samples of their own.
pub(super) fn tables(results: &Results) -> Vec<Table> {
    let with_samples = results.profiles.iter().filter(|profile| !profile.top.is_empty());
    with_samples
        .map(|profile| {
            let caption = format!("{}: most samples of their own", profile.target);
            let mut table = Table::new(&caption, &["Function", "Own share"], 1);
            for share in &profile.top {
                table.push([share.function.clone(), percent(share.share)]);
            }
            table
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::fixture;
    use crate::results::{Profile, Share};

    #[test]
    fn profiles_and_their_absence_are_told() {
        let mut results = fixture::results();
        assert!(prose(&results).is_empty() && tables(&results).is_empty());
        let top = vec![Share { function: "hash".to_owned(), share: 0.25 }];
        let (target, picture) = ("assay".to_owned(), Some("profiles/assay.svg".to_owned()));
        results.profiles = vec![
            Profile { target, samples: 40, picture, top, missing: None },
            Profile {
                target: "other".to_owned(),
                missing: Some("refused\nmore".to_owned()),
                ..Profile::default()
            },
        ];
        let text = prose(&results).join("\n");
        assert!(text.contains("assay: 40 samples, flame graph in `profiles/assay.svg`"), "{text}");
        assert!(text.ends_with("- other: no profile: refused"), "{text}");
        let tables = tables(&results);
        assert_eq!((tables.len(), tables[0].rows[0][1].as_str()), (1, "25.0 %"));
    }
}
