//! Processes whose log is shown when a test fails.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// Longest wait for any condition. The wallet waits ten seconds before it reconnects.
const TIMEOUT: Duration = Duration::from_secs(90);
const PAUSE: Duration = Duration::from_millis(100);
/// Number of log lines that a failure shows.
const TAIL_LINES: usize = 40;

/// A process with a log. Drop kills it, and prints the log if the test is failing.
#[derive(Debug)]
pub(crate) struct Process {
    child: Child,
    name: &'static str,
    log: PathBuf,
}

impl Process {
    pub(crate) fn start(name: &'static str, command: &mut Command, log: &Path) -> Self {
        let out = File::options().create(true).append(true).open(log).expect("the log is writable");
        let err = out.try_clone().expect("a second handle of the log");
        let child = command
            .stdin(Stdio::null())
            .stdout(out)
            .stderr(err)
            .spawn()
            .unwrap_or_else(|error| panic!("cannot start {name}: {error}"));
        Self { child, name, log: log.to_owned() }
    }

    /// Panics if the process has ended.
    pub(crate) fn assert_alive(&mut self) {
        if let Ok(Some(status)) = self.child.try_wait() {
            panic!("{} ended by itself: {status}", self.name);
        }
    }

    pub(crate) fn kill(&mut self) {
        self.child.kill().expect("it is ours to kill");
        self.child.wait().expect("it is our child");
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // Both calls fail only if the process has already ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
        if thread::panicking() {
            let text = fs::read_to_string(&self.log).unwrap_or_default();
            let lines: Vec<&str> = text.lines().collect();
            let tail = &lines[lines.len().saturating_sub(TAIL_LINES)..];
            eprintln!("\n== end of the log of {}:\n{}", self.name, tail.join("\n"));
        }
    }
}

/// Polls until `look` succeeds; the last `Err` is part of the failure.
pub(crate) fn wait_for<T>(what: &str, mut look: impl FnMut() -> Result<T, String>) -> T {
    let start = Instant::now();
    loop {
        match look() {
            Ok(found) => {
                eprintln!("{what}: after {:.1} s", start.elapsed().as_secs_f64());
                return found;
            }
            Err(seen) if start.elapsed() > TIMEOUT => {
                panic!("{what}: not within {} s; last seen: {seen}", TIMEOUT.as_secs())
            }
            Err(_) => thread::sleep(PAUSE),
        }
    }
}
