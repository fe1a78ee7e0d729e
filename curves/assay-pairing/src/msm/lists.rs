//! Sums of many lists of points, computed in pairs.

use super::vector::Vector;
use crate::lanes::Task;

/// Flag of a reference to the negation of a point.
pub(super) const NEGATIVE: u32 = 1 << 31;

/// No point: the sum of an empty list, or infinity.
pub(super) const EMPTY: u32 = u32::MAX;

/// Number of interleaved chains of products, since one chain waits for its own results.
const CHAINS: usize = 2;

/// Prefetch distance in vectors: points are scattered in the first round.
const AHEAD: usize = 4;

/// Points, and the memory for adding them.
pub(super) struct Lists<V: Vector> {
    /// Given points, stored sums, and after them sums within lists.
    nodes: Vec<V::Point>,
    /// Number of nodes to keep.
    kept: usize,
    pairs: Vec<[u32; 2]>,
    /// For each vector of pairs: the difference of x (or its replacement), and the product of those
    /// before in the chain.
    steps: Vec<[V::Memory; 2]>,
    /// Vectors with equal or opposite points, in order, with the mask of their lanes.
    exceptions: Vec<Exception>,
    /// References to sums that are infinity.
    infinite: Vec<u32>,
}

#[derive(Clone, Copy, Debug)]
struct Exception {
    vector: usize,
    equal: u8,
}

/// [`Lists::add_pairs`].
struct AddPairs<'l, V: Vector>(&'l mut Lists<V>, usize);

impl<V: Vector> Task for AddPairs<'_, V> {
    type Result = ();

    #[inline(always)]
    fn run(self) {
        self.0.add_pairs(self.1);
    }
}

/// [`Vector::push_points`].
struct PushPoints<'l, V: Vector, I>(I, &'l mut Vec<V::Point>);

impl<V: Vector, I: Iterator<Item = (V::Scalar, V::Scalar)>> Task for PushPoints<'_, V, I> {
    type Result = ();

    #[inline(always)]
    fn run(self) {
        V::push_points(self.0, self.1);
    }
}

/// [`Vector::point`].
struct ReadPoint<'l, V: Vector>(&'l V::Point);

impl<V: Vector> Task for ReadPoint<'_, V> {
    type Result = (V::Scalar, V::Scalar);

    #[inline(always)]
    fn run(self) -> Self::Result {
        V::point(self.0)
    }
}

impl<V: Vector> Lists<V> {
    pub(super) fn new(points: impl Iterator<Item = (V::Scalar, V::Scalar)>) -> Self {
        let mut nodes = Vec::new();
        V::run(PushPoints::<V, _>(points, &mut nodes));
        let kept = nodes.len();
        Self {
            nodes,
            kept,
            pairs: Vec::new(),
            steps: Vec::new(),
            exceptions: Vec::new(),
            infinite: Vec::new(),
        }
    }

    /// Replaces all points and sums.
    pub(super) fn refill(&mut self, points: impl Iterator<Item = (V::Scalar, V::Scalar)>) {
        self.nodes.clear();
        V::run(PushPoints::<V, _>(points, &mut self.nodes));
        self.kept = self.nodes.len();
    }

    /// Removes all sums: the first `points` nodes, which are the given points, remain.
    pub(super) fn forget(&mut self, points: usize) {
        self.kept = points.next_multiple_of(V::WIDTH);
        self.nodes.truncate(self.kept);
    }

    pub(super) fn point(&self, reference: u32) -> Option<(V::Scalar, V::Scalar)> {
        (reference != EMPTY).then(|| {
            let point = &self.nodes[(reference & !NEGATIVE) as usize];
            let (x, y) = V::run(ReadPoint::<V>(point));
            (x, if reference & NEGATIVE == 0 { y } else { -y })
        })
    }

