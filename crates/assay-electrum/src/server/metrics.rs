//! Metrics counters.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use super::disconnect::DisconnectReason;
use super::protocol::methods::{METHODS, Method};
use crate::prometheus::Text;

/// Upper bounds of the latency buckets, microseconds.
const BUCKETS_US: [u64; 14] =
    [10, 25, 50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000, 50_000, 100_000, 500_000, 2_000_000];

#[derive(Debug, Default)]
struct MethodMetrics {
    errors: AtomicU64,
    sum_us: AtomicU64,
    count: AtomicU64,
    buckets: [AtomicU64; BUCKETS_US.len()],
}

#[derive(Debug)]
pub(super) struct Metrics {
    methods: Vec<MethodMetrics>,
    endings: [AtomicU64; DisconnectReason::ALL.len()],
    accepted: AtomicU64,
    turned_away: AtomicU64,
    bad_requests: AtomicU64,
    throttled: AtomicU64,
    refused: AtomicU64,
    received: AtomicU64,
    sent: AtomicU64,
}

impl Default for Metrics {
    fn default() -> Self {
        Self {
            methods: METHODS.iter().map(|_| MethodMetrics::default()).collect(),
            endings: std::array::from_fn(|_| AtomicU64::new(0)),
            accepted: AtomicU64::new(0),
            turned_away: AtomicU64::new(0),
            bad_requests: AtomicU64::new(0),
            throttled: AtomicU64::new(0),
            refused: AtomicU64::new(0),
            received: AtomicU64::new(0),
            sent: AtomicU64::new(0),
        }
    }
}

fn count(counter: &AtomicU64, more: u64) {
    counter.fetch_add(more, Ordering::Relaxed);
}

fn read(counter: &AtomicU64) -> u64 {
    counter.load(Ordering::Relaxed)
}

impl Metrics {
    /// Counts a call of the method at index `number` of [`METHODS`].
    pub(super) fn request(&self, number: usize, time: Duration, good: bool) {
        let method = &self.methods[number];
        let elapsed_us = time.as_micros() as u64;
        count(&method.count, 1);
        count(&method.sum_us, elapsed_us);
        count(&method.errors, u64::from(!good));
        if let Some(bucket) = BUCKETS_US.iter().position(|end| elapsed_us <= *end) {
            count(&method.buckets[bucket], 1);
        }
    }

    pub(super) fn bad_request(&self) {
        count(&self.bad_requests, 1);
    }

    pub(super) fn throttled(&self) {
        count(&self.throttled, 1);
    }

    pub(super) fn refused(&self) {
        count(&self.refused, 1);
    }

    pub(super) fn accepted(&self) {
        count(&self.accepted, 1);
    }

    pub(super) fn turned_away(&self) {
        count(&self.turned_away, 1);
    }

    pub(super) fn ended(&self, ending: DisconnectReason) {
        if let Some(at) = DisconnectReason::ALL.iter().position(|known| *known == ending) {
            count(&self.endings[at], 1);
        }
    }

    pub(super) fn received(&self, bytes: usize) {
        count(&self.received, bytes as u64);
    }

    pub(super) fn sent(&self, bytes: usize) {
        count(&self.sent, bytes as u64);
    }

    /// Appends all metrics in Prometheus' text format.
    pub(super) fn render(&self, text: &mut Text) {
        render_methods(self, text);
        for (name, help, counter) in [
            ("connections_total", "Connections accepted.", &self.accepted),
            ("connections_turned_away_total", "Connections over a limit.", &self.turned_away),
            (
                "bad_requests_total",
                "Lines that are no requests, and unknown methods.",
                &self.bad_requests,
            ),
            (
                "throttled_total",
                "Requests that waited because their client was over its budget.",
                &self.throttled,
            ),
            (
                "refused_total",
                "Requests refused because their client was over its budget.",
                &self.refused,
            ),
            ("received_bytes_total", "Bytes from clients.", &self.received),
            ("sent_bytes_total", "Bytes to clients.", &self.sent),
        ] {
            text.head(name, "counter", help);
            text.line(name, "", read(counter));
        }
        let name = "disconnections_total";
        text.head(name, "counter", "Connections that ended, by reason.");
        for (ending, counter) in DisconnectReason::ALL.iter().zip(&self.endings) {
            text.line(name, &format!("{{reason=\"{}\"}}", ending.name()), read(counter));
        }
    }
}

fn render_methods(metrics: &Metrics, text: &mut Text) {
    let used =
        || METHODS.iter().zip(&metrics.methods).filter(|(_, method)| read(&method.count) > 0);
    let label = |at: usize| {
        // A method renamed between versions is labelled with its first name.
        let method = &METHODS[at];
        format!("method=\"{}\",since=\"{}\"", method.name, method.since)
    };
    let position = |name: *const Method| {
        METHODS.iter().position(|method| std::ptr::eq(method, name)).unwrap_or(0)
    };
    text.head("errors_total", "counter", "Calls answered with an error.");
    for (method, counters) in used() {
        let label = label(position(method));
        text.line("errors_total", &format!("{{{label}}}"), read(&counters.errors));
    }
    let name = "request_seconds";
    text.head(name, "histogram", "Time that answering a call took, queues aside.");
    for (method, counters) in used() {
        let label = label(position(method));
        let mut sum = 0;
        for (end, bucket) in BUCKETS_US.iter().zip(&counters.buckets) {
            sum += read(bucket);
            let end = *end as f64 / 1e6;
            text.line("request_seconds_bucket", &format!("{{{label},le=\"{end}\"}}"), sum);
        }
        let total = read(&counters.count);
        text.line("request_seconds_bucket", &format!("{{{label},le=\"+Inf\"}}"), total);
        let seconds = read(&counters.sum_us) as f64 / 1e6;
        text.line("request_seconds_sum", &format!("{{{label}}}"), seconds);
        text.line("request_seconds_count", &format!("{{{label}}}"), total);
    }
}
