//! Exhaustive tests of the point formulas on small groups.
//!
//! The formulas do not contain the 7 of y^2 = x^3 + 7, so they hold on every curve y^2 = x^3 + b over the same field, and some of
//! these have subgroups of 7, 13 and 199 points: those of libsecp256k1's `tests_exhaustive.c`. There, every pair of points can be
//! added, and exceptional additions are frequent. Each result must be correct or have Z = 0.

use super::curve::{self, Affine, BETA, Jacobian};
use super::field::{Fe, LIMBS};
use super::group::{G_MULTIPLES, Group, Part};
use super::tests::{PRIME, Words, read, slow_add, slow_mul};
use super::{LANES, Lanes, Line, firsts};
use crate::Backend;
use crate::backend::{Portable, PortableRounded};

/// x and y below the prime.
type Point = (Words, Words);

/// All points of a cyclic group except infinity: entry k is k + 1 times the generator.
struct SmallGroup {
    points: Vec<Point>,
}

/// The orders, and generators: a point of the curve times its cofactor.
const GENERATORS: [(usize, Point); 3] = [
    (
        7,
        (
            [
                0x8aac_46fb_6d5a_117a,
                0x47bb_0e87_da93_e067,
                0x0b64_da9c_b2fa_f6e0,
                0xb79a_a770_5104_bae0,
            ],
            [
                0xda85_7e9c_ba27_cdbc,
                0x73fe_a012_dee4_a381,
                0x73c2_e8a7_fa9f_d98e,
                0x3e75_38a8_2c91_f813,
            ],
        ),
    ),
    (
        13,
        (
            [
                0x88e4_89aa_3d68_746b,
                0x929c_645b_e565_84aa,
                0x346a_9753_30b1_2e1d,
                0x3ad3_e1ec_92dc_070a,
            ],
            [
                0x6c60_7f91_c852_0383,
                0xf150_65bc_0910_01aa,
                0xf787_bb15_bc0b_9fc1,
                0xab34_e494_2373_ed8c,
            ],
        ),
    ),
    (
        199,
        (
            [
                0xfb12_940c_9ea6_6c18,
                0x3b01_7a7d_a808_c2f1,
                0xa749_dd39_2b4f_b069,
                0xfa7c_c9a7_0737_f2db,
            ],
            [
                0xcfe5_2572_7f05_01ed,
                0x48df_246c_808d_ae72,
                0x8732_bc91_1f3a_2868,
                0x78ac_123a_5ed8_aef3,
            ],
        ),
    ),
];

/// The inverse modulo the prime, by Fermat's little theorem.
fn slow_inverse(a: &Words) -> Words {
    let mut power = [1, 0, 0, 0];
    let exponent = [PRIME[0] - 2, PRIME[1], PRIME[2], PRIME[3]];
    for bit in (0..256).rev() {
        power = slow_mul(&power, &power);
        if exponent[bit / 64] >> (bit % 64) & 1 == 1 {
            power = slow_mul(&power, a);
        }
    }
    power
}

fn slow_sub(a: &Words, b: &Words) -> Words {
    let mut negated = [0; 4];
    let mut borrow = false;
    for k in 0..4 {
        (negated[k], borrow) = PRIME[k].borrowing_sub(b[k], borrow);
    }
    slow_add(a, &negated)
}

/// Reference sum of points; `None` is infinity.
fn slow_sum(a: &Point, b: &Point) -> Option<Point> {
    let slope = if a.0 != b.0 {
        slow_mul(&slow_sub(&b.1, &a.1), &slow_inverse(&slow_sub(&b.0, &a.0)))
    } else if a.1 == b.1 {
        let square = slow_mul(&a.0, &a.0);
        let thrice = slow_add(&slow_add(&square, &square), &square);
        slow_mul(&thrice, &slow_inverse(&slow_add(&a.1, &a.1)))
    } else {
        return None;
    };
    let x = slow_sub(&slow_sub(&slow_mul(&slope, &slope), &a.0), &b.0);
    let y = slow_sub(&slow_mul(&slope, &slow_sub(&a.0, &x)), &a.1);
    Some((x, y))
}

