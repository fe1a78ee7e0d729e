//! The planned end of a node: SIGKILL at a chosen time, or an injected panic.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, WaitId, WaitIdOptions, waitid};

use super::killer::Killer;
use crate::process::ProcessError;

/// Exit status of a process after a defect (`EX_SOFTWARE`).
const DEFECT_STATUS: i32 = 70;
/// Longest time from a broken connection to the end of the process.
const DEATH_NOTICE: Duration = Duration::from_secs(3);

/// Planned end of a node.
#[derive(Debug)]
pub(crate) enum KillPlan {
    Kill(Killer),
    Defect(Defect),
}

/// An injected panic of a process.
#[derive(Debug)]
pub(crate) struct Defect {
    pid: u32,
    has_come: AtomicBool,
}

impl Defect {
    /// Expects the child process `pid` to end by a panic.
    pub(crate) fn expect(pid: u32) -> Self {
        Self { pid, has_come: AtomicBool::new(false) }
    }

    /// True if the process ended with the status of a defect; does not reap it.
    fn has_ended(&self) -> bool {
        let pid = i32::try_from(self.pid).ok().and_then(Pid::from_raw);
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        // The child was reaped; the earlier observation holds.
        let status = pid.and_then(|pid| waitid(WaitId::Pid(pid), options).ok()).flatten();
        if status.is_some_and(|status| status.exit_status() == Some(DEFECT_STATUS)) {
            self.has_come.store(true, Ordering::Relaxed);
        }
        self.has_come.load(Ordering::Relaxed)
    }
}

impl KillPlan {
    /// True if it has ended by now.
    pub(crate) fn has_come_already(&self) -> bool {
        match self {
            Self::Kill(killer) => killer.has_fired(),
            Self::Defect(defect) => defect.has_ended(),
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
            (Self::Defect(_), ProcessError::Exited { code, .. }) => *code == Some(DEFECT_STATUS),
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn only_the_defect_status_counts() {
        for (status, expected) in [("70", true), ("0", false), ("1", false)] {
            let mut child = Command::new("sh")
                .args(["-c", &format!("exit {status}")])
                .spawn()
                .expect("a shell");
            let defect = Defect::expect(child.id());
            while child_is_running(&defect) {
                thread::sleep(Duration::from_millis(1));
            }
            assert_eq!(defect.has_ended(), expected, "{status}");
            child.wait().expect("it is our child");
            assert_eq!(defect.has_ended(), expected, "{status}, waited for");
        }
    }

    fn child_is_running(defect: &Defect) -> bool {
        let pid = Pid::from_raw(defect.pid as i32).expect("a process");
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        waitid(WaitId::Pid(pid), options).expect("our child").is_none()
    }
}
