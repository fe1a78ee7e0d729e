//! Feeds one block to one node: its transactions first, then the block, with timestamps.
//!
//! The JSON body of the block is prepared before the clock of the block starts, after its predecessor became the tip. It also
//! contains the hex of the pre-relayed transactions; only the JSON-RPC envelopes of a batch are added while the clock runs. While
//! a block is in flight, this thread waits on its socket.

mod due;
pub(crate) mod p2p_feeder;
mod peer;
mod ready;
mod seen;
pub(crate) mod tip_watch;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use assay_ledger::BlockLine;
use assay_report::stats::random::SplitMix64;
use assay_wire::{BlockHash, Header};

use self::due::{Due, sleep_until};
use self::p2p_feeder::{P2pFeeder, SendOptions};
pub(crate) use self::peer::PeerError;
pub(crate) use self::ready::Ready;
use self::tip_watch::TipWatch;
use crate::chain::{Chain, ChainError, OrderEntry};
use crate::machine::clock::Clock;
use crate::machine::disk::{self, DiskUse};
use crate::plan::{FeedPlan, SeenMode};
use crate::process::rpc::{Client, RpcError, read_batch, read_result};
use crate::process::sample;
use crate::progress::{Event, Reporter};
use crate::results::{BlockDisk, BlockRecord, BlockRelay};

const BLOCK_PREFIX: &[u8] =
    br#"{"jsonrpc":"1.0","id":"assay-lab","method":"submitblock","params":[""#;
const BLOCK_SUFFIX: &[u8] = br#""]}"#;
const TX_PREFIX: &[u8] = br#"{"jsonrpc":"1.0","id":0,"method":"sendrawtransaction","params":[""#;
const TX_SUFFIX: &[u8] = br#""]}"#;

/// Longest time from the return of `submitblock` until the tip shows on the second connection.
const TIP_TIMEOUT: Duration = Duration::from_mins(1);
/// Distinct error messages kept; bounds memory if a node puts a txid into each.
const MESSAGES_MAX: usize = 64;

#[derive(Debug, thiserror::Error)]
pub(crate) enum FeedError {
    #[error(transparent)]
    Chain(#[from] ChainError),
    #[error("block {height}")]
    Rpc { height: u32, source: RpcError },
    #[error("block {height}")]
    Peer { height: u32, source: PeerError },
    #[error("interrupted at block {height}")]
    Interrupted { height: u32 },
    /// The node rejected the block, or its tip is not the block.
    #[error("{0}")]
    Rejected(String),
}

impl FeedError {
    fn no_tip(height: u32, timeout: Duration) -> Self {
        let seconds = timeout.as_secs();
        let text = format!("block {height} was accepted, but is not the tip after {seconds} s");
        Self::Rejected(text)
    }
}

#[derive(Clone, Copy)]
pub(crate) struct FeedJob<'a> {
    pub(crate) chain: &'a Chain,
    pub(crate) plan: &'a FeedPlan,
    /// Share of each block's transactions to pre-relay.
    pub(crate) share: f64,
    pub(crate) reporter: &'a dyn Reporter,
}

/// Interfaces of a node.
pub(crate) struct Reach {
    /// Its RPC; without it only peers report the fate of a block.
    pub(crate) rpc: Option<Rpc>,
    /// Its peers, if they deliver.
    pub(crate) p2p_feeder: Option<P2pFeeder>,
    /// Its process, if it is local.
    pub(crate) pid: Option<u32>,
}

/// Two connections: one sends requests, the other watches the tip.
pub(crate) struct Rpc {
    pub(crate) client: Client,
    pub(crate) watch: TipWatch,
}

/// Feeds blocks to one node in order.
pub(crate) struct Feeder<'a> {
    job: FeedJob<'a>,
    clock: Clock,
    reach: Reach,
    /// Time from which the next block is due.
    due_at_s: f64,
    /// The same by the pace of the plan.
    paced_at_s: Option<f64>,
    random: SplitMix64,
    tx_errors: BTreeMap<String, u64>,
    /// Hash of the previous block.
    before: BlockHash,
    /// Disk usage of the target at the previous tip.
    disk: Option<DiskUse>,
    // Reused from block to block.
    body: Vec<u8>,
    raw: Vec<u8>,
    order: Vec<OrderEntry>,
    batch: Vec<u8>,
}

