//! Sums of keyed hashes: two multisets of byte strings are equal if their sums are.

use crate::sha256::Sha256;

/// A keyed hash function: SHA-256 of a block that contains the key, followed by the message.
///
/// With a secret, uniform key it is assumed to be a pseudorandom function. Messages must be prefix-free (no message is a prefix
/// of another), as required by the cascade construction.
#[derive(Clone, Debug)]
pub struct KeyedHash {
    /// The state after the block with the key.
    keyed: Sha256,
}

impl KeyedHash {
    /// The function of this key.
    pub fn new(key: &[u8; 32]) -> Self {
        let mut block = [0; 64];
        block[..32].copy_from_slice(key);
        let mut keyed = Sha256::new();
        keyed.update(&block);
        Self { keyed }
    }

    /// The hash of a message.
    pub fn hash(&self, message: &[u8]) -> [u8; 32] {
        let mut hasher = self.keyed.clone();
        hasher.update(message);
        hasher.finalize()
    }
}

/// A sum of hashes modulo 2^256; hashes are little-endian numbers.
///
/// Addition instead of exclusive or, which sees only parity: three equal hashes would pass for one. If the messages are chosen
/// without knowledge of the key, a difference between two multisets stays undetected with probability at most 2^-224, provided
/// that no message occurs 2^32 times. With a known key the generalised birthday attack takes about 2^32 steps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sum256([u64; 4]);

impl Sum256 {
    /// Adds a hash.
    pub fn add(&mut self, hash: &[u8; 32]) {
        self.add_sum(&Self::from_bytes(hash));
    }

    /// Adds another sum.
    pub fn add_sum(&mut self, other: &Self) {
        let mut carry = false;
        for (limb, other) in self.0.iter_mut().zip(other.0) {
            (*limb, carry) = limb.carrying_add(other, carry);
        }
    }

    /// The sum as 32 little-endian bytes.
    pub fn to_bytes(&self) -> [u8; 32] {
        let mut bytes = [0; 32];
        for (chunk, limb) in bytes.as_chunks_mut::<8>().0.iter_mut().zip(self.0) {
            *chunk = limb.to_le_bytes();
        }
        bytes
    }

    /// Inverse of [`Sum256::to_bytes`].
    pub fn from_bytes(bytes: &[u8; 32]) -> Self {
        let mut limbs = [0; 4];
        for (limb, chunk) in limbs.iter_mut().zip(bytes.as_chunks::<8>().0) {
            *limb = u64::from_le_bytes(*chunk);
        }
        Self(limbs)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sha256;

    #[test]
    fn key_fills_a_block() {
        let key: [u8; 32] = core::array::from_fn(|at| at as u8);
        for length in [0, 1, 55, 56, 63, 64, 65, 200] {
            let message = vec![7; length];
            let plain = [&key[..], &[0; 32], &message].concat();
            assert_eq!(KeyedHash::new(&key).hash(&message), sha256(&plain));
        }
    }

    #[test]
    fn sums_carry_wrap_and_do_not_depend_on_order() {
        let mut sum = Sum256::default();
        sum.add(&[0xff; 32]);
        let mut one = [0; 32];
        one[0] = 1;
        sum.add(&one);
        assert_eq!(sum, Sum256::default());
        let hashes: Vec<[u8; 32]> = (0..50u8).map(|n| sha256(&[n])).collect();
        let add = |hashes: &mut dyn Iterator<Item = &[u8; 32]>| {
            let mut sum = Sum256::default();
            hashes.for_each(|hash| sum.add(hash));
            sum
        };
        let all = add(&mut hashes.iter());
        assert_eq!(all, add(&mut hashes.iter().rev()));
        let mut halves = add(&mut hashes[..20].iter());
        halves.add_sum(&add(&mut hashes[20..].iter()));
        assert_eq!(all, halves);
        assert_ne!(all, add(&mut hashes.iter().chain([&hashes[0], &hashes[0]])), "no parity");
        assert_eq!(Sum256::from_bytes(&all.to_bytes()), all);
    }
}
