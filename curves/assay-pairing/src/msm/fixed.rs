//! Multi-scalar multiplication with fixed points: with precomputed multiples by powers of 2^8, all
//! windows of a scalar share one set of buckets.

#[cfg(test)]
mod tests;

use super::digits::{Shape, for_each_digit};
use super::lists::Lists;
use super::vector::{Single, Vector, VectorOf};
use super::{Backend, sign, sum_bits, sum_lines};
use crate::backend::on_backend;
use crate::bls12_381::Fp;
use crate::curve::{Affine, BlsG1, Curve, Jacobian};
use crate::limbs;

const WIDTH: usize = 8;

const WINDOWS: usize = limbs::bits(&BlsG1::ORDER) / WIDTH + 1;

/// Lists of points, each of the same length, and their multiples by powers of 2^8: 3 KB per point.
#[derive(Clone, Debug)]
pub(crate) struct FixedLists {
    points_per_list: usize,
    /// By list: all points, then their next multiples.
    multiples: Vec<Vec<Affine<BlsG1>>>,
}

impl FixedLists {
    /// From points of the group; all lists must have the same length.
    pub(crate) fn new(lists: &[Vec<Jacobian<BlsG1>>]) -> Self {
        let multiples = |list: &Vec<Jacobian<BlsG1>>| {
            let (mut points, mut all) = (list.clone(), Vec::with_capacity(WINDOWS * list.len()));
            for _ in 0..WINDOWS {
                all.extend_from_slice(&points);
                for point in &mut points {
                    (0..WIDTH).for_each(|_| *point = point.double());
                }
            }
            Jacobian::all_to_affine(&all)
        };
        let points_per_list = lists.first().map_or(0, Vec::len);
        assert!(lists.iter().all(|list| list.len() == points_per_list), "lists of one length");
        Self { points_per_list, multiples: lists.iter().map(multiples).collect() }
    }

    /// For each list, the sum of its points times as many scalars below the order.
    pub(crate) fn sums(&self, backend: Backend, scalars: &[Vec<[u64; 4]>]) -> Vec<Jacobian<BlsG1>> {
        assert_eq!(scalars.len(), self.multiples.len(), "scalars for every list");
        on_backend!(
            backend;
            self.sums_by::<Single<Fp>>(scalars),
            L => self.sums_by::<VectorOf<L, Fp>>(scalars)
        )
    }

    fn sums_by<V: Vector<Scalar = Fp>>(&self, scalars: &[Vec<[u64; 4]>]) -> Vec<Jacobian<BlsG1>> {
        let shape = Shape { width: WIDTH, windows: 1, column_bits: (WIDTH - 1) / 2 };
        // As many lists at a time as fit into the L2 cache; each corresponds to a window of other sums.
        let at_once = (V::REFS_AT_ONCE / (WINDOWS * self.points_per_list).max(1)).max(1);
        let mut lists = Lists::<V>::new(core::iter::empty());
        let mut sums = Vec::with_capacity(scalars.len());
        let (mut refs, mut ends, mut buckets) = (Vec::new(), Vec::new(), Vec::new());
        for (multiples, scalars) in self.multiples.chunks(at_once).zip(scalars.chunks(at_once)) {
            lists.refill(multiples.iter().flatten().map(|point| (point.x, point.y)));
            refs.clear();
            ends.clear();
            buckets.clear();
            let mut first = 0;
            for (multiples, scalars) in multiples.iter().zip(scalars) {
                sort(shape, multiples, scalars, first, &mut refs, &mut ends);
                first += multiples.len() as u32;
            }
            lists.sum_in_parts(&refs, &ends, V::REFS_AT_ONCE, &mut buckets);
            let lines = sum_lines(&mut lists, shape, &buckets);
            let bits = sum_bits(&mut lists, shape, &lines);
            sums.extend(bits.chunks_exact(WIDTH).map(|bits| {
                bits.iter().rev().fold(Jacobian::INFINITY, |sum, &reference| {
                    let twice = sum.double();
                    match lists.point(reference) {
                        Some((x, y)) => twice.add_affine(&Affine::new(x, y)),
                        None => twice,
                    }
                })
            }));
        }
        sums
    }
}

/// Appends references to the multiples of a list, by the magnitude of their digit, and the end of each bucket.
fn sort<C: Curve>(
    shape: Shape,
    multiples: &[Affine<C>],
    scalars: &[[u64; 4]],
    first: u32,
    refs: &mut Vec<u32>,
    ends: &mut Vec<u32>,
) {
    let shape = Shape { windows: WINDOWS, ..shape };
    let mut places = Vec::with_capacity(multiples.len());
    let mut counts = [0u32; 1 << (WIDTH - 1)];
    for (point, scalar) in scalars.iter().enumerate() {
        if multiples[point].is_infinity {
            continue;
        }
        for_each_digit(shape, scalar, |window, magnitude, is_negative| {
            if magnitude != 0 {
                let reference = first + (window * scalars.len() + point) as u32;
                places.push((magnitude as usize - 1, reference | sign(is_negative)));
                counts[magnitude as usize - 1] += 1;
            }
        });
    }
    let mut end = refs.len() as u32;
    let mut starts = counts.map(|count| {
        end += count;
        end - count
    });
    refs.resize(end as usize, 0);
    for (bucket, reference) in places {
        refs[starts[bucket] as usize] = reference;
        starts[bucket] += 1;
    }
    // The position after the last reference of a bucket is its end.
    ends.extend(starts);
}
