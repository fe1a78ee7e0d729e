//! End-to-end tests of the commands.

mod block_files;
mod builds;
mod chain;
mod cli;
mod emit;
mod from_snapshot;
mod index;
mod mempool;
mod network;
mod panics;
mod publish;
mod resume;
mod shard;
mod signals;
mod top;
mod validate;
mod wallet;

use std::net::{SocketAddr, TcpListener};
use std::process::{Child, Command, Output};

use serde_json::Value;

/// The program with these arguments, and without the variables that change what it does.
fn command(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_assay"));
    command.args(arguments).env("COLUMNS", "100");
    for name in ["BACKEND", "EXACT_NEAR_TIP", "PEER_KERNEL", "RPC_PASSWORD", "SAMPLE_SIGNATURES"] {
        command.env_remove(format!("ASSAY_{name}"));
    }
    command.env_remove("ASSAY_TEST_DATA");
    command
}

fn assay(arguments: &[&str]) -> Output {
    command(arguments).output().expect("the program starts")
}

fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).expect("text")
}

fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).expect("text")
}

fn json(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|error| panic!("{error}: {}", stderr(output)))
}

/// The JSON that a successful command prints.
fn good(output: &Output) -> Value {
    assert_eq!(output.status.code(), Some(0), "{}", stderr(output));
    json(output)
}

/// Checks for a usage error: exit status 2, nothing on standard output, and this text in the message, which is returned.
fn rejects(arguments: &[&str], message: &str) -> String {
    let output = assay(arguments);
    let said = stderr(&output);
    assert_eq!(output.status.code(), Some(2), "{arguments:?}: {said}");
    assert_eq!(stdout(&output), "", "{arguments:?}");
    assert!(said.contains(message), "{arguments:?}: {said}");
    said
}

/// Distinct free addresses, all bound until the last one is found.
fn free_addresses<const N: usize>() -> [SocketAddr; N] {
    let listeners = [(); N].map(|()| TcpListener::bind("127.0.0.1:0").expect("a free port"));
    listeners.map(|listener| listener.local_addr().expect("bound"))
}

/// A child process that is killed on drop.
struct Guard(Child);

impl Drop for Guard {
    fn drop(&mut self) {
        // Both calls fail only if the process has already ended.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
