//! BIP-0340 signatures of a batch as one equation.
//!
//! The weights a must be unpredictable before the signatures are fixed. The sum over the batch of `a (s G - e P - R)` is zero if
//! all signatures are valid, and otherwise with a probability below 2^-127 (BIP-0340, "Batch Verification"). The weights are
//! derived from a hash of all operands.

use assay_hash::{Sha256, TaggedHasher};
use secp256k1::{PublicKey, Scalar as Tweak};

use super::prepare::Job;
use super::table::generator_multiples;
use crate::bch::generator;
use crate::lanes::msm::{Shape, Work};
use crate::lanes::{LANES, Line};
use crate::scalar::{Digits, Scalar};

/// Computes the sums of [`Work`]: entry point of a backend.
pub(super) type WeightedSum = fn(&mut Work, &[Line]) -> bool;

/// True if all signatures are valid. `None` if the sum is inconclusive: a coordinate belongs to no point, or an addition was
/// exceptional.
pub(super) fn all_valid(jobs: &[Job], weighted_sum: WeightedSum, work: &mut Work) -> Option<bool> {
    all_valid_in(Shape::for_points(3 * jobs.len()), jobs, weighted_sum, work)
}

/// As [`all_valid`], with this digit shape.
pub(super) fn all_valid_in(
    shape: Shape,
    jobs: &[Job],
    weighted_sum: WeightedSum,
    work: &mut Work,
) -> Option<bool> {
    let expected = prepare(shape, jobs, work);
    if !weighted_sum(work, generator_multiples()) {
        return None;
    }
    is_multiple(&work.sums, expected)
}

/// Fills the operands and returns the expected multiple of the generator.
fn prepare(shape: Shape, jobs: &[Job], work: &mut Work) -> Scalar {
    let mut weights = Weights::new(jobs);
    let mut keys = Keys::with_capacity(jobs.len());
    let mut total = Scalar::default();
    let [first_halves, second_halves, nonce_digits] = &mut work.digits;
    nonce_digits.clear();
    for job in jobs {
        let weight = weights.next();
        total = total.add(weight.mul(job.u1));
        keys.add(&job.key.x, weight.mul(job.u2));
        let digits = Digits::of_odd([weight.0[0], weight.0[1], weight.0[2]]);
        nonce_digits.push(digits.of_bits(shape.bits()));
    }
    first_halves.clear();
    second_halves.clear();
    for (_, factor) in &keys.list {
        let [first, second] = factor.split();
        first_halves.push(first.of_bits(shape.bits()));
        second_halves.push(second.of_bits(shape.bits()));
    }
    work.shape = shape;
    transpose(&keys.list, |(x, _)| *x, &mut work.keys);
    transpose(jobs, |job| job.r, &mut work.nonces);
    generators(shape).add(total.negate())
}

/// Keys and their factors, without duplicates.
struct Keys {
    list: Vec<([u64; 4], Scalar)>,
    /// Open-addressing hash table of list indexes plus one; 0 is free. The size is a power of two, at least twice the maximum
    /// length of the list.
    slots: Vec<u32>,
}

impl Keys {
    fn with_capacity(capacity: usize) -> Self {
        let slots = vec![0; (2 * capacity).next_power_of_two()];
        Self { list: Vec::with_capacity(capacity), slots }
    }

    /// Adds a factor of a key. Keys chosen to collide cost at most one comparison per pair of keys.
    fn add(&mut self, x: &[u64; 4], factor: Scalar) {
        let mask = self.slots.len() - 1;
        // x is practically random, so some of its bits serve as a hash.
        let mut slot = x[1] as usize & mask;
        loop {
            let entry = &mut self.slots[slot];
            if *entry == 0 {
                self.list.push((*x, factor));
                *entry = self.list.len() as u32;
                return;
            }
            let (key, sum) = &mut self.list[*entry as usize - 1];
            if key == x {
                *sum = sum.add(factor);
                return;
            }
            slot = (slot + 1) & mask;
        }
    }
}

/// Words of each lane, with the last group padded by its last element.
fn transpose<T>(of: &[T], x: impl Fn(&T) -> [u64; 4], out: &mut Vec<[[u64; LANES]; 4]>) {
    out.clear();
    for of in of.chunks(LANES) {
        let mut words = [[0; LANES]; 4];
        for lane in 0..LANES {
            let x = x(&of[lane.min(of.len() - 1)]);
            for (word, x) in words.iter_mut().zip(x) {
                word[lane] = x;
            }
        }
        out.push(words);
    }
}

/// Contribution of the initial generator points of rows and columns: row i with `(2i + 1) G` counts `2 columns i` times, column j
/// with the multiple after those of the rows `2j + 1` times.
fn generators(shape: Shape) -> Scalar {
    let (rows, columns) = (shape.rows() as u64, shape.columns() as u64);
    let of_rows: u64 = (0..rows).map(|i| 2 * columns * i * (2 * i + 1)).sum();
    let of_columns: u64 = (0..columns).map(|j| (2 * j + 1) * (2 * (rows + j) + 1)).sum();
    let mut sum = Scalar::default();
    for _ in 0..shape.windows() {
        let shifted = sum.mul(Scalar([1 << shape.width(), 0, 0, 0]));
        sum = shifted.add(Scalar([of_rows + of_columns, 0, 0, 0]));
    }
    sum
}

/// True if the points add up to the multiple of the generator; `None` at infinity.
fn is_multiple(points: &[Line], factor: Scalar) -> Option<bool> {
    let mut keys = Vec::with_capacity(points.len());
    for line in points {
        let mut bytes = [4; 65];
        for (chunk, word) in
            bytes[1..].as_chunks_mut::<8>().0.iter_mut().zip([3, 2, 1, 0, 7, 6, 5, 4])
        {
            *chunk = line.0[word].to_be_bytes();
        }
        keys.push(PublicKey::from_slice(&bytes).ok()?);
    }
    let keys: Vec<&PublicKey> = keys.iter().collect();
    let sum = PublicKey::combine_keys(&keys).ok()?;
    let expected = generator()?.mul_tweak(&Tweak::from_be_bytes(factor.to_bytes()).ok()?).ok()?;
    Some(sum == expected)
}

/// Weights from a hash of the batch and a counter, two per digest.
struct Weights {
    seed: [u8; 32],
    digest: [u8; 32],
    counter: u64,
}

impl Weights {
    /// Hashes e and s of each signature. They determine the rest: e is itself a hash of key and r.
    fn new(jobs: &[Job]) -> Self {
        let mut hasher: Sha256 = TaggedHasher::new("assay/weights").start();
        for job in jobs {
            let mut bytes = [0; 64];
            let words = job.u1.0.into_iter().chain(job.u2.0);
            for (chunk, word) in bytes.as_chunks_mut::<8>().0.iter_mut().zip(words) {
                *chunk = word.to_le_bytes();
            }
            hasher.update(&bytes);
        }
        Self { seed: hasher.finalize(), digest: [0; 32], counter: 0 }
    }

    /// Odd, as required by the digits, with 128 bits above.
    fn next(&mut self) -> Scalar {
        let half = self.counter as usize % 2;
        if half == 0 {
            let mut hasher = Sha256::new();
            hasher.update(&self.seed);
            hasher.update(&self.counter.to_le_bytes());
            self.digest = hasher.finalize();
        }
        self.counter += 1;
        let words = self.digest.as_chunks::<8>().0;
        let [low, high] = [words[2 * half], words[2 * half + 1]].map(u64::from_le_bytes);
        Scalar([low << 1 | 1, high << 1 | low >> 63, high >> 63, 0])
    }
}