    /// Appends the sum of each list to `sums`. The lists are consecutive and end at `ends`; a
    /// limited number of references is processed at a time, but at least one list.
    pub(super) fn sum_in_parts(
        &mut self,
        refs: &[u32],
        ends: &[u32],
        at_once: usize,
        sums: &mut Vec<u32>,
    ) {
        let mut part = Vec::new();
        let mut sizes = Vec::new();
        let (mut list, mut begin) = (0, 0);
        while list < ends.len() {
            sizes.clear();
            let first = begin;
            while list < ends.len() && (sizes.is_empty() || ends[list] as usize - first <= at_once)
            {
                sizes.push(ends[list] - begin as u32);
                begin = ends[list] as usize;
                list += 1;
            }
            part.clear();
            part.extend_from_slice(&refs[first..begin]);
            self.sum(&mut part, &mut sizes, sums);
        }
    }

    /// Adds up lists until each has at most one reference.
    fn sum(&mut self, refs: &mut Vec<u32>, sizes: &mut [u32], sums: &mut Vec<u32>) {
        // Results that are not given points are stored here, at most one per list.
        let slots = self.kept;
        self.nodes.resize(slots + sizes.len(), V::ZERO_POINT);
        loop {
            let base = self.nodes.len();
            self.take_pairs(refs, sizes, base as u32);
            if self.pairs.is_empty() {
                break;
            }
            V::run(AddPairs(self, base));
            if !self.infinite.is_empty() {
                self.drop_infinite(refs, sizes);
            }
        }
        let mut refs = refs.iter();
        for &size in &*sizes {
            let mut reference = EMPTY;
            if size == 1
                && let Some(&found) = refs.next()
            {
                reference = found;
                if (reference & !NEGATIVE) as usize >= slots {
                    self.nodes[self.kept] = self.nodes[reference as usize];
                    reference = self.kept as u32;
                    self.kept += 1;
                }
            }
            sums.push(reference);
        }
        self.nodes.truncate(self.kept);
    }

    /// Replaces every two references of a list by one to their sum, the nodes from `base` on.
    fn take_pairs(&mut self, refs: &mut Vec<u32>, sizes: &mut [u32], base: u32) {
        self.pairs.clear();
        let (mut read, mut written) = (0, 0);
        for size in sizes {
            let count = *size as usize;
            for _ in 0..count / 2 {
                let sum = base + self.pairs.len() as u32;
                self.pairs.push([refs[read], refs[read + 1]]);
                refs[written] = sum;
                read += 2;
                written += 1;
            }
            if count % 2 == 1 {
                refs[written] = refs[read];
                read += 1;
                written += 1;
            }
            *size = size.div_ceil(2);
        }
        refs.truncate(written);
    }

    /// Removes sums that are infinity from the lists.
    #[cold]
    fn drop_infinite(&mut self, refs: &mut Vec<u32>, sizes: &mut [u32]) {
        self.infinite.sort_unstable();
        let (mut read, mut written) = (0, 0);
        for size in sizes {
            let count = *size as usize;
            for _ in 0..count {
                if self.infinite.binary_search(&refs[read]).is_err() {
                    refs[written] = refs[read];
                    written += 1;
                } else {
                    *size -= 1;
                }
                read += 1;
            }
        }
        refs.truncate(written);
        self.infinite.clear();
    }

    /// Pair of a lane; the last vector is padded with its first pair.
    #[inline(always)]
    fn pair(&self, vector: usize, lane: usize) -> [u32; 2] {
        let index = vector * V::WIDTH + lane;
        self.pairs[if index < self.pairs.len() { index } else { vector * V::WIDTH }]
    }

    /// Prefetches the points of a vector.
    #[inline(always)]
    fn prefetch(&self, vector: usize) {
        for lane in 0..V::WIDTH {
            for reference in self.pair(vector, lane) {
                V::prefetch(&self.nodes[(reference & !NEGATIVE) as usize]);
            }
        }
    }

