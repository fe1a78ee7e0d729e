//! `bench_bitcoin`, the benchmarks of Bitcoin Core, as a subject: builds are interleaved per benchmark.
//!
//! In a round each build runs once for the benchmark and writes its figures as JSON (`-output-json`, since version 22). The
//! figure is the median time of an operation over its epochs. Intervals are computed over rounds, because per-process effects
//! (memory layout, for example) affect all epochs of a process.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use anyhow::{Context as _, Result, bail};
use assay_lab::builds::Cache;
use assay_lab::plan::{NodeSpec, TargetSpec};
use assay_report::child;
use serde::Deserialize;

use crate::Progress;
use crate::counters::Counts;
use crate::harness::{Alternative, Row, Sample};
use crate::plan::{CoreBuild, CoreSettings};
use crate::registry::{Filter, Section};
use crate::suite::{Benchmark, Extent, Study, Suite};

pub const PROGRAM: &str = "bench_bitcoin";
/// Section of plans, and prefix of names.
const SECTION: &str = "core";
/// Size limit of a file of figures.
const JSON_BYTES_MAX: u64 = 64 << 20;
/// Characters of its messages in an error.
const MESSAGE_MAX: usize = 400;

/// `bench_bitcoin` of one build.
#[derive(Debug, Clone)]
struct Subject {
    name: String,
    program: PathBuf,
    /// Supported options among the used ones.
    options: BTreeSet<String>,
}

impl Subject {
    /// Locates the program and reads its help.
    fn find(build: &CoreBuild) -> Result<Self> {
        let program = match build.target.parse::<TargetSpec>().map(|spec| spec.node) {
            Ok(NodeSpec::Built(spec)) => {
                let cache = Cache::of_user()
                    .context("no folder of builds: set HOME, XDG_CACHE_HOME or ASSAY_BUILDS")?;
                let found = cache.find(&spec.revision, &spec.with, PROGRAM)?;
                found.program(PROGRAM).unwrap_or(Path::new(PROGRAM)).to_owned()
            }
            _ => PathBuf::from(&build.target),
        };
        let mut subject = Self { name: build.name.clone(), program, options: BTreeSet::new() };
        let help = subject.output(&["-?"])?;
        let text = String::from_utf8_lossy(&help.stdout).into_owned();
        let name = |line: &str| {
            let rest = line.strip_prefix("  -")?;
            let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '-' && c != '_');
            Some(rest[..end.unwrap_or(rest.len())].to_owned())
        };
        subject.options = text.lines().filter_map(name).collect();
        if subject.option("output-json").is_none() {
            let program = subject.program.display();
            bail!("{program} has no -output-json: Bitcoin Core 22 or later is needed");
        }
        Ok(subject)
    }

    /// An option by its name in this version: before 22 it had an underscore.
    fn option(&self, name: &str) -> Option<String> {
        let names = [name.to_owned(), name.replace('-', "_")];
        names.into_iter().find(|name| self.options.contains(name)).map(|name| format!("-{name}"))
    }

    fn output(&self, arguments: &[&str]) -> Result<Output> {
        let mut command = Command::new(&self.program);
        command.args(arguments);
        // Suppresses repeated advice on standard error.
        command.env("NANOBENCH_SUPPRESS_WARNINGS", "1").env_remove("NANOBENCH_ENDLESS");
        let output = child::output(&mut command).with_context(|| self.cannot_run())?;
        if output.status.success() {
            return Ok(output);
        }
        let text = String::from_utf8_lossy(&output.stderr);
        let text: String = text.trim().chars().take(MESSAGE_MAX).collect();
        bail!("{}: {}: {text}", self.call(arguments), output.status)
    }

    fn cannot_run(&self) -> String {
        format!("cannot run {}", self.program.display())
    }

    fn call(&self, arguments: &[&str]) -> String {
        format!("{} {}", self.program.display(), arguments.join(" "))
    }

    /// Some versions run only high-priority benchmarks by default.
    fn all_levels(&self) -> Option<String> {
        self.option("priority-level").map(|option| format!("{option}=all"))
    }

    fn list(&self) -> Result<Vec<String>> {
        let levels = self.all_levels();
        let arguments: Vec<&str> = ["-list"].into_iter().chain(levels.as_deref()).collect();
        let output = self.output(&arguments)?;
        let text = String::from_utf8_lossy(&output.stdout);
        let is_name = |line: &&str| !line.is_empty() && !line.contains(char::is_whitespace);
        Ok(text.lines().map(str::trim).filter(is_name).map(str::to_owned).collect())
    }

    fn measure(&self, benchmark: &str, min_time_ms: u64) -> Result<Sample> {
        let file = tempfile::NamedTempFile::new().with_context(|| self.cannot_run())?;
        let option = self.option("output-json").unwrap_or_default();
        let mut arguments = vec![
            format!("-filter=^{}$", pattern(benchmark)),
            format!("{option}={}", file.path().display()),
        ];
        arguments.extend(self.option("min-time").map(|option| format!("{option}={min_time_ms}")));
        arguments.extend(self.all_levels());
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        self.output(&arguments)?;
        let read = File::open(file.path()).and_then(|file| {
            let mut text = String::new();
            file.take(JSON_BYTES_MAX).read_to_string(&mut text).map(|_| text)
        });
        let parsed = read.map_err(Into::into).and_then(|text| sample(&text, benchmark));
        parsed.with_context(|| self.call(&arguments))
    }
}

