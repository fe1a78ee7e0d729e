//! Calls of the RPC that concern several parts of the network.

use std::net::SocketAddr;
use std::sync::atomic::Ordering;

use assay_wire::p2p::{Command, Host, Message, NetworkKind};

use super::P2p;

impl P2p {
    /// Lowest announced tip height over all ready peers; `None` without peers.
    pub(crate) fn least_announced(&self) -> Option<u32> {
        let peers = self.peers.list().into_iter().filter(|peer| peer.is_ready());
        peers.map(|peer| peer.announced_height.load(Ordering::Relaxed)).min()
    }

    /// Proxy for a network, and whether each connection has its own credentials.
    pub(crate) fn proxy(&self, network: NetworkKind) -> Option<(SocketAddr, bool)> {
        let config = &self.peers.config;
        config.proxies.of(network).map(|proxy| (proxy, config.isolates_streams))
    }

    /// Sends an arbitrary message; `false` for an unknown peer.
    pub(crate) fn send_message(&self, id: u64, command: Command, payload: &[u8]) -> bool {
        let peer = self.peers.find(id);
        if let Some(peer) = &peer {
            peer.send(&Message::Other { command, payload });
        }
        peer.is_some()
    }

    pub(crate) fn ping_all(&self) {
        let peers = self.peers.list();
        peers.iter().filter(|peer| peer.is_ready()).for_each(|peer| self.peers.ping(peer));
    }

    /// Interprets IPv6 addresses in `fc00::/8` as CJDNS if that network is reachable.
    pub(crate) fn host_of(&self, host: Host) -> Host {
        let has_cjdns = self.addresses.reachable().contains(&NetworkKind::Cjdns);
        if has_cjdns { host.or_cjdns() } else { host }
    }

    /// Runs what is due as if `seconds` had passed.
    pub(crate) fn let_pass(&self, seconds: u64) {
        self.txs.let_pass(seconds);
        self.sync.check_tip_after(seconds);
    }

    /// Re-evaluates all timers after a clock change.
    pub(crate) fn clock_was_set(&self) {
        self.peers.disconnect_inactive();
        self.round_of_all();
    }
}
