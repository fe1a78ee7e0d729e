//! Batched subgroup checks, far cheaper than single ones.
//!
//! Each point gets random digits 0, 1 or 2, and the sums of points times their digits are checked, one per place. Let
//! a point have a component T outside the group. If the cofactor is odd, at most one of the three digits makes the
//! sum cancel T: two such digits would differ by 1 or 2, and twice T is not zero. Every sum thus misses T with a
//! probability of at most a third, and 81 of them with 3^-81, below 2^-128. If the cofactor is even, as that of the
//! first group of BLS12-377, T may have order two; then 0 and 2 are equivalent, a sum misses T with a probability of
//! at most two thirds, and 219 sums are needed.
//!
//! The digits of m places form one number below 3^m, the index of the bucket that a point is added
//! to; so a block of m sums costs one addition per point.

mod each;
#[cfg(test)]
mod tests;

use assay_hash::Sha256;

use crate::curve::{Affine, Curve, Jacobian, bls12, bn, prime_order};
use crate::field::{Fe, Modulus};
use crate::msm::{Backend, MultiScalar, Ternary};
use crate::tower::Fp2;

/// Minimum number of sums, for an odd cofactor and for an even one: 3^-81 and (2 / 3)^219 are below 2^-128.
const SUMS: [usize; 2] = [81, 219];

/// Fewer points are checked one by one.
const FEW: usize = 16;

/// The shape with the fewest additions: one per point and block, two per bucket.
fn shape_for(points: usize, sums: usize) -> Ternary {
    let of = |places: u32| Ternary { places, blocks: sums.div_ceil(places as usize) };
    let cost = |shape: &Ternary| shape.blocks * (points + 2 * 3usize.pow(shape.places));
    [2, 4, 6, 8].map(of).into_iter().min_by_key(cost).expect("four")
}

/// Coordinates that can be hashed.
#[doc(hidden)]
pub trait Hashed {
    /// Adds the coordinate to a hash.
    fn hash_into(&self, hash: &mut Sha256);
}

impl<M: Modulus<N>, const N: usize> Hashed for Fe<M, N> {
    fn hash_into(&self, hash: &mut Sha256) {
        // The Montgomery form identifies the number.
        self.0.iter().for_each(|limb| hash.update(&limb.to_le_bytes()));
    }
}

impl<F: Hashed> Hashed for Fp2<F> {
    fn hash_into(&self, hash: &mut Sha256) {
        self.c0.hash_into(hash);
        self.c1.hash_into(hash);
    }
}

/// Groups with batched subgroup checks.
pub trait BatchMembership: MultiScalar<Base: Hashed> {
    /// True if points of order two may exist.
    const IS_COFACTOR_EVEN: bool;

    /// See [`each_in_group`].
    #[doc(hidden)]
    fn each(backend: Backend, points: &[Affine<Self>]) -> bool;
}

/// There is no cofactor.
impl<F: prime_order::Parameters> BatchMembership for prime_order::PrimeOrder<F> {
    const IS_COFACTOR_EVEN: bool = false;

    fn each(_: Backend, _: &[Affine<Self>]) -> bool {
        true
    }
}

/// The cofactor is `(x - 1)^2 / 3`.
impl<F: bls12::Parameters> BatchMembership for bls12::G1<F> {
    const IS_COFACTOR_EVEN: bool = F::X % 2 == 1;

    fn each(backend: Backend, points: &[Affine<Self>]) -> bool {
        each::all(backend, points)
    }
}

/// Nine times the cofactor is `x^8 - 4 x^7 + 5 x^6 - 4 x^4 + 6 x^3 - 4 x^2 - 4 x + 13`: odd, whatever x is.
impl<F: bls12::Parameters> BatchMembership for bls12::G2<F> {
    const IS_COFACTOR_EVEN: bool = false;

    fn each(backend: Backend, points: &[Affine<Self>]) -> bool {
        each::all(backend, points)
    }
}

/// The cofactor is `2 p - r`, and r is odd.
impl<F: bn::Parameters> BatchMembership for bn::G2<F> {
    const IS_COFACTOR_EVEN: bool = false;

    fn each(backend: Backend, points: &[Affine<Self>]) -> bool {
        each::all(backend, points)
    }
}

/// True if all points, which must be on the curve, are in the group: each is checked separately, several at once if
/// this CPU supports lanes. For far more than sixteen points [`all_in_group`] is faster.
///
/// # Panics
/// If this CPU does not support the backend.
pub fn each_in_group<C: BatchMembership>(backend: Backend, points: &[Affine<C>]) -> bool {
    assert!(backend.is_available(), "a backend that this CPU runs");
    C::each(backend, points)
}

/// True if all points, which must be on the curve, are in the group. If some are not, the result is
/// `true` with a probability below 2^-128.
///
/// Digits are hashes of all points and of `randomness`: any value unknown to those who chose the
/// points. Even if it is known, they have to try 2^128 sets of points.
///
/// # Panics
/// If this CPU does not support the backend.
pub fn all_in_group<C: BatchMembership>(
    backend: Backend,
    points: &[Affine<C>],
    randomness: &[u8; 32],
) -> bool {
    assert!(backend.is_available(), "a backend that this CPU runs");
    if points.len() < FEW {
        return C::each(backend, points);
    }
    let shape = shape_for(points.len(), SUMS[usize::from(C::IS_COFACTOR_EVEN)]);
    let numbers = numbers(points, randomness, shape);
    let sums = C::ternary_sums(backend, points, shape, &numbers);
    C::each(backend, &Jacobian::all_to_affine(&sums))
}

/// Adds a point to a hash.
pub(crate) fn hash_point<C: Curve<Base: Hashed>>(point: &Affine<C>, hash: &mut Sha256) {
    point.x.hash_into(hash);
    point.y.hash_into(hash);
    hash.update(&[u8::from(point.is_infinity)]);
}

/// For each block, a number below 3^places for every point.
fn numbers<C: BatchMembership>(
    points: &[Affine<C>],
    randomness: &[u8; 32],
    shape: Ternary,
) -> Vec<Vec<u16>> {
    let mut all = Sha256::new();
    all.update(randomness);
    for point in points {
        hash_point(point, &mut all);
    }
    let digest = all.finalize();
    let below = 3u64.pow(shape.places);
    // At most 39 bits of each 64 are drawn, so probabilities of numbers differ by at most 2^-25.
    let per_word = (39 / (64 - below.leading_zeros()) as usize).max(1);
    let mut numbers = vec![Vec::with_capacity(points.len()); shape.blocks];
    for index in 0..points.len() as u64 {
        let mut words = Words { digest, index, next: 0, left: [0; 4], at: 4 };
        let (mut word, mut drawn) = (0, per_word);
        for block in &mut numbers {
            if drawn == per_word {
                (word, drawn) = (words.next(), 0);
            }
            let product = u128::from(word) * u128::from(below);
            block.push((product >> 64) as u16);
            word = product as u64;
            drawn += 1;
        }
    }
    numbers
}

/// Words derived from a digest and the index of a point.
struct Words {
    digest: [u8; 32],
    index: u64,
    next: u64,
    left: [u64; 4],
    at: usize,
}

impl Words {
    fn next(&mut self) -> u64 {
        if self.at == 4 {
            let mut hash = Sha256::new();
            hash.update(&self.digest);
            hash.update(&self.index.to_be_bytes());
            hash.update(&self.next.to_be_bytes());
            self.left = crate::limbs::from_be_bytes(&hash.finalize());
            self.next += 1;
            self.at = 0;
        }
        self.at += 1;
        self.left[self.at - 1]
    }
}
