//! BIP-0340 signatures of a batch as one equation.
//!
//! With weights a that nobody could know before the signatures were fixed, the sum over the batch of
//! `a (s G - e P - R)` is zero when all signatures are valid, and otherwise with a probability below
//! 2^-127 (BIP-0340, "Batch Verification"). Weights come from a hash of all operands.

use assay_hash::{Sha256, TaggedHasher};
use secp256k1::{PublicKey, Scalar as Tweak};

use super::prepare::Job;
use super::table::generator_multiples;
use crate::bch::generator;
use crate::lanes::msm::{BUCKETS, WIDTH, WINDOWS, Work};
use crate::lanes::{LANES, Line};
use crate::scalar::{Digits, Scalar};

/// Computes the sums of [`Work`]: the entry of a backend.
pub(super) type WeightedSum = fn(&mut Work, &[Line]) -> bool;

/// Whether all signatures are valid, as far as this can tell: `false` is no verdict.
pub(super) fn all_valid(jobs: &[Job], weighted_sum: WeightedSum, work: &mut Work) -> bool {
    let expected = prepare(jobs, work);
    weighted_sum(work, generator_multiples()) && is_multiple(&work.sums, expected).unwrap_or(false)
}

/// Fills the operands and returns which multiple of the generator the sum must be.
fn prepare(jobs: &[Job], work: &mut Work) -> Scalar {
    work.key_digits.clear();
    work.nonce_digits.clear();
    let mut weights = Weights::new(jobs);
    let mut total = Scalar::default();
    for job in jobs {
        let words = weights.next();
        // Odd, as digits need it, with 128 bits above.
        let weight = Scalar([words[0] << 1 | 1, words[1] << 1 | words[0] >> 63, words[1] >> 63, 0]);
        total = total.add(weight.mul(job.u1));
        work.key_digits.push(weight.mul(job.u2).split());
        work.nonce_digits.push(Digits::of_odd([weight.0[0], weight.0[1], weight.0[2]]));
    }
    transpose(jobs, |job| job.key.x, &mut work.keys);
    transpose(jobs, |job| job.r, &mut work.nonces);
    generators().add(total.negate())
}

/// Words of each lane, the last group filled up with its last job.
fn transpose(jobs: &[Job], x: impl Fn(&Job) -> [u64; 4], out: &mut Vec<[[u64; LANES]; 4]>) {
    out.clear();
    for jobs in jobs.chunks(LANES) {
        let mut words = [[0; LANES]; 4];
        for lane in 0..LANES {
            let x = x(&jobs[lane.min(jobs.len() - 1)]);
            for (word, x) in words.iter_mut().zip(x) {
                word[lane] = x;
            }
        }
        out.push(words);
    }
}

/// What the generators in the buckets add: (2b + 1) (2b + 1) G in bucket b of every window.
fn generators() -> Scalar {
    let mut squares = 0;
    for bucket in 0..BUCKETS as u64 {
        squares += (2 * bucket + 1) * (2 * bucket + 1);
    }
    let mut sum = Scalar::default();
    for _ in 0..WINDOWS {
        sum = sum.mul(Scalar([1 << WIDTH, 0, 0, 0])).add(Scalar([squares, 0, 0, 0]));
    }
    sum
}

/// Whether the points add up to a multiple of the generator; `None` at infinity.
fn is_multiple(points: &[Line], factor: Scalar) -> Option<bool> {
    let mut sum: Option<PublicKey> = None;
    for line in points {
        let mut bytes = [4; 65];
        for (chunk, word) in
            bytes[1..].as_chunks_mut::<8>().0.iter_mut().zip([3, 2, 1, 0, 7, 6, 5, 4])
        {
            *chunk = line.0[word].to_be_bytes();
        }
        let point = PublicKey::from_slice(&bytes).ok()?;
        sum = Some(match sum {
            Some(sum) => sum.combine(&point).ok()?,
            None => point,
        });
    }
    let expected = generator()?.mul_tweak(&Tweak::from_be_bytes(factor.to_bytes()).ok()?).ok()?;
    Some(sum? == expected)
}

/// Pairs of words from a hash of the batch and a counter.
struct Weights {
    seed: [u8; 32],
    counter: u64,
}

impl Weights {
    fn new(jobs: &[Job]) -> Self {
        let mut hasher: Sha256 = TaggedHasher::new("assay/weights").start();
        for job in jobs {
            for words in [job.key.x, job.r, job.u1.0, job.u2.0] {
                let mut bytes = [0; 32];
                for (chunk, word) in bytes.as_chunks_mut::<8>().0.iter_mut().zip(words) {
                    *chunk = word.to_le_bytes();
                }
                hasher.update(&bytes);
            }
        }
        Self { seed: hasher.finalize(), counter: 0 }
    }

    fn next(&mut self) -> [u64; 2] {
        let mut hasher = Sha256::new();
        hasher.update(&self.seed);
        hasher.update(&self.counter.to_le_bytes());
        self.counter += 1;
        let digest = hasher.finalize();
        let words = digest.as_chunks::<8>().0;
        [u64::from_le_bytes(words[0]), u64::from_le_bytes(words[1])]
    }
}
