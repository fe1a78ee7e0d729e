//! Text of a snapshot.

use std::fmt::Write as _;
use std::time::Duration;

use assay_report::number::count;
use indicatif::{DecimalBytes, HumanDuration};

use super::snapshot::{Peer, Snapshot};

/// Changes between two snapshots, per second.
struct Rates {
    blocks: f64,
    received: f64,
    sent: f64,
}

impl Rates {
    fn of(now: &Snapshot, before: Option<&Snapshot>) -> Option<Self> {
        let before = before?;
        let seconds = now.at.duration_since(before.at).as_secs_f64();
        let per_s = |now: u64, before: u64| now.saturating_sub(before) as f64 / seconds.max(1e-3);
        Some(Self {
            blocks: per_s(now.chain.blocks, before.chain.blocks),
            received: per_s(now.network.received_bytes, before.network.received_bytes),
            sent: per_s(now.network.sent_bytes, before.network.sent_bytes),
        })
    }
}

/// One line, for output without a terminal.
pub(super) fn line(now: &Snapshot, before: Option<&Snapshot>) -> String {
    let mut text = format!(
        "time={} blocks={} headers={} peers={} mempool={}",
        now.time_s,
        now.chain.blocks,
        now.chain.headers,
        now.peers.len(),
        now.mempool.transactions,
    );
    if let Some(rates) = Rates::of(now, before) {
        let _ = write!(
            text,
            " blocks_per_s={:.1} received_bytes_per_s={:.0} sent_bytes_per_s={:.0}",
            rates.blocks, rates.received, rates.sent
        );
    }
    text + "\n"
}

/// A page: the node, then its peers.
pub(super) fn page(now: &Snapshot, before: Option<&Snapshot>) -> String {
    let rates = Rates::of(now, before);
    let mut text = String::new();
    head(&mut text, now, rates.as_ref());
    peers(&mut text, now, before);
    text.trim_end().to_owned()
}

fn head(text: &mut String, now: &Snapshot, rates: Option<&Rates>) {
    let Snapshot { node, chain, mempool, network, .. } = now;
    let up = duration(node.uptime_s as f64);
    let _ = writeln!(text, "{}  {}  up {up}", plain(&node.user_agent), chain.name);
    let behind = chain.headers.saturating_sub(chain.blocks);
    let state = if chain.initial_block_download {
        format!("syncing, {:.2} %", 100.0 * chain.progress)
    } else {
        "synced".to_owned()
    };
    let age = duration(now.time_s.saturating_sub(chain.tip_time_s) as f64);
    let _ = writeln!(
        text,
        "Chain    {} blocks, {} headers, {state}, tip {age} old, {} on disk",
        count(chain.blocks),
        count(chain.headers),
        bytes(chain.disk_bytes as f64),
    );
    if let Some(rates) = rates {
        let left = if behind > 0 && rates.blocks > 0.0 {
            format!(", about {} left", duration(behind as f64 / rates.blocks))
        } else {
            String::new()
        };
        let (received, sent) = (bytes(rates.received), bytes(rates.sent));
        let blocks = rates.blocks;
        let _ =
            writeln!(text, "Rates    {blocks:.1} blocks/s, {received}/s in, {sent}/s out{left}");
    }
    let _ = writeln!(
        text,
        "Mempool  {} transactions, {} vB, {} of {}, at least {:.3} sat/vB",
        count(mempool.transactions),
        count(mempool.vbytes),
        bytes(mempool.bytes as f64),
        bytes(mempool.bytes_max as f64),
        mempool.min_fee_btc_per_kvb * 1e5,
    );
    let _ = writeln!(
        text,
        "Network  {} peers ({} in, {} out), {} received, {} sent",
        now.peers.len(),
        network.inbound,
        network.outbound,
        bytes(network.received_bytes as f64),
        bytes(network.sent_bytes as f64),
    );
}

