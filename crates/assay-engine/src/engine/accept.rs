//! Accepts headers and blocks from peers: stored at once, connected later, so that the sender need not wait.
//!
//! A rejection has a kind, because some faults are the sender's and others are not (Core `validation.h`,
//! `BlockValidationResult`).

use std::sync::Arc;
use std::time::{Duration, Instant};

use assay_consensus::block::BlockError;
use assay_consensus::header::HeaderError;
use assay_wire::{Block, BlockHash, Header, ParseError};

use rayon::ThreadPool;

use super::Blocks;
use crate::chainstate::{AcceptError, Archive, ConnectResult, State, Step};
use crate::error::EngineError;
use crate::notifier::FreshBlock;
use crate::prepared::Prepared;
use crate::tree::NodeId;
use crate::types::{SubmitOutcome, TxIds};
use crate::work::Stage;

/// Fault of a block or header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlockFault {
    pub hash: BlockHash,
    pub kind: FaultKind,
    /// The reference node's reject reason.
    pub reason: String,
    /// Details, possibly empty.
    pub debug: String,
}

/// Kinds of faults (Core `consensus/validation.h`, `BlockValidationResult`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FaultKind {
    Consensus,
    /// It was found invalid before.
    KnownInvalid,
    /// The header itself, or its position, is invalid.
    InvalidHeader,
    /// The bytes do not match the commitments in the header: others may be valid.
    Mutated,
    MissingParent,
    InvalidParent,
    /// The time is too far in the future: the header may become valid.
    TimeTooNew,
    /// The branch has not shown enough work.
    LittleWork,
}

impl BlockFault {
    fn of(hash: BlockHash, error: &BlockError) -> Self {
        let kind = match error {
            BlockError::Header(HeaderError::ParentUnknown { .. }) => FaultKind::MissingParent,
            BlockError::Header(HeaderError::ParentInvalid { .. }) => FaultKind::InvalidParent,
            BlockError::Header(HeaderError::TimeTooNew { .. }) => FaultKind::TimeTooNew,
            BlockError::Header(_) => FaultKind::InvalidHeader,
            other if other.is_mutation() => FaultKind::Mutated,
            _ => FaultKind::Consensus,
        };
        let (reason, debug) =
            (error.reject_reason().into_owned(), error.debug_message().into_owned());
        Self { hash, kind, reason, debug }
    }
}

/// Outcome of a block from a peer.
#[derive(Debug)]
pub enum Taken {
    /// Archived; call [`Blocks::connect`].
    Kept(BlockHash),
    /// Archived before, or unrequested and of no use.
    Passed(BlockHash),
    /// The block breaks a rule.
    Refused(BlockFault),
    Undecodable(ParseError),
    /// The block could not be checked or stored.
    Failed(EngineError),
}

/// A block from a peer.
pub struct BlockOffer<'a> {
    /// The block; trailing bytes are ignored.
    pub raw: Vec<u8>,
    pub was_requested: bool,
    /// True if its branch has shown enough work.
    pub shown: WorkShown,
    /// Known ids of transactions by index; empty, or one entry per transaction.
    pub known: Vec<Option<TxIds>>,
    /// Called with the block before it is archived, if it builds on the tip and passes all checks except scripts. It must not
    /// call the engine.
    pub on_fresh: &'a dyn Fn(FreshBlock),
}

impl BlockOffer<'_> {
    /// A requested block that is not relayed before its validation.
    pub fn requested(raw: Vec<u8>) -> Self {
        let (known, shown) = (Vec::new(), WorkShown::Yes);
        Self { raw, was_requested: true, shown, known, on_fresh: &|_| () }
    }
}

/// Result of the anti-DoS work check of a header's branch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WorkShown {
    /// Enough work: the header may be stored.
    Yes,
    /// Not enough work: an unknown header is not stored.
    No,
}

