//! Commands with a time limit: captures their output and kills them on time-out.

use std::fs::File;
use std::io::{self, Read, Seek};
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use super::child::Supervised;

/// Poll interval.
const STEP: Duration = Duration::from_millis(100);

/// Runs `command` to its end, without standard input. Its output goes to files in `folder`, so no pipe fills up.
///
/// # Errors
/// When it cannot be started, its output cannot be stored, or it has not ended after `at_most` ([`io::ErrorKind::TimedOut`]).
pub fn output_within(
    command: &mut Command,
    at_most: Duration,
    folder: &Path,
) -> io::Result<Output> {
    let (mut stdout, mut stderr) = (file(folder, "stdout")?, file(folder, "stderr")?);
    command.stdin(Stdio::null()).stdout(stdout.try_clone()?).stderr(stderr.try_clone()?);
    let start = Instant::now();
    let mut child = Supervised::spawn(command, &[])??;
    loop {
        if let Some(status) = child.status() {
            return Ok(Output { status, stdout: read(&mut stdout)?, stderr: read(&mut stderr)? });
        }
        let left = at_most.saturating_sub(start.elapsed());
        if left.is_zero() {
            let text = format!("it had not ended after {} s and was killed", at_most.as_secs());
            return Err(io::Error::new(io::ErrorKind::TimedOut, text));
        }
        // Without `pidfd_open` waiting is sleeping.
        child.wait(left.min(STEP));
    }
}

fn file(folder: &Path, name: &str) -> io::Result<File> {
    File::options().read(true).write(true).create(true).truncate(true).open(folder.join(name))
}

fn read(file: &mut File) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    file.rewind()?;
    file.read_to_end(&mut bytes)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn captures_output_and_times_out() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let run = |program: &str, script: &str, at_most| {
            output_within(Command::new(program).args(["-c", script]), at_most, folder.path())
        };
        let long = Duration::from_mins(1);
        let output = run("sh", "echo out; echo err >&2; exit 3", long).expect("it runs");
        assert_eq!((output.stdout, output.stderr), (b"out\n".to_vec(), b"err\n".to_vec()));
        assert_eq!(output.status.code(), Some(3));
        let error = run("sh", "exec sleep 60", Duration::from_millis(20)).expect_err("too long");
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        let none = run("/nonexistent/cc", "", long).expect_err("there is none");
        assert_eq!(none.kind(), io::ErrorKind::NotFound);
    }
}