/// Result of sending transactions before a block.
#[derive(Clone, Default)]
pub(crate) struct Sent {
    count: u64,
    /// Accepted by RPC, or requested of a peer.
    accepted: u64,
    bytes: u64,
    /// Sent before a parent in the block.
    orphans: u64,
    first_at_s: Option<f64>,
    /// Time at which the node had processed them.
    last_at_s: Option<f64>,
}

/// A block and its pre-relayed transactions.
struct Task {
    /// Positions in generation order, in sending order.
    chosen: Vec<u32>,
    /// The block for peers.
    ready: Option<Arc<Ready>>,
}

impl<'a> Feeder<'a> {
    /// The connections of `reach` are separate ones to the same node; `before` is the node's tip.
    pub(crate) fn new(job: FeedJob<'a>, clock: Clock, reach: Reach, before: BlockHash) -> Self {
        let disk = reach.pid.and_then(disk::of_process);
        Self {
            job,
            clock,
            reach,
            disk,
            due_at_s: clock.now_s(),
            paced_at_s: None,
            random: SplitMix64::new(job.chain.header.seed ^ PACE),
            tx_errors: BTreeMap::new(),
            before,
            body: Vec::new(),
            raw: Vec::new(),
            order: Vec::new(),
            batch: Vec::new(),
        }
    }

    /// Returns the connection and the error counts of sent transactions.
    pub(crate) fn finish(self) -> (Option<Client>, BTreeMap<String, u64>) {
        (self.reach.rpc.map(|rpc| rpc.client), self.tx_errors)
    }

    /// Sends the block's transactions as planned, then the block; returns when it is the tip.
    pub(crate) fn feed(&mut self, block: &BlockLine) -> Result<BlockRecord, FeedError> {
        let interval_s = self.job.plan.pace.interval_s(self.random.uniform());
        if let Some(interval_s) = interval_s {
            let last_s = self.paced_at_s.unwrap_or_else(|| self.clock.now_s());
            self.paced_at_s = Some(last_s + interval_s);
        }
        self.set_clock(block)?;
        let task = self.prepare(block)?;
        let sent = self.send_transactions(block, &task)?;
        if let Some(last_at_s) = sent.last_at_s {
            self.due_at_s = last_at_s;
        }
        let txs_in_mempool = self.count_in_mempool(block)?;
        if let Some(paced_at_s) = self.paced_at_s {
            let reporter = self.job.reporter;
            if !sleep_until(self.clock, paced_at_s, &|| reporter.wants_stop()) {
                return Err(FeedError::Interrupted { height: block.height });
            }
            self.due_at_s = self.due_at_s.max(paced_at_s);
        }
        let due_at_s = self.due_at_s;
        let disk_at_send = self.reach.pid.and_then(disk::of_process);
        let (stamps, cpu_s) = match &task.ready {
            Some(ready) => self.deliver(block, ready, &task)?,
            None => self.submit(block)?,
        };
        let disk = self.disk_around(disk_at_send);
        self.due_at_s = stamps.tip_at_s;
        Ok(BlockRecord {
            txs_sent: sent.count,
            txs_accepted: sent.accepted,
            txs_sent_bytes: sent.bytes,
            txs_in_mempool,
            orphans: sent.orphans,
            first_tx_at_s: sent.first_at_s.map(round_us),
            last_tx_at_s: sent.last_at_s.map(round_us),
            send_at_s: round_us(stamps.send_at_s),
            reply_at_s: round_us(stamps.reply_at_s),
            tip_at_s: round_us(stamps.tip_at_s),
            service_s: round_us(stamps.tip_at_s - stamps.send_at_s),
            queue_s: round_us(stamps.send_at_s - due_at_s),
            cpu_s,
            disk,
            relay: stamps.relay,
            ..BlockRecord::of(block)
        })
    }

