//! Attacks of hostile peers and the messages that they send.

use std::time::Duration;

use assay_report::stats::random::SplitMix64;
use assay_wire::BlockHash;
use assay_wire::p2p::{
    ADDRESSES_MAX, Command, FrameHeader, HEADERS_MAX, INVENTORY_MAX, Inventory, InventoryKind,
    MESSAGE_BYTES_MAX, Message,
};

use crate::p2p::synthetic::{self, unknown_inventory};
use crate::p2p::{self, REGTEST};
use crate::swarm::Deed;

/// Ticks of 10 ms between two large messages.
const BIG_EVERY: u64 = 100;
/// Ticks between two messages of a thousand addresses.
const ADDRESSES_EVERY: u64 = 10;
/// Ticks between two bytes of slow senders.
const DRIP_EVERY: u64 = 10;
/// Pings per tick.
const PINGS: u64 = 20;
/// Orphans per tick.
const ORPHANS: u64 = 10;
/// Times that a client which never reads requests the tip's block, per message.
const REQUESTS: usize = 16;
/// Short ids of a compact block.
const SHORT_NAMES: usize = 2_000;
/// Bytes of garbage per tick.
const GARBAGE: usize = 64;

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Attack {
    /// Two thousand pings a second.
    Flood,
    /// A message of 4 MB, byte by byte.
    SlowLoris,
    /// Connects and sends nothing.
    HalfOpen,
    /// Connects, sends the handshake, and disconnects.
    Churn,
    /// Requests blocks and never reads.
    Deaf,
    /// Headers without proof of work.
    Headers,
    /// Blocks on the tip with valid work, without a coinbase.
    Blocks,
    /// Announces 50,000 unknown transactions a second.
    Inventories,
    /// Requests 50,000 unknown blocks a second.
    Requests,
    /// Compact blocks with colliding short ids.
    Compact,
    /// A thousand transactions without parents a second.
    Orphans,
    /// Ten thousand addresses a second.
    Addresses,
    /// A plausible BIP 324 key, then endless garbage.
    V2Garbage,
    /// Announces a header with valid work on the tip, and withholds the block.
    Withhold,
    /// Random bytes after a valid handshake.
    Garbage,
}

impl Attack {
    pub const fn name(self) -> &'static str {
        match self {
            Self::Flood => "2,000 pings a second",
            Self::SlowLoris => "4 MB byte by byte",
            Self::HalfOpen => "connects, says nothing",
            Self::Churn => "connects and leaves",
            Self::Deaf => "requests blocks, never reads",
            Self::Headers => "headers without work",
            Self::Blocks => "invalid blocks on the tip",
            Self::Inventories => "50,000 unknown transactions",
            Self::Requests => "50,000 unknown blocks",
            Self::Compact => "colliding compact blocks",
            Self::Orphans => "1,000 orphans a second",
            Self::Addresses => "10,000 addresses a second",
            Self::V2Garbage => "encryption garbage",
            Self::Withhold => "withholds a block on the tip",
            Self::Garbage => "random bytes",
        }
    }

    /// True if it starts with a valid handshake.
    const fn shakes_hands(self) -> bool {
        !matches!(self, Self::HalfOpen | Self::V2Garbage)
    }
}

/// Chain state that the attackers build on.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Tip {
    pub(crate) hash: BlockHash,
    /// A valid time of a block on top.
    pub(crate) time: u32,
}

/// Writes the messages of the `tick`-th tick of this connection.
pub(crate) fn act(
    attack: Attack,
    tick: u64,
    tip: &Tip,
    random: &mut SplitMix64,
    out: &mut Vec<u8>,
) -> Deed {
    let mut messages = 0;
    let mut put = |message: Message<'_>| {
        message.write(REGTEST, out);
        messages += 1;
    };
    if tick == 0 && attack.shakes_hands() {
        put(p2p::version(random.next(), "/hostile:0.1/"));
        put(Message::Verack);
    }
    let is_big = tick % BIG_EVERY == 1;
    let Tip { hash, time } = *tip;
    match attack {
        Attack::Flood => (0..PINGS).for_each(|_| put(Message::Ping(random.next()))),
        Attack::Orphans => {
            (0..ORPHANS).for_each(|_| put(Message::Tx(&synthetic::orphan(random))));
        }
        Attack::Addresses if tick % ADDRESSES_EVERY == 1 => {
            put(Message::Addr(synthetic::addresses(ADDRESSES_MAX, time, random)[..].into()));
        }
        Attack::Headers if is_big => {
            let headers = synthetic::headers_without_work(hash, time, HEADERS_MAX, random);
            put(Message::Headers(headers[..].into()));
        }
        Attack::Blocks if is_big => {
            put(Message::Block(&synthetic::invalid_block(hash, time, random)));
        }
        Attack::Inventories if is_big => {
            let list = unknown_inventory(InventoryKind::TX, INVENTORY_MAX, random);
            put(Message::Inv(list[..].into()));
        }
        Attack::Requests if is_big => {
            let list = unknown_inventory(InventoryKind::WITNESS_BLOCK, INVENTORY_MAX, random);
            put(Message::GetData(list[..].into()));
        }
        Attack::Compact if is_big => {
            put(Message::SendCompact { announce: 1, version: 2 });
            let block = synthetic::colliding_compact_block(hash, time, SHORT_NAMES, random);
            put(Message::CompactBlock(&block));
        }
        Attack::Deaf if tick % DRIP_EVERY == 1 => {
            let entry = Inventory { kind: InventoryKind::WITNESS_BLOCK, hash: hash.0 };
            put(Message::GetData([entry; REQUESTS][..].into()));
        }
        Attack::Withhold if is_big => {
            let version = synthetic::BLOCK_VERSION;
            let header = synthetic::header(version, hash, random.bytes(), time, true);
            put(Message::Headers([header][..].into()));
        }
        Attack::SlowLoris if tick == 1 => {
            let header = FrameHeader::of(REGTEST, Command::new("block"), &[]);
            out.extend(FrameHeader { length: MESSAGE_BYTES_MAX, ..header }.to_bytes());
        }
        Attack::SlowLoris if tick > 1 && tick.is_multiple_of(DRIP_EVERY) => out.push(0),
        Attack::V2Garbage => out.extend(random.bytes::<GARBAGE>()),
        Attack::Garbage if tick > 0 => out.extend(random.bytes::<GARBAGE>()),
        _ => {}
    }
    let leaves = (attack == Attack::Churn && tick > 0).then_some(Duration::ZERO);
    Deed { messages, leaves }
}
