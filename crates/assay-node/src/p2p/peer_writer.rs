//! Peer writer thread: sends queued responses and announcements.

mod compact;
mod filtered;
mod filters;

use std::io;
use std::sync::PoisonError;
use std::sync::atomic::Ordering;
use std::time::Duration;

use assay_engine::{ArchivedBlock, Block, EngineError, RelayId, Tip};
use assay_wire::p2p::{
    Command, FrameHeader, HEADERS_MAX, Inventory, InventoryKind, Message, NetAddress,
    PayloadHasher, Version,
};
use assay_wire::{BlockHash, Encoding, Header, Txid, Wtxid, encode};

use super::bloom::FilterChange;
use super::ended::Ended;
use super::outbox::{ROOM, Request, Task, with_room};
use super::peers::Peer;
use super::permissions::Permissions;
use super::rng::nonce;
use super::txs::is_tx;
use super::{NODE_BLOOM, NODE_NETWORK, P2p};
use crate::bip324::TAG_BYTES;

pub(super) fn run(peer: &Peer, shared: &P2p) -> Ended {
    let mut writer = PeerWriter {
        peer,
        shared,
        buffer: Vec::new(),
        missing: Vec::new(),
        announced: BlockHash::ZERO,
        resume_after: None,
    };
    loop {
        if let Err(ended) = writer.step() {
            return ended;
        }
    }
}

struct PeerWriter<'a> {
    peer: &'a Peer,
    shared: &'a P2p,
    /// Transport header and payload; between two messages at most one piece of a block.
    buffer: Vec<u8>,
    /// Requested items that are unavailable.
    missing: Vec<Inventory>,
    announced: BlockHash,
    /// A request for this block triggers another `inv` (Core's `m_continuation_block`).
    resume_after: Option<BlockHash>,
}

