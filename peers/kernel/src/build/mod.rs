//! Owned transactions, blocks and locks that can be modified and serialised.

mod block;
mod chaos;
mod keys;
mod lock;
mod script;
mod tx;

pub use block::Block;
pub use chaos::{chaotic_lock, random_item, random_script};
pub use keys::{KEY_COUNT, KeyForm, encoded_key, keypair, x_only};
pub use lock::{Flaw, Item, Lock, Place, Sig, unlock};
pub use script::{Writer, random_lock};
pub use tx::{Input, Output, Tx};

use assay_hash::Sha256;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng as _, SeedableRng as _};

/// A stream of random choices; the same label and seed give the same choices for ever.
#[derive(Clone, Debug)]
pub struct Rng(ChaCha8Rng);

impl Rng {
    /// The stream of a label and two numbers.
    pub fn new(label: &str, seed: u64, round: u64) -> Self {
        let mut hasher = Sha256::new();
        hasher.update(label.as_bytes());
        hasher.update(&seed.to_le_bytes());
        hasher.update(&round.to_le_bytes());
        Self(ChaCha8Rng::from_seed(hasher.finalize()))
    }

    pub fn u64(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// A number below `end`, which must not be 0.
    pub fn below(&mut self, end: usize) -> usize {
        ((u128::from(self.0.next_u64()) * end as u128) >> 64) as usize
    }

    /// A number of `start..=last`.
    pub fn within(&mut self, start: usize, last: usize) -> usize {
        start + self.below(last - start + 1)
    }

    /// True in `part` of `whole` cases.
    pub fn chance(&mut self, part: usize, whole: usize) -> bool {
        self.below(whole) < part
    }

    pub fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        &from[self.below(from.len())]
    }

    pub fn bytes(&mut self, count: usize) -> Vec<u8> {
        let mut bytes = vec![0; count];
        self.0.fill_bytes(&mut bytes);
        bytes
    }
}
