//! Misbehaviour reports in the nodes' logs, and connections closed by nodes.

use std::fs;

use super::net::{Member, Net};
use super::proxy::Disconnect;
use crate::target::Family;

/// Nodes that blame peers in their logs, with the first such lines.
pub(super) fn blame(net: &Net) -> Vec<String> {
    let of_member = |member: &Member| {
        let log = member.node.log().and_then(|log| fs::read(log).ok()).unwrap_or_default();
        let log = String::from_utf8_lossy(&log);
        let lines: Vec<&str> = blaming(&log, member.family).collect();
        let (node, count, first) = (&member.name, lines.len(), lines.iter().take(LINES));
        let first = first.copied().collect::<Vec<_>>().join("; ");
        (count > 0).then(|| format!("{node} blames peers in {count} lines of its log: {first}"))
    };
    net.members.iter().filter_map(of_member).collect()
}

fn blaming(log: &str, family: Family) -> impl Iterator<Item = &str> {
    let words: &[&str] = match family {
        // btcd `peer.go`, `server.go`: scores, bans, and immediate disconnects.
        Family::Btcd => &["isbehaving", "anned peer", "-- disconnecting", "ban score"],
        // Core `net_processing.cpp`: `Misbehaving`, `MaybeDiscourageAndDisconnect`.
        _ => {
            &["Misbehaving: ", "not punishing", "discouraging", "imeout downloading", "is stalling"]
        }
    };
    log.lines().filter(|line| words.iter().any(|word| line.contains(word)))
}

/// Connections of one peer that a node closed, by both.
pub(super) fn departures(net: &Net) -> Vec<String> {
    let ended = |by: usize, from: usize| {
        net.ended.iter().filter(move |one| (one.by, one.from) == (by, from))
    };
    let mut all = Vec::new();
    for (at, Disconnect { by, from, at: first }) in net.ended.iter().enumerate() {
        // Only the first of a pair.
        if net.ended[..at].iter().any(|one| (one.by, one.from) == (*by, *from)) {
            continue;
        }
        let count = ended(*by, *from).count();
        let first_s = first.saturating_duration_since(net.started).as_secs_f64();
        let (by, from) = (&net.members[*by].name, &net.members[*from].name);
        all.push(format!(
            "{by} ended its connection to {from} {count} times, first after {first_s:.1} s"
        ));
    }
    all
}

/// Maximum number of kept lines per node.
const LINES: usize = 10;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blame_is_found() {
        let core = "2026-01-01T00:00:00Z [net] Misbehaving: peer=3: invalid header received\n\
                    2026-01-01T00:00:00Z [net] Disconnecting and discouraging peer 3!\n\
                    2026-01-01T00:00:00Z [net] received: inv (37 bytes) peer=3\n";
        assert_eq!(blaming(core, Family::BitcoinCore).count(), 2);
        let btcd = "2026-01-01 00:00:00.000 [WRN] PEER: Misbehaving peer 127.0.0.1:1: x -- ban score increased to 20\n\
                    2026-01-01 00:00:00.000 [INF] SYNC: New valid peer 127.0.0.1:1\n";
        assert_eq!(blaming(btcd, Family::Btcd).count(), 1);
    }
}
