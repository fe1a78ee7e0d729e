//! The rules of blocks, split so that transactions can be judged in parallel.
//!
//! A block passes these stages, each in Bitcoin Core's order of rules:
//!
//! 1. The block alone: [`check_header`](crate::header::check_header), the signet solution, then
//!    [`check_block`]. Its parts can be called one by one, the transactions in ranges
//!    ([`check_transactions`]).
//! 2. With the chain it extends: [`contextual_check_header`](crate::header::contextual_check_header),
//!    then, with its [`BlockRules`], [`contextual_check_block`].
//! 3. [`BlockRules::check_spends`] for each transaction with the outputs it spends, summed up by
//!    [`BlockTotals`]; then [`check_coinbase_amount`].
//! 4. Scripts, under [`BlockRules::flags`], in any order.
//!
//! Identifiers are passed in, because hashing is done elsewhere and many at a time. Of several
//! failures in one stage found in parallel, the one of the lowest transaction index is the verdict.

use std::ops::Range;

use assay_wire::{Block, Header, Txid, Wtxid};

use crate::commitment::{
    height_prefix, txid_merkle_root, witness_commitment, witness_commitment_index,
};
use crate::params::{ChainParams, MAX_BLOCK_SIGOPS_COST, MAX_BLOCK_WEIGHT, WITNESS_SCALE_FACTOR};
use crate::sigops::legacy_sigops;
use crate::tx::{TxError, check_transaction, output_total};

mod error;
mod facts;
mod rules;

pub use error::{BlockError, ScriptFailure, ScriptRules};
pub use facts::TxFacts;
pub use rules::{BlockRules, BlockTotals, TxSpend, is_overwritten_coinbase, repeats_coinbase};

/// Checks a block without its chain, except for the proof of work and the signet solution.
///
/// # Errors
/// The first rule broken, in Core's order.
///
/// # Panics
/// When `txids` is not one per transaction.
pub fn check_block(params: &ChainParams, block: &Block, txids: &[Txid]) -> Result<(), BlockError> {
    check_merkle_root(block.header(), txids)?;
    check_shape(params, block)?;
    check_transactions(block, txids, 0..block.tx_count())?;
    check_legacy_sigops(params, block.txs().map(legacy_sigops).sum())
}

/// Checks that the header commits to exactly these transactions.
///
/// # Errors
/// [`BlockError::MerkleRoot`] or [`BlockError::MutatedMerkleTree`].
pub fn check_merkle_root(header: &Header, txids: &[Txid]) -> Result<(), BlockError> {
    let (computed, mutated) = txid_merkle_root(txids);
    if computed != header.merkle_root {
        let claimed = header.merkle_root;
        return Err(BlockError::MerkleRoot { claimed, computed });
    }
    if mutated {
        return Err(BlockError::MutatedMerkleTree);
    }
    Ok(())
}

/// Checks the size of a block, and that its first transaction is its only coinbase.
///
/// On Bitcoin Cash it checks only that the block begins with a coinbase. There [`check_transactions`]
/// rejects each further coinbase at its index, and [`check_weight`] checks the size, in BCHN's order.
///
/// # Errors
/// [`BlockError::Length`], [`BlockError::CoinbaseMissing`] or [`BlockError::CoinbaseMultiple`].
pub fn check_shape(params: &ChainParams, block: &Block) -> Result<(), BlockError> {
    let txs = block.tx_count();
    if params.cash.is_some() {
        let begins_with_coinbase = txs > 0 && block.tx(0).is_coinbase();
        return if begins_with_coinbase { Ok(()) } else { Err(BlockError::CoinbaseMissing) };
    }
    // One byte outside the witnesses weighs four, and no transaction has less than one.
    let bytes = block.stripped_size() as u64;
    let bytes_max = MAX_BLOCK_WEIGHT / WITNESS_SCALE_FACTOR;
    if txs == 0 || txs as u64 > bytes_max || bytes > bytes_max {
        return Err(BlockError::Length { bytes, bytes_max, txs });
    }
    if !block.tx(0).is_coinbase() {
        return Err(BlockError::CoinbaseMissing);
    }
    match (1..txs).find(|index| block.tx(*index).is_coinbase()) {
        Some(tx_index) => Err(BlockError::CoinbaseMultiple { tx_index }),
        None => Ok(()),
    }
}

