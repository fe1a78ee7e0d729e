//! Peer reader thread: parses messages, handles them, and queues requests in the outbox.

use std::sync::atomic::Ordering;

use assay_engine::defect::{Point, point};
use assay_hash::sha256d;
use assay_wire::p2p::{
    BlockTxsRequest, Command, Endpoint, FrameError, FrameHeader, InventoryKind, Locator,
    MESSAGE_BYTES_MAX, Message, PayloadHasher, PeerAddress, TimedAddress, Version,
};
use assay_wire::{BlockHash, Encoding, Header, ParseError, ParseErrorKind};

use super::P2p;
use super::addresses::AddrBook;
use super::bloom::{BloomFilter, DATA_BYTES_MAX, FilterChange};
use super::ended::Ended;
use super::faults::log_malformed;
use super::features::handle_feature;
use super::outbox::Request;
use super::peers::{Connection, Peer, printable};
use super::permissions::Permissions;
use super::transport::{Incoming, PACKET_EXPANSION, PIECE};
use super::txs::is_tx;
use crate::bip324::{self, Opener};

pub(super) fn run(peer: &Peer, shared: &P2p) -> Ended {
    let mut incoming = match shared.peers.agree_on_transport(peer) {
        Ok(incoming) => incoming,
        Err(ended) => return ended,
    };
    if !peer.connection.is_inbound() {
        peer.outbox.put(Request::Greet);
    }
    let mut reader =
        PeerReader { peer, shared, is_introduced: false, payload: Vec::new(), name: [0; 12] };
    loop {
        let taken = match &mut incoming {
            Incoming::V1(begun) => reader.message(&std::mem::take(begun)),
            Incoming::V2(opener) => reader.packet(opener),
        };
        if let Err(ended) = taken {
            return ended;
        }
    }
}

struct PeerReader<'a> {
    peer: &'a Peer,
    shared: &'a P2p,
    /// True after the peer's `version`.
    is_introduced: bool,
    payload: Vec<u8>,
    /// Raw name of the latest version 1 message.
    name: [u8; 12],
}

