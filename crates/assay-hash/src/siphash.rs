//! SipHash (Aumasson and Bernstein, 2012) with one or two compression rounds.

/// SipHash with `C` rounds per word and `D` final rounds, under a 128-bit key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SipHash<const C: usize, const D: usize> {
    k0: u64,
    k1: u64,
}

/// SipHash-1-3: for internal tables, where the key is secret and collisions only cost time.
pub type SipHash13 = SipHash<1, 3>;

/// SipHash-2-4, prescribed by BIP-152 and BIP-158.
pub type SipHash24 = SipHash<2, 4>;

impl<const C: usize, const D: usize> SipHash<C, D> {
    /// A hash under the key `(k0, k1)`.
    #[inline]
    pub const fn new(k0: u64, k1: u64) -> Self {
        Self { k0, k1 }
    }

    /// The hash of `data`.
    #[inline]
    pub fn hash(&self, data: &[u8]) -> u64 {
        let mut state = State::new(self.k0, self.k1);
        let (words, rest) = data.as_chunks::<8>();
        for word in words {
            state.absorb::<C>(u64::from_le_bytes(*word));
        }
        let last = match data.last_chunk() {
            // One load and a shift, in two parts because a shift by 64 would overflow.
            Some(end) => u64::from_le_bytes(*end) >> 8 >> (56 - 8 * rest.len()),
            None => rest.iter().rev().fold(0, |word, &byte| word << 8 | u64::from(byte)),
        };
        state.absorb::<C>((data.len() as u64) << 56 | last);
        state.finish::<D>()
    }

    /// The hash of the 36 bytes of an outpoint: `txid`, then `vout` in little-endian order.
    ///
    /// Equals [`hash`](Self::hash) of those bytes.
    #[inline]
    pub fn hash_outpoint(&self, txid: &[u8; 32], vout: u32) -> u64 {
        let mut state = State::new(self.k0, self.k1);
        for word in txid.as_chunks::<8>().0 {
            state.absorb::<C>(u64::from_le_bytes(*word));
        }
        state.absorb::<C>(36 << 56 | u64::from(vout));
        state.finish::<D>()
    }
}

/// SipHash-1-3 of an outpoint under `(k0, k1)`; see [`SipHash::hash_outpoint`].
#[inline]
pub fn hash_outpoint(k0: u64, k1: u64, txid: &[u8; 32], vout: u32) -> u64 {
    SipHash13::new(k0, k1).hash_outpoint(txid, vout)
}

/// The four words of the permutation.
struct State {
    v0: u64,
    v1: u64,
    v2: u64,
    v3: u64,
}

impl State {
    #[inline(always)]
    fn new(k0: u64, k1: u64) -> Self {
        Self {
            v0: k0 ^ 0x736f6d6570736575,
            v1: k1 ^ 0x646f72616e646f6d,
            v2: k0 ^ 0x6c7967656e657261,
            v3: k1 ^ 0x7465646279746573,
        }
    }

    #[inline(always)]
    fn round(&mut self) {
        self.v0 = self.v0.wrapping_add(self.v1);
        self.v2 = self.v2.wrapping_add(self.v3);
        self.v1 = self.v1.rotate_left(13) ^ self.v0;
        self.v3 = self.v3.rotate_left(16) ^ self.v2;
        self.v0 = self.v0.rotate_left(32).wrapping_add(self.v3);
        self.v2 = self.v2.wrapping_add(self.v1);
        self.v3 = self.v3.rotate_left(21) ^ self.v0;
        self.v1 = self.v1.rotate_left(17) ^ self.v2;
        self.v2 = self.v2.rotate_left(32);
    }

    #[inline(always)]
    fn absorb<const C: usize>(&mut self, word: u64) {
        self.v3 ^= word;
        for _ in 0..C {
            self.round();
        }
        self.v0 ^= word;
    }

    #[inline(always)]
    fn finish<const D: usize>(mut self) -> u64 {
        self.v2 ^= 0xff;
        for _ in 0..D {
            self.round();
        }
        self.v0 ^ self.v1 ^ self.v2 ^ self.v3
    }
}
