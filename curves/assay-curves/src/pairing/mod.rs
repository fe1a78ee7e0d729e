//! Report 5: pairing-friendly curves, protocols on them, and thread pools, by library.
//!
//! Every subject is a process that lists its operations, prepares one from a seed, and repeats it by its own clock;
//! so other libraries are never linked into this program. Inputs follow from the seed by the same rule for all
//! subjects (`curves/peer/README.md`), and an operation is timed only after all results are equal.

mod cases;
mod data;
mod load;
mod own;
mod pools;
mod protocol;
mod ranking;
mod studies;
mod subjects;

use std::cell::OnceCell;

use anyhow::{Result, bail};
use assay_bench::harness::{Alternative, Row, Sample};
use assay_bench::plan::PairingSettings;
use assay_bench::published::PublishedFile;
use assay_bench::suite::{Benchmark, Extent, Published, Study, Suite};
use assay_bench::{Progress, wrong_answer};

pub(crate) use ranking::{interval, table};

use cases::Case;
use protocol::{Answer, Order};
use subjects::{Subject, Subjects};

const FIGURES: &str = include_str!("../../../../plans/published/pairing-curves.toml");

/// Published figures: Constantine's, which report 5 is about, and those of other libraries on other machines.
fn published() -> Vec<Published> {
    PublishedFile::built_in(FIGURES).figures()
}

/// Settings of the section, and the subjects.
#[derive(Debug)]
pub(crate) struct PairingSuite {
    settings: PairingSettings,
    /// Started when benchmarks are listed.
    subjects: OnceCell<Subjects>,
}

impl PairingSuite {
    pub(crate) fn new(settings: PairingSettings) -> Self {
        Self { settings, subjects: OnceCell::new() }
    }

    fn subjects(&self) -> Result<&Subjects> {
        if let Some(subjects) = self.subjects.get() {
            return Ok(subjects);
        }
        let subjects = Subjects::start(&self.settings)?;
        Ok(self.subjects.get_or_init(|| subjects))
    }

    fn benchmark(&self, case: Case, subjects: &[&Subject]) -> Benchmark<'_> {
        let Case { name, series, size, unit, order, .. } = case;
        let names: Vec<String> = subjects.iter().map(|subject| subject.name.clone()).collect();
        let found = self.subjects.get();
        let make = move || {
            let of_name = |name: &String| found.and_then(|found| found.of(name));
            let subjects: Vec<&Subject> = names.iter().filter_map(of_name).collect();
            alternatives(&name, &order, &subjects)
        };
        Benchmark {
            name: series_and_size(&series, size),
            series,
            size,
            unit: unit.to_owned(),
            bytes_per_op: None,
            baseline: None,
            make: Box::new(make),
        }
    }
}

fn series_and_size(series: &str, size: Option<u64>) -> String {
    size.map_or_else(|| series.to_owned(), |size| format!("{series}/{size}"))
}

/// Prepares an operation in all subjects, and compares their results.
fn alternatives<'a>(
    benchmark: &str,
    order: &Order,
    subjects: &[&'a Subject],
) -> Result<Vec<Alternative<'a>>> {
    let order = order.with_inputs();
    let mut answers = Vec::with_capacity(subjects.len());
    for subject in subjects {
        answers.push(subject.prepare(&order)?);
    }
    agree(benchmark, &answers, subjects)?;
    let alternative = |subject: &&'a Subject| {
        let (subject, order) = (*subject, order.clone());
        let mut iterations = None;
        let label = subject.label(&order.curve, &order.operation);
        Alternative::fallible(&label, move || {
            if let Some(count) = iterations {
                return subject.time(&order, count);
            }
            let (count, last) = calibrate(subject, &order)?;
            iterations = Some(count);
            // For a long operation the last sample is already an epoch.
            if last.ops == count { Ok(last) } else { subject.time(&order, count) }
        })
    };
    Ok(subjects.iter().map(alternative).collect())
}

/// Compares the results of subjects; the error names those that differ.
fn agree(benchmark: &str, answers: &[Answer], subjects: &[&Subject]) -> Result<()> {
    for (index, answer) in answers.iter().enumerate() {
        let agree = answers.iter().filter(|other| other.digest == answer.digest).count();
        // A majority identifies the wrong results; without one, any may be wrong.
        if agree < answers.len() && agree * 2 <= answers.len() {
            let others =
                answers.iter().zip(subjects).filter(|(other, _)| other.digest != answer.digest);
            let others: Vec<_> = others
                .map(|(other, subject)| format!("{}: {}", subject.name, other.shown))
                .collect();
            let detail = format!("{}, and the others {}", answer.shown, others.join(", "));
            return Err(wrong_answer(benchmark, &subjects[index].name, detail));
        }
    }
    Ok(())
}

