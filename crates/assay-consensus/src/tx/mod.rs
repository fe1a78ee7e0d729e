//! The rules of single transactions.

mod prevouts;

use std::borrow::Cow;

use assay_wire::{Coin, OutPoint, Tx};

use self::prevouts::check_prevouts;
use crate::amount::{MAX_MONEY, format_money, money_range};
use crate::params::{COINBASE_MATURITY, MAX_TX_BYTES};
use crate::script::opcode::{MAX_SCRIPT_SIZE, op};

/// Why a transaction is invalid: one variant per rule.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TxError {
    /// No inputs.
    #[error("the transaction has no inputs")]
    NoInputs,
    /// No outputs.
    #[error("the transaction has no outputs")]
    NoOutputs,
    /// Too large without its witnesses.
    #[error("the transaction has {bytes} bytes without witnesses, more than {bytes_max}")]
    Oversize {
        /// Size without witnesses.
        bytes: usize,
        /// The limit.
        bytes_max: usize,
    },
    /// An output of negative value.
    #[error("output {output} has the negative value {value}")]
    OutputNegative {
        /// Index of the output.
        output: usize,
        /// Its value, satoshi.
        value: i64,
    },
    /// An output of more than all money.
    #[error("output {output} has the value {value}, more than all money")]
    OutputTooLarge {
        /// Index of the output.
        output: usize,
        /// Its value, satoshi.
        value: i64,
    },
    /// Outputs that together exceed all money.
    #[error("the outputs up to {output} sum to {total}, more than all money")]
    OutputTotalTooLarge {
        /// Index of the output that made the sum too large.
        output: usize,
        /// The sum up to it, satoshi.
        total: i64,
    },
    /// Two inputs spend the same output (CVE-2018-17144).
    #[error("two inputs spend {prevout}")]
    DuplicateInput {
        /// What they both spend.
        prevout: OutPoint,
    },
    /// A coinbase script that is too short or too long.
    #[error("the coinbase script has {length} bytes, not 2 to 100")]
    CoinbaseScriptLength {
        /// Its length.
        length: usize,
    },
    /// Bitcoin Cash: a coinbase where a transaction that spends is expected. In a block of Bitcoin
    /// this is [`BlockError::CoinbaseMultiple`](crate::block::BlockError::CoinbaseMultiple).
    #[error("the transaction is a coinbase")]
    UnexpectedCoinbase,
    /// A coinbase-like input in a transaction with other inputs.
    #[error("input {input} spends nothing")]
    NullPrevout {
        /// Index of the input.
        input: usize,
    },
    /// An output that does not exist or is spent. Found by whoever keeps the coins.
    #[error("{prevout} does not exist or is spent")]
    MissingOrSpent {
        /// What the input names.
        prevout: OutPoint,
    },
    /// A coinbase spent before it matured.
    #[error("input {input} spends a coinbase at depth {depth}")]
    PrematureCoinbaseSpend {
        /// Index of the input.
        input: usize,
        /// Blocks between creation and spend.
        depth: i64,
    },
    /// Inputs worth more than all money.
    #[error("the inputs up to {input} sum to {total}, which is no amount of money")]
    InputValueOutOfRange {
        /// Index of the input at which the sum left the range.
        input: usize,
        /// The sum up to it, satoshi.
        total: i64,
    },
    /// Creates more than it spends.
    #[error("inputs of {value_in} and outputs of {value_out}")]
    SpendsTooMuch {
        /// Sum of the inputs, satoshi.
        value_in: i64,
        /// Sum of the outputs, satoshi.
        value_out: i64,
    },
    /// A fee that is no amount of money.
    #[error("the fee {fee} is no amount of money")]
    FeeOutOfRange {
        /// The fee, satoshi.
        fee: i64,
    },
    /// The lock time has not come.
    #[error("the lock time {lock_time} has not come")]
    NotFinal {
        /// The lock time.
        lock_time: u32,
    },
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
        /// The limit.
        sigops_max: u64,
    },
    /// Bitcoin Cash: smaller than the minimum.
    #[error("the transaction has {bytes} bytes, fewer than {bytes_min}")]
    Undersize {
        /// Its size.
        bytes: usize,
        /// The minimum.
        bytes_min: usize,
    },
    /// Bitcoin Cash: its scripts execute too many signature checks.
    #[error("the scripts execute {sigchecks} signature checks, more than {sigchecks_max}")]
    SigChecks {
        /// Checks executed.
        sigchecks: u64,
        /// The limit for one transaction.
        sigchecks_max: u64,
    },
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

    /// What Bitcoin Core adds to the reject reason; empty for most rules.
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

