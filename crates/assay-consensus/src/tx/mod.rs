//! The rules of single transactions.

mod error;
mod prevouts;

use assay_wire::{Coin, Tx};

pub use self::error::TxError;
use self::prevouts::check_prevouts;
use crate::amount::{MAX_MONEY, money_range};
use crate::params::{COINBASE_MATURITY, MAX_TX_BYTES};
use crate::script::opcode::{MAX_SCRIPT_SIZE, op};

/// The facts that a rule needs about an output being spent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SpentCoin<'a> {
    /// Satoshi.
    pub value: i64,
    /// Height of the block that created it.
    pub height: u32,
    /// `true` if a coinbase created it.
    pub coinbase: bool,
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

/// Checks a transaction alone (Core `consensus/tx_check.cpp`).
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

/// Checks the amounts and ages of what a transaction spends, and returns its fee, satoshi
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

/// Returns `true` if an output can never be spent, so that it never becomes a coin: it begins with
/// `OP_RETURN`, or no script as long as this can run (Core `script/script.h`, `IsUnspendable`).
#[inline]
pub fn is_unspendable(script_pubkey: &[u8]) -> bool {
    script_pubkey.first() == Some(&op::RETURN) || script_pubkey.len() > MAX_SCRIPT_SIZE
}

#[cfg(test)]
mod tests;