/// A regular expression that only matches this name.
fn pattern(name: &str) -> String {
    let escaped = |c: char| {
        let is_plain = c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | ' ' | '/');
        if is_plain { vec![c] } else { vec!['\\', c] }
    };
    name.chars().flat_map(escaped).collect()
}

#[derive(Debug, Deserialize)]
struct Figures {
    results: Vec<Figure>,
}

#[derive(Debug, Deserialize)]
struct Figure {
    name: String,
    /// Seconds of one operation.
    #[serde(rename = "median(elapsed)")]
    elapsed_s: f64,
    /// Zero if not counted.
    #[serde(rename = "median(instructions)", default)]
    instructions: f64,
    #[serde(rename = "median(cpucycles)", default)]
    cycles: f64,
    #[serde(rename = "median(branchinstructions)", default)]
    branches: f64,
    #[serde(rename = "median(branchmisses)", default)]
    branch_misses: f64,
    #[serde(default)]
    measurements: Vec<Epoch>,
}

#[derive(Debug, Deserialize)]
struct Epoch {
    iterations: f64,
}

/// Parses the figures of a benchmark. Several results under its name are summed.
fn sample(text: &str, benchmark: &str) -> Result<Sample> {
    let figures: Figures = serde_json::from_str(text).context("its JSON cannot be read")?;
    let own: Vec<&Figure> = figures.results.iter().filter(|one| one.name == benchmark).collect();
    let elapsed_s: f64 = own.iter().map(|figure| figure.elapsed_s).sum();
    if own.is_empty() || !elapsed_s.is_finite() || elapsed_s <= 0.0 {
        bail!("it gives no time for {benchmark}");
    }
    // The actual number of operations, so that short ones keep their digits; at least one second's worth.
    let done = own.iter().flat_map(|figure| &figure.measurements).map(|epoch| epoch.iterations);
    let ops = done.sum::<f64>().max(1.0 / elapsed_s).clamp(1.0, 1e12).round();
    let count = |of: fn(&Figure) -> f64| {
        let sum: f64 = own.iter().map(|figure| of(figure)).sum();
        (sum.is_finite() && sum > 0.0).then(|| (sum * ops).round() as u64)
    };
    let counts = Counts {
        instructions: count(|figure| figure.instructions),
        cycles: count(|figure| figure.cycles),
        branches: count(|figure| figure.branches),
        branch_misses: count(|figure| figure.branch_misses),
    };
    // CPU time is not among its figures.
    Ok(Sample { counts, ..Sample::timed(ops as u64, (elapsed_s * ops * 1e9).round() as u64, 0) })
}

#[derive(Debug)]
pub struct CoreSuite {
    settings: CoreSettings,
}

impl Section {
    pub fn bench_bitcoin(settings: CoreSettings) -> Self {
        Self { name: SECTION, suite: Box::new(CoreSuite { settings }) }
    }
}

impl CoreSuite {
    /// Each build with its benchmarks that pass the filter.
    fn lists(&self) -> Result<Vec<(Subject, Vec<String>)>> {
        let filter = Filter::new(self.settings.benchmarks.clone());
        let list = |build: &CoreBuild| {
            let subject = Subject::find(build)?;
            let mut names = subject.list()?;
            names.retain(|name| filter.admits(name));
            names.dedup();
            Ok((subject, names))
        };
        self.settings.builds.iter().map(list).collect()
    }
}

