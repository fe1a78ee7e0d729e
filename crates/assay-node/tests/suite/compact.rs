//! Compact blocks between peers, over sockets.

use assay_wire::p2p::{
    BlockTxs, BlockTxsRequest, COMPACT_TXS_MAX, CompactBlock, InventoryKind, Locator, Message,
    Prefilled, ShortIdKey,
};
use assay_wire::{Block, BlockHash, Encoding, Transaction};
use faster_hex::hex_string;
use serde_json::json;

use crate::node::Fixture;
use crate::p2p::{Client, serving};

/// Node near the tip whose mempool has the first of two transactions.
fn node() -> (Fixture, [Transaction; 2]) {
    let mut node = serving(130, |p2p| p2p.whitelist = vec!["relay,in@127.0.0.1".to_owned()]);
    node.set_clock_to_tip();
    let txs = [1, 2].map(|height| node.spend_coinbase(height, &[4_999_990_000]));
    node.call("sendrawtransaction", &json!([hex_string(txs[0].bytes())]));
    (node, txs)
}

/// Compact block payload with the given prefilled indexes.
fn compact(block: &Block, prefilled: &[u32]) -> Vec<u8> {
    let key = ShortIdKey::new(block.header(), 77);
    let named = (0..block.tx_count()).filter(|place| !prefilled.contains(&(*place as u32)));
    let short_ids: Vec<_> = named.map(|place| key.short_id(&block.tx(place).wtxid())).collect();
    let prefilled = prefilled
        .iter()
        .map(|index| Prefilled { index: *index, raw: block.tx(*index as usize).raw() });
    let mut payload = Vec::new();
    let (header, nonce, prefilled) = (*block.header(), 77, prefilled.collect());
    CompactBlock { header, nonce, short_ids: short_ids[..].into(), prefilled }.encode(&mut payload);
    payload
}

fn block_txs(block: BlockHash, txs: &[&Transaction]) -> Vec<u8> {
    let mut payload = Vec::new();
    let txs = txs.iter().map(|tx| tx.bytes()).collect();
    BlockTxs { block, txs }.encode(&mut payload);
    payload
}

/// Announces a block and waits for its request; returns the requested inventory type.
fn announce(peer: &mut Client, block: &Block) -> [u8; 4] {
    peer.send(&Message::Headers([*block.header()][..].into()));
    let asked = peer.expect_past("getdata");
    assert_eq!(asked[5..37], block.hash().0);
    *asked[1..].first_chunk().expect("a kind")
}

/// Sends a compact block and returns the requested indexes.
fn offer(peer: &mut Client, payload: &[u8]) -> Vec<u32> {
    peer.send(&Message::CompactBlock(payload));
    let asked = peer.expect_past("getblocktxn");
    BlockTxsRequest::parse(&asked, COMPACT_TXS_MAX).expect("a request").indexes
}

#[test]
fn reconstructs_from_mempool_and_requests() {
    let (mut node, txs) = node();
    let block = node.next_block(&txs);
    let mut peer = Client::serving_blocks(&node);
    peer.send(&Message::SendCompact { announce: 0, version: 2 });
    assert_eq!(announce(&mut peer, &block), InventoryKind::COMPACT_BLOCK.0.to_le_bytes());
    assert_eq!(offer(&mut peer, &compact(&block, &[0])), [2]);
    peer.send(&Message::BlockTxs(&block_txs(block.hash(), &[&txs[1]])));
    // The source of the tip becomes a high-bandwidth peer.
    let payload = peer.expect_past("sendcmpct");
    assert_eq!(payload, [1, 2, 0, 0, 0, 0, 0, 0, 0], "of high bandwidth");
    peer.answered();
    assert_eq!(node.tip(), block.hash().to_string());
    assert_eq!(node.call("getpeerinfo", &json!([]))[0]["bip152_hb_to"], true);
    node.blocks.push(block);
    let next = node.next_block(&[]);
    peer.send(&Message::CompactBlock(&compact(&next, &[0])));
    peer.answered();
    assert_eq!(node.tip(), next.hash().to_string());
}

