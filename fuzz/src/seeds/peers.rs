//! First inputs of the targets about peers.

use crate::messages::{COMMANDS, MAGIC};
use crate::peer;
use assay_wire::encode::compact_size;
use assay_wire::p2p::{
    Endpoint, FilterLoad, FrameHeader, Host, Inventory, InventoryKind, Locator, Message,
    NetAddress, PeerAddress, TimedAddress, Version,
};
use assay_wire::{Block, BlockHash, Encoding, Header};

use super::{Seeds, counted};

pub(super) fn add(seeds: &mut Seeds) {
    let messages = messages();
    seeds.add("p2p", &messages.concat());
    let mut all = Vec::new();
    for message in &messages {
        let (head, payload) = message.split_first_chunk().expect("a header");
        let header = FrameHeader::parse(head, MAGIC, u32::MAX).expect("our own header");
        let kind = kind(header.command.as_str());
        seeds.add("p2p", message);
        seeds.add("message", &[&[kind], payload].concat());
        all.push((kind, payload.to_vec()));
    }
    for (at, name) in COMMANDS.iter().enumerate() {
        // Filters and their like begin with a number, hashes or counted bytes.
        for payload in [&[0; 48][..], &[2; 80], &[3, 1, 2, 3, 11, 0, 0, 0, 7, 0, 0, 0, 1]] {
            seeds.add("message", &[&[at as u8], payload].concat());
        }
        all.push((kind(name), vec![1; 40]));
    }
    conversations(seeds, &all);
    files(seeds);
    sessions(seeds);
}

fn kind(name: &str) -> u8 {
    COMMANDS.iter().position(|known| *known == name).expect("a listed name") as u8
}

const TX: [u8; 10] = [1, 0, 0, 0, 0, 0, 0, 0, 0, 0];

fn peers() -> Vec<PeerAddress> {
    let hosts = [
        Host::V4([1, 2, 3, 4]),
        Host::V4([250, 1, 2, 3]),
        Host::V6([0x2a; 16]),
        Host::Onion([3; 32]),
        Host::I2p([4; 32]),
        Host::Cjdns([0xfc; 16]),
    ];
    let peer = |host| {
        let endpoint = Endpoint { host, port: 8333 };
        PeerAddress { time: 1_700_000_000, services: 0xc09, endpoint }
    };
    hosts.map(peer).to_vec()
}

/// One message of every kind that holds more than a number.
fn messages() -> Vec<Vec<u8>> {
    let hashes = [BlockHash([1; 32]), BlockHash([2; 32])];
    let locator = Locator { version: 70016, hashes: hashes[..].into(), stop: BlockHash::ZERO };
    let entries = [Inventory { kind: InventoryKind::WITNESS_BLOCK, hash: [3; 32] }];
    let headers = [Header::parse(&[4; 80])];
    let addresses = [TimedAddress::default()];
    let peers = peers();
    let version = Version {
        version: 70016,
        services: 9,
        time: 1_700_000_000,
        receiver: NetAddress::default(),
        sender: NetAddress::default(),
        nonce: 5,
        user_agent: b"/fuzz:1/",
        start_height: 6,
        relay: Some(true),
    };
    // A header, a nonce, a short name, and a prefilled transaction without inputs and outputs.
    let compact = [&[4; 88][..], &[1], &[6; 6], &[1, 0], &TX].concat();
    let messages = [
        Message::Version(version),
        Message::Verack,
        Message::Ping(7),
        Message::Pong(7),
        Message::FeeFilter(1000),
        Message::SendCompact { announce: 0, version: 2 },
        Message::GetHeaders(locator),
        Message::GetBlocks(locator),
        Message::Headers(headers[..].into()),
        Message::Inv(entries[..].into()),
        Message::GetData(entries[..].into()),
        Message::NotFound(entries[..].into()),
        Message::Addr(addresses[..].into()),
        Message::AddrV2(peers[..].into()),
        Message::Block(&[8; 90]),
        Message::Tx(&TX),
        Message::FilterLoad(FilterLoad { bits: &[9; 30], functions: 5, tweak: 3, flags: 1 }),
        Message::FilterAdd(&[7; 20]),
        Message::CompactBlock(&compact),
        Message::GetBlockTxs(&[&[1; 32][..], &[2, 0, 5]].concat()),
        Message::BlockTxs(&[&[1; 32][..], &[1], &TX].concat()),
    ];
    messages.iter().map(|message| message.to_bytes(MAGIC)).collect()
}

