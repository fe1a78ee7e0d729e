//! JSON-RPC client that finds a node as `bitcoin-cli` does.

use std::fs;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, bail};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use ureq::http::StatusCode;

use crate::bitcoind::ClientSettings;
use crate::cli::TopArguments;

/// One connection to a node.
pub(in super::super) struct Client {
    agent: ureq::Agent,
    pub(in super::super) url: String,
    authorization: String,
    answer_bytes_max: u64,
}

impl Client {
    /// Client of the node that the arguments name.
    ///
    /// # Errors
    /// If there are no credentials for the node.
    pub(super) fn find(arguments: &TopArguments) -> anyhow::Result<Self> {
        let (chain, datadir) = (arguments.chain.as_deref(), arguments.datadir.as_deref());
        let settings = ClientSettings::read(chain, datadir)?;
        let default = SocketAddr::from((Ipv4Addr::LOCALHOST, settings.rpc_port));
        let given = arguments.rpc_user.clone().zip(arguments.rpc_password.clone());
        let credentials = match given.or(settings.password) {
            Some((user, password)) => format!("{user}:{password}"),
            None => cookie(&settings.cookie)?,
        };
        let address = arguments.rpc.unwrap_or(default);
        Ok(Self::new(address, &credentials, TIMEOUT, ANSWER_BYTES_MAX))
    }

    pub(in super::super) fn new(
        address: SocketAddr,
        credentials: &str,
        timeout: Duration,
        answer_bytes_max: u64,
    ) -> Self {
        let agent = ureq::Agent::config_builder()
            .http_status_as_error(false)
            // Proxy variables of the environment do not apply to a node.
            .proxy(None)
            .max_redirects(0)
            .timeout_global(Some(timeout))
            .build()
            .new_agent();
        let authorization = format!("Basic {}", STANDARD.encode(credentials));
        Self { agent, url: format!("http://{address}/"), authorization, answer_bytes_max }
    }

    /// HTTP status and answer to a body.
    ///
    /// # Errors
    /// If the node is unreachable, or takes neither user nor cookie.
    pub(in super::super) fn post(&self, body: String) -> anyhow::Result<(StatusCode, Vec<u8>)> {
        let url = &self.url;
        let mut response = self
            .agent
            .post(url)
            .header("Authorization", &self.authorization)
            .header("Content-Type", "application/json")
            .send(body)
            .with_context(|| format!("{url}: cannot ask the node"))?;
        let status = response.status();
        if matches!(status.as_u16(), 401 | 403) {
            bail!("{url}: HTTP status {status}: the node does not take these credentials");
        }
        let answer = response.body_mut().with_config().limit(self.answer_bytes_max).read_to_vec();
        let answer = answer.with_context(|| format!("{url}: cannot read the answer"))?;
        Ok((status, answer))
    }

    /// Calls methods without arguments and returns their results; null for methods about peers if P2P is disabled.
    ///
    /// # Errors
    /// If the node is unreachable or returns an error.
    pub(super) fn call<const N: usize>(&self, methods: [&str; N]) -> anyhow::Result<[Value; N]> {
        let url = &self.url;
        let calls: Vec<_> = methods
            .iter()
            .enumerate()
            .map(|(id, method)| json!({"jsonrpc": "1.0", "id": id, "method": method, "params": []}))
            .collect();
        let (status, body) = self.post(Value::from(calls).to_string())?;
        let answers: Vec<Value> = serde_json::from_slice(&body).with_context(|| {
            format!("{url}: HTTP status {status}, and not an answer to a batch")
        })?;
        let mut results = methods.map(|_| Value::Null);
        for mut answer in answers {
            let id =
                answer.get("id").and_then(Value::as_u64).and_then(|id| usize::try_from(id).ok());
            let Some(id) = id.filter(|id| *id < N) else { continue };
            let error = answer.get("error").filter(|error| !error.is_null());
            // P2P may be disabled.
            if let Some(error) = error.filter(|error| error["code"] != PEERS_DISABLED) {
                bail!("{url}: {}: {error}", methods[id]);
            }
            results[id] = answer.get_mut("result").map(Value::take).unwrap_or_default();
        }
        Ok(results)
    }
}

fn cookie(path: &Path) -> anyhow::Result<String> {
    let text = fs::read_to_string(path).with_context(|| {
        format!("cannot read {}: is the node running, and is this its data folder?", path.display())
    })?;
    Ok(text.trim().to_owned())
}

/// Core `rpc/protocol.h`, `RPC_CLIENT_P2P_DISABLED`.
const PEERS_DISABLED: i64 = -31;
/// A node that is connecting blocks responds within seconds.
const TIMEOUT: Duration = Duration::from_secs(30);
/// Enough for a few hundred peers.
const ANSWER_BYTES_MAX: u64 = 64 << 20;
