//! P2P configuration.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use assay_engine::ChainParams;
use assay_wire::p2p::{Host, NetworkKind};

use super::dns::{Resolve, SystemResolver};

#[derive(Debug, Clone)]
#[expect(clippy::struct_excessive_bools, reason = "each is an option of its own")]
pub struct P2pConfig {
    /// Listening addresses; loopback unless [`P2pConfig::expose`] is set.
    pub binds: Vec<SocketAddr>,
    /// Listening addresses whose peers have permissions, in the notation of Core's `-whitebind`: `[permissions@]address:port`.
    pub white_binds: Vec<String>,
    /// Accept inbound connections (Core's `-listen`).
    pub listens: bool,
    /// Listening addresses for connections forwarded by Tor.
    pub onion_binds: Vec<SocketAddr>,
    /// Accept connections from other machines.
    pub expose: bool,
    pub peers_max: usize,
    /// Limit of inbound peers; `None` for all.
    pub inbound_max: Option<usize>,
    /// Share of inbound slots for transaction relay, percent, at most 100 (Core's `-inboundrelaypercent`).
    pub inbound_relay_percent: usize,
    /// Limit of peers per IPv4 address or IPv6 /64; `None` for a quarter, at least four.
    pub peers_per_address_max: Option<usize>,
    /// Upload limit for all peers together, bytes per second; `None` for no limit.
    pub rate: Option<u64>,
    /// Upload target, bytes per day, 0 for no limit (Core's `-maxuploadtarget`). Once used up, of blocks only new ones are served.
    pub upload_target_bytes: u64,
    /// Initial state of networking (Core's `-networkactive`).
    pub is_active: bool,
    /// Serve Bloom filters (BIP37) and mempool requests (BIP35) to all peers: Core's `-peerbloomfilters`.
    pub bloom_filters: bool,
    /// Serve block filters (Core's `-peerblockfilters`); requires the filter index.
    pub serves_filters: bool,
    /// Comments in the user agent (BIP14).
    pub user_agent_comments: Vec<String>,
    /// Only outbound peers, as host or host:port; `None` for automatic selection, empty for none.
    pub connect: Option<Vec<String>>,
    /// Additional permanent outbound peers, as host or host:port.
    pub add_nodes: Vec<String>,
    /// Use the encrypted transport (BIP324) with peers that support it.
    pub encrypted: bool,
    /// Accept transactions only from peers with the permission `relay` (Core's `-blocksonly`).
    pub blocks_only: bool,
    /// Permissions by address, in the notation of Core's `-whitelist`: `[permissions@]address[/bits]`.
    pub whitelist: Vec<String>,
    /// Rules without names include `relay` (Core's `-whitelistrelay`).
    pub whitelist_relay: bool,
    /// Rules without names include `forcerelay` (Core's `-whitelistforcerelay`).
    pub whitelist_force_relay: bool,
    /// Handshake timeout; no other timeout ends earlier (Core's `-peertimeout`).
    pub peer_timeout: Duration,
    /// Default ban time, seconds (Core's `-bantime`).
    pub ban_s: u64,
    pub timeouts: P2pTimeouts,
    /// Make automatic outbound connections.
    pub opens: bool,
    /// SOCKS5 proxies for connections that leave this machine's network.
    pub proxies: Proxies,
    /// Use separate credentials per proxied connection (Core's `-proxyrandomize`).
    pub isolates_streams: bool,
    /// Query DNS seeds when few addresses are known (Core's `-dnsseed`).
    pub asks_dns: bool,
    /// Query DNS seeds even when many addresses are known (Core's `-forcednsseed`).
    pub forces_dns: bool,
    /// DNS seeds in place of the chain's (Core's `-signetseednode`).
    pub dns_seeds: Vec<String>,
    /// Seed nodes to fetch addresses from, one after the other, when no others are known (Core's `-seednode`).
    pub seed_nodes: Vec<String>,
    /// Use built-in addresses when no others are known (Core's `-fixedseeds`).
    pub uses_fixed_seeds: bool,
    pub resolver: Arc<dyn Resolve>,
    /// Own external addresses, with or without port (Core's `-externalip`).
    pub external_addresses: Vec<String>,
    /// Discover further own addresses (Core's `-discover`).
    pub discovers: bool,
    /// Reachable networks; addresses of others are not kept.
    pub networks: Vec<NetworkKind>,
    /// Use a fixed addrman key, for tests (Core's `-test=addrman`).
    pub fixed_places: bool,
    /// Check the address tables once per this many uses; 0 for never (Core's `-checkaddrman`).
    pub check_addresses: u32,
    /// Log addresses of peers (Core's `-logips`).
    pub log_addresses: bool,
    /// Transaction announcements to inbound peers per second, on average; 2.5 times that to outbound ones (Core's `-txsendrate`).
    pub txs_per_s: u32,
}

/// SOCKS5 proxies by type of destination.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Proxies {
    pub ipv4: Option<SocketAddr>,
    pub ipv6: Option<SocketAddr>,
    /// For Tor, which is unreachable without one.
    pub onion: Option<SocketAddr>,
    pub cjdns: Option<SocketAddr>,
    /// For host names, which then are not resolved locally.
    pub name: Option<SocketAddr>,
}

impl Proxies {
    pub fn all(proxy: Option<SocketAddr>) -> Self {
        Self { ipv4: proxy, ipv6: proxy, onion: proxy, cjdns: proxy, name: proxy }
    }

