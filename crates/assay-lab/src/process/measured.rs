//! One process from start to end: wall time, CPU time and memory, on cores of one's choice.

use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

use serde::{Deserialize, Serialize};
use wait4::Wait4;

use super::tail;

/// Why a process could not be measured.
#[derive(Debug, thiserror::Error)]
pub enum MeasureError {
    /// The processor cores cannot be chosen.
    #[error("cannot run on cores {cores:?}")]
    Cores {
        /// The cores.
        cores: Vec<usize>,
        /// Why not.
        source: io::Error,
    },
    /// Its output cannot be kept.
    #[error("cannot use {}", path.display())]
    Output {
        /// The file.
        path: std::path::PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// The program cannot be started.
    #[error("cannot run {program}")]
    Spawn {
        /// The program.
        program: String,
        /// Why not.
        source: io::Error,
    },
    /// It ended with a failure.
    #[error("{program} failed ({status}); its last words:\n{log_tail}")]
    Failed {
        /// The program.
        program: String,
        /// Exit code or signal.
        status: String,
        /// End of what it wrote to standard error.
        log_tail: String,
    },
}

/// What a process took.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Usage {
    /// From before it was started until after its end.
    pub wall_s: f64,
    /// CPU time of all its threads in its own code.
    pub user_s: f64,
    /// The same in the system's code.
    pub system_s: f64,
    /// Most memory it held at a time.
    pub rss_bytes_max: u64,
}

impl Usage {
    /// CPU time of all its threads.
    pub fn cpu_s(&self) -> f64 {
        self.user_s + self.system_s
    }
}

/// Runs a command to its end on `cores`; what it prints goes to `stdout`, its complaints beside it.
///
/// # Errors
/// When it cannot be started there, or fails.
pub fn run(command: &[OsString], cores: &[usize], stdout: &Path) -> Result<Usage, MeasureError> {
    let stderr = stdout.with_extension("stderr");
    let create = |path: &Path| {
        File::create(path).map_err(|source| MeasureError::Output { path: path.to_owned(), source })
    };
    let (out, err) = (create(stdout)?, create(&stderr)?);
    let (program, args) = match command.split_first() {
        Some((program, args)) => (program.clone(), args),
        None => (OsString::new(), &[][..]),
    };
    let name = || program.to_string_lossy().into_owned();
    let spawn_error = |source| MeasureError::Spawn { program: name(), source };
    let mut command = Command::new(&program);
    command.args(args).stdin(Stdio::null()).stdout(out).stderr(err);
    let start = Instant::now();
    // A process begins on the cores of the thread that starts it.
    let child = cores::on(cores, || command.spawn())
        .map_err(|source| MeasureError::Cores { cores: cores.to_vec(), source })?
        .map_err(spawn_error)?;
    let end = child.wait4().map_err(spawn_error)?;
    let wall_s = start.elapsed().as_secs_f64();
    if !end.status.success() {
        let (status, log_tail) = (end.status.to_string(), tail(&stderr));
        return Err(MeasureError::Failed { program: name(), status, log_tail });
    }
    Ok(Usage {
        wall_s,
        user_s: end.rusage.utime.as_secs_f64(),
        system_s: end.rusage.stime.as_secs_f64(),
        rss_bytes_max: end.rusage.maxrss,
    })
}

/// Which processor cores a thread may use.
#[cfg(target_os = "linux")]
pub mod cores {
    use std::io;

    use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

    /// The cores this thread may use now.
    ///
    /// # Errors
    /// When the system does not tell.
    pub fn allowed() -> io::Result<Vec<usize>> {
        let set = sched_getaffinity(None)?;
        Ok((0..CpuSet::MAX_CPU).filter(|core| set.is_set(*core)).collect())
    }

    /// Does something with this thread, and all it starts, bound to `cores`.
    ///
    /// # Errors
    /// When the system refuses.
    pub fn on<T>(cores: &[usize], work: impl FnOnce() -> T) -> io::Result<T> {
        let before = sched_getaffinity(None)?;
        let mut wanted = CpuSet::new();
        for core in cores.iter().filter(|core| **core < CpuSet::MAX_CPU) {
            wanted.set(*core);
        }
        sched_setaffinity(None, &wanted)?;
        let result = work();
        sched_setaffinity(None, &before)?;
        Ok(result)
    }
}

/// Elsewhere processes cannot be bound to cores by a portable call, so that only all cores will do.
#[cfg(not(target_os = "linux"))]
pub mod cores {
    use std::io;

    /// All cores.
    ///
    /// # Errors
    /// When the system does not tell.
    pub fn allowed() -> io::Result<Vec<usize>> {
        Ok((0..std::thread::available_parallelism()?.get()).collect())
    }

    /// Does something, if on all cores.
    ///
    /// # Errors
    /// When `cores` are not all.
    pub fn on<T>(cores: &[usize], work: impl FnOnce() -> T) -> io::Result<T> {
        if cores != allowed()? {
            return Err(io::ErrorKind::Unsupported.into());
        }
        Ok(work())
    }
}

/// Takes a file out of the page cache, so that the next reader finds it on the disk.
///
/// # Errors
/// When the system refuses.
#[cfg(target_os = "linux")]
pub fn forget_file(path: &Path) -> io::Result<()> {
    use rustix::fs::{Advice, fadvise, fsync};
    let file = File::open(path)?;
    // Only clean pages can be dropped.
    fsync(&file)?;
    fadvise(&file, 0, None, Advice::DontNeed)?;
    Ok(())
}

/// Elsewhere there is no call for it.
///
/// # Errors
/// Always.
#[cfg(not(target_os = "linux"))]
pub fn forget_file(_: &Path) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str, dir: &Path) -> Result<Usage, MeasureError> {
        let command = ["sh", "-c", script].map(OsString::from);
        let allowed = cores::allowed().expect("the system tells");
        run(&command, &allowed, &dir.join("out"))
    }

    #[test]
    fn times_and_output() {
        let dir = tempfile::tempdir().expect("a folder");
        let usage =
            shell("i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done; echo done", dir.path())
                .expect("it runs");
        assert!(usage.cpu_s() > 0.0 && usage.cpu_s() < usage.wall_s * 2.0, "{usage:?}");
        assert!(usage.rss_bytes_max > 100_000, "{usage:?}");
        assert_eq!(std::fs::read_to_string(dir.path().join("out")).expect("a file"), "done\n");
    }

    #[test]
    fn failures_are_told_with_last_words() {
        let dir = tempfile::tempdir().expect("a folder");
        let error = shell("echo no space >&2; exit 3", dir.path()).expect_err("it fails");
        let text = error.to_string();
        assert!(text.contains("exit status: 3") && text.contains("no space"), "{text}");
        let command = [OsString::from("/nonexistent/program")];
        let allowed = cores::allowed().expect("the system tells");
        let error = run(&command, &allowed, &dir.path().join("out")).expect_err("no program");
        assert!(matches!(error, MeasureError::Spawn { .. }), "{error}");
    }

    #[test]
    fn cores_are_those_wanted_and_come_back() {
        let before = cores::allowed().expect("the system tells");
        let one = &before[..1];
        let within = cores::on(one, || cores::allowed().expect("the system tells"));
        match within {
            Ok(within) => assert_eq!(within, one),
            Err(error) => eprintln!("skipped: no affinity here ({error})"),
        }
        assert_eq!(cores::allowed().expect("the system tells"), before);
    }
}