    /// Loads one side of the pairs of a vector.
    #[inline(always)]
    fn load(&self, vector: usize, side: usize) -> (V, V) {
        let (x, y) =
            V::load(&|lane| &self.nodes[(self.pair(vector, lane)[side] & !NEGATIVE) as usize]);
        let mut negative = 0;
        for lane in 0..V::WIDTH {
            negative |= ((self.pair(vector, lane)[side] >> 31) as u8) << lane;
        }
        (x, if negative == 0 { y } else { y.negate_where(negative) })
    }

    /// Appends the sums of all pairs to the nodes.
    ///
    /// `slope = (y2 - y1) / (x2 - x1), x = slope^2 - x1 - x2, y = slope (x1 - x) - y1`.
    #[inline(always)]
    fn add_pairs(&mut self, base: usize) {
        let vectors = self.pairs.len().div_ceil(V::WIDTH);
        if self.steps.len() < vectors {
            self.steps.resize(vectors, [V::ZERO_MEMORY; 2]);
        }
        self.exceptions.clear();
        let mut products = [V::one(); CHAINS];
        for vector in 0..vectors {
            let chain = vector % CHAINS;
            if vector + AHEAD < vectors {
                self.prefetch(vector + AHEAD);
            }
            let first =
                V::load_x(&|lane| &self.nodes[(self.pair(vector, lane)[0] & !NEGATIVE) as usize]);
            let second =
                V::load_x(&|lane| &self.nodes[(self.pair(vector, lane)[1] & !NEGATIVE) as usize]);
            let mut difference = second.minus(&first);
            if difference.may_have_zero() {
                difference = self.exception(vector, &difference);
            }
            let [step, prefix] = &mut self.steps[vector];
            difference.store(step);
            products[chain].store(prefix);
            products[chain] = products[chain].times(&difference);
        }
        V::invert(&mut products);
        self.nodes.resize(base + vectors * V::WIDTH, V::ZERO_POINT);
        for vector in (0..vectors).rev() {
            let chain = vector % CHAINS;
            if vector >= AHEAD {
                self.prefetch(vector - AHEAD);
            }
            let [difference, prefix] = &self.steps[vector];
            let inverse = products[chain].times(&V::from_memory(prefix));
            products[chain] = products[chain].times(&V::from_memory(difference));
            let ((x1, y1), (x2, y2)) = (self.load(vector, 0), self.load(vector, 1));
            let mut rise = y2.minus(&y1);
            if let Some(exception) = self.exceptions.last()
                && exception.vector == vector
            {
                rise = V::select(exception.equal, &tripled_square(&x1), &rise);
                self.exceptions.pop();
            }
            let slope = rise.times(&inverse);
            let x = slope.squared().minus_both_stored(&x1, &x2);
            let y = slope.times(&x1.minus(&x)).minus_stored(&y1);
            V::store_points(&x, &y, &mut self.nodes[base + vector * V::WIDTH..]);
        }
    }

    /// Value to invert if x may be equal: twice y for equal points, one for opposite ones.
    #[inline(always)]
    fn exception(&mut self, vector: usize, difference: &V) -> V {
        let is_there = ((1u32 << (self.pairs.len() - vector * V::WIDTH).min(8)) - 1) as u8;
        let ((_, y1), (_, y2)) = (self.load(vector, 0), self.load(vector, 1));
        let same_x = difference.zeros();
        let mut equal = same_x & y2.minus(&y1).zeros();
        if equal != 0 {
            // A point of order two is its own negation.
            equal &= !y1.zeros();
        }
        let opposite = same_x & !equal & is_there;
        let base = self.nodes.len();
        for lane in 0..V::WIDTH {
            if opposite >> lane & 1 == 1 {
                self.infinite.push((base + vector * V::WIDTH + lane) as u32);
            }
        }
        self.exceptions.push(Exception { vector, equal });
        let difference = V::select(equal, &y1.plus(&y1), difference);
        V::select(same_x & !equal, &V::one(), &difference)
    }
}

/// Thrice the square, below 8 p.
#[inline(always)]
fn tripled_square<V: Vector>(x: &V) -> V {
    let square = x.squared();
    square.plus(&square).plus(&square)
}
