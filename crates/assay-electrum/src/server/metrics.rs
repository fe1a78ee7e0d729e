//! Metrics: counters, and their text with the state of the server.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use super::methods::{METHODS, Method};
use super::{DisconnectReason, Shared};
use crate::prometheus::Text;

/// Upper bounds of the latency buckets, microseconds.
const BUCKETS_US: [u64; 14] =
    [10, 25, 50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000, 50_000, 100_000, 500_000, 2_000_000];

#[derive(Debug, Default)]
struct MethodMetrics {
    errors: Counter,
    sum_us: Counter,
    count: Counter,
    buckets: [Counter; BUCKETS_US.len()],
}

#[derive(Debug, Default)]
pub(super) struct Counter(AtomicU64);

impl Counter {
    pub(super) fn add(&self, more: u64) {
        self.0.fetch_add(more, Ordering::Relaxed);
    }

    fn read(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// In the order of [`METHODS`].
#[derive(Debug)]
struct Methods(Vec<MethodMetrics>);

impl Default for Methods {
    fn default() -> Self {
        Self(METHODS.iter().map(|_| MethodMetrics::default()).collect())
    }
}

#[derive(Debug, Default)]
pub(super) struct Metrics {
    methods: Methods,
    endings: [Counter; DisconnectReason::NAMES.len()],
    pub(super) accepted: Counter,
    pub(super) turned_away: Counter,
    pub(super) bad_requests: Counter,
    pub(super) throttled: Counter,
    pub(super) refused: Counter,
    pub(super) received: Counter,
    pub(super) sent: Counter,
}

impl Metrics {
    /// Counts a call of the method at index `number` of [`METHODS`].
    pub(super) fn request(&self, number: usize, time: Duration, good: bool) {
        let method = &self.methods.0[number];
        let elapsed_us = time.as_micros() as u64;
        method.count.add(1);
        method.sum_us.add(elapsed_us);
        method.errors.add(u64::from(!good));
        if let Some(bucket) = BUCKETS_US.iter().position(|end| elapsed_us <= *end) {
            method.buckets[bucket].add(1);
        }
    }

    pub(super) fn ended(&self, ending: DisconnectReason) {
        self.endings[ending as usize].add(1);
    }

    fn render(&self, text: &mut Text) {
        self.render_methods(text);
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
            text.one(name, "counter", help, counter.read());
        }
        let name = "disconnections_total";
        text.head(name, "counter", "Connections that ended, by reason.");
        for (reason, counter) in DisconnectReason::NAMES.iter().zip(&self.endings) {
            text.line(name, &format!("{{reason=\"{reason}\"}}"), counter.read());
        }
    }

    fn render_methods(&self, text: &mut Text) {
        let label = |method: &Method| {
            // A method renamed between versions is labelled with its first name.
            format!("method=\"{}\",since=\"{}\"", method.name, method.since)
        };
        let used: Vec<_> = METHODS
            .iter()
            .zip(&self.methods.0)
            .filter(|(_, counters)| counters.count.read() > 0)
            .map(|(method, counters)| (label(method), counters))
            .collect();
        text.head("errors_total", "counter", "Calls answered with an error.");
        for (label, counters) in &used {
            text.line("errors_total", &format!("{{{label}}}"), counters.errors.read());
        }
        let name = "request_seconds";
        text.head(name, "histogram", "Time that answering a call took, queues aside.");
        for (label, counters) in &used {
            let mut sum = 0;
            for (end, bucket) in BUCKETS_US.iter().zip(&counters.buckets) {
                sum += bucket.read();
                let end = *end as f64 / 1e6;
                text.line("request_seconds_bucket", &format!("{{{label},le=\"{end}\"}}"), sum);
            }
            let total = counters.count.read();
            text.line("request_seconds_bucket", &format!("{{{label},le=\"+Inf\"}}"), total);
            let seconds = counters.sum_us.read() as f64 / 1e6;
            text.line("request_seconds_sum", &format!("{{{label}}}"), seconds);
            text.line("request_seconds_count", &format!("{{{label}}}"), total);
        }
    }
}

pub(super) fn render(shared: &Shared) -> String {
    let mut text = Text::new("assay_electrum");
    shared.metrics.render(&mut text);
    let subscriptions = &shared.subscriptions;
    let (high, normal) = shared.workers.waiting();
    let (scripts, outpoints) = subscriptions.watched.counts();
    let pool = shared.published.read(|snapshot, pool| {
        (u64::from(snapshot.tip.height), pool.len() as u64, pool.fees().vsize())
    });
    let (height, txs, vsize) = pool.unwrap_or_default();
    let load = |counter: &AtomicUsize| counter.load(Ordering::Relaxed) as u64;
    for (name, help, value) in [
        ("clients", "Open connections.", shared.accounts.connections() as u64),
        ("subscriptions", "Subscriptions to scripts and outpoints.", load(&subscriptions.count)),
        (
            "header_subscriptions",
            "Clients that subscribed to headers.",
            subscriptions.header_count() as u64,
        ),
        ("watched_scripts", "Scripts that somebody subscribed to.", scripts as u64),
        ("watched_outpoints", "Outpoints that somebody subscribed to.", outpoints as u64),
        ("queue_express", "Requests of light clients that wait for a worker.", high as u64),
        ("queue_ordinary", "Requests of other clients that wait for a worker.", normal as u64),
        (
            "notification_backlog",
            "Scripts and outpoints that changed and are still to be looked up.",
            load(&subscriptions.backlog),
        ),
        ("accounts", "Addresses whose use is remembered.", shared.accounts.len() as u64),
        (
            "output_bytes",
            "Bytes that wait to be read by clients.",
            shared.send_memory.bytes() as u64,
        ),
        ("index_height", "Height of the highest block that clients see.", height),
        ("mempool_transactions", "Unconfirmed transactions.", txs),
        ("mempool_vbytes", "Their virtual size.", vsize),
    ] {
        text.one(name, "gauge", help, value);
    }
    let help = "Scripts and outpoints looked up because something changed.";
    text.one("lookups_total", "counter", help, load(&subscriptions.lookups));
    let help = "Notifications queued.";
    text.one("notifications_total", "counter", help, load(&subscriptions.notifications));
    text.into_string()
}
