//! Sums of lists of points, in pairs, and pairs of pairs, by affine additions that share inversions.

#![expect(clippy::needless_range_loop, reason = "groups of a step go by one index")]

use super::super::curve::{Affine, load_points, load_xs};
use super::super::field::{self, Columns, Factor, Fe, LIMBS, Sum};
use super::super::{LANES, Lanes, Line};

/// Marks a reference to the negation of a node.
pub(super) const NEGATIVE: u32 = 1 << 31;

/// Groups of eight additions that go through in step: what one of them waits for, the other does.
const STEP: usize = 2;

/// Pairs of all groups of a step.
const PAIRS: usize = STEP * LANES;

/// Pairs that are copied at a time.
const BLOCK: usize = 8;

/// Two references.
type Pair = [u32; 2];

/// Lists of references to points, one after the other.
#[derive(Debug, Default)]
pub(super) struct Lists {
    pub(super) refs: Vec<u32>,
    /// The length of each list.
    pub(super) sizes: Vec<u32>,
    next: Vec<u32>,
    pairs: Vec<Pair>,
    prefixes: Vec<[[[u64; LANES]; LIMBS]; STEP]>,
}

/// Points in memory that is kept: what is past the end is there, and of no meaning.
#[derive(Debug, Default)]
pub(super) struct Nodes {
    lines: Vec<Line>,
    len: usize,
}

impl Nodes {
    pub(super) fn len(&self) -> usize {
        self.len
    }

    pub(super) fn truncate(&mut self, len: usize) {
        self.len = self.len.min(len);
    }

    /// All there are, and so many more to be set.
    #[inline(always)]
    pub(super) fn extend(&mut self, count: usize) -> (&[Line], &mut [Line]) {
        let first = self.len;
        self.len += count;
        if self.lines.len() < self.len {
            self.lines.resize(self.len, Line([0; 8]));
        }
        let (before, after) = self.lines.split_at_mut(first);
        (before, &mut after[..count])
    }

    /// All there are.
    #[inline(always)]
    pub(super) fn get(&mut self) -> &mut [Line] {
        &mut self.lines[..self.len]
    }
}

impl Lists {
    /// Replaces each list by its sum, which is appended to the nodes, or leaves it if it has less
    /// than two points. `false` if an addition was exceptional.
    #[inline(always)]
    pub(super) fn sum<L: Lanes>(&mut self, nodes: &mut Nodes) -> bool {
        while self.pair(nodes.len() as u32) {
            if !add_pairs::<L>(nodes, &self.pairs, &mut self.prefixes) {
                return false;
            }
        }
        true
    }

    /// Replaces pairs within lists by references to nodes from `first` on, and says whether there
    /// were any.
    ///
    /// Lengths of lists are as good as random, so branches on them would be mispredicted. Copying goes
    /// by blocks instead, and what is too much is written over.
    #[inline(always)]
    fn pair(&mut self, first: u32) -> bool {
        let Self { refs, sizes, next, pairs, .. } = self;
        let count = refs.len();
        refs.resize(count + 2 * BLOCK, 0);
        next.resize(count + 2 * BLOCK, 0);
        pairs.resize(count / 2 + BLOCK + PAIRS, [0; 2]);
        let (mut pair, mut place, mut at) = (0, 0, 0);
        for size in sizes {
            let length = *size as usize;
            let mut done = 0;
            while done < length / 2 {
                let (from, _) = refs[at + 2 * done..][..2 * BLOCK].as_chunks::<2>();
                pairs[pair + done..][..BLOCK].copy_from_slice(from);
                let number = first + (pair + done) as u32;
                for (k, next) in next[place + done..][..BLOCK].iter_mut().enumerate() {
                    *next = number + k as u32;
                }
                done += BLOCK;
            }
            pair += length / 2;
            place += length / 2;
            next[place] = refs[at + length.saturating_sub(1)];
            place += length % 2;
            at += length;
            *size = size.div_ceil(2);
        }
        if pair == 0 {
            refs.truncate(count);
            return false;
        }
        let padded = pair.next_multiple_of(PAIRS);
        let filler = pairs[0];
        pairs[pair..padded].fill(filler);
        pairs.truncate(padded);
        next.truncate(place);
        std::mem::swap(refs, next);
        true
    }
}