    /// Sets the node's mock time to the block's time, if the plan requires it.
    fn set_clock(&self, block: &BlockLine) -> Result<(), FeedError> {
        let Some(rpc) = self.reach.rpc.as_ref().filter(|_| self.job.plan.mock_time) else {
            return Ok(());
        };
        let time = Header::parse(&self.job.chain.read_header(block)?).time;
        let set: Result<serde_json::Value, RpcError> =
            rpc.client.call("setmocktime", &format!("[{time}]"));
        set.map(drop).map_err(|source| FeedError::Rpc { height: block.height, source })
    }

    /// Reads the block into its JSON body or for the peers, and its generation order if needed; selects pre-relayed transactions.
    fn prepare(&mut self, block: &BlockLine) -> Result<Task, FeedError> {
        let FeedJob { plan, share, chain, .. } = self.job;
        let is_chosen = block.txs > 1 && share > 0.0;
        let is_relay = self.reach.p2p_feeder.is_some();
        let needs_parents = plan.seen_mode == SeenMode::Random || plan.orphans > 0.0;
        self.raw.clear();
        let raw = &mut self.raw;
        if is_relay {
            chain.read_block(block, |piece| raw.extend_from_slice(piece))?;
        } else {
            compose_block(chain, block, &mut self.body, |piece| {
                if needs_parents && is_chosen {
                    raw.extend_from_slice(piece);
                }
            })?;
        }
        self.order.clear();
        if is_chosen {
            chain.read_order(block, &mut self.order)?;
        }
        let seed = chain.header.seed ^ u64::from(block.height);
        let mut chosen = seen::choose(plan.seen_mode, share, &self.order, &self.raw, seed);
        if plan.orphans > 0.0 {
            chosen = seen::with_orphans(&chosen, plan.orphans, &self.order, &self.raw, seed).0;
        }
        let Some(p2p_feeder) = &self.reach.p2p_feeder else {
            return Ok(Task { chosen, ready: None });
        };
        let height = block.height;
        let ready = Ready::new(std::mem::take(&mut self.raw), p2p_feeder.is_cash());
        let no_block =
            || PeerError::Other(format!("block {height} of the chain cannot be read as a block"));
        let ready = ready.ok_or_else(|| FeedError::Peer { height, source: no_block() })?;
        Ok(Task { chosen, ready: Some(Arc::new(ready)) })
    }

    fn send_transactions(&mut self, block: &BlockLine, task: &Task) -> Result<Sent, FeedError> {
        let interval_s = self.paced_at_s.map(|at_s| at_s - self.clock.now_s());
        match &task.ready {
            Some(ready) => self.relay_transactions(block, ready, &task.chosen, interval_s),
            None => self.call_with_transactions(block, &task.chosen, interval_s),
        }
    }

    /// Positions in the block of the transactions chosen in generation order.
    fn places(&self, ready: &Ready, chosen: &[u32]) -> Vec<usize> {
        let txid = |index: &u32| self.order[*index as usize].txid;
        chosen.iter().filter_map(|index| ready.find(&txid(index))).collect()
    }

    fn relay_transactions(
        &self,
        block: &BlockLine,
        ready: &Arc<Ready>,
        chosen: &[u32],
        interval_s: Option<f64>,
    ) -> Result<Sent, FeedError> {
        let Some(p2p_feeder) = &self.reach.p2p_feeder else { return Ok(Sent::default()) };
        let (height, total, reporter) = (block.height, chosen.len() as u64, self.job.reporter);
        let stop = || reporter.wants_stop();
        let options = SendOptions { plan: self.job.plan, interval_s, stop: &stop };
        let places = self.places(ready, chosen);
        p2p_feeder
            .send_transactions(ready, &places, options, |sent| {
                reporter.event(&Event::Transactions { height, sent, total });
            })
            .map_err(|source| peer_fault(height, source))
    }

