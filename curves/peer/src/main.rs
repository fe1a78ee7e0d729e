//! Libraries written in Rust and C, and thread pools, as a program that works and times itself on
//! orders: lines of JSON on standard input, one answer each on standard output (README.md).

use std::io::{BufRead as _, Write as _};
use std::process::ExitCode;

use anyhow::{Context as _, Result};
use assay_peer_pairing::{CONSTANTINE, SUBJECTS, Session, Subject, constantine, subject};

/// The subject named by the arguments: one of this program, or Constantine with its path.
fn named() -> Result<Subject> {
    let mut arguments = std::env::args_os().skip(1);
    let name = arguments.next().unwrap_or_default();
    if name == CONSTANTINE {
        let path = arguments.next().context("say where it is: constantine LIBCONSTANTINE.SO")?;
        return constantine(path.as_ref());
    }
    let known = || format!("say which subject: {}, {CONSTANTINE} FILE", SUBJECTS.join(", "));
    name.to_str().and_then(subject).with_context(known)
}

#[expect(clippy::print_stderr, reason = "the only place that reports a wrong call")]
fn main() -> ExitCode {
    let subject = match named() {
        Ok(subject) => subject,
        Err(error) => {
            eprintln!("assay-peer-pairing: {error:#}");
            return ExitCode::from(2);
        }
    };
    let mut session = Session::new(subject);
    let mut out = std::io::stdout().lock();
    for line in std::io::stdin().lock().lines() {
        let Ok(line) = line else { break };
        if writeln!(out, "{}", session.obey(&line)).and_then(|()| out.flush()).is_err() {
            break;
        }
    }
    ExitCode::SUCCESS
}