fn peers(text: &mut String, now: &Snapshot, before: Option<&Snapshot>) {
    if now.peers.is_empty() {
        return;
    }
    let _ = writeln!(
        text,
        "\n{:>6} {:<24} {:<19} {:<3} {:>8} {:>9} {:>5} {:>10} {:>10}  user agent",
        "id", "address", "connection", "", "ping", "blocks", "asked", "in/s", "out/s"
    );
    let seconds = before.map_or(0.0, |before| now.at.duration_since(before.at).as_secs_f64());
    for peer in now.peers.iter().take(PEERS_MAX) {
        let earlier = before.and_then(|before| before.peers.iter().find(|of| of.id == peer.id));
        let rate = |of: fn(&Peer) -> u64| match earlier {
            Some(earlier) => bytes(of(peer).saturating_sub(of(earlier)) as f64 / seconds.max(1e-3)),
            None => "-".to_owned(),
        };
        let ping = peer.ping_s.map_or_else(|| "-".to_owned(), |s| format!("{:.0} ms", s * 1e3));
        let blocks =
            if peer.synced_blocks < 0 { "-".to_owned() } else { peer.synced_blocks.to_string() };
        let _ = writeln!(
            text,
            "{:>6} {:<24} {:<19} {:<3} {ping:>8} {blocks:>9} {:>5} {:>10} {:>10}  {}",
            peer.id,
            plain(&peer.address),
            peer.connection,
            peer.transport.chars().take(3).collect::<String>(),
            peer.requested_blocks,
            rate(|peer| peer.received_bytes),
            rate(|peer| peer.sent_bytes),
            plain(&peer.user_agent),
        );
    }
    let more = now.peers.len().saturating_sub(PEERS_MAX);
    if more > 0 {
        let _ = writeln!(text, "and {more} more");
    }
}

/// Removes control characters: peers choose these texts, which could move the cursor.
fn plain(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { '?' } else { c }).collect()
}

fn bytes(count: f64) -> String {
    DecimalBytes(count as u64).to_string()
}

fn duration(seconds: f64) -> String {
    // The conversion fails above the age of the universe.
    let seconds = Duration::try_from_secs_f64(seconds.min(4e17)).unwrap_or_default();
    format!("{:#}", HumanDuration(seconds))
}

/// Peers that fit on a usual terminal.
const PEERS_MAX: usize = 40;

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::super::snapshot::tests::at_height;
    use super::*;

    #[test]
    fn lines_have_rates_from_the_second_on() {
        let start = Instant::now();
        let first = at_height(500, 1_000_000, start);
        let second = at_height(540, 3_000_000, start + Duration::from_secs(2));
        assert_eq!(
            line(&first, None),
            "time=1700000600 blocks=500 headers=1000 peers=1 mempool=3\n"
        );
        assert!(line(&second, Some(&first)).ends_with(
            "mempool=3 blocks_per_s=20.0 received_bytes_per_s=1000000 sent_bytes_per_s=0\n"
        ));
    }

    #[test]
    fn a_page_shows_the_node_and_its_peers() {
        let start = Instant::now();
        let first = at_height(500, 1_000_000, start);
        let second = at_height(540, 3_000_000, start + Duration::from_secs(2));
        let page = page(&second, Some(&first));
        for expected in [
            "/Satoshi:31.0.0/  regtest  up ",
            "Chain    540 blocks, 1,000 headers, syncing, 50.00 %, tip ",
            "Rates    20.0 blocks/s, 1.00 MB/s in, 0 B/s out, about 23s left",
            "Mempool  3 transactions, 700 vB, 4.00 kB of 300.00 MB, at least 0.100 sat/vB",
            "Network  1 peers (1 in, 0 out), 3.00 MB received, 10 B sent",
            "127.0.0.1:1",
            // The name of a peer must not move the cursor.
            "/other:1/?[2J",
        ] {
            assert!(page.contains(expected), "{expected} in:\n{page}");
        }
    }
}
