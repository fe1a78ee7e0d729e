//! Peers that set a Bloom filter (BIP37).

use assay_wire::p2p::{FilterLoad, Inventory, InventoryKind, Message};
use assay_wire::{BlockHash, Header};
use serde_json::json;

use crate::node::Fixture;
use crate::p2p::{Client, serving};

const LARGEST: usize = 36_000;

fn load(bits: &[u8], functions: u32) -> Message<'_> {
    Message::FilterLoad(FilterLoad { bits, functions, tweak: 5, flags: 1 })
}

fn filtered(hash: BlockHash) -> [Inventory; 1] {
    [Inventory { kind: InventoryKind::FILTERED_BLOCK, hash: hash.0 }]
}

/// True if the connection survives the messages.
fn is_kept(f: &Fixture, messages: &[Message<'_>]) -> bool {
    let mut client = Client::serving_blocks(f);
    for message in messages {
        client.send(message);
    }
    client.send(&Message::Ping(1));
    client.is_answered_with("pong")
}

#[test]
fn serves_filtered_blocks() {
    let mut f = serving(2, |p2p| p2p.bloom_filters = true);
    let names = &f.call("getnetworkinfo", &json!([]))["localservicesnames"];
    assert!(names.as_array().unwrap().contains(&json!("BLOOM")), "{names}");
    let (block, hash) = (&f.blocks[2], f.blocks[2].hash());
    let txid = block.tx(0).txid();
    let mut client = Client::serving_blocks(&f);
    // Without a filter there is no response.
    client.send(&Message::GetData(filtered(hash)[..].into()));
    client.send(&load(&[0; 100], 5));
    client.send(&Message::FilterAdd(&txid.0));
    client.send(&Message::GetData(filtered(hash)[..].into()));
    let proof = client.expect_past("merkleblock");
    let (head, rest) = proof.split_first_chunk::<{ Header::SIZE }>().unwrap();
    assert_eq!(Header::parse(head).hash(), hash);
    let expected = [&1u32.to_le_bytes()[..], &[1], &txid.0, &[1, 1]].concat();
    assert_eq!(rest, expected, "one transaction, its hash, and that it matches");
    assert_eq!(client.expect_past("tx"), block.tx(0).stripped_parts().concat());
    // For another block only an empty proof is sent.
    client.send(&Message::GetData(filtered(f.blocks[1].hash())[..].into()));
    client.send(&Message::Ping(9));
    let proof = client.expect_past("merkleblock");
    assert_eq!(proof[proof.len() - 2..], [1, 0]);
    client.expect_past("pong");
}

#[test]
fn enforces_protocol_limits() {
    let f = serving(1, |p2p| p2p.bloom_filters = true);
    let large = vec![0xbb; LARGEST + 1];
    let data = vec![0xcc; 521];
    for (messages, expected) in [
        (vec![load(&large[1..], 50)], true),
        (vec![load(&large, 1)], false),
        (vec![load(&[0xaa], 51)], false),
        (vec![load(&[0xaa], 50), Message::FilterAdd(&data[1..])], true),
        (vec![load(&[0xaa], 50), Message::FilterAdd(&data)], false),
        // No filter to add to.
        (vec![Message::FilterAdd(b"x")], false),
        (vec![load(&[0xaa], 1), Message::FilterClear, Message::FilterAdd(b"x")], false),
        (vec![Message::FilterClear], true),
        // A filter without bits matches everything (CVE-2013-5700).
        (vec![load(&[], 1), Message::FilterAdd(b"x")], true),
    ] {
        assert_eq!(is_kept(&f, &messages), expected, "{messages:.200?}");
    }
}

#[test]
fn disconnects_filters_without_service() {
    let f = serving(1, |_| ());
    let asked = filtered(f.blocks[1].hash());
    for message in [load(&[1], 1), Message::FilterClear, Message::GetData(asked[..].into())] {
        assert!(!is_kept(&f, &[message]), "{message:?}");
    }
    let f = serving(1, |p2p| p2p.whitelist = vec!["bloomfilter@127.0.0.1".to_owned()]);
    assert!(is_kept(&f, &[load(&[1], 1)]), "with the permission");
}
