//! Listening sockets and inbound connections (Core `net.cpp`, `InitBinds`, `AcceptConnection`).

use std::collections::HashSet;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use assay_wire::p2p::{Endpoint, NetworkKind};
use tokio::net::TcpListener;
use tokio::runtime::Runtime;
use tokio::sync::watch;

use super::config::P2pConfig;
use super::peers::{Admission, Arrival};
use super::permissions::{Permissions, WhiteBind};
use super::{P2p, enter};
use crate::error::NodeError;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Bind {
    pub(super) address: SocketAddr,
    permissions: Permissions,
    is_onion: bool,
}

impl P2pConfig {
    /// All listening addresses, without duplicates (Core `init.cpp`, `CheckBindingConflicts`).
    pub(super) fn all_binds(&self) -> Result<Vec<Bind>, NodeError> {
        if !self.listens {
            return Ok(Vec::new());
        }
        let plain = |address: &SocketAddr, is_onion| Bind {
            address: *address,
            permissions: Permissions::default(),
            is_onion,
        };
        let mut binds: Vec<Bind> = self.binds.iter().map(|bind| plain(bind, false)).collect();
        for text in &self.white_binds {
            let parsed =
                text.parse::<WhiteBind>().map_err(|fault| NodeError::Whitelist { fault })?;
            let WhiteBind { permissions, address } = parsed;
            binds.push(Bind { address, permissions, is_onion: false });
        }
        binds.extend(self.onion_binds.iter().map(|bind| plain(bind, true)));
        let mut seen = HashSet::new();
        // For port 0 the system assigns a different port each time.
        let is_again = |bind: &&Bind| bind.address.port() != 0 && !seen.insert(bind.address);
        match binds.iter().find(is_again) {
            Some(bind) => Err(NodeError::P2pBindTwice { address: bind.address }),
            None => Ok(binds),
        }
    }
}

pub(super) struct Listener {
    socket: TcpListener,
    pub(super) bind: Bind,
}

impl Listener {
    pub(super) fn open_all(config: &P2pConfig, runtime: &Runtime) -> Result<Vec<Self>, NodeError> {
        let mut listeners = Vec::new();
        for bind in config.all_binds()? {
            let failed = |source| NodeError::P2pBind { address: bind.address, source };
            let socket = runtime.block_on(TcpListener::bind(bind.address)).map_err(failed)?;
            let address = socket.local_addr().map_err(failed)?;
            tracing::info!("Bound to {address}");
            listeners.push(Self { socket, bind: Bind { address, ..bind } });
        }
        Ok(listeners)
    }

    /// True if the address may be announced.
    pub(super) fn is_shown(&self) -> bool {
        !self.bind.is_onion && !self.bind.permissions.has(Permissions::NO_BAN)
    }

    pub(super) async fn accept(self, shared: Arc<P2p>, mut stopping: watch::Receiver<bool>) {
        loop {
            let accepted = tokio::select! {
                accepted = self.socket.accept() => accepted,
                _ = stopping.wait_for(|stop| *stop) => return,
            };
            let entered = match accepted {
                Ok((stream, address)) => {
                    stream.into_std().and_then(|stream| self.enter(stream, address, &shared))
                }
                Err(error) => Err(error),
            };
            if let Err(error) = entered {
                // Probably out of file descriptors or threads: an immediate retry would spin.
                tracing::warn!("Cannot accept a peer: {error}");
                tokio::time::sleep(RETRY).await;
            }
        }
    }

    fn enter(
        &self,
        stream: std::net::TcpStream,
        address: SocketAddr,
        shared: &Arc<P2p>,
    ) -> io::Result<()> {
        let Bind { permissions, is_onion, .. } = self.bind;
        let mut address = Endpoint::from(address);
        if shared.addresses.reachable().contains(&NetworkKind::Cjdns) {
            address.host = address.host.or_cjdns();
        }
        enter(Arrival::inbound(stream, address, is_onion), permissions, shared)
    }
}

impl P2p {
    /// Decides on an inbound connection (Core `net.cpp`, `CreateNodeFromAcceptedSocket`). Evicts a peer if all slots are taken.
    pub(super) fn admit(&self, arrival: &Arrival, permissions: Permissions) -> Option<Admission> {
        let Arrival { address, connection, is_onion, .. } = arrival;
        let inbound_max = self.peers.config.inbound_max();
        let dropped = |why: &str| {
            net!("connection from {address} dropped{why}");
            None
        };
        if !self.peers.is_active() {
            return dropped(": not accepting new connections");
        }
        if !connection.is_inbound() {
            return Some(Admission { inbound_max, is_discouraged: false });
        }
        let may_misbehave = permissions.has(Permissions::NO_BAN);
        if !may_misbehave && self.peers.bans.has_banned_host(&address.host) {
            return dropped(" (banned)");
        }
        let (count, of_host) = self.peers.count_inbound(&address.host);
        let is_discouraged = self.peers.bans.is_discouraged(&address.host);
        if !may_misbehave && is_discouraged && count + 1 >= inbound_max {
            return dropped(" (discouraged)");
        }
        // Not in Core: eviction groups are larger than a host. All Tor peers share one address.
        if !may_misbehave && !is_onion && of_host >= self.peers.config.peers_per_address_max() {
            return dropped(": too many connections from this host");
        }
        if count >= inbound_max && !self.evict(false, None) {
            net!("failed to find an eviction candidate - connection dropped (full)");
            return None;
        }
        Some(Admission { inbound_max, is_discouraged })
    }
}

const RETRY: Duration = Duration::from_millis(100);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_kinds_of_addresses_are_listened_on() {
        let mut config = P2pConfig::new("127.0.0.1:1".parse().unwrap());
        config.binds.push("127.0.0.1:2".parse().unwrap());
        config.white_binds.push("noban@127.0.0.1:3".to_owned());
        config.onion_binds.push("127.0.0.1:4".parse().unwrap());
        let of = |bind: &Bind| {
            (bind.address.port(), bind.permissions == Permissions::NO_BAN, bind.is_onion)
        };
        let binds = config.all_binds().unwrap();
        assert_eq!(
            binds.iter().map(of).collect::<Vec<_>>(),
            [(1, false, false), (2, false, false), (3, true, false), (4, false, true)]
        );
        let mut again = config.clone();
        for address in [1, 3, 4].map(|port| format!("127.0.0.1:{port}")) {
            again.onion_binds.push(address.parse().unwrap());
            let error = again.all_binds().unwrap_err().to_string();
            let expected = format!("Duplicate binding configuration for address {address}. ");
            assert!(error.starts_with(&expected), "{error}");
            again.onion_binds.pop();
        }
        again.binds = vec!["127.0.0.1:0".parse().unwrap(); 2];
        assert_eq!(again.all_binds().unwrap().len(), 4);
        config.white_binds.push("nobody@127.0.0.1:3".to_owned());
        assert!(matches!(config.all_binds(), Err(NodeError::Whitelist { .. })));
        config.listens = false;
        assert!(config.all_binds().unwrap().is_empty());
    }
}
