//! Merkle proofs, verified by hashing up from the leaf.

use assay_hash::sha256d;
use serde_json::{Value, json};

use super::node::{Node, config};
use crate::server::merkle::{BlockTrees, HeaderTree, Tree};
use crate::testing::{coinbase, tx};

/// Root computed from a branch, with hashes in protocol byte order.
fn climb(leaf: &str, branch: &Value, mut index: usize) -> String {
    let bytes = |text: &str| {
        let mut bytes: Vec<u8> =
            (0..32).map(|at| u8::from_str_radix(&text[2 * at..2 * at + 2], 16).unwrap()).collect();
        bytes.reverse();
        bytes
    };
    let mut hash = bytes(leaf);
    for neighbour in branch.as_array().unwrap() {
        let neighbour = bytes(neighbour.as_str().unwrap());
        let both = if index % 2 == 1 { [neighbour, hash] } else { [hash, neighbour] };
        hash = sha256d(&both.concat()).to_vec();
        index /= 2;
    }
    hash.reverse();
    super::node::hex(&hash)
}

/// Root of a list, by definition.
fn root(mut level: Vec<[u8; 32]>) -> [u8; 32] {
    while level.len() > 1 {
        if level.len() % 2 == 1 {
            level.push(level[level.len() - 1]);
        }
        level = level.chunks(2).map(|pair| sha256d(&pair.concat())).collect();
    }
    level[0]
}

fn printed(mut hash: [u8; 32]) -> String {
    hash.reverse();
    super::node::hex(&hash)
}

#[test]
fn trees_of_every_size_prove_every_leaf() {
    for count in 1..40usize {
        let leaves: Vec<[u8; 32]> = (0..count).map(|n| sha256d(&[n as u8])).collect();
        let tree = Tree::new(leaves.clone());
        for (index, leaf) in leaves.iter().enumerate() {
            let branch: Vec<String> = tree.branch(index).into_iter().map(printed).collect();
            let reached = climb(&printed(*leaf), &json!(branch), index);
            assert_eq!(reached, printed(root(leaves.clone())), "{index} of {count}");
        }
    }
}

#[test]
fn merkle_proofs_verify() {
    let mut node = Node::new();
    let many: Vec<_> =
        (0..6).map(|n| tx(&[crate::testing::out(&node.coinbase(n), 0)], &[(1, b"x")], 9)).collect();
    node.mine(many);
    let block = node.blocks.last().unwrap().clone();
    let merkle_root = printed(block.header.merkle_root);
    let mut client = node.client_of("1.4");
    for (index, txid) in block.txids().iter().enumerate() {
        let txid = txid.to_string();
        let proof = client.call("blockchain.transaction.get_merkle", &json!([txid, 10]));
        assert_eq!((&proof["pos"], &proof["block_height"]), (&json!(index), &json!(10)));
        assert_eq!(climb(&txid, &proof["merkle"], index), merkle_root);
        let by_place = client.call("blockchain.transaction.id_from_pos", &json!([10, index, true]));
        assert_eq!(by_place["tx_hash"], txid);
        assert_eq!(by_place["merkle"], proof["merkle"]);
        let id = client.call("blockchain.transaction.id_from_pos", &json!([10, index]));
        assert_eq!(id, txid);
    }
    let txid = block.txids()[1].to_string();
    assert_eq!(client.error("blockchain.transaction.get_merkle", &json!([txid, 9])), 1);
    assert_eq!(client.error("blockchain.transaction.get_merkle", &json!([printed([7; 32]), 9])), 1);
    assert_eq!(client.error("blockchain.transaction.id_from_pos", &json!([10, 7])), 1);
    assert_eq!(client.error("blockchain.transaction.id_from_pos", &json!([11, 0])), 1);
}

