//! Counts over one block or many.

use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};

use crate::kind::OutputKind;

/// Outputs of one kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct TypeCount {
    pub outputs: u64,
    /// Sum of their values, in satoshi.
    pub value: i128,
}

/// Sums over blocks. Inputs exclude those of coinbases, which spend nothing; outputs include theirs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Counts {
    pub blocks: u64,
    /// Serialised bytes, with witnesses.
    pub bytes: u64,
    pub stripped_bytes: u64,
    /// BIP141 weight.
    pub weight: u64,
    /// Transactions, including coinbases.
    pub txs: u64,
    /// Inputs, without those of coinbases.
    pub inputs: u64,
    /// Outputs, including those of coinbases.
    pub outputs: u64,
    /// Transactions with a witness, without coinbases.
    pub segwit_txs: u64,
    pub segwit_inputs: u64,
    pub many_input_segwit_txs: u64,
    pub many_input_legacy_txs: u64,
    /// Inputs of the transaction with the most.
    pub largest_tx_inputs: u64,
    /// Value of all outputs, in satoshi.
    pub output_value: i128,
    /// Value of the outputs of coinbases, in satoshi.
    pub coinbase_value: i128,
    /// Outputs by kind, in the order of [`OutputKind::ALL`].
    #[serde(serialize_with = "by_name")]
    pub by_kind: [TypeCount; OutputKind::ALL.len()],
}

impl Counts {
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

    pub fn of_kind(&self, kind: OutputKind) -> TypeCount {
        self.by_kind[kind as usize]
    }

    /// Share of transactions with a witness, without coinbases; `None` if there are no transactions.
    pub fn segwit_tx_share(&self) -> Option<f64> {
        share(self.segwit_txs, self.txs - self.blocks.min(self.txs))
    }

    /// Share of inputs with a witness; `None` if there are no inputs.
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
