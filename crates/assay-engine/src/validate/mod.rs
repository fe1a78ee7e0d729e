//! Validating a whole chain from block files, in place: nothing of the blocks is copied.
//!
//! 1. Scan: find every block by its header, choose the branch with the most work that is there as a whole, check its
//!    headers ([`scan`], [`headers`]).
//! 2. Connect the blocks of that branch in order: threads read ahead ([`prefetch`]), one thread moves coins, all cores
//!    verify scripts, of many blocks at once ([`connect`]).
//! 3. Count and hash the coins, and write them out.
//!
//! The branch is fixed beforehand, so undo data is kept only until a block's scripts have passed: when a block of it proves
//! invalid, validation ends before it.

mod connect;
mod datadir;
mod headers;
mod prefetch;
mod scan;

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use assay_consensus::params::ChainParams;
use assay_store::{BlockFiles, BlockFilesError, BlockPlace, CoinError, StrayKind};
use assay_wire::BlockHash;

pub use datadir::DatadirError;

use crate::deferred::configure_second_look;
use crate::types::{EngineError, UtxoStats};
use connect::Connector;
use datadir::Datadir;

/// What to validate, and how.
#[derive(Clone, Debug)]
pub struct ValidateConfig {
    /// Directory of block files, or one such file.
    pub blocks: PathBuf,
    /// The chain.
    pub params: Arc<ChainParams>,
    /// Folder in which `<chain>/validate` is made for the coins.
    pub datadir: PathBuf,
    /// Whether the folder outlives the validation, so that it pays to write coins out now and then.
    pub is_lasting: bool,
    /// Last height to connect.
    pub stop_height: Option<u32>,
    /// Scripts of this block and its ancestors are taken to be valid.
    pub assume_valid: Option<BlockHash>,
    /// Memory for coins, bytes: the cache, what writing it out takes, and the block cache of the coins on disk.
    pub cache_bytes_max: usize,
    /// Threads that verify scripts; at least 1.
    pub threads: usize,
    /// Signatures and the like that are verified together; `None` verifies each as it comes. See [`default_script_batch`].
    ///
    /// [`default_script_batch`]: crate::default_script_batch
    pub script_batch: Option<usize>,
    /// One of so many signatures that vectors find valid is verified again: [`Config::sample_signatures`].
    ///
    /// [`Config::sample_signatures`]: crate::Config::sample_signatures
    pub sample_signatures: u32,
}

/// Hears how a validation goes; called from several threads.
pub trait ValidateProgress: Sync {
    /// So many bytes of the block files have been searched for headers.
    fn scanning(&self, bytes_done: u64, bytes_total: u64);
    /// The search is over.
    fn scanned(&self, report: &ScanReport);
    /// A block has been connected.
    fn connected(&self, state: &ConnectState);
    /// Coins are being written out.
    fn flushing(&self, height: u32);
    /// The coins are being counted and hashed.
    fn hashing(&self, height: u32);
}

/// How far connecting has come.
#[derive(Clone, Copy, Debug)]
pub struct ConnectState {
    /// Height connected last.
    pub height: u32,
    /// Height at which it will end.
    pub last_height: u32,
    /// Bytes of blocks up to that height, from genesis on.
    pub bytes_done: u64,
    /// Bytes of all blocks to be connected, from genesis on.
    pub bytes_total: u64,
    /// What was counted since genesis.
    pub totals: Totals,
    /// Bytes of coins in memory.
    pub cache_bytes: usize,
}

/// Sums over the connected blocks, genesis left out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Blocks.
    pub blocks: u64,
    /// Transactions, coinbases included.
    pub txs: u64,
    /// Inputs, coinbases' left out.
    pub inputs: u64,
    /// Outputs.
    pub outputs: u64,
    /// Bytes of blocks.
    pub bytes: u64,
    /// Blocks whose scripts were taken to be valid.
    pub assumed_blocks: u64,
    /// Time spent connecting, milliseconds, over all runs.
    pub elapsed_ms: u64,
}

/// Where something is in the block files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FilePlace {
    /// The file.
    pub path: PathBuf,
    /// Offset of the raw block or of the bytes in question.
    pub offset: u64,
    /// How many bytes.
    pub bytes: u64,
}

