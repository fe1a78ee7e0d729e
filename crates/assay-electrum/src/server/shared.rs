//! What all connections share.

use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Instant;

use tokio::sync::Semaphore;

use super::accounts::{Account, Accounts, Full};
use super::config::Config;
use super::hub::Hub;
use super::leaving::Departures;
use super::merkle::{BlockTrees, HeaderTree};
use super::metrics::Metrics;
use super::networks::Handles;
use super::publish::Published;
use super::room::Room;
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
    pub(super) output: Arc<Room>,
    pub(super) accounts: Accounts,
    /// Clients that have left and whose subscriptions are still being given up.
    pub(super) departures: Arc<Departures>,
    /// Number of the next client.
    pub(super) next_client: AtomicU64,
}

/// An open connection; dropping it makes room for another.
pub(super) struct Connection {
    shared: Arc<Shared>,
    account: Arc<Account>,
}

impl std::fmt::Debug for Connection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Connection").field("account", &self.account).finish_non_exhaustive()
    }
}

impl Connection {
    /// The account of its address.
    pub(super) fn account(&self) -> &Arc<Account> {
        &self.account
    }
}

impl Shared {
    /// Makes room for a connection.
    pub(super) fn connect(self: &Arc<Self>, peer: IpAddr) -> Result<Connection, Full> {
        let account = self.accounts.enter(peer, Instant::now())?;
        Ok(Connection { shared: Arc::clone(self), account })
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.shared.accounts.leave(&self.account, Instant::now());
    }
}
