//! Multi-scalar multiplication: Pippenger's buckets, filled by affine additions with shared inversions.
//!
//! Scalars are sums of odd digits, as everywhere here, so bucket b collects the points whose digit is `2b + 1` or its negation.
//! Each bucket, and then each row and column of the buckets laid out as a rectangle, is a list of points to sum up ([`lists`]).
//! Rows and columns start with a multiple of the generator, so none is empty; the caller subtracts these multiples. Exceptional
//! additions are detected and yield no result: this module alone decides nothing.

mod lists;

use super::curve::{BETA, Jacobian, load_points};
use super::field::{Fe, Sum};
use super::{LANES, Lanes, Line, steps};
use crate::scalar::Digits;
use lists::{Lists, NEGATIVE, Nodes};

/// References sorted and summed at a time: several windows share the inversions, and their sums stay in the second-level cache.
const REFS_AT_ONCE: usize = 1 << 14;

/// Square roots computed in step.
const ROOTS_AT_ONCE: usize = 4;

/// Marks an empty bucket.
const EMPTY: u32 = u32::MAX;

/// Digit shape of scalars.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Shape {
    width: usize,
}

impl Shape {
    /// For sums of about `points` points. Wider windows are fewer, but each has twice the buckets.
    pub(crate) fn for_points(points: usize) -> Self {
        let width = match points {
            ..600 => 7,
            600..2000 => 8,
            2000..5000 => 9,
            5000..20_000 => 10,
            _ => 11,
        };
        Self { width }
    }

    pub(crate) fn width(self) -> usize {
        self.width
    }

    /// Windows of half a scalar.
    pub(crate) fn windows(self) -> usize {
        Digits::BITS.div_ceil(self.width)
    }

    /// Total bits of all windows.
    pub(crate) fn bits(self) -> usize {
        self.width * self.windows()
    }

    /// Buckets per window: the odd numbers below 2^width.
    fn buckets(self) -> usize {
        1 << (self.width - 1)
    }

    /// Columns of the rectangle of buckets: bucket `columns * i + j` is in row i and column j.
    pub(crate) fn columns(self) -> usize {
        1 << ((self.width - 1) / 2)
    }

    pub(crate) fn rows(self) -> usize {
        self.buckets() / self.columns()
    }
}

/// Operands, memory and result of a sum.
#[derive(Debug)]
pub(crate) struct Work {
    /// Digit shape; `digits` must match.
    pub(crate) shape: Shape,
    /// x coordinates of keys in groups of eight, all lanes set.
    pub(crate) keys: Vec<[[u64; LANES]; 4]>,
    /// x coordinates of nonces.
    pub(crate) nonces: Vec<[[u64; LANES]; 4]>,
    /// Digits of the first halves of the factors of keys, of the second halves, and of the factors of
    /// nonces.
    pub(crate) digits: [Vec<Digits>; 3],
    /// The sum of window w times 2^(width w).
    pub(crate) sums: Vec<Line>,
    /// Points: keys, keys times lambda, nonces, generators, buckets, and sums within lists.
    nodes: Nodes,
    lists: Lists,
    /// Bucket and sign of each digit.
    places: Vec<u32>,
    /// Position of each bucket's next reference.
    ends: Vec<u32>,
    /// References to the sums of all buckets of all windows.
    buckets: Vec<u32>,
}

impl Default for Work {
    fn default() -> Self {
        Self {
            shape: Shape::for_points(0),
            keys: Vec::new(),
            nonces: Vec::new(),
            digits: Default::default(),
            sums: Vec::new(),
            nodes: Nodes::default(),
            lists: Lists::default(),
            places: Vec::new(),
            ends: Vec::new(),
            buckets: Vec::new(),
        }
    }
}

/// Sets `sums` to the keys with even y times their factors, minus the nonces with even y times theirs, plus the generator
/// multiples of rows and columns. `false` if a coordinate belongs to no point or an addition was exceptional.
#[inline(always)]
pub(crate) fn sum<L: Lanes>(work: &mut Work, table: &[Line]) -> bool {
    work.nodes.truncate(0);
    if !push_points::<L>(&work.keys, 0, &mut work.nodes) {
        return false;
    }
    push_endomorphism::<L>(&mut work.nodes);
    if !push_points::<L>(&work.nonces, u8::MAX, &mut work.nodes) {
        return false;
    }
    let generators = work.nodes.len();
    let count = work.shape.rows() + work.shape.columns();
    work.nodes.extend(count).1.copy_from_slice(&table[..count]);
    fill_buckets::<L>(work) && sum_rectangles::<L>(work, generators as u32) && reduce::<L>(work)
}