impl SmallGroup {
    fn new(order: usize, generator: Point) -> Self {
        let mut points = vec![generator];
        while let Some(next) = slow_sum(&points[points.len() - 1], &generator) {
            points.push(next);
        }
        assert_eq!(points.len() + 1, order);
        Self { points }
    }

    fn all() -> Vec<Self> {
        GENERATORS.into_iter().map(|(order, generator)| Self::new(order, generator)).collect()
    }

    fn order(&self) -> usize {
        self.points.len() + 1
    }

    /// A multiple of the generator other than infinity.
    fn point(&self, multiple: usize) -> &Point {
        &self.points[multiple % self.order() - 1]
    }

    /// The multiple of the generator with beta times its x, if the group has that point.
    fn lambda(&self) -> Option<usize> {
        let [beta, ..] = read(Fe::<Portable>::constant(BETA));
        let (x, y) = self.points[0];
        let image = (slow_mul(&beta, &x), y);
        self.points.iter().position(|point| *point == image).map(|index| index + 1)
    }
}

/// X, Y and Z of eight points in memory, shared by code with and without vectors.
pub(crate) type Raw = [[[u64; LANES]; LIMBS]; 3];

/// The tested formulas. An affine point may have any Z.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Formulas {
    pub(crate) double: fn(&Raw) -> Raw,
    pub(crate) add: fn(&Raw, &Raw) -> Raw,
    pub(crate) add_jacobian: fn(&Raw, &Raw) -> Raw,
    /// Low and high parts of products, small products, and values of factors, without offsets.
    pub(crate) products: fn(&[[u64; LANES]; 2]) -> [[u64; LANES]; 4],
    /// The ladders of a check and of a tweak.
    pub(crate) ladders: fn(&Raw, &Group, &[Line]) -> [Raw; 2],
}

#[inline(always)]
fn load<L: Lanes>(raw: &Raw, first: usize) -> Jacobian<L> {
    Jacobian {
        x: Fe::load(&raw[0], first),
        y: Fe::load(&raw[1], first).factor(),
        z: Fe::load(&raw[2], first).factor(),
    }
}

#[inline(always)]
fn load_affine<L: Lanes>(raw: &Raw, first: usize) -> Affine<L> {
    Affine { x: Fe::load(&raw[0], first), y: Fe::load(&raw[1], first) }
}

#[inline(always)]
fn store<L: Lanes>(point: &Jacobian<L>, raw: &mut Raw, first: usize) {
    point.x.store(&mut raw[0], first);
    point.y.fe().store(&mut raw[1], first);
    point.z.fe().store(&mut raw[2], first);
}

const ZEROS: Raw = [[[0; LANES]; LIMBS]; 3];

#[inline(always)]
pub(crate) fn double<L: Lanes>(point: &Raw) -> Raw {
    let mut raw = ZEROS;
    for first in firsts::<L>() {
        store(&load::<L>(point, first).double(), &mut raw, first);
    }
    raw
}

#[inline(always)]
pub(crate) fn add<L: Lanes>(a: &Raw, b: &Raw) -> Raw {
    let mut raw = ZEROS;
    for first in firsts::<L>() {
        store(&load::<L>(a, first).add(&load_affine(b, first)), &mut raw, first);
    }
    raw
}

#[inline(always)]
pub(crate) fn add_jacobian<L: Lanes>(a: &Raw, b: &Raw) -> Raw {
    let mut raw = ZEROS;
    for first in firsts::<L>() {
        store(&load::<L>(a, first).add_jacobian(&load(b, first)), &mut raw, first);
    }
    raw
}

