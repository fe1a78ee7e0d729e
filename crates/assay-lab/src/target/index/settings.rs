//! Settings of indexes that run next to a node.

use std::ffi::OsString;
use std::fmt::Write as _;
use std::path::Path;

use super::super::program::version_number;
use super::NodeOfIndex;
use crate::plan::{IndexPlan, Setting};
use crate::process::Ports;
use crate::target::Family;

/// User and password of the node's RPC.
fn user_and_password(credentials: &str) -> (&str, &str) {
    credentials.split_once(':').unwrap_or((credentials, ""))
}

/// See `doc/fulcrum-example-config.conf` of Fulcrum. Loopback is exempt from limits per client, and the node is polled as often
/// as Fulcrum allows in case it sends no notifications.
pub(super) fn fulcrum(
    node: &NodeOfIndex<'_>,
    dir: &Path,
    ports: &Ports,
    plan: &IndexPlan,
) -> String {
    let (user, password) = user_and_password(node.credentials);
    let mut text = format!(
        "datadir = {}\nbitcoind = 127.0.0.1:{}\nrpcuser = {user}\nrpcpassword = {password}\n\
         tcp = 127.0.0.1:{}\npeering = false\nannounce = false\npolltime = 0.5\nts_format = utc\n\
         subnets_to_exclude_from_per_ip_limits = 127.0.0.1/32\n",
        dir.display(),
        ports.rpc,
        ports.electrum,
    );
    for (name, value) in &plan.config {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{name} = {value}");
    }
    text
}

/// Since 0.11 it reads blocks over REST and no longer uses P2P.
fn takes_blocks_from_peers(version: &str) -> bool {
    let number = version_number(version);
    let mut parts = number.split('.').map(|part| part.parse().unwrap_or(0));
    (parts.next().unwrap_or(0), parts.next().unwrap_or(0)) < (0_u32, 11_u32)
}

/// See `internal/config_specification.toml` of electrs. Credentials come from the node's cookie file.
pub(super) fn electrs(
    node: &NodeOfIndex<'_>,
    version: &str,
    dir: &Path,
    ports: &Ports,
    plan: &IndexPlan,
) -> String {
    let quoted = |path: &Path| toml::Value::String(path.display().to_string()).to_string();
    let cookie = node.datadir.join("regtest").join(".cookie");
    let mut lines = vec![
        "network = \"regtest\"".to_owned(),
        format!("db_dir = {}", quoted(&dir.join("db"))),
        format!("daemon_dir = {}", quoted(node.datadir)),
        format!("cookie_file = {}", quoted(&cookie)),
        format!("daemon_rpc_addr = \"127.0.0.1:{}\"", ports.rpc),
        format!("electrum_rpc_addr = \"127.0.0.1:{}\"", ports.electrum),
        format!("monitoring_addr = \"127.0.0.1:{}\"", ports.metrics),
        "skip_block_download_wait = true".to_owned(),
        "log_filters = \"INFO\"".to_owned(),
    ];
    if takes_blocks_from_peers(version) {
        lines.push(format!("daemon_p2p_addr = \"127.0.0.1:{}\"", ports.p2p));
    }
    for (name, value) in &plan.config {
        let value = match value {
            Setting::Text(text) => toml::Value::String(text.clone()).to_string(),
            value => value.to_string(),
        };
        lines.push(format!("{name} = {value}"));
    }
    lines.join("\n") + "\n"
}

/// See `docs/environment.rst` of `ElectrumX`. Limits per client are off: the laboratory is a single client with many requests.
pub(super) fn electrumx(
    node: &NodeOfIndex<'_>,
    dir: &Path,
    ports: &Ports,
    plan: &IndexPlan,
) -> Vec<(OsString, OsString)> {
    let coin = if node.chain == "bch-regtest" || node.family == Family::Bchn {
        "BitcoinCash"
    } else {
        "Bitcoin"
    };
    let pairs = [
        ("COIN", coin.to_owned()),
        ("NET", "regtest".to_owned()),
        ("DAEMON_URL", format!("http://{}@127.0.0.1:{}/", node.credentials, ports.rpc)),
        ("DB_ENGINE", "leveldb".to_owned()),
        ("SERVICES", format!("tcp://127.0.0.1:{}", ports.electrum)),
        ("PEER_DISCOVERY", "off".to_owned()),
        ("PEER_ANNOUNCE", String::new()),
        ("COST_SOFT_LIMIT", "0".to_owned()),
        ("COST_HARD_LIMIT", "0".to_owned()),
        ("MAX_SEND", "1000000000".to_owned()),
        ("REQUEST_TIMEOUT", "3600".to_owned()),
        ("ALLOW_ROOT", "1".to_owned()),
    ];
    let mut env: Vec<(OsString, OsString)> =
        pairs.into_iter().map(|(name, value)| (name.into(), value.into())).collect();
    env.push(("DB_DIRECTORY".into(), dir.as_os_str().to_owned()));
    let set = plan.config.iter().map(|(name, value)| (name.into(), value.to_string().into()));
    env.extend(set);
    env
}
