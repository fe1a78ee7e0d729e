//! RPC interface to the network.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use assay_engine::HeaderPlace;
use assay_wire::p2p::{Command, Endpoint, Host, Message, NetworkKind, PeerAddress};

use super::P2p;
use super::addrman::{AddrMan, Wanted};
use super::bans::Bans;
use super::dial::AddNodeError;
use super::peers::{Connection, Peers};
use super::sync::{FetchError, SyncFacts};
use super::txs::OrphanInfo;

#[derive(Clone)]
pub(crate) struct Network(pub(super) Arc<P2p>);

impl Network {
    pub(crate) fn peers(&self) -> &Peers {
        &self.0.peers
    }

    pub(crate) fn bans(&self) -> &Bans {
        &self.0.peers.bans
    }

    pub(crate) fn known_addresses(&self) -> &AddrMan {
        &self.0.addresses.known
    }

    /// Lowest announced tip height over all ready peers; `None` without peers.
    pub(crate) fn least_announced(&self) -> Option<u32> {
        let peers = self.0.peers.list().into_iter().filter(|peer| peer.is_ready());
        peers.map(|peer| peer.announced_height.load(Ordering::Relaxed)).min()
    }

    pub(crate) fn services(&self) -> u64 {
        self.0.peers.services()
    }

    pub(crate) fn has_encryption(&self) -> bool {
        self.0.peers.has_encryption()
    }

    /// Enables or disables networking (Core `net.cpp`, `SetNetworkActive`).
    pub(crate) fn set_active(&self, is_active: bool) {
        tracing::info!("SetNetworkActive: {is_active}");
        self.0.peers.set_active(is_active);
    }

    pub(crate) fn takes_transactions(&self) -> bool {
        !self.0.peers.config.blocks_only
    }

    /// Proxy for a network, and whether each connection has its own credentials.
    pub(crate) fn proxy(&self, network: NetworkKind) -> Option<(SocketAddr, bool)> {
        let config = &self.0.peers.config;
        config.proxies.of(network).map(|proxy| (proxy, config.isolates_streams))
    }

    /// Requests a block from a peer, independent of other requests.
    pub(crate) fn fetch_block(&self, id: u64, block: &HeaderPlace) -> Result<(), FetchError> {
        self.0.sync.fetch_block(id, block)
    }

    pub(crate) fn sync_facts(&self, id: u64) -> SyncFacts {
        self.0.sync.facts(id)
    }

    /// Sends an arbitrary message; `false` for an unknown peer.
    pub(crate) fn send_message(&self, id: u64, command: Command, payload: &[u8]) -> bool {
        let peer = self.0.peers.find(id);
        if let Some(peer) = &peer {
            peer.send(&Message::Other { command, payload });
        }
        peer.is_some()
    }

    pub(crate) fn ping_all(&self) {
        let peers = self.0.peers.list();
        peers.iter().filter(|peer| peer.is_ready()).for_each(|peer| self.0.peers.ping(peer));
    }

    /// Tries to connect once, for some seconds. As in Core, only the log reports the result.
    pub(crate) fn connect(&self, name: &str, connection: Connection, encrypted: bool) {
        self.0.connect(name, connection, encrypted);
    }

    pub(crate) fn add(&self, name: &str, encrypted: bool) -> Result<(), AddNodeError> {
        self.0.add_permanent(name, encrypted)
    }

    pub(crate) fn remove(&self, name: &str) -> Result<(), AddNodeError> {
        self.0.remove_permanent(name)
    }

    pub(crate) fn added(&self) -> Vec<String> {
        self.0.permanent()
    }

    pub(crate) fn own_addresses(&self) -> Vec<(Endpoint, i32)> {
        self.0.addresses.local.list()
    }

    /// Random addresses, of one network if given; `count_max` 0 for all.
    pub(crate) fn list_addresses(
        &self,
        count_max: usize,
        network: Option<NetworkKind>,
    ) -> Vec<PeerAddress> {
        self.0.addresses.listed(&Wanted { count_max, percent_max: 0, network })
    }

    pub(crate) fn can_reach(&self, network: NetworkKind) -> bool {
        self.0.addresses.reachable().contains(&network)
    }

    /// Interprets IPv6 addresses in `fc00::/8` as CJDNS if that network is reachable.
    pub(crate) fn host_of(&self, host: Host) -> Host {
        if self.can_reach(NetworkKind::Cjdns) { host.or_cjdns() } else { host }
    }

    pub(crate) fn announce_local(&self) {
        self.0.txs.announce_local();
    }

    pub(crate) fn orphans(&self) -> Vec<OrphanInfo> {
        self.0.txs.orphans()
    }

    pub(crate) fn follow_chain(&self) {
        self.0.txs.follow_chain();
    }

    /// Runs what is due as if `seconds` had passed.
    pub(crate) fn let_pass(&self, seconds: u64) {
        self.0.txs.let_pass(seconds);
        self.0.sync.check_tip_after(seconds);
    }

    /// Re-evaluates all timers after a clock change.
    pub(crate) fn clock_was_set(&self) {
        self.0.peers.disconnect_inactive();
        self.0.round_of_all();
    }
}
