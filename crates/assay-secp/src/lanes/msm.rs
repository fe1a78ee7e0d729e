//! One sum of many multiples: Pippenger's buckets, filled by affine additions that share inversions.
//!
//! Scalars are sums of odd digits, as everywhere here, so bucket b collects the points whose digit is
//! `2b + 1` or its negation. Every bucket starts with a multiple of the generator, so none is empty;
//! the caller subtracts what that adds. Additions of points with equal x are noticed, and then there
//! is no result: nothing is decided by this module alone.

use super::curve::{Affine, BETA, Jacobian, load_points};
use super::field::{self, Columns, Fe, LIMBS, Sum};
use super::{LANES, Lanes, Line};
use crate::scalar::Digits;

/// Bits of a window.
pub(crate) const WIDTH: usize = 10;

/// Windows of half a scalar.
pub(crate) const WINDOWS: usize = 13;

/// Buckets of a window, of the digits 1 to 1023.
pub(crate) const BUCKETS: usize = 512;

/// Marks a reference to the negation of a node.
const NEGATIVE: u32 = 1 << 31;

/// Operands, memory and result of a sum.
#[derive(Debug, Default)]
pub(crate) struct Work {
    /// x coordinates of keys in groups of eight, all lanes set.
    pub(crate) keys: Vec<[[u64; LANES]; 4]>,
    /// x coordinates of nonces.
    pub(crate) nonces: Vec<[[u64; LANES]; 4]>,
    /// Digits of both halves of the factor of each key, in order.
    pub(crate) key_digits: Vec<[Digits; 2]>,
    /// Digits of the factor of each nonce.
    pub(crate) nonce_digits: Vec<Digits>,
    /// The sum of window w times 2^(10 w).
    pub(crate) sums: Vec<Line>,
    /// Points: keys, keys times lambda, nonces, generators, and sums within buckets.
    nodes: Vec<Line>,
    /// References by bucket, and those of the next level.
    refs: Vec<u32>,
    next: Vec<u32>,
    pairs: Vec<[u32; 2]>,
    prefixes: Vec<[[u64; LANES]; LIMBS]>,
    buckets: Vec<Line>,
}

/// Sets `sums` for keys with even y times their factors, minus nonces with even y times theirs, plus
/// the generator multiples of the buckets. `false` if a coordinate belongs to no point or an addition
/// was exceptional.
#[inline(always)]
pub(crate) fn sum<L: Lanes>(work: &mut Work, table: &[Line]) -> bool {
    work.nodes.clear();
    if !push_points::<L>(&work.keys, 0, &mut work.nodes) {
        return false;
    }
    push_endomorphism::<L>(&mut work.nodes);
    if !push_points::<L>(&work.nonces, u8::MAX, &mut work.nodes) {
        return false;
    }
    let generators = work.nodes.len();
    work.nodes.extend_from_slice(&table[..BUCKETS]);
    let temporary = work.nodes.len();
    work.buckets.clear();
    for window in 0..WINDOWS {
        work.nodes.truncate(temporary);
        let mut sizes = sort(work, window, generators as u32);
        if !fill_buckets::<L>(work, &mut sizes) {
            return false;
        }
        for &reference in &work.refs {
            // Either a generator, which is never negated, or a sum.
            debug_assert!(reference & NEGATIVE == 0);
            work.buckets.push(work.nodes[reference as usize]);
        }
    }
    reduce::<L>(work)
}

/// Decompresses x coordinates to points whose y is odd in the lanes of the mask.
#[inline(always)]
fn push_points<L: Lanes>(groups: &[[[u64; LANES]; 4]], odd: u8, nodes: &mut Vec<Line>) -> bool {
    let seven = Fe::<L>::constant([7, 0, 0, 0, 0]);
    for pair in groups.chunks(2) {
        let mut xs = [Fe::<L>::one(); 2];
        let mut cubics = [seven; 2];
        for k in 0..pair.len() {
            let [a, b, c, d] = &pair[k];
            xs[k] = Fe::from_words([L::load(a), L::load(b), L::load(c), L::load(d)]);
            let cube = xs[k].sqr().mul(&xs[k]);
            cubics[k] = Sum::primes(0).plus(&cube).plus(&seven).carry().mul(&Fe::one());
        }
        let roots = field::square_roots(&cubics);
        for k in 0..pair.len() {
            if roots[k].sqr().equals(&cubics[k]) != u8::MAX {
                return false;
            }
            let y = roots[k].negate_where(roots[k].odd() ^ odd).mul(&Fe::one());
            push_lines(&xs[k], &y, nodes);
        }
    }
    true
}

