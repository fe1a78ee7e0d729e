//! One block against the coins that a file says it spends.
//!
//! The file is not trusted. Its data of an output of this very block are compared with the block. Its data of any other
//! output are used unchanged, and must be of a lower block: the sums over the whole chain show that it is the coin that was
//! created, and is spent nowhere else. That comparison of heights is the only check of the order between blocks, since a sum
//! has no order.

use std::collections::{HashMap, HashSet};

use assay_consensus::block::{BlockError, BlockRules, BlockTotals, check_coinbase_amount};
use assay_consensus::chain::Ancestors;
use assay_consensus::tx::{SpentCoin, TxError, is_unspendable};
use assay_wire::{Coin, OutPoint, Txid};

use crate::prepared::Prepared;

/// The reason a block does not pass.
#[derive(Debug)]
pub(crate) enum SpendFault {
    /// It breaks a rule, if the coins are right.
    Rule(BlockError),
    Coins(String),
}

impl From<BlockError> for SpendFault {
    fn from(error: BlockError) -> Self {
        Self::Rule(error)
    }
}

/// Every rule that needs the spent coins, scripts apart, in the order of the transactions.
pub(crate) fn check_spends<A: Ancestors>(
    prepared: &Prepared,
    rules: &BlockRules,
    ancestors: &A,
    coins: &[Coin],
) -> Result<(), SpendFault> {
    let prevouts = prepared.spent_prevouts();
    if coins.len() != prevouts.len() {
        let (found, expected) = (coins.len(), prevouts.len());
        return Err(SpendFault::Coins(format!(
            "the file has {found} spent coins, the block spends {expected}"
        )));
    }
    let own = prepared.txids.iter().zip(0..).collect();
    let block = Block { prepared, rules, own };
    let mut gone = HashSet::with_capacity(coins.len());
    let mut totals = BlockTotals::default();
    let mut rest = coins;
    let mut prevouts = prevouts;
    for (tx_index, tx) in prepared.block.txs().enumerate() {
        let tx_error = |source| BlockError::Tx { tx_index, txid: prepared.txids[tx_index], source };
        let inputs = if tx_index == 0 { 0 } else { tx.input_count() };
        let (spent, others) = rest.split_at(inputs);
        let (outpoints, other_outpoints) = prevouts.split_at(inputs);
        (rest, prevouts) = (others, other_outpoints);
        for (prevout, coin) in outpoints.iter().zip(spent) {
            if !block.has(tx_index, prevout, coin)? || !gone.insert(prevout) {
                return Err(tx_error(TxError::MissingOrSpent { prevout: *prevout }).into());
            }
        }
        let spend = rules
            .check_spends_knowing(
                (tx, prepared.facts[tx_index]),
                spent.iter().map(SpentCoin::from),
                |height| ancestors.median_time_past_at(height),
            )
            .map_err(tx_error)?;
        totals.add(tx_index, spend)?;
    }
    Ok(check_coinbase_amount(rules, &prepared.block, totals.fees)?)
}

struct Block<'a> {
    prepared: &'a Prepared,
    rules: &'a BlockRules,
    own: HashMap<&'a Txid, usize>,
}

impl Block<'_> {
    /// Returns `true` if a coin can exist for a transaction to spend, as far as this block shows.
    fn has(&self, tx_index: usize, prevout: &OutPoint, coin: &Coin) -> Result<bool, SpendFault> {
        let Some(&creator) = self.own.get(&prevout.txid) else {
            // A claim may name any height: the table of median times ends below this block.
            if coin.height >= self.rules.height {
                return Err(SpendFault::Coins(format!(
                    "the file says that {prevout} is of height {}, which is not below the block that spends it",
                    coin.height
                )));
            }
            return Ok(true);
        };
        let tx = self.prepared.block.tx(creator);
        let comes_later = self.rules.cash.is_none() && creator >= tx_index;
        if comes_later || prevout.vout as usize >= tx.output_count() {
            return Ok(false);
        }
        let output = tx.output(prevout.vout as usize);
        if is_unspendable(output.script_pubkey) {
            return Ok(false);
        }
        let is_right = (coin.value, &coin.script_pubkey[..])
            == (output.value, output.script_pubkey)
            && (coin.height, coin.coinbase) == (self.rules.height, creator == 0);
        if !is_right {
            return Err(SpendFault::Coins(format!(
                "the file says otherwise of {prevout}, an output of the same block"
            )));
        }
        Ok(true)
    }
}
