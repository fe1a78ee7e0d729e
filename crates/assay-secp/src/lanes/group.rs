//! Eight checks of one kind, from operands to results.

use super::curve::{self, Affine, Jacobian, in_step};
use super::field::{self, Columns, Fe, LIMBS, Sum};
use super::{LANES, Lanes, Line, firsts};
use crate::scalar::Digits;

/// 5-bit windows of half a scalar.
pub(crate) const Q_WINDOWS: usize = 26;

/// 13-bit windows of half a scalar.
pub(crate) const G_WINDOWS: usize = 10;

/// Halves of a scalar for the key.
pub(crate) const Q_HALVES: usize = 2;

/// Halves of a scalar for the generator.
pub(crate) const G_HALVES: usize = 2;

/// Odd multiples of the generator in the table, 1 to 8191.
pub(crate) const G_MULTIPLES: usize = 4096;

/// Condition of the eight checks on `R = u1 G + u2 Q`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Question {
    /// Its x coordinate is r modulo the group order. Only r itself is tried.
    Ecdsa,
    /// Its x coordinate is r and its y coordinate has the required parity.
    Schnorr,
    /// Its x coordinate is r and its y coordinate is a square.
    SchnorrBch,
    /// As `Schnorr` for `R = u1 G + Q`.
    Tweak,
    /// Computes the point itself: if proven, it is in [`Group::sum`]. There is no r.
    Recover,
}

/// One digit per lane.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Digit<T> {
    /// Index in the table of odd multiples.
    pub(crate) index: [T; LANES],
    /// Mask of the lanes that subtract.
    pub(crate) negative: u8,
}

/// Operands and results of eight lanes.
#[derive(Clone, Debug)]
pub(crate) struct Group {
    /// The x coordinate of the key in words, below the prime.
    pub(crate) key_x: [[u64; LANES]; 4],
    /// Mask of the lanes whose key has an odd y coordinate.
    pub(crate) key_odd: u8,
    /// The required x coordinate of R, below the prime.
    pub(crate) r: [[u64; LANES]; 4],
    /// Mask of the lanes in which the y coordinate of R must be odd.
    pub(crate) r_odd: u8,
    /// Digits of u2, lowest window first, with both halves of a window adjacent.
    pub(crate) q_digits: [Digit<u8>; Q_HALVES * Q_WINDOWS],
    /// Digits of u1.
    pub(crate) g_digits: [Digit<u16>; G_HALVES * G_WINDOWS],
    /// Mask of the lanes proven true.
    pub(crate) proven: u8,
    /// Mask of the lanes found false. Lanes in neither mask are unknown.
    pub(crate) refuted: u8,
    key_y: [[u64; LANES]; LIMBS],
    y: [[u64; LANES]; LIMBS],
    z: [[u64; LANES]; LIMBS],
    prefix: [[u64; LANES]; LIMBS],
}

impl Group {
    /// Placeholder operands; every lane must be set.
    pub(crate) fn new() -> Self {
        Self {
            key_x: [[0; LANES]; 4],
            key_odd: 0,
            r: [[0; LANES]; 4],
            r_odd: 0,
            q_digits: [Digit::default(); Q_HALVES * Q_WINDOWS],
            g_digits: [Digit::default(); G_HALVES * G_WINDOWS],
            proven: 0,
            refuted: 0,
            key_y: [[0; LANES]; LIMBS],
            y: [[0; LANES]; LIMBS],
            z: [[0; LANES]; LIMBS],
            prefix: [[0; LANES]; LIMBS],
        }
    }

    /// Sets the key and the required x coordinate.
    pub(crate) fn set_points(&mut self, lane: usize, key: &Key, r: &[u64; 4], is_r_odd: bool) {
        for (lanes, word) in self.key_x.iter_mut().zip(key.x) {
            lanes[lane] = word;
        }
        for (lanes, &word) in self.r.iter_mut().zip(r) {
            lanes[lane] = word;
        }
        set_bit(&mut self.key_odd, lane, key.is_odd);
        set_bit(&mut self.r_odd, lane, is_r_odd);
    }

    /// Sets u1.
    pub(crate) fn set_generator_digits(&mut self, lane: usize, halves: &[Digits; G_HALVES]) {
        for (half, digits) in halves.iter().enumerate() {
            for window in 0..G_WINDOWS {
                let raw = digits.window::<13>(window);
                let is_negative = raw < 1 << 12;
                let digit = &mut self.g_digits[G_HALVES * window + half];
                digit.index[lane] =
                    (if is_negative { !raw } else { raw } & (G_MULTIPLES as u64 - 1)) as u16;
                set_bit(&mut digit.negative, lane, is_negative);
            }
        }
    }

