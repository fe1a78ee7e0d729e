//! Report 3, micro part: the engine on the operations that the report optimises.
//!
//! The report is pull request 32043 of Bitcoin Core. If a few lines have the effect of its last step, they are timed
//! next to the engine; the steps themselves are timed on Bitcoin Core's commits by the plan `ibd-tracking-core`. The
//! blocks are the report's 413,567, if available, and a forged one with P2WPKH and P2TR inputs.

mod accept;
mod check;
mod files;
mod flush;
mod primitives;
mod subjects;
mod xor;

use std::path::{Path, PathBuf};

use anyhow::{Result, ensure};
use assay_bench::harness::Row;
use assay_bench::plan::IbdSettings;
use assay_bench::published::PublishedFile;
use assay_bench::suite::{Benchmark, Extent, Published, Study, Suite};
use assay_bench::{Progress, wrong_answer};
use assay_report::stats::verdict::{COVERAGE, FLOOR_MIN, Verdict};
use tempfile::TempDir;

use self::subjects::REAL;
use crate::temporary_folder;

// Names of alternatives.

/// Ours, on files in Core's form where files take part.
const ASSAY: &str = "assay";
/// Ours, on our own files: not obfuscated, but with a checksum.
const ASSAY_STORE: &str = "assay, own files with checksum";
/// The algorithm of the report's last step, in Rust.
const LAST_STEP: &str = "report's last step";

const COPY: &str = "copy";
const GENERAL: &str = "any message";

/// Figures of the report for the same operations after its last step.
const FIGURES: &str = include_str!("../../../../plans/published/ibd-tracking.toml");

/// All figures; those of the real block only where it is measured.
fn published(has_real: bool) -> Vec<Published> {
    let mut all = PublishedFile::built_in(FIGURES).figures();
    all.retain(|published| has_real || !published.benchmark.ends_with(&format!("/{REAL}")));
    all
}

#[derive(Clone, Debug)]
pub(crate) struct IbdSuite {
    settings: IbdSettings,
    real: Option<PathBuf>,
}

impl IbdSuite {
    pub(crate) fn new(settings: IbdSettings) -> Self {
        let real = subjects::real_block(settings.data.as_deref());
        Self { settings, real }
    }

    fn has_real(&self) -> bool {
        self.real.is_some()
    }
}

impl Suite for IbdSuite {
    fn benchmarks<'s>(&'s self, extent: Extent) -> Result<Vec<Benchmark<'s>>> {
        let settings = &self.settings;
        let least = |sizes: &[u64], least: u64| sizes.iter().all(|size| *size >= least);
        for (holds, what, wanted) in [
            (least(&settings.xor_bytes, 64), "xor_bytes", "64 or more"),
            (least(&settings.duplicate_inputs, 1), "duplicate_inputs", "1 to 24,000 or so"),
            (least(&settings.flush_coins, 16), "flush_coins", "16 or more"),
        ] {
            ensure!(holds, "{what}: give {wanted}");
        }
        // The smoke test skips the real block, which is large.
        let real = self.real.as_deref().filter(|_| extent != Extent::Smoke);
        let subjects = subjects::subjects(real, extent, settings.seed);
        let mut all: Vec<Benchmark<'s>> = subjects.iter().flat_map(files::benchmarks).collect();
        all.extend(xor::benchmarks(&settings.xor_bytes, extent));
        all.extend(flush::benchmarks(&settings.flush_coins, extent));
        all.extend(subjects.iter().map(check::blocks));
        all.extend(check::duplicates(&settings.duplicate_inputs, extent));
        all.extend(subjects.iter().map(accept::missing));
        all.extend(primitives::benchmarks());
        Ok(all)
    }

    fn studies(&self, _: Extent, rows: &[Row], _: &dyn Progress) -> Result<Vec<Study>> {
        let skipped = format!(
            "Skipped: real block {REAL} was not found (`ASSAY_TEST_DATA`); only the forged block was measured."
        );
        let real = (!self.has_real()).then_some(skipped);
        Ok(vec![Study {
            id: "ours".to_owned(),
            title: "The engine and the report's last steps".to_owned(),
            lead: Some(lead(rows)),
            prose: NOTES.iter().map(|&note| note.to_owned()).chain(real).collect(),
            ..Study::default()
        }])
    }

    fn published(&self) -> Vec<Published> {
        published(self.has_real())
    }
}

