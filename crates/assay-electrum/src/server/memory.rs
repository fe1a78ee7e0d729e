//! The bound on the memory that clients can make the server use.

use super::config::Limits;
use super::limits::accounts::{ABSENT_BYTES, ABSENT_MAX};
use super::net::send_queue::ALWAYS_ALLOWED;
use super::snapshot::merkle::CACHE_BYTES_MAX;

/// Buffers of a connection of light use: a reading buffer, a few answers, the session, and what TLS
/// keeps.
const IDLE_CONNECTION_BYTES: usize = (64 << 10) + ALWAYS_ALLOWED;
/// A subscription: its place with the client, with the script and in the set of watched scripts,
/// each with the unused part of a hash map.
const SUBSCRIPTION_BYTES: usize = 768;
/// What a worker holds while it answers, per entry: the entry itself and its place in a list or
/// set.
const ENTRY_BYTES: usize = 128;

impl Limits {
    /// The most memory that clients can make a server with `workers` threads use, in bytes; index
    /// and mempool aside, which do not depend on clients.
    pub fn memory_bytes_max(&self, workers: usize) -> usize {
        // A worker, and one more for light clients, holds at most one answer in the making, and
        // twice that while its buffer grows.
        let answer = 2 * self.response_bytes_max + ENTRY_BYTES * self.entries_max;
        let parts = [
            self.connections_max.saturating_mul(IDLE_CONNECTION_BYTES),
            self.request_bytes_total_max,
            self.output_bytes_total_max,
            self.subscriptions_total_max.saturating_mul(SUBSCRIPTION_BYTES),
            (workers + 1).saturating_mul(answer),
            CACHE_BYTES_MAX,
            ABSENT_MAX * ABSENT_BYTES,
        ];
        parts.into_iter().fold(0, usize::saturating_add)
    }
}
