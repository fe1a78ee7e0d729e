//! Partial Merkle trees: proofs that a block contains transactions (Core `merkleblock.cpp`; BIP37).

use assay_hash::sha256d;
use assay_wire::{Header, Txid, encode};

pub(crate) fn parent(left: &[u8; 32], right: &[u8; 32]) -> [u8; 32] {
    sha256d(&[&left[..], &right[..]].concat())
}

pub(crate) struct Builder {
    /// Hashes by height, leaves first.
    levels: Vec<Vec<[u8; 32]>>,
    /// True for nodes with a match below, by height.
    marks: Vec<Vec<bool>>,
    bits: Vec<bool>,
    hashes: Vec<[u8; 32]>,
}

impl Builder {
    /// For a block with these txids and their matches.
    pub(crate) fn new(txids: &[Txid], matches: &[bool]) -> Self {
        let mut levels = vec![txids.iter().map(|txid| txid.0).collect::<Vec<_>>()];
        let mut marks = vec![matches.to_vec()];
        while let Some(level) = levels.last().filter(|level| level.len() > 1) {
            let above =
                level.chunks(2).map(|pair| parent(&pair[0], pair.last().unwrap_or(&pair[0])));
            let above: Vec<_> = above.collect();
            let marked = marks.last().map_or_else(Vec::new, |level| {
                level.chunks(2).map(|pair| pair.iter().any(|mark| *mark)).collect()
            });
            levels.push(above);
            marks.push(marked);
        }
        let mut builder = Self { levels, marks, bits: Vec::new(), hashes: Vec::new() };
        builder.visit(builder.levels.len() - 1, 0);
        builder
    }

    fn visit(&mut self, height: usize, at: usize) {
        let is_marked = self.marks[height][at];
        self.bits.push(is_marked);
        if height == 0 || !is_marked {
            self.hashes.push(self.levels[height][at]);
            return;
        }
        self.visit(height - 1, 2 * at);
        if 2 * at + 1 < self.levels[height - 1].len() {
            self.visit(height - 1, 2 * at + 1);
        }
    }

    /// Serialization as in a `merkleblock` message.
    pub(crate) fn proof(&self, header: &Header) -> Vec<u8> {
        let mut out = header.to_bytes().to_vec();
        out.extend((self.levels[0].len() as u32).to_le_bytes());
        encode::compact_size(&mut out, self.hashes.len() as u64);
        for hash in &self.hashes {
            out.extend(hash);
        }
        let mut bytes = vec![0u8; self.bits.len().div_ceil(8)];
        for (index, bit) in self.bits.iter().enumerate() {
            bytes[index / 8] |= u8::from(*bit) << (index % 8);
        }
        encode::var_bytes(&mut out, &bytes);
        out
    }
}
