//! Results of the engine: plain data, without references into its state.

use assay_consensus::uint256::U256;
use assay_wire::{BlockHash, Header, ParseError, Txid, Wtxid};

use crate::error::EngineError;

/// The highest block of the active branch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tip {
    /// Height; genesis is 0.
    pub height: u32,
    pub hash: BlockHash,
    /// Time in its header, seconds since 1970.
    pub time: u32,
    /// Median of the last eleven times, inclusive (BIP113).
    pub median_time: u32,
    /// Compact target of its header.
    pub bits: u32,
    /// Work of the whole branch, big endian.
    pub chain_work: [u8; 32],
    /// Transactions of the whole branch.
    pub chain_txs: u64,
}

/// Outcome of a submitted block.
#[derive(Debug)]
pub enum SubmitOutcome {
    /// Valid: it was connected, and is part of the active branch unless one above it broke a rule.
    Accepted,
    /// Known and valid.
    Duplicate,
    /// Known and invalid.
    DuplicateInvalid,
    /// Known, but never fully checked.
    DuplicateInconclusive,
    /// Stored, but another branch has as much work or more.
    Inconclusive,
    /// The block breaks a rule.
    Rejected {
        /// The reference node's reject reason.
        reason: String,
        debug: String,
    },
    Undecodable(ParseError),
    /// The block could not be validated or stored.
    Failed(EngineError),
}

/// A transaction was not admitted to the mempool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TxReject {
    pub code: TxRejectCode,
    /// The reference node's reject reason.
    pub reason: String,
    /// Details, possibly empty.
    pub debug: String,
    /// Kind of the fault, for relay.
    pub fault: TxFault,
    /// The txid, if the bytes are a transaction.
    pub txid: Option<Txid>,
    /// The wtxid, if the bytes are a transaction.
    pub wtxid: Option<Wtxid>,
}

/// Kinds of rejections, as in RPC error codes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TxRejectCode {
    /// The bytes are not a transaction.
    Decode,
    /// It spends outputs that do not exist or are spent.
    MissingInputs,
    /// Its outputs are in the UTXO set already.
    AlreadyInChain,
    /// It breaks a consensus or policy rule.
    Rejected,
    /// The fee rate exceeds the caller's limit.
    MaxFeeExceeded,
    /// The engine failed; the transaction may be valid.
    Failed,
}

/// Meaning of a rejection for relay: shared by all nodes, or avoidable with another witness, other parents or other children
/// (Core `consensus/validation.h`, `TxValidationResult`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TxFault {
    /// It breaks a consensus rule.
    Consensus,
    InputsNotStandard,
    NotStandard,
    /// It spends outputs that are unknown or spent.
    MissingInputs,
    /// Premature: lock times or the maturity of a coinbase.
    PrematureSpend,
    /// Its witness may have been modified in transit.
    WitnessMutated,
    WitnessStripped,
    /// It, or another one with the same txid, is in the mempool or confirmed.
    Conflict,
    /// The mempool does not admit it in its current state.
    MempoolPolicy,
    /// It pays too little individually; a child may pay for it.
    Reconsiderable,
    Unknown,
}

/// Identifier of a transaction between peers: wtxid (BIP339) or txid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum RelayId {
    Txid(Txid),
    Wtxid(Wtxid),
}

impl RelayId {
    pub fn hash(&self) -> [u8; 32] {
        match self {
            Self::Txid(txid) => txid.0,
            Self::Wtxid(wtxid) => wtxid.0,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TxIds {
    pub txid: Txid,
    pub wtxid: Wtxid,
}

/// An unconfirmed transaction that may be announced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RelayTx {
    pub txid: Txid,
    pub wtxid: Wtxid,
    pub fee_sat: i64,
    pub vsize: u32,
    /// Serialised size with witnesses in bytes.
    pub size: u32,
}

/// Result of a trial admission.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TestAccept {
    /// The txid, if the bytes are a transaction.
    pub txid: Option<Txid>,
    /// The wtxid, if the bytes are a transaction.
    pub wtxid: Option<Wtxid>,
    /// Virtual size, adjusted for signature operations.
    pub vsize: u32,
    pub fee_sat: i64,
    /// Fee including the delta.
    pub modified_fee_sat: i64,
    /// The rejection; `None` if it would be admitted.
    pub reject: Option<TxReject>,
}

#[derive(Clone, Debug)]
pub struct BlockEntry {
    pub header: Header,
    pub hash: BlockHash,
    /// Height; genesis is 0.
    pub height: u32,
    /// Work of the branch up to and including it, big endian.
    pub chain_work: [u8; 32],
    pub tx_count: u32,
    /// Transactions of the branch up to and including it.
    pub chain_txs: u64,
    pub in_active_chain: bool,
    /// Its active child.
    pub next: Option<BlockHash>,
    /// Median time past (BIP113).
    pub median_time: u32,
    /// True if the block itself is stored.
    pub has_data: bool,
    pub is_pruned: bool,
    /// Serialised length; 0 if it is not stored.
    pub size: u32,
}

/// The tip of one branch of the block tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChainTip {
    /// Height; genesis is 0.
    pub height: u32,
    pub hash: BlockHash,
    /// Number of blocks above the fork point with the active branch; 0 for the active tip.
    pub branch_length: u32,
    pub status: ChainTipStatus,
}

