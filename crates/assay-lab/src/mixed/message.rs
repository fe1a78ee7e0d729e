//! Content of P2P messages, as far as the experiment needs it.

use assay_hash::sha256d;
use assay_wire::Header;
use assay_wire::p2p::{BlockTxsRequest, COMPACT_TXS_MAX, Inventory, InventoryKind, Items, Message};

use crate::p2p::Hash;

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Content {
    /// Transactions, by txid or wtxid: announced, or one itself.
    Txs(Vec<Hash>),
    /// Announced blocks.
    Blocks(Vec<Hash>),
    Block(Hash),
    Compact(Hash),
    /// Request for this number of transactions of a compact block.
    Missing(Hash, usize),
    /// Request for full blocks.
    Whole(Vec<Hash>),
    WantsCompact,
    Other,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Traffic {
    Txs,
    Blocks,
    Other,
}

impl Content {
    /// Content of a message; malformed ones are [`Content::Other`].
    pub(super) fn of(message: &Message<'_>) -> Self {
        Self::read(message).unwrap_or(Self::Other)
    }

    fn read(message: &Message<'_>) -> Option<Self> {
        let block = |raw: &[u8]| raw.first_chunk().map(|header| Header::parse(header).hash().0);
        let is_block = |kind| kind == InventoryKind::BLOCK;
        Some(match *message {
            Message::Inv(list) => {
                let is_tx = |kind| matches!(kind, InventoryKind::TX | InventoryKind::WTX);
                let (txs, blocks) = (pick(list, is_tx), pick(list, is_block));
                if blocks.is_empty() { Self::Txs(txs) } else { Self::Blocks(blocks) }
            }
            Message::GetData(list) => {
                let blocks = pick(list, is_block);
                let is_compact =
                    list.iter().any(|entry| entry.kind.base() == InventoryKind::COMPACT_BLOCK);
                if is_compact && blocks.is_empty() {
                    Self::WantsCompact
                } else {
                    Self::Whole(blocks)
                }
            }
            Message::Headers(headers) => {
                Self::Blocks(headers.iter().map(|header| header.hash().0).collect())
            }
            Message::Tx(raw) => Self::Txs(vec![sha256d(raw)]),
            Message::Block(raw) => Self::Block(block(raw)?),
            Message::CompactBlock(raw) => Self::Compact(block(raw)?),
            Message::GetBlockTxs(payload) => {
                let request = BlockTxsRequest::parse(payload, COMPACT_TXS_MAX).ok()?;
                Self::Missing(request.block.0, request.indexes.len())
            }
            _ => Self::Other,
        })
    }
}

impl Traffic {
    pub(super) fn of(command: &str, content: &Content) -> Self {
        match (command, content) {
            (_, Content::Txs(_)) => Self::Txs,
            ("getdata", Content::Whole(blocks)) if blocks.is_empty() => Self::Txs,
            ("getheaders" | "blocktxn" | "getblocks" | "getdata", _) => Self::Blocks,
            (_, Content::Other) => Self::Other,
            _ => Self::Blocks,
        }
    }
}

fn pick(list: Items<'_, Inventory>, is_wanted: impl Fn(InventoryKind) -> bool) -> Vec<Hash> {
    let is_wanted = |entry: &Inventory| is_wanted(entry.kind.base());
    list.iter().filter(is_wanted).map(|entry| entry.hash).collect()
}

#[cfg(test)]
mod tests {
    use assay_wire::BlockHash;

    use super::*;

    fn entry(kind: InventoryKind, byte: u8) -> Inventory {
        Inventory { kind, hash: [byte; 32] }
    }

    #[test]
    fn messages_are_read() {
        let inv = [entry(InventoryKind::WTX, 1), entry(InventoryKind::TX, 2)];
        let inv = Message::Inv(inv[..].into());
        assert_eq!(Content::of(&inv), Content::Txs(vec![[1; 32], [2; 32]]));
        let inv = [entry(InventoryKind::BLOCK, 3)];
        assert_eq!(Content::of(&Message::Inv(inv[..].into())), Content::Blocks(vec![[3; 32]]));
        let asked =
            [entry(InventoryKind::WITNESS_BLOCK, 1), entry(InventoryKind::COMPACT_BLOCK, 2)];
        let content = Content::of(&Message::GetData(asked[..].into()));
        assert_eq!(content, Content::Whole(vec![[1; 32]]));
        assert_eq!(Traffic::of("getdata", &content), Traffic::Blocks);
        let content = Content::of(&Message::GetData(asked[1..].into()));
        assert_eq!(content, Content::WantsCompact);
        let mut missing = Vec::new();
        let request = BlockTxsRequest { block: BlockHash([4; 32]), indexes: (0..256).collect() };
        request.encode(&mut missing);
        let content = Content::of(&Message::GetBlockTxs(&missing));
        assert_eq!(content, Content::Missing([4; 32], 256));
        let raw = [7; Header::SIZE];
        let header = Header::parse(&raw);
        let hash = header.hash().0;
        let list = [header, header];
        let content = Content::of(&Message::Headers(list[..].into()));
        assert_eq!(content, Content::Blocks(vec![hash, hash]));
        let block = [&raw[..], &[0; 9]].concat();
        assert_eq!(Content::of(&Message::Block(&block)), Content::Block(hash));
    }

    #[test]
    fn ignores_malformed_messages() {
        for payload in [&[][..], &[5], &[0xff; 9], &[1; 30]] {
            let malformed = [Message::Block, Message::CompactBlock, Message::GetBlockTxs];
            for message in malformed.map(|of| of(payload)) {
                assert_eq!(Content::of(&message), Content::Other, "{message:?}");
            }
        }
        assert_eq!(Content::of(&Message::Ping(0)), Content::Other);
    }
}
