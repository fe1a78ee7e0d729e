//! Transaction relay: requests, admission and announcements (Core `net_processing.cpp`,
//! `node/txdownloadman_impl.cpp`).
//!
//! Announcements are scheduled for requests ([`requests`]). The reader thread of a peer submits received
//! transactions to the mempool ([`receive`]); orphans wait for their parents ([`orphans`]). Admitted transactions are
//! announced to each peer by its own timer ([`announce`]).

mod announce;
mod announce_rate;
mod orphans;
mod receive;
mod requests;

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use assay_engine::{Engine, RelayId};
use assay_wire::p2p::{Inventory, InventoryKind};
use assay_wire::{Block, BlockHash, Transaction, Txid, Wtxid};

use self::announce::{Backlogs, Timers};
pub(crate) use self::orphans::OrphanInfo;
use self::orphans::Orphans;
use self::requests::Requests;
use super::NODE_WITNESS;
use super::compact::Compact;
use super::ended::Ended;
use super::peers::{Peer, Peers};
use super::permissions::Permissions;
use super::recent::Recent;

/// Requests, announcements and orphans of transactions.
pub(crate) struct TxRelay {
    engine: Arc<Engine>,
    peers: Arc<Peers>,
    compact: Arc<Compact>,
    table: Mutex<Table>,
    /// Held while the chain is followed: a thread must not record confirmations of a branch after another thread has left it.
    following: Mutex<()>,
    timers: Mutex<Timers>,
    backlogs: Mutex<Backlogs>,
}

struct Table {
    peers: HashMap<u64, TxPeer>,
    requests: Requests,
    orphans: Orphans,
    /// Rejected since the last tip change.
    rejected: Recent,
    /// Rejected since the last tip change, but possibly valid in a package: transactions by wtxid, packages by both ids.
    reconsiderable: Recent,
    confirmed: Recent,
    /// Tip up to which blocks have been processed.
    tip: BlockHash,
}

/// Properties of a peer for scheduling.
#[derive(Clone, Copy)]
struct TxPeer {
    is_preferred: bool,
    names_wtxids: bool,
    may_flood: bool,
}