/// Validation state of a branch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChainTipStatus {
    Active,
    /// All blocks were connected at some time.
    ValidFork,
    /// All blocks are archived, but not all were ever connected.
    ValidHeaders,
    /// Some blocks are not archived.
    HeadersOnly,
    /// One of its blocks broke a rule or was invalidated.
    Invalid,
}

/// Statistics of the whole UTXO set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UtxoStats {
    pub height: u32,
    pub hash: BlockHash,
    pub txouts: u64,
    /// Transactions with unspent outputs.
    pub transactions: u64,
    pub total_amount_sat: u64,
    /// Core's size estimate, independent of any database: 50 bytes and the script per output.
    pub bogosize: u64,
    /// `MuHash` of the set in digest order, if requested.
    pub muhash: Option<[u8; 32]>,
    /// Hash over all coins in order, if requested (Core's `hash_serialized_3`).
    pub hash_serialized: Option<[u8; 32]>,
    /// Bytes of the coins on disk.
    pub disk_size: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MempoolInfo {
    /// True if the mempool file is loaded, or need not be.
    pub loaded: bool,
    /// Submitted transactions that no peer has fetched.
    pub unbroadcast: usize,
    pub size: usize,
    /// Sum of virtual sizes.
    pub bytes: u64,
    /// Accounted memory.
    pub usage: u64,
    pub total_fee_sat: i64,
    /// Limit of [`MempoolInfo::usage`].
    pub max_bytes: u64,
    /// Current minimum fee rate, satoshi per 1,000 virtual bytes: more than the next one while the mempool is full.
    pub min_fee_sat_per_kvb: u64,
    /// Static minimum fee rate, satoshi per 1,000 virtual bytes.
    pub min_relay_fee_sat_per_kvb: u64,
    /// Maximum number of transactions in a cluster; `None` if the chain's nodes have no limit.
    pub cluster_count_max: Option<usize>,
    /// Maximum sum of virtual sizes in a cluster.
    pub cluster_vsize_max: Option<u64>,
}

/// Details of one unconfirmed transaction.
#[derive(Clone, Debug)]
pub struct MempoolEntryInfo {
    pub txid: Txid,
    pub wtxid: Wtxid,
    pub vsize: u32,
    /// BIP141 weight.
    pub weight: u32,
    /// Weight, adjusted for signature operations.
    pub adjusted_weight: u32,
    pub fee_sat: i64,
    /// Fee including the delta.
    pub modified_fee_sat: i64,
    /// Fee and weight of its chunk; `None` without clusters.
    pub chunk: Option<(i64, u64)>,
    /// Time of admission, seconds since 1970.
    pub time: u64,
    /// Height of the tip at that time.
    pub height: u32,
    pub depends: Vec<Txid>,
    pub spent_by: Vec<Txid>,
    /// True if it was submitted here and no peer has fetched it.
    pub is_unbroadcast: bool,
}

/// A transaction with a fee delta.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Prioritised {
    pub txid: Txid,
    pub fee_delta_sat: i64,
    /// Fee including the delta, if it is in the mempool.
    pub modified_fee_sat: Option<i64>,
}

pub(crate) fn big_endian(work: U256) -> [u8; 32] {
    let mut bytes = work.to_le_bytes();
    bytes.reverse();
    bytes
}
