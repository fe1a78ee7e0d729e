//! One command of a build: logs its output and counts its steps.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};

use super::{Stopped, no_program};
use crate::process::child::Supervised;
use crate::progress::{Event, Reporter};

/// Output of all commands of a build.
pub(super) const LOG: &str = "build.log";
/// Interval between reads of the log.
const LOOK_EVERY: Duration = Duration::from_millis(200);
/// Time limit of a build after a request to stop.
const STOP_WITHIN: Duration = Duration::from_secs(20);
/// Log lines in an error.
const TAIL_LINES: usize = 15;
/// Characters of such a line.
const TAIL_WIDTH: usize = 300;
/// Bytes of the log read for it.
const TAIL_BYTES: u64 = 64 << 10;
/// Variables that users set for builds of their own: a build must depend on its key only.
const FOREIGN: [&str; 10] = [
    "CC",
    "CXX",
    "CFLAGS",
    "CXXFLAGS",
    "CPPFLAGS",
    "LDFLAGS",
    "MAKEFLAGS",
    "CMAKE_GENERATOR",
    "CONFIG_SITE",
    "GIT_DIR",
];

pub(super) struct Stage<'a> {
    /// Name in messages.
    pub(super) name: &'static str,
    pub(super) program: &'a OsStr,
    pub(super) arguments: Vec<std::ffi::OsString>,
    /// Working directory.
    pub(super) folder: &'a Path,
    /// Folder of the whole build; holds the log.
    pub(super) work: &'a Path,
}

impl Stage<'_> {
    pub(super) fn run(&self, reporter: &dyn Reporter) -> anyhow::Result<()> {
        let log = self.work.join(LOG);
        let of_log = || format!("cannot write {}", log.display());
        let mut file = File::options().create(true).append(true).open(&log).with_context(of_log)?;
        let words: Vec<_> = self.arguments.iter().map(|word| word.to_string_lossy()).collect();
        let program = self.program.to_string_lossy();
        writeln!(file, "$ {program} {}", words.join(" ")).with_context(of_log)?;
        let length = file.metadata().with_context(of_log)?.len();
        let mut steps = Steps::after(&log, length).with_context(of_log)?;
        let mut command = Command::new(self.program);
        command.args(&self.arguments).current_dir(self.folder).stdin(Stdio::null());
        command.stdout(file.try_clone().with_context(of_log)?).stderr(file);
        for name in FOREIGN {
            command.env_remove(name);
        }
        // The same source in another folder then yields the same objects.
        command.env("CCACHE_BASEDIR", self.work).env("CCACHE_NOHASHDIR", "1");
        // Steps are counted by these lines.
        command.env("LC_ALL", "C").env("NINJA_STATUS", "[%f/%t] ");
        let spawned = Supervised::spawn(&mut command, &[]).and_then(|inner| inner);
        let mut child =
            spawned.map_err(|source| no_program(source, &program, "cmake ninja-build make"))?;
        let started = Instant::now();
        reporter.event(&Event::Status(self.name));
        let mut asked_to_stop: Option<Instant> = None;
        let status = loop {
            if let Some(status) = child.status() {
                break status;
            }
            match asked_to_stop {
                None if reporter.wants_stop() => {
                    child.terminate();
                    asked_to_stop = Some(Instant::now());
                }
                Some(since) if since.elapsed() > STOP_WITHIN => return Err(Stopped.into()),
                _ => {}
            }
            child.wait(LOOK_EVERY);
            if steps.look().with_context(of_log)? {
                let text = steps.text(started.elapsed().as_secs_f64());
                reporter.event(&Event::Status(&format!("{}: {text}", self.name)));
            }
        };
        if asked_to_stop.is_some() || reporter.wants_stop() {
            return Err(Stopped.into());
        }
        if status.success() {
            return Ok(());
        }
        let (stage, tail) = (self.name, tail(&log));
        bail!("{stage} failed ({status}); the log is {}; it ends with\n{tail}", log.display())
    }
}

/// Counts steps in a growing log.
struct Steps {
    file: File,
    /// Bytes after the last newline.
    rest: Vec<u8>,
    done: u64,
    total: Option<u64>,
}

impl Steps {
    fn after(log: &Path, bytes: u64) -> std::io::Result<Self> {
        let mut file = File::open(log)?;
        file.seek(SeekFrom::Start(bytes))?;
        Ok(Self { file, rest: Vec::new(), done: 0, total: None })
    }