    pub(crate) fn of(&self, network: NetworkKind) -> Option<SocketAddr> {
        match network {
            NetworkKind::Ipv4 => self.ipv4,
            NetworkKind::Ipv6 => self.ipv6,
            NetworkKind::Onion => self.onion,
            NetworkKind::Cjdns => self.cjdns,
            NetworkKind::I2p | NetworkKind::Unroutable | NetworkKind::Internal => None,
        }
    }

    pub(super) fn contain(&self, host: &Host) -> bool {
        let all = [self.ipv4, self.ipv6, self.onion, self.cjdns, self.name];
        all.into_iter().flatten().any(|proxy| Host::from(proxy.ip()) == *host)
    }
}

#[derive(Debug, Clone, Copy)]
pub struct P2pTimeouts {
    /// Maximum time without a byte received or sent.
    pub idle: Duration,
    /// Maximum time without progress of a write.
    pub stall: Duration,
    pub ping: Duration,
}

impl P2pConfig {
    pub fn new(bind: SocketAddr) -> Self {
        Self {
            binds: vec![bind],
            white_binds: Vec::new(),
            listens: true,
            onion_binds: Vec::new(),
            expose: false,
            peers_max: 125,
            inbound_max: None,
            inbound_relay_percent: 50,
            peers_per_address_max: None,
            rate: None,
            upload_target_bytes: 0,
            is_active: true,
            bloom_filters: false,
            serves_filters: false,
            user_agent_comments: Vec::new(),
            connect: None,
            add_nodes: Vec::new(),
            encrypted: true,
            blocks_only: false,
            whitelist: Vec::new(),
            whitelist_relay: true,
            whitelist_force_relay: false,
            peer_timeout: PEER_TIMEOUT,
            ban_s: BAN_S,
            timeouts: P2pTimeouts::default(),
            opens: false,
            proxies: Proxies::default(),
            isolates_streams: true,
            asks_dns: false,
            forces_dns: false,
            dns_seeds: Vec::new(),
            seed_nodes: Vec::new(),
            uses_fixed_seeds: false,
            resolver: Arc::new(SystemResolver),
            external_addresses: Vec::new(),
            discovers: false,
            networks: vec![NetworkKind::Ipv4, NetworkKind::Ipv6],
            fixed_places: false,
            check_addresses: 0,
            log_addresses: false,
            txs_per_s: TXS_PER_S,
        }
    }

    /// User agent in BIP14's notation. On Bitcoin's chains the compatible release of Bitcoin Core comes first:
    /// indexers assume Bitcoin Cash without it (Fulcrum `BitcoinD.cpp`).
    pub fn user_agent(&self, params: &ChainParams) -> String {
        let own = concat!("Assay:", env!("CARGO_PKG_VERSION"));
        let core = match params.cash {
            None => format!("Satoshi:{CORE_VERSION}/"),
            Some(_) => String::new(),
        };
        match self.user_agent_comments.as_slice() {
            [] => format!("/{core}{own}/"),
            comments => format!("/{core}{own}({})/", comments.join("; ")),
        }
    }

    pub(super) fn inbound_max(&self) -> usize {
        self.inbound_max.unwrap_or(self.peers_max)
    }

    /// Maximum inbound peers with transaction relay, which take the most memory (Core `net.h`, `m_max_inbound_full_relay`).
    pub(super) fn inbound_relay_max(&self) -> usize {
        self.inbound_max() * self.inbound_relay_percent.min(100) / 100
    }

    /// Maximum number of peers per address, so that one host cannot occupy all slots.
    pub(super) fn peers_per_address_max(&self) -> usize {
        self.peers_per_address_max.unwrap_or((self.peers_max / 4).max(4))
    }
}

/// Compatible release of Bitcoin Core.
const CORE_VERSION: &str = "31.0.0";
/// Number of that release (Core `clientversion.h`, `CLIENT_VERSION`).
pub(crate) const CORE_VERSION_NUMBER: u32 = 310_000;

/// Core's: `net.h`, `TIMEOUT_INTERVAL`; `net_processing.cpp`, `PING_INTERVAL`.
impl Default for P2pTimeouts {
    fn default() -> Self {
        Self {
            idle: Duration::from_mins(20),
            stall: Duration::from_mins(20),
            ping: Duration::from_mins(2),
        }
    }
}

/// Core `net_processing.h`, `DEFAULT_TX_SEND_RATE`.
const TXS_PER_S: u32 = 14;
/// Core's `net.h`, `DEFAULT_PEER_CONNECT_TIMEOUT`.
const PEER_TIMEOUT: Duration = Duration::from_mins(1);

/// Core's `DEFAULT_MISBEHAVING_BANTIME` (`banman.h`).
const BAN_S: u64 = 24 * 60 * 60;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_follow_the_version() {
        let mut config = P2pConfig::new("127.0.0.1:0".parse().unwrap());
        let params = |name| ChainParams::by_name(name).unwrap();
        let own = concat!("Assay:", env!("CARGO_PKG_VERSION"));
        assert_eq!(config.user_agent(&params("bch-regtest")), format!("/{own}/"));
        for comments in ["", "(one; two)"] {
            let core = format!("/Satoshi:31.0.0/{own}{comments}/");
            assert_eq!(config.user_agent(&params("regtest")), core);
            config.user_agent_comments = vec!["one".to_owned(), "two".to_owned()];
        }
    }
}
