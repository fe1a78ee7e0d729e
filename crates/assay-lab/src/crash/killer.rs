//! Kills a process at a time chosen in advance, independent of this program's state.

use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// A thread that sends SIGKILL at a set time. Dropping it cancels the kill.
#[derive(Debug)]
pub(crate) struct Killer {
    shared: Arc<(Mutex<State>, Condvar)>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug, Default)]
struct State {
    called_off: bool,
    fired: bool,
}

impl Killer {
    /// Kills the unreaped child process `pid` after `delay`.
    pub(crate) fn arm(pid: u32, delay: Duration) -> Self {
        let shared = Arc::<(Mutex<State>, Condvar)>::default();
        let theirs = Arc::clone(&shared);
        let deadline = Instant::now() + delay;
        let thread = thread::spawn(move || wait_and_kill(pid, deadline, &theirs));
        Self { shared, thread: Some(thread) }
    }

    pub(crate) fn has_fired(&self) -> bool {
        self.shared.0.lock().unwrap_or_else(PoisonError::into_inner).fired
    }

    fn end(&mut self) {
        self.shared.0.lock().unwrap_or_else(PoisonError::into_inner).called_off = true;
        self.shared.1.notify_all();
        if let Some(thread) = self.thread.take() {
            // A panic there is a bug here and has been printed.
            let _ = thread.join();
        }
    }
}

impl Drop for Killer {
    fn drop(&mut self) {
        self.end();
    }
}

fn wait_and_kill(pid: u32, deadline: Instant, (state, changed): &(Mutex<State>, Condvar)) {
    let mut state = state.lock().unwrap_or_else(PoisonError::into_inner);
    while !state.called_off {
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            state.fired = true;
            let pid = i32::try_from(pid).ok().and_then(rustix::process::Pid::from_raw);
            if let Some(pid) = pid {
                // The exit status identifies a process that ended by itself just before.
                let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
            }
            return;
        }
        state = changed.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::process::ExitStatusExt;
    use std::process::Command;

    #[test]
    fn kills_in_time_or_not_at_all() {
        let mut child = Command::new("sleep").arg("60").spawn().expect("there is sleep");
        let killer = Killer::arm(child.id(), Duration::from_mins(1));
        assert!(!killer.has_fired());
        drop(killer);
        assert!(child.try_wait().expect("a child").is_none(), "it lives");
        let killer = Killer::arm(child.id(), Duration::ZERO);
        assert_eq!(child.wait().expect("a child").signal(), Some(9));
        assert!(killer.has_fired());
    }
}
