//! A block as plain data, with functions that repair its header after a change.

use assay_consensus::commitment::{
    WITNESS_COMMITMENT_HEADER, txid_merkle_root, witness_commitment,
};
use assay_consensus::params::ChainParams;
use assay_consensus::pow::check_proof_of_work;
use assay_wire::encode::compact_size;
use assay_wire::{BlockHash, Header, Txid, Wtxid};

use super::tx::{Input, Output, Tx};

#[derive(Clone, Debug)]
pub struct Block {
    pub header: Header,
    /// The transactions, the coinbase first.
    pub txs: Vec<Tx>,
}

impl Block {
    pub fn from_wire(block: &assay_wire::Block) -> Self {
        Self { header: *block.header(), txs: block.txs().map(Tx::from_wire).collect() }
    }

    pub fn bytes(&self) -> Vec<u8> {
        let mut out = self.header.to_bytes().to_vec();
        compact_size(&mut out, self.txs.len() as u64);
        for tx in &self.txs {
            out.extend_from_slice(&tx.bytes());
        }
        out
    }

    pub fn hash(&self) -> BlockHash {
        self.header.hash()
    }

    /// Hash of the commitment output, for the reserved value in the coinbase's witness.
    pub fn commitment(&self) -> [u8; 32] {
        let wtxids: Vec<Wtxid> = self.txs.iter().map(Tx::wtxid).collect();
        let mut reserved = [0; 32];
        let first = self.txs.first();
        if let Some(item) =
            first.and_then(|tx| tx.inputs.first()).and_then(|input| input.witness.first())
        {
            let len = item.len().min(32);
            reserved[..len].copy_from_slice(&item[..len]);
        }
        witness_commitment(&wtxids, &reserved)
    }

    /// The first input of the first transaction, which may no longer be a coinbase.
    pub fn first_input(&mut self) -> Option<&mut Input> {
        self.txs.first_mut()?.inputs.first_mut()
    }

    pub fn first_output(&mut self) -> Option<&mut Output> {
        self.txs.first_mut()?.outputs.first_mut()
    }

    /// Index of the commitment output of the coinbase.
    pub fn commitment_index(&self) -> Option<usize> {
        self.txs.first()?.outputs.iter().rposition(|output| {
            output.script_pubkey.len() >= 38
                && output.script_pubkey.starts_with(&WITNESS_COMMITMENT_HEADER)
        })
    }

    /// Adds or updates the witness commitment (BIP141) and the reserved value.
    pub fn commit(&mut self) {
        let Some(coinbase) = self.txs.first_mut() else { return };
        let Some(input) = coinbase.inputs.first_mut() else { return };
        if input.witness.is_empty() {
            input.witness = vec![vec![0; 32]];
        }
        if self.commitment_index().is_none() {
            let mut script_pubkey = WITNESS_COMMITMENT_HEADER.to_vec();
            script_pubkey.resize(38, 0);
            self.txs[0].outputs.push(Output { value: 0, script_pubkey });
        }
        let hash = self.commitment();
        if let Some(index) = self.commitment_index() {
            self.txs[0].outputs[index].script_pubkey[6..38].copy_from_slice(&hash);
        }
    }

    /// Sets the merkle root in the header.
    pub fn set_root(&mut self) {
        let txids: Vec<Txid> = self.txs.iter().map(Tx::txid).collect();
        self.header.merkle_root = txid_merkle_root(&txids).0;
    }

    /// Searches for a nonce. Regtest needs two tries on average.
    pub fn mine(&mut self, params: &ChainParams) {
        while !check_proof_of_work(&self.header.hash(), self.header.bits, &params.pow) {
            self.header.nonce = self.header.nonce.wrapping_add(1);
        }
    }

    /// Searches for a nonce that misses the target.
    pub fn mine_badly(&mut self, params: &ChainParams) {
        while check_proof_of_work(&self.header.hash(), self.header.bits, &params.pow) {
            self.header.nonce = self.header.nonce.wrapping_add(1);
        }
    }

    /// Sets commitment (if a transaction has a witness), merkle root and nonce.
    pub fn seal(&mut self, params: &ChainParams) {
        if self.txs.iter().any(Tx::has_witness) {
            self.commit();
        }
        self.set_root();
        self.mine(params);
    }
}