    /// Reads on; returns true on a new step.
    fn look(&mut self) -> std::io::Result<bool> {
        let before = self.done;
        let mut buffer = [0; 16 << 10];
        loop {
            let length = self.file.read(&mut buffer)?;
            if length == 0 {
                return Ok(self.done != before);
            }
            self.rest.extend_from_slice(&buffer[..length]);
            while let Some(end) = self.rest.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.rest.drain(..=end).collect();
                self.take(&String::from_utf8_lossy(&line));
            }
            // Such a long line is no step.
            if self.rest.len() > 1 << 20 {
                self.rest.clear();
            }
        }
    }

    /// Steps with their rate, and the estimated remaining time.
    fn text(&self, elapsed_s: f64) -> String {
        let rate = assay_report::stats::rate(self.done as f64, elapsed_s);
        let (done, per_minute) = (self.done, rate * 60.0);
        match self.total {
            None => format!("{done} steps, {per_minute:.0}/min"),
            Some(total) => {
                let left_s = total.saturating_sub(done) as f64 / rate.max(1e-9);
                format!("{done}/{total}, {per_minute:.0}/min, {left_s:.0} s left")
            }
        }
    }

    fn take(&mut self, line: &str) {
        match step_of(line) {
            Some(Step::Of(done, total)) => (self.done, self.total) = (done, Some(total)),
            Some(Step::One) => self.done += 1,
            None => {}
        }
    }
}

/// Progress in one line of output.
#[derive(Debug, PartialEq, Eq)]
enum Step {
    Of(u64, u64),
    One,
}

/// `[12/345] Building …` of ninja, `[ 45%] Building …` of make after `CMake`, `  CXX  file.o` of make after automake.
fn step_of(line: &str) -> Option<Step> {
    let number = |text: &str| text.trim().parse::<u64>().ok();
    if let Some((inside, _)) = line.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        if let Some((done, total)) = inside.split_once('/') {
            return Some(Step::Of(number(done)?, number(total)?));
        }
        return Some(Step::Of(number(inside.strip_suffix('%')?)?, 100));
    }
    let word = line.strip_prefix("  ")?.split_ascii_whitespace().next()?;
    let is_rule = matches!(word, "CC" | "CXX" | "CCLD" | "CXXLD" | "AR" | "GEN" | "OBJCXXLD");
    is_rule.then_some(Step::One)
}

/// End of a log, preceded by the first error if that is further up.
fn tail(log: &PathBuf) -> String {
    let Ok(text) = end_of(log) else { return String::new() };
    let lines: Vec<&str> = text.lines().collect();
    let from = lines.len().saturating_sub(TAIL_LINES);
    let is_error = |line: &&str| line.contains("error:") || line.contains("CMake Error");
    let first = lines[..from].iter().find(|line| is_error(line)).copied();
    let cut = |line: &str| -> String { line.chars().take(TAIL_WIDTH).collect() };
    let shown = first.into_iter().chain(lines[from..].iter().copied());
    shown.map(|line| format!("  {}", cut(line))).collect::<Vec<_>>().join("\n")
}

/// Last part of a log, from the start of the last command if that is within it.
fn end_of(log: &PathBuf) -> std::io::Result<String> {
    let mut file = File::open(log)?;
    let length = fs::metadata(log)?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(TAIL_BYTES)))?;
    let mut bytes = Vec::new();
    file.take(TAIL_BYTES).read_to_end(&mut bytes)?;
    let text = String::from_utf8_lossy(&bytes).into_owned();
    let command = text.rfind("\n$ ").map(|at| at + 1);
    Ok(command.map_or(text.clone(), |at| text[at..].to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_of_all_builders() {
        assert_eq!(step_of("[12/345] Building CXX object a.o\n"), Some(Step::Of(12, 345)));
        assert_eq!(step_of("[ 45%] Building CXX object a.o\n"), Some(Step::Of(45, 100)));
        assert_eq!(step_of("  CXX      libbitcoin_node_a-net.o\n"), Some(Step::One));
        for line in
            ["", "[", "[a/b] x", "[x%] y", "checking for gcc... gcc", "  from a.cpp:1", "-- Found"]
        {
            assert_eq!(step_of(line), None, "{line:?}");
        }
    }

    #[test]
    fn the_end_of_a_log_and_its_first_error() {
        let folder = tempfile::tempdir().expect("a folder");
        let log = folder.path().join(LOG);
        let lines: Vec<String> = (0..40).map(|number| format!("line {number}")).collect();
        let text =
            format!("error: of before\n$ ninja\na.cpp:1: error: bad\n{}\n", lines.join("\n"));
        fs::write(&log, text).expect("writable");
        let tail = tail(&log);
        assert!(tail.starts_with("  a.cpp:1: error: bad\n  line 25\n"), "{tail}");
        assert!(tail.ends_with("  line 39") && !tail.contains("before"), "{tail}");
    }
}