/// Bytes of a block file that belong to no block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stray {
    /// Where they are.
    pub place: FilePlace,
    /// What they look like.
    pub kind: StrayKind,
}

/// A block that others build on and that is in no file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MissingBlock {
    /// Its hash.
    pub hash: BlockHash,
    /// A block that builds on it, and where that is.
    pub child: BlockHash,
    /// Where the child is.
    pub child_place: FilePlace,
}

/// What the block files hold.
#[derive(Clone, Debug)]
pub struct ScanReport {
    /// Files.
    pub files: usize,
    /// Their bytes.
    pub bytes: u64,
    /// Whether they are obfuscated.
    pub is_obfuscated: bool,
    /// Distinct blocks, genesis left out.
    pub blocks: usize,
    /// Blocks found again.
    pub duplicates: usize,
    /// Height of the chosen branch.
    pub height: u32,
    /// Hash of its last block.
    pub hash: BlockHash,
    /// Blocks on other branches.
    pub stale_blocks: usize,
    /// Branches that these blocks form.
    pub stale_branches: usize,
    /// Blocks that do not connect because one below them is missing.
    pub unconnected: usize,
    /// The first few of these gaps, in the order of the files.
    pub missing: Vec<MissingBlock>,
    /// Bytes of padding.
    pub padding_bytes: u64,
    /// Other bytes that belong to no block: the first few places.
    pub strays: Vec<Stray>,
    /// All such places.
    pub stray_count: usize,
    /// A header that breaks a rule, for which a branch with less work was chosen.
    pub bad_header: Option<InvalidBlock>,
    /// Height up to which scripts are taken to be valid.
    pub assumed_height: u32,
    /// Seconds it took.
    pub elapsed_s: f64,
}

/// A block that cannot be connected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InvalidBlock {
    /// Its hash.
    pub hash: BlockHash,
    /// Its height.
    pub height: u32,
    /// The reference node's reject reason, or `unreadable-block` for bytes that are not the block that was found.
    pub reason: String,
    /// Where and why, for people.
    pub debug: String,
    /// Where it is.
    pub place: FilePlace,
}

/// How a validation ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum End {
    /// The chosen branch is valid as a whole.
    Complete,
    /// It is valid up to the height asked for.
    StopHeight,
    /// It was told to stop.
    Interrupted,
    /// A block is invalid; everything before it is valid.
    Invalid(Box<InvalidBlock>),
}

/// What a validation found.
#[derive(Clone, Debug)]
pub struct Validation {
    /// What the files hold.
    pub scan: ScanReport,
    /// How it ended.
    pub end: End,
    /// Height at which it took up an earlier one; 0 for a new one.
    pub start_height: u32,
    /// Sums since genesis.
    pub totals: Totals,
    /// Sums of this run.
    pub run_totals: Totals,
    /// The tip and its coins; absent when it was told to stop.
    pub coins: Option<UtxoStats>,
    /// Height of the tip.
    pub height: u32,
    /// Hash of the tip.
    pub hash: BlockHash,
    /// Seconds of this run until the last script had passed; some of the counting and writing goes on meanwhile.
    pub connect_s: f64,
    /// Seconds from then on, for counting and hashing the coins, and for writing them out where they are kept.
    pub hash_s: f64,
}

