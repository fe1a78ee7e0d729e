//! Random numbers, unpredictable from outside and reproducible in tests.

use assay_hash::SipHash24;

/// A keyed hash of a counter.
pub(super) struct Rng {
    hash: SipHash24,
    next: u64,
}

impl Rng {
    /// Seeded from the system's randomness.
    pub(super) fn new() -> Self {
        // Without it, only privacy is lost.
        let word = || getrandom::u64().unwrap_or(0);
        Self { hash: SipHash24::new(word(), word()), next: 0 }
    }

    pub(super) fn seeded(seed: u64) -> Self {
        Self { hash: SipHash24::new(seed, 0), next: 0 }
    }

    pub(super) fn word(&mut self) -> u64 {
        self.next += 1;
        self.hash.hash(&self.next.to_le_bytes())
    }

    /// Uniform in `0..bound`; 0 for a bound of 0.
    pub(super) fn below(&mut self, bound: usize) -> usize {
        // A fraction of 2^64 times the bound: uniform but for a bias of `bound` / 2^64.
        ((u128::from(self.word()) * bound as u128) >> 64) as usize
    }
}
