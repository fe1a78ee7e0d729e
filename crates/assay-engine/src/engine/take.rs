//! Taking headers and blocks from strangers: kept first, connected later, so that who brings them need not wait.
//!
//! What is refused says how, since some faults are the sender's and some are nobody's (Core `validation.h`,
//! `BlockValidationResult`).

use std::sync::Arc;
use std::time::{Duration, Instant};

use assay_consensus::block::BlockError;
use assay_consensus::chain::Ancestors;
use assay_consensus::header::{HeaderError, check_header};
use assay_consensus::pow::block_work;
use assay_consensus::uint256::U256;
use assay_wire::{Block, BlockHash, Header, ParseError};

use rayon::ThreadPool;

use super::Engine;
use crate::chainstate::{AcceptError, Archive, Judged, State, Step};
use crate::error::EngineError;
use crate::news::FreshBlock;
use crate::prepared::Prepared;
use crate::tree::NodeId;
use crate::types::{SubmitOutcome, TxIds, big_endian};
use crate::work::Stage;

/// What is wrong with a block or header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlockFault {
    pub hash: BlockHash,
    pub kind: FaultKind,
    /// The reference node's reject reason.
    pub reason: String,
    /// Where and why, possibly empty.
    pub debug: String,
}

/// Sorts of faults (Core `consensus/validation.h`, `BlockValidationResult`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FaultKind {
    /// A rule about the block is broken.
    Consensus,
    /// It was found invalid before.
    KnownInvalid,
    /// The header by itself, or its place, is wrong.
    InvalidHeader,
    /// The bytes are not those that the header commits to: others may be valid.
    Mutated,
    MissingParent,
    InvalidParent,
    /// Its time is too far ahead: it may become valid.
    TimeTooNew,
    /// Nothing says yet that its branch will have enough work.
    LittleWork,
}

impl BlockFault {
    fn of(hash: BlockHash, error: &BlockError) -> Self {
        let kind = match error {
            BlockError::Header(HeaderError::ParentUnknown { .. }) => FaultKind::MissingParent,
            BlockError::Header(HeaderError::ParentInvalid { .. }) => FaultKind::InvalidParent,
            BlockError::Header(HeaderError::KnownInvalid { .. }) => FaultKind::KnownInvalid,
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

/// What became of a block that a peer sent.
#[derive(Debug)]
pub enum Taken {
    /// It is archived; [`Engine::connect`] is to be called.
    Kept(BlockHash),
    /// It is archived already, or was not asked for and is of no use.
    Passed(BlockHash),
    /// It breaks a rule.
    Refused(BlockFault),
    /// The bytes are not a block.
    Undecodable(ParseError),
    /// It could not be judged or kept.
    Failed(EngineError),
}

/// A block that a peer brings.
pub struct BlockOffer<'a> {
    /// The block; bytes behind it are ignored.
    pub raw: Vec<u8>,
    /// Whether it was asked for.
    pub was_requested: bool,
    /// Whether its branch has shown enough work.
    pub shown: WorkShown,
    /// The names of transactions by place, where they are known; for none, or for as many as the block has.
    pub known: Vec<Option<TxIds>>,
    /// Gets the block if it builds on the tip and is sound but for its scripts, before it is archived. It must not call the engine.
    pub on_fresh: &'a dyn Fn(FreshBlock),
}

impl BlockOffer<'_> {
    /// A block that was asked for, and that nobody else is to be shown.
    pub fn requested(raw: Vec<u8>) -> Self {
        let (known, shown) = (Vec::new(), WorkShown::Yes);
        Self { raw, was_requested: true, shown, known, on_fresh: &|_| () }
    }
}

/// Whether the branch of a header must show its work first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WorkShown {
    /// It has: the header may be kept.
    Yes,
    /// It has not: an unknown header is not kept.
    No,
}

