//! Report 3, micro part: each optimisation of the initial block download, before and after.
//!
//! The report is pull request 32043 of Bitcoin Core. "Before" and "after" are its steps, written so that they differ in the
//! optimisation alone; beside them stands what the engine does. Blocks are the report's, 413,567, where it is found, and a
//! made one that looks like those since taproot.

mod accept;
pub(crate) mod calls;
mod check;
mod compared;
mod files;
mod flush;
mod inline;
mod modern;
mod names;
mod primitives;
mod published;
mod serial;
mod siphash;
mod size;
mod stream;
mod studies;
mod subjects;
mod xor;

use std::path::PathBuf;

use assay_bench::harness::Row;
use assay_bench::plan::IbdSettings;
use assay_bench::suite::{Benchmark, Extent, Published, Study, Suite};
use assay_bench::{BenchError, Progress};
use calls::Scale;

/// What the section asks for.
#[derive(Clone, Debug)]
pub(crate) struct IbdSuite {
    settings: IbdSettings,
    real: Option<PathBuf>,
}

impl IbdSuite {
    /// With these settings.
    pub(crate) fn new(settings: IbdSettings) -> Self {
        let real = subjects::real_block(settings.data.as_deref());
        Self { settings, real }
    }

    /// Whether the real block was found.
    fn has_real(&self) -> bool {
        self.real.is_some()
    }
}

impl Suite for IbdSuite {
    fn benchmarks<'s>(&'s self, extent: Extent) -> Result<Vec<Benchmark<'s>>, BenchError> {
        let settings = &self.settings;
        let least = |sizes: &[u64], least: u64| sizes.iter().all(|size| *size >= least);
        for (holds, what, wanted) in [
            (least(&settings.xor_bytes, 64), "xor_bytes", "64 or more"),
            (least(&settings.duplicate_inputs, 1), "duplicate_inputs", "1 to 24,000 or so"),
            (least(&settings.flush_coins, 16), "flush_coins", "16 or more"),
        ] {
            if !holds {
                return Err(BenchError::Parameter { what, wanted });
            }
        }
        let scale = Scale::of(extent);
        // The real block is too large for a test that has other things to do.
        let real = self.real.as_deref().filter(|_| extent != Extent::Smoke);
        let subjects = subjects::subjects(real, extent, settings.seed);
        let each = |of: fn(&subjects::LazySubject, Scale) -> Vec<Benchmark<'s>>| {
            subjects.iter().flat_map(|subject| of(subject, scale)).collect::<Vec<_>>()
        };
        let mut all = each(files::benchmarks);
        all.extend(xor::benchmarks(&settings.xor_bytes, extent, scale));
        all.extend(flush::benchmarks(&settings.flush_coins, extent, scale));
        all.extend(each(size::benchmarks));
        all.extend(each(|subject, scale| vec![check::blocks(subject, scale)]));
        all.extend(check::duplicates(&settings.duplicate_inputs, extent, scale));
        all.extend(each(|subject, scale| vec![accept::missing(subject, scale)]));
        all.extend(siphash::benchmarks(scale));
        all.extend(inline::benchmarks(extent, scale));
        all.extend(accept::valid(extent, scale));
        all.extend(primitives::benchmarks(extent, scale));
        Ok(all)
    }

    fn studies(
        &self,
        extent: Extent,
        rows: &[Row],
        _progress: &dyn Progress,
    ) -> Result<Vec<Study>, BenchError> {
        studies::all(self, extent, rows)
    }

    fn published(&self) -> Vec<Published> {
        published::all(self.has_real())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use assay_bench::Silent;
    use assay_bench::harness::{Rounds, compare};

    #[test]
    fn every_answer_is_checked_and_every_study_written() {
        let suite = IbdSuite::new(IbdSettings::default());
        let mut rows = Vec::new();
        for benchmark in suite.benchmarks(Extent::Smoke).expect("sensible settings") {
            let mut alternatives = (benchmark.make)().expect("right answers");
            let rounds = Rounds { count: 2, warm_up: 0 };
            let row = compare(&benchmark.name, &mut alternatives, rounds, &mut || {});
            rows.push(row.expect("figures"));
        }
        let studies = suite.studies(Extent::Smoke, &rows, &Silent).expect("studies");
        let [pairs, ..] = &studies[..] else { panic!("no studies") };
        // Each pair of the list has found its alternatives.
        let found: BTreeSet<&str> =
            pairs.tables[0].rows.iter().map(|row| row[0].as_str()).collect();
        assert_eq!(found.len(), compared::Compared::built_in().pairs.len(), "{found:?}");
        // A share of a block was once made of invented counts: only the report's own seconds may be divided.
        let savings = studies.iter().find(|study| study.id == "sum").expect("what is saved");
        let (published, measured) = savings.tables.split_last().expect("tables");
        assert!(published.caption.starts_with("Published"), "{}", published.caption);
        assert!(!measured.is_empty());
        for cell in
            measured.iter().flat_map(|table| table.rows.iter().chain([&table.head])).flatten()
        {
            assert!(!cell.contains('%') && !cell.contains("share"), "{cell}");
        }
        for table in studies.iter().flat_map(|study| &study.tables) {
            assert!(!table.rows.is_empty(), "{}", table.caption);
            assert!(
                table.rows.iter().all(|row| row.len() == table.head.len()),
                "{}",
                table.caption
            );
        }
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
}
