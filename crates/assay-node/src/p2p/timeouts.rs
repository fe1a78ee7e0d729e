//! Timeouts and pings by the node's clock (Core `net.cpp`, `InactivityCheck`; `net_processing.cpp`,
//! `MaybeSendPing`).

use std::sync::atomic::Ordering;
use std::time::Duration;

use assay_wire::p2p::Message;

use super::peers::{Peer, Peers};
use super::rng::nonce;

impl Peers {
    /// Disconnects peers that time out: in the handshake, or without sending or receiving.
    pub(super) fn disconnect_inactive(&self) {
        let now_us = self.engine.clock().now_us();
        let patience_us = micros(self.config.peer_timeout);
        for peer in self.list() {
            let due_us = peer.connected_us.saturating_add(patience_us);
            if due_us < now_us
                && let Some(fault) = self.silence(&peer, now_us)
            {
                net!("{fault}, disconnecting peer={}", peer.id);
                peer.close();
            }
        }
    }

    fn silence(&self, peer: &Peer, now_us: u64) -> Option<String> {
        let (sent_s, received_s) = (
            peer.traffic.sent_at_s.load(Ordering::Relaxed),
            peer.traffic.received_at_s.load(Ordering::Relaxed),
        );
        if sent_s == 0 || received_s == 0 {
            let received = if received_s == 0 { ", never received from peer" } else { "" };
            let sent = if sent_s == 0 { ", never sent to peer" } else { "" };
            let patience_s = self.config.peer_timeout.as_secs();
            return Some(format!(
                "socket no message in first {patience_s} seconds{received}{sent}"
            ));
        }
        let idle_us = micros(self.config.timeouts.idle);
        let since = |time_s: u64| now_us.saturating_sub(time_s.saturating_mul(1_000_000));
        if since(sent_s) > idle_us {
            return Some(format!("socket sending timeout: {}s", since(sent_s) / 1_000_000));
        }
        if since(received_s) > idle_us {
            return Some(format!("socket receive timeout: {}s", since(received_s) / 1_000_000));
        }
        if !peer.is_ready() {
            let stage = if peer.framing.get().is_none() { "V2" } else { "version" };
            return Some(format!("{stage} handshake timeout"));
        }
        let ping = peer.facts().ping_wait(now_us)?;
        (ping > PONG_PATIENCE).then(|| format!("ping timeout: {:.6}s", ping.as_secs_f64()))
    }

    pub(super) fn ping_if_due(&self, peer: &Peer) {
        let interval_us = micros(self.config.timeouts.ping);
        let now_us = self.engine.clock().now_us();
        let is_due = peer.with_facts(|facts| {
            facts.ping.is_none() && now_us > facts.pinged_us.saturating_add(interval_us)
        });
        if is_due {
            self.ping(peer);
        }
    }

    pub(super) fn ping(&self, peer: &Peer) {
        // Nonce 0 means no ping.
        let Ok(nonce) = nonce().map(|nonce| nonce.max(1)) else { return };
        let now_us = self.engine.clock().now_us();
        peer.with_facts(|facts| {
            facts.ping = Some((nonce, now_us));
            facts.pinged_us = now_us;
        });
        peer.send(&Message::Ping(nonce));
    }

    /// Handles `pong`; `nonce` is `None` if missing.
    pub(super) fn handle_pong(&self, peer: &Peer, nonce: Option<u64>) {
        let now_us = self.engine.clock().now_us();
        let (expected, problem) = peer.with_facts(|facts| {
            let expected = facts.ping.map_or(0, |(sent, _)| sent);
            let problem = match (facts.ping, nonce) {
                (_, None) => {
                    facts.ping = None;
                    Some("Short payload")
                }
                (None, Some(_)) => Some("Unsolicited pong without ping"),
                (Some((sent, since)), Some(nonce)) if sent == nonce => {
                    facts.ping = None;
                    // The clock may have been set back.
                    let elapsed = now_us.checked_sub(since).map(Duration::from_micros);
                    if let Some(elapsed) = elapsed {
                        facts.ping_time = Some(elapsed);
                        let least = facts.ping_time_min.map_or(elapsed, |min| min.min(elapsed));
                        facts.ping_time_min = Some(least);
                    }
                    elapsed.is_none().then_some("Timing mishap")
                }
                (Some(_), Some(0)) => {
                    // Some old programs cancel a ping with nonce 0.
                    facts.ping = None;
                    Some("Nonce zero")
                }
                (Some(_), Some(_)) => Some("Nonce mismatch"),
            };
            (expected, problem)
        });
        if let Some(problem) = problem {
            let bytes = if nonce.is_some() { 8 } else { 0 };
            net!(
                "pong peer={}: {problem}, {expected:x} expected, {:x} received, {bytes} bytes",
                peer.id,
                nonce.unwrap_or(0)
            );
        }
    }
}

fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}

/// Core `net.h`, `TIMEOUT_INTERVAL`.
const PONG_PATIENCE: Duration = Duration::from_mins(20);
