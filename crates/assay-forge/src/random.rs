//! Random choices: one stream per (height, chain), so that no choice depends on the order of execution.

use assay_hash::Sha256;
use rand_chacha::{
    ChaCha8Rng,
    rand_core::{Rng as _, SeedableRng as _},
};

use crate::{kind::Kind, recipe::Scripts};

pub(crate) struct Stream {
    rng: ChaCha8Rng,
    /// Cumulative weights of the kinds; empty if every output is P2PKH.
    mix: Vec<u32>,
}

impl Stream {
    /// A stream that draws kinds by the weights of `scripts`.
    pub(crate) fn new(seed: u64, scripts: Option<Scripts>, height: u32, chain: u32) -> Self {
        let mut total = 0;
        let mix = scripts.map_or(Vec::new(), |scripts| {
            let cumulate = scripts.weights().into_iter().map(|weight| {
                total += weight;
                total
            });
            cumulate.collect()
        });
        Self { mix, ..Self::plain(seed, height, chain) }
    }

    /// A stream without random kinds: every output is P2PKH, or the caller chooses.
    pub(crate) fn plain(seed: u64, height: u32, chain: u32) -> Self {
        let mut hash = Sha256::new();
        hash.update(b"assay forge stream");
        hash.update(&seed.to_le_bytes());
        hash.update(&height.to_le_bytes());
        hash.update(&chain.to_le_bytes());
        Self { rng: ChaCha8Rng::from_seed(hash.finalize()), mix: Vec::new() }
    }

    /// A number below `end`, by multiplication: the bias is below 2^-12 for the ranges in use.
    pub(crate) fn below(&mut self, end: u32) -> u32 {
        ((u64::from(self.rng.next_u32()) * u64::from(end)) >> 32) as u32
    }

    /// Shuffles a list (Fisher and Yates).
    pub(crate) fn shuffle<T>(&mut self, list: &mut [T]) {
        for at in (1..list.len()).rev() {
            list.swap(at, self.below(at as u32 + 1) as usize);
        }
    }

    /// A log-uniform number from `least` to `most`.
    ///
    /// Square roots are rounded correctly everywhere (IEEE 754), not powers and logarithms: the power is made bit by bit from roots.
    pub(crate) fn log_uniform(&mut self, least: f64, most: f64) -> f64 {
        let drawn = self.below(1 << BITS);
        let (mut root, mut value) = (most / least, least);
        for bit in (0..BITS).rev() {
            root = root.sqrt();
            if drawn >> bit & 1 == 1 {
                value *= root;
            }
        }
        value
    }

    /// The same for integers, both ends included.
    pub(crate) fn between(&mut self, [least, most]: [u32; 2]) -> u32 {
        (self.log_uniform(f64::from(least), f64::from(most) + 1.0) as u32).clamp(least, most)
    }

    /// A script kind by the weights of the recipe.
    pub(crate) fn kind(&mut self) -> Kind {
        let Some(total) = self.mix.last().copied() else {
            return Kind::P2pkh;
        };
        let drawn = self.below(total);
        Kind::ALL[self.mix.partition_point(|end| *end <= drawn)]
    }
}

/// Stream number of choices for a whole block rather than for one of its chains.
pub(crate) const BLOCK_STREAM: u32 = u32::MAX;
/// Bits of the exponent of a log-uniform number.
const BITS: u32 = 16;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_doubling_is_equally_likely() {
        let mut stream = Stream::plain(1, 2, 3);
        let mut found = [0u32; 4];
        for _ in 0..8_000 {
            let number = stream.between([8, 127]);
            found[(number.ilog2() - 3) as usize] += 1;
        }
        assert!(found.iter().all(|count| (1_850..2_150).contains(count)), "{found:?}");
    }
}
