//! Seconds of each test and each test program, and the tests that were ignored or skipped.
//!
//! Cargo starts the programs of `cargo test` by [`run_program`], which has libtest report times and the output of passed tests, and
//! appends times and lines `skipped: REASON` to a file; [`summary`] prints the slowest tests and all skipped ones, and compares each
//! program with `test_seconds` of `xtask/budgets.toml`.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs::OpenOptions;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};
use std::time::Instant;
use std::{env, fs};

use anyhow::Context;

/// Names the file that the times go to.
pub(crate) const FILE: &str = "ASSAY_TEST_TIMES";
const SLOWEST: usize = 10;

/// Arguments that make cargo start test programs by this one.
pub(crate) fn runner() -> anyhow::Result<[String; 2]> {
    let xtask = env::current_exe()?;
    let runner = format!("target.'cfg(all())'.runner=['{}','test-program']", xtask.display());
    Ok(["--config".to_owned(), runner])
}

/// Runs a test program, prints its output, and notes its times. Its folder is the package's.
pub(crate) fn run_program(arguments: &[String]) -> anyhow::Result<ExitCode> {
    let (program, arguments) = arguments.split_first().context("no test program is named")?;
    let name = name(Path::new(program))?;
    let mut command = Command::new(program);
    command.args(arguments);
    let has_own_harness = has_own_harness(&name)?;
    if !has_own_harness {
        // The flag is unstable, its output is only printed.
        command.env("RUSTC_BOOTSTRAP", "1").args(["-Z", "unstable-options", "--report-time"]);
        command.arg("--show-output");
    }
    let start = Instant::now();
    let mut child = command
        .stdout(Stdio::piped())
        .spawn()
        .with_context(|| format!("cannot start {program}"))?;
    let mut times = String::new();
    // All output of a program without libtest, whose tests have no names, is read for skipped parts.
    let mut passed = PassedOutput { is_inside: has_own_harness, test: String::new() };
    for line in BufReader::new(child.stdout.take().context("it is piped")?).lines() {
        let line = line?;
        if passed.contains(&line) {
            if let Some(reason) = line.strip_prefix("skipped: ") {
                writeln!(times, "skipped {name} {}: {reason}", passed.test)?;
            }
            if !has_own_harness {
                continue;
            }
        }
        println!("{line}");
        match result_of(&line) {
            Some(Outcome::Ran(test, seconds)) => writeln!(times, "{seconds} {name} {test}")?,
            Some(Outcome::Ignored(test)) => writeln!(times, "ignored {name} {test}")?,
            None => {}
        }
    }
    let status = child.wait()?;
    writeln!(times, "{} {name}", start.elapsed().as_secs_f64())?;
    if let Some(file) = env::var_os(FILE) {
        OpenOptions::new().create(true).append(true).open(file)?.write_all(times.as_bytes())?;
    }
    Ok(status.code().map_or(ExitCode::FAILURE, |code| ExitCode::from(code as u8)))
}

/// Package and target of a test program: `assay-lab/suite`.
fn name(program: &Path) -> anyhow::Result<String> {
    let stem =
        program.file_stem().and_then(|stem| stem.to_str()).context("a program has a name")?;
    let target = stem.rsplit_once('-').map_or(stem, |(target, _)| target);
    let package = env::current_dir()?;
    let package =
        package.file_name().and_then(|name| name.to_str()).context("a package's folder")?;
    Ok(format!("{package}/{target}"))
}

/// True if the manifest in this folder declares the test with `harness = false`.
fn has_own_harness(name: &str) -> anyhow::Result<bool> {
    let manifest: toml::Table = toml::from_str(&fs::read_to_string("Cargo.toml")?)?;
    let tests = manifest.get("test").and_then(toml::Value::as_array);
    let target = name.rsplit('/').next();
    let is_it = |test: &&toml::Value| test.get("name").and_then(toml::Value::as_str) == target;
    let test = tests.and_then(|tests| tests.iter().find(is_it));
    Ok(test.and_then(|test| test.get("harness")).and_then(toml::Value::as_bool) == Some(false))
}

/// The section of libtest's output that `--show-output` adds, from `successes:` to the failures or the result.
#[derive(Default)]
struct PassedOutput {
    is_inside: bool,
    /// Test that printed the lines read last.
    test: String,
}

impl PassedOutput {
    /// Reads the next line; true if the section contains it.
    fn contains(&mut self, line: &str) -> bool {
        match line {
            "successes:" => self.is_inside = true,
            "failures:" => self.is_inside = false,
            _ if line.starts_with("test result: ") => self.is_inside = false,
            _ => {}
        }
        let test = line.strip_prefix("---- ").and_then(|rest| rest.strip_suffix(" stdout ----"));
        if let Some(test) = test {
            test.clone_into(&mut self.test);
        }
        self.is_inside
    }
}

