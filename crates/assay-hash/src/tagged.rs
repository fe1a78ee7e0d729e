//! Tagged hashes of BIP-340: SHA-256(SHA-256(tag) || SHA-256(tag) || data).

use crate::backend::portable::sha256::{INITIAL, compress_words};
use crate::sha256::{Sha256, sha256};

/// The tagged hash of the concatenation of `data`.
pub fn tagged_hash(tag: &str, data: &[&[u8]]) -> [u8; 32] {
    TaggedHasher::new(tag).hash(data)
}

/// The state after the 64 bytes of a tag, computed once per tag.
///
/// Consensus tags are constants, computed at compile time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TaggedHasher {
    state: [u32; 8],
}

impl TaggedHasher {
    /// `TapLeaf`: a script and its leaf version (BIP-341).
    pub const TAP_LEAF: Self = Self::of_short("TapLeaf");
    /// `TapBranch`: two sorted child hashes (BIP-341).
    pub const TAP_BRANCH: Self = Self::of_short("TapBranch");
    /// `TapTweak`: internal key and merkle root (BIP-341).
    pub const TAP_TWEAK: Self = Self::of_short("TapTweak");
    /// `TapSighash`: the message of taproot signatures (BIP-341).
    pub const TAP_SIGHASH: Self = Self::of_short("TapSighash");
    /// `BIP0340/challenge`: nonce, key and message of a signature (BIP-340).
    pub const BIP340_CHALLENGE: Self = Self::of_short("BIP0340/challenge");

    /// Computes the midstate of `tag`.
    pub fn new(tag: &str) -> Self {
        let mut words = [0; 8];
        for (word, bytes) in words.iter_mut().zip(sha256(tag.as_bytes()).as_chunks::<4>().0) {
            *word = u32::from_be_bytes(*bytes);
        }
        Self::of_digest(words)
    }

    /// A hasher that has absorbed the tag.
    #[inline]
    pub fn start(&self) -> Sha256 {
        Sha256::from_midstate(self.state, 64)
    }

    /// The tagged hash of the concatenation of `data`.
    #[inline]
    pub fn hash(&self, data: &[&[u8]]) -> [u8; 32] {
        let mut hasher = self.start();
        for part in data {
            hasher.update(part);
        }
        hasher.finalize()
    }

    /// [`new`](Self::new) at compile time, for tags that fit one padded block.
    const fn of_short(tag: &str) -> Self {
        let tag = tag.as_bytes();
        assert!(tag.len() < 56, "the tag and its padding fit one block");
        let mut words = [0u32; 16];
        let mut i = 0;
        while i <= tag.len() {
            let byte = if i < tag.len() { tag[i] } else { 0x80 };
            words[i / 4] |= (byte as u32) << (24 - 8 * (i % 4));
            i += 1;
        }
        words[15] = 8 * tag.len() as u32;
        let mut digest = INITIAL;
        compress_words(&mut digest, words);
        Self::of_digest(digest)
    }

    /// The state after a block with the digest twice.
    const fn of_digest(digest: [u32; 8]) -> Self {
        let mut words = [0; 16];
        let mut i = 0;
        while i < 16 {
            words[i] = digest[i % 8];
            i += 1;
        }
        let mut state = INITIAL;
        compress_words(&mut state, words);
        Self { state }
    }
}
