//! Transactions that spend what their own block creates: handed over before any coin moves.
//!
//! Bitcoin Cash brings all outputs of a block in before any input goes out, so scripts would wait for that, which in a block of
//! many outputs takes as long as its signatures do. What such a transaction spends lies in the block itself. Coins move as ever:
//! a block that breaks a rule about them is rejected for that, whatever its scripts do.

use assay_wire::{Coin, Txid};

use super::ScriptQueue;
use crate::prepared::Prepared;

/// A block is worth it where it has this many outputs for each input: others soon come to their first input.
const OUTPUTS_PER_INPUT_MIN: usize = 4;

/// An output is found by stepping over those before it, so those of a transaction with very many wait for their turn.
const VOUTS_MAX: usize = 128;

/// Which transactions of a block have been handed over.
pub(crate) struct Ahead(Vec<bool>);

impl Ahead {
    /// Hands over what spends outputs of the block alone. `verify` gets each such transaction with what it spends.
    pub(crate) fn hand_over(
        queue: &mut ScriptQueue<'_>,
        verify: &mut impl FnMut(&mut ScriptQueue<'_>, usize, &mut Vec<Coin>),
    ) -> Self {
        let (prepared, rules) = queue.block();
        let block = &prepared.block;
        let is_worth_it = block.output_count() >= OUTPUTS_PER_INPUT_MIN * block.input_count();
        if rules.cash.is_none() || !queue.is_deferred() || !is_worth_it {
            return Self(Vec::new());
        }
        let mut handed_over = vec![false; block.tx_count()];
        let mut coins = Vec::new();
        for (tx_index, is_handed_over) in handed_over.iter_mut().enumerate().skip(1) {
            if own_coins(&prepared, rules.height, tx_index, &mut coins) {
                verify(queue, tx_index, &mut coins);
                *is_handed_over = true;
            }
        }
        Self(handed_over)
    }

    /// Whether a transaction has been handed over.
    pub(crate) fn has(&self, tx_index: usize) -> bool {
        self.0.get(tx_index).is_some_and(|&is_handed_over| is_handed_over)
    }
}

/// What a transaction spends, if its own block creates all of it.
fn own_coins(prepared: &Prepared, height: u32, tx_index: usize, coins: &mut Vec<Coin>) -> bool {
    coins.clear();
    for input in prepared.block.tx(tx_index).inputs() {
        let Some(parent) = find(&prepared.txids, &input.prevout.txid) else { return false };
        let parent_tx = prepared.block.tx(parent);
        let vout = input.prevout.vout as usize;
        if vout >= parent_tx.output_count().min(VOUTS_MAX) {
            return false;
        }
        let Some(output) = parent_tx.outputs().nth(vout) else { return false };
        let script_pubkey = output.script_pubkey.into();
        coins.push(Coin { value: output.value, height, coinbase: parent == 0, script_pubkey });
    }
    true
}

/// The place of a transaction among those behind the coinbase, which lie in the order of their ids, read as numbers.
fn find(txids: &[Txid], txid: &Txid) -> Option<usize> {
    let rest = txids.get(1..)?;
    let as_number = |id: &Txid| u64::from_le_bytes(*id.0.last_chunk().expect("an id is longer"));
    let first = rest.partition_point(|id| as_number(id) < as_number(txid));
    let same = rest[first..].iter().take_while(|id| as_number(id) == as_number(txid));
    let found = same.enumerate().find(|(_, id)| *id == txid)?;
    Some(1 + first + found.0)
}
