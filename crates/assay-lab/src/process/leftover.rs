//! Targets that outlive a laboratory which was killed: they hold their data folders and take CPU time from the next runs.
//!
//! Next to each target's log a file says which process it is, as long as it runs. Who works in the same folder afterwards, which
//! only one laboratory at a time does, ends those that are left. A process is known by its identifier and the time it was started
//! at: identifiers are given anew.

use std::fs;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use super::sample;

/// Ending of such a file's name.
const EXTENSION: &str = "pid";
/// How long a target may take to end in order, before it is killed.
const PATIENCE: Duration = Duration::from_secs(10);
const PAUSE: Duration = Duration::from_millis(20);

/// The file of a running target, removed when that has ended.
#[derive(Debug)]
pub(super) struct Mark {
    path: PathBuf,
}

impl Mark {
    /// Writes the file next to a log. Without it nothing but a leftover process goes unnoticed.
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

/// A process, and the start that the system has of it, in ticks since its own.
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

    /// Ends it, in order if it does not take too long.
    fn end(self) {
        let Some(pid) = i32::try_from(self.id).ok().and_then(Pid::from_raw) else { return };
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

/// Ends the processes that the logs in `folder` belong to; gives the names of those that were still there.
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
    fn what_was_left_is_ended_and_nothing_else() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let (mut left, mut other) = (sleeper(), sleeper());
        let log = |name: &str| folder.path().join(name);
        // As if killed: nothing removes the file.
        std::mem::forget(Mark::write(&log("node-1.source.log"), left.id()));
        // The identifier now belongs to another process.
        fs::write(log("node-2.pid"), format!("{} 7", other.id())).expect("writable");
        fs::write(log("node-3.pid"), "torn").expect("writable");
        fs::write(log("node-4.log"), "a log").expect("writable");
        let ended = thread::scope(|scope| {
            // A parent that does not wait for it would leave a zombie, which is taken for gone.
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
