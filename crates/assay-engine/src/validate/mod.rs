//! Validates a whole chain from block files in place: blocks are not copied.
//!
//! 1. Scan: find every block by its header, choose the complete branch with the most work, check its headers (`files/`).
//! 2. Connect the blocks of that branch in order: threads read ahead ([`prefetch`]), one thread moves coins, all cores verify
//!    scripts of many blocks in parallel ([`connect`]).
//! 3. If a block is invalid: mark it, choose again, go back to the fork point and connect the other branch, until there is no
//!    better one ([`rewind`]), as Core does after `-reindex` (`ActivateBestChain`).
//! 4. Count, hash and write the coins ([`write_out`]).
//!
//! All branches are known beforehand, so undo data are kept only for blocks that another branch can replace ([`undo_log`]).

mod connect;
mod datadir;
mod prefetch;
mod report;
mod rewind;
mod scan;
mod undo_log;
mod window;
mod write_hints;
mod write_out;

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use assay_consensus::params::ChainParams;
use assay_store::{BlockFiles, BlockFilesError, CoinError, KeyForms, Marker, SpentFilesError};
use assay_wire::{Block, BlockHash};

pub use datadir::DatadirError;
pub use report::{ConnectState, End, ScanReport, Totals, Validation};

use crate::clock::unix_time_s;
use crate::deferred::{self, Schnorr};
use crate::error::EngineError;
use crate::files::{Branches, Chain, InvalidBlock, Links, invalid_header, search};
use crate::scripts::verify_threads;
use crate::types::big_endian;
use connect::Connector;
use datadir::Datadir;
pub(crate) use prefetch::{Prefetch, Source};

#[derive(Clone, Debug)]
pub struct ValidateConfig {
    /// Directory of block files, or one such file.
    pub blocks: PathBuf,
    pub params: Arc<ChainParams>,
    /// Parent of the folder `<chain>/validate` for the coins.
    pub datadir: PathBuf,
    /// True if the folder is kept after the validation, so that intermediate flushes are useful.
    pub is_lasting: bool,
    /// Last height to connect.
    pub stop_height: Option<u32>,
    /// Assume-valid block: scripts of it and its ancestors are skipped.
    pub assume_valid: Option<BlockHash>,
    /// Memory for coins, bytes: the cache, the additional memory of a flush, and the block cache of the coins on disk.
    pub cache_bytes_max: usize,
    /// Threads that verify scripts; at least 1.
    pub threads: usize,
    /// Signatures and other checks per batch; `None` verifies each at once. See [`default_script_batch`].
    ///
    /// [`default_script_batch`]: crate::default_script_batch
    pub script_batch: Option<usize>,
    /// Interval of spot checks: [`Config::sample_signatures`].
    ///
    /// [`Config::sample_signatures`]: crate::Config::sample_signatures
    pub sample_signatures: u32,
    /// Verification of BIP340 signatures in vector code: [`Config::schnorr`].
    ///
    /// [`Config::schnorr`]: crate::Config::schnorr
    pub schnorr: Schnorr,
    /// Output for the spent coins of blocks and the unspent ones at the end, which a plan of parts requires.
    pub write_spent: Option<WriteSpent>,
    /// Output for a hints file (BIP 456), which lists the unspent outputs of each block.
    pub write_hints: Option<PathBuf>,
}

/// A folder for spent coins.
#[derive(Clone, Debug)]
pub struct WriteSpent {
    pub dir: PathBuf,
    /// Key conversion for the snapshot of the UTXO set.
    pub keys: KeyForms,
}

/// Progress callbacks of a validation, from several threads.
pub trait ValidateProgress: Sync {
    /// Bytes of the block files searched for headers, and the total.
    fn scanning(&self, bytes_done: u64, bytes_total: u64);
    fn scanned(&self, report: &ScanReport);
    /// A block of the best branch is invalid; the next best is tried, if any.
    fn invalid(&self, block: &InvalidBlock);
    fn connected(&self, state: &ConnectState);
    /// Coins are being written out.
    fn flushing(&self, height: u32);
    /// The coins are being counted and hashed.
    fn hashing(&self, height: u32);
}

