//! State shared by all connections.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use tokio::sync::Semaphore;

use super::config::Config;
use super::limits::client_budget::Accounts;
use super::metrics::Metrics;
use super::net::send_queue::SendMemory;
use super::schedule::runtimes::RuntimeHandles;
use super::schedule::workers::Workers;
use super::snapshot::merkle::{BlockTrees, HeaderTree};
use super::snapshot::published::Published;
use super::subscriptions::registry::Subscriptions;
use super::subscriptions::removal::Removals;
use crate::chain::Chain;

/// The server without its sockets.
pub(super) struct Shared {
    pub(super) config: Config,
    pub(super) chain: Arc<dyn Chain>,
    pub(super) published: Arc<Published>,
    pub(super) subscriptions: Arc<Subscriptions>,
    pub(super) header_tree: HeaderTree,
    pub(super) block_trees: BlockTrees,
    pub(super) workers: Workers,
    pub(super) runtimes: RuntimeHandles,
    pub(super) metrics: Metrics,
    /// Memory for long lines, in units of [`super::net::line_reader::LONG_LINE_UNIT`].
    pub(super) long_lines: Arc<Semaphore>,
    pub(super) send_memory: Arc<SendMemory>,
    pub(super) accounts: Arc<Accounts>,
    /// Disconnected clients whose subscriptions are still being removed.
    pub(super) removals: Arc<Removals>,
    pub(super) next_client: AtomicU64,
}
