//! Scalars against their definitions, and operands that reach every exceptional addition.

use secp256k1::PublicKey;
use secp256k1::Scalar as Tweak;

use super::prepare::Job;
use super::prover::fill;
use super::table::{coordinates, generator_multiples};
use super::{Backend, BatchVerifier, Check, weighted};
use crate::bch::generator;
use crate::lanes::LANES;
use crate::lanes::group::{G_WINDOWS, Group, Key, Q_WINDOWS, Question};
use crate::lanes::msm::{Shape, Work};
use crate::scalar::{Digits, ORDER, Scalar, is_below, words};

/// Multiplies points as BETA multiplies their x coordinates.
const LAMBDA: Scalar = Scalar([
    0xdf02_967c_1b23_bd72,
    0x122e_22ea_2081_6678,
    0xa526_1c02_8812_645a,
    0x5363_ad4c_c05c_30e0,
]);

/// The backends with lanes on this CPU, never none: the others are libsecp256k1 under another name, and prove nothing.
pub(super) fn proving_backends() -> Vec<Backend> {
    Backend::all()
        .filter(|backend| *backend != Backend::Libsecp)
        .filter(|backend| {
            if !backend.available() {
                println!("skipped: this CPU does not run {}", backend.name());
            }
            backend.available()
        })
        .collect()
}

fn bytes(scalar: Scalar) -> [u8; 32] {
    let mut bytes = [0; 32];
    for (chunk, word) in bytes.rchunks_exact_mut(8).zip(scalar.0) {
        chunk.copy_from_slice(&word.to_be_bytes());
    }
    bytes
}

fn add(a: Scalar, b: Scalar) -> Scalar {
    let mut sum = [0; 4];
    let mut carry = false;
    for ((sum, a), b) in sum.iter_mut().zip(a.0).zip(b.0) {
        (*sum, carry) = a.carrying_add(b, carry);
    }
    if carry || !is_below(&sum, &ORDER) {
        let mut borrow = false;
        for (sum, order) in sum.iter_mut().zip(ORDER) {
            (*sum, borrow) = sum.borrowing_sub(order, borrow);
        }
    }
    Scalar(sum)
}

/// Multiplication by shift and add.
fn slow_mul(a: Scalar, b: Scalar) -> Scalar {
    let mut product = Scalar::default();
    for bit in (0..256).rev() {
        product = add(product, product);
        if b.0[bit / 64] >> (bit % 64) & 1 == 1 {
            product = add(product, a);
        }
    }
    product
}

fn small(value: i64) -> Scalar {
    let scalar = Scalar([value.unsigned_abs(), 0, 0, 0]);
    if value < 0 { scalar.negate() } else { scalar }
}

fn hashed(seed: u32, tag: u8) -> Scalar {
    let [a, b, c, d] = seed.to_le_bytes();
    Scalar::reduced(&assay_hash::sha256(&[a, b, c, d, tag]))
}

/// Zero, one, the largest, halves, powers of lambda, and others.
fn scalars() -> Vec<Scalar> {
    let mut scalars: Vec<Scalar> = (-3..=3).map(small).collect();
    let half = small(2).inverse();
    scalars.extend([half, half.negate(), LAMBDA, LAMBDA.negate(), slow_mul(LAMBDA, LAMBDA)]);
    scalars.extend((0..256).step_by(13).map(|bit| {
        let mut words = [0; 4];
        words[bit / 64] = 1 << (bit % 64);
        Scalar(words)
    }));
    scalars.extend((0..60).map(|seed| hashed(seed, 0)));
    scalars
}

#[test]
fn scalars_multiply_and_invert() {
    let scalars = scalars();
    for &a in &scalars {
        for &b in &scalars {
            assert_eq!(a.mul(b), slow_mul(a, b), "{a:x?} * {b:x?}");
        }
        let unit = if a.is_zero() { a } else { Scalar::ONE };
        assert_eq!(a.mul(a.inverse()), unit);
        assert_eq!(add(a, a.negate()), Scalar::default());
    }
    assert_eq!(Scalar::reduced(&bytes(Scalar(ORDER))), Scalar::default());
    assert_eq!(Scalar::from_bytes(&bytes(Scalar(ORDER))), None);
}

