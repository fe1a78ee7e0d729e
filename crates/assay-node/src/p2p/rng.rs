//! Random numbers, unpredictable from outside and reproducible in tests.

use std::io;

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

/// Exponentially distributed time, so that announcements show no pattern.
pub(super) fn exponential_us(mean_us: u64) -> u64 {
    let uniform = (random(1 << 52) + 1) as f64 / (1u64 << 52) as f64;
    (-uniform.ln() * mean_us as f64) as u64
}

/// Uniform in `0..bound`; 0 for a bound of 0.
pub(super) fn random(bound: u64) -> u64 {
    // Without randomness, only privacy is lost.
    getrandom::u64().unwrap_or(0) % bound.max(1)
}

/// Random number that must not be predictable.
pub(super) fn nonce() -> io::Result<u64> {
    getrandom::u64().map_err(|error| io::Error::other(error.to_string()))
}

/// Random order.
pub(super) fn shuffle<T>(items: &mut [T]) {
    for last in (1..items.len()).rev() {
        items.swap(last, random(last as u64 + 1) as usize);
    }
}
