//! Published figures as data: `plans/published/NAME.toml` for each built-in benchmark plan, with source, machine and date of
//! every figure.

use serde::Deserialize;

use crate::suite::Published;

const FORMAT: u32 = 1;

#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PublishedFile {
    format: u32,
    #[serde(default, rename = "source")]
    sets: Vec<FigureSet>,
}

/// Figures of one source for one subject on one machine.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
struct FigureSet {
    subject: String,
    machine: String,
    /// Location of the publication.
    source: String,
    /// Publication date, as precisely as known.
    date: String,
    /// Note on all its figures.
    #[serde(default)]
    note: String,
    figures: Vec<Figure>,
}

/// A figure; the fields are those of [`Published`].
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
struct Figure {
    benchmark: String,
    ns_per_op: Option<f64>,
    instructions_per_op: Option<f64>,
    #[serde(default)]
    note: String,
}

impl PublishedFile {
    /// Parses a file embedded in this program. A test reads every one of them.
    ///
    /// # Panics
    /// When it is malformed, which is a defect of this program.
    pub fn built_in(text: &str) -> Self {
        let file: Self = toml::from_str(text).expect("a test reads each file of published figures");
        assert_eq!(file.format, FORMAT, "format of a file of published figures");
        file
    }

    pub fn figures(&self) -> Vec<Published> {
        let of_set = |set: &FigureSet| -> Vec<Published> {
            set.figures.iter().map(|figure| figure.of(set)).collect()
        };
        self.sets.iter().flat_map(of_set).collect()
    }
}

impl Figure {
    fn of(&self, set: &FigureSet) -> Published {
        let mut notes = vec![self.note.clone(), set.note.clone()];
        notes.retain(|note| !note.is_empty());
        Published {
            benchmark: self.benchmark.clone(),
            subject: set.subject.clone(),
            machine: set.machine.clone(),
            ns_per_op: self.ns_per_op,
            instructions_per_op: self.instructions_per_op,
            ratio: None,
            note: notes.join("; "),
            source: set.source.clone(),
            date: set.date.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::plan::BenchPlan;

    /// Every file is well formed, and every figure has a source, a machine and a date.
    #[test]
    fn every_figure_has_a_source_a_machine_and_a_date() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../plans/published");
        let mut names: Vec<String> = Vec::new();
        for entry in std::fs::read_dir(folder).expect("the folder of published figures") {
            let path = entry.expect("an entry").path();
            let text = std::fs::read_to_string(&path).expect("readable");
            let file = PublishedFile::built_in(&text);
            let figures = file.figures();
            assert!(!figures.is_empty(), "{}", path.display());
            let mut seen = BTreeSet::new();
            for figure in &figures {
                for text in [&figure.subject, &figure.machine, &figure.source, &figure.date] {
                    assert!(!text.trim().is_empty(), "{figure:?}");
                }
                assert!(figure.source.contains("https://"), "{figure:?}");
                assert!(figure.date.contains("20"), "{figure:?}");
                let numbers = [figure.ns_per_op, figure.instructions_per_op];
                assert!(numbers.iter().any(Option::is_some), "{figure:?}");
                assert!(numbers.iter().flatten().all(|number| *number > 0.0), "{figure:?}");
                let is_new = seen.insert((&figure.benchmark, &figure.subject, &figure.machine));
                assert!(is_new, "twice: {figure:?}");
            }
            names.extend(path.file_stem().map(|name| name.to_string_lossy().into_owned()));
        }
        // Claims without benchmark figures are read by their study.
        let claims = concat!(env!("CARGO_MANIFEST_DIR"), "/../../plans/claims");
        for entry in std::fs::read_dir(claims).expect("the folder of claims") {
            let path = entry.expect("an entry").path();
            names.extend(path.file_stem().map(|name| name.to_string_lossy().into_owned()));
        }
        names.sort_unstable();
        let mut plans: Vec<&str> = BenchPlan::BUILTIN.map(|(name, _)| name).to_vec();
        plans.sort_unstable();
        assert_eq!(
            names, plans,
            "a file of figures or of claims for each built-in plan, and no other"
        );
    }

    #[test]
    fn unknown_keys_are_errors() {
        let text = "format = 1\n[[source]]\nsubject = 'a'\nmachine = 'b'\nsource = 'c'\ndate = 'd'\nfigures = []\n";
        assert!(toml::from_str::<PublishedFile>(text).is_ok());
        for line in ["by = 'e'", "[[figure]]", "[syncs]"] {
            let more = format!("{text}{line}\n");
            assert!(toml::from_str::<PublishedFile>(&more).is_err(), "{line}");
        }
        let undated = text.replace("date = 'd'\n", "");
        assert!(toml::from_str::<PublishedFile>(&undated).is_err());
    }
}
