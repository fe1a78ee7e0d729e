//! Libraries written in Rust and C, and thread pools, as a program that works and times itself when it is told to: lines of
//! JSON on standard input, an answer to each on standard output (README.md).

use std::io::{BufRead as _, Write as _};
use std::process::ExitCode;

use assay_peer_pairing::{SUBJECTS, Session, subject};

#[expect(clippy::print_stderr, reason = "the only place that tells of a wrong call")]
fn main() -> ExitCode {
    let name = std::env::args().nth(1).unwrap_or_default();
    let Some(subject) = subject(&name) else {
        eprintln!("assay-peer-pairing: say which subject: {}", SUBJECTS.join(", "));
        return ExitCode::from(2);
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