impl PeerWriter<'_> {
    fn step(&mut self) -> Result<(), Ended> {
        match self.peer.outbox.take(QUIET) {
            Task::Closed => Err(Ended::Stopping),
            Task::Nothing => {
                // Free the memory of an idle peer.
                self.buffer = Vec::new();
                Ok(())
            }
            Task::Rest(bytes) => self.shared.peers.write(self.peer, &bytes),
            Task::Fresh => self.pass_on(),
            Task::News => self.announce(),
            Task::Own(command, mut bytes) => self.send_framed(command, &mut bytes),
            Task::Data(entry, is_last) => self.data(entry, is_last),
            Task::Request(request) => self.answer(request),
        }
    }

    fn answer(&mut self, request: Request) -> Result<(), Ended> {
        let engine = &self.shared.engine;
        match request {
            Request::Greet => self.greet(),
            Request::Agree { version } => self.agree(version),
            Request::Ready => {
                // The peer requests blocks connected before its arrival.
                self.announced = engine.chain().tip().hash;
                Ok(())
            }
            Request::Pong(nonce) => self.send(&Message::Pong(nonce)),
            Request::Headers { locator, stop } => {
                let found = if engine.chain().has_little_work() {
                    // Our chain may not be the peer's target (Core `net_processing.cpp`, GETHEADERS).
                    Some(Vec::new())
                } else {
                    engine.chain().headers_after(&locator, &stop, HEADERS_MAX)
                };
                let Some(found) = found else { return Ok(()) };
                let last =
                    found.last().map_or_else(|| engine.chain().tip().hash, |(hash, _)| *hash);
                self.peer.with_known(|known| known.best_sent = Some(last));
                let headers: Vec<Header> = found.into_iter().map(|(_, header)| header).collect();
                self.send(&Message::Headers(headers[..].into()))
            }
            Request::Hashes { mut locator, stop } => {
                if locator.is_empty() {
                    locator.push(self.shared.genesis);
                }
                let found = engine.chain().headers_after(&locator, &stop, HASHES_MAX);
                let mut found = found.unwrap_or_default();
                self.resume_after =
                    found.get(HASHES_MAX - 1).map(|(hash, _)| *hash).filter(|hash| *hash != stop);
                // Up to the stop hash, exclusive (Core `net_processing.cpp`, GETBLOCKS).
                found.pop_if(|(hash, _)| *hash == stop);
                let is_likely_here = |hash: &BlockHash| self.is_likely_here(hash);
                let count = found.iter().take_while(|(hash, _)| is_likely_here(hash)).count();
                found.truncate(count);
                if found.is_empty() {
                    return Ok(());
                }
                let entries: Vec<_> = found.iter().map(|(hash, _)| entry_of(hash)).collect();
                self.send(&Message::Inv(entries[..].into()))
            }
            Request::BlockTxs(request) => self.block_txs(&request),
            Request::Filter(change) => self.change_filter(change),
            Request::Filters(range) => self.filters(&range),
            Request::FilterHashes(range) => self.filter_hashes(&range),
            Request::FilterCheckpoints { kind, stop } => self.filter_checkpoints(kind, stop),
            Request::Data(entries) => {
                // The outbox returns them one at a time.
                entries.into_iter().try_for_each(|entry| self.data(entry, true))
            }
        }
    }

    /// Changes the peer's filter. Setting or clearing a filter enables transaction relay: [`Ended::TooManyRelay`] at the limit
    /// of relay peers.
    fn change_filter(&self, change: FilterChange) -> Result<(), Ended> {
        let (shared, peer) = (self.shared, self.peer);
        let (filter, command) = match change {
            FilterChange::Set(filter) => (Some(filter), "filterload"),
            FilterChange::Clear => (None, "filterclear"),
            FilterChange::Add(data) => {
                if !peer.with_relay(|relay| relay.add_to_filter(&data)) {
                    shared.peers.misbehaving(peer, "bad filteradd message");
                }
                return Ok(());
            }
        };
        peer.with_relay(|relay| relay.set_filter(filter));
        let has_room = shared.has_room_for_relay(peer, command, None);
        if has_room { Ok(()) } else { Err(Ended::TooManyRelay) }
    }

    /// True if a block will probably still be available when requested (Core `net_processing.cpp`, GETBLOCKS).
    fn is_likely_here(&self, hash: &BlockHash) -> bool {
        let engine = &self.shared.engine;
        if engine.config().prune.is_none() {
            return true;
        }
        let hour = 3600 / engine.params().pow.target_spacing_s.max(1);
        let kept = KEPT_BLOCKS.saturating_sub(hour);
        engine.chain().header_place(hash).is_some_and(|place| {
            place.has_data && place.height + kept > engine.chain().tip().height
        })
    }

    fn greet(&mut self) -> Result<(), Ended> {
        let bloom = if self.shared.peers.offers_bloom(self.peer) { NODE_BLOOM } else { 0 };
        let (address, services) = (self.peer.address, self.shared.peers.services() | bloom);
        // Do not reveal the name that a proxy connects to (Core `net_processing.cpp`, `PushNodeVersion`).
        let is_shown = address.host.is_routable()
            && address.host.fits_v1()
            && !self.shared.peers.config.proxies.contain(&address.host);
        let receiver = if is_shown {
            NetAddress { services: 0, ip: address.host.to_v1(), port: address.port }
        } else {
            NetAddress::default()
        };
        let user_agent = self.shared.peers.config.user_agent(self.shared.engine.params());
        let nonce = nonce().map_err(Ended::Io)?;
        self.peer.nonce.store(nonce, Ordering::Relaxed);
        let version = Version {
            version: super::PROTOCOL_VERSION,
            services,
            time: self.shared.engine.clock().now_s().cast_signed(),
            receiver,
            sender: NetAddress { services, ..NetAddress::default() },
            nonce,
            user_agent: user_agent.as_bytes(),
            start_height: self.shared.engine.chain().tip().height.cast_signed(),
            relay: Some(!self.shared.peers.rejects_txs_of(self.peer)),
        };
        self.send(&Message::Version(version))
    }

    fn agree(&mut self, version: i32) -> Result<(), Ended> {
        if version >= ADDRESSES_V2 {
            if self.shared.peers.encoding == Encoding::Segwit {
                self.send(&Message::WtxidRelay)?;
            }
            self.send(&Message::SendAddrV2)?;
        }
        self.send(&Message::Verack)
    }

    fn announce(&mut self) -> Result<(), Ended> {
        let engine = &self.shared.engine;
        let Tip { hash: tip, height, .. } = engine.chain().tip();
        let announced = std::mem::replace(&mut self.announced, tip);
        self.peer.announced_height.store(height, Ordering::Relaxed);
        if !self.peer.is_ready() || engine.chain().is_initial_block_download() {
            return Ok(());
        }
        let found = engine.chain().headers_since(&announced, ANNOUNCED_MAX + 1).unwrap_or_default();
        let Some(headers) = self.unknown_headers(&found) else {
            // Too far for single announcements, or without a header known to the peer: it requests the gap.
            if self.knows(&tip) {
                return Ok(());
            }
            return self.send(&Message::Inv([entry_of(&tip)][..].into()));
        };
        if let Some(last) = headers.last() {
            let last = last.hash();
            self.peer.with_known(|known| known.best_sent = Some(last));
            if headers.len() == 1 && self.wants_compact() && self.compact_block(&last)? {
                return Ok(());
            }
            return self.send(&Message::Headers(headers[..].into()));
        }
        Ok(())
    }

    /// New headers that the peer lacks; `None` to announce by hashes (Core `net_processing.cpp`, `SendMessages`).
    fn unknown_headers(&self, found: &[(BlockHash, Header)]) -> Option<Vec<Header>> {
        let is_wanted = self.peer.wants_headers.load(Ordering::Relaxed)
            || (self.wants_compact() && found.len() == 1);
        if !is_wanted || found.len() > ANNOUNCED_MAX {
            return None;
        }
        let start = found.iter().position(|(hash, _)| !self.knows(hash));
        let Some(start) = start else { return Some(Vec::new()) };
        let headers: Vec<Header> = found[start..].iter().map(|(_, header)| *header).collect();
        self.knows(&headers[0].prev_block).then_some(headers)
    }

    fn knows(&self, hash: &BlockHash) -> bool {
        let known = self.peer.with_known(|known| *known);
        let chain = self.shared.engine.chain();
        [known.best, known.best_sent].iter().flatten().any(|upper| chain.is_ancestor(hash, upper))
    }

    fn data(&mut self, entry: Inventory, is_last: bool) -> Result<(), Ended> {
        if entry.kind == InventoryKind::FILTERED_BLOCK && !self.shared.peers.offers_bloom(self.peer)
        {
            return Err(Ended::FilteredNotOffered);
        }
        let hash = BlockHash(entry.hash);
        let is_block = BLOCKS.contains(&entry.kind);
        if is_block {
            self.shared.sync.wait_for_validation(&hash);
            self.check_age(&hash, entry.kind == InventoryKind::FILTERED_BLOCK)?;
        }
        let is_given = if is_tx(&entry) {
            self.tx(&entry)?
        } else {
            is_block && self.block_as(&hash, entry.kind)?
        };
        if !is_given {
            self.missing.push(entry);
        }
        if is_last || self.missing.len() == MISSING_MAX {
            let missing = std::mem::take(&mut self.missing);
            if !missing.is_empty() {
                self.send(&Message::NotFound(missing[..].into()))?;
            }
        }
        if is_block && self.resume_after.take_if(|last| *last == hash).is_some() {
            let tip = self.shared.engine.chain().tip().hash;
            self.send(&Message::Inv([entry_of(&tip)][..].into()))?;
        }
        Ok(())
    }

    /// Old blocks are subject to the upload target. A pruned node serves only the latest blocks, whether it has
    /// more or not, against fingerprinting (Core `net_processing.cpp`, `ProcessGetBlockData`).
    fn check_age(&self, hash: &BlockHash, is_filtered: bool) -> Result<(), Ended> {
        let (shared, peer) = (self.shared, self.peer);
        let totals = shared.peers.totals();
        let is_limited = shared.peers.services() & NODE_NETWORK == 0;
        if totals.target_bytes == 0 && !is_limited {
            return Ok(());
        }
        let engine = &shared.engine;
        let Some(place) = engine.blocks().place_for_peers(hash) else { return Ok(()) };
        // Light clients request all blocks, so theirs count as old.
        let is_old =
            is_filtered || engine.chain().best_header().time.saturating_sub(place.time) > OLD_S;
        if is_old
            && totals.is_reached_for_old_blocks(engine.clock().now_s())
            && !peer.permissions.has(Permissions::DOWNLOAD)
        {
            return Err(Ended::OldBlockTooMuch);
        }
        let depth = engine.chain().tip().height.saturating_sub(place.height);
        if is_limited && depth > LIMITED_DEPTH_MAX && !peer.permissions.has(Permissions::NO_BAN) {
            return Err(Ended::BlockTooDeep);
        }
        Ok(())
    }

    /// Sends a transaction; `false` if unavailable. Without transaction relay the peer gets no response.
    fn tx(&mut self, entry: &Inventory) -> Result<bool, Ended> {
        let (shared, peer) = (self.shared, self.peer);
        if !peer.with_relay(|relay| relay.is_wanted) {
            return Ok(true);
        }
        let id = match entry.kind {
            InventoryKind::WTX => RelayId::Wtxid(Wtxid(entry.hash)),
            _ => RelayId::Txid(Txid(entry.hash)),
        };
        let Some(tx) = shared.txs.tx_for(peer, &id) else { return Ok(false) };
        if entry.kind == InventoryKind::TX {
            let stripped: Vec<u8> = tx.view().stripped_parts().concat();
            self.send(&Message::Tx(&stripped))?;
        } else {
            self.send(&Message::Tx(tx.bytes()))?;
        }
        shared.engine.mempool().was_fetched(&tx.view().txid());
        Ok(true)
    }

    /// Sends a block; `false` if unavailable.
    fn block(&mut self, hash: &BlockHash, with_witnesses: bool) -> Result<bool, Ended> {
        let shared = self.shared;
        let Some(block) = shared.engine.blocks().archived(hash) else { return Ok(false) };
        let can_have_witnesses = shared.peers.encoding == Encoding::Segwit
            && shared.engine.params().segwit_active(block.height());
        let length = block.size() as usize;
        let read = if can_have_witnesses && !with_witnesses {
            self.load_stripped(&block)
        } else if length > PIECE && !self.peer.is_encrypted() {
            return self.large_block(&block);
        } else {
            self.load(&block)
        };
        if read.is_none() {
            return Ok(false);
        }
        if !self.is_block(hash) {
            tracing::error!("Block {hash} is damaged in the archive and not given to peers");
            return Ok(false);
        }
        let mut whole = std::mem::take(&mut self.buffer);
        self.send_framed(BLOCK, &mut whole)?;
        // Reused for the next block, unless large.
        if whole.len() <= ROOM + PIECE + TAG_BYTES {
            self.buffer = whole;
        }
        Ok(true)
    }

    /// Reads a block behind room for a header.
    fn load(&mut self, block: &ArchivedBlock) -> Option<()> {
        self.buffer.resize(ROOM + block.size() as usize, 0);
        let read = self.shared.engine.blocks().read_archived(block, 0, &mut self.buffer[ROOM..]);
        read.map_err(|error| unreadable(block.hash(), &error)).ok()
    }

    /// Reads a block without witnesses, for peers without BIP144.
    fn load_stripped(&mut self, block: &ArchivedBlock) -> Option<()> {
        let shared = self.shared;
        let _turn = shared.stripping.lock().unwrap_or_else(PoisonError::into_inner);
        let parsed = self.parsed(block)?;
        self.buffer.resize(ROOM, 0);
        put_stripped(&parsed, &mut self.buffer);
        Some(())
    }

    /// A block in memory as a whole. It takes several times its size: callers hold the lock for one block at a time.
    fn parsed(&self, block: &ArchivedBlock) -> Option<Block> {
        let shared = self.shared;
        let mut raw = vec![0; block.size() as usize];
        let read = shared.engine.blocks().read_archived(block, 0, &mut raw);
        let parsed = read.and_then(|()| {
            Block::parse(raw, shared.peers.encoding)
                .map_err(|source| EngineError::StoredBlock { hash: *block.hash(), source })
        });
        parsed.map_err(|error| unreadable(block.hash(), &error)).ok()
    }

    /// True if the header in the buffer has this hash.
    fn is_block(&self, hash: &BlockHash) -> bool {
        let header = self.buffer[ROOM..].first_chunk::<{ Header::SIZE }>();
        header.is_some_and(|header| Header::parse(header).hash() == *hash)
    }

    /// In transport version 1, a block of several pieces is read twice (checksum, sending) and is never in memory as a whole.
    fn large_block(&mut self, block: &ArchivedBlock) -> Result<bool, Ended> {
        let engine = &self.shared.engine;
        let mut hasher = PayloadHasher::default();
        for (offset, length) in pieces(block.size()) {
            self.buffer.resize(ROOM + length, 0);
            let piece = &mut self.buffer[ROOM..];
            if let Err(error) = engine.blocks().read_archived(block, offset, piece) {
                unreadable(block.hash(), &error);
                return Ok(false);
            }
            hasher.update(piece);
            if offset == 0 && !self.is_block(block.hash()) {
                tracing::error!("Block {} is damaged in the archive", block.hash());
                return Ok(false);
            }
        }
        let hash = hasher.finish();
        let header = FrameHeader {
            magic: self.shared.peers.magic,
            command: BLOCK,
            length: block.size(),
            checksum: [hash[0], hash[1], hash[2], hash[3]],
        };
        self.shared.peers.write(self.peer, &header.to_bytes())?;
        for (offset, length) in pieces(block.size()) {
            let mut piece = std::mem::take(&mut self.buffer);
            piece.resize(length, 0);
            // The message header is already sent: only a disconnection can signal an error.
            if let Err(error) = engine.blocks().read_archived(block, offset, &mut piece) {
                unreadable(block.hash(), &error);
                return Err(Ended::Io(io::ErrorKind::InvalidData.into()));
            }
            self.shared.peers.write(self.peer, &piece)?;
            self.buffer = piece;
        }
        self.peer.traffic.sent_message(BLOCK, FrameHeader::SIZE + block.size() as usize);
        Ok(true)
    }

    fn send(&mut self, message: &Message<'_>) -> Result<(), Ended> {
        self.send_framed(message.command(), &mut with_room(message))
    }

    /// Sends the payload behind room for the transport header.
    fn send_framed(&self, command: Command, buffer: &mut Vec<u8>) -> Result<(), Ended> {
        let (length, id) = (buffer.len().saturating_sub(ROOM), self.peer.id);
        net!("sending {command} ({length} bytes) peer={id}");
        let start = self.peer.frame(self.shared.peers.magic, command, buffer);
        let message = &buffer[start..];
        self.shared.peers.write(self.peer, message)?;
        self.peer.traffic.sent_message(command, message.len());
        Ok(())
    }
}

