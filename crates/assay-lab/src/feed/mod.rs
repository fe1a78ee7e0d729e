//! Feeds one block to one node: its transactions first, then the block, everything stamped.
//!
//! The block's JSON body is prepared before the clock of the block starts, in the gap after its
//! predecessor became the tip. The hexadecimal of the transactions sent beforehand is a part of that
//! same body, so it is prepared too; only the envelopes of a batch are put around it while the clock
//! runs. While a block is in flight this thread waits on its socket.

mod seen;
pub(crate) mod tip_watch;

use std::collections::BTreeMap;
use std::time::Duration;

use self::tip_watch::TipWatch;
use crate::chain::{BlockEntry, Chain, ChainError, OrderEntry};
use crate::machine::clock::Clock;
use crate::plan::{FeedPlan, SeenMode};
use crate::process::rpc::{Client, RpcError, read_batch, read_result};
use crate::process::sample;
use crate::progress::{Event, Reporter};
use crate::results::BlockRecord;

const BLOCK_PREFIX: &[u8] =
    br#"{"jsonrpc":"1.0","id":"assay-lab","method":"submitblock","params":[""#;
const BLOCK_SUFFIX: &[u8] = br#""]}"#;
const TX_PREFIX: &[u8] = br#"{"jsonrpc":"1.0","id":0,"method":"sendrawtransaction","params":[""#;
const TX_SUFFIX: &[u8] = br#""]}"#;

/// After `submitblock` returned, how long the tip may take to show on the second connection.
const TIP_TIMEOUT: Duration = Duration::from_mins(1);
/// Different error messages kept; a node that puts a txid into each must not fill the memory.
const MESSAGES_MAX: usize = 64;

/// Why a block could not be fed.
#[derive(Debug, thiserror::Error)]
pub enum FeedError {
    /// The chain directory is broken.
    #[error(transparent)]
    Chain(#[from] ChainError),
    /// A call failed.
    #[error("block {height}")]
    Rpc {
        /// The block.
        height: u32,
        /// What failed.
        source: RpcError,
    },
    /// The node refused the block.
    #[error("block {height} ({hash}) was rejected: {reason}")]
    Refused {
        /// The block.
        height: u32,
        /// Its hash.
        hash: String,
        /// The node's reason.
        reason: String,
    },
    /// The node took the block, and the tip did not change.
    #[error("block {height} was accepted, but is not the tip after {seconds} s")]
    NoTip {
        /// The block.
        height: u32,
        /// How long the laboratory waited.
        seconds: u64,
    },
    /// Another block is the tip.
    #[error("the tip at height {height} is {found}, not {expected}")]
    WrongTip {
        /// The height.
        height: u32,
        /// Our block.
        expected: String,
        /// The node's tip.
        found: String,
    },
}

/// What a run feeds, and how.
#[derive(Clone, Copy)]
pub(crate) struct FeedJob<'a> {
    pub(crate) chain: &'a Chain,
    pub(crate) plan: &'a FeedPlan,
    /// Share of each block's transactions to send beforehand.
    pub(crate) share: f64,
    pub(crate) reporter: &'a dyn Reporter,
}

/// Feeds blocks to one node, in order.
pub(crate) struct Feeder<'a> {
    job: FeedJob<'a>,
    clock: Clock,
    client: Client,
    watch: TipWatch,
    pid: u32,
    /// The moment from which the next block is due.
    due_at_s: f64,
    tx_errors: BTreeMap<String, u64>,
    // Reused from block to block.
    body: Vec<u8>,
    raw: Vec<u8>,
    order: Vec<OrderEntry>,
    batch: Vec<u8>,
}

/// What happened to the transactions sent before a block.
#[derive(Default)]
struct Sent {
    count: u64,
    accepted: u64,
    bytes: u64,
    first_at_s: Option<f64>,
    last_at_s: Option<f64>,
}

impl<'a> Feeder<'a> {
    /// `client` and the client inside `watch` are separate connections to process `pid`.
    pub(crate) fn new(
        job: FeedJob<'a>,
        clock: Clock,
        client: Client,
        watch: TipWatch,
        pid: u32,
    ) -> Self {
        Self {
            job,
            clock,
            client,
            watch,
            pid,
            due_at_s: clock.now_s(),
            tx_errors: BTreeMap::new(),
            body: Vec::new(),
            raw: Vec::new(),
            order: Vec::new(),
            batch: Vec::new(),
        }
    }

    /// Gives back the connection and the errors counted on sent transactions.
    pub(crate) fn finish(self) -> (Client, BTreeMap<String, u64>) {
        (self.client, self.tx_errors)
    }

    /// Sends the block's transactions as planned, then the block; returns when it is the tip.
    pub(crate) fn feed(&mut self, block: &BlockEntry) -> Result<BlockRecord, FeedError> {
        self.prepare(block)?;
        let sent = self.send_transactions(block)?;
        if let Some(last_at_s) = sent.last_at_s {
            self.due_at_s = last_at_s;
        }
        let txs_in_mempool = self.count_in_mempool(block)?;
        let due_at_s = self.due_at_s;
        let (stamps, cpu_s) = self.send_block(block)?;
        self.due_at_s = stamps.tip_at_s;
        Ok(BlockRecord {
            height: block.height,
            phase: block.phase.clone(),
            txs: block.txs,
            inputs: block.inputs,
            outputs: block.outputs,
            bytes: block.bytes,
            signatures: block.signatures,
            txs_sent: sent.count,
            txs_accepted: sent.accepted,
            txs_sent_bytes: sent.bytes,
            txs_in_mempool,
            first_tx_at_s: sent.first_at_s.map(round_us),
            last_tx_at_s: sent.last_at_s.map(round_us),
            send_at_s: round_us(stamps.send_at_s),
            reply_at_s: round_us(stamps.reply_at_s),
            tip_at_s: round_us(stamps.tip_at_s),
            service_s: round_us(stamps.tip_at_s - stamps.send_at_s),
            queue_s: round_us(stamps.send_at_s - due_at_s),
            cpu_s,
            index: None,
        })
    }

