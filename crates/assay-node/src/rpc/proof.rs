//! Transaction inclusion proofs: partial Merkle trees (BIP37).

use std::collections::BTreeSet;

use assay_consensus::params::{ChainParams, MAX_BLOCK_WEIGHT};
use assay_wire::{BlockHash, Header, OutPoint, ParseError, ParseErrorKind, Reader, Txid};

use super::args;
use super::blocks::{parse, read_block};
use super::index::{Lookup, look_up};
use super::method::Call;
use super::{Node, bad, bad_key, block_not_found};
use crate::jsonrpc::{Code, Json, RpcError, Value};
use crate::partial_merkle::{Builder, parent};

pub(super) const VERIFYTXOUTPROOF: Call = |node, args, out| {
    let raw = args.hex(0).ok_or_else(|| {
        let shown = args.string(0).unwrap_or_default();
        bad(format!("proof must be hexadecimal string (not '{shown}')"))
    })?;
    let proof = Proof::parse(&raw).map_err(|error| {
        let text = match error.kind {
            ParseErrorKind::NonCanonicalSize => "non-canonical ReadCompactSize(): iostream error",
            ParseErrorKind::OversizedCount => "ReadCompactSize(): size too large: iostream error",
            _ => "SpanReader::read(): end of data: iostream error",
        };
        RpcError::new(Code::Misc, text)
    })?;
    let found = proof.matches(&node.rpc.params);
    let Some((_, txids)) = found.filter(|(root, _)| *root == proof.header.merkle_root) else {
        Json::new(out).array().end();
        return Ok(());
    };
    let entry = node.engine.chain().entry(&proof.header.hash());
    let entry = entry.filter(|entry| entry.in_active_chain && entry.tx_count > 0);
    let entry = entry.ok_or_else(|| bad_key("Block not found in chain"))?;
    let mut list = Json::new(out).array();
    if entry.tx_count == proof.count {
        for txid in txids {
            list.item().text(txid);
        }
    }
    Ok(())
};

pub(super) const GETTXOUTPROOF: Call = |node, args, out| {
    let given = args.value(0).and_then(Value::elements).unwrap_or_default();
    if given.is_empty() {
        return Err(bad("Parameter 'txids' cannot be empty"));
    }
    let mut wanted = BTreeSet::new();
    for value in given {
        let text = args::string_of(value)?;
        if !wanted.insert(args::hash_of(&text, "txid")?) {
            return Err(bad(format!("Invalid parameter, duplicated txid: {text}")));
        }
    }
    let block = args.optional_block_hash(1, "blockhash")?;
    let hash = match block {
        Some(hash) => hash,
        None => find(node, &wanted)?,
    };
    let entry = node.engine.chain().entry(&hash).ok_or_else(block_not_found)?;
    let block = parse(&node.rpc.params, &hash, read_block(node, &hash)?)?;
    let txids: Vec<Txid> = block.txs().map(|tx| tx.txid()).collect();
    let matches: Vec<bool> = txids.iter().map(|txid| wanted.contains(txid)).collect();
    if matches.iter().filter(|is_match| **is_match).count() != wanted.len() {
        return Err(bad_key("Not all transactions found in specified or retrieved block"));
    }
    let tree = Builder::new(&txids, &matches);
    Json::new(out).hex(&tree.proof(&entry.header));
    Ok(())
};

/// Block of the first of these transactions that has an unspent output or is in the index.
fn find(node: &Node<'_>, txids: &BTreeSet<Txid>) -> Result<BlockHash, RpcError> {
    // Core tries as many outputs as a block can hold.
    const OUTPUTS_MAX: u32 = (MAX_BLOCK_WEIGHT / (9 * 4)) as u32;
    for txid in txids {
        if node.context.interrupted() {
            break;
        }
        for vout in 0..OUTPUTS_MAX {
            let outpoint = OutPoint { txid: *txid, vout };
            if let Some((coin, _)) = node.engine.chain().coin(&outpoint, false)? {
                return node.engine.chain().hash_at(coin.height).ok_or_else(block_not_found);
            }
        }
    }
    match txids.first().map(|txid| look_up(node, txid)).transpose()? {
        Some(Lookup::Found(block)) => Ok(block),
        _ => Err(bad_key("Transaction not yet in block")),
    }
}

