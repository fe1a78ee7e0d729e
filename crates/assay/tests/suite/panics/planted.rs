//! Lanes that accept invalid signatures, in a running node: the spot checks find it and end the
//! process, and after a restart the node has the state from before the block.

use std::ffi::OsStr;
use std::fs;

use assay_engine::default_script_batch;
use assay_engine::defect::EXIT_STATUS;
use assay_wire::{Block, Encoding, Header, Transaction};
use faster_hex::hex_string;
use serde_json::json;

use super::chain::forge;
use super::node::Node;

#[test]
fn wrong_proofs_end_the_node() {
    let folder = tempfile::tempdir().expect("a folder");
    let blocks = forge(&folder.path().join("chain"), "9", "0.002");
    let inputs = |block: &Block| (1..block.tx_count()).map(|n| block.tx(n).input_count()).sum();
    let at = (0..blocks.len()).max_by_key(|at| -> usize { inputs(&blocks[*at]) }).expect("blocks");
    // One of 256 signatures is checked again, per thread; with this number of inputs a hit is certain.
    assert!(inputs(&blocks[at]) > 1024, "a block with {} inputs", inputs(&blocks[at]));
    let dir = folder.path().join("node");
    fs::create_dir(&dir).expect("a folder");

    let backend = if default_script_batch().is_some() { "" } else { "portable" };
    let mut variables = vec![("ASSAY_PLANT", OsStr::new("wrong-proof:1"))];
    if !backend.is_empty() {
        variables.push(("ASSAY_BACKEND", OsStr::new(backend)));
    }
    let node = Node::start(&dir, &variables).expect("it starts");
    for block in &blocks[..at] {
        let answer =
            node.get("submitblock", &json!([hex_string(block.bytes())])).expect("it lives");
        assert!(answer.is_null(), "{answer}");
    }
    let wrong = hex_string(with_wrong_signatures(&blocks[at]).bytes());
    let lost = node.call("submitblock", &json!([wrong])).expect_err("no answer can be given");
    let exit = node.ended(lost);
    assert_eq!(exit.status, Some(EXIT_STATUS), "{}", exit.stderr);
    let evidence = [dir.clone(), dir.join("regtest")]
        .iter()
        .flat_map(|dir| fs::read_dir(dir).expect("a folder"))
        .map(|entry| entry.expect("an entry").path())
        .find(|path| {
            path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"defect-"))
        })
        .expect("evidence was written");
    let evidence = fs::read_to_string(evidence).expect("a file");
    assert!(evidence.contains("library_again") && evidence.contains("backend"), "{evidence}");

    let node = Node::start(&dir, &[]).expect("it starts again");
    let height = node.get("getblockcount", &json!([])).expect("it lives");
    assert_eq!(height, json!(at), "all blocks before, and not the wrong one");
    let answer = node.get("submitblock", &json!([wrong])).expect("it lives");
    // Invalid by its scripts, or by the stored mark after a restart.
    assert!(answer.is_string(), "{answer}");
    assert_eq!(node.get("getblockcount", &json!([])).expect("it lives"), json!(at));
    node.stop().expect("it stops");
}

/// The block with a flipped bit in every signature.
fn with_wrong_signatures(block: &Block) -> Block {
    let mut changed: Vec<Transaction> = (1..block.tx_count())
        .map(|number| {
            let tx = block.tx(number);
            let mut raw = tx.raw().to_vec();
            for input in 0..tx.input_count() {
                let script = tx.input(input).script_sig;
                let place = raw.windows(script.len()).position(|window| window == script);
                // Skips the push, then 30 LL 02 LL of DER, or nothing of a Schnorr signature.
                raw[place.expect("a script is a part of its transaction") + 10] ^= 1;
            }
            Transaction::parse(raw, Encoding::Legacy).expect("it parses as before")
        })
        .collect();
    // Canonical order of Bitcoin Cash: by txid in display order.
    changed.sort_by_key(|tx| tx.view().txid().0.into_iter().rev().collect::<Vec<u8>>());
    let mut raw = block.bytes()[Header::SIZE..].to_vec();
    let mut end = raw.len() - changed.iter().map(|tx| tx.view().raw().len()).sum::<usize>();
    let mut txids = vec![block.tx(0).txid().0];
    for tx in &changed {
        let tx = tx.view();
        raw[end..end + tx.raw().len()].copy_from_slice(tx.raw());
        end += tx.raw().len();
        txids.push(tx.txid().0);
    }
    let mut header = *block.header();
    header.merkle_root = assay_hash::merkle_root(txids).0;
    // Half of all hashes meet the target of this chain.
    while header.hash().0[31] > 0x7e {
        header.nonce += 1;
    }
    let raw = [&header.to_bytes()[..], &raw].concat();
    Block::parse(raw, Encoding::Legacy).expect("it parses as the other did")
}
