//! Profile section of the report.

use assay_report::Table;
use assay_report::number::percent;

use crate::results::{Changed, Profile, Results};

/// Description of the profiles, with links to the flame graphs.
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
        let change = profile.change.as_ref();
        if let Some((change, picture)) = change.and_then(|c| Some((c, c.picture.as_ref()?))) {
            out.push(format!(
                "- from {} to {target}: CPU time {:.2} s, then {:.2} s; what differs in `{picture}`, red where it takes more",
                change.from, change.before_s, change.after_s
            ));
        }
    }
    out
}

/// Functions with the most samples of their own.
pub(super) fn tables(results: &Results) -> Vec<Table> {
    let with_samples = results.profiles.iter().filter(|profile| !profile.top.is_empty());
    let shares = with_samples.map(|profile| {
        let caption = format!("{}: most samples of their own", profile.target);
        let mut table = Table::new(&caption, &["Function", "Own share"], 1);
        for share in &profile.top {
            table.push([share.function.clone(), percent(share.share)]);
        }
        table
    });
    shares.chain(results.profiles.iter().filter_map(changes)).collect()
}

/// Functions whose own time changed most from the first target to this one.
fn changes(profile: &Profile) -> Option<Table> {
    let change = profile.change.as_ref()?;
    let (from, to) = (&change.from, &profile.target);
    let caption = format!("From {from} to {to}: functions whose own CPU time changed most");
    let heads = ["Function", &format!("{from}, s"), &format!("{to}, s"), "change, s"];
    let mut table = Table::new(&caption, &heads, 1);
    for Changed { function, before_s, after_s } in &change.changed {
        let change = signed(after_s - before_s);
        table.push([function.clone(), format!("{before_s:.2}"), format!("{after_s:.2}"), change]);
    }
    Some(table)
}

fn signed(seconds: f64) -> String {
    format!("{seconds:+.2}").replace('-', "\u{2212}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::{Change, Share, fixture};

    #[test]
    fn profiles_changes_and_absence_are_shown() {
        let mut results = fixture::results();
        assert!(prose(&results).is_empty() && tables(&results).is_empty());
        let top = vec![Share { function: "hash".to_owned(), share: 0.25 }];
        let (target, picture) = ("assay".to_owned(), Some("profiles/assay.svg".to_owned()));
        results.profiles = vec![
            Profile { target, samples: 40, picture, top, ..Profile::default() },
            Profile {
                target: "second".to_owned(),
                samples: 20,
                change: Some(Change {
                    from: "assay".to_owned(),
                    before_s: 0.2,
                    after_s: 0.1,
                    picture: Some("profiles/assay-to-second.svg".to_owned()),
                    changed: vec![Changed {
                        function: "hash".to_owned(),
                        before_s: 0.05,
                        after_s: 0.01,
                    }],
                }),
                ..Profile::default()
            },
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
        assert_eq!((tables.len(), tables[0].rows[0][1].as_str()), (2, "25.0 %"));
        assert_eq!(tables[1].rows[0], ["hash", "0.05", "0.01", "\u{2212}0.04"]);
        assert!(text.contains("from assay to second: CPU time 0.20 s, then 0.10 s"), "{text}");
    }
}