#[derive(Debug, PartialEq)]
enum Outcome<'a> {
    Ran(&'a str, f64),
    Ignored(&'a str),
}

/// A line of libtest: `test NAME ... ok <0.123s>`.
fn result_of(line: &str) -> Option<Outcome<'_>> {
    let (test, outcome) = line.strip_prefix("test ")?.split_once(" ... ")?;
    if outcome.starts_with("ignored") {
        return Some(Outcome::Ignored(test));
    }
    let (_, seconds) = outcome.rsplit_once('<')?;
    Some(Outcome::Ran(test, seconds.strip_suffix("s>")?.parse().ok()?))
}

/// Prints the slowest tests, the seconds of each program, and the tests ignored or skipped. Fails if a program took more than its
/// budget, and with `requires_all` if a test was skipped for another reason than the machine's features.
pub(crate) fn summary(
    file: &Path,
    budgets: &BTreeMap<String, f64>,
    requires_all: bool,
) -> anyhow::Result<()> {
    let text = fs::read_to_string(file).context("no test program noted its times")?;
    let (mut tests, mut programs, mut absent) = (Vec::new(), Vec::new(), Vec::new());
    for line in text.lines() {
        let (seconds, name) = line.split_once(' ').context("seconds and a name")?;
        match (seconds.parse::<f64>(), name.contains(' ')) {
            (Ok(seconds), true) => tests.push((seconds, name)),
            (Ok(seconds), false) => programs.push((seconds, name)),
            (Err(_), _) => absent.push(line),
        }
    }
    for list in [&mut tests, &mut programs] {
        list.sort_by(|a, b| b.0.total_cmp(&a.0));
    }
    println!("{} tests; the slowest:", tests.len());
    for (seconds, name) in tests.iter().take(SLOWEST) {
        println!("{seconds:8.1} s  {name}");
    }
    println!("programs of a second and more:");
    for (seconds, name) in programs.iter().filter(|(seconds, _)| *seconds >= 1.0) {
        println!("{seconds:8.1} s  {name}");
    }
    println!("tests and parts of tests that did not run: {}", absent.len());
    for line in &absent {
        println!("            {line}");
    }
    let missing = absent.iter().filter(|line| !is_unavoidable(line)).count();
    anyhow::ensure!(
        !requires_all || missing == 0,
        "{missing} tests or parts of tests need what is absent on this machine; they are listed above"
    );
    let is_over =
        |(seconds, name): &&(f64, &str)| budgets.get(*name).is_some_and(|max| seconds > max);
    let over: Vec<String> = programs
        .iter()
        .filter(is_over)
        .map(|(seconds, name)| format!("{name} took {seconds:.0} s of {} s", budgets[*name]))
        .collect();
    anyhow::ensure!(
        over.is_empty(),
        "over test_seconds in xtask/budgets.toml: {}",
        over.join(", ")
    );
    Ok(())
}

/// True for a skipped part that this machine cannot run whatever is installed, and for files that are published nowhere: the
/// first is made by its BIP's generator and too large, the second belongs to an open pull request.
fn is_unavoidable(line: &str) -> bool {
    [
        "BIP54 sigops.json is absent",
        "BIP360 p2mr_spending.json is absent",
        "this CPU ",
        "this processor ",
        "which only processors ",
        "the system denies access to counters",
        "the counter of instructions never moves",
    ]
    .iter()
    .any(|text| line.contains(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasons_of_skipped_tests_belong_to_the_test_that_printed_them() {
        let output = "test a::b ... ok <0.1s>\n\nsuccesses:\n\n---- a::b stdout ----\nskipped: no data\n\n\nsuccesses:\n    a::b\n\n\
                      failures:\n\n---- c stdout ----\nskipped: not this\n\ntest result: FAILED.";
        let mut passed = PassedOutput::default();
        let inside: Vec<&str> = output.lines().filter(|line| passed.contains(line)).collect();
        assert!(inside.contains(&"skipped: no data") && !inside.contains(&"skipped: not this"));
        let mut passed = PassedOutput::default();
        output.lines().take_while(|line| *line != "skipped: no data").for_each(|line| {
            passed.contains(line);
        });
        assert_eq!(passed.test, "a::b");
    }

    #[test]
    fn lines_of_libtest() {
        assert_eq!(result_of("test a::b ... ok <1.250s>"), Some(Outcome::Ran("a::b", 1.25)));
        assert_eq!(
            result_of("test a - should panic ... ok <0.001s>"),
            Some(Outcome::Ran("a - should panic", 0.001))
        );
        assert_eq!(result_of("test a ... ignored, no data"), Some(Outcome::Ignored("a")));
        assert_eq!(result_of("test result: ok. 3 passed; finished in 0.10s"), None);
        assert_eq!(result_of("running 3 tests"), None);
    }
}