/// What keeps a chain from being validated; never the fault of a block.
#[derive(Debug, thiserror::Error)]
pub enum ValidateError {
    /// The block files could not be read.
    #[error("block files: {0}")]
    Files(#[from] BlockFilesError),
    /// The folder for the coins cannot be used.
    #[error(transparent)]
    Datadir(#[from] DatadirError),
    /// Coins could not be read or written.
    #[error("coins: {0}")]
    Coins(#[from] CoinError),
    /// Coins could not be put back after an invalid block.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// No threads to work on.
    #[error("cannot start threads: {0}")]
    Threads(String),
    /// There is no block of the chain.
    #[error("no block of {chain} in {files} files ({bytes} bytes): is it another chain?")]
    NoBlocks {
        /// The chain.
        chain: &'static str,
        /// Files searched.
        files: usize,
        /// Their bytes.
        bytes: u64,
    },
    /// The block whose ancestors are to be taken as valid is in no branch that is there.
    #[error(
        "the block {hash} to be assumed valid is not in the files, or blocks below it are missing"
    )]
    UnknownAssumeValid {
        /// Its hash.
        hash: BlockHash,
    },
    /// The coins belong to a block off the chosen branch.
    #[error(
        "the coins in the datadir belong to block {hash} at height {height}, which is not on the best branch of the files; \
         start with an empty datadir"
    )]
    OtherBranch {
        /// Hash of that block.
        hash: BlockHash,
        /// Its height.
        height: u32,
    },
    /// The coins are past the height at which to stop.
    #[error("the coins in the datadir are at height {height} already, past {stop_height}")]
    PastStop {
        /// Their height.
        height: u32,
        /// Where to stop.
        stop_height: u32,
    },
}

/// Validates the chain in block files; `stop` ends it early, with everything done so far kept.
///
/// # Errors
/// When it cannot be carried out. An invalid chain is no error: see [`Validation::end`].
pub fn validate(
    config: &ValidateConfig,
    stop: &AtomicBool,
    progress: &dyn ValidateProgress,
) -> Result<Validation, ValidateError> {
    let params = &*config.params;
    configure_second_look(
        config.sample_signatures,
        config.is_lasting.then(|| config.datadir.clone()),
    );
    let pool = rayon::ThreadPoolBuilder::new()
        .num_threads(config.threads.max(1))
        .thread_name(|index| format!("verify-{index}"))
        .build()
        .map_err(|error| ValidateError::Threads(error.to_string()))?;
    let pool = Arc::new(pool);
    let start = Instant::now();
    let files = BlockFiles::open(&config.blocks, params.disk_magic)?;
    // Before the search, which may take long: a folder that cannot be used should be said at once.
    let (datadir, coins, totals) = Datadir::open(&config.datadir, params, config.cache_bytes_max)?;
    let found = scan::search(params, &files, &pool, progress)?;
    let (mut report, choice) = scan::choose(config, &files, &found)?;
    report.elapsed_s = start.elapsed().as_secs_f64();
    progress.scanned(&report);

    let start = Instant::now();
    let mut connector =
        Connector::new(config, &files, &choice.chain, &pool, (datadir, coins, totals))?;
    let start_height = connector.height();
    let before = totals;
    let end = connector.run(report.assumed_height, stop, progress)?;
    let ended_at = Instant::now();
    let (height, hash) = (connector.height(), choice.chain.hash(connector.height()));
    let (coins, settled_at) = connector.finish(end != End::Interrupted, progress)?;
    let settled_at = settled_at.unwrap_or(ended_at);
    let totals = connector.totals();
    Ok(Validation {
        scan: report,
        end,
        start_height,
        totals,
        run_totals: totals.since(&before),
        coins,
        height,
        hash,
        connect_s: (settled_at - start).as_secs_f64(),
        hash_s: settled_at.elapsed().as_secs_f64(),
    })
}

impl Totals {
    /// What came after `before`.
    fn since(&self, before: &Self) -> Self {
        Self {
            blocks: self.blocks - before.blocks,
            txs: self.txs - before.txs,
            inputs: self.inputs - before.inputs,
            outputs: self.outputs - before.outputs,
            bytes: self.bytes - before.bytes,
            assumed_blocks: self.assumed_blocks - before.assumed_blocks,
            elapsed_ms: self.elapsed_ms - before.elapsed_ms,
        }
    }
}

impl FilePlace {
    fn new(files: &BlockFiles, place: &BlockPlace) -> Self {
        let path = files.path_of(place).to_path_buf();
        Self { path, offset: place.offset, bytes: u64::from(place.size) }
    }
}

impl std::fmt::Display for FilePlace {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "file {} offset {}", self.path.display(), self.offset)
    }
}

impl std::fmt::Display for InvalidBlock {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { hash, height, reason, debug, place } = self;
        write!(f, "invalid block {hash} at height {height}: {reason}: {debug} ({place})")
    }
}
