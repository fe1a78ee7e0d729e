//! What all connections share.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use parking_lot::Mutex;
use tokio::sync::Semaphore;

use super::config::Config;
use super::hub::Hub;
use super::merkle::{BlockTrees, HeaderTree};
use super::metrics::Metrics;
use super::networks::Handles;
use super::outbox::Total;
use super::publish::Published;
use super::workers::Workers;
use crate::chain::Chain;

/// Unit of the budget for long lines.
pub(super) const INPUT_UNIT: usize = 1024;

/// The server without its sockets.
pub(super) struct Shared {
    pub(super) config: Config,
    pub(super) chain: Arc<dyn Chain>,
    pub(super) published: Arc<Published>,
    pub(super) hub: Arc<Hub>,
    pub(super) header_tree: HeaderTree,
    pub(super) block_trees: BlockTrees,
    pub(super) workers: Workers,
    pub(super) networks: Handles,
    pub(super) metrics: Metrics,
    /// Room for long lines, in units of [`INPUT_UNIT`].
    pub(super) input: Arc<Semaphore>,
    /// Bytes that wait to be sent.
    pub(super) output: Arc<Total>,
    pub(super) connections: Connections,
    /// Number of the next client.
    pub(super) next_client: AtomicU64,
}

/// Counts open connections.
#[derive(Debug, Default)]
pub(super) struct Connections {
    count: AtomicUsize,
    by_address: Mutex<HashMap<IpAddr, usize>>,
}

/// An open connection; dropping it makes room for another.
pub(super) struct Connection {
    shared: Arc<Shared>,
    address: Option<IpAddr>,
}

/// Why a connection was turned away.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Full {
    /// Too many connections.
    Server,
    /// Too many from one place.
    Address,
}

impl Connections {
    pub(super) fn count(&self) -> usize {
        self.count.load(Ordering::Relaxed)
    }

    fn enter(&self, peer: IpAddr, max: usize, per_ip_max: usize) -> Result<Option<IpAddr>, Full> {
        if self.count.fetch_add(1, Ordering::Relaxed) >= max {
            self.count.fetch_sub(1, Ordering::Relaxed);
            return Err(Full::Server);
        }
        let Some(address) = group(peer) else { return Ok(None) };
        let mut by_address = self.by_address.lock();
        let open = by_address.entry(address).or_default();
        if *open >= per_ip_max {
            drop(by_address);
            self.count.fetch_sub(1, Ordering::Relaxed);
            return Err(Full::Address);
        }
        *open += 1;
        Ok(Some(address))
    }

    fn leave(&self, address: Option<IpAddr>) {
        self.count.fetch_sub(1, Ordering::Relaxed);
        let Some(address) = address else { return };
        let mut by_address = self.by_address.lock();
        if let Some(open) = by_address.get_mut(&address) {
            *open -= 1;
            if *open == 0 {
                by_address.remove(&address);
            }
        }
    }
}

/// Who counts as one: an IPv4 address or a /64 of IPv6, which is what one customer gets. Loopback is not counted.
fn group(peer: IpAddr) -> Option<IpAddr> {
    match peer.to_canonical() {
        address if address.is_loopback() => None,
        IpAddr::V4(address) => Some(IpAddr::V4(address)),
        IpAddr::V6(address) => {
            let network = u128::from(address) >> 64 << 64;
            Some(IpAddr::V6(Ipv6Addr::from(network)))
        }
    }
}

impl Shared {
    /// Makes room for a connection.
    pub(super) fn connect(self: &Arc<Self>, peer: IpAddr) -> Result<Connection, Full> {
        let limits = &self.config.limits;
        let (max, per_ip_max) = (limits.connections_max, limits.connections_per_ip_max);
        let address = self.connections.enter(peer, max, per_ip_max)?;
        Ok(Connection { shared: Arc::clone(self), address })
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.shared.connections.leave(self.address);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_have_their_share_of_connections() {
        let connections = Connections::default();
        let enter = |text: &str| connections.enter(text.parse().unwrap(), 5, 2);
        let first = enter("2001:db8::1").unwrap();
        enter("2001:db8::2").unwrap();
        assert_eq!(enter("2001:db8::3"), Err(Full::Address));
        enter("2001:db8:0:1::3").unwrap();
        enter("127.0.0.1").unwrap();
        enter("::ffff:127.0.0.1").unwrap();
        assert_eq!(enter("127.0.0.1"), Err(Full::Server));
        connections.leave(first);
        enter("2001:db8::3").unwrap();
        assert_eq!(connections.count(), 5);
    }
}
