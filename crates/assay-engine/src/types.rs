//! What the engine answers: plain data, no references into its state.

use assay_consensus::uint256::U256;
use assay_wire::{BlockHash, Header, ParseError, Txid, Wtxid};

use crate::error::EngineError;

/// The highest block of the active branch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tip {
    /// Height; genesis is 0.
    pub height: u32,
    pub hash: BlockHash,
    /// Time that its header claims, seconds since 1970.
    pub time: u32,
    /// Median of the last eleven times, this one included (BIP113).
    pub median_time: u32,
    /// Compact target of its header.
    pub bits: u32,
    /// Work of the whole branch, big endian.
    pub chain_work: [u8; 32],
    /// Transactions of the whole branch.
    pub chain_txs: u64,
}

/// What became of a block that was submitted.
#[derive(Debug)]
pub enum SubmitOutcome {
    /// It is valid: it has been connected, and is part of the active branch unless one above it broke a rule.
    Accepted,
    /// It was known and valid already.
    Duplicate,
    /// It was known already, as invalid.
    DuplicateInvalid,
    /// It was known already, but never fully checked.
    DuplicateInconclusive,
    /// It is kept, but another branch has as much work or more.
    Inconclusive,
    /// It breaks a rule.
    Rejected {
        /// The reference node's reject reason.
        reason: String,
        debug: String,
    },
    /// The bytes are not a block.
    Undecodable(ParseError),
    /// It could not be judged or kept.
    Failed(EngineError),
}

/// Why a transaction was not admitted to the mempool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TxReject {
    pub code: TxRejectCode,
    /// The reference node's reject reason.
    pub reason: String,
    /// Evidence, possibly empty.
    pub debug: String,
    /// What it says to those who pass transactions on.
    pub fault: TxFault,
    /// The transaction, where the bytes are one.
    pub txid: Option<Txid>,
    /// The same with witnesses.
    pub wtxid: Option<Wtxid>,
}

/// Sorts of refusal, as RPC error codes tell them apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TxRejectCode {
    /// The bytes are not a transaction.
    Decode,
    /// It spends outputs that do not exist or are spent.
    MissingInputs,
    /// Its outputs are in the UTXO set already.
    AlreadyInChain,
    /// It breaks a rule of consensus or policy.
    Rejected,
    /// The fee rate is above what the caller allowed.
    MaxFeeExceeded,
    /// The engine failed; the transaction may be fine.
    Failed,
}

/// What a rejection says to those who pass transactions on: whether others would reject the same, and whether it may be
/// different with another witness, other parents or other children (Core `consensus/validation.h`, `TxValidationResult`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TxFault {
    /// It breaks a rule of consensus.
    Consensus,
    InputsNotStandard,
    NotStandard,
    /// It spends outputs that are unknown or spent.
    MissingInputs,
    /// It is too early: lock times or the age of a coinbase.
    PrematureSpend,
    /// Its witness may have been changed on the way.
    WitnessMutated,
    WitnessStripped,
    /// It is here or confirmed already, or another one with the same txid is.
    Conflict,
    /// The mempool as it is does not take it.
    MempoolPolicy,
    /// It pays too little by itself; a child may pay for it.
    Reconsiderable,
    Unknown,
}

/// What names a transaction among peers: with its witness (BIP339) or without.
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
    /// Its fee in satoshi.
    pub fee_sat: i64,
    /// Virtual size in bytes.
    pub vsize: u32,
    /// Serialised size with witnesses in bytes.
    pub size: u32,
}

/// Verdict of a trial admission.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TestAccept {
    /// The transaction, where the bytes are one.
    pub txid: Option<Txid>,
    /// The same with witnesses.
    pub wtxid: Option<Wtxid>,
    /// Virtual size, with signature operations.
    pub vsize: u32,
    /// Fee in satoshi.
    pub fee_sat: i64,
    /// The fee that it would count as paying.
    pub modified_fee_sat: i64,
    /// Why it would be refused; `None` when it would be admitted.
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
    /// Transactions in it.
    pub tx_count: u32,
    /// Transactions of the branch up to and including it.
    pub chain_txs: u64,
    /// Whether it is part of the active branch.
    pub in_active_chain: bool,
    /// The active block on top of it.
    pub next: Option<BlockHash>,
    /// Median time past (BIP113).
    pub median_time: u32,
    /// Whether the block itself is stored.
    pub has_data: bool,
    /// Whether it was stored and was removed because it is old.
    pub is_pruned: bool,
    /// Serialised length, 0 when it is not stored.
    pub size: u32,
}

