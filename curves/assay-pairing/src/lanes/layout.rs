//! Memory layout of points: one or two lines of 64 bytes each, so that eight points are loaded by transposing words.

use super::{LANES, Lanes, Words};

/// Memory layout of affine points, for coordinates of `K` limbs.
pub(crate) trait Layout<const K: usize>: Copy {
    const ZERO: Self;
    /// Loads x and y of eight points.
    fn load<'p, L: Lanes>(point: &impl Fn(usize) -> &'p Self) -> [[L; K]; 2]
    where
        Self: 'p;
    /// Loads x of eight points.
    fn load_x<'p, L: Lanes>(point: &impl Fn(usize) -> &'p Self) -> [L; K]
    where
        Self: 'p;
    /// Prefetches a point.
    fn prefetch<L: Lanes>(&self);
    /// Stores eight consecutive points.
    fn store<L: Lanes>(x: &[L; K], y: &[L; K], points: &mut [Self]);
}

/// Two lines: eight limbs of x, eight of y.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C, align(64))]
pub(crate) struct TwoLines([Words; 2]);

impl Layout<8> for TwoLines {
    const ZERO: Self = Self([[0; 8]; 2]);

    #[inline(always)]
    fn load<'p, L: Lanes>(point: &impl Fn(usize) -> &'p Self) -> [[L; 8]; 2] {
        [
            L::load_transposed(&|lane| &point(lane).0[0]),
            L::load_transposed(&|lane| &point(lane).0[1]),
        ]
    }

    #[inline(always)]
    fn load_x<'p, L: Lanes>(point: &impl Fn(usize) -> &'p Self) -> [L; 8] {
        L::load_transposed(&|lane| &point(lane).0[0])
    }

    #[inline(always)]
    fn prefetch<L: Lanes>(&self) {
        L::prefetch(&self.0[0]);
        L::prefetch(&self.0[1]);
    }

    #[inline(always)]
    fn store<L: Lanes>(x: &[L; 8], y: &[L; 8], points: &mut [Self]) {
        let mut lines = [[0; 8]; LANES];
        L::store_transposed(*x, &mut lines);
        for lane in 0..LANES {
            points[lane].0[0] = lines[lane];
        }
        L::store_transposed(*y, &mut lines);
        for lane in 0..LANES {
            points[lane].0[1] = lines[lane];
        }
    }
}

/// One line: x and y as four words each. For values below 2^256, limbs carried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C, align(64))]
pub(crate) struct OneLine(Words);

impl Layout<5> for OneLine {
    const ZERO: Self = Self([0; 8]);

    #[inline(always)]
    fn load<'p, L: Lanes>(point: &impl Fn(usize) -> &'p Self) -> [[L; 5]; 2] {
        let [a, b, c, d, e, f, g, h] = L::load_transposed(&|lane| &point(lane).0);
        [unpack([a, b, c, d]), unpack([e, f, g, h])]
    }

    #[inline(always)]
    fn load_x<'p, L: Lanes>(point: &impl Fn(usize) -> &'p Self) -> [L; 5] {
        let [a, b, c, d, ..] = L::load_transposed(&|lane| &point(lane).0);
        unpack([a, b, c, d])
    }

    #[inline(always)]
    fn prefetch<L: Lanes>(&self) {
        L::prefetch(&self.0);
    }

    #[inline(always)]
    fn store<L: Lanes>(x: &[L; 5], y: &[L; 5], points: &mut [Self]) {
        let ([a, b, c, d], [e, f, g, h]) = (pack(x), pack(y));
        let mut lines = [[0; 8]; LANES];
        L::store_transposed([a, b, c, d, e, f, g, h], &mut lines);
        for lane in 0..LANES {
            points[lane].0 = lines[lane];
        }
    }
}

const MASK: u64 = (1 << 52) - 1;

/// Converts four words to five limbs.
#[inline(always)]
fn unpack<L: Lanes>([a, b, c, d]: [L; 4]) -> [L; 5] {
    let mask = L::splat(MASK);
    [
        a.and(mask),
        a.shr::<52>().or(b.shl::<12>()).and(mask),
        b.shr::<40>().or(c.shl::<24>()).and(mask),
        c.shr::<28>().or(d.shl::<36>()).and(mask),
        d.shr::<16>(),
    ]
}

/// Inverse of [`unpack`], for a top limb below 2^48.
#[inline(always)]
fn pack<L: Lanes>([a, b, c, d, e]: &[L; 5]) -> [L; 4] {
    e.expect_below(48);
    [
        a.or(b.shl::<52>()),
        b.shr::<12>().or(c.shl::<40>()),
        c.shr::<24>().or(d.shl::<28>()),
        d.shr::<36>().or(e.shl::<16>()),
    ]
}