/// Bits of the first byte: see `crate::peer::Manner`.
const MANNERS: [u8; 10] = [0, 1, 2, 3, 4, 6, 0x0b, 0x20, 0x42, 0x43];

/// Messages of peers to a node: every kind, and valid blocks that the node does not know in every form.
fn conversations(seeds: &mut Seeds, all: &[(u8, Vec<u8>)]) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let chain = peer::blocks(folder.path());
    let (known, unknown) = chain.split_at(chain.len() - peer::UNKNOWN_BLOCKS);
    let last = Block::parse(known[known.len() - 1].clone(), Encoding::Segwit).expect("a block");
    let mut parts = vec![all.to_vec(), asking(&last)];
    for raw in unknown {
        parts.push(telling(raw));
    }
    for manner in MANNERS {
        for part in &parts {
            let mut seed = vec![manner, 5, 0];
            counted(&mut seed, &[7; 20]);
            for (kind, payload) in part {
                seed.push(*kind);
                counted(&mut seed, payload);
            }
            seeds.add("peer", &seed);
        }
        // Each kind alone: on a header of the node's tip where it has one, and as a decoy.
        for (kind, payload) in all {
            let mut seed = vec![manner, 5, 0];
            counted(&mut seed, &[]);
            seed.push(0x40 | kind);
            counted(&mut seed, payload);
            seed.push(0x80 | kind);
            counted(&mut seed, payload);
            if manner < 4 {
                seeds.add("peer", &seed);
            }
        }
    }
}

fn payload(message: &Message<'_>) -> (u8, Vec<u8>) {
    let mut payload = Vec::new();
    message.encode(&mut payload);
    (kind(message.command().as_str()), payload)
}

/// Requests for data that the node has.
fn asking(known: &Block) -> Vec<(u8, Vec<u8>)> {
    let hash = known.hash();
    let hashes = [known.header().prev_block];
    let locator = Locator { version: 70016, hashes: hashes[..].into(), stop: BlockHash::ZERO };
    let kinds = [InventoryKind::BLOCK, InventoryKind::WITNESS_BLOCK, InventoryKind::COMPACT_BLOCK];
    let mut entries: Vec<_> =
        kinds.iter().map(|kind| Inventory { kind: *kind, hash: hash.0 }).collect();
    for tx in known.txs() {
        entries.push(Inventory { kind: InventoryKind::WTX, hash: tx.wtxid().0 });
        entries.push(Inventory { kind: InventoryKind::WITNESS_TX, hash: tx.txid().0 });
    }
    let filters = [&[0][..], &100_u32.to_le_bytes(), &hash.0].concat();
    vec![
        payload(&Message::GetHeaders(locator)),
        payload(&Message::GetBlocks(locator)),
        payload(&Message::GetData(entries[..].into())),
        payload(&Message::Mempool),
        payload(&Message::GetAddr),
        payload(&Message::GetBlockTxs(&[&hash.0[..], &[1, 0]].concat())),
        (kind("getcfilters"), filters.clone()),
        (kind("getcfheaders"), filters),
        (kind("getcfcheckpt"), [&[0][..], &hash.0].concat()),
    ]
}

