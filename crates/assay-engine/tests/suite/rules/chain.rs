//! Blocks of a few transactions spendable by anyone.

use std::path::Path;
use std::sync::Arc;

use assay_consensus::params::ChainParams;
use assay_engine::{Config, Engine, SubmitOutcome};
use assay_testkit::chain::{TxBuilder, header_on, mined_block_bytes};
use assay_wire::{Header, OutPoint, Transaction, Txid};
use tempfile::TempDir;

const ANYONE: &[u8] = &[0x51];

/// A chain without heights in coinbases.
pub(crate) fn params(chain: &str) -> ChainParams {
    let params = ChainParams::by_name(chain).expect("a known chain");
    params.with_activation_height("bip34", u32::MAX).expect("BIP34 can be moved")
}

/// An engine with a mature coinbase, number 1.
pub(crate) fn with_coinbase(params: &ChainParams) -> (TempDir, Engine) {
    let folder = tempfile::tempdir().expect("a folder");
    let engine = open(folder.path(), params);
    accept(&engine, &[&coinbase(1)]);
    mature(&engine, 1000);
    (folder, engine)
}

pub(crate) fn open(folder: &Path, params: &ChainParams) -> Engine {
    let mut config = Config::new(folder, Arc::new(params.clone()));
    config.script_batch = Some(8);
    Engine::open(config).expect("an engine")
}

/// A transaction with one output spendable by anyone.
pub(crate) fn transaction(inputs: &[(OutPoint, &[u8])], value: i64) -> Transaction {
    let spend = |tx: TxBuilder, (prevout, script_sig): &(OutPoint, &[u8])| {
        tx.spend(*prevout, script_sig, u32::MAX)
    };
    inputs.iter().fold(TxBuilder::new(1), spend).output(value, ANYONE).build()
}

/// A coinbase of 100 bytes, the minimum of Bitcoin Cash, without a height.
pub(crate) fn coinbase(name: u16) -> Transaction {
    let mut script_sig = name.to_le_bytes().to_vec();
    script_sig.extend([7; 37]);
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
    let tip = engine.chain().tip();
    let header = Header { version: 4, bits: tip.bits, ..header_on(tip.hash, tip.time + 60) };
    mined_block_bytes(header, txs.iter().copied())
}

pub(crate) fn accept(engine: &Engine, txs: &[&Transaction]) {
    let outcome = engine.blocks().submit(block(engine, txs));
    assert!(matches!(outcome, SubmitOutcome::Accepted), "{outcome:?}");
}

/// Reason and debug message of a rejected block.
pub(crate) fn refuse(engine: &Engine, txs: &[&Transaction]) -> (String, String) {
    match engine.blocks().submit(block(engine, txs)) {
        SubmitOutcome::Rejected { reason, debug } => (reason, debug),
        other => panic!("not refused: {other:?}"),
    }
}

/// Empty blocks until a coinbase of now has matured; their coinbases start with `series`.
pub(crate) fn mature(engine: &Engine, series: u16) {
    for number in 0..100 {
        accept(engine, &[&coinbase(series + number)]);
    }
}