impl<'e> Blocks<'e> {
    /// Checks a block as far as possible without coins, and archives it. An unrequested block must have at least the work of the
    /// tip, and not be far above it (Core `validation.cpp`, `AcceptBlock`).
    pub fn take(self, offer: BlockOffer<'_>) -> Taken {
        let BlockOffer { raw, was_requested, shown, known, on_fresh } = offer;
        let block = match Block::parse_prefix(raw, self.0.params().encoding) {
            Ok(block) => block,
            Err(error) => return Taken::Undecodable(error),
        };
        let hash = block.hash();
        let pool = self.pool_for(&block, &known);
        let checked = self.0.chainstate.work.time(Stage::Check, || {
            let prepared = match pool {
                Some(pool) => Prepared::in_parallel(block, hash, pool),
                None if known.len() == block.tx_count() => {
                    Prepared::with_known(block, hash, &known)
                }
                None => Prepared::new(block, hash),
            };
            prepared.check_itself(self.0.params(), pool).map(|()| prepared)
        });
        let prepared = match checked {
            Ok(prepared) => Arc::new(prepared),
            Err(error) => return Taken::Refused(BlockFault::of(hash, &error)),
        };
        let mut state = self.0.lock_tree();
        if let Err(error) = state.check() {
            return Taken::Failed(error);
        }
        let is_known = state.tree.find(&hash).is_some();
        if !is_known && shown == WorkShown::No {
            return Taken::Refused(little_work(hash));
        }
        let show = |state: &State, id| {
            if let Some(fresh) = self.fresh(state, id, &prepared) {
                on_fresh(fresh);
            }
        };
        match self.keep(&mut state, &prepared, was_requested, pool, show) {
            Ok(Some(id)) => {
                state.ready.keep(id, prepared);
                self.0.historical.wake();
                Taken::Kept(hash)
            }
            Ok(None) => Taken::Passed(hash),
            Err(error) => match fault(&mut state, hash, error) {
                Ok(fault) => Taken::Refused(fault),
                Err(error) => Taken::Failed(error),
            },
        }
    }

    /// The threads that hash and check a block; `None` for this one.
    fn pool_for(self, block: &Block, known: &[Option<TxIds>]) -> Option<&'e ThreadPool> {
        // Other threads take several times longer to wake up than a small block takes to hash; likewise the unknown transactions
        // of a larger one.
        let is_unknown = |(_, ids): &(usize, &Option<TxIds>)| ids.is_none();
        let bytes = if known.len() == block.tx_count() {
            let unknown = known.iter().enumerate().filter(is_unknown);
            let to_hash: usize = unknown.map(|(place, _)| block.tx(place).total_size()).sum();
            to_hash + block.bytes().len() / CHECKED_PER_HASHED
        } else {
            block.bytes().len()
        };
        // During IBD several threads accept blocks of peers, and the pool verifies signatures.
        let is_alone = self.0.chain().is_initial_block_download();
        (!is_alone && bytes > SMALL_BLOCK_BYTES).then_some(&*self.0.chainstate.pool)
    }

    fn keep(
        self,
        state: &mut State,
        prepared: &Arc<Prepared>,
        was_requested: bool,
        pool: Option<&ThreadPool>,
        is_good: impl FnOnce(&State, NodeId),
    ) -> Result<Option<NodeId>, AcceptError> {
        let id = self.0.chainstate.accept_header(state, prepared.block.header(), &prepared.hash)?;
        let node = state.tree.get(id);
        if node.has_data() {
            return Ok(None);
        }
        let tip = state.tree.tip_node();
        let is_useful = node.chain_work >= tip.chain_work
            && node.height <= tip.height.saturating_add(UNREQUESTED_AHEAD_MAX)
            && node.chain_work >= self.0.params().minimum_chain_work;
        // A pruned block is not stored again unless it was requested.
        if !(was_requested || is_useful && !node.is_pruned()) {
            self.0.chainstate.put_records(state, &[id])?;
            return Ok(None);
        }
        self.0.chainstate.accept(state, prepared, pool, Archive::Now, is_good).map(Some)
    }

    /// Checks consecutive headers and stores them up to the first invalid one.
    ///
    /// # Errors
    /// The fault of the first invalid one.
    pub fn take_headers(self, headers: &[Header]) -> Result<(), HeadersError> {
        let mut state = self.0.lock_tree();
        state.check()?;
        let mut added = Vec::new();
        let mut outcome = Ok(());
        for header in headers {
            let hash = header.hash();
            let is_known = state.tree.find(&hash).is_some();
            match self.0.chainstate.accept_header(&mut state, header, &hash) {
                Ok(id) if !is_known => added.push(id),
                Ok(_) => {}
                Err(error) => {
                    outcome = Err(fault(&mut state, hash, error));
                    break;
                }
            }
        }
        let kept = self.0.chainstate.put_records(&state, &added);
        state.poison(kept)?;
        self.0.chainstate.notifier.announce(&state.tree);
        outcome.map_err(|error| match error {
            Ok(fault) => HeadersError::Refused(fault),
            Err(error) => HeadersError::Failed(error),
        })
    }

    /// Connects archived blocks one at a time, so that other threads can use the tree in between. Returns when nothing is left to
    /// do, or after ten seconds, so that the caller can handle senders of invalid blocks. While scripts are pending, `wait` waits
    /// for more blocks and returns true if any arrived.
    ///
    /// # Errors
    /// The engine fails.
    pub fn connect(self, mut wait: impl FnMut() -> bool) -> Result<ConnectReport, EngineError> {
        let mut judged = ConnectResult::default();
        let _turn = self.0.turns.block();
        let deadline = Instant::now() + CONNECT_AT_MOST;
        let outcome = loop {
            if Instant::now() > deadline {
                drop(self.0.lock());
                break Ok(false);
            }
            let mut state = self.0.lock_tree();
            let step = loop {
                match self.0.chainstate.step(&mut state, &mut judged) {
                    Ok(Step::MoreAtOnce) => {}
                    other => break other,
                }
            };
            match step {
                Ok(Step::More | Step::MoreAtOnce) => state.unlock_fair(),
                Ok(Step::Open) => {
                    state.unlock_fair();
                    if !wait() {
                        drop(self.0.lock());
                    }
                }
                Ok(Step::Done) => break Ok(true),
                Err(error) => break Err(error),
            }
        };
        let mut rejected = std::mem::take(&mut *self.0.rejected.lock());
        rejected.extend(judged.into_rejected(&self.0.lock_tree().tree));
        self.0.chainstate.notifier.announce(&self.0.lock_tree().tree);
        let faults = rejected.iter().map(|(hash, error)| BlockFault::of(*hash, error)).collect();
        Ok(ConnectReport { is_done: outcome?, faults })
    }
}

