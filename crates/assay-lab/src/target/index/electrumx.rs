//! `ElectrumX`, an index next to a node.

use std::ffi::OsString;
use std::path::Path;

use super::NodeOfIndex;
use crate::plan::IndexPlan;
use crate::process::Ports;
use crate::target::Family;

/// See `docs/environment.rst` of `ElectrumX`. Limits per client are off: the laboratory is a single client with many requests.
pub(super) fn env(
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
