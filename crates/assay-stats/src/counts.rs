//! What is counted, of one block or of many.

use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};

use crate::kind::OutputKind;

/// Outputs of one kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct TypeCount {
    /// How many.
    pub outputs: u64,
    /// Their sum, satoshi.
    pub value: i128,
}

/// Sums over blocks. Inputs never include those of coinbases, which spend nothing; outputs do.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Counts {
    /// Blocks.
    pub blocks: u64,
    /// Serialised bytes, with witnesses.
    pub bytes: u64,
    /// Serialised bytes without witnesses.
    pub stripped_bytes: u64,
    /// BIP141 weight.
    pub weight: u64,
    /// Transactions, with the coinbases.
    pub txs: u64,
    /// Inputs.
    pub inputs: u64,
    /// Outputs.
    pub outputs: u64,
    /// Transactions that carry a witness, without the coinbases.
    pub segwit_txs: u64,
    /// Inputs that have a witness.
    pub segwit_inputs: u64,
    /// Transactions with more inputs than asked about that carry a witness.
    pub many_input_segwit_txs: u64,
    /// The same without a witness.
    pub many_input_legacy_txs: u64,
    /// Inputs of the transaction that has the most.
    pub largest_tx_inputs: u64,
    /// Sum of all outputs, satoshi.
    pub output_value: i128,
    /// Of it the outputs of coinbases.
    pub coinbase_value: i128,
    /// Outputs by kind, in the order of [`OutputKind::ALL`].
    #[serde(serialize_with = "by_name")]
    pub by_kind: [TypeCount; OutputKind::ALL.len()],
}

impl Counts {
    /// Adds what was counted elsewhere.
    pub fn add(&mut self, other: &Self) {
        self.blocks += other.blocks;
        self.bytes += other.bytes;
        self.stripped_bytes += other.stripped_bytes;
        self.weight += other.weight;
        self.txs += other.txs;
        self.inputs += other.inputs;
        self.outputs += other.outputs;
        self.segwit_txs += other.segwit_txs;
        self.segwit_inputs += other.segwit_inputs;
        self.many_input_segwit_txs += other.many_input_segwit_txs;
        self.many_input_legacy_txs += other.many_input_legacy_txs;
        self.largest_tx_inputs = self.largest_tx_inputs.max(other.largest_tx_inputs);
        self.output_value += other.output_value;
        self.coinbase_value += other.coinbase_value;
        for (own, other) in self.by_kind.iter_mut().zip(&other.by_kind) {
            own.outputs += other.outputs;
            own.value += other.value;
        }
    }

    /// Outputs of a kind.
    pub fn of_kind(&self, kind: OutputKind) -> TypeCount {
        self.by_kind[kind as usize]
    }

    /// Share of transactions that carry a witness, coinbases left out; `None` where there are no others.
    pub fn segwit_tx_share(&self) -> Option<f64> {
        share(self.segwit_txs, self.txs - self.blocks.min(self.txs))
    }

    /// Share of inputs that have a witness; `None` where there are none.
    pub fn segwit_input_share(&self) -> Option<f64> {
        share(self.segwit_inputs, self.inputs)
    }
}

fn share(part: u64, all: u64) -> Option<f64> {
    (all > 0).then(|| part as f64 / all as f64)
}

fn by_name<S: Serializer>(
    counts: &[TypeCount; OutputKind::ALL.len()],
    serializer: S,
) -> Result<S::Ok, S::Error> {
    let mut map = serializer.serialize_map(Some(counts.len()))?;
    for (kind, count) in OutputKind::ALL.iter().zip(counts) {
        map.serialize_entry(kind.name(), count)?;
    }
    map.end()
}
