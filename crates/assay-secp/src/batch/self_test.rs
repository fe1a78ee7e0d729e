//! Known-answer tests, run before a backend is trusted.

use secp256k1::Scalar as Tweak;

use super::prepare::Job;
use super::prover::fill;
use super::table::{coordinates, generator_multiples};
use super::weighted;
use crate::backend::Kernels;
use crate::bch::generator;
use crate::jacobi::is_square;
use crate::lanes::LANES;
use crate::lanes::group::{Group, Key, Question};
use crate::lanes::msm::Work;
use crate::scalar::{Scalar, words};

/// True if the backend proves eight valid statements of every kind and no changed one, refutes changed ECDSA statements, and
/// likewise for a weighted sum.
pub(super) fn passes(kernels: &Kernels) -> bool {
    [Question::Ecdsa, Question::Schnorr, Question::SchnorrBch, Question::Tweak]
        .into_iter()
        .all(|question| passes_question(kernels, question).unwrap_or(false))
        && passes_weighted(kernels).unwrap_or(false)
        && passes_recovery(kernels).unwrap_or(false)
}

/// Recovers the sums of the statements.
fn passes_recovery(kernels: &Kernels) -> Option<bool> {
    let mut groups = [Group::new()];
    let (mut jobs, mut sums) = (Vec::with_capacity(LANES), Vec::with_capacity(LANES));
    for seed in 0..LANES as u8 {
        let (job, _) = statement(Question::Schnorr, seed)?;
        sums.push((job.r, job.is_r_odd));
        jobs.push(Job { r: [0; 4], is_r_odd: false, ..job });
    }
    fill(Question::Recover, &mut groups[0], &jobs);
    (kernels.answer)(Question::Recover, &mut groups, generator_multiples());
    let is_right = sums.iter().enumerate().all(|(lane, (right, is_odd))| {
        let [x, y] = groups[0].sum(lane);
        x == *right && (y[0] & 1 == 1) == *is_odd
    });
    Some(is_right && groups[0].proven == u8::MAX)
}

fn passes_weighted(kernels: &Kernels) -> Option<bool> {
    let mut jobs = Vec::new();
    for seed in 0..32 {
        let (job, _) = statement(Question::Schnorr, seed)?;
        // The sum assumes that both y coordinates are even.
        if !job.key.is_odd && !job.is_r_odd {
            jobs.push(job);
        }
    }
    let mut work = Work::default();
    let is_proven = weighted::all_valid(&jobs, kernels.weighted_sum, &mut work)?;
    jobs.first_mut()?.u1.0[0] ^= 1;
    Some(is_proven && !weighted::all_valid(&jobs, kernels.weighted_sum, &mut work)?)
}

fn passes_question(kernels: &Kernels, question: Question) -> Option<bool> {
    let mut jobs = Vec::with_capacity(LANES);
    for seed in 0..=u8::MAX {
        if jobs.len() == LANES {
            break;
        }
        let (job, is_y_square) = statement(question, seed)?;
        // For BCH only half of the points have the required y.
        if is_y_square || question != Question::SchnorrBch {
            jobs.push(job);
        }
    }
    let table = generator_multiples();
    let mut groups = [Group::new()];
    let mut ask = |jobs: &[Job]| {
        fill(question, &mut groups[0], jobs);
        (kernels.answer)(question, &mut groups, table);
        (groups[0].proven, groups[0].refuted)
    };
    let all = (u8::MAX, 0);
    let mut is_right = ask(&jobs) == all;
    for lane in 0..LANES {
        let mut changed = jobs.clone();
        match lane % 4 {
            0 => changed[lane].r[lane % 3] ^= 1 << (7 * lane),
            1 => changed[lane].u1.0[lane % 3] ^= 1 << (5 * lane),
            2 => changed[lane].key.x = changed[lane - 1].key.x,
            _ => changed[lane].key.is_odd ^= true,
        }
        let refuted = if question == Question::Ecdsa { 1 << lane } else { 0 };
        is_right &= ask(&changed) == (!(1 << lane), refuted);
        // Every statement in every lane.
        jobs.rotate_left(1);
        is_right &= ask(&jobs) == all;
    }
    Some(is_right)
}

/// The valid statement of a seed, and true if the y coordinate of its R is a square.
fn statement(question: Question, seed: u8) -> Option<(Job, bool)> {
    let hash = |tag: u8| assay_hash::sha256(&[seed, tag]);
    let tweak = |bytes: [u8; 32]| Tweak::from_be_bytes(bytes).ok();
    let key = generator()?.mul_tweak(&tweak(hash(1))?).ok()?;
    let (u1, mut u2) = (hash(2), hash(3));
    if question == Question::Tweak {
        u2 = [0; 32];
        u2[31] = 1;
    }
    let sum = key.mul_tweak(&tweak(u2)?).ok()?.add_exp_tweak(&tweak(u1)?).ok()?;
    let (x, y) = coordinates(&key);
    let key = Key { x, is_odd: y[0] & 1 == 1 };
    let (r, y) = coordinates(&sum);
    let mut y_bytes = [0; 32];
    y_bytes.copy_from_slice(&sum.serialize_uncompressed()[33..]);
    let (u1, u2) = (Scalar(words(&u1)), Scalar(words(&u2)));
    Some((Job { index: 0, key, r, is_r_odd: y[0] & 1 == 1, u1, u2 }, is_square(&y_bytes)))
}

#[cfg(test)]
mod tests {
    use crate::Backend;

    #[test]
    fn every_backend_passes() {
        for backend in Backend::all() {
            assert!(backend.passes_self_test(), "{}", backend.name());
        }
    }
}
