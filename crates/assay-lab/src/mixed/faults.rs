//! Misbehaviour reports in the nodes' logs, and connections closed by nodes.

use std::fs;

use super::net::Net;
use crate::target::Family;

/// Log lines of a node that blame a peer.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Fault {
    /// The reporting node.
    pub(super) node: String,
    pub(super) count: usize,
    pub(super) lines: Vec<String>,
}

/// Connections of one peer that a node closed.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Departure {
    /// Node that closed them.
    pub(super) by: String,
    /// Its peer.
    pub(super) from: String,
    pub(super) count: usize,
    /// Seconds from the start of the load to the first.
    pub(super) first_s: f64,
}

/// Log lines of each node that blame its peers.
pub(super) fn find(net: &Net) -> Vec<Fault> {
    let mut faults = Vec::new();
    for member in &net.members {
        let log = fs::read(&member.log).unwrap_or_default();
        let log = String::from_utf8_lossy(&log);
        let lines: Vec<&str> = blaming(&log, member.family).collect();
        if !lines.is_empty() {
            faults.push(Fault {
                node: member.name.clone(),
                count: lines.len(),
                lines: lines.iter().take(LINES).map(|line| (*line).to_owned()).collect(),
            });
        }
    }
    faults
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

pub(super) fn departures(net: &Net) -> Vec<Departure> {
    let mut all: Vec<Departure> = Vec::new();
    for ended in &net.ended {
        let (by, from) = (&net.members[ended.by].name, &net.members[ended.from].name);
        let known = all.iter_mut().find(|known| known.by == *by && known.from == *from);
        if let Some(known) = known {
            known.count += 1;
        } else {
            let first_s = ended.at.saturating_duration_since(net.started).as_secs_f64();
            all.push(Departure { by: by.clone(), from: from.clone(), count: 1, first_s });
        }
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