/// The end of one branch of the block tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChainTip {
    /// Height; genesis is 0.
    pub height: u32,
    pub hash: BlockHash,
    /// Blocks between it and the active branch, itself included; 0 for the tip.
    pub branch_length: u32,
    /// How far the branch has been judged.
    pub status: ChainTipStatus,
}

/// How far a branch has been judged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChainTipStatus {
    Active,
    /// All blocks were connected at some time.
    ValidFork,
    /// All blocks are archived, but not all were ever connected.
    ValidHeaders,
    /// Some blocks are not archived.
    HeadersOnly,
    /// A block of it broke a rule or was declared invalid.
    Invalid,
}

/// Figures over the whole UTXO set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UtxoStats {
    /// Height of the tip that they belong to.
    pub height: u32,
    /// Hash of that tip.
    pub hash: BlockHash,
    pub txouts: u64,
    /// Transactions with unspent outputs.
    pub transactions: u64,
    /// Sum of the outputs in satoshi.
    pub total_amount_sat: u64,
    /// Core's size estimate that is independent of any database: 50 bytes and the script per output.
    pub bogosize: u64,
    /// `MuHash` of the set in digest order, when it was asked for.
    pub muhash: Option<[u8; 32]>,
    /// Hash over all coins in their order, likewise (Core's `hash_serialized_3`).
    pub hash_serialized: Option<[u8; 32]>,
    /// Bytes that the persistent coins take on disk.
    pub disk_size: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MempoolInfo {
    /// Whether the mempool file has been read, or does not have to be.
    pub loaded: bool,
    /// Transactions that were handed in here and that no peer has fetched.
    pub unbroadcast: usize,
    pub size: usize,
    /// Sum of virtual sizes.
    pub bytes: u64,
    /// Memory charged.
    pub usage: u64,
    /// Sum of fees in satoshi.
    pub total_fee_sat: i64,
    /// Limit of [`MempoolInfo::usage`].
    pub max_bytes: u64,
    /// Least fee rate that is admitted now, satoshi per 1,000 virtual bytes: more than the next while room is scarce.
    pub min_fee_sat_per_kvb: u64,
    /// Least fee rate that is ever admitted.
    pub min_relay_fee_sat_per_kvb: u64,
    /// Largest number of transactions that may be connected; `None` where the chain's nodes set no limit.
    pub cluster_count_max: Option<usize>,
    /// Largest sum of virtual sizes of connected transactions.
    pub cluster_vsize_max: Option<u64>,
}

/// What is known of one unconfirmed transaction.
#[derive(Clone, Debug)]
pub struct MempoolEntryInfo {
    /// Hash without witnesses.
    pub txid: Txid,
    /// Hash with witnesses.
    pub wtxid: Wtxid,
    /// Virtual size.
    pub vsize: u32,
    /// BIP141 weight.
    pub weight: u32,
    /// Weight that counts against limits: more where signature operations count for more.
    pub adjusted_weight: u32,
    /// Fee in satoshi.
    pub fee_sat: i64,
    /// The fee that it counts as paying.
    pub modified_fee_sat: i64,
    /// Fee and weight of the transactions that are mined with it or not at all; `None` where there are no clusters.
    pub chunk: Option<(i64, u64)>,
    /// When it was admitted, seconds since 1970.
    pub time: u64,
    /// Height of the tip at that moment.
    pub height: u32,
    pub depends: Vec<Txid>,
    pub spent_by: Vec<Txid>,
    /// Whether it was handed in here and no peer has fetched it.
    pub is_unbroadcast: bool,
}

/// A transaction that counts as paying more or less than it does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Prioritised {
    pub txid: Txid,
    /// How much more, satoshi.
    pub fee_delta_sat: i64,
    /// What it counts as paying, where it is in the mempool.
    pub modified_fee_sat: Option<i64>,
}

pub(crate) fn big_endian(work: U256) -> [u8; 32] {
    let mut bytes = work.to_le_bytes();
    bytes.reverse();
    bytes
}