/// Decompresses x coordinates to points with odd y in the lanes of the mask.
#[inline(always)]
fn push_points<L: Lanes>(groups: &[[[u64; LANES]; 4]], odd: u8, nodes: &mut Nodes) -> bool {
    let seven = Fe::<L>::constant([7, 0, 0, 0, 0]);
    let parts = LANES / L::WIDTH;
    let vectors = groups.len() * parts;
    for begin in (0..vectors).step_by(ROOTS_AT_ONCE) {
        let count = ROOTS_AT_ONCE.min(vectors - begin);
        let mut xs = [Fe::<L>::one(); ROOTS_AT_ONCE];
        let mut cubics = [seven; ROOTS_AT_ONCE];
        for k in 0..count {
            let [a, b, c, d] = &groups[(begin + k) / parts];
            let first = (begin + k) % parts * L::WIDTH;
            xs[k] = Fe::from_words([
                L::load(a, first),
                L::load(b, first),
                L::load(c, first),
                L::load(d, first),
            ]);
            let cube = xs[k].sqr().mul(&xs[k]);
            cubics[k] = Sum::primes(0).plus(&cube).plus(&seven).carry().mul(&Fe::one());
        }
        let roots = steps::square_roots(&cubics);
        for k in 0..count {
            if roots[k].sqr().equals(&cubics[k]) != L::ALL {
                return false;
            }
            let y = roots[k].negate_where(roots[k].odd() ^ odd).mul(&Fe::one());
            store_lines(&xs[k], &y, nodes.extend(L::WIDTH).1);
        }
    }
    true
}

/// Stores one line per lane; both elements are weak.
#[inline(always)]
fn store_lines<L: Lanes>(x: &Fe<L>, y: &Fe<L>, lines: &mut [Line]) {
    let [a, b, c, d] = x.to_words();
    let [e, f, g, h] = y.to_words();
    let transposed = L::transpose([a, b, c, d, e, f, g, h]);
    for (lane, line) in lines[..L::WIDTH].iter_mut().enumerate() {
        L::store_line(&transposed, lane, line);
    }
}

/// Appends lambda times every point.
#[inline(always)]
fn push_endomorphism<L: Lanes>(nodes: &mut Nodes) {
    for first in (0..nodes.len()).step_by(L::WIDTH) {
        let points = &nodes.get()[first..];
        let point = load_points::<L>(|lane| &points[lane]);
        let lambda = point.x.mul(&Fe::constant(BETA));
        store_lines(&lambda, &point.y, nodes.extend(L::WIDTH).1);
    }
}

/// Sums up the buckets of all windows.
#[inline(always)]
fn fill_buckets<L: Lanes>(work: &mut Work) -> bool {
    let (windows, buckets) = (work.shape.windows(), work.shape.buckets());
    let slots = work.nodes.len();
    work.nodes.extend(windows * buckets);
    work.buckets.clear();
    let per_window: usize = work.digits.iter().map(Vec::len).sum();
    let at_once = (REFS_AT_ONCE / per_window.max(1)).clamp(1, windows);
    // As evenly as possible.
    let rounds = windows.div_ceil(at_once);
    for round in 0..rounds {
        sort(work, windows * round / rounds..windows * (round + 1) / rounds);
        let temporary = work.nodes.len();
        if !work.lists.sum::<L>(&mut work.nodes) {
            return false;
        }
        let mut refs = work.lists.refs.iter();
        for &size in &work.lists.sizes {
            let mut bucket = EMPTY;
            if size == 1
                && let Some(reference) = refs.next()
            {
                let slot = slots + work.buckets.len();
                let nodes = work.nodes.get();
                nodes[slot] = nodes[(reference & !NEGATIVE) as usize];
                bucket = slot as u32 | reference & NEGATIVE;
            }
            work.buckets.push(bucket);
        }
        work.nodes.truncate(temporary);
    }
    true
}

