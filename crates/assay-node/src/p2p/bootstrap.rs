//! Bootstrap addresses from sources other than DNS: seed nodes and built-in addresses (Core `net.cpp`,
//! `ThreadOpenConnections`).

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use assay_wire::p2p::{Host, NetworkKind};

use super::P2p;
use super::dial::dial_for_addresses;
use super::dns_seeds::ENOUGH_PEERS;
use super::rng::random;
use super::seeds::Seeds;

/// Queue of host names for `addr-fetch` connections.
#[derive(Default)]
pub(super) struct Fetches(Mutex<VecDeque<String>>);

impl P2p {
    /// Queues an `addr-fetch` connection to a host.
    pub(super) fn fetch_addresses_from(&self, name: &str) {
        let mut waiting = self.fetches.0.lock().unwrap_or_else(PoisonError::into_inner);
        if waiting.len() < FETCHES_MAX {
            waiting.push_back(name.to_owned());
        }
    }

    fn next_fetch(&self) -> Option<String> {
        self.fetches.0.lock().unwrap_or_else(PoisonError::into_inner).pop_front()
    }
}

/// Unused bootstrap sources.
pub(super) struct Bootstrap {
    /// Used from the end.
    seed_nodes: Vec<String>,
    is_next_due: bool,
    /// Start of the latest seed node's turn, seconds by the node's clock.
    turned_s: u64,
    start_s: u64,
    uses_fixed: bool,
    /// True if other sources of addresses exist, to which the node gives time first.
    has_others: bool,
}

impl Bootstrap {
    pub(super) fn new(shared: &P2p) -> Self {
        let config = &shared.peers.config;
        let seed_nodes = config.seed_nodes.clone();
        let now_s = shared.engine.clock().now_s();
        if !config.uses_fixed_seeds {
            tracing::info!("Fixed seeds are disabled");
        }
        Self {
            is_next_due: !seed_nodes.is_empty() && shared.addresses.known.count(None).total() == 0,
            has_others: config.asks_dns || !seed_nodes.is_empty(),
            seed_nodes,
            turned_s: now_s,
            start_s: now_s,
            uses_fixed: config.uses_fixed_seeds,
        }
    }

    /// Uses the next source when due; `full_relay` is the number of full-relay peers.
    pub(super) fn step(&mut self, shared: &Arc<P2p>, full_relay: usize) {
        self.seed_node(shared);
        if let Some(name) = shared.next_fetch()
            && let Err(error) = dial_for_addresses(shared, &name)
        {
            net!("Connecting to {name} failed: {error}");
        }
        let now_s = shared.engine.clock().now_s();
        self.fixed_seeds(shared, now_s);
        if !self.seed_nodes.is_empty()
            && full_relay < ENOUGH_PEERS
            && now_s > self.turned_s + SEED_NODE_S
        {
            self.turned_s = now_s;
            self.is_next_due = true;
        }
    }

    fn seed_node(&mut self, shared: &P2p) {
        if !std::mem::take(&mut self.is_next_due) {
            return;
        }
        let Some(seed) = self.seed_nodes.pop() else { return };
        shared.fetch_addresses_from(&seed);
        if shared.addresses.known.count(None).total() == 0 {
            tracing::info!("Empty addrman, adding seednode ({seed}) to addrfetch");
        } else {
            tracing::info!(
                "Couldn't connect to peers from addrman after {SEED_NODE_S} seconds. Adding seednode ({seed}) to addrfetch"
            );
        }
    }

    fn fixed_seeds(&mut self, shared: &Arc<P2p>, now_s: u64) {
        let known = |network: &NetworkKind| shared.addresses.known.count(Some(*network)).total();
        let reachable = shared.addresses.reachable().iter().copied();
        let empty: Vec<NetworkKind> = reachable.filter(|network| known(network) == 0).collect();
        if !self.uses_fixed || empty.is_empty() {
            return;
        }
        if now_s > self.start_s + FIXED_SEEDS_S {
            tracing::info!(
                "Adding fixed seeds as 60 seconds have passed and addrman is empty for at least one reachable network"
            );
        } else if !self.has_others && shared.permanent().is_empty() {
            tracing::info!(
                "Adding fixed seeds as -dnsseed=0 (or IPv4/IPv6 connections are disabled via -onlynet) and neither -addnode nor -seednode are provided"
            );
        } else {
            return;
        }
        let seeds = Seeds::of(shared.engine.params());
        let addresses = seeds.addresses(now_s, || WEEK_S + random(WEEK_S));
        let wanted = addresses.filter(|address| empty.contains(&address.endpoint.host.network()));
        let wanted: Vec<_> = wanted.collect();
        shared.addresses.known.add(&wanted, &Host::of_name("fixedseeds"), 0);
        self.uses_fixed = false;
        tracing::info!("Added {} fixed seeds from reachable networks.", wanted.len());
    }
}

/// Queue limit: more than all seeds of a chain.
const FETCHES_MAX: usize = 64;
/// Core `net.cpp`, `ADD_NEXT_SEEDNODE`.
const SEED_NODE_S: u64 = 10;
const FIXED_SEEDS_S: u64 = 60;
/// Fixed seeds count as seen one to two weeks ago: addresses received from them are newer.
const WEEK_S: u64 = 7 * 24 * 3600;
