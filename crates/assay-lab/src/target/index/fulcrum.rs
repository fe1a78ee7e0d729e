//! Fulcrum, an index next to a node.

use std::fmt::Write as _;
use std::path::Path;

use super::NodeOfIndex;
use crate::plan::IndexPlan;
use crate::process::Ports;

/// User and password of the node's RPC.
fn user_and_password(credentials: &str) -> (&str, &str) {
    credentials.split_once(':').unwrap_or((credentials, ""))
}

/// See `doc/fulcrum-example-config.conf` of Fulcrum. Loopback is exempt from limits per client, and the node is polled as often
/// as Fulcrum allows in case it sends no notifications.
pub(super) fn config(
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
