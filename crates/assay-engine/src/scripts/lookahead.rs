//! Verifies transactions that spend only outputs of their own block before any coin moves.
//!
//! Bitcoin Cash adds all outputs of a block before any input is spent, so scripts would wait for that, which in a block with many
//! outputs takes as long as its signatures. The coins spent by such a transaction are in the block itself. Coins move as usual: a
//! block that breaks a rule about them is rejected for that, regardless of its scripts.

use assay_wire::{Coin, Txid};

use super::ScriptQueue;
use crate::prepared::Prepared;

/// Minimum number of outputs per input: other blocks soon reach their first input.
const OUTPUTS_PER_INPUT_MIN: usize = 4;

/// An output is found by skipping those before it, so a transaction with more outputs is not looked up here.
const VOUTS_MAX: usize = 128;

/// For each transaction of a block, true if it was handed over.
pub(crate) struct Lookahead(Vec<bool>);

impl Lookahead {
    /// Hands over transactions that spend only outputs of the block. `verify` receives each with its spent coins.
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

    /// True if a transaction was handed over.
    pub(crate) fn has(&self, tx_index: usize) -> bool {
        self.0.get(tx_index).is_some_and(|&is_handed_over| is_handed_over)
    }
}

/// The coins spent by a transaction, if its own block creates all of them.
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

/// The index of a transaction among those after the coinbase, which are ordered by txid, read as numbers.
fn find(txids: &[Txid], txid: &Txid) -> Option<usize> {
    let rest = txids.get(1..)?;
    let as_number = |id: &Txid| u64::from_le_bytes(*id.0.last_chunk().expect("an id is longer"));
    let first = rest.partition_point(|id| as_number(id) < as_number(txid));
    let same = rest[first..].iter().take_while(|id| as_number(id) == as_number(txid));
    let found = same.enumerate().find(|(_, id)| *id == txid)?;
    Some(1 + first + found.0)
}
