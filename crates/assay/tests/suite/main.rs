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
use std::path::Path;
use std::process::{Child, Command, Output};
use std::time::Duration;

use assay_node::{Node, NodeConfig};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
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

/// The program with the words of a line as arguments.
fn line(words: &str) -> Output {
    assay(&words.split_whitespace().collect::<Vec<_>>())
}

/// Forges a chain of `bitcoin-scaling` into a folder; returns the output.
fn forge(chain: &str, flags: &str) -> Value {
    good(&line(&format!("chain forge bitcoin-scaling {flags} --out {chain} --json")))
}

/// Configuration of a node in this process, on regtest, with RPC on a free port.
fn node_config(dir: &Path) -> NodeConfig {
    let mut config = NodeConfig::new("regtest", dir).expect("a known chain");
    config.rpc.bind = vec!["127.0.0.1:0".parse().expect("an address")];
    config.log = None;
    config.handle_signals = false;
    config
}

fn stop(node: Node) {
    node.stop_handle().stop();
    node.wait().expect("the node stops");
}

#[derive(Clone, Debug)]
struct Rpc {
    url: String,
    agent: ureq::Agent,
    authorization: String,
}

impl Rpc {
    /// With credentials as `user:password`.
    fn new(address: SocketAddr, credentials: &str) -> Self {
        let config = ureq::Agent::config_builder()
            .proxy(None)
            .http_status_as_error(false)
            .timeout_global(Some(Duration::from_secs(90)));
        let authorization = format!("Basic {}", STANDARD.encode(credentials.trim()));
        let agent = config.build().new_agent();
        Self { url: format!("http://{address}/"), agent, authorization }
    }

    /// Result or error of a method; the outer `Err` describes a call without an answer.
    fn try_call(&self, method: &str, params: &Value) -> Result<Result<Value, Value>, String> {
        let body = serde_json::json!({"id": 1, "method": method, "params": params}).to_string();
        let request = self.agent.post(&self.url).header("Authorization", &self.authorization);
        let answer = request.header("Content-Type", "application/json").send(body);
        let answer = answer.map_err(|error| format!("{method}: {error}"))?;
        let text = answer.into_body().with_config().limit(64 << 20).read_to_string();
        let text = text.map_err(|error| format!("{method}: {error}"))?;
        let mut reply: Value =
            serde_json::from_str(&text).map_err(|error| format!("{method}: {error}: {text}"))?;
        Ok(match reply["error"].take() {
            Value::Null => Ok(reply["result"].take()),
            error => Err(error),
        })
    }

    /// The same; errors of the method are described, too.
    fn call(&self, method: &str, params: &Value) -> Result<Value, String> {
        self.try_call(method, params)?.map_err(|error| format!("{method}: {error}"))
    }

    /// Calls a method that must succeed.
    fn must(&self, method: &str, params: &Value) -> Value {
        self.call(method, params).unwrap_or_else(|error| panic!("{error}"))
    }
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