    fn call_with_transactions(
        &mut self,
        block: &BlockLine,
        chosen: &[u32],
        interval_s: Option<f64>,
    ) -> Result<Sent, FeedError> {
        let FeedJob { plan, reporter, .. } = self.job;
        let (height, total) = (block.height, chosen.len() as u64);
        let mut sent = Sent::default();
        let start = (self.clock.now_s(), interval_s);
        let mut due = Due::new(plan.rate, plan.burst, start, chosen.len());
        let (mut rest, mut rejected) = (chosen, Vec::new());
        while !rest.is_empty() {
            let lengths = rest.iter().map(|index| u64::from(self.order[*index as usize].length));
            let count = due.ready(self.clock.now_s(), lengths, plan.batch);
            if count == 0 {
                let soon_s = self.clock.now_s() + 0.001;
                if !sleep_until(self.clock, soon_s, &|| reporter.wants_stop()) {
                    return Err(FeedError::Interrupted { height });
                }
                continue;
            }
            let (now, later) = rest.split_at(count);
            rest = later;
            let bytes = self.send_batch(height, now, &mut sent, &mut rejected)?;
            due.sent(count, bytes);
            sent.count += count as u64;
            sent.bytes += bytes;
            reporter.event(&Event::Transactions { height, sent: sent.count, total });
        }
        if plan.orphans > 0.0 {
            self.send_orphans_again(height, rejected, &mut sent)?;
        } else {
            self.count_errors(rejected);
        }
        Ok(sent)
    }

    /// A node keeps no orphans from RPC: rejected transactions are resent as long as some are accepted.
    fn send_orphans_again(
        &mut self,
        height: u32,
        mut rejected: Vec<Rejected>,
        sent: &mut Sent,
    ) -> Result<(), FeedError> {
        sent.orphans = rejected.len() as u64;
        loop {
            let mut again = Vec::new();
            let indexes: Vec<u32> = rejected.iter().map(|rejected| rejected.index).collect();
            for indexes in indexes.chunks(self.job.plan.batch) {
                self.send_batch(height, indexes, sent, &mut again)?;
            }
            if again.is_empty() || again.len() == rejected.len() {
                sent.orphans -= again.len() as u64;
                self.count_errors(again);
                return Ok(());
            }
            rejected = again;
        }
    }

    /// Sends a batch; returns the size of its transactions.
    fn send_batch(
        &mut self,
        height: u32,
        indexes: &[u32],
        sent: &mut Sent,
        rejected: &mut Vec<Rejected>,
    ) -> Result<u64, FeedError> {
        let bytes = self.compose_batch(indexes);
        let before_s = self.clock.now_s();
        let before = rejected.len();
        self.post_batch(indexes, rejected).map_err(|source| FeedError::Rpc { height, source })?;
        sent.first_at_s.get_or_insert(before_s);
        sent.last_at_s = Some(self.clock.now_s());
        sent.accepted += (indexes.len() - (rejected.len() - before)) as u64;
        Ok(bytes)
    }

    fn count_errors(&mut self, rejected: Vec<Rejected>) {
        for Rejected { error, .. } in rejected {
            let is_new = !self.tx_errors.contains_key(&error);
            let key = if is_new && self.tx_errors.len() >= MESSAGES_MAX {
                "other messages".to_owned()
            } else {
                error
            };
            *self.tx_errors.entry(key).or_default() += 1;
        }
    }

    /// Adds the envelopes to the prepared hex; returns the size of the transactions.
    fn compose_batch(&mut self, indexes: &[u32]) -> u64 {
        self.batch.clear();
        let mut bytes = 0;
        for &index in indexes {
            let entry = self.order[index as usize];
            let start = BLOCK_PREFIX.len() + 2 * entry.offset as usize;
            let hex = &self.body[start..start + 2 * entry.length as usize];
            self.batch.push(if self.batch.is_empty() { b'[' } else { b',' });
            self.batch.extend_from_slice(TX_PREFIX);
            self.batch.extend_from_slice(hex);
            self.batch.extend_from_slice(TX_SUFFIX);
            bytes += u64::from(entry.length);
        }
        self.batch.push(b']');
        bytes
    }

