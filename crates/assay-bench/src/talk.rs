//! A process that works on request: lines of JSON both ways. Peer libraries, Bitcoin Core's kernel and other builds of this
//! program are measured this way.

use std::io::{self, BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use anyhow::{Context as _, Result};
use assay_report::child;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// A request that the program answered with an error.
#[derive(Debug, thiserror::Error)]
#[error("{} failed: {detail}", program.display())]
pub(crate) struct Failed {
    program: PathBuf,
    detail: String,
}

impl Failed {
    pub(crate) fn detail(self) -> anyhow::Error {
        anyhow::Error::msg(self.detail)
    }
}

/// The running program; stopped on drop.
#[derive(Debug)]
pub struct Talk {
    program: PathBuf,
    child: Child,
    /// `None` after the order to end.
    stdin: Option<ChildStdin>,
    stdout: BufReader<ChildStdout>,
}

impl Talk {
    /// Starts the program.
    ///
    /// # Errors
    /// When it cannot be started.
    pub fn start(program: &Path, arguments: &[String]) -> Result<Self> {
        let fail = || format!("cannot speak to {}", program.display());
        let mut command = Command::new(program);
        command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = child::spawn(&mut command).with_context(fail)?;
        let (stdin, stdout) = (child.stdin.take(), child.stdout.take());
        let stdout = BufReader::new(stdout.with_context(fail)?);
        Ok(Self { program: program.to_owned(), child, stdin, stdout })
    }

    /// Sends a request and waits for the response; a response with `error` is an error.
    ///
    /// # Errors
    /// When communication or the request fails.
    pub fn ask<T: DeserializeOwned>(&mut self, order: &impl Serialize) -> Result<T> {
        self.send(order)?;
        self.hear()
    }

    /// Waits for the next line of an answer that has several.
    ///
    /// # Errors
    /// When communication with the process fails.
    pub fn hear<T: DeserializeOwned>(&mut self) -> Result<T> {
        let fail = format!("cannot speak to {}", self.program.display());
        let answer = self.receive().with_context(|| fail.clone())?;
        if let Some(detail) = answer.get("error").and_then(Value::as_str) {
            return Err(Failed { program: self.program.clone(), detail: detail.to_owned() }.into());
        }
        serde_json::from_value(answer).context(fail)
    }

    pub(crate) fn send(&mut self, order: &impl Serialize) -> Result<()> {
        let mut line = serde_json::to_string(order)?;
        line.push('\n');
        let stdin = self.stdin.as_mut().context("its input is closed")?;
        let sent = stdin.write_all(line.as_bytes()).and_then(|()| stdin.flush());
        sent.with_context(|| format!("cannot speak to {}", self.program.display()))
    }

    fn receive(&mut self) -> io::Result<Value> {
        let mut line = String::new();
        if self.stdout.read_line(&mut line)? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        Ok(serde_json::from_str(&line)?)
    }
}

impl Drop for Talk {
    fn drop(&mut self) {
        // End of input makes it exit; the process is then reaped.
        self.stdin = None;
        let _ = self.child.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_that_are_not_there_or_say_nothing_or_complain() {
        let error = Talk::start(Path::new("/nonexistent/peer"), &[]).expect_err("there is none");
        assert!(error.to_string().contains("/nonexistent/peer"));
        let mut mute = Talk::start(Path::new("true"), &[]).expect("a program");
        assert!(mute.ask::<Value>(&"describe").is_err());
        let complaint = ["-c".to_owned(), r#"read x; echo '{"error":"no such curve"}'"#.to_owned()];
        let mut peer = Talk::start(Path::new("sh"), &complaint).expect("a program");
        let error = peer.ask::<Value>(&"prepare").expect_err("it complains");
        assert!(error.to_string().contains("no such curve"), "{error}");
    }
}