/// The sum of the digits from the top down to `lowest`, at its weight.
fn digits_value<const WIDTH: usize>(digits: &Digits, windows: usize, lowest: usize) -> Scalar {
    (lowest..windows).rev().fold(Scalar::default(), |value, window| {
        let digit = 2 * digits.window::<WIDTH>(window) as i64 + 1 - (1 << WIDTH);
        add(value.mul(small(1 << WIDTH)), small(digit))
    })
}

#[test]
fn digits_add_up() {
    for scalar in scalars() {
        let [low, high] = scalar.split();
        for (low, high) in [
            (digits_value::<5>(&low, Q_WINDOWS, 0), digits_value::<5>(&high, Q_WINDOWS, 0)),
            (digits_value::<13>(&low, G_WINDOWS, 0), digits_value::<13>(&high, G_WINDOWS, 0)),
        ] {
            assert_eq!(add(low, high.mul(LAMBDA)), scalar);
        }
    }
}

fn multiple(point: &PublicKey, scalar: Scalar) -> Option<PublicKey> {
    point.mul_tweak(&Tweak::from_be_bytes(bytes(scalar)).expect("below the order")).ok()
}

/// `u1 G + u2 Q`, or `None` for infinity.
fn sum(u1: Scalar, u2: Scalar, key: &PublicKey) -> Option<PublicKey> {
    let first = multiple(&generator().expect("on the curve"), u1);
    match (first, multiple(key, u2)) {
        (Some(first), Some(second)) => first.combine(&second).ok(),
        (first, second) => first.or(second),
    }
}

fn job(u1: Scalar, u2: Scalar, key: &PublicKey, r: &PublicKey) -> Job {
    let (x, y) = coordinates(key);
    let key = Key { x, is_odd: y[0] & 1 == 1 };
    let (r, y) = coordinates(r);
    Job { index: 0, key, r, is_r_odd: y[0] & 1 == 1, u1, u2 }
}

/// A signature that is valid by its choice of message.
pub(super) struct Forged {
    pubkey: Vec<u8>,
    der_sig: Vec<u8>,
    msg: [u8; 32],
}

fn der(r: &[u8; 32], s: &[u8; 32]) -> Vec<u8> {
    let mut sig = vec![0x30, 70, 2, 33, 0];
    sig.extend(r);
    sig.extend([2, 33, 0]);
    sig.extend(s);
    sig
}

/// Makes `u1 G + u2 Q` the equation of a signature: s = r / u2, m = u1 s.
fn forge(u1: Scalar, u2: Scalar, key: &PublicKey) -> Option<Forged> {
    let (x, _) = coordinates(&sum(u1, u2, key)?);
    let mut r = [0; 32];
    r.copy_from_slice(&bytes(Scalar(x)));
    let r = Scalar::reduced(&r);
    let s = r.mul(u2.inverse());
    let pubkey = key.serialize().to_vec();
    Some(Forged { pubkey, der_sig: der(&bytes(r), &bytes(s)), msg: bytes(u1.mul(s)) })
}

impl Forged {
    pub(super) fn into_parts(self) -> (Vec<u8>, Vec<u8>, [u8; 32]) {
        (self.pubkey, self.der_sig, self.msg)
    }

    fn check(&self) -> Check<'_> {
        Check::Ecdsa { pubkey: &self.pubkey, der_sig: &self.der_sig, msg: &self.msg }
    }
}

/// A step of the ladder: the sum so far as `a + b q` times G, and the addend likewise.
struct Addition {
    name: String,
    sum: (Scalar, Scalar),
    addend: (Scalar, Scalar),
}

/// Follows `lanes::curve::multiply` with scalars instead of points.
fn additions(u1: Scalar, u2: Scalar) -> Vec<Addition> {
    let (u1, u2) = (u1.split(), u2.split());
    let factors = [Scalar::ONE, LAMBDA];
    let mut additions = Vec::new();
    let mut sum = (Scalar::default(), Scalar::default());
    for bit in (0..5 * Q_WINDOWS).rev() {
        sum = (add(sum.0, sum.0), add(sum.1, sum.1));
        let mut step = |name: String, addend: (Scalar, Scalar)| {
            additions.push(Addition { name, sum, addend });
            sum = (add(sum.0, addend.0), add(sum.1, addend.1));
        };
        for half in 0..2 {
            if bit % 5 == 0 {
                let digit = 2 * u2[half].window::<5>(bit / 5) as i64 - 31;
                let addend = (Scalar::default(), small(digit).mul(factors[half]));
                step(format!("key, bit {bit}, half {half}"), addend);
            }
        }
        for half in 0..2 {
            if bit % 13 == 0 {
                let digit = 2 * u1[half].window::<13>(bit / 13) as i64 - 8191;
                let addend = (small(digit).mul(factors[half]), Scalar::default());
                step(format!("generator, bit {bit}, half {half}"), addend);
            }
        }
    }
    additions
}

