//! Transactions between peers: which are asked for, what becomes of them, and who hears of them (Core `net_processing.cpp`,
//! `node/txdownloadman_impl.cpp`).
//!
//! Announcements are noted with the time from which they may be asked for ([`requests`]). What comes is judged by the mempool on
//! the thread that reads from the peer ([`take`]); what lacks its parents waits for them ([`orphans`]). What is admitted is
//! announced to each peer in its own time ([`announce`]).

mod announce;
mod backlog;
mod orphans;
mod recent;
mod requests;
mod take;

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use assay_engine::RelayId;
use assay_wire::p2p::{Inventory, InventoryKind};
use assay_wire::{Block, BlockHash, Transaction, Txid, Wtxid};

pub(super) use self::announce::Matches;
pub(crate) use self::announce::Relay;
use self::announce::{Backlogs, Timers};
pub(super) use self::announce::{exponential_us, random};
pub(crate) use self::orphans::OrphanInfo;
use self::orphans::Orphans;
pub(super) use self::recent::Recent;
use self::requests::Requests;
use super::peers::{Connection, Peer};
use super::permissions::Permissions;
use super::{NODE_WITNESS, Network, Shared};

/// What is known of transactions from all peers together.
pub(crate) struct Txs {
    table: Mutex<Table>,
    /// Held while the chain is followed: no thread must note what a branch has confirmed after another one has left it.
    following: Mutex<()>,
    timers: Mutex<Timers>,
    backlogs: Mutex<Backlogs>,
}

struct Table {
    peers: HashMap<u64, TxPeer>,
    requests: Requests,
    orphans: Orphans,
    /// What was rejected since the tip changed.
    rejected: Recent,
    /// What was rejected since then, but might pass together with another: transactions by wtxid, packages by both.
    reconsiderable: Recent,
    confirmed: Recent,
    /// The tip up to which blocks have been looked at.
    tip: BlockHash,
}

/// What of a peer matters here.
#[derive(Clone, Copy)]
struct TxPeer {
    is_preferred: bool,
    names_wtxids: bool,
    may_flood: bool,
}

