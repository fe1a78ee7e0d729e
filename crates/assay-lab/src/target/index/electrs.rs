//! electrs, an index next to a node.

use std::path::Path;

use super::super::program::version_number;
use super::NodeOfIndex;
use crate::plan::{IndexPlan, Setting};
use crate::process::Ports;

/// Since 0.11 it reads blocks over REST and no longer uses P2P.
fn takes_blocks_from_peers(version: &str) -> bool {
    let number = version_number(version);
    let mut parts = number.split('.').map(|part| part.parse().unwrap_or(0));
    (parts.next().unwrap_or(0), parts.next().unwrap_or(0)) < (0_u32, 11_u32)
}

/// See `internal/config_specification.toml` of electrs. Credentials come from the node's cookie file.
pub(super) fn config(
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