/// The key q for which the addition doubles (or cancels), if one exists.
fn exceptional_key(addition: &Addition, cancels: bool) -> Option<Scalar> {
    let sign = |scalar: Scalar| if cancels { scalar.negate() } else { scalar };
    // a + b q = c + d q
    let a = add(addition.sum.0, sign(addition.addend.0).negate());
    let b = add(addition.sum.1, sign(addition.addend.1).negate());
    let q = a.negate().mul(b.inverse());
    (!q.is_zero() && !b.is_zero()).then_some(q)
}

/// Signatures with keys that make additions exceptional: every possible one, doubling and cancelling.
pub(super) fn exceptional(seed: u32) -> Vec<Forged> {
    let generator = generator().expect("on the curve");
    let mut forged = Vec::new();
    for index in 0..2 * (Q_WINDOWS + G_WINDOWS) {
        for cancels in [false, true] {
            let seed = seed.wrapping_add((2 * index + usize::from(cancels)) as u32);
            let (u1, u2) = (hashed(seed, 1), hashed(seed, 2));
            if let Some(q) = exceptional_key(&additions(u1, u2)[index], cancels) {
                forged.extend(forge(u1, u2, &multiple(&generator, q).expect("not infinity")));
            }
        }
    }
    forged
}

/// For every addition of the ladder there are keys that make it add a point to itself or to its negation. Such a lane must not be
/// proven, its neighbours must be, and the result must be correct.
#[test]
fn every_exceptional_addition_is_detected() {
    let generator = generator().expect("on the curve");
    let mut verifiers: Vec<BatchVerifier> =
        proving_backends().into_iter().map(BatchVerifier::with_backend).collect();
    let (mut cases, mut proven, mut answers) = (0, Vec::new(), Vec::new());
    let count = additions(Scalar::ONE, Scalar::ONE).len();
    assert_eq!(count, 2 * (Q_WINDOWS + G_WINDOWS));
    for index in 0..count {
        for cancels in [false, true] {
            let seed = (2 * index + usize::from(cancels)) as u32;
            let (u1, u2) = (hashed(seed, 1), hashed(seed, 2));
            let addition = &additions(u1, u2)[index];
            let Some(q) = exceptional_key(addition, cancels) else { continue };
            cases += 1;
            let key = multiple(&generator, q).expect("not infinity");
            let bad = cases % LANES;
            let mut forged: Vec<Forged> = (0..LANES as u32)
                .map(|lane| {
                    let key = multiple(&generator, hashed(seed, 10 + lane as u8));
                    forge(u1, hashed(seed, 20 + lane as u8), &key.expect("not infinity"))
                })
                .map(|forged| forged.expect("not infinity"))
                .collect();
            // The very last addition cancels only if the whole sum is infinity.
            let Some(exceptional) = forge(u1, u2, &key) else {
                assert!(cancels && index + 1 == count, "{}", addition.name);
                continue;
            };
            forged[bad] = exceptional;
            let checks: Vec<Check<'_>> = forged.iter().map(Forged::check).collect();
            for verifier in &mut verifiers {
                let backend = verifier.backend();
                verifier.prove(&checks, &mut proven);
                for (lane, &proven) in proven.iter().enumerate() {
                    assert_eq!(proven, lane != bad, "{}, {backend:?}, lane {lane}", addition.name);
                    assert!(!verifier.is_refuted(lane), "{}, {backend:?}", addition.name);
                }
                verifier.verify(&checks, &mut answers);
                assert_eq!(answers, [true; LANES], "{}, {backend:?}", addition.name);
            }
        }
    }
    println!("{cases} exceptional additions");
    // All except those among multiples of the key alone, before the generator's first digit.
    assert!(cases > 130, "only {cases}");
}

