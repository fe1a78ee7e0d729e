//! Submits blocks of a chain directory to the node behind the server at a fixed interval.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};

use crate::chain::Chain;
use crate::feed::compose_block;
use crate::process::rpc::{Client, read_result};

/// Longest wait for the node's response to a block.
const BLOCK_TIMEOUT: Duration = Duration::from_mins(10);
/// Poll interval of the stop flag during a pause.
const PAUSE_STEP: Duration = Duration::from_millis(20);

/// Node that receives the blocks.
#[derive(Debug, Clone)]
pub struct FeedOptions {
    /// Local port of its JSON-RPC.
    pub port: u16,
    /// `user:password`, or the contents of the cookie file.
    pub credentials: String,
    /// Minimum time between the starts of two blocks.
    pub every: Duration,
}

/// Blocks submitted so far. The feeder adds them, the clients their notifications.
#[derive(Debug, Default)]
pub(crate) struct FeedLog {
    submitted: AtomicU32,
    blocks: Mutex<Vec<FedBlock>>,
}

/// A submitted block. Times are nanoseconds since its submission.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FedBlock {
    pub(crate) height: u32,
    pub(crate) txs: u64,
    pub(crate) submitted: Instant,
    pub(crate) reply_ns: Option<u64>,
    pub(crate) first_header_ns: Option<u64>,
    pub(crate) last_header_ns: Option<u64>,
    /// Last script notification before the next block.
    pub(crate) last_script_ns: Option<u64>,
    pub(crate) script_notifications: u64,
}

impl FeedLog {
    /// A log of a node at `height`.
    pub(crate) fn at(height: u32) -> Self {
        Self { submitted: AtomicU32::new(height), blocks: Mutex::default() }
    }

    /// Highest block that the node may have.
    pub(crate) fn submitted(&self) -> u32 {
        self.submitted.load(Ordering::Acquire)
    }

    pub(crate) fn blocks(&self) -> MutexGuard<'_, Vec<FedBlock>> {
        // A panicking feeder leaves only complete entries.
        self.blocks.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

const NODE: &str = "the node that blocks are submitted to";

pub(crate) fn node_height(options: &FeedOptions) -> anyhow::Result<u32> {
    let client = Client::new(options.port, &options.credentials);
    client.call("getblockcount", "[]").context(NODE)
}

/// Submits blocks above the log's height until none is left or `stop` is set.
pub(crate) fn feed(
    options: &FeedOptions,
    chain: &Chain,
    log: &FeedLog,
    stop: &AtomicBool,
) -> anyhow::Result<()> {
    let client = Client::new(options.port, &options.credentials);
    let first = log.submitted() as usize;
    let mut body = Vec::new();
    let mut due = Instant::now();
    for block in chain.blocks.iter().skip(first) {
        compose_block(chain, block, &mut body, |_| ())?;
        while Instant::now() < due && !stop.load(Ordering::Relaxed) {
            thread::sleep(PAUSE_STEP.min(due.saturating_duration_since(Instant::now())));
        }
        if stop.load(Ordering::Relaxed) {
            break;
        }
        let submitted = Instant::now();
        due = submitted + options.every;
        log.blocks().push(FedBlock {
            height: block.height,
            txs: block.txs,
            submitted,
            reply_ns: None,
            first_header_ns: None,
            last_header_ns: None,
            last_script_ns: None,
            script_notifications: 0,
        });
        log.submitted.store(block.height, Ordering::Release);
        let reply = client
            .post("submitblock", &body, Some(BLOCK_TIMEOUT))
            .and_then(|reply| read_result::<Option<String>>("submitblock", &reply))
            .context(NODE)?;
        if let Some(last) = log.blocks().last_mut() {
            last.reply_ns = Some(submitted.elapsed().as_nanos() as u64);
        }
        if let Some(reason) = reply {
            bail!("the node rejected block {}: {reason}", block.height);
        }
    }
    Ok(())
}
