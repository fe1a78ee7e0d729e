//! How the node serves peers.

use std::net::SocketAddr;
use std::time::Duration;

use assay_wire::p2p::NetworkKind;

/// The server of blocks.
#[derive(Debug, Clone)]
#[expect(clippy::struct_excessive_bools, reason = "each is an option of its own")]
pub struct P2pConfig {
    /// Address to listen on; loopback unless [`P2pConfig::expose`] says otherwise.
    pub bind: SocketAddr,
    /// More addresses to listen on.
    pub more_binds: Vec<SocketAddr>,
    /// Whether peers may connect at all (Core's `-listen`).
    pub listens: bool,
    /// Addresses that Tor forwards connections to; who comes there is taken for a host of Tor's.
    pub onion_binds: Vec<SocketAddr>,
    /// Whether other machines may connect.
    pub expose: bool,
    /// Peers at once.
    pub peers_max: usize,
    /// Of these, peers of one IPv4 address or one /64 of IPv6; `None` for a quarter, and four at least.
    pub peers_per_address_max: Option<usize>,
    /// Bytes per second to all peers together; `None` for no limit.
    pub rate: Option<u64>,
    /// Bytes to all peers together in a day, 0 for no limit (Core's `-maxuploadtarget`): what is left of it is kept for new
    /// blocks, and old ones are not given once it is gone.
    pub upload_target_bytes: u64,
    /// Whether connections are made and taken from the beginning on (Core's `-networkactive`).
    pub is_active: bool,
    /// Whether the mempool is shown to all peers that ask for it (BIP35), a part of Core's `-peerbloomfilters`.
    pub shows_mempool: bool,
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
    /// From the connection to the end of the handshake; no other patience ends before (Core's `-peertimeout`).
    pub peer_timeout: Duration,
    /// Seconds that a ban lasts where no time is given (Core's `-bantime`).
    pub ban_s: u64,
    /// How patient the node is.
    pub timeouts: P2pTimeouts,
    /// Whether connections are made to known addresses of the node's own accord.
    pub opens: bool,
    /// A SOCKS5 proxy for connections to other networks than this machine's (Core's `-proxy`).
    pub proxy: Option<SocketAddr>,
    /// Whether each of these has credentials of its own (Core's `-proxyrandomize`).
    pub isolates_streams: bool,
    /// Networks whose addresses are kept and could be connected to.
    pub networks: Vec<NetworkKind>,
    /// Whether known addresses have the places that any such node gives them, for tests (Core's `-test=addrman`).
    pub fixed_places: bool,
    /// The tables of addresses are checked once in so many uses; 0 for never (Core's `-checkaddrman`).
    pub check_addresses: u32,
    /// Whether the log shows the addresses of peers (Core's `-logips`).
    pub log_addresses: bool,
}

/// How long peers are waited for.
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
            bind,
            more_binds: Vec::new(),
            listens: true,
            onion_binds: Vec::new(),
            expose: false,
            peers_max: 125,
            peers_per_address_max: None,
            rate: None,
            upload_target_bytes: 0,
            is_active: true,
            shows_mempool: false,
            serves_filters: false,
            user_agent_comments: Vec::new(),
            connect: None,
            add_nodes: Vec::new(),
            encrypted: true,
            blocks_only: false,
            whitelist: Vec::new(),
            peer_timeout: PEER_TIMEOUT,
            ban_s: BAN_S,
            timeouts: P2pTimeouts::default(),
            opens: false,
            proxy: None,
            isolates_streams: true,
            networks: vec![NetworkKind::Ipv4, NetworkKind::Ipv6],
            fixed_places: false,
            check_addresses: 0,
            log_addresses: false,
        }
    }

    /// All addresses to listen on, and whether Tor forwards to them.
    pub(super) fn binds(&self) -> impl Iterator<Item = (SocketAddr, bool)> {
        let direct = std::iter::once(&self.bind).chain(&self.more_binds);
        let direct = direct.map(|address| (*address, false));
        let all = direct.chain(self.onion_binds.iter().map(|address| (*address, true)));
        all.filter(|_| self.listens)
    }

    /// How the node introduces itself.
    pub fn user_agent(&self) -> String {
        let own = concat!("Assay:", env!("CARGO_PKG_VERSION"));
        match self.user_agent_comments.as_slice() {
            [] => format!("/{own}/"),
            comments => format!("/{own}({})/", comments.join("; ")),
        }
    }

    /// Peers of one address: one host does not take the place of all others.
    pub(super) fn peers_per_address_max(&self) -> usize {
        self.peers_per_address_max.unwrap_or((self.peers_max / 4).max(4))
    }
}

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
        let plain = config.user_agent();
        assert_eq!(plain, concat!("/Assay:", env!("CARGO_PKG_VERSION"), "/"));
        config.user_agent_comments = vec!["one".to_owned(), "two".to_owned()];
        assert_eq!(config.user_agent(), format!("{}(one; two)/", plain.trim_end_matches('/')));
    }
}
