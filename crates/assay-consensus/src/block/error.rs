//! The reasons for which a block is invalid.

use std::borrow::Cow;

use assay_wire::{OutPoint, Txid, Wtxid};

use crate::header::HeaderError;
use crate::script::{Flags, ScriptError};
use crate::tx::TxError;

/// The reason a block is invalid: one variant per rule.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BlockError {
    #[error(transparent)]
    Header(#[from] HeaderError),
    /// No valid solution of the signet challenge (BIP325).
    #[error("the block does not solve the signet challenge")]
    SignetSolution,
    #[error("the transactions do not have the merkle root of the header")]
    MerkleRoot { claimed: [u8; 32], computed: [u8; 32] },
    /// Transactions at the end are repeated such that the root stays the same (CVE-2012-2459).
    #[error("transactions are repeated without changing the merkle root")]
    MutatedMerkleTree,
    /// Empty or too large.
    #[error("the block has {txs} transactions and {bytes} bytes, {bytes_max} are allowed")]
    Length {
        /// Bytes that count against the limit: without witnesses on Bitcoin.
        bytes: u64,
        bytes_max: u64,
        txs: usize,
    },
    #[error("the first transaction is not a coinbase")]
    CoinbaseMissing,
    #[error("transaction {tx_index} is a second coinbase")]
    CoinbaseMultiple { tx_index: usize },
    #[error("transaction {tx_index} ({txid}): {source}")]
    Tx { tx_index: usize, txid: Txid, source: TxError },
    #[error("signature operations cost {cost}, more than {cost_max}")]
    SigOps {
        /// Their cost, as far as it was added up.
        cost: u64,
        cost_max: u64,
        /// `true` if the outputs being spent were counted.
        with_spends: bool,
    },
    /// Bitcoin Cash: a transaction appears twice.
    #[error("transaction {tx_index} ({txid}) repeats the one before it")]
    TxDuplicate { tx_index: usize, txid: Txid },
    /// Bitcoin Cash: transactions are not in canonical order.
    #[error("transaction {tx_index} ({txid}) sorts before the previous one ({previous})")]
    TxOrdering {
        /// Index of the transaction that comes too late.
        tx_index: usize,
        txid: Txid,
        previous: Txid,
    },
    /// The coinbase does not begin with the height (BIP34).
    #[error("the coinbase does not begin with the height {height}")]
    CoinbaseHeight { height: u32 },
    /// BIP54: the lock time of the coinbase is not the height before.
    #[error("the coinbase has the lock time {found}, not {expected}")]
    CoinbaseLockTime {
        found: u32,
        /// The height less one.
        expected: u32,
    },
    /// BIP54: the sequence number of the coinbase switches its lock time off.
    #[error("the coinbase has the final sequence number")]
    CoinbaseSequence,
    /// A commitment without the one 32-byte witness item that goes with it.
    #[error("the coinbase witness has {items} items, not one of 32 bytes")]
    WitnessNonceSize { items: usize },
    #[error("the witnesses are not those the coinbase commits to")]
    WitnessCommitment {
        /// The hash in the coinbase.
        claimed: [u8; 32],
        /// The hash of these witnesses.
        computed: [u8; 32],
    },
    /// A witness in a block that commits to none.
    #[error("transaction {tx_index} has a witness that the block does not commit to")]
    UnexpectedWitness { tx_index: usize },
    #[error("the block weighs {weight}, more than {weight_max}")]
    Weight { weight: u64, weight_max: u64 },
    /// An output would overwrite one that is unspent (BIP30). The code that stores the coins finds this.
    #[error("transaction {tx_index} would overwrite {outpoint}")]
    OverwritesUnspent { tx_index: usize, outpoint: OutPoint },
    #[error("the fees up to transaction {tx_index} sum to {fees}, more than all money")]
    FeesOutOfRange {
        /// Index of the transaction that made the sum too large.
        tx_index: usize,
        /// The sum, satoshi.
        fees: i64,
    },
    #[error("the coinbase pays {actual} of {limit} allowed")]
    CoinbaseAmount {
        /// The amount the coinbase pays, satoshi.
        actual: i64,
        /// Subsidy and fees, satoshi.
        limit: i64,
    },
    /// Bitcoin Cash: the scripts of the block execute too many signature checks.
    #[error("the scripts execute {sigchecks} signature checks, more than {sigchecks_max}")]
    SigChecks {
        /// Checks executed, as far as they were added up.
        sigchecks: u64,
        sigchecks_max: u64,
    },
    #[error("transaction {tx_index}: {source}")]
    Script {
        tx_index: usize,
        /// The failure; boxed to keep the other verdicts small.
        source: Box<ScriptFailure>,
    },
}