/// Small multiples of the generator and of lambda G as keys, with scalars at their edges.
pub(super) fn related(seed: u32) -> Vec<Forged> {
    let generator = generator().expect("on the curve");
    let edges: Vec<Scalar> = scalars().into_iter().take(14).filter(|s| !s.is_zero()).collect();
    let keys = [1, 2, 3, 31, 8191, 1 << 40].map(|key| small(key + i64::from(seed)));
    let mut forged = Vec::new();
    for key in keys {
        for (index, factor) in [Scalar::ONE, LAMBDA, LAMBDA.mul(LAMBDA)].into_iter().enumerate() {
            let key = key.mul(factor);
            let key = if index % 2 == 0 { key } else { key.negate() };
            let key = multiple(&generator, key).expect("not infinity");
            for (k, &u1) in edges.iter().enumerate() {
                let u2 = edges[(k * 5 + index) % edges.len()];
                forged.extend(forge(u1, u2, &key));
                forged.extend(forge(Scalar::default(), u2, &key));
            }
        }
    }
    forged
}

#[test]
fn related_keys_and_edge_scalars() {
    let forged = related(0);
    assert!(forged.len() > 400);
    let checks: Vec<Check<'_>> = forged.iter().map(Forged::check).collect();
    let mut answers = Vec::new();
    for backend in proving_backends() {
        BatchVerifier::with_backend(backend).verify(&checks, &mut answers);
        assert!(answers.iter().all(|&answer| answer), "{backend:?}");
    }
}

/// Nonce points whose x coordinate is above the group order: r = x - n, and only r + n matches.
pub(super) fn above_order(seed: u32) -> Vec<Forged> {
    let mut forged = Vec::new();
    for offset in 1..40u8 {
        // 2 || (n + offset)
        let mut compressed = [2; 33];
        compressed[1..].copy_from_slice(&bytes(Scalar(ORDER)));
        compressed[32] += offset;
        let Ok(point) = PublicKey::from_slice(&compressed) else { continue };
        let seed = seed.wrapping_add(offset.into());
        let (u1, u2) = (hashed(seed, 1), hashed(seed, 2));
        // Q = (R - u1 G) / u2
        let key = sum(u1.negate(), Scalar::ONE, &point).expect("not infinity");
        let key = multiple(&key, u2.inverse()).expect("not infinity");
        forged.extend(forge(u1, u2, &key));
    }
    forged
}

#[test]
fn r_plus_order_below_the_prime() {
    let forged = above_order(0);
    assert!(forged.len() > 5, "only {}", forged.len());
    let mut answers = Vec::new();
    for forged in forged {
        for backend in proving_backends() {
            let mut verifier = BatchVerifier::with_backend(backend);
            verifier.verify(&[forged.check(); 9], &mut answers);
            assert_eq!(answers, [true; 9], "{backend:?}");
            assert!((0..9).all(|index| !verifier.is_refuted(index)), "{backend:?}");
        }
    }
}

/// A tweak equal or opposite to its key: infinity, and a doubling.
#[test]
fn exceptional_tweaks() {
    let generator = generator().expect("on the curve");
    let mut groups = [Group::new()];
    for seed in 0..8 {
        let t = hashed(seed, 1);
        let double = multiple(&generator, t.mul(small(2))).expect("not infinity");
        let same = multiple(&generator, t).expect("not infinity");
        let ordinary = multiple(&generator, hashed(seed, 2)).expect("not infinity");
        let lane = seed as usize % LANES;
        let ordinary_sum = sum(t, Scalar::ONE, &ordinary).expect("not infinity");
        let mut jobs = vec![job(t, Scalar::ONE, &ordinary, &ordinary_sum); LANES];
        jobs[lane] = job(t, Scalar::ONE, &same, &double);
        jobs[(lane + 1) % LANES] = job(t.negate(), Scalar::ONE, &same, &double);
        fill(Question::Tweak, &mut groups[0], &jobs);
        let expected = !(1 << lane | 1 << ((lane + 1) % LANES));
        for backend in proving_backends() {
            let answer = backend.kernels().expect("it has lanes").answer;
            answer(Question::Tweak, &mut groups, generator_multiples());
            assert_eq!(groups[0].proven, expected, "{backend:?}");
        }
    }
}

