//! Node tests over sockets.

mod addresses;
mod bloom;
mod branches;
mod compact;
mod encrypted;
mod fields;
mod files;
mod filters;
mod given;
mod http;
mod index;
mod late;
mod metrics;
mod mining;
mod node;
mod p2p;
mod places;
mod process;
mod prune;
mod reindex;
mod relay;
mod rest;
mod snapshot;
mod support;
mod sync;
mod zmq;

/// Builds regtest blocks and transactions that need no signatures.
mod chain {
    use assay_consensus::commitment::height_prefix;
    use assay_testkit::chain::{
        P2SH_TRUE, SPEND_P2SH_TRUE, TxBuilder, coinbase_with, header_on, mined_block_bytes,
    };
    use assay_wire::{Block, BlockHash, Encoding, OutPoint, Transaction, Txid};

    pub(crate) const SUBSIDY: i64 = 5_000_000_000;

    /// Block on `parent` with a coinbase of `SUBSIDY`, and `txs`.
    pub(crate) fn block(parent: &Block, height: u32, txs: &[Transaction]) -> Block {
        // The subsidy halves every 150 blocks on regtest.
        block_paying(SUBSIDY >> (height / 150), 600, parent, height, txs)
    }

    /// Block with a coinbase of `value` and a time `seconds` after `parent`.
    pub(crate) fn block_paying(
        value: i64,
        seconds: u32,
        parent: &Block,
        height: u32,
        txs: &[Transaction],
    ) -> Block {
        let mut script_sig = height_prefix(height);
        script_sig.push(0);
        let coinbase = coinbase_with(&script_sig).output(value, &P2SH_TRUE).build();
        let header = header_on(parent.hash(), parent.header().time + seconds);
        let txs: Vec<&Transaction> = std::iter::once(&coinbase).chain(txs).collect();
        Block::parse(mined_block_bytes(header, txs), Encoding::Segwit).unwrap()
    }

    /// Spends `inputs` in order to one output per value.
    pub(crate) fn spend(inputs: &[(Txid, u32)], values: &[i64]) -> Transaction {
        let mut tx = TxBuilder::new(2);
        for &(txid, vout) in inputs {
            tx = tx.spend(OutPoint { txid, vout }, &SPEND_P2SH_TRUE, u32::MAX);
        }
        values.iter().fold(tx, |tx, value| tx.output(*value, &P2SH_TRUE)).build()
    }

    pub(crate) fn regtest_genesis() -> BlockHash {
        "0f9188f13cb7b2c71f2a335e3a4fc328bf5beb436012afca590b1a11466e2206".parse().unwrap()
    }
}