/// Verdict on the engine against the last steps, by the rule of all comparisons of the bench.
fn lead(rows: &[Row]) -> String {
    let ratio = |row: &Row| row.ratio_covered(LAST_STEP, ASSAY, COVERAGE);
    let verdicts: Vec<Verdict> =
        rows.iter().filter_map(ratio).map(|ratio| Verdict::of(&ratio, FLOOR_MIN)).collect();
    let count = |wanted: Verdict| verdicts.iter().filter(|&&verdict| verdict == wanted).count();
    let (faster, slower) = (count(Verdict::Faster), count(Verdict::Slower));
    format!(
        "Of {} operations in which the report's last step was timed next to the engine, the engine is faster in {faster} and slower in {slower}; in the others no difference is shown.",
        verdicts.len()
    )
}

const NOTES: [&str; 5] = [
    "The steps of the report are timed on Bitcoin Core itself: `assay run ibd-tracking-core` has its commits, their benchmarks and the published figures before and after each. \"report's last step\" is a few lines of Rust with the same effect, with Core's calls to the system; it is not Core. Published figures are those after the last step.",
    "Obfuscation: only other programs' files have it. It is taken off by vectors of the widest kind the machine has; a copy reads and writes as much, so its speed is the limit while the bytes are cached.",
    "Duplicate inputs: 64-bit digests of the outpoints, compared pairwise or sorted; only where two agree are whole outpoints looked at. Grinding txids until digests agree makes it one exact sort (`-colliding`), so there is no quadratic case and no key to keep.",
    "Flush: the write batch goes through journal and memtable of the same database, unsorted and synced once at the end, as Core writes to LevelDB. Ours sorts all changes and writes them as tables that enter the tree at once. Both end with coins that survive a power cut, but after the write batch they still have to be written from the memtable as tables, which is not in the time: where ours is slower, part of the difference is that.",
    "`process-transaction` is the engine's whole path of a transaction whose inputs are not there.",
];

/// A value that keeps its files in a temporary folder, which is removed after it.
struct InFolder<T> {
    value: T,
    _dir: TempDir,
}

impl<T> InFolder<T> {
    fn open(open: impl FnOnce(&Path) -> Result<T>) -> Result<Self> {
        let dir = temporary_folder()?;
        Ok(Self { value: open(dir.path())?, _dir: dir })
    }
}

impl<T> std::ops::Deref for InFolder<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.value
    }
}

/// Returns the error of a wrong result unless the condition holds.
fn expect(holds: bool, benchmark: &str, alternative: &str, detail: &str) -> Result<()> {
    if holds { Ok(()) } else { Err(wrong_answer(benchmark, alternative, detail)) }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use assay_bench::Silent;
    use assay_bench::harness::{Alternative, Rounds, compare};

    #[test]
    fn every_answer_is_checked_and_every_study_written() {
        let suite = IbdSuite::new(IbdSettings::default());
        let mut rows = Vec::new();
        for benchmark in suite.benchmarks(Extent::Smoke).expect("sensible settings") {
            let mut alternatives = (benchmark.make)().expect("right answers");
            alternatives.iter_mut().for_each(Alternative::shorten);
            let rounds = Rounds { count: 2, warm_up: 0 };
            let row = compare(&benchmark.name, &mut alternatives, rounds, &mut || {});
            rows.push(row.expect("figures"));
        }
        let studies = suite.studies(Extent::Smoke, &rows, &Silent).expect("studies");
        let lead = studies[0].lead.as_deref().expect("a lead");
        // Obfuscation, a raw block, the check of a block, three numbers of inputs and the colliding ones, and a flush.
        let compared = rows.iter().filter(|row| row.of(LAST_STEP).is_some()).count();
        assert!(compared == 8 && lead.starts_with("Of 8 "), "{compared}: {lead}");
    }

    #[test]
    fn names_are_unique_and_published_figures_have_a_row() {
        let suite = IbdSuite::new(IbdSettings::default());
        let benchmarks = suite.benchmarks(Extent::Full).expect("sensible settings");
        let names: BTreeSet<&str> = benchmarks.iter().map(|row| row.name.as_str()).collect();
        assert_eq!(names.len(), benchmarks.len());
        for published in suite.published() {
            assert!(names.contains(published.benchmark.as_str()), "{}", published.benchmark);
        }
        let odd = IbdSettings { xor_bytes: vec![1], ..IbdSettings::default() };
        assert!(IbdSuite::new(odd).benchmarks(Extent::Full).is_err());
    }

    #[test]
    fn figures_are_those_of_the_report() {
        let all = published(true);
        assert_eq!(all.len(), 9 + 7);
        let check = all.iter().find(|one| one.benchmark == "check-block/413567").expect("clang");
        assert_eq!(check.ns_per_op, Some(179_971.0));
    }
}