#[test]
fn failed_reconstruction_requests_the_block() {
    let (mut node, txs) = node();
    let block = node.next_block(&txs);
    let mut peer = Client::serving_blocks(&node);
    peer.send(&Message::SendCompact { announce: 0, version: 2 });
    announce(&mut peer, &block);
    assert_eq!(offer(&mut peer, &compact(&block, &[0])), [2]);
    let wrong = block_txs(block.hash(), &[&txs[0]]);
    peer.send(&Message::BlockTxs(&wrong));
    let asked = peer.expect_past("getdata");
    assert_eq!(asked[1..5], InventoryKind::WITNESS_BLOCK.0.to_le_bytes());
    // Blocks of other peers are unaffected.
    let mut second = Client::serving_blocks(&node);
    second.send(&Message::Block(block.bytes()));
    second.answered();
    assert_eq!(node.tip(), block.hash().to_string());

    node.blocks.push(block);
    let next = node.next_block(&[node.spend_coinbase(3, &[4_999_990_000])]);
    announce(&mut peer, &next);
    offer(&mut peer, &compact(&next, &[0]));
    let too_many = [&txs[0], &txs[1]];
    peer.send(&Message::BlockTxs(&block_txs(next.hash(), &too_many)));
    peer.expect_end_past_all();
}

#[test]
fn ignores_unsolicited_compact_blocks() {
    let (mut node, _) = node();
    let block = node.next_block(&[]);
    let mut peer = Client::serving_blocks(&node);
    let before = node.tip();
    for is_offered in [false, true] {
        if is_offered {
            peer.send(&Message::SendCompact { announce: 0, version: 2 });
        }
        peer.send(&Message::CompactBlock(&compact(&block, &[0])));
        peer.answered();
        assert_eq!(node.tip(), before);
    }
    peer.send(&Message::SendCompact { announce: 2, version: 2 });
    peer.expect_end_past_all();
}

#[test]
fn announces_new_blocks_as_compact_blocks() {
    let (mut node, txs) = node();
    let mut peer = Client::serving_blocks(&node);
    // Proves that it has the tip.
    let known = [node.blocks.last().unwrap().hash()];
    let locator = Locator { version: 70016, hashes: known[..].into(), stop: BlockHash::ZERO };
    peer.send(&Message::GetHeaders(locator));
    peer.send(&Message::SendCompact { announce: 1, version: 2 });
    peer.answered();
    node.mine(&txs);
    let payload = peer.expect_past("cmpctblock");
    let found = CompactBlock::parse(&payload, Encoding::Segwit, COMPACT_TXS_MAX).unwrap();
    let block = node.blocks.last().unwrap();
    assert_eq!((found.header, found.tx_count()), (*block.header(), 3));
    assert_eq!((found.prefilled[0].index, found.prefilled[0].raw), (0, block.tx(0).raw()));
    let key = ShortIdKey::new(&found.header, found.nonce);
    let names = [1, 2].map(|place| key.short_id(&block.tx(place).wtxid()));
    assert!(found.short_ids.iter().eq(names));

    let mut request = Vec::new();
    BlockTxsRequest { block: block.hash(), indexes: vec![0, 2] }.encode(&mut request);
    peer.send(&Message::GetBlockTxs(&request));
    let payload = peer.expect_past("blocktxn");
    let given = BlockTxs::parse(&payload, Encoding::Segwit).unwrap();
    assert_eq!(given.txs, [block.tx(0).raw(), block.tx(2).raw()]);
    request.clear();
    BlockTxsRequest { block: block.hash(), indexes: vec![3] }.encode(&mut request);
    peer.send(&Message::GetBlockTxs(&request));
    peer.expect_end_past_all();
}