#[inline(always)]
pub(crate) fn products<L: Lanes>(operands: &[[u64; LANES]; 2]) -> [[u64; LANES]; 4] {
    let zero = L::splat(0);
    let (low_offset, high_offset) = (L::splat(L::LOW_OFFSET), L::splat(L::HIGH_OFFSET));
    let mut results = [[0; LANES]; 4];
    for first in firsts::<L>() {
        let (x, y) = (L::load(&operands[0], first), L::load(&operands[1], first));
        let (a, b) = (x.factor(), y.factor());
        let small = [x.and(L::splat(0x1ff)), y.and(L::splat((1 << 37) - 1))];
        let [c, d] = [small[0].factor(), small[1].factor()];
        let [low, high, product, value] = &mut results;
        zero.add_mul_low(a, b).sub(low_offset).store(low, first);
        zero.add_mul_high(a, b).sub(high_offset).store(high, first);
        zero.add_small_product(c, d).sub(low_offset).store(product, first);
        a.value().and(L::splat((1 << 52) - 1)).store(value, first);
    }
    results
}

#[inline(always)]
pub(crate) fn ladders<L: Lanes>(key: &Raw, digits: &Group, table: &[Line]) -> [Raw; 2] {
    let mut raw = [ZEROS; 2];
    for first in firsts::<L>() {
        let key = load_affine::<L>(key, first);
        let part = Part { group: digits, first };
        store(&curve::multiply(&[key], &[part], table)[0], &mut raw[0], first);
        store(&curve::tweak(&[key], &[part], table)[0], &mut raw[1], first);
    }
    raw
}

fn fe(words: &[Words; LANES]) -> Fe<Portable> {
    Fe::from_words(std::array::from_fn(|word| {
        Portable::load(&std::array::from_fn(|lane| words[lane][word]), 0)
    }))
}

/// The points of the multiples.
fn affine(group: &SmallGroup, multiples: &[usize; LANES]) -> Affine<Portable> {
    let points = multiples.map(|multiple| *group.point(multiple));
    Affine { x: fe(&points.map(|(x, _)| x)), y: fe(&points.map(|(_, y)| y)) }
}

/// The same with Z from a seed, or one.
fn scaled(group: &SmallGroup, multiples: &[usize; LANES], seed: Option<u64>) -> Raw {
    let point = affine(group, multiples);
    let words = seed.map_or([1, 0, 0, 0], |seed| {
        [seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1, seed, !seed, 1]
    });
    let z = fe(&[words; LANES]).factor();
    let zz = z.sqr();
    let mut raw = ZEROS;
    let point = Jacobian { x: point.x.mul(zz), y: point.y.factor().mul(zz).mul(z), z };
    store(&point, &mut raw, 0);
    raw
}

/// Compares with multiples of the generator; 0 is infinity. Returns the lanes with Z = 0; all others must be correct.
fn check(group: &SmallGroup, raw: &Raw, expected: &[usize; LANES]) -> u8 {
    let point = load::<Portable>(raw, 0);
    let flagged = point.z.fe().zeros();
    let infinite = expected.map(|multiple| multiple.is_multiple_of(group.order()));
    for (lane, is_infinite) in infinite.into_iter().enumerate() {
        assert!(!is_infinite || flagged >> lane & 1 == 1, "infinity is flagged");
    }
    let finite =
        expected.map(|multiple| if multiple.is_multiple_of(group.order()) { 1 } else { multiple });
    let affine = affine(group, &finite);
    let zz = point.z.sqr();
    let is_x = affine.x.mul(zz).equals(&point.x);
    let is_y = affine.y.factor().mul(zz).mul(point.z).fe().equals(&point.y.fe());
    assert_eq!(is_x & is_y | flagged, u8::MAX, "{expected:?}");
    flagged
}

