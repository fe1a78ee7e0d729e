//! A child process on chosen cores, awaited without polling, with its resource usage.

use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use anyhow::Context as _;
use assay_report::child;
use rustix::process::{Signal, WaitId, WaitIdOptions, WaitIdStatus, kill_process, waitid};
use serde::{Deserialize, Serialize};
use wait4::{ResUse, Wait4};

use super::{cores, pid_of};

/// Resource usage of a process, as the system reports it at its end.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Usage {
    /// Wall time from before its start until after its end.
    pub wall_s: f64,
    /// CPU time of all its threads in user mode.
    pub user_s: f64,
    /// CPU time of all its threads in the kernel.
    pub system_s: f64,
    pub rss_bytes_max: u64,
}

impl Usage {
    /// CPU time of all its threads.
    pub fn cpu_s(&self) -> f64 {
        self.user_s + self.system_s
    }
}

/// Status of a child process that has ended and was not reaped; it stays so.
pub(crate) fn peek(id: u32) -> Option<WaitIdStatus> {
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    waitid(WaitId::Pid(pid_of(id)?), options).ok()?
}

/// A command of a program with its first arguments.
pub(crate) fn command_of(words: &[OsString]) -> Command {
    let (program, args) = words.split_at(words.len().min(1));
    let mut command = Command::new(program.first().unwrap_or(&OsString::new()));
    command.args(args);
    command
}

/// A child. Dropping it kills the process.
#[derive(Debug)]
pub(crate) struct Supervised {
    /// `None` once its end was observed.
    child: Option<Child>,
    id: u32,
    start: Instant,
    end: Option<(ExitStatus, Usage)>,
}

impl Supervised {
    /// Starts `command` on these cores; on any if empty. The outer error is that of setting the cores.
    pub(crate) fn spawn(command: &mut Command, cores: &[usize]) -> io::Result<io::Result<Self>> {
        let start = Instant::now();
        let spawned = if cores.is_empty() {
            child::spawn(command)
        } else {
            // A process inherits the cores of the starting thread.
            cores::on(cores, || child::spawn(command))?
        };
        Ok(spawned.map(|child| Self { id: child.id(), child: Some(child), start, end: None }))
    }

    /// Starts `command` without input on these cores, on any if empty; its output goes to `log`.
    pub(crate) fn logged(
        command: &mut Command,
        cores: &[usize],
        log: &Path,
    ) -> anyhow::Result<Self> {
        let create = || File::create(log).and_then(|out| Ok((out.try_clone()?, out)));
        let (err, out) = create().with_context(|| format!("cannot write {}", log.display()))?;
        command.stdin(Stdio::null()).stdout(out).stderr(err);
        Self::spawn(command, cores)
            .with_context(|| format!("cannot run on cores {cores:?}"))?
            .with_context(|| format!("cannot start {}", command.get_program().display()))
    }

    pub(crate) const fn id(&self) -> u32 {
        self.id
    }

    pub(crate) fn status(&mut self) -> Option<ExitStatus> {
        if self.child.is_some()
            && peek(self.id).is_some()
            && let Some(child) = self.child.take()
        {
            // Returns at once, and is the only call with resource usage.
            let ResUse { status, rusage } = child.wait4().ok()?;
            let usage = Usage {
                wall_s: self.start.elapsed().as_secs_f64(),
                user_s: rusage.utime.as_secs_f64(),
                system_s: rusage.stime.as_secs_f64(),
                rss_bytes_max: rusage.maxrss,
            };
            self.end = Some((status, usage));
        }
        self.end.map(|(status, _)| status)
    }

    /// Resource usage, once its end was observed.
    pub(crate) fn usage(&self) -> Option<Usage> {
        self.end.map(|(_, usage)| usage)
    }

    /// Waits until it ends, up to `at_most`.
    pub(crate) fn wait(&self, at_most: Duration) {
        #[cfg(target_os = "linux")]
        if self.child.is_some() && self.wait_for_end(at_most).is_ok() {
            return;
        }
        std::thread::sleep(at_most);
    }

    #[cfg(target_os = "linux")]
    fn wait_for_end(&self, at_most: Duration) -> io::Result<()> {
        use rustix::event::{PollFd, PollFlags, Timespec, poll};
        use rustix::process::{PidfdFlags, pidfd_open};
        let pid = pid_of(self.id).ok_or(io::ErrorKind::NotFound)?;
        let end = pidfd_open(pid, PidfdFlags::empty())?;
        let timeout = Timespec::try_from(at_most).map_err(io::Error::other)?;
        poll(&mut [PollFd::new(&end, PollFlags::IN)], Some(&timeout))?;
        Ok(())
    }

    /// Sends SIGTERM.
    pub(crate) fn terminate(&self) {
        if let (Some(pid), Some(_)) = (pid_of(self.id), &self.child) {
            // A process that has ended needs no signal.
            let _ = kill_process(pid, Signal::TERM);
        }
    }
}

impl Drop for Supervised {
    fn drop(&mut self) {
        if self.status().is_some() {
            return;
        }
        let Some(mut child) = self.child.take() else { return };
        // Both fail only if the process has ended, which is the goal.
        let _ = child.kill();
        let _ = child.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str, cores: &[usize]) -> Supervised {
        let spawned = Supervised::spawn(Command::new("sh").args(["-c", script]), cores);
        spawned.expect("these cores are there").expect("there is a shell")
    }

    fn to_the_end(mut child: Supervised) -> (ExitStatus, Usage) {
        while child.status().is_none() {
            child.wait(Duration::from_secs(1));
        }
        child.end.expect("it ended")
    }

    #[test]
    fn the_account_of_a_process() {
        let work = "i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done; exit 3";
        let allowed = cores::allowed().expect("the system tells");
        let (status, usage) = to_the_end(shell(work, &allowed));
        assert_eq!(status.code(), Some(3));
        assert!(usage.cpu_s() > 0.0 && usage.cpu_s() < usage.wall_s * 2.0, "{usage:?}");
        assert!(usage.rss_bytes_max > 100_000, "{usage:?}");
    }

    #[test]
    fn waiting_ends_with_the_process() {
        let mut child = shell("exit 0", &[]);
        let start = Instant::now();
        child.wait(Duration::from_mins(1));
        if cfg!(target_os = "linux") {
            assert!(start.elapsed() < Duration::from_secs(30), "{:?}", start.elapsed());
        }
        assert!(child.status().expect("it ended").success() && child.usage().is_some());
        child.terminate();
    }

    #[test]
    fn rejects_missing_cores() {
        let spawned = Supervised::spawn(&mut Command::new("true"), &[100_000]);
        assert!(spawned.is_err());
        let spawned = Supervised::spawn(&mut Command::new("/nonexistent/program"), &[]);
        assert!(spawned.expect("any cores").is_err());
    }
}