pub(super) fn put_stripped(block: &Block, out: &mut Vec<u8>) {
    out.extend_from_slice(&block.bytes()[..Header::SIZE]);
    encode::compact_size(out, block.tx_count() as u64);
    for tx in block.txs() {
        tx.stripped_parts().iter().for_each(|part| out.extend_from_slice(part));
    }
}

pub(super) fn entry_of(hash: &BlockHash) -> Inventory {
    Inventory { kind: InventoryKind::BLOCK, hash: hash.0 }
}

fn unreadable(hash: &BlockHash, error: &EngineError) {
    tracing::error!("Block {hash} cannot be read for a peer: {error}");
}

/// Offsets and lengths of the pieces of `size` bytes.
fn pieces(size: u32) -> impl Iterator<Item = (u32, usize)> {
    (0..size).step_by(PIECE).map(move |offset| (offset, PIECE.min((size - offset) as usize)))
}

const BLOCK: Command = Command::new("block");
/// Minimum age of an old block relative to the best header (Core `net_processing.cpp`, `HISTORICAL_BLOCK_AGE`).
const OLD_S: u32 = 7 * 24 * 60 * 60;
/// Minimum depth of pruning (Core `validation.h`, `MIN_BLOCKS_TO_KEEP`).
const KEPT_BLOCKS: u32 = 288;
/// Depth that a limited node serves, plus two for peers that are not at its tip yet (BIP159).
const LIMITED_DEPTH_MAX: u32 = KEPT_BLOCKS + 2;
/// Inventory kinds answered with a block.
const BLOCKS: [InventoryKind; 4] = [
    InventoryKind::BLOCK,
    InventoryKind::WITNESS_BLOCK,
    InventoryKind::COMPACT_BLOCK,
    InventoryKind::FILTERED_BLOCK,
];
/// Protocol version from which peers understand or ignore `sendaddrv2` (BIP155).
const ADDRESSES_V2: i32 = 70016;
/// Idle time after which a peer's buffer is freed.
const QUIET: Duration = Duration::from_mins(2);
/// Hashes per response to `getblocks` (Core `net_processing.cpp`).
pub(super) const HASHES_MAX: usize = 500;
/// New blocks announced one by one (Core `net_processing.cpp`, `MAX_BLOCKS_TO_ANNOUNCE`).
const ANNOUNCED_MAX: usize = 8;
/// Maximum entries of a `notfound`.
const MISSING_MAX: usize = 1000;
/// Most blocks of Bitcoin are one piece; the largest of Bitcoin Cash are many.
const PIECE: usize = 2 << 20;