/// What a rule needs to know of an output being spent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SpentCoin<'a> {
    /// Satoshi.
    pub value: i64,
    /// Height of the block that created it.
    pub height: u32,
    /// Whether a coinbase created it.
    pub coinbase: bool,
    /// The script that locks it.
    pub script_pubkey: &'a [u8],
}

impl<'a> From<&'a Coin> for SpentCoin<'a> {
    fn from(coin: &'a Coin) -> Self {
        Self {
            value: coin.value,
            height: coin.height,
            coinbase: coin.coinbase,
            script_pubkey: &coin.script_pubkey,
        }
    }
}

/// Checks what can be told from a transaction alone (Core `consensus/tx_check.cpp`).
///
/// The same on every chain of the family. Takes a coinbase as well as any other transaction.
///
/// # Errors
/// The first rule broken, in Core's order.
pub fn check_transaction(tx: Tx<'_>) -> Result<(), TxError> {
    if tx.input_count() == 0 {
        return Err(TxError::NoInputs);
    }
    if tx.output_count() == 0 {
        return Err(TxError::NoOutputs);
    }
    let bytes = tx.stripped_size();
    if bytes > MAX_TX_BYTES {
        return Err(TxError::Oversize { bytes, bytes_max: MAX_TX_BYTES });
    }
    check_outputs(tx)?;
    if !tx.is_coinbase() {
        return check_prevouts(tx);
    }
    let length = tx.input(0).script_sig.len();
    if (2..=100).contains(&length) { Ok(()) } else { Err(TxError::CoinbaseScriptLength { length }) }
}

/// Every output and their sum are amounts of money (CVE-2010-5139).
fn check_outputs(tx: Tx<'_>) -> Result<(), TxError> {
    let mut total = 0i64;
    for (output, tx_out) in tx.outputs().enumerate() {
        let value = tx_out.value;
        if value < 0 {
            return Err(TxError::OutputNegative { output, value });
        }
        if value > MAX_MONEY {
            return Err(TxError::OutputTooLarge { output, value });
        }
        total += value;
        if total > MAX_MONEY {
            return Err(TxError::OutputTotalTooLarge { output, total });
        }
    }
    Ok(())
}

/// The sum of the outputs. Wraps on nonsense, so run [`check_transaction`] first.
#[must_use]
pub fn output_total(tx: Tx<'_>) -> i64 {
    tx.outputs().fold(0i64, |total, output| total.wrapping_add(output.value))
}

/// Checks the amounts and ages of what a transaction spends, and tells its fee, satoshi
/// (Core `consensus/tx_verify.cpp`, `CheckTxInputs`).
///
/// `spent` lists the outputs spent, input by input; that they exist is for the caller to know, who
/// otherwise reports [`TxError::MissingOrSpent`]. `height` is that of the block which holds the
/// transaction. [`check_transaction`] has passed and this is no coinbase.
///
/// # Errors
/// The first rule broken, in Core's order.
pub fn check_tx_inputs<'c>(
    tx: Tx<'_>,
    spent: impl IntoIterator<Item = SpentCoin<'c>>,
    height: u32,
) -> Result<i64, TxError> {
    let total = check_coins(spent, height)?;
    let value_out = output_total(tx);
    if total < value_out {
        return Err(TxError::SpendsTooMuch { value_in: total, value_out });
    }
    let fee = total - value_out;
    if !money_range(fee) {
        return Err(TxError::FeeOutOfRange { fee });
    }
    Ok(fee)
}

/// The part of [`check_tx_inputs`] about the coins one by one: ages and amounts; gives their sum,
/// satoshi.
///
/// Core looks at it once all coins are known to exist, BCHN goes from input to input: there a coin
/// that is wrong counts before a later one that is missing.
///
/// # Errors
/// The first rule broken.
pub fn check_coins<'c>(
    spent: impl IntoIterator<Item = SpentCoin<'c>>,
    height: u32,
) -> Result<i64, TxError> {
    let mut total = 0i64;
    for (input, coin) in spent.into_iter().enumerate() {
        if coin.coinbase {
            let depth = i64::from(height) - i64::from(coin.height);
            if depth < i64::from(COINBASE_MATURITY) {
                return Err(TxError::PrematureCoinbaseSpend { input, depth });
            }
        }
        total = total.saturating_add(coin.value);
        if !money_range(coin.value) || !money_range(total) {
            return Err(TxError::InputValueOutOfRange { input, total });
        }
    }
    Ok(total)
}

/// Whether an output can never be spent, so that it never becomes a coin: it begins with
/// `OP_RETURN`, or no script as long as this can run (Core `script/script.h`, `IsUnspendable`).
#[inline]
pub fn is_unspendable(script_pubkey: &[u8]) -> bool {
    script_pubkey.first() == Some(&op::RETURN) || script_pubkey.len() > MAX_SCRIPT_SIZE
}

#[cfg(test)]
mod tests;