impl Suite for CoreSuite {
    fn benchmarks(&self, extent: Extent) -> Result<Vec<Benchmark<'_>>> {
        let lists = self.lists()?;
        let subjects: Vec<Subject> = lists.iter().map(|(subject, _)| subject.clone()).collect();
        let min_time_ms = if extent == Extent::Smoke { 1 } else { self.settings.min_time_ms };
        let is_everywhere = |name: &&String| lists.iter().all(|(_, list)| list.contains(name));
        let names = lists.first().into_iter().flat_map(|(_, list)| list);
        let names: Vec<String> = names.filter(is_everywhere).cloned().collect();
        if names.is_empty() {
            let filter = self.settings.benchmarks.join(", ");
            bail!("no benchmark of {PROGRAM} is in every build and matches {filter}");
        }
        let benchmark = |name: String| {
            let subjects = subjects.clone();
            Benchmark::new(format!("{SECTION}/{name}"), "", move |_| {
                let alternative = |subject: &Subject| {
                    let (subject, name) = (subject.clone(), name.clone());
                    Alternative::fallible(&subject.name.clone(), move || {
                        subject.measure(&name, min_time_ms)
                    })
                };
                Ok(subjects.iter().map(alternative).collect())
            })
        };
        Ok(names.into_iter().map(benchmark).collect())
    }

    /// Lists benchmarks that not every build has.
    fn studies(&self, _: Extent, _: &[Row], _: &dyn Progress) -> Result<Vec<Study>> {
        let lists = self.lists()?;
        let is_missing = |name: &&String| lists.iter().any(|(_, list)| !list.contains(name));
        let prose: Vec<String> = lists
            .iter()
            .filter_map(|(subject, list)| {
                let only: Vec<&str> = list.iter().filter(is_missing).map(String::as_str).collect();
                (!only.is_empty()).then(|| format!("- {}: {}", subject.name, only.join(", ")))
            })
            .collect();
        if prose.is_empty() {
            return Ok(Vec::new());
        }
        let title = "Benchmarks that not every build has".to_owned();
        Ok(vec![Study { id: "core-only".to_owned(), title, prose, ..Study::default() }])
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    use super::*;
    use crate::run::measure;

    const JSON: &str = r#"{"results": [
        {"title": "benchmark", "name": "SHA256", "unit": "byte", "batch": 1000000, "median(elapsed)": 2.5e-09,
         "median(instructions)": 12, "median(cpucycles)": 0, "totalTime": 0.1,
         "measurements": [{"iterations": 10, "elapsed": 2.5e-09}, {"iterations": 20, "elapsed": 2.6e-09}]}
    ]}"#;

    #[test]
    fn figures_are_read() {
        let found = sample(JSON, "SHA256").expect("it is there");
        assert_eq!((found.ops, found.wall_ns), (400_000_000, 1_000_000_000));
        assert_eq!(found.counts.instructions, Some(4_800_000_000));
        assert_eq!(found.counts.cycles, None, "a counter that never moved counts nothing");
        let slow = JSON.replace("2.5e-09", "0.5");
        assert_eq!(sample(&slow, "SHA256").expect("there").ops, 30);
        let fails = |text: &str, name: &str| sample(text, name).expect_err("no time").to_string();
        assert!(fails(JSON, "SHA512").contains("no time for SHA512"));
        assert!(fails("{\"results\": [", "SHA256").contains("cannot be read"));
        assert!(sample(&JSON.replace("2.5e-09", "0"), "SHA256").is_err());
        assert_eq!(pattern("Bech32.Encode+"), "Bech32\\.Encode\\+");
    }

    /// A program with the command line of `bench_bitcoin`, whose benchmark takes `ns` nanoseconds.
    fn fake(folder: &Path, name: &str, ns: u32, list: &str) -> CoreBuild {
        let path = folder.join(name);
        let script = format!(
            "#!/bin/sh\nfor a; do case $a in\n\
             '-?') printf '  -list\\n  -output-json=<file>\\n  -min-time=<ms>\\n';;\n\
             -list) printf '{list}';;\n\
             -output-json=*) echo '{{\"results\":[{{\"name\":\"Xor\",\"median(elapsed)\":{ns}e-9}}]}}' > \"${{a#*=}}\";;\n\
             esac; done\n"
        );
        fs::write(&path, script).expect("writable");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("ours");
        CoreBuild { name: name.to_owned(), target: path.display().to_string() }
    }

    #[test]
    fn builds_are_compared() {
        let folder = tempfile::tempdir().expect("a folder");
        let builds = vec![
            fake(folder.path(), "before", 200, "Xor\\nOld\\n"),
            fake(folder.path(), "after", 100, "Xor\\nNew\\n"),
        ];
        let settings = CoreSettings { benchmarks: Vec::new(), min_time_ms: 1, builds };
        let suite = CoreSuite { settings };
        let benchmarks = suite.benchmarks(Extent::Quick).expect("they can be listed");
        let names: Vec<&str> = benchmarks.iter().map(|one| one.name.as_str()).collect();
        assert_eq!(names, ["core/Xor"]);
        let row = measure(&benchmarks[0], Extent::Quick, 3, &crate::Silent).expect("it runs");
        let ratio = row.ratio("before", "after").expect("pairs");
        assert!((ratio.median - 2.0).abs() < 1e-6, "{ratio:?}");
        let studies = suite.studies(Extent::Quick, &[], &crate::Silent).expect("listed");
        assert_eq!(studies[0].prose, ["- before: Old", "- after: New"]);

        let none = CoreSettings { benchmarks: vec!["Sha".to_owned()], ..suite.settings.clone() };
        let error = CoreSuite { settings: none }.benchmarks(Extent::Quick).expect_err("none");
        assert!(error.to_string().contains("matches Sha"), "{error}");
    }

    #[test]
    fn programs_that_cannot_be_subjects() {
        let error = |target: &str| {
            let build = CoreBuild { name: "a".to_owned(), target: target.to_owned() };
            Subject::find(&build).expect_err("unusable").to_string()
        };
        assert!(error("/nonexistent/bench_bitcoin").contains("cannot run /nonexistent"));
        assert!(error("/bin/true").contains("Bitcoin Core 22 or later"));
        assert!(error("/bin/false").contains("exit status: 1"));
        assert!(error("core@no-such-revision").contains("--preset bitcoin-core-bench"));
    }
}