impl Txs {
    /// From this tip on, announcing so many transactions a second.
    pub(super) fn new(tip: BlockHash, send_per_s: u32) -> Self {
        let table = Table {
            peers: HashMap::new(),
            requests: Requests::default(),
            orphans: Orphans::default(),
            rejected: Recent::new(REJECTED_MAX),
            reconsiderable: Recent::new(REJECTED_MAX),
            confirmed: Recent::new(CONFIRMED_MAX),
            tip,
        };
        Self {
            table: Mutex::new(table),
            following: Mutex::default(),
            timers: Mutex::default(),
            backlogs: Mutex::new(Backlogs::new(send_per_s)),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Table {
    /// Whether a transaction need not be asked for (Core `AlreadyHaveTx`).
    fn have(&self, id: &RelayId, with_reconsiderable: bool, shared: &Shared) -> bool {
        let hash = id.hash();
        self.orphans.have(&Wtxid(hash))
            || (with_reconsiderable && self.reconsiderable.contains(&hash))
            || self.confirmed.contains(&hash)
            || self.rejected.contains(&hash)
            || shared.engine.is_unconfirmed(id)
    }

    /// When a peer may be asked for what it announces now.
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

    /// A peer that has an orphan is asked for its parents; whether it will be.
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

    /// A peer has announced a transaction; whether it is known.
    fn announced(&mut self, peer: u64, id: RelayId, now_us: u64, shared: &Shared) -> bool {
        if let RelayId::Wtxid(wtxid) = id
            && let Some(orphan) = self.orphans.get(&wtxid).cloned()
        {
            let mut parents = parents_of(&orphan);
            parents.retain(|txid| !self.have(&RelayId::Txid(*txid), false, shared));
            if !parents.is_empty() && self.ask_for_parents(&parents, &wtxid, peer, now_us) {
                self.orphans.add_announcer(&wtxid, peer);
            }
            return true;
        }
        if self.have(&id, true, shared) {
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

impl Shared {
    /// Whether a peer may not send or announce transactions.
    pub(super) fn rejects_txs_of(&self, peer: &Peer) -> bool {
        matches!(peer.connection, Connection::BlockRelayOnly | Connection::Feeler)
            || (self.config.blocks_only && !peer.permissions.has(Permissions::RELAY))
    }

    /// A peer has shaken hands.
    pub(super) fn txs_joined(&self, peer: &Peer) {
        let traits = TxPeer {
            is_preferred: self.is_preferred(peer.id),
            names_wtxids: peer.with_relay(|relay| relay.names_wtxids),
            may_flood: peer.permissions.has(Permissions::RELAY),
        };
        self.txs.lock().peers.insert(peer.id, traits);
    }

    pub(super) fn txs_left(&self, peer: &Peer) {
        let mut table = self.txs.lock();
        table.peers.remove(&peer.id);
        table.requests.left(peer.id);
        table.orphans.left(peer.id);
    }

    /// A peer has announced these transactions. An error ends the connection.
    pub(super) fn announced_txs(&self, peer: &Peer, entries: &[Inventory]) -> Result<(), ()> {
        if entries.is_empty() {
            return Ok(());
        }
        if self.rejects_txs_of(peer) {
            tracing::debug!(
                target: "net",
                "transaction ({}) inv sent in violation of protocol, disconnecting peer={}",
                BlockHash(entries[0].hash),
                peer.id,
            );
            return Err(());
        }
        self.follow_chain();
        let is_syncing = self.engine.is_initial_block_download();
        let now_us = self.engine.clock().now_us();
        let mut seen = HashSet::new();
        let mut table = self.txs.lock();
        for entry in entries {
            let id = peer.with_relay(|relay| relay.name(entry));
            let Some(id) = id.filter(|id| seen.insert(*id)) else { continue };
            peer.with_relay(|relay| relay.known.insert(&entry.hash));
            if !is_syncing {
                let is_known = table.announced(peer.id, id, now_us, self);
                let (kind, state) = (entry.kind, if is_known { "have" } else { "new" });
                tracing::debug!(
                    target: "net", "got inv: {kind} {} {state} peer={}", Txid(entry.hash), peer.id
                );
            }
        }
        Ok(())
    }

    /// A peer does not have what it was asked for.
    pub(super) fn txs_not_found(&self, peer: &Peer, entries: impl Iterator<Item = Inventory>) {
        let mut table = self.txs.lock();
        for entry in entries.filter(is_tx) {
            table.requests.answered(peer.id, &entry.hash);
        }
    }

    /// What a peer is to be asked for now.
    fn txs_to_ask(&self, peer: &Peer) -> Vec<Inventory> {
        let now_us = self.engine.clock().now_us();
        let mut table = self.txs.lock();
        let (best, late) = table.requests.next_for(peer.id, now_us);
        for (late_peer, id) in late {
            let hash = Txid(id.hash());
            tracing::debug!(
                target: "net", "timeout of inflight {} {hash} from peer={late_peer}", kind_name(&id)
            );
        }
        let has_witnesses = peer.with_facts(|facts| facts.services) & NODE_WITNESS != 0;
        let mut entries = Vec::new();
        for id in best {
            let hash = id.hash();
            if table.have(&id, false, self) {
                table.requests.forget(&hash);
                continue;
            }
            let kind = kind_name(&id);
            tracing::debug!(target: "net", "Requesting {kind} {} peer={}", Txid(hash), peer.id);
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

    /// Looks at the blocks that have been connected since the last look.
    pub(super) fn follow_chain(&self) {
        let _following = self.txs.following.lock().unwrap_or_else(PoisonError::into_inner);
        let tip = self.engine.tip().hash;
        let mut table = self.txs.lock();
        let before = std::mem::replace(&mut table.tip, tip);
        if before == tip {
            return;
        }
        table.rejected.clear();
        table.reconsiderable.clear();
        if !self.engine.is_ancestor(&before, &tip) {
            // What was confirmed may be wanted again.
            table.confirmed.clear();
        }
        if self.engine.is_initial_block_download() {
            return;
        }
        let connected = self.engine.headers_since(&before, FOLLOWED_MAX + 1).unwrap_or_default();
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
        let mut table = self.txs.lock();
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
            // Children of its transactions have their parent now (Core `TxDownloadManagerImpl::BlockConnected`).
            for (tx, (txid, _)) in block.txs().zip(&names) {
                table.orphans.parent_came(*txid, tx.output_count());
            }
        }
    }

    fn stored_block(&self, hash: &BlockHash) -> Option<Block> {
        let archived = self.engine.archived_block(hash)?;
        let mut raw = vec![0; archived.size() as usize];
        self.engine.read_archived(&archived, 0, &mut raw).ok()?;
        Block::parse(raw, self.encoding).ok()
    }

    /// A transaction that a peer may be given: it was in the mempool when the peer was last sent announcements, or it is in
    /// one of the latest blocks.
    pub(super) fn tx_for(&self, peer: &Peer, id: &RelayId) -> Option<Arc<Transaction>> {
        let moment = peer.with_relay(|relay| relay.announced_until);
        self.engine.transaction_before(id, moment).or_else(|| {
            // It may just have left the mempool with a block that another thread is about to pass on.
            self.engine.wait_for_fresh();
            self.compact.recent_tx(id)
        })
    }
}

impl Network {
    pub(crate) fn orphans(&self) -> Vec<OrphanInfo> {
        self.0.txs.lock().orphans.list()
    }

    /// Takes note of what has been connected so far.
    pub(crate) fn follow_chain(&self) {
        self.0.follow_chain();
    }
}

/// The transactions whose outputs one spends, each once.
fn parents_of(tx: &Transaction) -> Vec<Txid> {
    let mut parents: Vec<Txid> = tx.view().inputs().map(|input| input.prevout.txid).collect();
    parents.sort_unstable();
    parents.dedup();
    parents
}

pub(super) fn is_tx(entry: &Inventory) -> bool {
    matches!(entry.kind, InventoryKind::TX | InventoryKind::WTX | InventoryKind::WITNESS_TX)
}

/// As Core's log calls it.
fn kind_name(id: &RelayId) -> &'static str {
    if matches!(id, RelayId::Wtxid(_)) { "wtx" } else { "tx" }
}

/// Announcements of one peer that are remembered (Core `node/txdownloadman.h`, `MAX_PEER_TX_ANNOUNCEMENTS`).
const ANNOUNCED_MAX: usize = 5000;
/// Transactions that one peer is asked for at a time without a delay (Core `MAX_PEER_TX_REQUEST_IN_FLIGHT`).
const ASKED_MAX: usize = 100;
/// For a peer that others are preferred to, for one that names transactions without their witness where others name it, for one
/// that owes many (Core `NONPREF_PEER_TX_DELAY`, `TXID_RELAY_DELAY`, `OVERLOADED_PEER_TX_DELAY`).
const DELAY_US: u64 = 2_000_000;
/// How long an answer may take (Core `GETDATA_TX_INTERVAL`).
const ANSWER_US: u64 = 60_000_000;
/// Core `node/txdownloadman_impl.h`: `m_lazy_recent_rejects`, `m_lazy_recent_confirmed_transactions`.
const REJECTED_MAX: usize = 120_000;
const CONFIRMED_MAX: usize = 48_000;
/// Blocks whose transactions are looked at when the chain has grown; after more, what was announced is old.
const FOLLOWED_MAX: usize = 8;
