//! Counts instructions without hardware counters: a child process under valgrind.
//!
//! Each alternative runs twice, with few and with more operations; the difference cancels start-up and preparation. Valgrind's
//! CPU has neither AVX-512 nor SHA instructions, so programs with CPU detection take other paths there, which the child reports.

use std::ffi::OsString;
use std::process::Command;
use std::thread;

use anyhow::{Context as _, Result, bail, ensure};
use assay_report::child;
use serde::{Deserialize, Serialize};

use crate::harness::Figures;
use crate::registry::{Filter, Section, benchmarks};
use crate::results::Counting;
use crate::suite::Extent;

const VALGRIND: &str = "valgrind";

const NO_VALGRIND: &str = "instructions are counted with valgrind where the processor's counters are unavailable, and it cannot be started: install it (Debian: apt-get install valgrind)";

/// Time of the counted operations at native speed: several hundred times the variation of start-up.
const COUNTED_NS: f64 = 10_000_000.0;

/// Command of the child: this program and the words up to the flags of [`Once`].
#[derive(Clone, Debug)]
pub struct Counter {
    command: Vec<OsString>,
    version: String,
    /// Code paths reported by the child.
    paths: Option<String>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Once {
    pub benchmark: String,
    pub alternative: String,
    /// Minimum number of operations.
    pub operations: u64,
    pub extent: Extent,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Done {
    pub operations: u64,
    /// CPU-specific code paths taken.
    pub paths: String,
}

/// Runs a benchmark's alternative the requested number of times, untimed.
///
/// # Errors
/// When it does not exist, or fails.
pub fn once(sections: &[Section], once: &Once, paths: String) -> Result<Done> {
    let all = benchmarks(sections, once.extent, &Filter::default())?;
    let unknown = |name: &str| format!("there is no {name}");
    let (_, benchmark) = all
        .iter()
        .find(|(_, benchmark)| benchmark.name == once.benchmark)
        .with_context(|| unknown(&once.benchmark))?;
    let mut alternatives = (benchmark.make)()?;
    let alternative = alternatives
        .iter_mut()
        .find(|alternative| alternative.name() == once.alternative)
        .with_context(|| unknown(&once.alternative))?;
    let operations = alternative.run(once.operations)?.ops;
    Ok(Done { operations, paths })
}

impl Counter {
    /// Checks that valgrind is available. `command` is this program and the words that lead to [`once`].
    ///
    /// # Errors
    /// When it is not.
    pub fn find(command: Vec<OsString>) -> Result<Self> {
        let output = child::output(Command::new(VALGRIND).arg("--version")).context(NO_VALGRIND)?;
        ensure!(output.status.success(), NO_VALGRIND);
        let version = String::from_utf8_lossy(&output.stdout).trim().to_owned();
        Ok(Self { command, version, paths: None })
    }

    /// Counts the instructions of one operation of an alternative, and stores them in its figures.
    pub(crate) fn count(
        &mut self,
        benchmark: &str,
        extent: Extent,
        figures: &mut Figures,
    ) -> Result<()> {
        let repeats = (COUNTED_NS / figures.ns_per_op.max(0.05)).clamp(1.0, 1e9) as u64;
        let run = |operations: u64| {
            self.run(&Once {
                benchmark: benchmark.to_owned(),
                alternative: figures.name.clone(),
                operations,
                extent,
            })
        };
        let (few, many) = thread::scope(|scope| {
            let few = scope.spawn(|| run(1));
            let many = run(1 + figures.epoch_ops + repeats);
            (few.join().expect("it does not panic"), many)
        });
        let ((few_done, few), (many_done, many)) = (few?, many?);
        let operations = many_done.operations.saturating_sub(few_done.operations);
        if operations > 0 && many > few {
            figures.instructions_per_op = Some((many - few) as f64 / operations as f64);
        }
        self.paths = Some(many_done.paths);
        Ok(())
    }

    pub(crate) fn note(&self) -> Counting {
        let paths = self.paths.as_ref().map_or_else(String::new, |paths| format!(" ({paths})"));
        Counting {
            by: Some(VALGRIND.to_owned()),
            note: format!(
                "instructions are counted under {} in child processes, all threads together, on the paths that its \
                 processor has{paths}; times are those of this machine's own paths. The processor's counters are \
                 unavailable, so nothing else is counted",
                self.version
            ),
        }
    }

    fn run(&self, once: &Once) -> Result<(Done, u64)> {
        let log = tempfile::NamedTempFile::new().context("cannot make a temporary file")?;
        let mut log_flag = OsString::from("--log-file=");
        log_flag.push(log.path());
        let mut command = Command::new(VALGRIND);
        command
            .args(["--tool=cachegrind", "--cache-sim=no", "--cachegrind-out-file=/dev/null"])
            .arg(log_flag)
            .args(&self.command)
            .arg(serde_json::to_string(once).expect("an order has text keys and numbers"));
        let output = child::output(&mut command).context(NO_VALGRIND)?;
        let said = std::fs::read_to_string(log.path()).unwrap_or_default();
        let done = serde_json::from_slice(&output.stdout).ok().zip(instructions(&said));
        if let Some(done) = done.filter(|_| output.status.success()) {
            Ok(done)
        } else {
            let text = format!("{}{said}", String::from_utf8_lossy(&output.stderr));
            bail!("{VALGRIND} failed: {}", text.trim())
        }
    }
}

/// Total of cachegrind: `I   refs:      310,401`, in later versions `I refs:`.
fn instructions(log: &str) -> Option<u64> {
    let line = log.lines().find(|line| line.contains("refs:") && line.contains(" I "))?;
    let digits: String = line.rsplit(':').next()?.chars().filter(char::is_ascii_digit).collect();
    digits.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn totals_of_cachegrind() {
        let log = "==7== Cachegrind\n--7-- warning: L3 refs: x\n==7== I   refs:      1,310,401\n";
        assert_eq!(instructions(log), Some(1_310_401));
        assert_eq!(instructions("==7== I refs: 12\n"), Some(12));
        assert_eq!(instructions("==7== killed\n"), None);
    }

    #[test]
    fn one_alternative_is_done() {
        let order = |benchmark: &str, alternative: &str| Once {
            benchmark: benchmark.to_owned(),
            alternative: alternative.to_owned(),
            operations: 3,
            extent: Extent::Smoke,
        };
        let done = once(&[Section::harness()], &order("harness/same", "first"), String::new())
            .expect("there is one");
        assert_eq!(done.operations, 3);
        for (benchmark, alternative) in [("harness/sam", "first"), ("harness/same", "third")] {
            let error = once(&[Section::harness()], &order(benchmark, alternative), String::new())
                .expect_err("there is none")
                .to_string();
            assert!(error.starts_with("there is no "), "{error}");
        }
    }
}
