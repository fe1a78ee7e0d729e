//! Content of P2P messages, as far as the experiment needs it.

use crate::wire::{
    self, HEADER_BYTES, Hash, INV_BLOCK as BLOCK, INV_COMPACT_BLOCK as COMPACT_BLOCK, INV_TX as TX,
    INV_WTX as WTX, WITNESS_FLAG, read_count, read_inventory,
};

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Content {
    /// Announced transactions, by txid or wtxid.
    Txs(Vec<Hash>),
    /// Announced blocks.
    Blocks(Vec<Hash>),
    /// A transaction, by its wtxid.
    Tx(Hash),
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
    /// Parses a message; malformed ones are [`Content::Other`].
    pub(super) fn of(command: &str, payload: &[u8]) -> Self {
        Self::read(command, payload).unwrap_or(Self::Other)
    }

    fn read(command: &str, payload: &[u8]) -> Option<Self> {
        let header = || payload.get(..HEADER_BYTES).map(wire::double_sha256);
        Some(match command {
            "inv" => {
                let list = read_inventory(payload)?;
                let txs = pick(&list, |kind| matches!(kind, TX | WTX));
                let blocks = pick(&list, |kind| kind == BLOCK);
                if blocks.is_empty() { Self::Txs(txs) } else { Self::Blocks(blocks) }
            }
            "getdata" => {
                let list = read_inventory(payload)?;
                let blocks = pick(&list, |kind| kind == BLOCK);
                let is_compact = list.iter().any(|(kind, _)| kind & !WITNESS_FLAG == COMPACT_BLOCK);
                let is_compact = is_compact && blocks.is_empty();
                if is_compact { Self::WantsCompact } else { Self::Whole(blocks) }
            }
            "headers" => Self::Blocks(wire::read_headers(payload)?),
            "tx" => Self::Tx(wire::double_sha256(payload)),
            "block" => Self::Block(header()?),
            "cmpctblock" => Self::Compact(header()?),
            "getblocktxn" => {
                let (hash, mut rest) = payload.split_first_chunk()?;
                Self::Missing(*hash, read_count(&mut rest)?)
            }
            _ => Self::Other,
        })
    }
}

impl Traffic {
    pub(super) fn of(command: &str, content: &Content) -> Self {
        match (command, content) {
            (_, Content::Txs(_) | Content::Tx(_)) => Self::Txs,
            ("getdata", Content::Whole(blocks)) if blocks.is_empty() => Self::Txs,
            ("getheaders" | "blocktxn" | "getblocks" | "getdata", _) => Self::Blocks,
            (_, Content::Other) => Self::Other,
            _ => Self::Blocks,
        }
    }
}

fn pick(list: &[(u32, Hash)], is_wanted: impl Fn(u32) -> bool) -> Vec<Hash> {
    list.iter().filter(|(kind, _)| is_wanted(kind & !WITNESS_FLAG)).map(|(_, hash)| *hash).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(kind: u32, byte: u8) -> Vec<u8> {
        [&kind.to_le_bytes()[..], &[byte; 32]].concat()
    }

    #[test]
    fn messages_are_read() {
        let inv = [vec![2], entry(WTX, 1), entry(TX, 2)].concat();
        assert_eq!(Content::of("inv", &inv), Content::Txs(vec![[1; 32], [2; 32]]));
        let inv = [vec![1], entry(BLOCK, 3)].concat();
        assert_eq!(Content::of("inv", &inv), Content::Blocks(vec![[3; 32]]));
        let asked = [vec![2], entry(wire::INV_WITNESS_BLOCK, 1), entry(COMPACT_BLOCK, 2)].concat();
        let content = Content::of("getdata", &asked);
        assert_eq!(content, Content::Whole(vec![[1; 32]]));
        assert_eq!(Traffic::of("getdata", &content), Traffic::Blocks);
        let missing = [&[4; 32][..], &[0xfd, 0, 1]].concat();
        assert_eq!(Content::of("getblocktxn", &missing), Content::Missing([4; 32], 256));
        let header = [7; HEADER_BYTES];
        let hash = wire::double_sha256(&header);
        let list = wire::headers_payload(&[header, header]);
        assert_eq!(Content::of("headers", &list), Content::Blocks(vec![hash, hash]));
        assert_eq!(Content::of("block", &[&header[..], &[0; 9]].concat()), Content::Block(hash));
    }

    #[test]
    fn ignores_malformed_messages() {
        for command in ["inv", "headers", "block", "cmpctblock", "getblocktxn", "getdata"] {
            for payload in [&[][..], &[5], &[0xff; 9], &[1; 30]] {
                assert_eq!(Content::of(command, payload), Content::Other, "{command}");
            }
        }
        assert_eq!(Content::of("ping", &[0; 8]), Content::Other);
    }
}