#[derive(Debug)]
pub struct ConnectReport {
    /// True if nothing was left to do.
    pub is_done: bool,
    /// Invalid blocks found since the last call.
    pub faults: Vec<BlockFault>,
}

/// Not all headers were stored.
#[derive(Debug, thiserror::Error)]
pub enum HeadersError {
    #[error("header {}: {}", .0.hash, .0.reason)]
    Refused(BlockFault),
    #[error(transparent)]
    Failed(#[from] EngineError),
}

/// Separates faults of the sender from failures of the engine.
fn fault(
    state: &mut State,
    hash: BlockHash,
    error: AcceptError,
) -> Result<BlockFault, EngineError> {
    match error {
        AcceptError::Rule(error) => Ok(BlockFault::of(hash, &error)),
        AcceptError::Known(SubmitOutcome::DuplicateInvalid) => Ok(BlockFault {
            hash,
            kind: FaultKind::KnownInvalid,
            reason: "duplicate-invalid".to_owned(),
            debug: String::new(),
        }),
        AcceptError::Known(_) => unreachable!("archived blocks are passed over before"),
        // The index may lack blocks of the tree, and their descendants could be lost in a restart.
        AcceptError::Engine(error) => Err(state.fail(error)),
    }
}

fn little_work(hash: BlockHash) -> BlockFault {
    tracing::debug!(
        "AcceptBlockHeader: not adding new block header {hash}, missing anti-dos proof-of-work validation"
    );
    let reason = "too-little-chainwork".to_owned();
    BlockFault { hash, kind: FaultKind::LittleWork, reason, debug: String::new() }
}

/// Limit of one call, since blocks may arrive without end.
const CONNECT_AT_MOST: Duration = Duration::from_secs(10);
/// A block of this size takes less than a millisecond to hash, even without special instructions.
const SMALL_BLOCK_BYTES: usize = 64 << 10;
/// Ratio of the hashing time per byte (txid and wtxid) to the checking time.
const CHECKED_PER_HASHED: usize = 8;
/// Maximum height above the tip of an unrequested block (Core `validation.h`, `MIN_BLOCKS_TO_KEEP`).
const UNREQUESTED_AHEAD_MAX: u32 = 288;