impl BlockError {
    /// The reject reason: Bitcoin Core's, or BCHN's where Core has no such rule.
    pub fn reject_reason(&self) -> Cow<'static, str> {
        let reason = match self {
            Self::Header(error) => return error.reject_reason(),
            Self::Script { source, .. } => return source.block_reject_reason().into(),
            Self::SignetSolution => "bad-signet-blksig",
            Self::MerkleRoot { .. } => "bad-txnmrklroot",
            Self::MutatedMerkleTree => "bad-txns-duplicate",
            Self::Length { .. } => "bad-blk-length",
            Self::CoinbaseMissing => "bad-cb-missing",
            Self::CoinbaseMultiple { .. } => "bad-cb-multiple",
            Self::Tx { source, .. } => source.block_reject_reason(),
            Self::SigOps { .. } => "bad-blk-sigops",
            Self::TxDuplicate { .. } => "tx-duplicate",
            Self::TxOrdering { .. } => "tx-ordering",
            Self::CoinbaseHeight { .. } => "bad-cb-height",
            Self::CoinbaseLockTime { .. } => "bad-cb-locktime",
            Self::CoinbaseSequence => "bad-cb-sequence",
            Self::WitnessNonceSize { .. } => "bad-witness-nonce-size",
            Self::WitnessCommitment { .. } => "bad-witness-merkle-match",
            Self::UnexpectedWitness { .. } => "unexpected-witness",
            Self::Weight { .. } => "bad-blk-weight",
            Self::OverwritesUnspent { .. } => "bad-txns-BIP30",
            Self::FeesOutOfRange { .. } => "bad-txns-accumulated-fee-outofrange",
            Self::CoinbaseAmount { .. } => "bad-cb-amount",
            Self::SigChecks { .. } => "blk-bad-inputs",
        };
        reason.into()
    }

    /// The text that the reference node adds to the reject reason in its log.
    pub fn debug_message(&self) -> Cow<'static, str> {
        let message = match self {
            Self::Header(error) => return error.debug_message(),
            Self::Script { source, .. } => return source.debug_message().into(),
            Self::Tx { txid, source, .. } => return tx_debug_message(*txid, source),
            Self::CoinbaseAmount { actual, limit } => {
                return format!("coinbase pays too much (actual={actual} vs limit={limit})").into();
            }
            Self::TxDuplicate { txid, .. } => {
                return format!("Duplicated transaction {txid}").into();
            }
            Self::TxOrdering { txid, previous, .. } => {
                return format!("Transaction order is invalid ({txid} < {previous})").into();
            }
            Self::SignetSolution => "signet block signature validation failure",
            Self::MerkleRoot { .. } => "hashMerkleRoot mismatch",
            Self::MutatedMerkleTree => "duplicate transaction",
            Self::Length { .. } => "size limits failed",
            Self::CoinbaseMissing => "first tx is not coinbase",
            Self::CoinbaseMultiple { .. } => "more than one coinbase",
            Self::SigOps { with_spends: false, .. } => "out-of-bounds SigOpCount",
            Self::SigOps { with_spends: true, .. } => "too many sigops",
            Self::CoinbaseHeight { .. } => "block height mismatch in coinbase",
            Self::CoinbaseLockTime { .. } => "coinbase lock time is not the block height minus one",
            Self::CoinbaseSequence => "coinbase sequence number is final",
            Self::WitnessNonceSize { .. } => {
                "CheckWitnessMalleation : invalid witness reserved value size"
            }
            Self::WitnessCommitment { .. } => {
                "CheckWitnessMalleation : witness merkle commitment mismatch"
            }
            Self::UnexpectedWitness { .. } => {
                "CheckWitnessMalleation : unexpected witness data found"
            }
            Self::Weight { .. } => "ContextualCheckBlock : weight limit failed",
            Self::OverwritesUnspent { .. } => "tried to overwrite transaction",
            Self::FeesOutOfRange { .. } => "accumulated fee in the block out of range",
            Self::SigChecks { .. } => "CheckInputs exceeded SigChecks limit",
        };
        message.into()
    }

    /// Returns `true` if other bytes with the same block hash may be valid. The hash must then not be
    /// remembered as invalid.
    pub fn is_mutation(&self) -> bool {
        matches!(
            self,
            Self::MerkleRoot { .. }
                | Self::MutatedMerkleTree
                | Self::WitnessNonceSize { .. }
                | Self::WitnessCommitment { .. }
                | Self::UnexpectedWitness { .. }
        )
    }

    /// Index of the transaction at fault, where one is.
    pub fn tx_index(&self) -> Option<usize> {
        match self {
            Self::Tx { tx_index, .. }
            | Self::Script { tx_index, .. }
            | Self::CoinbaseMultiple { tx_index }
            | Self::TxDuplicate { tx_index, .. }
            | Self::TxOrdering { tx_index, .. }
            | Self::UnexpectedWitness { tx_index }
            | Self::OverwritesUnspent { tx_index, .. }
            | Self::FeesOutOfRange { tx_index, .. } => Some(*tx_index),
            _ => None,
        }
    }
}

