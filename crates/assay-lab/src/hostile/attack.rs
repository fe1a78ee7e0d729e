//! The ways in which peers are hostile, and what each sends.

use assay_report::stats::random::SplitMix64;

use crate::wire::{self, Hash, RawHeader};

/// Ticks of 10 ms between two big messages.
const BIG_EVERY: u64 = 100;
/// Ticks between two messages of a thousand addresses.
const ADDRESSES_EVERY: u64 = 10;
/// Ticks between two bytes of those who drip.
const DRIP_EVERY: u64 = 10;
/// Pings per tick.
const PINGS: u64 = 20;
/// Orphans per tick.
const ORPHANS: u64 = 10;
/// Most entries of `inv` and `getdata` (Core `net_processing.cpp`, `MAX_INV_SZ`).
const INVENTORY_MAX: usize = 50_000;
/// Most addresses of a message (Core `MAX_ADDR_TO_SEND`).
const ADDRESSES_MAX: usize = 1_000;
/// Short names of a compact block.
const SHORT_NAMES: usize = 2_000;
/// Bytes of garbage per tick.
const GARBAGE: usize = 64;

/// How a peer is hostile.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Attack {
    /// Two thousand pings a second.
    Flood,
    /// A message of 4 MB, byte by byte.
    SlowLoris,
    /// Connects and says nothing.
    HalfOpen,
    /// Connects, opens the protocol, and leaves.
    Churn,
    /// Requests blocks and never reads.
    Deaf,
    /// Headers without proof of work.
    Headers,
    /// Blocks on the tip with work, without a coinbase.
    Blocks,
    /// Announces 50,000 unknown transactions a second.
    Inventories,
    /// Requests 50,000 unknown blocks a second.
    Requests,
    /// Compact blocks whose short names collide.
    Compact,
    /// A thousand transactions without parents a second.
    Orphans,
    /// Ten thousand addresses a second.
    Addresses,
    /// What may be the key of an encrypted connection, then garbage without an end.
    V2Garbage,
    /// Announces a header on the tip with work, and keeps the block.
    Withhold,
    /// Random bytes behind a good opening.
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

    /// What it is, in a few words.
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

    /// Whether it never reads what comes.
    pub(crate) const fn is_deaf(self) -> bool {
        matches!(self, Self::Deaf)
    }

    /// Whether it begins with a good opening.
    const fn shakes_hands(self) -> bool {
        !matches!(self, Self::HalfOpen | Self::V2Garbage)
    }
}

/// What the attackers know about the chain.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Tip {
    pub(crate) hash: Hash,
    /// A time that a block on top may have.
    pub(crate) time: u32,
}

/// What one peer does at one tick.
pub(crate) struct Deed {
    /// Messages written.
    pub(crate) messages: u64,
    /// Whether it leaves now.
    pub(crate) leaves: bool,
}

/// Writes what a peer does at its `tick`-th tick of this connection.
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
            headers.extend_from_slice(&wire::header(hash, &wire::random_hash(random), time, true));
            headers.push(0);
            put("headers", &headers);
        }
        Attack::SlowLoris if tick == 1 => wire::put_head(out, "block", 4_000_000, &[]),
        Attack::SlowLoris if tick > 1 && tick.is_multiple_of(DRIP_EVERY) => out.push(0),
        Attack::V2Garbage => put_random(out, GARBAGE, random),
        Attack::Garbage if tick > 0 => put_random(out, GARBAGE, random),
        _ => {}
    }
    Deed { messages, leaves: attack == Attack::Churn && tick > 0 }
}

/// Sixteen times the block of the tip.
fn request(hash: &Hash) -> Vec<u8> {
    let mut list = vec![16];
    for _ in 0..16 {
        list.extend_from_slice(&wire::INV_WITNESS_BLOCK.to_le_bytes());
        list.extend_from_slice(hash);
    }
    list
}

/// A chain of headers, the first of which lacks work already.
fn headers_without_work(hash: &Hash, time: u32, random: &mut SplitMix64) -> Vec<u8> {
    let mut prev = *hash;
    let mut next = || {
        let header = wire::header(&prev, &wire::random_hash(random), time, false);
        prev = wire::double_sha256(&header);
        header
    };
    let headers: Vec<RawHeader> = (0..wire::HEADERS_MAX).map(|_| next()).collect();
    wire::headers_payload(&headers)
}

fn put_random(out: &mut Vec<u8>, bytes: usize, random: &mut SplitMix64) {
    for _ in 0..bytes / 8 {
        out.extend_from_slice(&random.next().to_le_bytes());
    }
}
