//! Stops targets that outlived a killed laboratory: they lock their data folders and use CPU time of later runs.
//!
//! A file next to each target's log identifies its process while it runs. The next laboratory in the same folder, of which only
//! one works at a time, stops the remaining processes. A process is identified by pid and start time, because pids are reused.

use std::fs;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Signal, kill_process};

use super::{pid_of, sample};

/// Extension of such files.
const EXTENSION: &str = "pid";
/// Time limit of a clean end before the target is killed.
const PATIENCE: Duration = Duration::from_secs(10);
const PAUSE: Duration = Duration::from_millis(20);

/// The file of a running target, removed at its end.
#[derive(Debug)]
pub(super) struct Mark {
    path: PathBuf,
}

impl Mark {
    /// Writes the file next to a log. A failure only prevents the detection of an orphan.
    pub(super) fn write(log: &Path, id: u32) -> Self {
        let path = log.with_extension(EXTENSION);
        if let Some(started) = sample::started_ticks(id) {
            let _ = fs::write(&path, format!("{id} {started}\n"));
        }
        Self { path }
    }
}

impl Drop for Mark {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
    }
}

/// A process with its start time in clock ticks since boot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Process {
    id: u32,
    started: u64,
}

impl Process {
    fn parse(text: &str) -> Option<Self> {
        let (id, started) = text.trim().split_once(' ')?;
        Some(Self { id: id.parse().ok()?, started: started.parse().ok()? })
    }

    fn is_there(self) -> bool {
        sample::started_ticks(self.id) == Some(self.started)
    }

    /// Stops it cleanly, or kills it after the time limit.
    fn end(self) {
        let Some(pid) = pid_of(self.id) else { return };
        for signal in [Signal::TERM, Signal::KILL] {
            let start = Instant::now();
            if self.is_there() {
                let _ = kill_process(pid, signal);
            }
            while self.is_there() && start.elapsed() < PATIENCE {
                thread::sleep(PAUSE);
            }
        }
    }
}

/// Stops the processes that belong to the logs in `folder`; returns the names of those still running.
pub(crate) fn end_all(folder: &Path) -> Vec<String> {
    let paths = fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    let mut ended = Vec::new();
    for path in paths.filter(|path| path.extension().is_some_and(|end| end == EXTENSION)) {
        let process = fs::read_to_string(&path).ok().and_then(|text| Process::parse(&text));
        if let Some(process) = process.filter(|process| process.is_there()) {
            process.end();
            let name = path.file_stem().unwrap_or_default().to_string_lossy();
            ended.push(format!("{name} (process {})", process.id));
        }
        let _ = fs::remove_file(&path);
    }
    ended.sort();
    ended
}

#[cfg(test)]
mod tests {
    use std::process::{Child, Command};

    use super::*;

    fn sleeper() -> Child {
        Command::new("sleep").arg("600").spawn().expect("there is sleep")
    }

    #[test]
    fn stops_only_orphans() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let (mut left, mut other) = (sleeper(), sleeper());
        let log = |name: &str| folder.path().join(name);
        // As if killed: the file remains.
        std::mem::forget(Mark::write(&log("node-1.source.log"), left.id()));
        // The pid now belongs to another process.
        fs::write(log("node-2.pid"), format!("{} 7", other.id())).expect("writable");
        fs::write(log("node-3.pid"), "torn").expect("writable");
        fs::write(log("node-4.log"), "a log").expect("writable");
        let ended = thread::scope(|scope| {
            // Without a wait it would remain a zombie, which counts as ended.
            scope.spawn(|| left.wait().expect("it ends"));
            end_all(folder.path())
        });
        assert_eq!(ended, [format!("node-1.source (process {})", left.id())]);
        assert_eq!(other.try_wait().expect("a child"), None, "it goes on");
        other.kill().expect("there");
        other.wait().expect("it ends");
        let names: Vec<_> = fs::read_dir(folder.path()).expect("there").flatten().collect();
        assert_eq!(names.len(), 1, "{names:?}");
    }

    #[test]
    fn a_mark_goes_with_its_process() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let mut child = sleeper();
        let mark = Mark::write(&folder.path().join("a.log"), child.id());
        let text = fs::read_to_string(folder.path().join("a.pid")).expect("a file");
        assert!(Process::parse(&text).expect("two numbers").is_there());
        drop(mark);
        assert!(!folder.path().join("a.pid").exists());
        child.kill().expect("there");
        child.wait().expect("it ends");
        assert!(!Process::parse(&text).expect("two numbers").is_there());
    }
}