    /// Sends the composed batch; appends rejected transactions.
    fn post_batch(&self, indexes: &[u32], rejected: &mut Vec<Rejected>) -> Result<(), RpcError> {
        let Some(rpc) = &self.reach.rpc else { return Ok(()) };
        let method = "sendrawtransaction";
        let timeout = Duration::from_secs(self.job.plan.block_timeout_s);
        let reply = rpc.client.post(method, &self.batch, Some(timeout))?;
        let answered = read_batch(method, &reply, |at, code, message| {
            let Some(index) = indexes.get(at).copied() else { return };
            rejected.push(Rejected { index, error: format!("{code}: {message}") });
        })?;
        if answered != indexes.len() {
            let source = serde::de::Error::custom("a batch reply of another length");
            return Err(RpcError::Reply { method: method.to_owned(), source });
        }
        Ok(())
    }

    /// Number of the block's transactions in the mempool. An empty mempool, or a node without pre-relay, needs no long request.
    fn count_in_mempool(&self, block: &BlockLine) -> Result<u64, FeedError> {
        let Some(rpc) = self.reach.rpc.as_ref().filter(|_| !self.order.is_empty()) else {
            return Ok(0);
        };
        let mempool: Vec<String> = rpc
            .client
            .call("getrawmempool", "[]")
            .map_err(|source| FeedError::Rpc { height: block.height, source })?;
        Ok(seen::count_in_mempool(&self.order, &mempool))
    }

    /// Disk usage around the block that just became the tip.
    fn disk_around(&mut self, at_send: Option<DiskUse>) -> Option<BlockDisk> {
        let now = self.reach.pid.and_then(disk::of_process);
        let before = std::mem::replace(&mut self.disk, now)?;
        let at_send = at_send?;
        Some(BlockDisk { service: now?.since(at_send), between: at_send.since(before) })
    }

    fn cpu_s(&self) -> Option<f64> {
        self.reach.pid.and_then(sample::cpu_s)
    }

    fn submit(&self, block: &BlockLine) -> Result<(Stamps, Option<f64>), FeedError> {
        let height = block.height;
        let rpc_error = |source| FeedError::Rpc { height, source };
        let no_rpc = || peer_fault(height, PeerError::no_way());
        let rpc = self.reach.rpc.as_ref().ok_or_else(no_rpc)?;
        let method = "submitblock";
        let timeout = Duration::from_secs(self.job.plan.block_timeout_s);
        rpc.watch.expect(height);
        let cpu_before_s = self.cpu_s();
        let send_at_s = self.clock.now_s();
        let reply = rpc.client.post(method, &self.body, Some(timeout)).map_err(rpc_error)?;
        let reply_at_s = self.clock.now_s();
        if let Some(reason) = read_result::<Option<String>>(method, &reply).map_err(rpc_error)? {
            let text = format!("block {height} ({}) was rejected: {reason}", block.hash);
            return Err(FeedError::Rejected(text));
        }
        let Some(sighting) = rpc.watch.sighting(TIP_TIMEOUT) else {
            return Err(FeedError::no_tip(height, TIP_TIMEOUT));
        };
        let cpu_s = self.cpu_since(cpu_before_s);
        let tip_at_s = tip_of(block, sighting)?;
        Ok((Stamps { send_at_s, reply_at_s, tip_at_s, relay: None }, cpu_s))
    }

    /// Delivers by the peers.
    fn deliver(
        &mut self,
        block: &BlockLine,
        ready: &Arc<Ready>,
        task: &Task,
    ) -> Result<(Stamps, Option<f64>), FeedError> {
        let height = block.height;
        let Some(p2p_feeder) = &self.reach.p2p_feeder else {
            return Err(peer_fault(height, PeerError::no_way()));
        };
        let reporter = self.job.reporter;
        let stop = || reporter.wants_stop();
        let fault = |source| peer_fault(height, source);
        let seen = self.places(ready, &task.chosen);
        if let Some(rpc) = &self.reach.rpc {
            rpc.watch.expect(height);
        }
        let cpu_before_s = self.cpu_s();
        let send_at_s = p2p_feeder.send_block(ready, &seen, self.job.plan).map_err(fault)?;
        let (reply_at_s, tip_at_s) = match &self.reach.rpc {
            None => {
                let at_s = p2p_feeder.wait_connected(ready, &self.before, &stop).map_err(fault)?;
                (at_s, at_s)
            }
            Some(rpc) => {
                let sighting = self.wait_for_tip(height, p2p_feeder, &rpc.watch)?;
                let tip_at_s = tip_of(block, sighting)?;
                (tip_at_s, tip_at_s)
            }
        };
        let cpu_s = self.cpu_since(cpu_before_s);
        let relay = Some(p2p_feeder.relay(send_at_s, &stop));
        p2p_feeder.keep_up(&self.before, &stop).map_err(fault)?;
        self.before = ready.hash;
        Ok((Stamps { send_at_s, reply_at_s, tip_at_s, relay }, cpu_s))
    }

