//! Bitcoin Core's validation through a few safe calls.
//!
//! The C interface reports acceptance of a block, and the class of a rejection; the reject reason
//! is only in the log, in the three lines that print a validation state (`validation.cpp`):
//!
//! - `ProcessNewBlock: AcceptBlock FAILED (<reason>, <debug>)`: the block alone, its header, or its context;
//! - `ConnectTip: ConnectBlock <hash> failed, <reason>, <debug>`: coins, amounts, scripts.

use std::cell::RefCell;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use anyhow::{Context as _, Result};
use assay_wire::{BlockHash, Coin};
use bitcoinkernel::prelude::*;
use bitcoinkernel::{
    BlockValidationResult, BlockValidationStateRef, ChainType, ChainstateManager, Context,
    ContextBuilder, Log, Logger, ProcessBlockHeaderResult, ProcessBlockResult, ValidationMode,
};

use crate::verdict::Verdict;

#[derive(Clone, Debug)]
pub enum Chain {
    Known(ChainType),
    Signet(Vec<u8>),
}

/// Settings of a kernel; others cannot be set through its interface (the cache has Core's default size for the kernel).
#[derive(Clone, Debug)]
pub struct Settings {
    /// Number of script check threads in addition to the calling one; 0 checks in line.
    pub workers: i32,
    /// True to keep index and coins in memory only.
    pub in_memory: bool,
}

/// Version of the library and of Bitcoin Core in it, with the build type of its build script.
pub const VERSIONS: &str = "bitcoinkernel 0.3.2: Bitcoin Core 31.99, RelWithDebInfo";

/// Length of a header in bytes.
pub const HEADER_BYTES: usize = 80;

pub struct Kernel {
    chain: ChainstateManager,
    _context: Context,
    seen: Arc<Mutex<Seen>>,
}

/// Notifications of the kernel during one call.
#[derive(Default)]
struct Seen {
    /// Hash, mode and class of every checked block.
    checked: Vec<([u8; 32], ValidationMode, BlockValidationResult)>,
    fatal: Option<String>,
}

thread_local! {
    /// Log lines with a reason. The log is global to the process, but each line is delivered on the
    /// thread that wrote it, which is the one that submitted the block.
    static REASONS: RefCell<Vec<String>> = const { RefCell::new(Vec::new()) };
}

/// Keeps the log connection open while it lives.
pub struct LogTap {
    _logger: Logger,
}

struct Tap;

impl Log for Tap {
    fn log(&self, message: &str) {
        const MARKS: [&str; 2] = ["AcceptBlock FAILED (", "ConnectTip: ConnectBlock "];
        if MARKS.iter().any(|mark| message.contains(mark)) {
            REASONS.with_borrow_mut(|lines| lines.push(message.trim_end().to_owned()));
        }
    }
}

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Connects to the kernel's log; reasons are available while the result lives.
pub fn listen() -> Result<LogTap> {
    let options =
        bitcoinkernel::log::logging::LoggingOptions { log_timestamps: false, ..Default::default() };
    let logger = Logger::new_with_options(Tap, options)
        .map_err(|error| anyhow::anyhow!("connecting the kernel's log: {error}"))?;
    Ok(LogTap { _logger: logger })
}