/// Builds the bucket lists of some windows.
#[inline(always)]
fn sort(work: &mut Work, windows: std::ops::Range<usize>) {
    let Work { shape, digits, lists, places, ends, .. } = work;
    let (width, buckets) = (shape.width, shape.buckets());
    let per_window: usize = digits.iter().map(Vec::len).sum();
    lists.sizes.clear();
    lists.sizes.resize(windows.len() * buckets, 0);
    places.resize(windows.len() * per_window, 0);
    for (number, window) in windows.clone().enumerate() {
        let sizes = &mut lists.sizes[number * buckets..][..buckets];
        let mut places = &mut places[number * per_window..][..per_window];
        for digits in &*digits {
            let (of_part, rest) = places.split_at_mut(digits.len());
            places = rest;
            for (digits, place) in digits.iter().zip(of_part) {
                // The digit is 2 raw + 1 - 2^width.
                let raw = digits.window_of(width, window) as usize;
                let is_negative = raw < buckets;
                let bucket = if is_negative { !raw } else { raw } & (buckets - 1);
                sizes[bucket] += 1;
                *place = bucket as u32 | u32::from(is_negative) << 31;
            }
        }
    }
    ends.clear();
    let mut total = 0;
    for size in &lists.sizes {
        ends.push(total);
        total += size;
    }
    lists.refs.resize(total as usize, 0);
    let stride = LANES * work.keys.len();
    for number in 0..windows.len() {
        let ends = &mut ends[number * buckets..][..buckets];
        let mut places = &places[number * per_window..][..per_window];
        for (part, digits) in digits.iter().enumerate() {
            let (of_part, rest) = places.split_at(digits.len());
            places = rest;
            let first = (part * stride) as u32;
            for (node, place) in (first..).zip(of_part) {
                let end = &mut ends[*place as usize & (buckets - 1)];
                lists.refs[*end as usize] = node | place & NEGATIVE;
                *end += 1;
            }
        }
    }
}

/// Sums up all rows except the first, then the columns, of every window.
#[inline(always)]
fn sum_rectangles<L: Lanes>(work: &mut Work, generators: u32) -> bool {
    let (rows, columns) = (work.shape.rows(), work.shape.columns());
    let lists = &mut work.lists;
    lists.sizes.clear();
    lists.refs.clear();
    let mut end = 0;
    for buckets in work.buckets.chunks_exact(rows * columns) {
        for line in 1..rows + columns {
            lists.refs.push(generators + line as u32);
            let (first, step) =
                if line < rows { (line * columns, 1) } else { (line - rows, columns) };
            let length = if line < rows { columns } else { rows };
            for k in 0..length {
                let bucket = buckets[first + step * k];
                if bucket != EMPTY {
                    lists.refs.push(bucket);
                }
            }
            lists.sizes.push((lists.refs.len() - end) as u32);
            end = lists.refs.len();
        }
    }
    lists.sum::<L>(&mut work.nodes)
}

/// Combines rows and columns into `sums`, one window per lane: the sum of (2b + 1) times bucket b, which is the sum of `2 columns
/// i` times row i and of (2j + 1) times column j, doubled to its weight.
#[inline(always)]
fn reduce<L: Lanes>(work: &mut Work) -> bool {
    let (rows, columns, windows) = (work.shape.rows(), work.shape.columns(), work.shape.windows());
    work.sums.clear();
    let nodes = work.nodes.get();
    for first in (0..windows).step_by(L::WIDTH) {
        let window = |lane: usize| (first + lane).min(windows - 1);
        let load = |line: usize| {
            let line = |lane: usize| {
                let reference = work.lists.refs[(rows + columns - 1) * window(lane) + line - 1];
                // A sum or a generator; neither is negated.
                debug_assert!(reference & NEGATIVE == 0);
                &nodes[reference as usize]
            };
            load_points::<L>(line)
        };
        let mut suffix = Jacobian::from_affine(&load(rows - 1));
        let mut total = suffix;
        for row in (1..rows - 1).rev() {
            suffix = suffix.add(&load(row));
            total = total.add_jacobian(&suffix);
        }
        let mut sum = total;
        for _ in 0..(2 * columns).ilog2() {
            sum = sum.double();
        }
        suffix = Jacobian::from_affine(&load(rows + columns - 1));
        total = suffix;
        for column in (rows..rows + columns - 1).rev() {
            suffix = suffix.add(&load(column));
            total = total.add_jacobian(&suffix);
        }
        // The total contains (j + 1) times column j.
        suffix.y = suffix.y.fe().negate_where(u8::MAX).mul(&Fe::one()).factor();
        sum = sum.add_jacobian(&total.double().add_jacobian(&suffix));
        for step in 0..work.shape.width * (windows - 1) {
            let mut mask = 0;
            for lane in 0..L::WIDTH {
                mask |= u8::from(step < work.shape.width * window(lane)) << lane;
            }
            sum = Jacobian::select(mask, &sum.double(), &sum);
        }
        if sum.z.fe().zeros() != 0 {
            return false;
        }
        let inverse = steps::inverse(sum.z);
        let square = inverse.sqr();
        let x = sum.x.mul(square).normalize();
        let y = sum.y.mul(square.mul(inverse)).fe().normalize();
        work.sums.resize(first + L::WIDTH, Line([0; 8]));
        store_lines(&x, &y, &mut work.sums[first..]);
    }
    work.sums.truncate(windows);
    true
}