/// Appends one line per lane; both elements are weak.
#[inline(always)]
fn push_lines<L: Lanes>(x: &Fe<L>, y: &Fe<L>, nodes: &mut Vec<Line>) {
    let [a, b, c, d] = x.to_words();
    let [e, f, g, h] = y.to_words();
    let mut lines = [Line([0; 8]); LANES];
    for (row, line) in L::transpose([a, b, c, d, e, f, g, h]).into_iter().zip(&mut lines) {
        row.store(&mut line.0);
    }
    nodes.extend_from_slice(&lines);
}

/// Appends lambda times every point.
#[inline(always)]
fn push_endomorphism<L: Lanes>(nodes: &mut Vec<Line>) {
    for first in (0..nodes.len()).step_by(LANES) {
        let refs = [0, 1, 2, 3, 4, 5, 6, 7].map(|lane| (first + lane) as u32);
        let point = load_nodes::<L>(nodes, &refs);
        push_lines(&point.x.mul(&Fe::constant(BETA)), &point.y, nodes);
    }
}

#[inline(always)]
fn load_nodes<L: Lanes>(nodes: &[Line], refs: &[u32; LANES]) -> Affine<L> {
    let line = |lane: usize| &nodes[(refs[lane] & !NEGATIVE) as usize];
    load_points([line(0), line(1), line(2), line(3), line(4), line(5), line(6), line(7)])
}

/// Bucket and sign of a digit.
#[inline(always)]
fn place(digits: &Digits, window: usize) -> (usize, u32) {
    let raw = digits.window::<WIDTH>(window) as usize;
    if raw < BUCKETS { (BUCKETS - 1 - raw, NEGATIVE) } else { (raw - BUCKETS, 0) }
}

/// Sorts references to all points by their bucket in this window; returns the sizes.
#[inline(always)]
fn sort(work: &mut Work, window: usize, generators: u32) -> [u32; BUCKETS] {
    let mut sizes = [1u32; BUCKETS];
    let halves = work.key_digits.iter().flatten();
    for digits in halves.chain(&work.nonce_digits) {
        sizes[place(digits, window).0] += 1;
    }
    let mut ends = [0u32; BUCKETS];
    let mut total = 0;
    for (end, size) in ends.iter_mut().zip(sizes) {
        *end = total;
        total += size;
    }
    work.refs.clear();
    work.refs.resize(total as usize, 0);
    let mut put = |bucket: usize, reference: u32| {
        work.refs[ends[bucket] as usize] = reference;
        ends[bucket] += 1;
    };
    for bucket in 0..BUCKETS {
        put(bucket, generators + bucket as u32);
    }
    let stride = LANES * work.keys.len();
    for (index, halves) in work.key_digits.iter().enumerate() {
        for (half, digits) in halves.iter().enumerate() {
            let (bucket, sign) = place(digits, window);
            put(bucket, (half * stride + index) as u32 | sign);
        }
    }
    for (index, digits) in work.nonce_digits.iter().enumerate() {
        let (bucket, sign) = place(digits, window);
        put(bucket, (2 * stride + index) as u32 | sign);
    }
    sizes
}

/// Adds what is in each bucket, in pairs of pairs, until each has one reference.
#[inline(always)]
fn fill_buckets<L: Lanes>(work: &mut Work, sizes: &mut [u32; BUCKETS]) -> bool {
    while work.refs.len() > BUCKETS {
        work.next.clear();
        work.pairs.clear();
        let first = work.nodes.len() as u32;
        let mut rest = work.refs.as_slice();
        for size in &mut *sizes {
            let (bucket, after) = rest.split_at(*size as usize);
            rest = after;
            let (pairs, single) = bucket.as_chunks::<2>();
            for pair in pairs {
                work.next.push(first + work.pairs.len() as u32);
                work.pairs.push(*pair);
            }
            work.next.extend_from_slice(single);
            *size = size.div_ceil(2);
        }
        while !work.pairs.len().is_multiple_of(LANES) {
            work.pairs.push(work.pairs[0]);
        }
        std::mem::swap(&mut work.refs, &mut work.next);
        if !add_pairs::<L>(&mut work.nodes, &work.pairs, &mut work.prefixes) {
            return false;
        }
    }
    true
}