    /// Reads the block into its JSON body, and its generation order where that is needed.
    fn prepare(&mut self, block: &BlockEntry) -> Result<(), FeedError> {
        let needs_raw = self.job.plan.seen_mode == SeenMode::Random && self.job.share > 0.0;
        self.raw.clear();
        let raw = &mut self.raw;
        compose_block(self.job.chain, block, &mut self.body, |piece| {
            if needs_raw {
                raw.extend_from_slice(piece);
            }
        })?;
        self.order.clear();
        if block.txs > 1 && self.job.share > 0.0 {
            self.job.chain.read_order(block, &mut self.order)?;
        }
        Ok(())
    }

    fn send_transactions(&mut self, block: &BlockEntry) -> Result<Sent, FeedError> {
        let seed = self.job.chain.header.seed ^ u64::from(block.height);
        let FeedJob { plan, share, .. } = self.job;
        let chosen = seen::choose(plan.seen_mode, share, &self.order, &self.raw, seed);
        let total = chosen.len() as u64;
        let mut sent = Sent::default();
        for indexes in chosen.chunks(plan.batch) {
            let bytes = self.compose_batch(indexes);
            let before_s = self.clock.now_s();
            let rejected = self
                .post_batch(indexes.len())
                .map_err(|source| FeedError::Rpc { height: block.height, source })?;
            sent.first_at_s.get_or_insert(before_s);
            sent.last_at_s = Some(self.clock.now_s());
            sent.count += indexes.len() as u64;
            sent.accepted += indexes.len() as u64 - rejected;
            sent.bytes += bytes;
            let height = block.height;
            self.job.reporter.event(&Event::Transactions { height, sent: sent.count, total });
        }
        Ok(sent)
    }

    /// Puts envelopes around the prepared hexadecimal; returns the bytes of the transactions.
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

    /// Sends the composed batch; returns how many of its transactions were refused.
    fn post_batch(&mut self, count: usize) -> Result<u64, RpcError> {
        let method = "sendrawtransaction";
        let timeout = Duration::from_secs(self.job.plan.block_timeout_s);
        let reply = self.client.post(method, &self.batch, Some(timeout))?;
        let (errors, mut rejected) = (&mut self.tx_errors, 0);
        let answered = read_batch(method, &reply, |_, code, message| {
            rejected += 1;
            let mut key = format!("{code}: {message}");
            if errors.len() >= MESSAGES_MAX && !errors.contains_key(&key) {
                "other messages".clone_into(&mut key);
            }
            *errors.entry(key).or_default() += 1;
        })?;
        if answered != count {
            let source = serde::de::Error::custom("a batch reply of another length");
            return Err(RpcError::Reply { method: method.to_owned(), source });
        }
        Ok(rejected)
    }

    /// How many of the block's transactions the node really has. An empty mempool has none, and a
    /// node that was sent nothing has an empty mempool: then nothing long is asked.
    fn count_in_mempool(&self, block: &BlockEntry) -> Result<u64, FeedError> {
        if self.order.is_empty() {
            return Ok(0);
        }
        let mempool: Vec<String> = self
            .client
            .call("getrawmempool", "[]")
            .map_err(|source| FeedError::Rpc { height: block.height, source })?;
        Ok(seen::count_in_mempool(&self.order, &mempool))
    }

    fn send_block(&mut self, block: &BlockEntry) -> Result<(Stamps, Option<f64>), FeedError> {
        let height = block.height;
        let rpc = |source| FeedError::Rpc { height, source };
        let method = "submitblock";
        let timeout = Duration::from_secs(self.job.plan.block_timeout_s);
        self.watch.expect(height);
        let cpu_before_s = sample::cpu_s(self.pid);
        let send_at_s = self.clock.now_s();
        let reply = self.client.post(method, &self.body, Some(timeout)).map_err(rpc)?;
        let reply_at_s = self.clock.now_s();
        if let Some(reason) = read_result::<Option<String>>(method, &reply).map_err(rpc)? {
            return Err(FeedError::Refused { height, hash: block.hash.clone(), reason });
        }
        let Some(sighting) = self.watch.sighting(TIP_TIMEOUT) else {
            return Err(FeedError::NoTip { height, seconds: TIP_TIMEOUT.as_secs() });
        };
        let cpu_after_s = sample::cpu_s(self.pid);
        let (tip_at_s, found) = sighting.map_err(rpc)?;
        if found != block.hash {
            let expected = block.hash.clone();
            return Err(FeedError::WrongTip { height, expected, found });
        }
        let cpu_s = cpu_after_s.zip(cpu_before_s).map(|(after, before)| round_us(after - before));
        Ok((Stamps { send_at_s, reply_at_s, tip_at_s }, cpu_s))
    }
}

/// Replaces `body` with the JSON body that submits a block; `each` gets the block's bytes piece by piece.
pub(crate) fn compose_block(
    chain: &Chain,
    block: &BlockEntry,
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

/// Moments of one block, on the run's clock.
#[expect(clippy::struct_field_names, reason = "the suffix tells moments from durations")]
struct Stamps {
    send_at_s: f64,
    reply_at_s: f64,
    tip_at_s: f64,
}

fn round_us(seconds: f64) -> f64 {
    (seconds * 1e6).round() / 1e6
}