/// Tests all doublings and additions.
fn test_formulas(formulas: &Formulas, group: &SmallGroup) {
    let order = group.order();
    let pairs = (order - 1) * (order - 1);
    for first in (0..pairs).step_by(LANES) {
        let pair = |lane: usize| (first + lane).min(pairs - 1);
        let a: [usize; LANES] = std::array::from_fn(|lane| 1 + pair(lane) / (order - 1));
        let b: [usize; LANES] = std::array::from_fn(|lane| 1 + pair(lane) % (order - 1));
        let sums: [usize; LANES] = std::array::from_fn(|lane| a[lane] + b[lane]);
        let exceptional = (0..LANES).fold(0, |mask, lane| {
            mask | u8::from(a[lane] == b[lane] || sums[lane] == order) << lane
        });
        let (p, q) = (scaled(group, &a, Some(first as u64)), scaled(group, &b, None));
        assert_eq!(check(group, &p, &a), 0);
        assert_eq!(check(group, &(formulas.double)(&p), &a.map(|a| 2 * a)), 0);
        let sum = (formulas.add)(&p, &q);
        // Exactly the exceptional additions are flagged.
        assert_eq!(check(group, &sum, &sums), exceptional);
        let q = scaled(group, &b, Some(!first as u64));
        let other = (formulas.add_jacobian)(&p, &q);
        assert_eq!(check(group, &other, &sums), exceptional);
        // Zero persists.
        let zeros = |raw: &Raw| load::<Portable>(raw, 0).z.fe().zeros() & exceptional;
        assert_eq!(zeros(&(formulas.double)(&sum)), exceptional);
        assert_eq!(zeros(&(formulas.add)(&sum, &scaled(group, &a, None))), exceptional);
        assert_eq!(zeros(&(formulas.add_jacobian)(&other, &p)), exceptional);
        assert_eq!(zeros(&(formulas.add_jacobian)(&p, &other)), exceptional);
    }
}

/// The ladders with every point as the key and every `step`-th as the generator, with random digits in all windows. Prints the
/// numbers of correct and flagged lanes.
fn test_ladders(formulas: &Formulas, group: &SmallGroup, step: usize) {
    let order = group.order();
    // Without lambda the halves cannot be combined. The key's table has multiples to 31, so in the smallest groups one of them is
    // infinity and every check is flagged.
    let Some(lambda) = group.lambda() else { return };
    let mut seed = 88_172_645_463_325_252u64;
    let (mut right, mut flagged) = ([0; 2], [0; 2]);
    for generator in (1..order).step_by(step) {
        let table = table(group, generator);
        for first in (1..order).step_by(LANES) {
            let keys: [usize; LANES] = std::array::from_fn(|lane| (first + lane).min(order - 1));
            let mut digits = Group::new();
            let (of_generator, of_keys) = set_digits(&mut digits, order, lambda, &mut seed);
            let multiple = |lane: usize| of_generator[lane] * generator;
            let sums = std::array::from_fn(|lane| multiple(lane) + of_keys[lane] * keys[lane]);
            let tweaked = std::array::from_fn(|lane| multiple(lane) + keys[lane]);
            let results = (formulas.ladders)(&scaled(group, &keys, None), &digits, &table);
            for (k, (result, expected)) in results.iter().zip([sums, tweaked]).enumerate() {
                let lanes = check(group, result, &expected).count_ones();
                flagged[k] += lanes;
                right[k] += LANES as u32 - lanes;
            }
        }
    }
    println!("order {order}: {right:?} right, {flagged:?} flagged, none wrong");
    assert!(right[0] > 0 || order < 32);
    assert!(right[1] > 0 && flagged[0] > 0);
}

/// Odd multiples of a point, with another point in place of infinity.
fn table(group: &SmallGroup, point: usize) -> Vec<Line> {
    let line = |index: usize| {
        let multiple = (2 * index + 1) * point % group.order();
        let (x, y) = group.point(multiple.max(1));
        Line([x[0], x[1], x[2], x[3], y[0], y[1], y[2], y[3]])
    };
    (0..G_MULTIPLES).map(line).collect()
}