    /// Waits until the second connection sees the tip, or a peer disconnects.
    fn wait_for_tip(
        &self,
        height: u32,
        p2p_feeder: &P2pFeeder,
        watch: &TipWatch,
    ) -> Result<tip_watch::Sighting, FeedError> {
        let reporter = self.job.reporter;
        let started = Instant::now();
        let timeout = Duration::from_secs(self.job.plan.block_timeout_s);
        loop {
            if let Some(sighting) = watch.sighting(LOOK) {
                return Ok(sighting);
            }
            p2p_feeder
                .check(&|| reporter.wants_stop())
                .map_err(|source| peer_fault(height, source))?;
            if started.elapsed() > timeout {
                return Err(FeedError::no_tip(height, timeout));
            }
        }
    }

    fn cpu_since(&self, before_s: Option<f64>) -> Option<f64> {
        self.cpu_s().zip(before_s).map(|(after, before)| round_us(after - before))
    }
}

struct Rejected {
    /// Position in generation order.
    index: u32,
    error: String,
}

fn peer_fault(height: u32, source: PeerError) -> FeedError {
    match source {
        PeerError::Interrupted => FeedError::Interrupted { height },
        source => FeedError::Peer { height, source },
    }
}

/// Time at which the block became the tip.
fn tip_of(block: &BlockLine, sighting: tip_watch::Sighting) -> Result<f64, FeedError> {
    let height = block.height;
    let (tip_at_s, found) = sighting.map_err(|source| FeedError::Rpc { height, source })?;
    if found != block.hash {
        let expected = &block.hash;
        let text = format!("the tip at height {height} is {found}, not {expected}");
        return Err(FeedError::Rejected(text));
    }
    Ok(tip_at_s)
}

/// Seed offset: random numbers independent of those of the transactions.
const PACE: u64 = 0x7061_6365_7061_6365;
/// Interval of peer checks while waiting for the tip.
const LOOK: Duration = Duration::from_millis(200);

/// Submits a block; returns the reject reason, if any. `body` is replaced.
pub(crate) fn submit_block(
    client: &Client,
    chain: &Chain,
    block: &BlockLine,
    body: &mut Vec<u8>,
) -> anyhow::Result<Option<String>> {
    compose_block(chain, block, body, |_| ())?;
    let method = "submitblock";
    Ok(read_result(method, &client.post(method, body, None)?)?)
}

/// Replaces `body` with the JSON body of `submitblock`; `each` receives the block's bytes in pieces.
pub(crate) fn compose_block(
    chain: &Chain,
    block: &BlockLine,
    body: &mut Vec<u8>,
    mut each: impl FnMut(&[u8]),
) -> Result<(), ChainError> {
    let hex_end = BLOCK_PREFIX.len() + 2 * block.bytes as usize;
    body.resize(hex_end + BLOCK_SUFFIX.len(), 0);
    body[..BLOCK_PREFIX.len()].copy_from_slice(BLOCK_PREFIX);
    body[hex_end..].copy_from_slice(BLOCK_SUFFIX);
    let mut at = BLOCK_PREFIX.len();
    chain.read_block(block, |piece| {
        let end = at + 2 * piece.len();
        faster_hex::hex_encode(piece, &mut body[at..end])
            .expect("the output is twice as long as the input");
        at = end;
        each(piece);
    })
}

/// Times of one block on the run's clock.
struct Stamps {
    send_at_s: f64,
    reply_at_s: f64,
    tip_at_s: f64,
    relay: Option<BlockRelay>,
}

fn round_us(seconds: f64) -> f64 {
    (seconds * 1e6).round() / 1e6
}
