//! What a message of the protocol is about, as far as a run looks at it.

use crate::network::wire::{self, HEADER_BYTES, Hash};

/// Inventory types (BIP144, BIP152, BIP339).
const TX: u32 = 1;
const BLOCK: u32 = 2;
const COMPACT_BLOCK: u32 = 4;
const WTX: u32 = 5;
const WITNESS: u32 = 1 << 30;

/// What it says.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Content {
    /// Transactions that the sender has, by txid or wtxid.
    Txs(Vec<Hash>),
    /// Blocks that the sender has.
    Blocks(Vec<Hash>),
    /// A transaction, by its wtxid.
    Tx(Hash),
    /// A whole block.
    Block(Hash),
    /// A compact block.
    Compact(Hash),
    /// Asks for transactions of a compact block: so many.
    Missing(Hash, usize),
    /// Asks for whole blocks.
    Whole(Vec<Hash>),
    /// Asks for compact blocks.
    WantsCompact,
    /// Nothing of these.
    Other,
}

/// Which part of the traffic it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Traffic {
    Txs,
    Blocks,
    Other,
}

impl Content {
    /// Reads a message; whatever is not in its format says nothing.
    pub(super) fn of(command: &str, payload: &[u8]) -> Self {
        Self::read(command, payload).unwrap_or(Self::Other)
    }

    fn read(command: &str, payload: &[u8]) -> Option<Self> {
        let header = || payload.get(..HEADER_BYTES).map(wire::double_sha256);
        Some(match command {
            "inv" => {
                let list = inventory(payload)?;
                let txs = pick(&list, |kind| matches!(kind, TX | WTX));
                let blocks = pick(&list, |kind| kind == BLOCK);
                if blocks.is_empty() { Self::Txs(txs) } else { Self::Blocks(blocks) }
            }
            "getdata" => {
                let list = inventory(payload)?;
                let blocks = pick(&list, |kind| kind == BLOCK);
                let is_compact = list.iter().any(|(kind, _)| *kind == COMPACT_BLOCK);
                let is_compact = is_compact && blocks.is_empty();
                if is_compact { Self::WantsCompact } else { Self::Whole(blocks) }
            }
            "headers" => Self::Blocks(headers(payload)?),
            "tx" => Self::Tx(wire::double_sha256(payload)),
            "block" => Self::Block(header()?),
            "cmpctblock" => Self::Compact(header()?),
            "getblocktxn" => {
                let (hash, rest) = payload.split_first_chunk()?;
                Self::Missing(*hash, count(rest)?.0)
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

fn inventory(payload: &[u8]) -> Option<Vec<(u32, Hash)>> {
    let (count, rest) = count(payload)?;
    let entry = |entry: &[u8]| {
        let (kind, hash) = entry.split_first_chunk::<4>().expect("36 bytes");
        (u32::from_le_bytes(*kind) & !WITNESS, hash.try_into().expect("36 bytes are 4 and 32"))
    };
    (rest.len() == count * 36).then(|| rest.chunks_exact(36).map(entry).collect())
}

fn pick(list: &[(u32, Hash)], is_wanted: impl Fn(u32) -> bool) -> Vec<Hash> {
    list.iter().filter(|(kind, _)| is_wanted(*kind)).map(|(_, hash)| *hash).collect()
}

fn headers(payload: &[u8]) -> Option<Vec<Hash>> {
    let (count, rest) = count(payload)?;
    let hash = |entry: &[u8]| wire::double_sha256(&entry[..HEADER_BYTES]);
    let entry_bytes = HEADER_BYTES + 1;
    (rest.len() == count * entry_bytes).then(|| rest.chunks_exact(entry_bytes).map(hash).collect())
}

/// A length as Bitcoin writes it, and what follows; the long forms are not needed.
fn count(bytes: &[u8]) -> Option<(usize, &[u8])> {
    match bytes.split_first()? {
        (0xfd, rest) => {
            let (count, rest) = rest.split_first_chunk()?;
            Some((usize::from(u16::from_le_bytes(*count)), rest))
        }
        (0xfe | 0xff, _) => None,
        (count, rest) => Some((usize::from(*count), rest)),
    }
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
        let asked = [vec![2], entry(BLOCK | WITNESS, 1), entry(COMPACT_BLOCK, 2)].concat();
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
    fn what_is_no_message_says_nothing() {
        for command in ["inv", "headers", "block", "cmpctblock", "getblocktxn", "getdata"] {
            for payload in [&[][..], &[5], &[0xff; 9], &[1; 30]] {
                assert_eq!(Content::of(command, payload), Content::Other, "{command}");
            }
        }
        assert_eq!(Content::of("ping", &[0; 8]), Content::Other);
    }
}