    /// Sets u2.
    pub(crate) fn set_key_digits(&mut self, lane: usize, halves: &[Digits; Q_HALVES]) {
        for (half, digits) in halves.iter().enumerate() {
            for window in 0..Q_WINDOWS {
                let raw = digits.window::<5>(window);
                let is_negative = raw < 1 << 4;
                let digit = &mut self.q_digits[Q_HALVES * window + half];
                digit.index[lane] = (if is_negative { !raw } else { raw } & 15) as u8;
                set_bit(&mut digit.negative, lane, is_negative);
            }
        }
    }
}

impl Group {
    /// The result of a lane of [`Question::Recover`]: words of x and y, below the prime. It overwrites key and r, which are no
    /// longer needed.
    pub(crate) fn sum(&self, lane: usize) -> [[u64; 4]; 2] {
        [&self.key_x, &self.r].map(|words| words.map(|lanes| lanes[lane]))
    }

    /// Clears `proven` outside the mask, for the lanes from `first` on.
    #[inline(always)]
    fn keep<L: Lanes>(&mut self, first: usize, mask: u8) {
        self.proven &= !(L::ALL << first) | mask << first;
    }
}

/// A compressed key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Key {
    /// Words of the x coordinate, below the prime.
    pub(crate) x: [u64; 4],
    /// True if the y coordinate is odd.
    pub(crate) is_odd: bool,
}

/// One vector of lanes of a group, from `first` on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Part<'g> {
    pub(crate) group: &'g Group,
    pub(crate) first: usize,
}

#[inline(always)]
fn set_bit(mask: &mut u8, lane: usize, bit: bool) {
    *mask = *mask & !(1 << lane) | u8::from(bit) << lane;
}

#[inline(always)]
fn load_words<L: Lanes>(words: &[[u64; LANES]; 4], first: usize) -> Fe<L> {
    Fe::from_words([
        L::load(&words[0], first),
        L::load(&words[1], first),
        L::load(&words[2], first),
        L::load(&words[3], first),
    ])
}

/// The words of the residue below the prime.
#[inline(always)]
fn store_words<L: Lanes>(element: Fe<L>, words: &mut [[u64; LANES]; 4], first: usize) {
    let lanes = element.normalize().to_words();
    for k in 0..4 {
        lanes[k].store(&mut words[k], first);
    }
}

/// Processes all groups: sets `proven`.
#[inline(always)]
pub(crate) fn answer<L: Lanes>(question: Question, groups: &mut [Group], table: &[Line]) {
    for pair in groups.chunks_mut(2) {
        for first in firsts::<L>() {
            decompress::<L>(pair, first);
        }
        let parts = pair.len() * LANES / L::WIDTH;
        for two in 0..parts / 2 {
            multiply_and_compare::<L, 2>(question, pair, 2 * two, table);
        }
        if parts % 2 == 1 {
            multiply_and_compare::<L, 1>(question, pair, parts - 1, table);
        }
    }
    if matches!(question, Question::Schnorr | Question::Tweak | Question::Recover) {
        for first in firsts::<L>() {
            to_affine::<L>(question, groups, first);
        }
    }
}

/// Processes `N` parts of consecutive groups, except for the parity of y.
#[inline(always)]
fn multiply_and_compare<L: Lanes, const N: usize>(
    question: Question,
    groups: &mut [Group],
    begin: usize,
    table: &[Line],
) {
    let place = |k: usize| ((begin + k) * L::WIDTH / LANES, (begin + k) * L::WIDTH % LANES);
    let parts = in_step!(k => {
        let (number, first) = place(k);
        Part { group: &groups[number], first }
    });
    let keys = in_step!(k => Affine {
        x: load_words(&parts[k].group.key_x, parts[k].first),
        y: Fe::load(&parts[k].group.key_y, parts[k].first),
    });
    let sums = if question == Question::Tweak {
        curve::tweak::<L, N>(&keys, &parts, table)
    } else {
        curve::multiply::<L, N>(&keys, &parts, table)
    };
    for (k, sum) in sums.iter().enumerate() {
        let (number, first) = place(k);
        compare(question, &mut groups[number], first, sum);
    }
}

