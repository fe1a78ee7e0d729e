//! Chance that cannot be foreseen from outside, and can be repeated in tests.

use assay_hash::SipHash24;

/// A keyed hash of a counter.
pub(super) struct Dice {
    hash: SipHash24,
    next: u64,
}

impl Dice {
    /// From the system's randomness.
    pub(super) fn new() -> Self {
        // Without it nothing is lost but privacy.
        let word = || getrandom::u64().unwrap_or(0);
        Self { hash: SipHash24::new(word(), word()), next: 0 }
    }

    /// The same sequence each time.
    pub(super) fn seeded(seed: u64) -> Self {
        Self { hash: SipHash24::new(seed, 0), next: 0 }
    }

    pub(super) fn word(&mut self) -> u64 {
        self.next += 1;
        self.hash.hash(&self.next.to_le_bytes())
    }

    /// From 0 to below `bound`; 0 where that is 0.
    pub(super) fn below(&mut self, bound: usize) -> usize {
        // The product of a fraction of 2^64 and the bound: even but for 2^-64 of the bound.
        ((u128::from(self.word()) * bound as u128) >> 64) as usize
    }
}