impl TxRelay {
    /// From the current tip on.
    pub(super) fn new(peers: &Arc<Peers>, compact: &Arc<Compact>) -> Self {
        let table = Table {
            peers: HashMap::new(),
            requests: Requests::default(),
            orphans: Orphans::default(),
            rejected: Recent::new(REJECTED_MAX),
            reconsiderable: Recent::new(REJECTED_MAX),
            confirmed: Recent::new(CONFIRMED_MAX),
            tip: peers.engine.chain().tip().hash,
        };
        Self {
            engine: Arc::clone(&peers.engine),
            peers: Arc::clone(peers),
            compact: Arc::clone(compact),
            table: Mutex::new(table),
            following: Mutex::default(),
            timers: Mutex::default(),
            backlogs: Mutex::new(Backlogs::new(peers.config.txs_per_s)),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Table {
    /// True if a transaction need not be requested (Core `AlreadyHaveTx`).
    fn have(&self, id: &RelayId, with_reconsiderable: bool, engine: &Engine) -> bool {
        let hash = id.hash();
        self.orphans.have(&Wtxid(hash))
            || (with_reconsiderable && self.reconsiderable.contains(&hash))
            || self.confirmed.contains(&hash)
            || self.rejected.contains(&hash)
            || engine.mempool().contains(id)
    }

    /// Earliest time of a request for a new announcement.
    fn ask_at_us(&self, peer: u64, traits: TxPeer, is_by_txid: bool, now_us: u64) -> u64 {
        let some_name_wtxids = self.peers.values().any(|peer| peer.names_wtxids);
        let mut at_us = now_us;
        if !traits.is_preferred {
            at_us += DELAY_US;
        }
        if is_by_txid && some_name_wtxids {
            at_us += DELAY_US;
        }
        if !traits.may_flood && self.requests.asked_count(peer) >= ASKED_MAX {
            at_us += DELAY_US;
        }
        at_us
    }

    /// Schedules requests for an orphan's parents from a peer that has it; true if scheduled.
    fn ask_for_parents(
        &mut self,
        parents: &[Txid],
        orphan: &Wtxid,
        peer: u64,
        now_us: u64,
    ) -> bool {
        let Some(traits) = self.peers.get(&peer).copied() else { return false };
        let announced = self.requests.count(peer) + parents.len();
        if self.orphans.have_from(orphan, peer) || (!traits.may_flood && announced > ANNOUNCED_MAX)
        {
            return false;
        }
        let at_us = self.ask_at_us(peer, traits, true, now_us);
        for parent in parents {
            self.requests.announced(peer, RelayId::Txid(*parent), traits.is_preferred, at_us);
        }
        tracing::debug!(
            target: "txpackages", "added peer={peer} as a candidate for resolving orphan {orphan}"
        );
        true
    }

    /// Handles an announcement; true if the transaction is known.
    fn announced(&mut self, peer: u64, id: RelayId, now_us: u64, engine: &Engine) -> bool {
        if let RelayId::Wtxid(wtxid) = id
            && let Some(orphan) = self.orphans.get(&wtxid).cloned()
        {
            let mut parents = parents_of(&orphan);
            parents.retain(|txid| !self.have(&RelayId::Txid(*txid), false, engine));
            if !parents.is_empty() && self.ask_for_parents(&parents, &wtxid, peer, now_us) {
                self.orphans.add_announcer(&wtxid, peer);
            }
            return true;
        }
        if self.have(&id, true, engine) {
            return true;
        }
        let Some(traits) = self.peers.get(&peer).copied() else { return false };
        if traits.may_flood || self.requests.count(peer) < ANNOUNCED_MAX {
            let is_by_txid = matches!(id, RelayId::Txid(_));
            let at_us = self.ask_at_us(peer, traits, is_by_txid, now_us);
            self.requests.announced(peer, id, traits.is_preferred, at_us);
        }
        false
    }

    fn forget(&mut self, txid: &Txid, wtxid: &Wtxid) {
        self.requests.forget(&txid.0);
        self.requests.forget(&wtxid.0);
    }
}

impl TxRelay {
    pub(super) fn joined(&self, peer: &Peer, is_preferred: bool) {
        let traits = TxPeer {
            is_preferred,
            names_wtxids: peer.with_relay(|relay| relay.names_wtxids),
            may_flood: peer.permissions.has(Permissions::RELAY),
        };
        self.lock().peers.insert(peer.id, traits);
    }

    pub(super) fn left(&self, peer: &Peer) {
        let mut table = self.lock();
        table.peers.remove(&peer.id);
        table.requests.left(peer.id);
        table.orphans.left(peer.id);
    }

    /// Handles announcements. An error ends the connection.
    pub(super) fn handle_tx_announcements(
        &self,
        peer: &Peer,
        entries: &[Inventory],
    ) -> Result<(), Ended> {
        let Some(first) = entries.first() else { return Ok(()) };
        if self.peers.rejects_txs_of(peer) {
            return Err(Ended::UnwantedInv { hash: Txid(first.hash) });
        }
        self.follow_chain();
        let is_syncing = self.engine.chain().is_initial_block_download();
        let now_us = self.engine.clock().now_us();
        let mut seen = HashSet::new();
        let mut table = self.lock();
        for entry in entries {
            let id = peer.with_relay(|relay| relay.name(entry));
            let Some(id) = id.filter(|id| seen.insert(*id)) else { continue };
            peer.with_relay(|relay| relay.known.insert(&entry.hash));
            if !is_syncing {
                let is_known = table.announced(peer.id, id, now_us, &self.engine);
                let (kind, state) = (entry.kind, if is_known { "have" } else { "new" });
                net!("got inv: {kind} {} {state} peer={}", Txid(entry.hash), peer.id);
            }
        }
        Ok(())
    }

    pub(super) fn not_found(&self, peer: &Peer, entries: impl Iterator<Item = Inventory>) {
        let mut table = self.lock();
        for entry in entries.filter(is_tx) {
            table.requests.answered(peer.id, &entry.hash);
        }
    }

    fn due_requests(&self, peer: &Peer) -> Vec<Inventory> {
        let now_us = self.engine.clock().now_us();
        let mut table = self.lock();
        let (best, late) = table.requests.next_for(peer.id, now_us);
        for (late_peer, id) in late {
            let hash = Txid(id.hash());
            net!("timeout of inflight {} {hash} from peer={late_peer}", kind_name(&id));
        }
        let has_witnesses = peer.with_facts(|facts| facts.services) & NODE_WITNESS != 0;
        let mut entries = Vec::new();
        for id in best {
            let hash = id.hash();
            if table.have(&id, false, &self.engine) {
                table.requests.forget(&hash);
                continue;
            }
            let kind = kind_name(&id);
            net!("Requesting {kind} {} peer={}", Txid(hash), peer.id);
            table.requests.asked(peer.id, &hash, now_us + ANSWER_US);
            let kind = match id {
                RelayId::Wtxid(_) => InventoryKind::WTX,
                RelayId::Txid(_) if has_witnesses => InventoryKind::WITNESS_TX,
                RelayId::Txid(_) => InventoryKind::TX,
            };
            entries.push(Inventory { kind, hash });
        }
        entries
    }

    /// Processes blocks connected since the last call.
    pub(crate) fn follow_chain(&self) {
        let _following = self.following.lock().unwrap_or_else(PoisonError::into_inner);
        let tip = self.engine.chain().tip().hash;
        let mut table = self.lock();
        let before = std::mem::replace(&mut table.tip, tip);
        if before == tip {
            return;
        }
        table.rejected.clear();
        table.reconsiderable.clear();
        if !self.engine.chain().is_ancestor(&before, &tip) {
            // Confirmed transactions may be wanted again.
            table.confirmed.clear();
        }
        if self.engine.chain().is_initial_block_download() {
            return;
        }
        let connected =
            self.engine.chain().headers_since(&before, FOLLOWED_MAX + 1).unwrap_or_default();
        if connected.len() > FOLLOWED_MAX {
            return;
        }
        drop(table);
        for (hash, _) in connected {
            if let Some(block) = self.stored_block(&hash) {
                self.block_came_in(&block);
            }
        }
    }

    fn block_came_in(&self, block: &Block) {
        let names: Vec<(Txid, Wtxid)> = block.txs().map(|tx| (tx.txid(), tx.wtxid())).collect();
        let mut table = self.lock();
        for (txid, wtxid) in &names {
            table.confirmed.insert(&txid.0);
            if txid.0 != wtxid.0 {
                table.confirmed.insert(&wtxid.0);
            }
            table.forget(txid, wtxid);
        }
        if !table.orphans.is_empty() {
            let spent = block.txs().flat_map(|tx| tx.inputs().map(|input| input.prevout));
            table.orphans.block_spent(spent);
            // The parents of these children are confirmed (Core `TxDownloadManagerImpl::BlockConnected`).
            for (tx, (txid, _)) in block.txs().zip(&names) {
                table.orphans.parent_arrived(*txid, tx.output_count());
            }
        }
    }

    fn stored_block(&self, hash: &BlockHash) -> Option<Block> {
        let raw = self.engine.blocks().read(hash).ok().flatten()?;
        Block::parse(raw, self.peers.encoding).ok()
    }

    pub(crate) fn orphans(&self) -> Vec<OrphanInfo> {
        self.lock().orphans.list()
    }

    /// Transaction that a peer may fetch: in the mempool at its last announcement, or in one of the latest blocks.
    pub(super) fn tx_for(&self, peer: &Peer, id: &RelayId) -> Option<Arc<Transaction>> {
        let moment = peer.with_relay(|relay| relay.announced_until);
        self.engine.mempool().transaction_before(id, moment).or_else(|| {
            // Another thread may be about to announce the block that confirmed it.
            self.engine.blocks().wait_for_fresh();
            self.compact.recent_tx(id)
        })
    }
}

/// Txids of spent outputs, without duplicates.
fn parents_of(tx: &Transaction) -> Vec<Txid> {
    let mut parents: Vec<Txid> = tx.view().inputs().map(|input| input.prevout.txid).collect();
    parents.sort_unstable();
    parents.dedup();
    parents
}

pub(super) fn is_tx(entry: &Inventory) -> bool {
    matches!(entry.kind, InventoryKind::TX | InventoryKind::WTX | InventoryKind::WITNESS_TX)
}

fn kind_name(id: &RelayId) -> &'static str {
    if matches!(id, RelayId::Wtxid(_)) { "wtx" } else { "tx" }
}

/// Maximum tracked announcements per peer (Core `node/txdownloadman.h`, `MAX_PEER_TX_ANNOUNCEMENTS`).
const ANNOUNCED_MAX: usize = 5000;
/// Transactions in flight per peer without a delay (Core `MAX_PEER_TX_REQUEST_IN_FLIGHT`).
const ASKED_MAX: usize = 100;
/// Delays for non-preferred peers, for txid relay while wtxid peers exist, and for overloaded peers (Core
/// `NONPREF_PEER_TX_DELAY`, `TXID_RELAY_DELAY`, `OVERLOADED_PEER_TX_DELAY`).
const DELAY_US: u64 = 2_000_000;
/// Request timeout (Core `GETDATA_TX_INTERVAL`).
const ANSWER_US: u64 = 60_000_000;
/// Core `node/txdownloadman_impl.h`: `m_lazy_recent_rejects`, `m_lazy_recent_confirmed_transactions`.
const REJECTED_MAX: usize = 120_000;
const CONFIRMED_MAX: usize = 48_000;
/// Blocks scanned for confirmed transactions after the chain has grown; beyond it, announcements are stale anyway.
const FOLLOWED_MAX: usize = 8;