/// The group order.
const ORDER: [u64; LIMBS] = [
    0x2_5e8c_d036_4141,
    0xe_6af4_8a03_bbfd,
    0xf_ffff_feba_aedc,
    0xf_ffff_ffff_ffff,
    0xffff_ffff_ffff,
];

/// Computes the y coordinates of the keys of up to two groups; `proven` is set for the lanes on the curve.
#[inline(always)]
fn decompress<L: Lanes>(groups: &mut [Group], first: usize) {
    let seven = Fe::<L>::constant([7, 0, 0, 0, 0]);
    let mut cubics = [seven; 2];
    for (group, cubic) in groups.iter().zip(&mut cubics) {
        let x = load_words::<L>(&group.key_x, first);
        *cubic = Columns::zero().plus_product(&x.sqr(), &x).reduce();
        *cubic = Sum::primes(0).plus(cubic).plus(&seven).carry().mul(&Fe::one());
    }
    let roots = field::square_roots(&cubics);
    for ((group, cubic), root) in groups.iter_mut().zip(&cubics).zip(&roots) {
        group.proven |= L::ALL << first;
        group.refuted &= !(L::ALL << first);
        group.keep::<L>(first, root.sqr().equals(cubic));
        root.negate_where(root.odd() ^ group.key_odd >> first).store(&mut group.key_y, first);
    }
}

/// Keeps the lanes whose Z is not zero and, except in recovery, whose x coordinate is r, and stores the data for the decision
/// about y. ECDSA is refuted if R is a point of the curve, reached without exceptional additions, that has neither x coordinate.
#[inline(always)]
fn compare<L: Lanes>(question: Question, group: &mut Group, first: usize, sum: &Jacobian<L>) {
    // Z is zero for infinity and after an exceptional addition, and then the lane is unknown.
    let is_known = group.proven >> first & !sum.z.fe().zeros();
    let r = load_words::<L>(&group.r, first);
    let is_match = r.mul(sum.z.sqr()).equals(&sum.x);
    if question == Question::Recover {
        group.keep::<L>(first, is_known);
        // The y coordinate of the key is no longer needed.
        sum.x.store(&mut group.key_y, first);
    } else {
        group.keep::<L>(first, is_known & is_match);
    }
    match question {
        Question::Ecdsa => {
            // An x coordinate above the order also equals r after subtracting the order. If r plus the order is above the prime,
            // the lane is left unknown unnecessarily.
            let order = Fe::constant(ORDER);
            let r = Sum::primes(0).plus(&r).plus(&order).carry().mul(&Fe::one());
            let is_other = r.mul(sum.z.sqr()).equals(&sum.x);
            group.refuted |= (is_known & !is_match & !is_other & L::ALL) << first;
        }
        Question::SchnorrBch => {
            // Y / Z^3 is a square exactly when Y Z is.
            let product = sum.y.mul(sum.z).fe();
            let [root] = field::square_roots(&[product]);
            group.keep::<L>(first, root.sqr().equals(&product));
        }
        Question::Schnorr | Question::Tweak | Question::Recover => {
            sum.y.fe().store(&mut group.y, first);
            sum.z.fe().store(&mut group.z, first);
        }
    }
}

/// Keeps the lanes whose y coordinate has the required parity, or stores the points; with one inversion for all groups.
#[inline(always)]
fn to_affine<L: Lanes>(question: Question, groups: &mut [Group], first: usize) {
    let mut product = Fe::<L>::one();
    for group in &mut *groups {
        // A zero would corrupt the lane in every other group, and its result is already known.
        let z = Fe::load(&group.z, first);
        let z = Fe::select(group.proven >> first, &z, &Fe::one());
        z.store(&mut group.z, first);
        product.store(&mut group.prefix, first);
        product = product.mul(&z);
    }
    let mut suffix = field::inverse(&product);
    for group in groups.iter_mut().rev() {
        let inverse = suffix.mul(&Fe::load(&group.prefix, first));
        suffix = suffix.mul(&Fe::load(&group.z, first));
        let square = inverse.sqr();
        let y = Fe::load(&group.y, first).mul(square.mul(inverse));
        if question == Question::Recover {
            let x = Fe::load(&group.key_y, first).mul(square);
            store_words(x, &mut group.key_x, first);
            store_words(y, &mut group.r, first);
        } else {
            group.keep::<L>(first, !(y.odd() ^ group.r_odd >> first));
        }
    }
}