/// Number of nodes at a height above the leaves.
fn width(count: u32, height: u32) -> u32 {
    let rounded = u64::from(count) + (1u64 << height) - 1;
    (rounded >> height) as u32
}

fn tree_height(count: u32) -> u32 {
    (0..=u32::BITS).find(|height| width(count, *height) <= 1).unwrap_or(0)
}

struct Proof {
    header: Header,
    count: u32,
    hashes: Vec<[u8; 32]>,
    bits: Vec<bool>,
}

struct Walk<'p> {
    proof: &'p Proof,
    bits: usize,
    hashes: usize,
    txids: Vec<Txid>,
}

impl Proof {
    fn parse(raw: &[u8]) -> Result<Self, ParseError> {
        let mut reader = Reader::new(raw, 0);
        let header = Header::parse(reader.take()?);
        let count = u32::from_le_bytes(*reader.take()?);
        let hashes = reader.count(32)?;
        let hashes = (0..hashes).map_while(|_| reader.take().ok().copied()).collect();
        let length = reader.count(1)?;
        let bits = reader.bytes(length)?;
        let bit = |index: usize| bits[index / 8] >> (index % 8) & 1 == 1;
        let bits = (0..8 * bits.len()).map(bit).collect();
        Ok(Self { header, count, hashes, bits })
    }

    /// Root and proven transactions; `None` for an invalid proof (Core `merkleblock.cpp`, `ExtractMatches`).
    fn matches(&self, params: &ChainParams) -> Option<([u8; 32], Vec<Txid>)> {
        // A transaction has at least 60 bytes.
        let count_max = params.block_vsize_max() / 60;
        let is_possible = self.count > 0
            && u64::from(self.count) <= count_max
            && self.hashes.len() as u64 <= u64::from(self.count)
            && self.bits.len() >= self.hashes.len();
        if !is_possible {
            return None;
        }
        let mut walk = Walk { proof: self, bits: 0, hashes: 0, txids: Vec::new() };
        let root = walk.visit(tree_height(self.count), 0)?;
        let is_used_up =
            walk.bits.div_ceil(8) == self.bits.len() / 8 && walk.hashes == self.hashes.len();
        is_used_up.then_some((root, walk.txids))
    }
}

impl Walk<'_> {
    fn visit(&mut self, height: u32, at: u32) -> Option<[u8; 32]> {
        let is_marked = *self.proof.bits.get(self.bits)?;
        self.bits += 1;
        if height == 0 || !is_marked {
            let hash = *self.proof.hashes.get(self.hashes)?;
            self.hashes += 1;
            if height == 0 && is_marked {
                self.txids.push(Txid(hash));
            }
            return Some(hash);
        }
        let left = self.visit(height - 1, 2 * at)?;
        if 2 * at + 1 >= width(self.proof.count, height - 1) {
            return Some(parent(&left, &left));
        }
        let right = self.visit(height - 1, 2 * at + 1)?;
        // Equal hashes could represent a shorter list (CVE-2012-2459).
        (left != right).then(|| parent(&left, &right))
    }
}

#[cfg(test)]
mod tests {
    use assay_wire::Header;

    use super::*;

    #[test]
    fn verifies_proofs() {
        let params = ChainParams::by_name("regtest").unwrap();
        for count in [1u8, 2, 3, 5, 8, 17] {
            let txids: Vec<Txid> = (0..count).map(|id| Txid([id; 32])).collect();
            let leaves = txids.iter().map(|txid| txid.0).collect();
            let (root, _) = assay_hash::merkle_root(leaves);
            let header = Header::parse(&[0; 80]);
            for set in [0u32, 1, 0b101, 0x1_0001, u32::MAX] {
                let matches: Vec<bool> = (0..count).map(|id| set >> id & 1 == 1).collect();
                let raw = Builder::new(&txids, &matches).proof(&header);
                let proof = Proof::parse(&raw).unwrap();
                let (found_root, found) = proof.matches(&params).unwrap();
                let wanted: Vec<Txid> =
                    (0..count).filter(|id| set >> id & 1 == 1).map(|id| Txid([id; 32])).collect();
                assert_eq!((found_root, found), (root, wanted), "{count} {set:b}");
                for length in 0..raw.len() {
                    let short = Proof::parse(&raw[..length]);
                    assert!(short.ok().is_none_or(|proof| proof.matches(&params).is_none()));
                }
            }
        }
    }
}
