//! Counts per range of heights, collected while blocks are planned.

use std::collections::BTreeMap;

use super::wallet::Coin;
use crate::{kind::Kind, ledger::RangeLine, plan::Plan};

/// The current range.
#[derive(Default)]
pub(crate) struct Tally {
    line: RangeLine,
    made: [u64; Kind::ALL.len()],
    spent: [u64; Kind::ALL.len()],
}

impl Tally {
    pub(crate) fn add(&mut self, height: u32, block: &Plan<(u32, Coin)>) {
        let line = &mut self.line;
        if line.first == 0 {
            line.first = height;
        }
        line.last = height;
        line.txs += u64::from(block.len()) - 1;
        line.inputs += block.inputs.len() as u64;
        for tx in 1..block.len() {
            let spent = block.inputs_of(tx);
            let outputs = block.outputs.count(tx);
            line.outputs += u64::from(outputs);
            let is_segwit = spent.iter().any(|(_, coin)| coin.kind.has_witness());
            line.segwit_txs += u64::from(is_segwit);
            line.taproot_txs += u64::from(spent.iter().any(|(_, coin)| coin.kind.is_taproot()));
            let is_many = spent.len() > MANY;
            line.many_input_txs += u64::from(is_many);
            line.many_input_legacy_txs += u64::from(is_many && !is_segwit);
            line.consolidations += u64::from(spent.len() >= CONSOLIDATION && outputs == 1);
            for vout in 0..outputs {
                self.made[block.outputs.kind(tx, vout) as usize] += 1;
            }
        }
        for (made, coin) in &block.inputs {
            self.spent[coin.kind as usize] += 1;
            let age = height - made;
            let bucket = if age == 0 { 0 } else { 1 + age.ilog2() as usize };
            if line.ages.len() <= bucket {
                line.ages.resize(bucket + 1, 0);
            }
            line.ages[bucket] += 1;
        }
    }

    /// The line of the finished range, with `coins` in the UTXO set; resets the counts.
    pub(crate) fn take(&mut self, coins: u64) -> RangeLine {
        let named = |counts: &[u64]| -> BTreeMap<String, u64> {
            let named = Kind::ALL.iter().zip(counts).filter(|(_, count)| **count > 0);
            named.map(|(kind, count)| (kind.name().to_owned(), *count)).collect()
        };
        let (made, spent) = (named(&self.made), named(&self.spent));
        let line = std::mem::take(self).line;
        RangeLine { made, spent, coins, ..line }
    }
}

/// Transactions with more inputs count as many-input transactions, as in Lopp's charts.
const MANY: usize = 50;
/// Minimum inputs of a consolidation, which has one output.
const CONSOLIDATION: usize = 5;
