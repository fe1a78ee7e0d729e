//! Blocks of a few transactions that anyone can spend.

use std::path::Path;
use std::sync::Arc;

use assay_consensus::params::ChainParams;
use assay_consensus::pow::check_proof_of_work;
use assay_engine::{Config, Engine, SubmitOutcome};
use assay_wire::{Encoding, Header, OutPoint, Transaction, Txid, encode};

const ANYONE: &[u8] = &[0x51];

pub(crate) fn open(folder: &Path, params: &ChainParams) -> Engine {
    let mut config = Config::new(folder, Arc::new(params.clone()));
    config.script_batch = Some(8);
    Engine::open(config).expect("an engine")
}

/// A transaction with one output that anyone can spend.
pub(crate) fn transaction(inputs: &[(OutPoint, &[u8])], value: i64) -> Transaction {
    let mut raw = vec![1, 0, 0, 0, inputs.len() as u8];
    for (prevout, script_sig) in inputs {
        raw.extend(prevout.to_bytes());
        encode::var_bytes(&mut raw, script_sig);
        raw.extend([0xff; 4]);
    }
    raw.push(1);
    raw.extend(value.to_le_bytes());
    encode::var_bytes(&mut raw, ANYONE);
    raw.extend([0; 4]);
    Transaction::parse(raw, Encoding::Legacy).expect("a transaction")
}

/// A coinbase of 83 bytes: as large as Bitcoin Cash wants it, without a height.
pub(crate) fn coinbase(name: u16) -> Transaction {
    let mut script_sig = name.to_le_bytes().to_vec();
    script_sig.extend([7; 20]);
    transaction(&[(OutPoint::NULL, &script_sig)], 1_000_000)
}

/// Spends the first output of `parent`.
pub(crate) fn spend(parent: &Transaction, value: i64) -> Transaction {
    transaction(&[(outpoint(parent.view().txid()), &[])], value)
}

pub(crate) fn outpoint(txid: Txid) -> OutPoint {
    OutPoint { txid, vout: 0 }
}

/// A block on top of the tip.
fn block(engine: &Engine, txs: &[&Transaction]) -> Vec<u8> {
    let tip = engine.tip();
    let leaves = txs.iter().map(|tx| tx.view().txid().0).collect();
    let mut header = Header {
        version: 4,
        prev_block: tip.hash,
        merkle_root: assay_hash::merkle_root(leaves).0,
        time: tip.time + 60,
        bits: tip.bits,
        nonce: 0,
    };
    while !check_proof_of_work(&header.hash(), header.bits, &engine.params().pow) {
        header.nonce += 1;
    }
    let mut raw = header.to_bytes().to_vec();
    raw.push(txs.len() as u8);
    for tx in txs {
        raw.extend(tx.view().raw());
    }
    raw
}

pub(crate) fn accept(engine: &Engine, txs: &[&Transaction]) {
    let outcome = engine.submit_block(block(engine, txs));
    assert!(matches!(outcome, SubmitOutcome::Accepted), "{outcome:?}");
}

/// Reason and debug message of a block that is refused.
pub(crate) fn refuse(engine: &Engine, txs: &[&Transaction]) -> (String, String) {
    match engine.submit_block(block(engine, txs)) {
        SubmitOutcome::Rejected { reason, debug } => (reason, debug),
        other => panic!("not refused: {other:?}"),
    }
}

/// Empty blocks until a coinbase of now has matured; their coinbases begin with `series`.
pub(crate) fn mature(engine: &Engine, series: u16) {
    for number in 0..100 {
        accept(engine, &[&coinbase(series + number)]);
    }
}
