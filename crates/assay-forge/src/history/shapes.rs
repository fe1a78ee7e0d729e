//! Numbers of inputs and outputs of a block's transactions, and proportional integer allocation without cumulative error, so that
//! the chain's totals match the recipe.

use super::eras::Era;
use crate::{random::Stream, recipe::Shapes};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TxShape {
    pub(crate) inputs: u32,
    pub(crate) outputs: u32,
}

/// Remaining inputs and outputs of an era.
pub(crate) struct EraShapes {
    kinds: Shares,
    /// Difference between the target and the transactions, inputs and outputs so far.
    txs_due: f64,
    inputs_due: f64,
    outputs_due: f64,
}

impl EraShapes {
    pub(crate) fn new(era: &Era) -> Self {
        let ordinary = 1.0 - era.special.iter().sum::<f64>();
        let [consolidations, many, batches] = era.special;
        Self {
            txs_due: 0.0,
            kinds: Shares::new(&[ordinary, consolidations, many, batches]),
            inputs_due: 0.0,
            outputs_due: 0.0,
        }
    }

    /// The transactions of the era's next block, in random order.
    pub(crate) fn block(
        &mut self,
        era: &Era,
        shapes: &Shapes,
        stream: &mut Stream,
    ) -> Vec<TxShape> {
        self.txs_due += era.txs;
        let count = self.txs_due.floor().max(0.0);
        self.txs_due -= count;
        let count = count as u64;
        let given = self.kinds.next(count);
        let ordinary = given[0] as usize;
        let mut txs = vec![TxShape { inputs: 1, outputs: ORDINARY_OUTPUTS }; ordinary];
        for _ in 0..given[1] {
            txs.push(TxShape { inputs: stream.between(shapes.consolidation_inputs), outputs: 1 });
        }
        for _ in 0..given[2] {
            txs.push(TxShape { inputs: stream.between(shapes.many_inputs), outputs: 2 });
        }
        for _ in 0..given[3] {
            txs.push(TxShape { inputs: 1, outputs: stream.between(shapes.batch_outputs) });
        }
        self.inputs_due += era.inputs * count as f64;
        self.outputs_due += era.outputs * count as f64;
        for tx in &txs {
            self.inputs_due -= f64::from(tx.inputs);
            self.outputs_due -= f64::from(tx.outputs);
        }
        self.inputs_due -=
            spread(&mut txs[..ordinary], self.inputs_due, |tx| &mut tx.inputs, stream);
        self.outputs_due -=
            spread(&mut txs[..ordinary], self.outputs_due, |tx| &mut tx.outputs, stream);
        stream.shuffle(&mut txs);
        txs
    }
}

/// Adds the remainder to random ordinary transactions, or removes it; each keeps 1 to [`ORDINARY_MAX`]. Returns the total added.
fn spread(
    txs: &mut [TxShape],
    due: f64,
    of: impl Fn(&mut TxShape) -> &mut u32,
    stream: &mut Stream,
) -> f64 {
    let mut given = 0.0;
    let mut tries = 0;
    // After this many failed attempts the rest moves to the next block.
    while (due - given).abs() >= 1.0 && tries < 8 * txs.len() {
        let number = of(&mut txs[stream.below(txs.len() as u32) as usize]);
        if due > given && *number < ORDINARY_MAX {
            *number += 1;
            given += 1.0;
        } else if due < given && *number > 1 {
            *number -= 1;
            given -= 1.0;
        } else {
            tries += 1;
        }
    }
    given
}

/// A payment and its change.
const ORDINARY_OUTPUTS: u32 = 2;
/// Larger transactions are special shapes.
const ORDINARY_MAX: u32 = 20;

/// Allocates items of several kinds by share, and tracks the remainders.
#[derive(Clone, Debug)]
pub(crate) struct Shares {
    shares: Vec<f64>,
    made: Vec<u64>,
}

impl Shares {
    pub(crate) fn new(shares: &[f64]) -> Self {
        Self { shares: shares.to_vec(), made: vec![0; shares.len()] }
    }

    /// Number of each kind among the next `count`, such that no kind ever deviates from its share of the total by more than one.
    pub(crate) fn next(&mut self, count: u64) -> Vec<u64> {
        let total = (self.made.iter().sum::<u64>() + count) as f64;
        let missing = |made: u64, share: f64| share * total - made as f64;
        let mut given: Vec<u64> = (self.made.iter().zip(&self.shares))
            .map(|(made, share)| missing(*made, *share).floor().max(0.0) as u64)
            .collect();
        loop {
            let sum: u64 = given.iter().sum();
            if sum == count {
                break;
            }
            let rest = |at: usize| {
                missing(self.made[at] + given[at], self.shares[at]) * SIGN[usize::from(sum > count)]
            };
            let can =
                |at: &usize| if sum > count { given[*at] > 0 } else { self.shares[*at] > 0.0 };
            let best = (0..given.len()).filter(can).max_by(|a, b| {
                // The first of equals: `max_by` returns the last.
                rest(*a).total_cmp(&rest(*b)).then(b.cmp(a))
            });
            let best = best.expect("shares add up to one, so one is positive");
            if sum > count { given[best] -= 1 } else { given[best] += 1 }
        }
        self.made.iter_mut().zip(&given).for_each(|(made, given)| *made += given);
        given
    }

    /// The same as a list of kinds in random order.
    pub(crate) fn shuffled(&mut self, count: usize, stream: &mut Stream) -> Vec<u8> {
        let given = self.next(count as u64);
        let mut list = Vec::with_capacity(count);
        for (kind, given) in (0u8..).zip(given) {
            list.extend(std::iter::repeat_n(kind, given as usize));
        }
        stream.shuffle(&mut list);
        list
    }
}

/// Deficits and surpluses.
const SIGN: [f64; 2] = [1.0, -1.0];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_exact_over_any_steps() {
        let parts = [0.57, 0.0, 0.3, 0.129, 0.001];
        let mut shares = Shares::new(&parts);
        let mut stream = Stream::plain(1, 1, 1);
        let mut made = [0u64; 5];
        for _ in 0..2_000 {
            let count = u64::from(stream.below(7));
            let given = shares.next(count);
            assert_eq!(given.iter().sum::<u64>(), count);
            made.iter_mut().zip(&given).for_each(|(made, given)| *made += given);
            let total: u64 = made.iter().sum();
            for (made, part) in made.iter().zip(parts) {
                assert!((*made as f64 - part * total as f64).abs() <= 1.5, "{made} of {total}");
            }
        }
        assert_eq!(made[1], 0);
    }
}