impl Engine {
    /// Checks a block as far as that goes without coins, and archives it. Whoever was not asked for a block may only bring one
    /// with at least the work of the tip, and not far above it (Core `validation.cpp`, `AcceptBlock`).
    pub fn take_block(&self, offer: BlockOffer<'_>) -> Taken {
        let BlockOffer { raw, was_requested, shown, known, on_fresh } = offer;
        let block = match Block::parse_prefix(raw, self.chain.params().encoding) {
            Ok(block) => block,
            Err(error) => return Taken::Undecodable(error),
        };
        let hash = block.hash();
        let pool = self.pool_for(&block, &known);
        let checked = self.chain.work.time(Stage::Check, || {
            let prepared = match pool {
                Some(pool) => Prepared::in_parallel(block, hash, pool),
                None if known.len() == block.tx_count() => {
                    Prepared::with_known(block, hash, &known)
                }
                None => Prepared::new(block, hash),
            };
            prepared.check_itself(self.chain.params(), pool).map(|()| prepared)
        });
        let prepared = match checked {
            Ok(prepared) => Arc::new(prepared),
            Err(error) => return Taken::Refused(BlockFault::of(hash, &error)),
        };
        let mut state = self.lock_tree();
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
                self.historical.wake();
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
    fn pool_for(&self, block: &Block, known: &[Option<TxIds>]) -> Option<&ThreadPool> {
        // A small block is hashed sooner than other threads wake up, several times over; so is what a larger one has of
        // transactions that are not known.
        let is_unknown = |(_, ids): &(usize, &Option<TxIds>)| ids.is_none();
        let bytes = if known.len() == block.tx_count() {
            let unknown = known.iter().enumerate().filter(is_unknown);
            let to_hash: usize = unknown.map(|(place, _)| block.tx(place).total_size()).sum();
            to_hash + block.bytes().len() / CHECKED_PER_HASHED
        } else {
            block.bytes().len()
        };
        // While a chain is caught up with, peers bring blocks on threads of their own, and the pool verifies signatures.
        let is_alone = self.is_initial_block_download();
        (!is_alone && bytes > SMALL_BLOCK_BYTES).then_some(&*self.chain.pool)
    }

    fn keep(
        &self,
        state: &mut State,
        prepared: &Arc<Prepared>,
        was_requested: bool,
        pool: Option<&ThreadPool>,
        is_good: impl FnOnce(&State, NodeId),
    ) -> Result<Option<NodeId>, AcceptError> {
        let id = self.chain.accept_header(state, prepared.block.header(), &prepared.hash)?;
        let node = state.tree.get(id);
        if node.has_data() {
            return Ok(None);
        }
        let tip = state.tree.tip_node();
        let is_useful = node.chain_work >= tip.chain_work
            && node.height <= tip.height.saturating_add(UNREQUESTED_AHEAD_MAX)
            && node.chain_work >= self.chain.params().minimum_chain_work;
        // What was there once is not kept again unless it was asked for.
        if !(was_requested || is_useful && !node.is_pruned()) {
            self.chain.put_records(state, &[id])?;
            return Ok(None);
        }
        self.chain.accept(state, prepared, pool, Archive::Now, is_good).map(Some)
    }

    /// Judges headers, each of which builds on the one before, and keeps them up to the first that is wrong.
    ///
    /// # Errors
    /// The first that is wrong.
    pub fn take_headers(&self, headers: &[Header]) -> Result<(), HeadersError> {
        let mut state = self.lock_tree();
        state.check()?;
        let mut added = Vec::new();
        let mut outcome = Ok(());
        for header in headers {
            let hash = header.hash();
            let is_known = state.tree.find(&hash).is_some();
            match self.chain.accept_header(&mut state, header, &hash) {
                Ok(id) if !is_known => added.push(id),
                Ok(_) => {}
                Err(error) => {
                    outcome = Err(fault(&mut state, hash, error));
                    break;
                }
            }
        }
        let kept = self.chain.put_records(&state, &added);
        state.poison(kept)?;
        self.chain.news.announce(&state.tree);
        outcome.map_err(|error| match error {
            Ok(fault) => HeadersError::Refused(fault),
            Err(error) => HeadersError::Failed(error),
        })
    }

    /// Connects archived blocks, as far as there are any, one at a time, so that others get at the tree in between. Returns
    /// when nothing is left to do, or after ten seconds: those who brought invalid blocks are to be dealt with. `wait` waits for more
    /// blocks while scripts are open, and says whether any have come.
    ///
    /// # Errors
    /// When the engine fails.
    pub fn connect(&self, mut wait: impl FnMut() -> bool) -> Result<ConnectReport, EngineError> {
        let mut judged = Judged::default();
        let _turn = self.turns.block();
        let deadline = Instant::now() + CONNECT_AT_MOST;
        let outcome = loop {
            if Instant::now() > deadline {
                drop(self.lock());
                break Ok(false);
            }
            let mut state = self.lock_tree();
            let step = loop {
                match self.chain.step(&mut state, &mut judged) {
                    Ok(Step::MoreAtOnce) => {}
                    other => break other,
                }
            };
            match step {
                Ok(Step::More | Step::MoreAtOnce) => state.unlock_fair(),
                Ok(Step::Open) => {
                    state.unlock_fair();
                    if !wait() {
                        drop(self.lock());
                    }
                }
                Ok(Step::Done) => break Ok(true),
                Err(error) => break Err(error),
            }
        };
        let mut rejected = std::mem::take(&mut *self.rejected.lock());
        rejected.extend(judged.into_rejected(&self.lock_tree().tree));
        self.chain.news.announce(&self.lock_tree().tree);
        let faults = rejected.iter().map(|(hash, error)| BlockFault::of(*hash, error)).collect();
        Ok(ConnectReport { is_done: outcome?, faults })
    }

    /// Whether a header meets the target that it claims (Core `pow.cpp`, `CheckProofOfWork`).
    pub fn has_proof_of_work(&self, header: &Header) -> bool {
        check_header(self.chain.params(), header, &header.hash()).is_ok()
    }

    /// Whether a branch of this work, big endian, has the chain's minimum.
    pub fn has_minimum_work(&self, chain_work: &[u8; 32]) -> bool {
        *chain_work >= big_endian(self.chain.params().minimum_chain_work)
    }

    /// Whether it has more than that.
    pub fn has_more_than_minimum_work(&self, chain_work: &[u8; 32]) -> bool {
        *chain_work > big_endian(self.chain.params().minimum_chain_work)
    }

    /// Whether headers give their branch enough work to be kept unasked.
    pub fn shows_work(&self, headers: &[Header]) -> Option<WorkShown> {
        let parent = self.branch_start(&headers.first()?.prev_block)?;
        let claimed = headers
            .iter()
            .fold(parent.chain_work, |sum, header| sum.wrapping_add(block_work(header.bits)));
        let is_enough = claimed >= self.work_threshold();
        Some(if is_enough { WorkShown::Yes } else { WorkShown::No })
    }

    /// The work that a branch must have for its headers to be kept unasked: that of the tip a day ago, and the minimum of the
    /// chain (Core `net_processing.cpp`, `GetAntiDoSWorkThreshold`).
    pub fn work_threshold(&self) -> U256 {
        let state = self.lock_tree();
        let tip = state.tree.tip_node();
        let day = block_work(tip.header.bits).wrapping_mul_u32(144);
        let near_tip =
            if tip.chain_work > day { tip.chain_work.wrapping_sub(day) } else { 0_u64.into() };
        near_tip.max(self.chain.params().minimum_chain_work)
    }

    /// Where a branch of headers begins; `None` when that header is not known.
    pub fn branch_start(&self, hash: &BlockHash) -> Option<BranchStart> {
        let state = self.lock_tree();
        let id = state.tree.find(hash)?;
        let node = state.tree.get(id);
        Some(BranchStart {
            hash: *hash,
            height: node.height,
            bits: node.header.bits,
            chain_work: node.chain_work,
            median_time_past_s: state.tree.ancestors(id).median_time_past_at(node.height),
        })
    }
}

/// A header that others build on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BranchStart {
    pub hash: BlockHash,
    pub height: u32,
    /// Its target in compact form.
    pub bits: u32,
    /// Work of its branch up to it.
    pub chain_work: U256,
    /// Median time of the eleven headers up to it, seconds since 1970.
    pub median_time_past_s: u32,
}