impl PeerReader<'_> {
    /// Reads a version 1 message, of which `begun` has been read.
    fn message(&mut self, begun: &[u8]) -> Result<(), Ended> {
        let mut head = [0; FrameHeader::SIZE];
        head[..begun.len()].copy_from_slice(begun);
        self.peer.fill(&mut head[begun.len()..])?;
        let shared = self.shared;
        let length_max = shared.peers.message_bytes_max.max(shared.peers.block_bytes_max);
        self.name.copy_from_slice(&head[4..16]);
        let header = match FrameHeader::parse(&head, shared.peers.magic, length_max) {
            // Skipped, as in Core.
            Err(FrameError::Command) => {
                head[4..16].fill(0);
                FrameHeader::parse(&head, shared.peers.magic, length_max)
            }
            parsed => parsed,
        };
        let header = header.map_err(|fault| self.header_fault(&fault))?;
        let command = header.command;
        if !self.is_wanted(command, header.length)? {
            return self.skip(&header);
        }
        let mut payload = std::mem::take(&mut self.payload);
        // Memory grows with received data, not with the announced length.
        self.peer.append(&mut payload, header.length as usize)?;
        self.peer.traffic.received_message(command, FrameHeader::SIZE + payload.len());
        if self.has_right_checksum(&header, &sha256d(&payload)) {
            self.payload(command, &payload)?;
        }
        self.keep(payload);
        Ok(())
    }

    fn packet(&mut self, opener: &mut Opener) -> Result<(), Ended> {
        let (peer, contents_max) = (self.peer, self.shared.peers.contents_max());
        let mut buffer = std::mem::take(&mut self.payload);
        if let Some(contents) = peer.packet(opener, &[], contents_max, &mut buffer)? {
            let bytes = contents.len() + PACKET_EXPANSION;
            if let Some((command, payload)) = bip324::split(contents) {
                peer.traffic.received_message(command, bytes);
                if self.is_wanted(command, payload.len() as u32)? {
                    self.payload(command, payload)?;
                } else {
                    self.unwanted(command)?;
                }
            } else {
                peer.traffic.received_message(NAMELESS, bytes);
                net!(
                    "V2 transport error: invalid message type ({} bytes contents), peer={}",
                    contents.len(),
                    peer.id
                );
            }
        }
        self.keep(buffer);
        Ok(())
    }

    /// True if a message is processed; checks its maximum length.
    fn is_wanted(&self, command: Command, length: u32) -> Result<bool, Ended> {
        let length_max = match command.as_str() {
            "block" | "cmpctblock" | "blocktxn" => Some(self.shared.peers.block_bytes_max),
            name => WANTED.iter().find(|(wanted, _)| *wanted == name).map(|(_, length)| *length),
        };
        match length_max {
            Some(length_max) if length > length_max => {
                Err(FrameError::TooLong { command, length, length_max }.into())
            }
            length_max => Ok(length_max.is_some()),
        }
    }

    fn payload(&mut self, command: Command, payload: &[u8]) -> Result<(), Ended> {
        let (length, peer) = (payload.len(), self.peer.id);
        net!("received: {command} ({length} bytes) peer={peer}");
        match Message::parse(command, payload) {
            Ok(message) => self.handle(&message),
            Err(error) => {
                self.malformed(command, length, &error);
                Ok(())
            }
        }
    }

    /// Reuses the buffer for the next message, unless large.
    fn keep(&mut self, mut payload: Vec<u8>) {
        payload.clear();
        payload.shrink_to(PIECE);
        self.payload = payload;
    }

    fn unwanted(&self, command: Command) -> Result<(), Ended> {
        if self.may_be_handled(command) {
            self.check_offered(command)?;
        }
        Ok(())
    }

    /// Skips an ignored payload in pieces.
    fn skip(&mut self, header: &FrameHeader) -> Result<(), Ended> {
        self.unwanted(header.command)?;
        let mut hasher = PayloadHasher::default();
        let mut left = header.length as usize;
        let mut piece = vec![0; left.min(PIECE)];
        while left > 0 {
            let length = left.min(PIECE);
            self.peer.fill(&mut piece[..length])?;
            hasher.update(&piece[..length]);
            left -= length;
        }
        let length = FrameHeader::SIZE + header.length as usize;
        self.peer.traffic.received_message(header.command, length);
        if self.has_right_checksum(header, &hasher.finish()) && header.command == NAMELESS {
            let (name, bytes, peer) = (self.shown_name(), header.length, self.peer.id);
            net!("Header error: Invalid message type ({name}, {bytes} bytes), peer={peer}");
        }
        Ok(())
    }

    /// Disconnects for requests of services that are not offered, as in Core.
    fn check_offered(&self, command: Command) -> Result<(), Ended> {
        let permissions = self.peer.permissions;
        let is_offered = self.shared.peers.offers_bloom(self.peer);
        let is_wrong = match command.as_str() {
            "mempool" if permissions.has(Permissions::NO_BAN) || self.shows_mempool() => false,
            "mempool" if is_offered => return Err(Ended::MempoolTooMuch),
            "filterload" | "filteradd" | "filterclear" => !is_offered,
            "mempool" => return Err(Ended::MempoolNotOffered),
            _ => false,
        };
        if is_wrong { Err(Ended::NotOffered { command }) } else { Ok(()) }
    }

    /// True if the peer may request the mempool (Core `net_processing.cpp`, MEMPOOL).
    fn shows_mempool(&self) -> bool {
        let is_for_all =
            self.shared.peers.offers_bloom(self.peer) && !self.shared.peers.totals().is_reached();
        is_for_all || self.peer.permissions.has(Permissions::MEMPOOL)
    }

    /// Printable characters of the latest message's name.
    fn shown_name(&self) -> String {
        printable(self.name.split(|byte| *byte == 0).next().unwrap_or_default())
    }

    /// Verifies the payload checksum. On a mismatch the message is skipped, as in Core: the next one may be valid.
    fn has_right_checksum(&self, header: &FrameHeader, hash: &[u8; 32]) -> bool {
        let is_right = header.check_hash(hash).is_ok();
        if !is_right {
            let FrameHeader { length, checksum, .. } = header;
            let hex = |bytes: &[u8]| faster_hex::hex_string(bytes);
            net!(
                "Header error: Wrong checksum ({}, {length} bytes), expected {} was {}, peer={}",
                self.shown_name(),
                hex(&hash[..4]),
                hex(checksum),
                self.peer.id
            );
        }
        is_right
    }

    /// Logs an unrecoverable header error in Core's wording (`net.cpp`, `V1Transport::readHeader`).
    fn header_fault(&self, fault: &FrameError) -> Ended {
        let words = match fault {
            FrameError::Magic { found, .. } => {
                format!("Wrong MessageStart {} received", faster_hex::hex_string(found))
            }
            FrameError::TooLong { length, .. } => {
                format!("Size too large ({}, {length} bytes)", self.shown_name())
            }
            fault => fault.to_string(),
        };
        net!("Header error: {words}, peer={}", self.peer.id);
        Ended::Frame { fault: *fault }
    }

    /// Handles a malformed payload: an oversized list is misbehaviour, anything else is ignored, as in Core.
    fn malformed(&self, command: Command, bytes: usize, error: &ParseError) {
        if !self.may_be_handled(command) {
            return;
        }
        if command.as_str() == "pong" {
            return self.shared.peers.handle_pong(self.peer, None);
        }
        if let ParseErrorKind::TooManyAddresses { count } = error.kind {
            self.shared.addresses.accepts_addresses(self.peer, command.as_str(), count);
            return;
        }
        match error.kind {
            ParseErrorKind::TooMany { count } if LISTS.contains(&command.as_str()) => {
                self.shared
                    .peers
                    .misbehaving(self.peer, &format!("{command} message size = {count}"));
            }
            ParseErrorKind::TooMany { .. } => {
                net!("{command} of peer={} is too long", self.peer.id);
                self.peer.close();
            }
            _ => log_malformed(command.as_str(), bytes, error, self.peer),
        }
    }

    /// True if the handshake state permits a message.
    fn may_be_handled(&self, command: Command) -> bool {
        let id = self.peer.id;
        if !self.is_introduced {
            net!(
                "non-version message before version handshake. Message \"{command}\" from peer={id}"
            );
        } else if !self.peer.is_ready() && !DURING_HANDSHAKE.contains(&command.as_str()) {
            net!("Unsupported message \"{command}\" prior to verack from peer={id}");
        } else {
            return true;
        }
        false
    }

    fn handle(&mut self, message: &Message<'_>) -> Result<(), Ended> {
        point(Point::PeerMessage);
        self.check_offered(message.command())?;
        if let Message::Version(version) = message {
            return self.introduce(version);
        }
        if !self.may_be_handled(message.command()) {
            return Ok(());
        }
        if let Message::Verack = message {
            return self.agreed();
        }
        let shared = self.shared;
        if !is_of_no_block(message) {
            // Later messages may depend on the validation of the peer's blocks.
            shared.sync.wait_for_validations(self.peer);
        }
        self.answer(message)?;
        shared.txs.reconsider_some(self.peer.id, matches!(message, Message::Tx(_)));
        shared.round(self.peer);
        if let Message::Ping(nonce) = message {
            // After all responses to earlier messages.
            self.put(Request::Pong(*nonce))?;
        }
        Ok(())
    }

    fn agreed(&self) -> Result<(), Ended> {
        let (peer, shared) = (self.peer, self.shared);
        if peer.is_ready() {
            net!("ignoring redundant verack message from peer={}", peer.id);
            return Ok(());
        }
        shared.sync.joined(peer);
        shared.txs.joined(peer, shared.sync.is_preferred(peer.id));
        peer.is_ready.store(true, Ordering::Relaxed);
        self.put(Request::Ready)?;
        let facts = peer.facts();
        let text = format!(
            "New {} peer connected: version: {}, blocks={}, {}",
            peer.connection.name(),
            facts.version,
            facts.start_height,
            shared.peers.shown(peer),
        );
        if peer.connection.is_inbound() {
            // Remote peers control the frequency of connections.
            net!("{text}");
        } else {
            tracing::info!("{text}");
        }
        if facts.version >= COMPACT_BLOCKS {
            let version = shared.compact.version();
            peer.send(&Message::SendCompact { announce: 0, version });
        }
        shared.round(peer);
        Ok(())
    }

    fn answer(&mut self, message: &Message<'_>) -> Result<(), Ended> {
        match message {
            Message::SendHeaders => self.peer.wants_headers.store(true, Ordering::Relaxed),
            Message::FeeFilter(rate) if *rate <= MONEY_MAX => {
                self.peer.with_facts(|facts| facts.min_fee_sat_per_kvb = *rate);
            }
            Message::WtxidRelay => self.name_wtxids()?,
            Message::SendAddrV2 => self.read_addrv2()?,
            Message::Other { command, payload } if command.as_str() == "feature" => {
                handle_feature(self.peer, payload)?;
            }
            Message::Addr(addresses) => {
                let came = addresses.iter().map(|TimedAddress { time, address }| PeerAddress {
                    time,
                    services: address.services,
                    endpoint: address.into(),
                });
                self.shared.addresses.handle_addresses(self.peer, "addr", came.collect());
            }
            Message::AddrV2(addresses) => {
                self.shared.addresses.handle_addresses(
                    self.peer,
                    "addrv2",
                    addresses.iter().collect(),
                );
            }
            Message::GetAddr => self.shared.addresses.handle_getaddr(self.peer),
            Message::FilterLoad(_) | Message::FilterAdd(_) | Message::FilterClear => {
                if let Some(change) = self.filter_change(message) {
                    self.put(Request::Filter(change))?;
                }
            }
            Message::Mempool if self.shows_mempool() => {
                self.peer.with_relay(|relay| relay.wants_all = true);
            }
            Message::Tx(raw) => {
                self.shared.txs.handle_tx(self.peer, raw)?;
            }
            Message::NotFound(entries) => {
                self.shared.txs.not_found(self.peer, entries.iter());
            }
            Message::Pong(nonce) => self.shared.peers.handle_pong(self.peer, Some(*nonce)),
            Message::Headers(headers) => {
                let headers: Vec<Header> = headers.iter().collect();
                self.shared.sync.handle_headers(self.peer, &headers);
            }
            Message::Block(raw) => self.shared.sync.handle_block(self.peer, raw),
            Message::SendCompact { announce, version } => {
                self.shared.sync.handle_send_compact(self.peer, *announce, *version);
            }
            Message::CompactBlock(payload) => {
                self.shared.sync.handle_compact_block(self.peer, payload);
            }
            Message::BlockTxs(payload) => self.shared.sync.handle_block_txs(self.peer, payload),
            Message::GetBlockTxs(payload) => self.block_txs_asked(payload)?,
            Message::Inv(entries) => {
                let txs: Vec<_> = entries.iter().filter(is_tx).collect();
                self.shared.txs.handle_tx_announcements(self.peer, &txs)?;
                let blocks = entries.iter().filter(|entry| entry.kind == InventoryKind::BLOCK);
                let blocks: Vec<BlockHash> = blocks.map(|entry| BlockHash(entry.hash)).collect();
                if !blocks.is_empty() {
                    self.shared.sync.handle_block_announcements(self.peer, &blocks);
                }
            }
            Message::GetHeaders(Locator { hashes, stop, .. }) => {
                self.put(Request::Headers { locator: hashes.iter().collect(), stop: *stop })?;
            }
            Message::GetBlocks(Locator { hashes, stop, .. }) => {
                self.put(Request::Hashes { locator: hashes.iter().collect(), stop: *stop })?;
            }
            Message::GetFilters(range) => self.put(Request::Filters(*range))?,
            Message::GetFilterHashes(range) => self.put(Request::FilterHashes(*range))?,
            Message::GetFilterCheckpoints { kind, stop } => {
                self.put(Request::FilterCheckpoints { kind: *kind, stop: *stop })?;
            }
            Message::GetData(entries) => {
                let (count, peer) = (entries.len(), self.peer.id);
                net!("received getdata ({count} invsz) peer={peer}");
                if let Some(first) = entries.get(0) {
                    let (kind, hash) = (first.kind, BlockHash(first.hash));
                    net!("received getdata for: {kind} {hash} peer={peer}");
                }
                self.put(Request::Data(entries.iter().collect()))?;
            }
            _ => {}
        }
        Ok(())
    }

    /// Change of the peer's filter, if it is allowed.
    fn filter_change(&self, message: &Message<'_>) -> Option<FilterChange> {
        let (peer, peers) = (self.peer, &self.shared.peers);
        let change = match message {
            Message::FilterLoad(sent) => {
                let filter = BloomFilter::new(sent);
                if filter.is_none() {
                    peers.misbehaving(peer, "too-large bloom filter");
                }
                FilterChange::Set(filter?)
            }
            Message::FilterAdd(data) if data.len() > DATA_BYTES_MAX => {
                peers.misbehaving(peer, "bad filteradd message");
                return None;
            }
            Message::FilterAdd(data) => FilterChange::Add(data.to_vec()),
            _ => FilterChange::Clear,
        };
        // Other connections never relay transactions.
        let has_relay = !matches!(peer.connection, Connection::BlockRelayOnly | Connection::Feeler);
        has_relay.then_some(change)
    }

    fn block_txs_asked(&self, payload: &[u8]) -> Result<(), Ended> {
        let txs_max = self.shared.compact.txs_max();
        match BlockTxsRequest::parse(payload, txs_max) {
            Ok(request) if request.indexes.is_empty() => Err(Ended::AskedNothing),
            Ok(request) => self.put(Request::BlockTxs(request)),
            Err(error) => {
                log_malformed("getblocktxn", payload.len(), &error, self.peer);
                Ok(())
            }
        }
    }

    /// The peer announces by wtxid (BIP339), which is valid only before its `verack`.
    fn name_wtxids(&self) -> Result<(), Ended> {
        let (peer, shared) = (self.peer, self.shared);
        if peer.is_ready() {
            return Err(Ended::Late { command: Command::new("wtxidrelay") });
        }
        let is_understood =
            shared.peers.encoding == Encoding::Segwit && peer.facts().version >= WTXIDS;
        if is_understood {
            peer.with_relay(|relay| relay.names_wtxids = true);
        }
        Ok(())
    }

    /// The peer understands `addrv2` (BIP155), which is valid only before its `verack`.
    fn read_addrv2(&self) -> Result<(), Ended> {
        let peer = self.peer;
        if peer.is_ready() {
            return Err(Ended::Late { command: Command::new("sendaddrv2") });
        }
        peer.with_addresses(|relay| relay.wants_v2 = true);
        Ok(())
    }

    fn introduce(&mut self, version: &Version<'_>) -> Result<(), Ended> {
        let (peer, shared) = (self.peer, self.shared);
        if self.is_introduced {
            net!("redundant version message from peer={}", peer.id);
            return Ok(());
        }
        shared.addresses.address_offers(peer, version.services);
        let expected = shared.peers.expected_services(peer, version.services);
        if version.services & expected != expected {
            return Err(Ended::WrongServices { offered: version.services, expected });
        }
        if version.version < super::PROTOCOL_MIN {
            return Err(Ended::Old { version: version.version });
        }
        if peer.connection.is_inbound() && shared.peers.is_itself(version.nonce) {
            tracing::info!("connected to self at {}, disconnecting", peer.address);
            return Err(Ended::Itself);
        }
        let seen_as = Endpoint::from(version.receiver);
        if peer.connection.is_inbound() && seen_as.host.is_routable() {
            shared.addresses.local.seen(&seen_as);
        }
        self.is_introduced = true;
        self.peer.with_facts(|facts| {
            facts.version = version.version;
            facts.services = version.services;
            facts.user_agent = printable(version.user_agent);
            facts.seen_as = Some(seen_as);
            facts.start_height = version.start_height;
            facts.time_offset_s =
                version.time.saturating_sub_unsigned(self.shared.engine.clock().now_s());
        });
        if peer.connection.is_inbound() {
            self.put(Request::Greet)?;
        }
        let has_relay = !matches!(peer.connection, Connection::BlockRelayOnly | Connection::Feeler);
        peer.with_relay(|relay| relay.is_wanted = has_relay && version.relay.unwrap_or(true));
        self.put(Request::Agree { version: version.version })?;
        if !shared.has_room_for_relay(peer, "version", Some(peer.id)) {
            return Err(Ended::TooManyRelay);
        }
        AddrBook::ask_for_addresses(peer);
        shared.addresses.address_is_good(peer);
        if peer.connection == Connection::Feeler {
            return Err(Ended::Reached);
        }
        Ok(())
    }

    fn put(&self, request: Request) -> Result<(), Ended> {
        // The outbox was closed by the writer, which then has the reason, or because the node stops.
        if self.peer.outbox.put(request) { Ok(()) } else { Err(Ended::Stopping) }
    }
}

