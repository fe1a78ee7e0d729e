//! Sums of points times digits 0, 1 and 2, many places at once.

use super::lists::{EMPTY, Lists};
use super::vector::Vector;
use crate::curve::{Affine, Curve, Jacobian};

/// Splitting of a point's digits into blocks.
#[derive(Clone, Copy, Debug)]
pub struct Ternary {
    /// Number of digits per block; even.
    pub places: u32,
    pub blocks: usize,
}

/// For each block, and in it for each place from the lowest on, the sum of all points times their digit there.
pub(super) fn sums<C: Curve, V: Vector<Scalar = C::Base>>(
    points: &[Affine<C>],
    shape: Ternary,
    numbers: &[Vec<u16>],
) -> Vec<Jacobian<C>> {
    let mut lists = Lists::<V>::new(points.iter().map(|point| (point.x, point.y)));
    let mut sums = Vec::new();
    for numbers in numbers {
        let buckets = 3usize.pow(shape.places);
        let (refs, ends) = sorted(points, numbers, buckets);
        let mut of_buckets = Vec::with_capacity(buckets);
        lists.sum_in_parts(&refs, &ends, V::REFS_AT_ONCE, &mut of_buckets);
        let of_lines = sum_lines(&mut lists, shape.places / 2, &of_buckets);
        sums.extend(sum_places::<C, V>(&mut lists, shape.places / 2, &of_lines));
        lists.forget(points.len());
    }
    sums
}

/// References to points by their numbers, and the end of each list.
fn sorted<C: Curve>(points: &[Affine<C>], numbers: &[u16], buckets: usize) -> (Vec<u32>, Vec<u32>) {
    let mut ends = vec![0u32; buckets + 1];
    let finite = || (0u32..).zip(points.iter().zip(numbers)).filter(|(_, (p, _))| !p.is_infinity);
    for (_, (_, number)) in finite() {
        ends[usize::from(*number) + 1] += 1;
    }
    for bucket in 0..buckets {
        ends[bucket + 1] += ends[bucket];
    }
    let mut refs = vec![0; ends[buckets] as usize];
    for (index, (_, number)) in finite() {
        let start = &mut ends[usize::from(*number)];
        refs[*start as usize] = index;
        *start += 1;
    }
    ends.pop();
    (refs, ends)
}

/// Arranges buckets as a square: sums of its rows, then of its columns.
fn sum_lines<V: Vector>(lists: &mut Lists<V>, half: u32, buckets: &[u32]) -> Vec<u32> {
    let side = 3usize.pow(half);
    let (mut refs, mut ends) = (Vec::new(), Vec::new());
    for line in 0..2 * side {
        for k in 0..side {
            let bucket = if line < side { line * side + k } else { k * side + line - side };
            if buckets[bucket] != EMPTY {
                refs.push(buckets[bucket]);
            }
        }
        ends.push(refs.len() as u32);
    }
    let mut lines = Vec::with_capacity(ends.len());
    lists.sum_in_parts(&refs, &ends, V::REFS_AT_ONCE, &mut lines);
    lines
}

/// Sums of the lines whose number has a digit, by place: columns have the low places.
fn sum_places<C: Curve, V: Vector<Scalar = C::Base>>(
    lists: &mut Lists<V>,
    half: u32,
    lines: &[u32],
) -> Vec<Jacobian<C>> {
    let side = 3usize.pow(half);
    let (rows, columns) = lines.split_at(side);
    let (mut refs, mut ends) = (Vec::new(), Vec::new());
    for place in 0..2 * half {
        let lines = if place < half { columns } else { rows };
        for digit in 1..=2 {
            for (number, line) in lines.iter().enumerate() {
                if number / 3usize.pow(place % half) % 3 == digit && *line != EMPTY {
                    refs.push(*line);
                }
            }
            ends.push(refs.len() as u32);
        }
    }
    let mut sums = Vec::with_capacity(ends.len());
    lists.sum_in_parts(&refs, &ends, V::REFS_AT_ONCE, &mut sums);
    let point = |reference: u32| match lists.point(reference) {
        Some((x, y)) => Jacobian::from(Affine::new(x, y)),
        None => Jacobian::INFINITY,
    };
    sums.chunks_exact(2).map(|pair| point(pair[0]) + point(pair[1]).double()).collect()
}