/// Messages about a block unknown to the node: header, transactions, compact form, missing transactions, and the block.
fn telling(raw: &[u8]) -> Vec<(u8, Vec<u8>)> {
    let block = Block::parse(raw.to_vec(), Encoding::Segwit).expect("a forged block");
    let headers = [*block.header()];
    let mut said = vec![payload(&Message::Headers(headers[..].into()))];
    for tx in block.txs().skip(1).take(12) {
        let entry = [Inventory { kind: InventoryKind::WTX, hash: tx.wtxid().0 }];
        said.push(payload(&Message::Inv(entry[..].into())));
        said.push(payload(&Message::Tx(tx.raw())));
    }
    let txs: Vec<_> = block.txs().collect();
    // All but the coinbase as short ids that match nothing, so that the node requests them.
    let mut compact = raw[..80].to_vec();
    compact.extend([1; 8]);
    compact_size(&mut compact, txs.len() as u64 - 1);
    for at in 1..txs.len() {
        compact.extend([at as u8, 1, 2, 3, 4, 5]);
    }
    compact.extend([1, 0]);
    compact.extend(txs[0].raw());
    said.push(payload(&Message::CompactBlock(&compact)));
    let mut missing = block.hash().0.to_vec();
    compact_size(&mut missing, txs.len() as u64 - 1);
    txs[1..].iter().for_each(|tx| missing.extend(tx.raw()));
    said.push(payload(&Message::BlockTxs(&missing)));
    said.push(payload(&Message::Block(raw)));
    said.retain(|(_, payload)| payload.len() <= usize::from(u16::MAX));
    said
}

/// `peers.dat`, `anchors.dat` and `banlist.json` as the node and Core write them.
fn files(seeds: &mut Seeds) {
    let address = |peer: &PeerAddress, out: &mut Vec<u8>| {
        out.extend((220_000_u32 | 1 << 29).to_le_bytes());
        peer.encode(out);
    };
    let peers = peers();
    for (format, new, tried) in
        [(4_u8, 6, 0), (4, 5, 1), (4, 0, 6), (3, 4, 2), (2, 0, 0), (1, 0, 0)]
    {
        let mut file = vec![0];
        file.extend(MAGIC);
        file.extend([format, 32 + format.min(4)]);
        file.extend([9; 32]);
        for number in [new, tried, 1024 ^ 1 << 30] {
            file.extend(i32::to_le_bytes(number));
        }
        for peer in &peers[..(new + tried) as usize] {
            address(peer, &mut file);
            Host::V4([5, 6, 7, 8]).encode(&mut file);
            file.extend(1_690_000_000_i64.to_le_bytes());
            file.extend(1_i32.to_le_bytes());
        }
        for bucket in 0..1024 {
            let held = i32::from(bucket < new);
            file.extend(held.to_le_bytes());
            if held > 0 {
                file.extend(bucket.to_le_bytes());
            }
        }
        file.extend([0; 32]);
        seeds.add("peer_files", &file);
    }
    let mut anchors = vec![1];
    anchors.extend(MAGIC);
    anchors.push(2);
    peers[..2].iter().for_each(|peer| address(peer, &mut anchors));
    seeds.add("peer_files", &anchors);
    for text in BANS {
        seeds.add("peer_files", &[&[2], text.as_bytes()].concat());
    }
}

/// Sides, and packets between them in the layout of the target `transport`.
fn sessions(seeds: &mut Seeds) {
    for (manner, piece) in
        [(0, 1), (1, 15), (3, 16), (10, 17), (11, 255), (4, 3), (5, 200), (6, 16)]
    {
        let mut seed = vec![manner, piece];
        for side in 0..2 {
            seed.extend([side + 3; 32]);
            seed.extend([side + 5; 32]);
            counted(&mut seed, &[side; 40]);
        }
        for (kind, times) in [(0, 0), (1, 0), (2, 3), (3, 255), (1, 255), (0, 230), (0x1c, 0)] {
            seed.extend([kind, times]);
            counted(&mut seed, b"\x0cpayload of a message with a short name");
        }
        seeds.add("transport", &seed);
    }
}

const BANS: [&str; 4] = [
    r#"{"banned_nets":[]}"#,
    r#"{"banned_nets":[{"version":1,"ban_created":1700000000,"banned_until":1800000000,"address":"1.2.3.0/24"}]}"#,
    r#"{"banned_nets":[{"version":1,"ban_created":-1,"banned_until":9223372036854775807,"address":"2001:db8::/32"},{"version":1,"ban_created":0,"banned_until":1,"address":"::ffff:10.0.0.1/8"}]}"#,
    r#"{"banned_nets":[{"version":1,"ban_created":1,"banned_until":2,"address":"pg6mmjiyjmcrsslvykfwnntlaru7p5svn6y2ymmju6nubxndf4pscryd.onion"},{"version":2,"ban_created":1,"banned_until":2,"address":"10.0.0.0/255.0.0.0"}]}"#,
];
