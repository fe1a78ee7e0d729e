//! Attacks of hostile peers and the messages that they send.

use std::time::Duration;

use assay_report::stats::random::SplitMix64;

use crate::swarm::Deed;
use crate::wire::{self, Hash, RawHeader};

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
/// Maximum entries of `inv` and `getdata` (Core `net_processing.cpp`, `MAX_INV_SZ`).
const INVENTORY_MAX: usize = 50_000;
/// Maximum addresses of a message (Core `MAX_ADDR_TO_SEND`).
const ADDRESSES_MAX: usize = 1_000;
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
    pub const ALL: [Self; 15] = [
        Self::Flood,
        Self::SlowLoris,
        Self::HalfOpen,
        Self::Churn,
        Self::Deaf,
        Self::Headers,
        Self::Blocks,
        Self::Inventories,
        Self::Requests,
        Self::Compact,
        Self::Orphans,
        Self::Addresses,
        Self::V2Garbage,
        Self::Withhold,
        Self::Garbage,
    ];

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
    pub(crate) hash: Hash,
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
    if tick == 0 && attack.shakes_hands() {
        wire::put_handshake(out, random.next());
        messages = 2;
    }
    let mut put = |command: &str, payload: &[u8]| {
        wire::put(out, command, payload);
        messages += 1;
    };
    let is_big = tick % BIG_EVERY == 1;
    let (hash, time) = (&tip.hash, tip.time);
    match attack {
        Attack::Flood => (0..PINGS).for_each(|_| put("ping", &random.next().to_le_bytes())),
        Attack::Orphans => (0..ORPHANS).for_each(|_| put("tx", &wire::orphan(random))),
        Attack::Addresses if tick % ADDRESSES_EVERY == 1 => {
            put("addr", &wire::addresses(ADDRESSES_MAX, time, random));
        }
        Attack::Headers if is_big => put("headers", &headers_without_work(hash, time, random)),
        Attack::Blocks if is_big => put("block", &wire::invalid_block(hash, time, random)),
        Attack::Inventories if is_big => {
            put("inv", &wire::unknown_inventory(wire::INV_TX, INVENTORY_MAX, random));
        }
        Attack::Requests if is_big => {
            put(
                "getdata",
                &wire::unknown_inventory(wire::INV_WITNESS_BLOCK, INVENTORY_MAX, random),
            );
        }
        Attack::Compact if is_big => {
            put("sendcmpct", &[1, 2, 0, 0, 0, 0, 0, 0, 0]);
            let block = wire::colliding_compact_block(hash, time, SHORT_NAMES, random);
            put("cmpctblock", &block);
        }
        Attack::Deaf if tick % DRIP_EVERY == 1 => put("getdata", &request(hash)),
        Attack::Withhold if is_big => {
            let mut headers = vec![1];
            headers.extend_from_slice(&wire::header(hash, &random.bytes::<32>(), time, true));
            headers.push(0);
            put("headers", &headers);
        }
        Attack::SlowLoris if tick == 1 => wire::put_head(out, "block", 4_000_000, &[]),
        Attack::SlowLoris if tick > 1 && tick.is_multiple_of(DRIP_EVERY) => out.push(0),
        Attack::V2Garbage => out.extend(random.bytes::<GARBAGE>()),
        Attack::Garbage if tick > 0 => out.extend(random.bytes::<GARBAGE>()),
        _ => {}
    }
    let leaves = (attack == Attack::Churn && tick > 0).then_some(Duration::ZERO);
    Deed { messages, leaves }
}

/// Requests the tip's block sixteen times.
fn request(hash: &Hash) -> Vec<u8> {
    let mut list = vec![16];
    for _ in 0..16 {
        list.extend_from_slice(&wire::INV_WITNESS_BLOCK.to_le_bytes());
        list.extend_from_slice(hash);
    }
    list
}

/// A chain of headers; the first already lacks work.
fn headers_without_work(hash: &Hash, time: u32, random: &mut SplitMix64) -> Vec<u8> {
    let mut prev = *hash;
    let mut next = || {
        let header = wire::header(&prev, &random.bytes::<32>(), time, false);
        prev = wire::double_sha256(&header);
        header
    };
    let headers: Vec<RawHeader> = (0..wire::HEADERS_MAX).map(|_| next()).collect();
    wire::headers_payload(&headers)
}
