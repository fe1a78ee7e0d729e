//! Whether all of many points are in the group, far cheaper than one by one.
//!
//! Each point gets random digits 0, 1 or 2, and the sums of points times their digits are checked, one for
//! each place. Let a point have a component T outside the group. Where the cofactor is odd, at
//! most one of the three digits makes the sum cancel it: two would differ by 1 or 2, and twice T is not
//! zero. Every sum thus overlooks it with a probability of a third at most, and 81 of them with 3^-81,
//! below 2^-128. Where the cofactor is even, as that of the first group of BLS12-377 is, T may have the order two; then 0 and 2 do the
//! same, a sum overlooks it with a probability of two thirds at most, and it takes 219 of them.
//!
//! Digits of m places are one number below 3^m, which is the bucket that a point is added to; so a block
//! of m sums takes one addition for each point.

mod each;
#[cfg(test)]
mod tests;

use assay_hash::Sha256;

use crate::curve::{Affine, Curve, Jacobian, bls12, bn, prime_order};
use crate::field::{Fe, Modulus};
use crate::msm::{Backend, MultiScalar, Ternary};
use crate::tower::Fp2;

/// Sums that are checked at least, for an odd cofactor and for an even one: 3^-81 and (2 / 3)^219 are below 2^-128.
const SUMS: [usize; 2] = [81, 219];

/// Below so many points they are checked one by one.
const FEW: usize = 16;

/// The fewest additions: one for each point and block, two for each bucket.
fn shape_for(points: usize, sums: usize) -> Ternary {
    let of = |places: u32| Ternary { places, blocks: sums.div_ceil(places as usize) };
    let cost = |shape: &Ternary| shape.blocks * (points + 2 * 3usize.pow(shape.places));
    [2, 4, 6, 8].map(of).into_iter().min_by_key(cost).expect("four")
}

/// Coordinates as bytes to be hashed.
#[doc(hidden)]
pub trait Hashed {
    /// Adds it to what is hashed.
    fn hash_into(&self, hash: &mut Sha256);
}

impl<M: Modulus<N>, const N: usize> Hashed for Fe<M, N> {
    fn hash_into(&self, hash: &mut Sha256) {
        // The Montgomery form is as good as the number.
        self.0.iter().for_each(|limb| hash.update(&limb.to_le_bytes()));
    }
}

impl<F: Hashed> Hashed for Fp2<F> {
    fn hash_into(&self, hash: &mut Sha256) {
        self.c0.hash_into(hash);
        self.c1.hash_into(hash);
    }
}

/// Groups whose membership can be checked for many points.
pub trait BatchMembership: MultiScalar<Base: Hashed> {
    /// Whether there may be points of order two.
    const IS_COFACTOR_EVEN: bool;

    /// See [`each_in_group_with`].
    #[doc(hidden)]
    fn each_with(backend: Backend, points: &[Affine<Self>]) -> bool;
}

/// There is no cofactor.
impl<F: prime_order::Parameters> BatchMembership for prime_order::PrimeOrder<F> {
    const IS_COFACTOR_EVEN: bool = false;

    fn each_with(_: Backend, _: &[Affine<Self>]) -> bool {
        true
    }
}

/// The cofactor is `(x - 1)^2 / 3`.
impl<F: bls12::Parameters> BatchMembership for bls12::G1<F> {
    const IS_COFACTOR_EVEN: bool = F::X % 2 == 1;

    fn each_with(backend: Backend, points: &[Affine<Self>]) -> bool {
        each::all(backend, points)
    }
}

/// Nine times the cofactor is `x^8 - 4 x^7 + 5 x^6 - 4 x^4 + 6 x^3 - 4 x^2 - 4 x + 13`: odd, whatever x is.
impl<F: bls12::Parameters> BatchMembership for bls12::G2<F> {
    const IS_COFACTOR_EVEN: bool = false;

    fn each_with(backend: Backend, points: &[Affine<Self>]) -> bool {
        each::all(backend, points)
    }
}

/// The cofactor is `2 p - r`, and r is odd.
impl<F: bn::Parameters> BatchMembership for bn::G2<F> {
    const IS_COFACTOR_EVEN: bool = false;

    fn each_with(backend: Backend, points: &[Affine<Self>]) -> bool {
        each::all(backend, points)
    }
}

/// Whether all points, which must be on the curve, are in the group: each is checked by itself, several at once where this CPU
/// has lanes. Far more than sixteen points are checked faster by [`all_in_group`].
pub fn each_in_group<C: BatchMembership>(points: &[Affine<C>]) -> bool {
    C::each_with(Backend::detect(), points)
}

/// [`each_in_group`] on a certain backend.
///
/// # Panics
/// Where this CPU does not run it.
pub fn each_in_group_with<C: BatchMembership>(backend: Backend, points: &[Affine<C>]) -> bool {
    assert!(backend.is_available(), "a backend that this CPU runs");
    C::each_with(backend, points)
}

/// Whether all points, which must be on the curve, are in the group. If some are not, the answer is `true` with a
/// probability below 2^-128.
///
/// Digits are hashes of all points and of `randomness`: anything that those who chose the points did not know. Even
/// if it is known, they have to try 2^128 sets of points.
pub fn all_in_group<C: BatchMembership>(points: &[Affine<C>], randomness: &[u8; 32]) -> bool {
    all_in_group_with(Backend::detect(), points, randomness)
}

/// [`all_in_group`] on a certain backend.
///
/// # Panics
/// Where this CPU does not run it.
pub fn all_in_group_with<C: BatchMembership>(
    backend: Backend,
    points: &[Affine<C>],
    randomness: &[u8; 32],
) -> bool {
    assert!(backend.is_available(), "a backend that this CPU runs");
    if points.len() < FEW {
        return C::each_with(backend, points);
    }
    let shape = shape_for(points.len(), SUMS[usize::from(C::IS_COFACTOR_EVEN)]);
    let numbers = numbers(points, randomness, shape);
    let sums = C::ternary_sums_with(backend, points, shape, &numbers);
    C::each_with(backend, &Jacobian::all_to_affine(&sums))
}

/// Adds a point to what is hashed.
pub(crate) fn hash_point<C: Curve<Base: Hashed>>(point: &Affine<C>, hash: &mut Sha256) {
    point.x.hash_into(hash);
    point.y.hash_into(hash);
    hash.update(&[u8::from(point.is_infinity)]);
}

/// For each block a number below 3^places for every point.
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
    // At most 39 bits of each 64 are drawn, so no number is likelier than another by more than 2^-25.
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

/// Words that follow from a digest and the index of a point.
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
