//! Eight checks of one kind, from operands to results.

use super::curve::{self, Affine, Jacobian, in_step};
use super::field::{Columns, Fe, LIMBS, Sum};
use super::group::{Group, Part, Question};
use super::steps::{inverse, square_roots};
use super::{LANES, Lanes, Line, firsts};

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
    let roots = square_roots(&cubics);
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
            let [root] = square_roots(&[product]);
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
    let mut suffix = inverse(&product);
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
