//! Block headers.

use assay_hash::sha256d;

use crate::id::BlockHash;

/// The 80 bytes covered by the block hash.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// Version, with BIP9 signal bits.
    pub version: i32,
    /// Hash of the previous block.
    pub prev_block: BlockHash,
    /// Merkle root of the txids.
    pub merkle_root: [u8; 32],
    /// In seconds since 1970.
    pub time: u32,
    /// The target in compact form.
    pub bits: u32,
    /// Varied by miners to meet the target.
    pub nonce: u32,
}

impl Header {
    /// Serialised length.
    pub const SIZE: usize = 80;

    /// Decodes a header; any 80 bytes are valid.
    #[inline]
    pub fn parse(bytes: &[u8; 80]) -> Self {
        let u32_at = |at: usize| {
            u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
        };
        let hash_at = |at: usize| {
            let mut hash = [0u8; 32];
            hash.copy_from_slice(&bytes[at..at + 32]);
            hash
        };
        Self {
            version: u32_at(0) as i32,
            prev_block: BlockHash(hash_at(4)),
            merkle_root: hash_at(36),
            time: u32_at(68),
            bits: u32_at(72),
            nonce: u32_at(76),
        }
    }

    /// Inverse of [`Header::parse`].
    #[inline]
    pub fn to_bytes(&self) -> [u8; 80] {
        let mut out = [0u8; 80];
        out[..4].copy_from_slice(&self.version.to_le_bytes());
        out[4..36].copy_from_slice(&self.prev_block.0);
        out[36..68].copy_from_slice(&self.merkle_root);
        out[68..72].copy_from_slice(&self.time.to_le_bytes());
        out[72..76].copy_from_slice(&self.bits.to_le_bytes());
        out[76..].copy_from_slice(&self.nonce.to_le_bytes());
        out
    }

    /// The block hash; computed on every call.
    pub fn hash(&self) -> BlockHash {
        BlockHash(sha256d(&self.to_bytes()))
    }
}
