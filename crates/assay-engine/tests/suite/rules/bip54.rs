//! BIP-0054 in the engine: from the given height on, in Core's order, and never before.

use assay_engine::Engine;
use assay_testkit::chain::TxBuilder;
use assay_wire::{OutPoint, Transaction};
use tempfile::TempDir;

use super::chain::{accept, coinbase, open, outpoint, params, refuse, transaction, with_coinbase};

const CHECKSIG: u8 = 0xac;
const CHECKMULTISIG: u8 = 0xae;

/// A chain of 103 blocks, of which the first has a mature coinbase and the last one outputs with many operations; the proposal is
/// active from block 104 on.
fn engine() -> (TempDir, Engine, Transaction) {
    let params = params("regtest").with_activation_height("bip54", 104);
    let (folder, engine) = with_coinbase(&params.expect("BIP54 can be moved"));
    // 2,501 operations in branches that are not executed.
    let script = |opcodes: &[u8]| [&[0, 0x63][..], opcodes, &[0x68, 0x51]].concat();
    let source = TxBuilder::new(1)
        .spend(outpoint(coinbase(1).view().txid()), &[], u32::MAX)
        .output(1000, &script(&[CHECKMULTISIG; 125]))
        .output(1000, &script(&[CHECKSIG]))
        .output(1000, &[0x51])
        .build();
    accept(&engine, &[&coinbase(2), &source]);
    // Before that height all of them are valid.
    let early = of_size(&source, 64);
    accept(&engine, &[&coinbase(3), &early]);
    assert_eq!(engine.chain().tip().height, 103);
    (folder, engine, source)
}

/// Spends output 2 with a transaction of `bytes` bytes.
fn of_size(source: &Transaction, bytes: usize) -> Transaction {
    let prevout = OutPoint { txid: source.view().txid(), vout: 2 };
    TxBuilder::new(1).spend(prevout, &[], 7).output(1, &vec![0x51; bytes - 60]).build()
}

/// A coinbase of 65 bytes: one fewer would break another rule of the proposal.
fn coinbase_of(number: u16, lock_time: u32, sequence: u32) -> Transaction {
    let mut script_sig = number.to_le_bytes().to_vec();
    script_sig.extend([0x51; 2]);
    let builder = TxBuilder::new(1).spend(OutPoint::NULL, &script_sig, sequence);
    builder.output(1, &[0x51]).lock_time(lock_time).build()
}

/// Spends outputs of `source` without signatures.
fn spending(source: &Transaction, outputs: &[u32]) -> Transaction {
    let txid = source.view().txid();
    let inputs: Vec<(OutPoint, &[u8])> =
        outputs.iter().map(|vout| (OutPoint { txid, vout: *vout }, &[][..])).collect();
    transaction(&inputs, 1)
}

#[test]
fn the_rules_begin_at_their_height() {
    let (_folder, engine, source) = engine();
    let reason = |txs: &[&Transaction]| refuse(&engine, txs).0;
    let good = coinbase_of(9, 103, 0);
    assert_eq!(reason(&[&coinbase(9)]), "bad-cb-locktime");
    assert_eq!(reason(&[&coinbase_of(9, 102, 0)]), "bad-cb-locktime");
    assert_eq!(reason(&[&coinbase_of(9, 103, u32::MAX)]), "bad-cb-sequence");
    let many = spending(&source, &[0, 1]);
    assert_eq!(reason(&[&good, &many]), "bad-txns-legacy-sigops");
    // Coins are checked first: amounts before operations.
    let txid = source.view().txid();
    let greedy: [(OutPoint, &[u8]); 2] = [0, 1].map(|vout| (OutPoint { txid, vout }, &[][..]));
    assert_eq!(reason(&[&good, &transaction(&greedy, 5000)]), "bad-txns-in-belowout");
    // Each alone has no more than 2,500.
    accept(&engine, &[&good, &spending(&source, &[0]), &spending(&source, &[1])]);
    let next = coinbase_of(10, 104, 0);
    // Its size is checked before its coins, which do not exist.
    let prevout = outpoint(coinbase(77).view().txid());
    let node = TxBuilder::new(1).spend(prevout, &[], 7).output(1, &[0x51; 4]).build();
    assert_eq!(reason(&[&next, &node]), "bad-txns-size");
    accept(&engine, &[&next]);
}

/// Blocks connected before stay valid when the engine is reopened.
#[test]
fn a_reopened_engine_keeps_its_chain() {
    let (folder, engine, source) = engine();
    accept(&engine, &[&coinbase_of(9, 103, 0), &spending(&source, &[0])]);
    let (tip, params) = (engine.chain().tip().hash, engine.params().clone());
    drop(engine);
    let engine = open(folder.path(), &params);
    assert_eq!(engine.chain().tip().hash, tip);
}