/// Appends the sum of every pair, or fails if two x coordinates are equal.
#[inline(always)]
fn add_pairs<L: Lanes>(
    nodes: &mut Vec<Line>,
    pairs: &[[u32; 2]],
    prefixes: &mut Vec<[[u64; LANES]; LIMBS]>,
) -> bool {
    let (octets, _) = pairs.as_chunks::<LANES>();
    let mut product = Fe::<L>::one();
    prefixes.resize(octets.len(), [[0; LANES]; LIMBS]);
    for (octet, prefix) in octets.iter().zip(&mut *prefixes) {
        let [a, b] = load_pairs::<L>(nodes, octet);
        product.store(prefix);
        product = product.mul(&Sum::primes(2).plus(&b.x).minus(&a.x).carry());
    }
    if product.zeros() != 0 {
        return false;
    }
    let mut suffix = field::inverse(&product);
    let first = nodes.len();
    nodes.resize(first + pairs.len(), Line([0; 8]));
    for (number, (octet, prefix)) in octets.iter().zip(&*prefixes).enumerate().rev() {
        let [a, b] = load_pairs::<L>(nodes, octet);
        let dx = Sum::primes(2).plus(&b.x).minus(&a.x).carry();
        let inverse = suffix.mul(&Fe::load(prefix));
        suffix = suffix.mul(&dx);
        let slope = Sum::primes(4).plus(&b.y).minus(&a.y).carry().mul(&inverse);
        let x = Columns::square(Some(Sum::primes(4).minus(&a.x).minus(&b.x)), &slope).reduce();
        let t = Sum::primes(2).plus(&a.x).minus(&x).carry();
        let y = Sum::primes(4).minus(&a.y).columns().plus_product(&slope, &t).reduce();
        let [p, q, r, s] = x.to_words();
        let [t, u, v, w] = y.to_words();
        let lines = &mut nodes[first + LANES * number..][..LANES];
        for (row, line) in L::transpose([p, q, r, s, t, u, v, w]).into_iter().zip(lines) {
            row.store(&mut line.0);
        }
    }
    true
}

/// Both points of eight pairs, with signs applied.
#[inline(always)]
fn load_pairs<L: Lanes>(nodes: &[Line], octet: &[[u32; 2]; LANES]) -> [Affine<L>; 2] {
    let mut refs = [[0; LANES]; 2];
    let mut signs = [0u8; 2];
    for (lane, pair) in octet.iter().enumerate() {
        for k in 0..2 {
            refs[k][lane] = pair[k];
            signs[k] |= ((pair[k] >> 31) as u8) << lane;
        }
    }
    let mut a = load_nodes::<L>(nodes, &refs[0]);
    let mut b = load_nodes::<L>(nodes, &refs[1]);
    if signs[0] != 0 {
        a.y = a.y.negate_where(signs[0]);
    }
    if signs[1] != 0 {
        b.y = b.y.negate_where(signs[1]);
    }
    [a, b]
}

/// From buckets to `sums`, one window per lane: the sum of (2b + 1) times bucket b, doubled to its
/// weight.
#[inline(always)]
fn reduce<L: Lanes>(work: &mut Work) -> bool {
    work.sums.clear();
    for first in (0..WINDOWS).step_by(LANES) {
        let window = |lane: usize| (first + lane).min(WINDOWS - 1);
        let line = |lane: usize, bucket: usize| &work.buckets[BUCKETS * window(lane) + bucket];
        let load = |bucket: usize| -> [&Line; LANES] {
            [0, 1, 2, 3, 4, 5, 6, 7].map(|lane| line(lane, bucket))
        };
        let top = load_points::<L>(load(BUCKETS - 1));
        // All buckets from the current one on, and the sum of these over the current ones.
        let mut suffix = Jacobian { x: top.x, y: top.y, z: Fe::one() };
        let mut total = suffix;
        for bucket in (0..BUCKETS - 1).rev() {
            suffix = suffix.add(&load_points(load(bucket)));
            total = total.add_jacobian(&suffix);
        }
        // The total has (b + 1) times bucket b.
        suffix.y = suffix.y.negate_where(u8::MAX).mul(&Fe::one());
        let mut sum = total.double().add_jacobian(&suffix);
        for step in 0..WIDTH * (WINDOWS - 1) {
            let mut mask = 0;
            for lane in 0..LANES {
                mask |= u8::from(step < WIDTH * window(lane)) << lane;
            }
            let double = sum.double();
            sum.x = Fe::select(mask, &double.x, &sum.x);
            sum.y = Fe::select(mask, &double.y, &sum.y);
            sum.z = Fe::select(mask, &double.z, &sum.z);
        }
        if sum.z.zeros() != 0 {
            return false;
        }
        let inverse = field::inverse(&sum.z);
        let square = inverse.sqr();
        let x = sum.x.mul(&square).normalize();
        let y = sum.y.mul(&square.mul(&inverse)).normalize();
        push_lines(&x, &y, &mut work.sums);
    }
    work.sums.truncate(WINDOWS);
    true
}
