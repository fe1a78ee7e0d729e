//! Child processes, all started here: after [`forbid`] none can be started, so that none survives this process.

use std::io;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::sync::{OnceLock, PoisonError, RwLock};

/// Held in shared mode during a start, and exclusively for good after [`forbid`].
static GATE: RwLock<()> = RwLock::new(());

/// Folder of [`set_scratch`].
static SCRATCH: OnceLock<PathBuf> = OnceLock::new();

/// Makes this folder the one for temporary files of child processes: they are removed with the folder of this process, even after
/// the child is killed.
pub fn set_scratch(path: &Path) {
    // One command, one folder.
    let _ = SCRATCH.set(path.to_owned());
}

/// Starts a process. After [`forbid`] it blocks.
///
/// # Errors
/// When the process cannot be started.
pub fn spawn(command: &mut Command) -> io::Result<Child> {
    let _open = GATE.read().unwrap_or_else(PoisonError::into_inner);
    command.envs(SCRATCH.get().map(|path| ("TMPDIR", path))).spawn()
}

/// Runs a process without input to its end.
///
/// # Errors
/// When the process cannot be started.
pub fn status(command: &mut Command) -> io::Result<ExitStatus> {
    spawn(command.stdin(Stdio::null()))?.wait()
}

/// Runs a process without input to its end, and collects what it prints.
///
/// # Errors
/// When the process cannot be started or its output cannot be read.
pub fn output(command: &mut Command) -> io::Result<Output> {
    let piped = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    spawn(piped)?.wait_with_output()
}

/// Waits for starts in progress, and blocks every later one. The process must then exit.
pub fn forbid() {
    std::mem::forget(GATE.write().unwrap_or_else(PoisonError::into_inner));
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;
    use std::thread;
    use std::time::Duration;

    use super::*;

    /// One test, because nothing starts in this process after it.
    #[test]
    fn processes_run_until_they_are_forbidden() {
        assert!(status(&mut Command::new("true")).expect("there is true").success());
        let said = output(Command::new("sh").args(["-c", "cat; echo said"])).expect("a shell");
        assert_eq!(said.stdout, b"said\n");
        assert!(status(&mut Command::new("/nonexistent/program")).is_err());
        forbid();
        let (send, started) = mpsc::channel();
        thread::spawn(move || send.send(status(&mut Command::new("true")).is_ok()));
        let pause = Duration::from_millis(300);
        assert_eq!(started.recv_timeout(pause), Err(mpsc::RecvTimeoutError::Timeout));
    }
}