/// Checks the transactions in `range` one by one, each on its own.
///
/// # Errors
/// [`BlockError::Tx`] for the first bad transaction of the range.
///
/// # Panics
/// When the range goes beyond the block or `txids`.
pub fn check_transactions(
    block: &Block,
    txids: &[Txid],
    range: Range<usize>,
) -> Result<(), BlockError> {
    for tx_index in range {
        let tx = block.tx(tx_index);
        // Only on Bitcoin Cash: on Bitcoin the shape of the block has been found wrong before.
        let verdict = if tx_index > 0 && tx.is_coinbase() {
            Err(TxError::UnexpectedCoinbase)
        } else {
            check_transaction(tx)
        };
        verdict.map_err(|source| BlockError::Tx { tx_index, txid: txids[tx_index], source })?;
    }
    Ok(())
}

/// Checks the signature operations of all transactions together, as counted without the outputs they
/// spend ([`legacy_sigops`]). Bitcoin Cash has no such rule.
///
/// # Errors
/// [`BlockError::SigOps`].
pub fn check_legacy_sigops(params: &ChainParams, sigops: u64) -> Result<(), BlockError> {
    let cost = sigops * WITNESS_SCALE_FACTOR;
    if params.cash.is_none() && cost > MAX_BLOCK_SIGOPS_COST {
        let cost_max = MAX_BLOCK_SIGOPS_COST;
        return Err(BlockError::SigOps { cost, cost_max, with_spends: false });
    }
    Ok(())
}

/// Checks a block against the chain it extends, except for the outputs it spends.
///
/// `wtxids` may be empty when [`needs_wtxids`] returns `false`.
///
/// # Errors
/// The first rule broken, in Core's order.
///
/// # Panics
/// When `txids` or, if needed, `wtxids` is not one per transaction. [`check_block`] has passed.
pub fn contextual_check_block(
    rules: &BlockRules,
    block: &Block,
    txids: &[Txid],
    wtxids: &[Wtxid],
) -> Result<(), BlockError> {
    check_order_and_locks(rules, block, txids, 0..block.tx_count())?;
    check_coinbase_height(rules, block)?;
    check_witnesses(rules.segwit, block, wtxids)?;
    check_weight(rules, block)
}

/// Checks of the transactions in `range` the lock time, under BIP54 the size and, on Bitcoin Cash, the
/// canonical order and the bounds on size and version.
///
/// # Errors
/// The first rule broken by the first bad transaction of the range.
///
/// # Panics
/// When the range goes beyond the block or `txids`.
pub fn check_order_and_locks(
    rules: &BlockRules,
    block: &Block,
    txids: &[Txid],
    range: Range<usize>,
) -> Result<(), BlockError> {
    for tx_index in range {
        // From the third transaction on: the coinbase stands outside the order.
        if rules.cash.is_some() && tx_index >= 2 {
            check_pair_order(txids[tx_index - 1], txids[tx_index], tx_index)?;
        }
        rules.check_tx(block.tx(tx_index)).map_err(|source| BlockError::Tx {
            tx_index,
            txid: txids[tx_index],
            source,
        })?;
    }
    Ok(())
}

/// Bitcoin Cash orders the transactions of a block by txid, read as numbers (November 2018).
fn check_pair_order(previous: Txid, txid: Txid, tx_index: usize) -> Result<(), BlockError> {
    match txid.0.iter().rev().cmp(previous.0.iter().rev()) {
        std::cmp::Ordering::Greater => Ok(()),
        std::cmp::Ordering::Equal => Err(BlockError::TxDuplicate { tx_index, txid }),
        std::cmp::Ordering::Less => Err(BlockError::TxOrdering { tx_index, txid, previous }),
    }
}