/// A failure of the validation; never the fault of a block.
#[derive(Debug, thiserror::Error)]
pub enum ValidateError {
    #[error("block files: {0}")]
    Files(#[from] BlockFilesError),
    #[error(transparent)]
    Datadir(#[from] DatadirError),
    #[error("coins: {0}")]
    Coins(#[from] CoinError),
    #[error("spent coins: {0}")]
    Spent(#[from] SpentFilesError),
    /// The coins do not match the blocks.
    #[error(
        "{}: block {hash} at height {height} does not create all the coins that are said to be of it; begin again with an \
         empty --datadir",
        path.display()
    )]
    OtherCoins {
        /// The hints file being written.
        path: PathBuf,
        hash: BlockHash,
        height: u32,
    },
    /// Coins could not be restored after an invalid block.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// Threads could not be started.
    #[error("cannot start threads: {0}")]
    Threads(String),
    #[error(
        "{files} files of {bytes} bytes hold no block of {chain}: are they of another chain, or is xor.dat of other files?"
    )]
    NoBlocks { chain: &'static str, files: usize, bytes: u64 },
    /// The assume-valid block is in none of the branches.
    #[error(
        "the block {hash} to be assumed valid is not in the files, or blocks below it are missing"
    )]
    UnknownAssumeValid { hash: BlockHash },
    /// The coins belong to a block off the chosen branch.
    #[error(
        "the coins in the datadir belong to block {hash} at height {height}, which is not on the best branch of the files; \
         start with an empty datadir"
    )]
    OtherBranch {
        /// Hash of that block.
        hash: BlockHash,
        height: u32,
    },
    /// Undo data down to the fork point of a better branch are missing.
    #[error(
        "the coins in the datadir belong to block {coins} at height {coins_height}; a branch with more work leaves theirs at height \
         {fork}, and the undo data of height {height} are not there; start with an empty datadir"
    )]
    NoUndo {
        /// The block of the coins.
        coins: BlockHash,
        coins_height: u32,
        /// Height of the last common block.
        fork: u32,
        /// The first block without undo data.
        height: u32,
    },
    /// A connected block is no longer readable.
    #[error("block {hash} at height {height}, which has been connected, cannot be read any more")]
    Gone { hash: BlockHash, height: u32 },
    /// The coins are above the stop height.
    #[error("the coins in the datadir are at height {height} already, past {stop_height}")]
    PastStop {
        /// Height of the coins.
        height: u32,
        stop_height: u32,
    },
}

/// Validates the chain in block files; `stop` ends it early and keeps the progress.
///
/// # Errors
/// The validation cannot be carried out. An invalid chain is no error: see [`Validation::end`].
pub fn validate(
    config: &ValidateConfig,
    stop: &AtomicBool,
    progress: &dyn ValidateProgress,
) -> Result<Validation, ValidateError> {
    let params = &*config.params;
    deferred::configure(deferred::Settings {
        sample_signatures: config.sample_signatures,
        schnorr: config.schnorr,
        evidence_dir: config.is_lasting.then(|| config.datadir.clone()),
    });
    let pool = verify_threads(config.threads).map_err(ValidateError::Threads)?;
    let start = Instant::now();
    let files = BlockFiles::open(&config.blocks, params.disk_magic)?;
    // Before the search, which may take long: report an unusable folder at once.
    let (datadir, coins, totals) = Datadir::open(&config.datadir, params, config.cache_bytes_max)?;
    let found =
        search(params, &files, config.threads, &|done, total| progress.scanning(done, total))?;
    if found.entries.is_empty() {
        let (files, bytes) = (files.files().len(), files.bytes());
        return Err(ValidateError::NoBlocks { chain: params.name, files, bytes });
    }
    let genesis = Block::parse(params.genesis_block(), params.encoding)
        .expect("the genesis block of known parameters parses");
    let links = Links::new(&found.entries, genesis.header(), params.genesis_hash);
    let mut branches = Branches::new(params, *genesis.header(), &links, unix_time_s() as i64);
    let chain = Arc::new(branches.best());
    let assumed = assumed_height(config, &branches, &chain)
        .map_err(|hash| ValidateError::UnknownAssumeValid { hash })?;
    let mut report = scan::report(&files, &found, &branches, &chain, assumed);
    report.elapsed_s = start.elapsed().as_secs_f64();
    progress.scanned(&report);

    let start = Instant::now();
    let coins_chain = chain_of_coins(&mut branches, &chain, coins.tip())?;
    let before = totals;
    let mut connector =
        Connector::new(config, &files, coins_chain, &pool, (datadir, coins, totals))?;
    let start_height = connector.height();
    let mut invalid = Vec::new();
    let end = connect_best(&mut connector, &mut branches, chain, &mut invalid, stop, progress)?;
    let ended_at = Instant::now();
    let (height, hash) = (connector.height(), connector.hash());
    let chain_work = big_endian(branches.work(connector.chain(), height));
    let (coins, settled_at) = connector.finish(end != End::Interrupted, progress)?;
    let settled_at = settled_at.unwrap_or(ended_at);
    let totals = connector.totals();
    Ok(Validation {
        scan: report,
        end,
        invalid,
        start_height,
        totals,
        run_totals: totals.since(&before),
        coins,
        height,
        hash,
        chain_work,
        minimum_chain_work: big_endian(params.minimum_chain_work),
        connect_s: (settled_at - start).as_secs_f64(),
        hash_s: settled_at.elapsed().as_secs_f64(),
    })
}

