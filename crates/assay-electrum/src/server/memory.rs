//! Bound on the server memory that clients can use.

use super::config::Limits;
use super::limits::client_budget::{ABSENT_BYTES, ABSENT_MAX};
use super::net::send_queue::ALWAYS_ALLOWED;
use super::snapshot::merkle::CACHE_BYTES_MAX;

/// Buffers of a light connection: read buffer, a few responses, session, and TLS state.
const IDLE_CONNECTION_BYTES: usize = (64 << 10) + ALWAYS_ALLOWED;
/// A subscription: entries in the client's map, the script's list and the set of watched scripts, with spare capacity.
const SUBSCRIPTION_BYTES: usize = 768;
/// Memory of a worker per entry of a response: the entry itself and its slot in a list or set.
const ENTRY_BYTES: usize = 128;

impl Limits {
    /// Maximum memory that clients can use with `workers` threads, bytes; without index and mempool, which do not depend on them.
    pub fn memory_bytes_max(&self, workers: usize) -> usize {
        // Workers, and one more for light clients, hold one partial response each, and twice its size while a buffer grows.
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