/// Appends the sum of every pair, or fails if two x coordinates are equal.
///
/// With slope `s = (Yb - Ya) / (Xb - Xa)`: `X = s^2 - Xa - Xb`, `Y = s (Xa - X) - Ya`. The differences
/// of x are inverted together by Montgomery's trick.
#[inline(always)]
fn add_pairs<L: Lanes>(
    nodes: &mut Nodes,
    pairs: &[Pair],
    prefixes: &mut Vec<[[[u64; LANES]; LIMBS]; STEP]>,
) -> bool {
    let (steps, _) = pairs.as_chunks::<PAIRS>();
    let (points, sums) = nodes.extend(pairs.len());
    let (sums, _) = sums.as_chunks_mut::<PAIRS>();
    prefixes.resize(steps.len(), [[[0; LANES]; LIMBS]; STEP]);
    let one = Factor::<L>::from(&Fe::one());
    let mut products = [one; STEP];
    for (number, prefixes) in prefixes.iter_mut().enumerate() {
        let step = &steps[number];
        let mut dx = products;
        for k in 0..STEP {
            dx[k] = load_dx(points, octet(step, k));
        }
        for k in 0..STEP {
            products[k].store(&mut prefixes[k]);
            products[k] = products[k].mul(dx[k]);
        }
    }
    let product = products[0].mul(products[1]);
    if product.fe().zeros() != 0 {
        return false;
    }
    let inverse = field::inverse(product);
    let mut suffixes = [inverse.mul(products[1]), inverse.mul(products[0])];
    let mut excess = L::splat(0);
    for (number, sums) in sums.iter_mut().enumerate().rev() {
        let (step, prefixes) = (&steps[number], &prefixes[number]);
        let operands =
            [load_pairs::<L>(points, octet(step, 0)), load_pairs(points, octet(step, 1))];
        let mut slopes = suffixes;
        for k in 0..STEP {
            slopes[k] = suffixes[k].mul(Factor::load(&prefixes[k]));
        }
        for k in 0..STEP {
            let [a, b] = &operands[k];
            let dx = Sum::primes(2).plus(&b.x).minus(&a.x).carry_to_factor();
            suffixes[k] = suffixes[k].mul(dx);
        }
        for k in 0..STEP {
            let [a, b] = &operands[k];
            let dy = Sum::primes(4).plus_sum::<0>(&b.y).minus_sum::<0>(&a.y).carry_to_factor();
            slopes[k] = slopes[k].mul(dy);
        }
        let mut xs = [operands[0][0].x; STEP];
        for k in 0..STEP {
            let [a, b] = &operands[k];
            let sum = Sum::primes(4).minus(&a.x).minus(&b.x);
            xs[k] = Columns::square(Some(sum), slopes[k]).reduce();
        }
        for k in 0..STEP {
            let [a, _] = &operands[k];
            let t = Sum::primes(2).plus(&a.x).minus(&xs[k]).carry_to_factor();
            let y =
                Sum::primes(4).minus_sum::<0>(&a.y).columns().plus_product(slopes[k], t).reduce();
            let [p, q, r, s] = xs[k].to_words_or_excess(&mut excess);
            let [t, u, v, w] = y.to_words_or_excess(&mut excess);
            let lines = &mut sums[k * LANES..][..LANES];
            for (row, line) in L::transpose([p, q, r, s, t, u, v, w]).into_iter().zip(lines) {
                row.store(&mut line.0);
            }
        }
    }
    // A coordinate of 2^256 or more does not come up in the lifetime of a machine.
    excess.zeros() == u8::MAX
}

#[inline(always)]
fn octet(step: &[Pair; PAIRS], k: usize) -> &[Pair] {
    &step[k * LANES..][..LANES]
}

#[inline(always)]
fn lines<'n>(nodes: &'n [Line], octet: &[Pair], side: usize) -> [&'n Line; LANES] {
    let line = |lane: usize| &nodes[(octet[lane][side] & !NEGATIVE) as usize];
    [line(0), line(1), line(2), line(3), line(4), line(5), line(6), line(7)]
}

/// The differences of x coordinates.
#[inline(always)]
fn load_dx<L: Lanes>(nodes: &[Line], octet: &[Pair]) -> Factor<L> {
    let (a, b) = (load_xs::<L>(lines(nodes, octet, 0)), load_xs::<L>(lines(nodes, octet, 1)));
    Sum::primes(2).plus(&b).minus(&a).carry_to_factor()
}

/// A point on its way into an addition.
#[derive(Clone, Copy)]
struct Operand<L> {
    x: Fe<L>,
    /// The y coordinate with its sign; limbs are at most those of twice the prime.
    y: Sum<L>,
}

/// Both points of eight pairs.
#[inline(always)]
fn load_pairs<L: Lanes>(nodes: &[Line], octet: &[Pair]) -> [Operand<L>; 2] {
    let mut signs = [0u8; 2];
    for (lane, pair) in octet.iter().enumerate() {
        for k in 0..2 {
            signs[k] |= ((pair[k] >> 31) as u8) << lane;
        }
    }
    let a: Affine<L> = load_points(lines(nodes, octet, 0));
    let b: Affine<L> = load_points(lines(nodes, octet, 1));
    [
        Operand { x: a.x, y: a.y.negate_where_to_sum(signs[0]) },
        Operand { x: b.x, y: b.y.negate_where_to_sum(signs[1]) },
    ]
}
