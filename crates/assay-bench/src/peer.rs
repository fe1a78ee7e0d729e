//! The kernel peer as a process that works when it is told to: lines of JSON both ways (`assay-peer-kernel bench`).

use std::io::{self, BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use serde::Deserialize;
use serde_json::{Value, json};

use crate::BenchError;
use crate::harness::Sample;

/// What it answers.
#[derive(Debug, Deserialize)]
struct Answer {
    error: Option<String>,
    versions: Option<String>,
    inputs: Option<usize>,
    tip: Option<String>,
    wall_ns: u64,
    cpu_ns: u64,
}

/// The running peer; it ends when this is dropped.
#[derive(Debug)]
pub(crate) struct KernelPeer {
    program: PathBuf,
    child: Child,
    /// Absent once it has been told to end.
    stdin: Option<ChildStdin>,
    stdout: BufReader<ChildStdout>,
}

impl KernelPeer {
    /// Starts it.
    pub(crate) fn start(program: &Path) -> Result<Self, BenchError> {
        let fail = |source| BenchError::Peer { program: program.to_owned(), source };
        let mut child = Command::new(program)
            .arg("bench")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(fail)?;
        let (stdin, stdout) = (child.stdin.take(), child.stdout.take());
        let stdout = stdout.ok_or_else(|| fail(io::ErrorKind::BrokenPipe.into()))?;
        let stdout = BufReader::new(stdout);
        Ok(Self { program: program.to_owned(), child, stdin, stdout })
    }

    /// What it is.
    pub(crate) fn versions(&mut self) -> Result<String, BenchError> {
        Ok(self.order(&json!({ "do": "versions" }))?.versions.unwrap_or_default())
    }

    /// Has it read a block; returns the number of inputs whose spent outputs it has.
    pub(crate) fn load(
        &mut self,
        name: &str,
        (chain, height): (&str, u32),
        block: &Path,
        prevouts: Option<&Path>,
    ) -> Result<usize, BenchError> {
        let order = json!({
            "do": "load", "name": name, "chain": chain, "height": height, "block": absolute(block)?,
            "prevouts": prevouts.map(absolute).transpose()?,
        });
        Ok(self.order(&order)?.inputs.unwrap_or_default())
    }

    /// Has it do a stage of a block so many times.
    pub(crate) fn run(
        &mut self,
        name: &str,
        stage: &str,
        times: u64,
    ) -> Result<Sample, BenchError> {
        let order = json!({ "do": "run", "name": name, "stage": stage, "times": times });
        let Answer { wall_ns, cpu_ns, .. } = self.order(&order)?;
        Ok(Sample::told(times, wall_ns, cpu_ns))
    }

    /// Has it open an empty chain.
    pub(crate) fn open(
        &mut self,
        chain: &str,
        dir: &Path,
        workers: usize,
    ) -> Result<(), BenchError> {
        let order =
            json!({ "do": "open", "chain": chain, "datadir": absolute(dir)?, "workers": workers });
        self.order(&order).map(drop)
    }

    /// Gives its chain a block, which must become the tip; returns the tip's hash too.
    pub(crate) fn submit(&mut self, block: &Path) -> Result<(Sample, String), BenchError> {
        let order = json!({ "do": "submit", "block": absolute(block)? });
        let Answer { wall_ns, cpu_ns, tip, .. } = self.order(&order)?;
        Ok((Sample::told(1, wall_ns, cpu_ns), tip.unwrap_or_default()))
    }

    fn order(&mut self, order: &Value) -> Result<Answer, BenchError> {
        let mut line = String::new();
        let talked = match &mut self.stdin {
            None => Err(io::ErrorKind::BrokenPipe.into()),
            Some(stdin) => writeln!(stdin, "{order}")
                .and_then(|()| stdin.flush())
                .and_then(|()| self.stdout.read_line(&mut line))
                .and_then(|_| serde_json::from_str(&line).map_err(io::Error::from)),
        };
        let answer: Answer =
            talked.map_err(|source| BenchError::Peer { program: self.program.clone(), source })?;
        match answer.error {
            None => Ok(answer),
            Some(detail) => Err(BenchError::PeerFailed { program: self.program.clone(), detail }),
        }
    }
}

fn absolute(path: &Path) -> Result<PathBuf, BenchError> {
    std::path::absolute(path).map_err(|source| BenchError::File { path: path.to_owned(), source })
}

impl Drop for KernelPeer {
    fn drop(&mut self) {
        // The end of its input is the order to end; what remains is to collect it.
        self.stdin = None;
        let _ = self.child.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_peer_that_is_not_there_or_says_nothing_is_an_error() {
        let error = KernelPeer::start(Path::new("/nonexistent/peer")).expect_err("there is none");
        assert!(error.to_string().contains("/nonexistent/peer"));
        // It takes the order for a name and says nothing.
        let mut mute = KernelPeer::start(Path::new("true")).expect("a program");
        assert!(mute.versions().is_err());
    }
}