/// Sets random digits, for the generator none that is a multiple of the order; returns the numbers modulo the order.
fn set_digits(
    group: &mut Group,
    order: usize,
    lambda: usize,
    seed: &mut u64,
) -> ([usize; LANES], [usize; LANES]) {
    let mut random = |limit: usize| {
        *seed ^= *seed << 13;
        *seed ^= *seed >> 7;
        *seed ^= *seed << 17;
        (*seed >> 20) as usize % limit
    };
    let mut sums = ([0; LANES], [0; LANES]);
    let term = |index: usize, is_negative: bool, bits: usize, half: usize| {
        let digit = (2 * index + 1) % order;
        let digit = if is_negative { order - digit } else { digit };
        let weight = (0..bits).fold(1, |weight, _| 2 * weight % order);
        digit * weight % order * if half == 1 { lambda } else { 1 } % order
    };
    for lane in 0..LANES {
        for (position, digit) in group.g_digits.iter_mut().enumerate() {
            let mut index = random(G_MULTIPLES);
            while (2 * index + 1).is_multiple_of(order) {
                index = random(G_MULTIPLES);
            }
            let is_negative = random(2) == 1;
            digit.index[lane] = index as u16;
            digit.negative |= u8::from(is_negative) << lane;
            sums.0[lane] += term(index, is_negative, 13 * (position / 2), position % 2);
        }
        for (position, digit) in group.q_digits.iter_mut().enumerate() {
            let (index, is_negative) = (random(16), random(2) == 1);
            digit.index[lane] = index as u8;
            digit.negative |= u8::from(is_negative) << lane;
            sums.1[lane] += term(index, is_negative, 5 * (position / 2), position % 2);
        }
    }
    sums
}

/// Products of operands with many zeros and ones, and with low halves around a half.
#[test]
fn parts_of_products() {
    let mut seed = 0x2545_f491_4f6c_dd1du64;
    let mut next = || {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        seed.wrapping_mul(0x9e37_79b9_7f4a_7c15)
    };
    let mut operand = || match next() % 6 {
        0 => (1 << 52) - 1 - next() % 3,
        1 => next() % 3,
        2 => 1 << (next() % 52),
        3 => (1 << (next() % 53)) - 1,
        // Bits above 52 are ignored.
        _ => next(),
    };
    for _ in 0..20_000 {
        let operands: [[u64; LANES]; 2] =
            std::array::from_fn(|_| std::array::from_fn(|_| operand()));
        for backend in Backend::all() {
            let Some(kernels) = backend.kernels() else { continue };
            let results = (kernels.formulas.products)(&operands);
            let rounds = matches!(backend, Backend::Avx2 | Backend::PortableRounded);
            let oracle = if rounds { products::<PortableRounded> } else { products::<Portable> };
            assert_eq!(results, oracle(&operands), "{}: {operands:x?}", backend.name());
            let [low, high, _, _] = results;
            for lane in 0..LANES {
                let [x, y] = operands.map(|x| u128::from(x[lane] & ((1 << 52) - 1)));
                let sum = (i128::from(high[lane]) << 52) + i128::from(low[lane] as i64);
                assert_eq!(sum as u128, x * y);
                let limit = if rounds { -(1 << 51)..=1 << 51 } else { 0..=(1 << 52) - 1 };
                assert!(limit.contains(&(low[lane] as i64)));
            }
        }
    }
}

#[test]
fn small_groups() {
    for backend in Backend::all() {
        let Some(kernels) = backend.kernels() else {
            println!("skipped: this CPU does not run {}", backend.name());
            continue;
        };
        println!("{}:", backend.name());
        let is_portable = matches!(backend, Backend::Portable | Backend::PortableRounded);
        for group in SmallGroup::all() {
            test_formulas(&kernels.formulas, &group);
            test_ladders(&kernels.formulas, &group, if is_portable { 40 } else { 1 });
        }
    }
}