/// Checks that the coinbase begins with the height (BIP34), and has the height before as its lock time (BIP54).
///
/// # Errors
/// [`BlockError::CoinbaseHeight`], [`BlockError::CoinbaseLockTime`] or [`BlockError::CoinbaseSequence`].
pub fn check_coinbase_height(rules: &BlockRules, block: &Block) -> Result<(), BlockError> {
    if rules.height_in_coinbase
        && !block.tx(0).input(0).script_sig.starts_with(&height_prefix(rules.height))
    {
        return Err(BlockError::CoinbaseHeight { height: rules.height });
    }
    if rules.bip54 {
        let (coinbase, expected) = (block.tx(0), rules.height.saturating_sub(1));
        let found = coinbase.lock_time();
        if found != expected {
            return Err(BlockError::CoinbaseLockTime { found, expected });
        }
        if coinbase.input(0).sequence == u32::MAX {
            return Err(BlockError::CoinbaseSequence);
        }
    }
    Ok(())
}

/// Returns `true` if [`check_witnesses`] reads the wtxids, which cost a hash per transaction.
#[must_use]
pub fn needs_wtxids(rules: &BlockRules, block: &Block) -> bool {
    rules.segwit && block.tx_count() > 0 && witness_commitment_index(block.tx(0)).is_some()
}

/// Checks that the coinbase commits to the witnesses, or that there are none (BIP141).
///
/// # Errors
/// [`BlockError::WitnessNonceSize`], [`BlockError::WitnessCommitment`] or
/// [`BlockError::UnexpectedWitness`].
///
/// # Panics
/// When [`needs_wtxids`] and `wtxids` is not one per transaction, unless no transaction has a witness.
pub fn check_witnesses(
    has_segwit: bool,
    block: &Block,
    wtxids: &[Wtxid],
) -> Result<(), BlockError> {
    let commitment = if has_segwit { witness_commitment_index(block.tx(0)) } else { None };
    if let Some(output) = commitment {
        let coinbase = block.tx(0);
        let witness = coinbase.witness(0);
        let items = witness.len();
        let reserved_value = witness.iter().next().and_then(|item| item.try_into().ok());
        let (1, Some(reserved_value)) = (items, reserved_value) else {
            return Err(BlockError::WitnessNonceSize { items });
        };
        assert_eq!(wtxids.len(), block.tx_count(), "one wtxid per transaction");
        let computed = witness_commitment(wtxids, reserved_value);
        let claimed = &coinbase.output(output).script_pubkey[6..38];
        if claimed != computed {
            let claimed = claimed.try_into().unwrap_or_default();
            return Err(BlockError::WitnessCommitment { claimed, computed });
        }
        return Ok(());
    }
    match block.txs().position(|tx| tx.has_witness()) {
        Some(tx_index) => Err(BlockError::UnexpectedWitness { tx_index }),
        None => Ok(()),
    }
}

/// Checks the weight (BIP141); after the commitment, because only then is it known that the
/// witnesses belong to the block. On Bitcoin Cash checks the size.
///
/// # Errors
/// [`BlockError::Weight`], on Bitcoin Cash [`BlockError::Length`].
pub fn check_weight(rules: &BlockRules, block: &Block) -> Result<(), BlockError> {
    if let Some(cash) = &rules.cash {
        let (bytes, bytes_max) = (block.bytes().len() as u64, cash.block_bytes_max);
        let txs = block.tx_count();
        let too_long = bytes > bytes_max;
        return if too_long { Err(BlockError::Length { bytes, bytes_max, txs }) } else { Ok(()) };
    }
    let weight = block.weight() as u64;
    if weight > MAX_BLOCK_WEIGHT {
        return Err(BlockError::Weight { weight, weight_max: MAX_BLOCK_WEIGHT });
    }
    Ok(())
}

/// Checks that the coinbase creates no more than subsidy and fees.
///
/// # Errors
/// [`BlockError::CoinbaseAmount`].
pub fn check_coinbase_amount(
    rules: &BlockRules,
    block: &Block,
    fees: i64,
) -> Result<(), BlockError> {
    let actual = output_total(block.tx(0));
    let limit = rules.subsidy + fees;
    if actual > limit {
        return Err(BlockError::CoinbaseAmount { actual, limit });
    }
    Ok(())
}

#[cfg(test)]
mod tests;
