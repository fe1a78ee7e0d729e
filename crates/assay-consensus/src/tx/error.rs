//! Reasons of invalid transactions, with their reject reasons.

use std::borrow::Cow;

use assay_wire::OutPoint;

use crate::amount::format_money;

/// The reason a transaction is invalid: one variant per rule.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TxError {
    #[error("the transaction has no inputs")]
    NoInputs,
    #[error("the transaction has no outputs")]
    NoOutputs,
    #[error("the transaction has {bytes} bytes without witnesses, more than {bytes_max}")]
    Oversize { bytes: usize, bytes_max: usize },
    #[error("output {output} has the negative value {value}")]
    OutputNegative {
        output: usize,
        /// Its value, satoshi.
        value: i64,
    },
    #[error("output {output} has the value {value}, more than all money")]
    OutputTooLarge {
        output: usize,
        /// Its value, satoshi.
        value: i64,
    },
    #[error("the outputs up to {output} sum to {total}, more than all money")]
    OutputTotalTooLarge {
        /// Index of the output that made the sum too large.
        output: usize,
        /// The sum up to it, satoshi.
        total: i64,
    },
    /// Two inputs spend the same output (CVE-2018-17144).
    #[error("two inputs spend {prevout}")]
    DuplicateInput { prevout: OutPoint },
    #[error("the coinbase script has {length} bytes, not 2 to 100")]
    CoinbaseScriptLength { length: usize },
    /// Bitcoin Cash: a coinbase where a transaction that spends is expected. In a block of Bitcoin
    /// this is [`BlockError::CoinbaseMultiple`](crate::block::BlockError::CoinbaseMultiple).
    #[error("the transaction is a coinbase")]
    UnexpectedCoinbase,
    /// A coinbase-like input in a transaction with other inputs.
    #[error("input {input} spends nothing")]
    NullPrevout { input: usize },
    /// An output that does not exist or is spent. The code that stores the coins finds this.
    #[error("{prevout} does not exist or is spent")]
    MissingOrSpent { prevout: OutPoint },
    #[error("input {input} spends a coinbase at depth {depth}")]
    PrematureCoinbaseSpend {
        input: usize,
        /// Blocks between creation and spend.
        depth: i64,
    },
    #[error("the inputs up to {input} sum to {total}, which is no amount of money")]
    InputValueOutOfRange {
        /// Index of the input at which the sum left the range.
        input: usize,
        /// The sum up to it, satoshi.
        total: i64,
    },
    #[error("inputs of {value_in} and outputs of {value_out}")]
    SpendsTooMuch {
        /// Sum of the inputs, satoshi.
        value_in: i64,
        /// Sum of the outputs, satoshi.
        value_out: i64,
    },
    #[error("the fee {fee} is no amount of money")]
    FeeOutOfRange {
        /// The fee, satoshi.
        fee: i64,
    },
    #[error("the lock time {lock_time} has not come")]
    NotFinal { lock_time: u32 },
    /// A relative lock time has not passed (BIP68).
    #[error("locked up to height {lock_height} and median time past {lock_time_s}")]
    SequenceLocked {
        /// Last height that is too low; -1 when height does not matter.
        lock_height: i64,
        /// Last median time past that is too early; -1 when time does not matter.
        lock_time_s: i64,
    },
    /// BIP54: as long as an inner node of the merkle tree.
    #[error("the transaction has exactly {bytes} bytes without witnesses")]
    MerkleNodeSize {
        /// Its size without witnesses.
        bytes: usize,
    },
    /// BIP54: too many signature operations in the scripts that authorise it.
    #[error("{sigops} signature operations, more than {sigops_max}")]
    LegacySigOps {
        /// Signature operations of input scripts, spent scripts and redeem scripts.
        sigops: u64,
        sigops_max: u64,
    },
    /// Bitcoin Cash: smaller than the minimum.
    #[error("the transaction has {bytes} bytes, fewer than {bytes_min}")]
    Undersize { bytes: usize, bytes_min: usize },
    /// Bitcoin Cash: its scripts execute too many signature checks.
    #[error("the scripts execute {sigchecks} signature checks, more than {sigchecks_max}")]
    SigChecks { sigchecks: u64, sigchecks_max: u64 },
}

impl TxError {
    /// The reject reason when a transaction is offered on its own.
    pub fn reject_reason(&self) -> &'static str {
        match self {
            Self::NoInputs => "bad-txns-vin-empty",
            Self::NoOutputs => "bad-txns-vout-empty",
            Self::Oversize { .. } => "bad-txns-oversize",
            Self::OutputNegative { .. } => "bad-txns-vout-negative",
            Self::OutputTooLarge { .. } => "bad-txns-vout-toolarge",
            Self::OutputTotalTooLarge { .. } => "bad-txns-txouttotal-toolarge",
            Self::DuplicateInput { .. } => "bad-txns-inputs-duplicate",
            Self::CoinbaseScriptLength { .. } => "bad-cb-length",
            Self::UnexpectedCoinbase => "bad-tx-coinbase",
            Self::NullPrevout { .. } => "bad-txns-prevout-null",
            Self::MissingOrSpent { .. } => "bad-txns-inputs-missingorspent",
            Self::PrematureCoinbaseSpend { .. } => "bad-txns-premature-spend-of-coinbase",
            Self::InputValueOutOfRange { .. } => "bad-txns-inputvalues-outofrange",
            Self::SpendsTooMuch { .. } => "bad-txns-in-belowout",
            Self::FeeOutOfRange { .. } => "bad-txns-fee-outofrange",
            Self::NotFinal { .. } => "non-final",
            Self::SequenceLocked { .. } => "non-BIP68-final",
            Self::MerkleNodeSize { .. } => "bad-txns-size",
            Self::LegacySigOps { .. } => "bad-txns-legacy-sigops",
            Self::Undersize { .. } => "bad-txns-undersize",
            Self::SigChecks { .. } => "too-many-sigchecks",
        }
    }

    /// The reject reason of a block for containing the transaction.
    pub fn block_reject_reason(&self) -> &'static str {
        match self {
            Self::NotFinal { .. } | Self::SequenceLocked { .. } => "bad-txns-nonfinal",
            Self::SigChecks { .. } => "blk-bad-inputs",
            other => other.reject_reason(),
        }
    }

    /// The text that Bitcoin Core adds to the reject reason; empty for most rules.
    pub fn debug_message(&self) -> Cow<'static, str> {
        match self {
            Self::MissingOrSpent { .. } => "CheckTxInputs: inputs missing/spent".into(),
            Self::PrematureCoinbaseSpend { depth, .. } => {
                format!("tried to spend coinbase at depth {depth}").into()
            }
            Self::SpendsTooMuch { value_in, value_out } => {
                let (value_in, value_out) = (format_money(*value_in), format_money(*value_out));
                format!("value in ({value_in}) < value out ({value_out})").into()
            }
            _ => "".into(),
        }
    }
}