impl Kernel {
    /// Opens a chain in a folder.
    pub fn open(chain: &Chain, datadir: &Path, settings: &Settings) -> Result<Self> {
        let seen = Arc::new(Mutex::new(Seen::default()));
        let (checked, fatal) = (Arc::clone(&seen), Arc::clone(&seen));
        let builder = ContextBuilder::new();
        let builder = match chain {
            Chain::Known(chain_type) => builder.chain_type(*chain_type),
            Chain::Signet(challenge) => builder.signet(challenge),
        };
        let context = builder
            .with_block_checked_validation(
                move |block: bitcoinkernel::Block, state: BlockValidationStateRef<'_>| {
                    let hash = block.hash().to_bytes();
                    lock(&checked).checked.push((hash, state.mode(), state.result()));
                },
            )
            .with_fatal_error_notification(move |message: String| {
                lock(&fatal).fatal = Some(message);
            })
            .build()
            .map_err(|error| anyhow::anyhow!("kernel context: {error}"))?;
        let blocks = datadir.join("blocks");
        std::fs::create_dir_all(&blocks).with_context(|| format!("making {}", blocks.display()))?;
        let text = |path: &Path| path.to_str().map(str::to_owned).context("path is not UTF-8");
        let chain = ChainstateManager::builder(&context, &text(datadir)?, &text(&blocks)?)
            .map(|builder| {
                builder
                    .worker_threads(settings.workers)
                    .block_tree_db_in_memory(settings.in_memory)
                    .chainstate_db_in_memory(settings.in_memory)
            })
            .and_then(bitcoinkernel::ChainstateManagerBuilder::build)
            .map_err(|error| anyhow::anyhow!("kernel chain state: {error}"))?;
        Ok(Self { chain, _context: context, seen })
    }

    pub fn tip(&self) -> (u32, BlockHash) {
        let tip = self.chain.active_chain().tip();
        (tip.height() as u32, BlockHash(tip.block_hash().to_bytes()))
    }

    pub fn submit(&self, raw: &[u8]) -> Verdict {
        let Ok(block) = bitcoinkernel::Block::new(raw) else { return Verdict::Undecodable };
        let hash = block.hash().to_bytes();
        REASONS.with_borrow_mut(Vec::clear);
        lock(&self.seen).checked.clear();
        let result = self.chain.process_block(&block);
        let mut seen = lock(&self.seen);
        if let Some(cause) = seen.fatal.take() {
            return Verdict::Failed(cause);
        }
        if result == ProcessBlockResult::Duplicate {
            return Verdict::Duplicate;
        }
        // The last of several verdicts on the same block is final.
        let judged = seen.checked.iter().rev().find(|(judged, ..)| *judged == hash);
        match (judged, result) {
            (Some((_, ValidationMode::Valid, _)), _) => Verdict::Accepted,
            (Some((_, ValidationMode::Invalid, class)), _) => Verdict::Rejected {
                reason: REASONS.with_borrow(|lines| reason(lines, &BlockHash(hash))),
                class: Some(class_name(*class)),
            },
            (Some((_, ValidationMode::InternalError, _)), _) => {
                Verdict::Failed("internal error".to_owned())
            }
            (None, ProcessBlockResult::Rejected) => {
                Verdict::Failed("refused without a verdict".to_owned())
            }
            (None, _) => Verdict::Inconclusive,
        }
    }

    /// Submits a header. The reason of a rejection is not logged, so only its class is known.
    pub fn submit_header(&self, raw: &[u8; HEADER_BYTES]) -> Verdict {
        let processed = bitcoinkernel::BlockHeader::new(raw)
            .and_then(|header| self.chain.process_block_header(&header));
        match processed {
            Ok(ProcessBlockHeaderResult::Valid) => Verdict::Inconclusive,
            Ok(ProcessBlockHeaderResult::Invalid(state)) => {
                Verdict::Rejected { reason: String::new(), class: Some(class_name(state.result())) }
            }
            Err(error) => Verdict::Failed(error.to_string()),
        }
    }

    /// The coins spent by the active block at `height`.
    pub fn spent(&self, height: u32) -> Result<Vec<Coin>> {
        let entry =
            self.chain.active_chain().at_height(height as usize).context("no block there")?;
        let spent = self
            .chain
            .read_spent_outputs(&entry)
            .map_err(|error| anyhow::anyhow!("reading undo data: {error}"))?;
        let mut coins = Vec::new();
        for tx in spent.iter() {
            for coin in tx.coins() {
                let output = coin.output();
                coins.push(Coin {
                    value: output.value(),
                    height: coin.confirmation_height(),
                    coinbase: coin.is_coinbase(),
                    script_pubkey: output.script_pubkey().to_bytes().as_slice().into(),
                });
            }
        }
        Ok(coins)
    }
}

/// Reason in the log for a block, with the debug message after it.
fn reason(lines: &[String], hash: &BlockHash) -> String {
    let connect = format!("ConnectBlock {hash} failed, ");
    for line in lines.iter().rev() {
        if let Some((_, rest)) = line.split_once("AcceptBlock FAILED (") {
            return rest.strip_suffix(')').unwrap_or(rest).to_owned();
        }
        if let Some((_, rest)) = line.split_once(&connect) {
            return rest.to_owned();
        }
    }
    String::new()
}

/// The kernel's class for a reject reason of headers.
pub fn header_class(reason: &str) -> &'static str {
    match reason {
        "prev-blk-not-found" => "missing-prev",
        "bad-prevblk" => "invalid-prev",
        "time-too-new" => "time-future",
        "duplicate-invalid" => "cached-invalid",
        _ => "invalid-header",
    }
}

fn class_name(class: BlockValidationResult) -> &'static str {
    match class {
        BlockValidationResult::Unset => "unset",
        BlockValidationResult::Consensus => "consensus",
        BlockValidationResult::CachedInvalid => "cached-invalid",
        BlockValidationResult::InvalidHeader => "invalid-header",
        BlockValidationResult::Mutated => "mutated",
        BlockValidationResult::MissingPrev => "missing-prev",
        BlockValidationResult::InvalidPrev => "invalid-prev",
        BlockValidationResult::TimeFuture => "time-future",
        BlockValidationResult::HeaderLowWork => "header-low-work",
    }
}

/// The kernel's counterpart of one of our chains; `None` if it has none.
pub fn chain_of_name(name: &str) -> Option<Chain> {
    Some(Chain::Known(match name {
        "main" => ChainType::Mainnet,
        "test" => ChainType::Testnet,
        "testnet4" => ChainType::Testnet4,
        "signet" => ChainType::Signet,
        "regtest" => ChainType::Regtest,
        _ => return None,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasons_are_cut_out_of_log_lines() {
        let hash = BlockHash([0; 32]);
        let zeros = "0".repeat(64);
        for (line, expected) in [
            (
                "[error] ProcessNewBlock: AcceptBlock FAILED (high-hash, proof of work failed)"
                    .to_owned(),
                "high-hash, proof of work failed",
            ),
            (
                "[error] ProcessNewBlock: AcceptBlock FAILED (bad-version(0x00000001), rejected)"
                    .to_owned(),
                "bad-version(0x00000001), rejected",
            ),
            (
                format!(
                    "[error] ConnectTip: ConnectBlock {zeros} failed, bad-cb-amount, coinbase pays too much"
                ),
                "bad-cb-amount, coinbase pays too much",
            ),
        ] {
            assert_eq!(reason(&[line], &hash), expected);
        }
    }
}
