//! Numbers of inputs and outputs of a block's transactions.

use super::{
    eras::Era,
    share::{FractionalSum, Shares, shuffle},
};
use crate::{random::Stream, recipe::Shapes};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TxShape {
    pub(crate) inputs: u32,
    pub(crate) outputs: u32,
}

/// Remaining inputs and outputs of an era.
pub(crate) struct EraShapes {
    txs: FractionalSum,
    kinds: Shares,
    /// Difference between the target and the inputs and outputs so far.
    inputs_due: f64,
    outputs_due: f64,
}

impl EraShapes {
    pub(crate) fn new(era: &Era) -> Self {
        let ordinary = 1.0 - era.special.iter().sum::<f64>();
        let [consolidations, many, batches] = era.special;
        Self {
            txs: FractionalSum::default(),
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
        let count = self.txs.take(era.txs);
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
        shuffle(&mut txs, stream);
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
