//! Transactions from their parts.

use crate::{Encoding, OutPoint, Transaction, Tx, Txid, encode};

/// Builds a transaction part by part.
#[derive(Clone, Debug, Default)]
pub struct TxBuilder {
    version: i32,
    inputs: Vec<(OutPoint, Vec<u8>, u32)>,
    outputs: Vec<(i64, Vec<u8>)>,
    witnesses: Vec<Vec<Vec<u8>>>,
    lock_time: u32,
}

impl TxBuilder {
    /// Without inputs, outputs and lock time.
    pub fn new(version: i32) -> Self {
        Self { version, ..Self::default() }
    }

    /// Spends output `vout` of the transaction whose txid is all `txid`.
    #[must_use]
    pub fn input(self, txid: u8, vout: u32, script_sig: &[u8], sequence: u32) -> Self {
        self.spend(OutPoint { txid: Txid([txid; 32]), vout }, script_sig, sequence)
    }

    /// Adds an input.
    #[must_use]
    pub fn spend(mut self, prevout: OutPoint, script_sig: &[u8], sequence: u32) -> Self {
        self.inputs.push((prevout, script_sig.to_vec(), sequence));
        self
    }

    /// Replaces the input script and, unless `witness` is empty, the witness of the input at `index`.
    #[must_use]
    pub fn unlock(mut self, index: usize, script_sig: &[u8], witness: &[Vec<u8>]) -> Self {
        self.inputs[index].1 = script_sig.to_vec();
        if !witness.is_empty() {
            self.witnesses.resize(self.witnesses.len().max(index + 1), Vec::new());
            self.witnesses[index] = witness.to_vec();
        }
        self
    }

    /// Adds an output of `value` satoshi.
    #[must_use]
    pub fn output(mut self, value: i64, script_pubkey: &[u8]) -> Self {
        self.outputs.push((value, script_pubkey.to_vec()));
        self
    }

    /// Sets the witness of the next input without one.
    #[must_use]
    pub fn witness(mut self, items: &[&[u8]]) -> Self {
        self.witnesses.push(items.iter().map(|item| item.to_vec()).collect());
        self
    }

    /// Replaces the lock time.
    #[must_use]
    pub fn lock_time(mut self, lock_time: u32) -> Self {
        self.lock_time = lock_time;
        self
    }

    /// Serialised, with witnesses if there are any.
    pub fn bytes(&self) -> Vec<u8> {
        let segwit = !self.witnesses.is_empty();
        let mut out = self.version.to_le_bytes().to_vec();
        if segwit {
            out.extend_from_slice(&[0, 1]);
        }
        encode::compact_size(&mut out, self.inputs.len() as u64);
        for (prevout, script_sig, sequence) in &self.inputs {
            out.extend_from_slice(&prevout.to_bytes());
            encode::var_bytes(&mut out, script_sig);
            out.extend_from_slice(&sequence.to_le_bytes());
        }
        encode::compact_size(&mut out, self.outputs.len() as u64);
        for (value, script_pubkey) in &self.outputs {
            out.extend_from_slice(&value.to_le_bytes());
            encode::var_bytes(&mut out, script_pubkey);
        }
        if segwit {
            for index in 0..self.inputs.len() {
                let items = self.witnesses.get(index).map_or(&[][..], Vec::as_slice);
                encode::compact_size(&mut out, items.len() as u64);
                for item in items {
                    encode::var_bytes(&mut out, item);
                }
            }
        }
        out.extend_from_slice(&self.lock_time.to_le_bytes());
        out
    }

    /// The transaction.
    pub fn build(&self) -> Transaction {
        let encoding = if self.inputs.is_empty() { Encoding::Legacy } else { Encoding::Segwit };
        Transaction::parse(self.bytes(), encoding).expect("the builder writes what parses")
    }
}

/// All of the transaction but its witnesses.
impl From<Tx<'_>> for TxBuilder {
    fn from(tx: Tx<'_>) -> Self {
        let inputs = tx.inputs().map(|one| (one.prevout, one.script_sig.to_vec(), one.sequence));
        let outputs = tx.outputs().map(|one| (one.value, one.script_pubkey.to_vec()));
        Self {
            version: tx.version(),
            inputs: inputs.collect(),
            outputs: outputs.collect(),
            witnesses: Vec::new(),
            lock_time: tx.lock_time(),
        }
    }
}
