//! How the node serves peers.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use assay_engine::ChainParams;
use assay_wire::p2p::{Host, NetworkKind};

use super::names::{Resolve, SystemResolver};

/// The server of blocks.
#[derive(Debug, Clone)]
#[expect(clippy::struct_excessive_bools, reason = "each is an option of its own")]
pub struct P2pConfig {
    /// Addresses to listen on; loopback unless [`P2pConfig::expose`] says otherwise.
    pub binds: Vec<SocketAddr>,
    /// Addresses to listen on whose peers have permissions, in the notation of Core's `-whitebind`: `[permissions@]address:port`.
    pub white_binds: Vec<String>,
    /// Whether peers may connect at all (Core's `-listen`).
    pub listens: bool,
    /// Addresses that Tor forwards connections to; who comes there is taken for a host of Tor's.
    pub onion_binds: Vec<SocketAddr>,
    /// Whether other machines may connect.
    pub expose: bool,
    /// Peers at once.
    pub peers_max: usize,
    /// Of these, peers that connect to us; `None` for all.
    pub inbound_max: Option<usize>,
    /// Of these, peers in percent that hear of transactions (Core's `-inboundrelaypercent`), at most 100.
    pub inbound_relay_percent: usize,
    /// Of these, peers of one IPv4 address or one /64 of IPv6; `None` for a quarter, and four at least.
    pub peers_per_address_max: Option<usize>,
    /// Bytes per second to all peers together; `None` for no limit.
    pub rate: Option<u64>,
    /// Bytes to all peers together in a day, 0 for no limit (Core's `-maxuploadtarget`): what is left of it is kept for new
    /// blocks, and old ones are not given once it is gone.
    pub upload_target_bytes: u64,
    /// Whether connections are made and taken from the beginning on (Core's `-networkactive`).
    pub is_active: bool,
    /// Whether all peers may set Bloom filters (BIP37) and are shown the mempool when they ask (BIP35): Core's
    /// `-peerbloomfilters`.
    pub bloom_filters: bool,
    /// Whether block filters are given to peers (Core's `-peerblockfilters`); it takes the index of them.
    pub serves_filters: bool,
    /// Texts that follow name and version in the user agent, in parentheses (BIP14).
    pub user_agent_comments: Vec<String>,
    /// The only peers to connect to of our own accord, as host or host:port; `None` finds peers, an empty list connects to
    /// none.
    pub connect: Option<Vec<String>>,
    /// Peers to stay connected to besides, as host or host:port.
    pub add_nodes: Vec<String>,
    /// Whether the encrypted transport (BIP324) is spoken with peers that can.
    pub encrypted: bool,
    /// Whether transactions are taken from nobody but peers with the permission `relay` (Core's `-blocksonly`).
    pub blocks_only: bool,
    /// Permissions of peers by address, in the notation of Core's `-whitelist`: `[permissions@]address[/bits]`.
    pub whitelist: Vec<String>,
    /// Whether a rule that names no permissions gives `relay` (Core's `-whitelistrelay`).
    pub whitelist_relay: bool,
    /// Whether a rule that names no permissions gives `forcerelay` (Core's `-whitelistforcerelay`).
    pub whitelist_force_relay: bool,
    /// From the connection to the end of the handshake; no other patience ends before (Core's `-peertimeout`).
    pub peer_timeout: Duration,
    /// Seconds that a ban lasts where no time is given (Core's `-bantime`).
    pub ban_s: u64,
    pub timeouts: P2pTimeouts,
    /// Whether connections are made to known addresses of the node's own accord.
    pub opens: bool,
    /// SOCKS5 proxies for connections to other networks than this machine's.
    pub proxies: Proxies,
    /// Whether each of these has credentials of its own (Core's `-proxyrandomize`).
    pub isolates_streams: bool,
    /// Whether DNS is asked for addresses where few are known (Core's `-dnsseed`).
    pub asks_dns: bool,
    /// Whether it is asked although many are known (Core's `-forcednsseed`).
    pub forces_dns: bool,
    /// Names to ask for instead of the chain's (Core's `-signetseednode`).
    pub dns_seeds: Vec<String>,
    /// Peers to fetch addresses from, one after the other, where there are no others (Core's `-seednode`).
    pub seed_nodes: Vec<String>,
    /// Whether addresses that are built in are used where no others are known (Core's `-fixedseeds`).
    pub uses_fixed_seeds: bool,
    /// Who is asked for the addresses of names.
    pub resolver: Arc<dyn Resolve>,
    /// Our own addresses as others can reach them, with or without a port (Core's `-externalip`).
    pub external_addresses: Vec<String>,
    /// Whether others of our own addresses are found out (Core's `-discover`).
    pub discovers: bool,
    /// Networks whose addresses are kept and could be connected to.
    pub networks: Vec<NetworkKind>,
    /// Whether known addresses have the places that any such node gives them, for tests (Core's `-test=addrman`).
    pub fixed_places: bool,
    /// The tables of addresses are checked once in so many uses; 0 for never (Core's `-checkaddrman`).
    pub check_addresses: u32,
    /// Whether the log shows the addresses of peers (Core's `-logips`).
    pub log_addresses: bool,
    /// Transactions a second that are announced to peers which connected to us, in the long run; to others 2.5 times as many
    /// (Core's `-txsendrate`).
    pub txs_per_s: u32,
}

/// SOCKS5 proxies by what is connected to.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Proxies {
    pub ipv4: Option<SocketAddr>,
    pub ipv6: Option<SocketAddr>,
    /// For hosts on Tor, which cannot be connected to without.
    pub onion: Option<SocketAddr>,
    pub cjdns: Option<SocketAddr>,
    /// For hosts of which a name is known: nobody else is asked for their addresses then.
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

    /// Whether a host is that of a proxy.
    pub(super) fn contain(&self, host: &Host) -> bool {
        let all = [self.ipv4, self.ipv6, self.onion, self.cjdns, self.name];
        all.into_iter().flatten().any(|proxy| Host::from(proxy.ip()) == *host)
    }
}

#[derive(Debug, Clone, Copy)]
pub struct P2pTimeouts {
    /// Without a byte received, or sent.
    pub idle: Duration,
    /// For a peer that takes nothing of what is sent to it.
    pub stall: Duration,
    /// From ping to ping.
    pub ping: Duration,
}

impl P2pConfig {
    /// The defaults, on `bind`.
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

    /// How the node introduces itself, in BIP14's notation. On Bitcoin's chains the release of Bitcoin Core that it behaves as
    /// comes first: indexes take a node without that name for one of Bitcoin Cash (Fulcrum `BitcoinD.cpp`).
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

    /// Peers that may connect to us.
    pub(super) fn inbound_max(&self) -> usize {
        self.inbound_max.unwrap_or(self.peers_max)
    }

    /// Those of them that may hear of transactions: these take the most memory (Core `net.h`, `m_max_inbound_full_relay`).
    pub(super) fn inbound_relay_max(&self) -> usize {
        self.inbound_max() * self.inbound_relay_percent.min(100) / 100
    }

    /// Peers of one address: one host does not take the place of all others.
    pub(super) fn peers_per_address_max(&self) -> usize {
        self.peers_per_address_max.unwrap_or((self.peers_max / 4).max(4))
    }
}

/// The release of Bitcoin Core that the node behaves as.
const CORE_VERSION: &str = "31.0.0";
/// The same as a number (Core `clientversion.h`, `CLIENT_VERSION`).
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
