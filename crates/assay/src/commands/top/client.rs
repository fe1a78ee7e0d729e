//! Finds a node as `bitcoin-cli` does, and calls it.

use std::fs;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, bail};
use assay_lab::process::rpc::Client;
use serde_json::Value;

use crate::bitcoind::ClientSettings;
use crate::cli::TopArguments;

/// Client of the node that the arguments name.
pub(super) fn find(arguments: &TopArguments) -> anyhow::Result<Client> {
    let (chain, datadir) = (arguments.chain.as_deref(), arguments.datadir.as_deref());
    let settings = ClientSettings::read(chain, datadir)?;
    let default = SocketAddr::from((Ipv4Addr::LOCALHOST, settings.rpc_port));
    let given = arguments.rpc_user.clone().zip(arguments.rpc_password.clone());
    let credentials = match given.or(settings.password) {
        Some((user, password)) => format!("{user}:{password}"),
        None => cookie(&settings.cookie)?,
    };
    let address = arguments.rpc.unwrap_or(default);
    Ok(Client::limited(address, &credentials, Some(TIMEOUT), ANSWER_BYTES_MAX))
}

/// Calls methods without arguments and returns their results; null for methods about peers if P2P is disabled.
pub(super) fn call<const N: usize>(
    client: &Client,
    methods: [&str; N],
) -> anyhow::Result<[Value; N]> {
    let url = client.url();
    let calls = methods.iter().map(|method| (*method, "[]"));
    let answers = client.batch(calls).with_context(|| format!("{url}: cannot ask the node"))?;
    let mut results = methods.map(|_| Value::Null);
    for ((result, method), answer) in results.iter_mut().zip(methods).zip(answers) {
        match answer {
            Ok(value) => *result = value,
            // P2P may be disabled.
            Err((PEERS_DISABLED, _)) => {}
            Err((code, message)) => bail!("{url}: {method}: error {code}: {message}"),
        }
    }
    Ok(results)
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
