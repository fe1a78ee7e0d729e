//! Attacks of hostile clients.

use std::io::Write as _;
use std::ops::Range;
use std::time::Duration;

use assay_report::stats::random::SplitMix64;

use super::dataset::Dataset;
use super::protocol::{Ask, write_batch};
use crate::swarm::link::Link;
use crate::swarm::{Deed, Hostile, Turn};

/// Piece of the endless line.
const OVERSIZED_PIECE: usize = 16 * 1024;
/// Bytes of garbage per action.
const GARBAGE_PIECE: usize = 512;
/// Requests per action of clients that never read: each has a long response.
const DEAF_ASKS: u64 = 5;
/// Requests per action of flooding clients: 2,000 a second.
const FLOOD_ASKS: u64 = 20;
/// Brackets per line.
const NESTING: usize = 50_000;
const BATCH: u64 = 5_000;
/// Outpoints per batch, and batches of a connection: 5,000 subscriptions.
const OUTPOINTS: u64 = 250;
const OUTPOINT_BATCHES: u64 = 20;
/// Requests per action of clients that use up their budget, and the number of such ticks.
const BURN_ASKS: u64 = 5;
const BURN_TICKS: u64 = 30;
/// Ticks between two large lines.
const BIG_EVERY: u64 = 10;
/// Ticks between two bytes of slow senders.
const DRIP_EVERY: u64 = 100;

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Attack {
    /// Endless lines.
    Oversized,
    /// Random bytes.
    Garbage,
    /// Sends requests and never reads.
    Deaf,
    /// Two thousand requests a second.
    Flood,
    /// Half a line, byte by byte.
    HalfOpen,
    /// Connects, sends one request and disconnects.
    Churn,
    /// Lines full of brackets.
    Nesting,
    /// Oversized batches.
    Batch,
    /// Subscribes to thousands of nonexistent outputs, and disconnects.
    // Every second client names one script for all of them.
    Outpoints,
    /// Sends many requests, and reconnects before its budget is used up.
    Reconnect,
}

#[derive(Debug)]
pub(crate) struct HostileClients<'a> {
    dataset: &'a Dataset,
    rng: SplitMix64,
}

impl<'a> HostileClients<'a> {
    pub(crate) const fn new(dataset: &'a Dataset, seed: u64) -> Self {
        Self { dataset, rng: SplitMix64::new(seed ^ 0x686f_7374) }
    }
}

impl Hostile for HostileClients<'_> {
    type Attack = Attack;

    const RETRY: Duration = Duration::from_millis(100);
    const UNSENT_MAX: usize = 64 * 1024;

    fn name(attack: Attack) -> &'static str {
        match attack {
            Attack::Oversized => "lines without an end",
            Attack::Garbage => "random bytes",
            Attack::Deaf => "asks, never reads",
            Attack::Flood => "floods",
            Attack::HalfOpen => "half a line, byte by byte",
            Attack::Churn => "comes and goes",
            Attack::Nesting => "deep nesting",
            Attack::Batch => "long batches",
            Attack::Outpoints => "outpoints, then leaves",
            Attack::Reconnect => "asks much, reconnects",
        }
    }

    fn is_deaf(attack: Attack) -> bool {
        attack == Attack::Deaf
    }

    fn read(link: &mut Link) -> [u64; 2] {
        let mut counts = [0, 0];
        while let Some(place) = link.next_line() {
            let is_error = memchr::memmem::find(link.line(place), b"\"error\":{").is_some();
            counts = [counts[0] + 1, counts[1] + u64::from(is_error)];
        }
        counts
    }

    fn act(&mut self, turn: Turn<Attack>, out: &mut Vec<u8>) -> Deed {
        let (Turn { client, tick, responses, .. }, dataset) = (turn, self.dataset);
        let mut leaves = None;
        match turn.attack {
            Attack::Outpoints if tick < OUTPOINT_BATCHES => {
                // Unique by time and client, so that no two subscribe to the same outpoint.
                let first = (self.rng.next() & !0xffff) | (tick * OUTPOINTS);
                if tick == 0 {
                    // Outpoints are in protocol 1.7.
                    out.extend_from_slice(
                        br#"{"jsonrpc":"2.0","id":0,"method":"server.version","params":["assay-load",["1.4","1.7"]]}"#,
                    );
                    out.push(b'\n');
                }
                let hint = if client.is_multiple_of(2) { r#","6d616c6c6f7279""# } else { "" };
                write_batch(OUTPOINTS, out, |id, out| {
                    let txid = first.wrapping_add(id);
                    // Writing to memory does not fail.
                    let _ = write!(
                        out,
                        r#"{{"jsonrpc":"2.0","id":{id},"method":"blockchain.outpoint.subscribe","params":["{txid:064x}",0{hint}]}}"#
                    );
                });
            }
            // The first line is the response to the version request.
            Attack::Outpoints if responses > OUTPOINT_BATCHES => leaves = Some(Self::RETRY),
            Attack::Reconnect if tick < BURN_TICKS => {
                ask_for_much(dataset, tick * BURN_ASKS..(tick + 1) * BURN_ASKS, out);
            }
            Attack::Reconnect => leaves = Some(Duration::ZERO),
            Attack::Oversized => out.resize(out.len() + OVERSIZED_PIECE, b'a'),
            Attack::Garbage => {
                out.extend(self.rng.bytes::<GARBAGE_PIECE>());
                out.push(b'\n');
            }
            Attack::Deaf => ask_for_much(dataset, tick * DEAF_ASKS..(tick + 1) * DEAF_ASKS, out),
            Attack::Flood => {
                for id in tick * FLOOD_ASKS..(tick + 1) * FLOOD_ASKS {
                    Ask::Ping.write_line(id, dataset, out);
                }
            }
            Attack::HalfOpen if tick == 0 => {
                out.extend_from_slice(br#"{"jsonrpc":"2.0","id":1,"method":"server."#);
            }
            Attack::HalfOpen if tick.is_multiple_of(DRIP_EVERY) => out.push(b'p'),
            Attack::Churn if tick == 0 => Ask::Version.write_line(0, dataset, out),
            Attack::Churn => leaves = Some(Self::RETRY),
            Attack::Nesting if tick.is_multiple_of(BIG_EVERY) => {
                out.resize(out.len() + NESTING, b'[');
                out.push(b'\n');
            }
            Attack::Batch if tick.is_multiple_of(BIG_EVERY) => {
                write_batch(BATCH, out, |id, out| Ask::Ping.write(id, dataset, out));
            }
            Attack::HalfOpen | Attack::Nesting | Attack::Batch | Attack::Outpoints => {}
        }
        Deed { leaves, ..Deed::default() }
    }
}

/// Writes requests with long responses.
fn ask_for_much(dataset: &Dataset, ids: Range<u64>, out: &mut Vec<u8>) {
    for id in ids {
        let ask = match dataset.heavy.as_slice() {
            [] => Ask::Headers { start: 0, count: 2016 },
            heavy => Ask::History(heavy[id as usize % heavy.len()]),
        };
        ask.write_line(id, dataset, out);
    }
}
