//! Server metrics in text format.

use std::sync::atomic::{AtomicUsize, Ordering};

use crate::prometheus::Text;
use crate::server::shared::Shared;

pub(in crate::server) fn render(shared: &Shared) -> String {
    let mut text = Text::new("assay_electrum");
    shared.metrics.render(&mut text);
    render_state(shared, &mut text);
    text.into_string()
}

fn render_state(shared: &Shared, text: &mut Text) {
    let (high, normal) = shared.workers.waiting();
    let (headers, outpoints) = shared.subscriptions.counts();
    let pool = shared.published.read(|snapshot, pool| {
        (u64::from(snapshot.tip.height), pool.len() as u64, pool.fees().vsize())
    });
    let (height, txs, vsize) = pool.unwrap_or_default();
    let load = |counter: &AtomicUsize| counter.load(Ordering::Relaxed) as u64;
    for (name, help, value) in [
        ("clients", "Open connections.", shared.accounts.connections() as u64),
        (
            "subscriptions",
            "Subscriptions to scripts and outpoints.",
            load(&shared.subscriptions.count),
        ),
        ("header_subscriptions", "Clients that subscribed to headers.", headers as u64),
        (
            "watched_scripts",
            "Scripts that somebody subscribed to.",
            shared.subscriptions.watched().len() as u64,
        ),
        ("watched_outpoints", "Outpoints that somebody subscribed to.", outpoints as u64),
        ("queue_express", "Requests of light clients that wait for a worker.", high as u64),
        ("queue_ordinary", "Requests of other clients that wait for a worker.", normal as u64),
        (
            "notification_backlog",
            "Scripts and outpoints that changed and are still to be looked up.",
            load(&shared.subscriptions.backlog),
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
        text.head(name, "gauge", help);
        text.line(name, "", value);
    }
    let name = "lookups_total";
    text.head(name, "counter", "Scripts and outpoints looked up because something changed.");
    text.line(name, "", load(&shared.subscriptions.lookups));
    let name = "notifications_total";
    text.head(name, "counter", "Notifications queued.");
    text.line(name, "", load(&shared.subscriptions.notifications));
}
