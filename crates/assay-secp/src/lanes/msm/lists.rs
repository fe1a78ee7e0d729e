//! Sums of point lists by pairwise affine additions with shared inversions.

#![expect(clippy::needless_range_loop, reason = "groups of a step go by one index")]

use super::super::curve::{Affine, load_points, load_xs};
use super::super::field::{Columns, Factor, Fe, LIMBS, Sum};
use super::super::{LANES, Lanes, Line, steps};

/// Marks a reference to the negation of a node.
pub(super) const NEGATIVE: u32 = 1 << 31;

/// Vectors of additions processed in step, to hide latencies.
const STEP: usize = 2;

/// Pairs are padded to a multiple of this.
const PAIRS: usize = STEP * LANES;

/// Pairs copied at a time.
const BLOCK: usize = 8;

/// Two references.
type Pair = [u32; 2];

/// Prefix products, as many vectors as fit eight lanes.
type Prefix = [[u64; LANES]; LIMBS];

/// Lists of references to points, concatenated.
#[derive(Debug, Default)]
pub(super) struct Lists {
    pub(super) refs: Vec<u32>,
    /// The length of each list.
    pub(super) sizes: Vec<u32>,
    next: Vec<u32>,
    pairs: Vec<Pair>,
    prefixes: Vec<Prefix>,
}

/// Points in reused memory: entries past the end are allocated but meaningless.
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

    /// All points, and `count` further ones to be set.
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

    /// All points.
    #[inline(always)]
    pub(super) fn get(&mut self) -> &mut [Line] {
        &mut self.lines[..self.len]
    }
}

impl Lists {
    /// Replaces each list of at least two points by its sum, which is appended to the nodes. `false` if an addition was
    /// exceptional.
    #[inline(always)]
    pub(super) fn sum<L: Lanes>(&mut self, nodes: &mut Nodes) -> bool {
        while self.pair(nodes.len() as u32) {
            if !add_pairs::<L>(nodes, &self.pairs, &mut self.prefixes) {
                return false;
            }
        }
        true
    }

    /// Replaces pairs within lists by references to nodes from `first` on; returns true if there were any.
    ///
    /// List lengths are practically random, so branches on them would be mispredicted. Blocks are copied instead, and excess data
    /// is overwritten.
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
/// With slope `s = (Yb - Ya) / (Xb - Xa)`: `X = s^2 - Xa - Xb`, `Y = s (Xa - X) - Ya`. The differences of x are inverted together
/// by Montgomery's trick.
#[inline(always)]
fn add_pairs<L: Lanes>(nodes: &mut Nodes, pairs: &[Pair], prefixes: &mut Vec<Prefix>) -> bool {
    let steps = pairs.len() / (STEP * L::WIDTH);
    let (points, sums) = nodes.extend(pairs.len());
    prefixes.resize(pairs.len().div_ceil(LANES), [[0; LANES]; LIMBS]);
    // Start of the pairs and sums of a vector, and position of its product.
    let place = |vector: usize| (vector * L::WIDTH / LANES, vector * L::WIDTH % LANES);
    let vector_of = |vector: usize| &pairs[vector * L::WIDTH..][..L::WIDTH];
    let one = Fe::<L>::one().factor();
    let mut products = [one; STEP];
    for step in 0..steps {
        let mut dx = products;
        for k in 0..STEP {
            dx[k] = load_dx(points, vector_of(STEP * step + k));
        }
        for k in 0..STEP {
            let (row, first) = place(STEP * step + k);
            products[k].store(&mut prefixes[row], first);
            products[k] = products[k].mul(dx[k]);
        }
    }
    let product = products[0].mul(products[1]);
    if product.fe().zeros() != 0 {
        return false;
    }
    let inverse = steps::inverse(product);
    let mut suffixes = [inverse.mul(products[1]), inverse.mul(products[0])];
    let mut excess = L::splat(0);
    for step in (0..steps).rev() {
        let operands = [
            load_pairs::<L>(points, vector_of(STEP * step)),
            load_pairs(points, vector_of(STEP * step + 1)),
        ];
        let mut slopes = suffixes;
        for k in 0..STEP {
            let (row, first) = place(STEP * step + k);
            slopes[k] = suffixes[k].mul(Factor::load(&prefixes[row], first));
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
            let transposed = L::transpose([p, q, r, s, t, u, v, w]);
            let lines = &mut sums[(STEP * step + k) * L::WIDTH..][..L::WIDTH];
            for (lane, line) in lines.iter_mut().enumerate() {
                L::store_line(&transposed, lane, line);
            }
        }
    }
    // A coordinate of 2^256 or more practically never occurs.
    excess.zeros() == L::ALL
}

/// One of the points of a lane's pair.
#[inline(always)]
fn lines<'n>(nodes: &'n [Line], pairs: &'n [Pair], side: usize) -> impl Fn(usize) -> &'n Line {
    move |lane| &nodes[(pairs[lane][side] & !NEGATIVE) as usize]
}

/// The differences of x coordinates.
#[inline(always)]
fn load_dx<L: Lanes>(nodes: &[Line], pairs: &[Pair]) -> Factor<L> {
    let (a, b) = (load_xs::<L>(lines(nodes, pairs, 0)), load_xs::<L>(lines(nodes, pairs, 1)));
    Sum::primes(2).plus(&b).minus(&a).carry_to_factor()
}

/// An operand of an addition.
#[derive(Clone, Copy)]
struct Operand<L> {
    x: Fe<L>,
    /// The y coordinate with its sign; limbs are at most those of twice the prime.
    y: Sum<L>,
}

/// Both points of the pairs of all lanes.
#[inline(always)]
fn load_pairs<L: Lanes>(nodes: &[Line], pairs: &[Pair]) -> [Operand<L>; 2] {
    let mut signs = [0u8; 2];
    for (lane, pair) in pairs.iter().enumerate() {
        for k in 0..2 {
            signs[k] |= ((pair[k] >> 31) as u8) << lane;
        }
    }
    let a: Affine<L> = load_points(lines(nodes, pairs, 0));
    let b: Affine<L> = load_points(lines(nodes, pairs, 1));
    [
        Operand { x: a.x, y: a.y.negate_where_to_sum(signs[0]) },
        Operand { x: b.x, y: b.y.negate_where_to_sum(signs[1]) },
    ]
}
