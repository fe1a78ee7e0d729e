//! The planned end of a node: SIGKILL at a chosen time, independent of this program's state, or an injected panic.

use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use rustix::process::{Signal, kill_process};

use crate::process::child::peek;
use crate::process::{ProcessError, pid_of};

/// Exit status of a process after a defect (`EX_SOFTWARE`).
const DEFECT_STATUS: i32 = 70;
/// Longest time from a broken connection to the end of the process.
const DEATH_NOTICE: Duration = Duration::from_secs(3);

/// Planned end of a child process.
#[derive(Debug)]
pub(crate) enum KillPlan {
    Kill(Killer),
    /// A panic of the process with this number; the flag stays true once the process is reaped.
    Defect(u32, Cell<bool>),
}

/// A thread that sends SIGKILL at a set time. Dropping it cancels the kill.
#[derive(Debug)]
pub(crate) struct Killer {
    has_fired: Arc<AtomicBool>,
    cancel: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Killer {
    fn arm(pid: u32, delay: Duration) -> Self {
        let has_fired = Arc::new(AtomicBool::new(false));
        let fired = Arc::clone(&has_fired);
        let (cancel, cancelled) = channel::<()>();
        let thread = thread::spawn(move || {
            if cancelled.recv_timeout(delay) != Err(RecvTimeoutError::Timeout) {
                return;
            }
            fired.store(true, Ordering::SeqCst);
            if let Some(pid) = pid_of(pid) {
                // The exit status identifies a process that ended by itself just before.
                let _ = kill_process(pid, Signal::KILL);
            }
        });
        Self { has_fired, cancel: Some(cancel), thread: Some(thread) }
    }

    fn has_fired(&self) -> bool {
        self.has_fired.load(Ordering::SeqCst)
    }
}

impl Drop for Killer {
    fn drop(&mut self) {
        self.cancel = None;
        if let Some(thread) = self.thread.take() {
            // A panic there is a bug here and has been printed.
            let _ = thread.join();
        }
    }
}

impl KillPlan {
    /// Kills the unreaped child process `pid` after `delay`.
    pub(crate) fn kill(pid: u32, delay: Duration) -> Self {
        Self::Kill(Killer::arm(pid, delay))
    }

    /// Expects the child process `pid` to end by a panic.
    pub(crate) fn defect(pid: u32) -> Self {
        Self::Defect(pid, Cell::new(false))
    }

    /// True if it has ended by now; does not reap it.
    pub(crate) fn has_come_already(&self) -> bool {
        match self {
            Self::Kill(killer) => killer.has_fired(),
            Self::Defect(pid, has_come) => {
                // Without a status the child was reaped; the earlier observation holds.
                let status = peek(*pid).and_then(|status| status.exit_status());
                has_come.set(has_come.get() || status == Some(DEFECT_STATUS));
                has_come.get()
            }
        }
    }

    /// True if it explains a broken connection: a process closes its connections shortly before its end is visible.
    pub(crate) fn has_come(&self) -> bool {
        let start = Instant::now();
        while !self.has_come_already() {
            if matches!(self, Self::Kill(_)) || start.elapsed() > DEATH_NOTICE {
                return false;
            }
            thread::sleep(Duration::from_millis(2));
        }
        true
    }

    /// True if it explains this end of the process.
    pub(crate) fn has_come_as(&self, error: &ProcessError) -> bool {
        match (self, error) {
            (Self::Kill(killer), ProcessError::Exited { .. }) => killer.has_fired(),
            (Self::Defect(..), ProcessError::Exited { code, .. }) => *code == Some(DEFECT_STATUS),
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::ExitStatusExt;
    use std::process::Command;

    use super::*;

    #[test]
    fn kills_in_time_or_not_at_all() {
        let mut child = Command::new("sleep").arg("60").spawn().expect("there is sleep");
        let killer = KillPlan::kill(child.id(), Duration::from_mins(1));
        assert!(!killer.has_come_already());
        drop(killer);
        assert!(child.try_wait().expect("a child").is_none(), "it lives");
        let killer = KillPlan::kill(child.id(), Duration::ZERO);
        assert_eq!(child.wait().expect("a child").signal(), Some(9));
        assert!(killer.has_come_already());
    }

    #[test]
    fn only_the_defect_status_counts() {
        for (status, expected) in [("70", true), ("0", false), ("1", false)] {
            let mut child = Command::new("sh")
                .args(["-c", &format!("exit {status}")])
                .spawn()
                .expect("a shell");
            let defect = KillPlan::defect(child.id());
            while peek(child.id()).is_none() {
                thread::sleep(Duration::from_millis(1));
            }
            assert_eq!(defect.has_come_already(), expected, "{status}");
            child.wait().expect("it is our child");
            assert_eq!(defect.has_come_already(), expected, "{status}, waited for");
        }
    }
}