/// True if the message is independent of earlier blocks, so that it need not wait for script verification.
fn is_of_no_block(message: &Message<'_>) -> bool {
    matches!(
        message,
        Message::Block(_)
            | Message::Pong(_)
            | Message::FeeFilter(_)
            | Message::SendHeaders
            | Message::SendCompact { .. }
            | Message::Addr(_)
            | Message::AddrV2(_)
            | Message::GetAddr
    )
}

/// Processed messages with maximum lengths; the longest is a getdata of 50,000 entries.
const WANTED: &[(&str, u32)] = &[
    ("version", 1 << 12),
    ("verack", 1 << 12),
    ("ping", 1 << 12),
    ("pong", 1 << 12),
    ("sendheaders", 1 << 12),
    ("feefilter", 1 << 12),
    ("getheaders", 1 << 13),
    ("getblocks", 1 << 13),
    ("getdata", 1 << 21),
    ("inv", 1 << 21),
    ("headers", 1 << 21),
    ("notfound", 1 << 21),
    ("mempool", 1 << 12),
    // Read above the protocol limit to detect misbehaviour.
    ("filterload", 1 << 17),
    ("filteradd", 1 << 17),
    ("filterclear", 1 << 12),
    ("getaddr", 1 << 12),
    ("sendaddrv2", 1 << 12),
    // Core reads longer ones to the end before it disconnects.
    ("addr", 1 << 20),
    ("addrv2", 1 << 20),
    ("wtxidrelay", 1 << 12),
    ("feature", 1 << 12),
    ("sendcmpct", 1 << 12),
    ("getblocktxn", 1 << 21),
    ("getcfilters", 1 << 12),
    ("getcfheaders", 1 << 12),
    ("getcfcheckpt", 1 << 12),
    // The size of a transaction is checked elsewhere.
    ("tx", MESSAGE_BYTES_MAX),
];
/// Minimum protocol version for wtxid relay (BIP339).
const WTXIDS: i32 = 70016;
/// Minimum protocol version for compact blocks (BIP152).
const COMPACT_BLOCKS: i32 = 70014;
/// Maximum supply, satoshi.
const MONEY_MAX: u64 = 2_100_000_000_000_000;
/// Messages allowed between `version` and `verack`.
const DURING_HANDSHAKE: [&str; 6] =
    ["verack", "wtxidrelay", "sendaddrv2", "sendtxrcncl", "feature", "version"];
/// Messages that consist of a list.
const LISTS: [&str; 3] = ["inv", "getdata", "headers"];
/// Counted as unknown.
const NAMELESS: Command = Command::new("");