/// A key off the curve must not be proven, whatever the sum.
#[test]
fn keys_off_the_curve_are_not_proven() {
    let mut groups = [Group::new()];
    let ordinary = multiple(&generator().expect("on the curve"), hashed(1, 1)).expect("finite");
    let r = sum(hashed(2, 1), hashed(2, 2), &ordinary).expect("finite");
    let mut jobs = vec![job(hashed(2, 1), hashed(2, 2), &ordinary, &r); LANES];
    // 5 is not an x coordinate.
    jobs[3].key.x = [5, 0, 0, 0];
    for question in [Question::Ecdsa, Question::Schnorr] {
        fill(question, &mut groups[0], &jobs);
        for backend in proving_backends() {
            let answer = backend.kernels().expect("it has lanes").answer;
            answer(question, &mut groups, generator_multiples());
            assert_eq!(groups[0].proven, !(1 << 3), "{backend:?}");
        }
    }
    assert_eq!(words(&[0; 32]), [0; 4]);
}

/// The sum must verify for valid statements (otherwise it would only be slow), and must fail for an invalid one.
#[test]
fn weighted_sums_verify() {
    let generator = generator().expect("on the curve");
    let even = |point: &PublicKey| coordinates(point).1[0] & 1 == 0;
    let mut jobs: Vec<Job> = (0..)
        .filter_map(|seed| {
            let key = multiple(&generator, hashed(seed, 1)).filter(even)?;
            let (u1, u2) = (hashed(seed, 2), hashed(seed, 3));
            let r = sum(u1, u2, &key).filter(even)?;
            Some(job(u1, u2, &key, &r))
        })
        .take(301)
        .collect();
    for backend in proving_backends() {
        let weighted_sum = backend.kernels().expect("it has lanes").weighted_sum;
        let mut work = Work::default();
        for count in [8, 13, 301] {
            let verdict = weighted::all_valid(&jobs[..count], weighted_sum, &mut work);
            assert_eq!(verdict, Some(true), "{backend:?}");
        }
        for points in [1, 1000, 3000, 10_000, 100_000] {
            let shape = Shape::for_points(points);
            let verdict = weighted::all_valid_in(shape, &jobs, weighted_sum, &mut work);
            assert_eq!(verdict, Some(true), "{backend:?}, {shape:?}");
        }
        jobs[200].u1 = jobs[200].u1.add(Scalar::ONE);
        let verdict = weighted::all_valid(&jobs, weighted_sum, &mut work);
        assert_eq!(verdict, Some(false), "{backend:?}");
        let verdict = weighted::all_valid(&jobs[..200], weighted_sum, &mut work);
        assert_eq!(verdict, Some(true), "{backend:?}");
        jobs[200].u1 = jobs[200].u1.add(Scalar::ONE.negate());
    }
}

/// A batch with few keys is verified by a sum too.
#[test]
fn weighted_sums_merge_keys() {
    let generator = generator().expect("on the curve");
    let even = |point: &PublicKey| coordinates(point).1[0] & 1 == 0;
    let keys: Vec<PublicKey> = (0..)
        .filter_map(|seed| multiple(&generator, hashed(seed, 1)).filter(even))
        .take(3)
        .collect();
    let jobs: Vec<Job> = (0..)
        .filter_map(|seed| {
            let key = &keys[seed as usize % keys.len()];
            let (u1, u2) = (hashed(seed, 2), hashed(seed, 3));
            Some(job(u1, u2, key, &sum(u1, u2, key).filter(even)?))
        })
        .take(100)
        .collect();
    for backend in proving_backends() {
        let weighted_sum = backend.kernels().expect("it has lanes").weighted_sum;
        let mut work = Work::default();
        let verdict = weighted::all_valid(&jobs, weighted_sum, &mut work);
        assert_eq!(verdict, Some(true), "{backend:?}");
        assert_eq!(work.keys.len(), 1);
    }
}

#[test]
fn empty_and_single_batches() {
    let forged: Vec<Forged> = related(7).into_iter().take(6).collect();
    for backend in Backend::all() {
        let mut verifier = BatchVerifier::with_backend(backend);
        let mut answers = vec![true; 3];
        verifier.verify(&[], &mut answers);
        assert!(answers.is_empty());
        for count in 1..18 {
            let checks: Vec<Check<'_>> = (0..count).map(|k| forged[k % 6].check()).collect();
            verifier.verify(&checks, &mut answers);
            assert_eq!(answers, vec![true; count]);
        }
    }
}

#[test]
fn names_round_trip() {
    for backend in Backend::all() {
        assert_eq!(Backend::by_name(backend.name()), Some(backend));
    }
    assert_eq!(Backend::by_name("abacus"), None);
    assert!(Backend::detect().available());
    // It is slower than the library.
    assert_ne!(Backend::detect(), Backend::Portable);
    assert!(!BatchVerifier::new().has_failed_self_test());
}
