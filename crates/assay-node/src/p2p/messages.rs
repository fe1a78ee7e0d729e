//! Message statistics by type, of one connection or of all.

use std::sync::atomic::{AtomicU64, Ordering};

use assay_wire::p2p::Command;

use crate::bip324::SHORT;

/// Message and byte counts by type, for each direction.
#[derive(Debug)]
pub(crate) struct Messages([Vec<Counters>; 2]);

#[derive(Debug, Default)]
struct Counters {
    messages: AtomicU64,
    bytes: AtomicU64,
}

/// Counts of one message type in one direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct MessageCount {
    pub(crate) name: &'static str,
    pub(crate) messages: u64,
    pub(crate) bytes: u64,
}

impl Default for Messages {
    fn default() -> Self {
        let all = || known().chain([OTHER]).map(|_| Counters::default()).collect();
        Self([all(), all()])
    }
}

impl Messages {
    pub(super) fn count(&self, was_received: bool, command: Command, bytes: usize) {
        let name = command.as_str();
        let all = &self.0[usize::from(was_received)];
        let counters = &all[known().position(|known| known == name).unwrap_or(all.len() - 1)];
        counters.messages.fetch_add(1, Ordering::Relaxed);
        counters.bytes.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    /// Types with traffic in one direction.
    pub(crate) fn list(&self, was_received: bool) -> Vec<MessageCount> {
        let names = known().chain([OTHER]);
        let counts = names.zip(&self.0[usize::from(was_received)]).map(|(name, counters)| {
            let messages = counters.messages.load(Ordering::Relaxed);
            let bytes = counters.bytes.load(Ordering::Relaxed);
            MessageCount { name, messages, bytes }
        });
        counts.filter(|count| count.messages > 0).collect()
    }
}

/// Unknown types, counted together: a peer may send arbitrarily many.
const OTHER: &str = "*other*";

/// Core `protocol.h`, `ALL_NET_MESSAGE_TYPES`.
fn known() -> impl Iterator<Item = &'static str> {
    SHORT.into_iter().filter(|name| !name.is_empty()).chain(LONG)
}

/// Types without a one-byte id.
const LONG: [&str; 7] =
    ["version", "verack", "sendaddrv2", "getaddr", "sendheaders", "wtxidrelay", "sendtxrcncl"];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_kinds_are_counted_together() {
        let messages = Messages::default();
        for (name, bytes) in [("block", 100), ("block", 50), ("nonsense", 7), ("more", 8)] {
            messages.count(true, Command::new(name), bytes);
        }
        let count = |name, messages, bytes| MessageCount { name, messages, bytes };
        assert_eq!(messages.list(true), [count("block", 2, 150), count(OTHER, 2, 15)]);
        assert!(messages.list(false).is_empty());
    }
}
