//! Validation engine: block tree, chainstate and mempool.
//!
//! [`Engine`] validates raw blocks and transactions from any source. It maintains the block tree, follows the branch with the
//! most work, updates the coins, verifies scripts on all cores, and recovers from a kill at any time.
//!
//! ```no_run
//! use std::sync::Arc;
//! use assay_consensus::params::ChainParams;
//! use assay_engine::{Config, Engine, SubmitOutcome};
//!
//! let params = Arc::new(ChainParams::by_name("regtest").expect("a known chain"));
//! let engine = Engine::open(Config::new("regtest-data", params))?;
//! let outcome = engine.blocks().submit(std::fs::read("block.bin")?);
//! assert!(matches!(outcome, SubmitOutcome::Accepted));
//! engine.shutdown()?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Deliberately absent: sockets. Callers pass the bytes of blocks from peers, users or files.

mod apply;
mod budget;
mod chainstate;
mod checker;
mod clock;
mod config;
mod connect;
mod deferred;
mod engine;
mod error;
mod events;
mod failure;
mod fault_injection;
mod files;
mod flush;
mod ibd;
mod log;
mod mempool;
mod mining;
mod notifier;
mod package;
mod pipeline;
mod prepared;
mod prune_lock;
mod scripts;
mod shard;
mod snapshot_file;
mod stats;
mod sync;
#[cfg(feature = "slowed")]
mod test_slowdown;
mod tree;
mod types;
mod validate;
mod verify;
mod work;

pub use assay_consensus::amount::format_money;
pub use assay_consensus::block::BlockError;
pub use assay_consensus::params::{ChainParams, unknown_chain};
pub use assay_consensus::script::RuleSet;
pub use assay_consensus::uint256::U256;
pub use assay_hash::cpu;
pub use assay_store::StrayKind;
pub use assay_store::defect;
pub use assay_store::{CoinRef, CoinUsage};
pub use assay_store::{
    KeyForms, LayoutError, Obfuscation, SnapshotError, SnapshotHeader, SnapshotReader, XorKey,
    rename_folder,
};
pub use assay_wire::{Block, BlockHash, TxOut};
pub use budget::default_cache_bytes;
pub use chainstate::{TrialChecks, TrialError};
pub use checker::ImmediateChecker;
pub use clock::{Clock, iso_time};
pub use config::{ChainCheck, Config, MiningConfig, Policy, Pruning};
pub use deferred::{
    Again, Answer, Batches, Check, DeferredScripts, EXACT_NEAR_TIP_DEFAULT, Prove,
    SAMPLE_SIGNATURES_DEFAULT, Schnorr, backend_name, default_script_batch,
};
pub use engine::{
    ArchivedBlock, BlockFault, BlockOffer, Blocks, BranchStart, Chain, ChainState, Checked,
    CoinsAt, ConnectReport, DataReport, DeploymentInfo, DumpError, Engine, FaultKind, FetchPlan,
    FetchWish, Gauges, HeaderPlace, HeadersError, HistoricalChain, Imported, LoadError,
    MarkFinding, MarkReport, Mempool, Mining, Taken, TemplateError, VerifyDataError, Wanted,
    WorkShown,
};
pub use error::{ControlError, EngineError, ImportError, OpenError};
pub use events::{Event, EventBlock};
pub use files::{
    FilePlace, FoundChain, InvalidBlock, MissingBlock, PlacedBlock, Stray, WholeBlock, find_blocks,
    read_copies,
};
#[cfg(fuzzing)]
pub use mempool::fuzzing;
pub use mempool::{
    MempoolDelta, MempoolFileDamage, MempoolFileError, MempoolImport, MempoolLoad, MiningChunk,
    UNCONFIRMED_HEIGHT, UnconfirmedTx, is_child_with_parents_tree,
};
pub use mining::{BlockTemplate, LastTemplate, Selection, TemplateOptions, TemplateTx};
pub use notifier::{ConnectedBlock, FreshBlock};
pub use package::{
    PackageFault, PackageFees, PackageOutcome, PackageReject, PackageTx, PackageVerdict, fee_at,
};
pub use prune_lock::BlockKeeper;
pub use shard::{
    Inputs, Merged, ParamsOf, Part, PartConfig, PartProgress, PartResult, PartTimer, PartTiming,
    Plan, PlanConfig, Rejection, STAGES, Salt, ShardError, ShardVerdict, StageClock, Unspent,
    merge, plan_shards, run_part,
};
pub use snapshot_file::{SnapshotDigest, digest_snapshot};
pub use types::{
    BlockEntry, ChainTip, ChainTipStatus, MempoolEntryInfo, MempoolInfo, Prioritised, RelayId,
    RelayTx, SubmitOutcome, TestAccept, Tip, TxFault, TxIds, TxReject, TxRejectCode, UtxoStats,
};
pub use validate::{
    ConnectState, DatadirError, End, ScanReport, Totals, ValidateConfig, ValidateError,
    ValidateProgress, Validation, WriteSpent, validate,
};
pub use verify::{
    BlockVerifier, PrevoutsError, SpendSums, SpendType, TypeCount, TypeCounts, VerifyBlockError,
    parse_prevouts,
};
pub use work::{Stage, WorkDone};