/// Height up to which scripts of a branch are assumed to be valid; the requested hash if it is in no branch.
fn assumed_height(
    config: &ValidateConfig,
    branches: &Branches<'_>,
    chain: &Chain<'_>,
) -> Result<u32, BlockHash> {
    let Some(hash) = config.assume_valid else { return Ok(0) };
    branches.common_height(chain, &hash).ok_or(hash)
}

/// The branch of the coins in the folder: the best, or another one with a path to it.
fn chain_of_coins<'e>(
    branches: &mut Branches<'e>,
    best: &Arc<Chain<'e>>,
    coins: Option<Marker>,
) -> Result<Arc<Chain<'e>>, ValidateError> {
    let Some(Marker { height, hash }) = coins else { return Ok(Arc::clone(best)) };
    if height <= best.height() && best.hash(height) == hash {
        return Ok(Arc::clone(best));
    }
    let own = branches.branch_of(&hash).filter(|chain| chain.height() == height);
    own.map(Arc::new).ok_or(ValidateError::OtherBranch { hash, height })
}

/// Connects the best branch; after each invalid block the best of the remaining ones, until none has more work than the connected
/// one (Core's `ActivateBestChain`). Calls `invalid` with the invalid blocks.
fn connect_best<'e>(
    connector: &mut Connector<'e>,
    branches: &mut Branches<'e>,
    mut chain: Arc<Chain<'e>>,
    invalid: &mut Vec<InvalidBlock>,
    stop: &AtomicBool,
    progress: &dyn ValidateProgress,
) -> Result<End, ValidateError> {
    let mut bad_headers = branches.bad_headers().len();
    loop {
        if !connector.switch(Arc::clone(&chain), stop, progress)? {
            return Ok(End::Interrupted);
        }
        let assumed = assumed_height(connector.config, branches, &chain).unwrap_or(0);
        let end = connector.run(assumed, stop, progress)?;
        let is_last = match &end {
            End::Invalid(block) => {
                progress.invalid(block);
                branches.fail(&block.hash);
                invalid.push((**block).clone());
                chain = Arc::new(branches.best());
                for bad in &branches.bad_headers()[bad_headers..] {
                    let bad = invalid_header(connector.files, bad);
                    progress.invalid(&bad);
                    invalid.push(bad);
                }
                bad_headers = branches.bad_headers().len();
                chain.hash(chain.height()) == connector.hash()
            }
            End::Complete => true,
            End::StopHeight | End::Interrupted => return Ok(end),
        };
        if is_last {
            // The tip may be the remainder of a branch tried earlier.
            let tip = connector.hash();
            let headers = branches.bad_headers().iter();
            let headers = headers.map(|bad| invalid_header(connector.files, bad));
            let above = headers
                .chain(invalid.iter().cloned())
                .find(|block| branches.parent(&block.hash) == Some(tip));
            return Ok(above.map_or(End::Complete, |block| End::Invalid(Box::new(block))));
        }
    }
}