/// Core words this by the stage that found the fault.
fn tx_debug_message(txid: Txid, error: &TxError) -> Cow<'static, str> {
    match error {
        TxError::NotFinal { .. } => "non-final transaction".into(),
        TxError::SequenceLocked { .. } => {
            format!("contains a non-BIP68-final transaction {txid}").into()
        }
        TxError::SigChecks { .. } => "parallel script check failed".into(),
        TxError::Undersize { .. } => "".into(),
        TxError::MissingOrSpent { .. }
        | TxError::LegacySigOps { .. }
        | TxError::PrematureCoinbaseSpend { .. }
        | TxError::InputValueOutOfRange { .. }
        | TxError::SpendsTooMuch { .. }
        | TxError::FeeOutOfRange { .. } => {
            format!("{} in transaction {txid}", error.debug_message()).into()
        }
        _ => format!("Transaction check failed (tx hash {txid}) {}", error.debug_message()).into(),
    }
}

/// A script that does not authorise a spend.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("input {input} of {txid}, spending {prevout}: {error}")]
pub struct ScriptFailure {
    pub txid: Txid,
    pub wtxid: Wtxid,
    pub input: usize,
    pub prevout: OutPoint,
    pub error: ScriptError,
    pub rules: ScriptRules,
}

/// The rules that a script breaks, as the reference nodes tell them apart in their reasons.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScriptRules {
    Bitcoin,
    Cash,
    /// Rules of Bitcoin Cash that its nodes do not call mandatory.
    CashPolicy,
}

impl ScriptRules {
    pub const fn of(flags: Flags) -> Self {
        if flags.contains(Flags::BCH) { Self::Cash } else { Self::Bitcoin }
    }
}

impl ScriptFailure {
    pub fn block_reject_reason(&self) -> String {
        match self.rules {
            ScriptRules::Bitcoin => format!("block-script-verify-flag-failed ({})", self.error),
            ScriptRules::Cash | ScriptRules::CashPolicy => "blk-bad-inputs".to_owned(),
        }
    }

    /// The reject reason of a transaction for this failure, when it is offered on its own.
    pub fn mempool_reject_reason(&self) -> String {
        let cash = self.error.cash_text();
        match self.rules {
            ScriptRules::Bitcoin => format!("mempool-script-verify-flag-failed ({})", self.error),
            ScriptRules::Cash => format!("mandatory-script-verify-flag-failed ({cash})"),
            ScriptRules::CashPolicy => format!("non-mandatory-script-verify-flag ({cash})"),
        }
    }

    /// The text that Bitcoin Core adds to the reject reason. On Bitcoin Cash it follows the error, which is not part of a
    /// block's reason there.
    pub fn debug_message(&self) -> String {
        let Self { txid, wtxid, input, prevout, .. } = self;
        let place = format!("input {input} of {txid} (wtxid {wtxid}), spending {prevout}");
        match self.rules {
            ScriptRules::Bitcoin => place,
            ScriptRules::Cash | ScriptRules::CashPolicy => {
                format!("{}, {place}", self.error.cash_text())
            }
        }
    }
}