/// Number of iterations per epoch, raised until it is measurable, and the last sample.
fn calibrate(subject: &Subject, order: &Order) -> Result<(u64, Sample)> {
    let mut iterations = 1;
    loop {
        let sample = subject.time(order, iterations)?;
        let wall_ns = sample.wall_ns;
        let wanted = (iterations as f64 * EPOCH_NS / wall_ns.max(1) as f64) as u64;
        if wall_ns as f64 >= EPOCH_NS / 4.0 || iterations >= ITERATIONS_MAX {
            return Ok((wanted.clamp(1, ITERATIONS_MAX), sample));
        }
        iterations = wanted.clamp(iterations * 2, iterations * 16).min(ITERATIONS_MAX);
    }
}

/// Length of an epoch: long against the clock and the pipe.
const EPOCH_NS: f64 = 5e6;

/// More iterations indicate a peer that does no work.
const ITERATIONS_MAX: u64 = 100_000_000;

impl Suite for PairingSuite {
    fn benchmarks(&self, extent: Extent) -> Result<Vec<Benchmark<'_>>> {
        let subjects = self.subjects()?;
        let mut benchmarks = Vec::new();
        if let Some(why) = subjects.all_absent().filter(|_| extent != Extent::Smoke) {
            let (program, build) = (why.program.display(), why.build);
            let text = format!("{program} failed: it is not there; build it with `{build}`");
            benchmarks.push(Benchmark {
                name: "pairing/subjects".to_owned(),
                series: "pairing/subjects".to_owned(),
                size: None,
                unit: String::new(),
                bytes_per_op: None,
                baseline: None,
                make: Box::new(move || bail!("{text}")),
            });
        }
        for (case, takers) in cases::of(&self.settings, extent, subjects) {
            benchmarks.push(self.benchmark(case, &takers));
        }
        Ok(benchmarks)
    }

    fn studies(&self, extent: Extent, rows: &[Row], progress: &dyn Progress) -> Result<Vec<Study>> {
        let subjects = self.subjects()?;
        let has_pools = rows.iter().any(|row| row.name.starts_with("pool/"));
        let loads = if has_pools {
            load::measure(subjects, self.settings.seed, extent, progress)?
        } else {
            Vec::new()
        };
        Ok(studies::all(&self.settings, subjects, rows, &loads))
    }

    fn published(&self) -> Vec<Published> {
        published()
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use assay_bench::plan::SubjectSettings;

    use super::*;
    use assay_bench::Silent;

    /// A subject as a shell script: the same response to every order but the first.
    fn fake(name: &str, digest: &str) -> SubjectSettings {
        let script = format!(
            r#"read order; echo '{{"name":"{name}","version":"1","compiler":"sh","operations":[{{"curve":"bn254","operation":"fp-mul","how":"not"}}]}}'
            while read order; do echo '{{"digest":"{digest}","answer":"{digest}","wall_ns":5000000,"cpu_ns":4000000}}'; done"#
        );
        let command = ["sh", "-c", &script].map(str::to_owned).to_vec();
        SubjectSettings { name: name.to_owned(), command }
    }

    fn suite(subjects: Vec<SubjectSettings>) -> PairingSuite {
        let nowhere = || Some(PathBuf::from("/nonexistent/peer"));
        PairingSuite::new(PairingSettings {
            curves: vec!["bn254".to_owned()],
            peer: nowhere(),
            gnark: nowhere(),
            subjects,
            ..PairingSettings::default()
        })
    }

    #[test]
    fn subjects_are_interleaved_once_their_answers_are_equal() {
        let suite = suite(vec![fake("a", "aa"), fake("b", "aa")]);
        let benchmarks = suite.benchmarks(Extent::Smoke).expect("subjects");
        let [benchmark] = &benchmarks[..] else { panic!("{benchmarks:?}") };
        assert_eq!(benchmark.name, "bn254/fp-mul");
        let mut alternatives = (benchmark.make)().expect("equal answers");
        let rounds = assay_bench::harness::Rounds { count: 2, warm_up: 0 };
        let row =
            assay_bench::harness::compare(&benchmark.name, &mut alternatives, rounds, &mut || {})
                .expect("no failure");
        let names: Vec<_> = row.figures.iter().map(|figures| figures.name.as_str()).collect();
        assert_eq!(names, ["a", "b"]);
        assert!((row.figures[0].ns_per_op - 5e6).abs() < 1.0, "{:?}", row.figures[0]);
        let studies = suite.studies(Extent::Smoke, &[row], &Silent).expect("studies");
        let text = format!("{studies:?}");
        assert!(text.contains("fp-mul") && text.contains("cd curves"), "{text}");
    }

    #[test]
    fn a_subject_with_another_result_is_named() {
        let suite = suite(vec![fake("a", "aa"), fake("b", "bb"), fake("c", "aa")]);
        let benchmarks = suite.benchmarks(Extent::Smoke).expect("subjects");
        let error = (benchmarks[0].make)().expect_err("b is alone").to_string();
        assert!(error.contains("b gave a wrong answer: bb") && error.contains("c: aa"), "{error}");
    }

    #[test]
    fn without_subjects_the_own_ones_work_and_the_others_are_listed() {
        let suite = suite(Vec::new());
        assert!(suite.benchmarks(Extent::Smoke).expect("none is needed").is_empty());
        let benchmarks = suite.benchmarks(Extent::Quick).expect("listing is possible");
        let error = (benchmarks[0].make)().expect_err("no subject").to_string();
        assert!(error.contains("/nonexistent/peer") && error.contains("cd curves"), "{error}");
    }

    /// A traceable pool as a shell script: prints `traced` to a trace order, and `digest` to every other.
    fn traced(name: &str, digest: &str, traced: &str) -> SubjectSettings {
        let offer = |operation: &str| {
            format!(r#"[{{"curve":"pool","operation":"{operation}","how":"not"}}]"#)
        };
        let script = format!(
            r#"read order; echo '{{"name":"{name}","version":"1","compiler":"sh","operations":{},"traces":{}}}'
            while read order; do
                case "$order" in *trace*) digest={traced};; *) digest={digest};; esac
                echo '{{"answer":"","wall_ns":2000000,"threads":[{{"rows":1,"busy_ns":1000000,"spans":[[0,1000000]]}}],"digest":"'$digest'"}}'
            done"#,
            offer("heat"),
            offer("render"),
        );
        let command = ["sh", "-c", &script].map(str::to_owned).to_vec();
        SubjectSettings { name: name.to_owned(), command }
    }

    fn pool_studies(subjects: Vec<SubjectSettings>) -> Result<Vec<Study>> {
        let row = ranking::tests::row("pool/heat", &[("a", 100), ("b", 200)]);
        suite(subjects).studies(Extent::Smoke, &[row], &Silent)
    }

    #[test]
    fn only_pools_with_traces_are_traced() {
        let studies = pool_studies(vec![traced("a", "aa", "aa"), fake("b", "bb")]);
        let studies = studies.expect("b is absent, and no failure");
        let pools = studies.iter().find(|study| study.id == "pairing-pools").expect("two pools");
        let [_, table] = &pools.tables[..] else { panic!("{pools:?}") };
        assert_eq!(table.rows, [["a", "2.00 ms", "1", "50.0 %", "50.0 %", "50.0 %", "1.00 ms"]]);
        assert_eq!(pools.lanes.len(), 1);
        let studies = pool_studies(vec![fake("a", "aa"), fake("b", "aa")]).expect("older builds");
        let pools = studies.iter().find(|study| study.id == "pairing-pools").expect("two pools");
        assert!(pools.tables.len() == 1 && pools.lanes.is_empty(), "{pools:?}");
    }

    #[test]
    fn traces_of_other_answers_are_errors() {
        let wrong = |subjects| pool_studies(subjects).expect_err("another answer").to_string();
        let error = wrong(vec![traced("a", "aa", "aa"), traced("b", "bb", "bb")]);
        assert!(error.contains("pool/render"), "{error}");
        let error = wrong(vec![traced("a", "aa", "aa"), traced("b", "aa", "bb")]);
        assert!(
            error.contains("b gave a wrong answer") && error.contains("bb when traced"),
            "{error}"
        );
    }

    /// Every figure called published is in a publication, never one of our measurements.
    #[test]
    fn nothing_that_only_we_measured_is_called_published() {
        for published in published() {
            let text = format!("{} {}", published.machine, published.note).to_lowercase();
            for word in ["this project", "virtual", "zen 5"] {
                assert!(!text.contains(word), "{published:?}");
            }
        }
    }

    #[test]
    fn our_own_verifier_is_a_subject() {
        let mut settings = suite(Vec::new()).settings;
        settings.curves = vec!["secp256k1".to_owned()];
        let suite = PairingSuite::new(settings);
        let benchmarks = suite.benchmarks(Extent::Smoke).expect("in this process");
        assert!(!benchmarks.is_empty());
        for benchmark in &benchmarks {
            let mut alternatives = (benchmark.make)().expect("right answers");
            let rounds = assay_bench::harness::Rounds { count: 1, warm_up: 0 };
            assay_bench::harness::compare(&benchmark.name, &mut alternatives, rounds, &mut || {})
                .expect("no failure");
        }
    }

    #[test]
    fn figures_are_of_the_size_of_their_operation() {
        let all = published();
        assert_eq!(all.len(), 128);
        let ns = |subject: &str, benchmark: &str| {
            let found = all.iter().find(|one| one.subject == subject && one.benchmark == benchmark);
            found.and_then(|one| one.ns_per_op)
        };
        assert_eq!(ns("Constantine, clang", "bls12-381/pairing"), Some(384_400.0));
        assert_eq!(ns("Constantine, clang", "bls12-381/g1-msm-one-thread/65536"), Some(273.7e6));
        assert_eq!(ns("c-kzg", "kzg/commit"), Some(29.857e6));
    }
}