#[derive(Debug)]
pub struct ConnectReport {
    /// Whether nothing was left to do.
    pub is_done: bool,
    /// Blocks that were found invalid, by this call or others since the last one.
    pub faults: Vec<BlockFault>,
}

/// Why headers were not all kept.
#[derive(Debug, thiserror::Error)]
pub enum HeadersError {
    #[error("header {}: {}", .0.hash, .0.reason)]
    Refused(BlockFault),
    #[error(transparent)]
    Failed(#[from] EngineError),
}

/// Tells the sender's faults from the engine's.
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
        // The index may lack what the tree has: what builds on it could be lost in a restart.
        AcceptError::Engine(error) => match state.poison::<()>(Err(error)) {
            Ok(()) => unreachable!("an error stays one"),
            Err(error) => Err(error),
        },
    }
}

fn little_work(hash: BlockHash) -> BlockFault {
    tracing::debug!(
        "AcceptBlockHeader: not adding new block header {hash}, missing anti-dos proof-of-work validation"
    );
    let reason = "too-little-chainwork".to_owned();
    BlockFault { hash, kind: FaultKind::LittleWork, reason, debug: String::new() }
}

/// Blocks may come without end.
const CONNECT_AT_MOST: Duration = Duration::from_secs(10);
/// Takes less than a millisecond to hash, even without instructions for it.
const SMALL_BLOCK_BYTES: usize = 64 << 10;
/// Bytes of a block that are checked in the time in which one is hashed twice, for txid and wtxid.
const CHECKED_PER_HASHED: usize = 8;
/// How far above the tip a block may be that was not asked for (Core `validation.h`, `MIN_BLOCKS_TO_KEEP`).
const UNREQUESTED_AHEAD_MAX: u32 = 288;
