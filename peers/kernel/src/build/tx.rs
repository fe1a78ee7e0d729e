//! A transaction as plain data.

use assay_hash::sha256d;
use assay_wire::encode::{compact_size, var_bytes};
use assay_wire::{OutPoint, TxOut, Txid, Wtxid};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Input {
    pub prevout: OutPoint,
    pub script_sig: Vec<u8>,
    pub sequence: u32,
    pub witness: Vec<Vec<u8>>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Output {
    /// Satoshi, possibly out of range.
    pub value: i64,
    pub script_pubkey: Vec<u8>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tx {
    pub version: i32,
    pub inputs: Vec<Input>,
    pub outputs: Vec<Output>,
    pub lock_time: u32,
}

impl Output {
    pub fn view(&self) -> TxOut<'_> {
        TxOut { value: self.value, script_pubkey: &self.script_pubkey }
    }
}

impl Input {
    /// An input without scripts.
    pub fn new(prevout: OutPoint, sequence: u32) -> Self {
        Self { prevout, script_sig: Vec::new(), sequence, witness: Vec::new() }
    }
}

impl Tx {
    pub fn from_wire(tx: assay_wire::Tx<'_>) -> Self {
        let inputs = (0..tx.input_count())
            .map(|index| {
                let input = tx.input(index);
                Input {
                    prevout: input.prevout,
                    script_sig: input.script_sig.to_vec(),
                    sequence: input.sequence,
                    witness: tx.witness(index).iter().map(<[u8]>::to_vec).collect(),
                }
            })
            .collect();
        let outputs = tx
            .outputs()
            .map(|output| Output {
                value: output.value,
                script_pubkey: output.script_pubkey.to_vec(),
            })
            .collect();
        Self { version: tx.version(), inputs, outputs, lock_time: tx.lock_time() }
    }

    /// True if any input has a witness.
    pub fn has_witness(&self) -> bool {
        self.inputs.iter().any(|input| !input.witness.is_empty())
    }

    /// Serialisation, with witnesses if there are any (BIP144).
    pub fn bytes(&self) -> Vec<u8> {
        self.serialize(self.has_witness())
    }

    pub fn stripped(&self) -> Vec<u8> {
        self.serialize(false)
    }

    fn serialize(&self, with_witness: bool) -> Vec<u8> {
        let mut out = self.version.to_le_bytes().to_vec();
        if with_witness {
            out.extend_from_slice(&[0, 1]);
        }
        compact_size(&mut out, self.inputs.len() as u64);
        for input in &self.inputs {
            out.extend_from_slice(&input.prevout.to_bytes());
            var_bytes(&mut out, &input.script_sig);
            out.extend_from_slice(&input.sequence.to_le_bytes());
        }
        compact_size(&mut out, self.outputs.len() as u64);
        for output in &self.outputs {
            out.extend_from_slice(&output.value.to_le_bytes());
            var_bytes(&mut out, &output.script_pubkey);
        }
        if with_witness {
            for input in &self.inputs {
                compact_size(&mut out, input.witness.len() as u64);
                for item in &input.witness {
                    var_bytes(&mut out, item);
                }
            }
        }
        out.extend_from_slice(&self.lock_time.to_le_bytes());
        out
    }

    pub fn txid(&self) -> Txid {
        Txid(sha256d(&self.stripped()))
    }

    pub fn wtxid(&self) -> Wtxid {
        Wtxid(sha256d(&self.bytes()))
    }

    pub fn outpoint(&self, vout: usize) -> OutPoint {
        OutPoint { txid: self.txid(), vout: vout as u32 }
    }

    pub fn output_total(&self) -> i64 {
        self.outputs.iter().fold(0, |sum, output| sum.wrapping_add(output.value))
    }
}