#[test]
fn headers_are_proved_at_every_checkpoint() {
    let mut node = Node::empty(config());
    let tree = HeaderTree::default();
    // Beyond two levels above the groups of 32, so that complete and incomplete nodes of all kinds occur.
    for count in 1..=200u32 {
        node.extend(Vec::new());
        let leaves: Vec<[u8; 32]> = node.blocks.iter().map(|block| block.hash.0).collect();
        let expected = printed(root(leaves.clone()));
        let step = if count % 29 < 3 { 1 } else { 31 };
        for height in (0..count).step_by(step) {
            let proof = tree.proof(&node.view(), height, count - 1).unwrap().unwrap();
            assert_eq!(printed(proof.root), expected, "{height} of {count}");
            let branch: Vec<String> = proof.branch.into_iter().map(printed).collect();
            let leaf = printed(leaves[height as usize]);
            assert_eq!(
                climb(&leaf, &json!(branch), height as usize),
                expected,
                "{height} of {count}"
            );
        }
    }
    // Earlier checkpoints, from the full tree.
    for cp_height in [0u32, 1, 30, 31, 32, 33, 62, 63, 64, 95, 127, 128, 150] {
        let leaves = node.blocks[..=cp_height as usize].iter().map(|b| b.hash.0).collect();
        let proof = tree.proof(&node.view(), cp_height / 2, cp_height).unwrap().unwrap();
        assert_eq!(printed(proof.root), printed(root(leaves)), "{cp_height}");
    }
    assert_eq!(tree.proof(&node.view(), 5, 4).unwrap(), None);
    assert_eq!(tree.proof(&node.view(), 5, 200).unwrap(), None);
    // After a reorg the tree is correct again.
    node.reorganise(70, vec![coinbase(&[(1, b"y")], 77)]);
    let leaves = node.blocks.iter().map(|block| block.hash.0).collect();
    let tip = node.view().tip().unwrap().height;
    let proof = tree.proof(&node.view(), 150, tip).unwrap().unwrap();
    assert_eq!(printed(proof.root), printed(root(leaves)));
}

#[test]
fn checkpoints_are_served() {
    let node = Node::new();
    let mut client = node.client_of("1.6");
    let root_8 = printed(root(node.blocks[..=8].iter().map(|block| block.hash.0).collect()));
    let leaf = |height: usize| node.blocks[height].hash.to_string();
    let answer = client.call("blockchain.block.header", &json!([5, 8]));
    assert_eq!(answer["root"], root_8);
    assert_eq!(climb(&leaf(5), &answer["branch"], 5), root_8);
    let answer = client.call("blockchain.block.headers", &json!([2, 4, 8]));
    assert_eq!(climb(&leaf(5), &answer["branch"], 5), root_8);
    assert_eq!(answer["count"], 4);
    assert_eq!(client.error("blockchain.block.header", &json!([5, 4])), 1);
    assert_eq!(client.error("blockchain.block.header", &json!([5, 10])), 1);
    assert_eq!(client.error("blockchain.block.headers", &json!([2, 5, 5])), 1);
}

#[test]
fn trees_of_blocks_are_kept_by_block_and_not_by_height() {
    let mut node = Node::new();
    let trees = BlockTrees::default();
    let height = node.view().tip().unwrap().height;
    let check = |node: &Node| {
        let block = &node.blocks[height as usize];
        assert!(trees.known(&node.view(), height).unwrap().is_none(), "another block");
        let tree = trees.get(&node.view(), height).unwrap().unwrap();
        assert_eq!(tree.root(), block.header.merkle_root);
        assert!(trees.known(&node.view(), height).unwrap().is_some());
        let below = trees.get(&node.view(), height - 1).unwrap().unwrap();
        assert_eq!(below.root(), node.blocks[height as usize - 1].header.merkle_root);
    };
    check(&node);
    node.reorganise(1, vec![coinbase(&[(1, b"y")], 77)]);
    check(&node);
    assert!(trees.get(&node.view(), height + 9).unwrap().is_none());
}
