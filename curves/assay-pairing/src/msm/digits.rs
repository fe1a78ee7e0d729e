//! Splitting of scalars into signed digits, and sorting by them.

use core::ops::Range;

use super::{Share, sign};
use crate::limbs;

/// Parameters of the splitting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Shape {
    /// Bits of a window. Digits are from `-2^(width - 1) + 1` to `2^(width - 1)`.
    pub(super) width: usize,
    pub(super) windows: usize,
    /// Number of bits of a column's index.
    pub(super) column_bits: usize,
}

impl Shape {
    /// The shape with the fewest additions in the largest of `shares` shares of the windows: one
    /// per point and window, two per bucket, and the start-up cost of a window's lists.
    pub(super) fn for_points(points: usize, bits: usize, lanes: usize, shares: usize) -> Self {
        let shape = |width: usize| Self {
            width,
            // The top digit takes the carries of the others.
            windows: bits / width + 1,
            column_bits: (width - 1) / 2,
        };
        let cost = |shape: &Self| shape.cost(points, lanes, shares);
        (2..=16).map(shape).min_by_key(cost).expect("some width")
    }

    /// Number of additions for `points` points, in the largest share.
    pub(super) fn cost(&self, points: usize, lanes: usize, shares: usize) -> usize {
        self.windows.div_ceil(shares) * (points + 2 * self.buckets() + 8 * lanes)
    }

    pub(super) fn windows_of(&self, share: Share) -> Range<usize> {
        let start = |index: usize| index * self.windows / share.count;
        start(share.index)..start(share.index + 1)
    }

    /// Number of buckets of a window, for digits of a magnitude from 1 on.
    pub(super) fn buckets(self) -> usize {
        1 << (self.width - 1)
    }

    /// Number of columns of the rectangle.
    pub(super) fn columns(self) -> usize {
        1 << self.column_bits
    }

    /// Number of rows of the rectangle; the last one has only the last bucket.
    pub(super) fn rows(self) -> usize {
        (1 << (self.width - 1 - self.column_bits)) + 1
    }
}

/// The digits of all scalars in some windows.
#[derive(Debug)]
pub(super) struct Digits {
    pub(super) shape: Shape,
    pub(super) windows: Range<usize>,
    pub(super) points: usize,
    /// By window: the magnitude, and the sign as in references. Magnitude 0 stands for no point.
    places: Vec<u32>,
}

impl Digits {
    pub(super) fn new(
        shape: Shape,
        windows: Range<usize>,
        order: &[u64; 4],
        scalars: &[[u64; 4]],
        is_left_out: impl Fn(usize) -> bool,
    ) -> Self {
        let points = scalars.len();
        let mut places = vec![0; points * windows.len()];
        for (index, scalar) in scalars.iter().enumerate() {
            if is_left_out(index) {
                continue;
            }
            let mut number = *scalar;
            while !limbs::less(&number, order) {
                number = limbs::sub(&number, order).0;
            }
            for_each_digit(shape, &number, |window, magnitude, is_negative| {
                if windows.contains(&window) {
                    let place = (window - windows.start) * points + index;
                    places[place] = magnitude | sign(is_negative);
                }
            });
        }
        Self { shape, windows, points, places }
    }

    /// Concatenated lists of all buckets of some windows, relative to the first: references to points, and list ends.
    pub(super) fn sort(&self, windows: Range<usize>, refs: &mut Vec<u32>, ends: &mut Vec<u32>) {
        let buckets = self.shape.buckets();
        ends.clear();
        // One more entry, so that counts become ends by a shift.
        ends.resize(windows.len() * buckets + 1, 0);
        let places = &self.places[windows.start * self.points..windows.end * self.points];
        if self.points == 0 {
            ends.pop();
            refs.clear();
            return;
        }
        for (number, places) in places.chunks_exact(self.points).enumerate() {
            let counts = &mut ends[number * buckets..][..=buckets];
            for place in places {
                let magnitude = (place & !sign(true)) as usize;
                if magnitude != 0 {
                    counts[magnitude] += 1;
                }
            }
        }
        // Now entry k + 1 has the count of list k. Entry k becomes its start, then its end as the list is filled.
        let mut total = 0;
        for end in &mut *ends {
            total += *end;
            *end = total;
        }
        refs.clear();
        refs.resize(total as usize, 0);
        for (number, places) in places.chunks_exact(self.points).enumerate() {
            let starts = &mut ends[number * buckets..][..buckets];
            for (point, place) in (0u32..).zip(places) {
                let magnitude = (place & !sign(true)) as usize;
                if magnitude != 0 {
                    let start = &mut starts[magnitude - 1];
                    refs[*start as usize] = point | place & sign(true);
                    *start += 1;
                }
            }
        }
        ends.pop();
    }
}

/// Calls back for each window of a number below the order, with the magnitude of its digit and true if it is negative.
#[inline(always)]
pub(super) fn for_each_digit(
    shape: Shape,
    number: &[u64; 4],
    mut call: impl FnMut(usize, u32, bool),
) {
    let mut carry = 0;
    for window in 0..shape.windows {
        let digit = bits_from(number, window * shape.width, shape.width) + carry;
        let is_negative = digit > shape.buckets() as u32;
        carry = u32::from(is_negative);
        let magnitude = if is_negative { (1 << shape.width) - digit } else { digit };
        call(window, magnitude, is_negative);
    }
    debug_assert_eq!(carry, 0);
}

/// Bits of a number from a position on; zero above the number.
#[inline(always)]
fn bits_from(number: &[u64; 4], first: usize, width: usize) -> u32 {
    let (word, shift) = (first / 64, first % 64);
    let mut bits = if word < 4 { number[word] >> shift } else { 0 };
    if shift + width > 64 && word + 1 < 4 {
        bits |= number[word + 1] << (64 - shift);
    }
    (bits & ((1 << width) - 1)) as u32
}
