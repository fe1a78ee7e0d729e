//! Many messages hashed to the second group of BLS12-381 at once: square roots and the products that clear the cofactor, which
//! take nearly all of the time, run in lanes, the rest in words.
//!
//! Roots in Fp2. For `p = 3 mod 4` and n the norm of g, `s = n^((p+1)/4)` has `s^2 = n` if g is a square, else
//! `s^2 = -n`. Then the other candidate of the map, `(Z u^2)^3 g`, is one, and the root of its norm is
//! `sqrt(-125) N(u)^3 s`, for N(Z) = 5 (its square is `-125 N(u)^6 (-n)`).
//! With `t = (g0 + s) / 2` and `r = t^((p-3)/4)`, either `(t r)^2 = t`, and the root is `(t r, g1 r / 2)`, or
//! `(t r)^2 = -t`, and it is `(g1 r / 2, -t r)`. What comes out is squared and compared.

use super::{G2_CURVE, Isogeny, evaluate, field_elements, is_odd_2, map_g2};
use crate::bls12_381::{Fp, FpModulus, X};
use crate::curve::{Affine, BlsG2, Jacobian};
use crate::field::Field as _;
use crate::lanes::field::LaneFe;
use crate::lanes::points::LanePoint;
use crate::lanes::{LANES, Lanes, Task};
use crate::limbs;
use crate::tower::{Fp2, TowerField as _};

type Lane<L> = LaneFe<L, FpModulus, 6, 8>;

/// Elements that roots are taken of together: two vectors, whose steps do not wait for each other.
const AT_ONCE: usize = 2 * LANES;

/// Powers of sixteen elements.
struct Power<'x, L>(&'x [Fp; AT_ONCE], &'static [u64; 6], core::marker::PhantomData<L>);

impl<L: Lanes> Task for Power<'_, L> {
    type Result = [Fp; AT_ONCE];

    /// Four bits of the exponent at a time.
    #[inline(always)]
    fn run(self) -> Self::Result {
        let (first, second) = self.0.split_at(LANES);
        let x: [Lane<L>; 2] = [
            LaneFe::from_scalars(first.first_chunk().expect("half of them")),
            LaneFe::from_scalars(second.first_chunk().expect("half of them")),
        ];
        let mut powers = [[LaneFe::one(); 2]; 16];
        for k in 1..16 {
            powers[k] = Lane::<L>::both_products(&powers[k - 1], &x);
        }
        let mut power = powers[(self.1[5] >> 60) as usize];
        for window in (0..95).rev() {
            for _ in 0..4 {
                power = Lane::<L>::both_products(&power, &power);
            }
            let digit = self.1[window / 16] >> (4 * (window % 16)) & 15;
            if digit != 0 {
                power = Lane::<L>::both_products(&power, &powers[digit as usize]);
            }
        }
        let mut all = [Fp::ZERO; AT_ONCE];
        all[..LANES].copy_from_slice(&power[0].to_scalars());
        all[LANES..].copy_from_slice(&power[1].to_scalars());
        all
    }
}

/// `(p + 1) / 4` and `(p - 3) / 4`.
const ROOT: [u64; 6] = limbs::plus_small(&limbs::half(&limbs::half(&Fp::MODULUS)), 1);
const ROOT_INVERSE: [u64; 6] = limbs::half(&limbs::half(&Fp::MODULUS));

/// The points of the isogenous curve that elements are mapped to: [`super::map_g2`] of each.
fn map<L: Lanes>(elements: &[Fp2<Fp>]) -> Vec<Jacobian<BlsG2>> {
    elements.chunks(AT_ONCE).flat_map(map_some::<L>).collect()
}

/// What the map is about for one element: x and g(x) of both candidates.
#[derive(Clone, Copy)]
struct Candidates {
    x: [Fp2<Fp>; 2],
    g: [Fp2<Fp>; 2],
}

fn map_some<L: Lanes>(elements: &[Fp2<Fp>]) -> Vec<Jacobian<BlsG2>> {
    let candidates = candidates(elements);
    let mut numbers = [Fp::ZERO; AT_ONCE];
    for (number, candidate) in numbers.iter_mut().zip(&candidates) {
        *number = candidate.g[0].norm();
    }
    let roots = L::run(Power::<L>(&numbers, &ROOT, core::marker::PhantomData));
    let minus_125 = (-Fp::from_u64(125)).sqrt().expect("a square");
    let mut chosen = [(Fp2::<Fp>::ZERO, Fp2::<Fp>::ZERO); AT_ONCE];
    let mut halves = [Fp::ZERO; AT_ONCE];
    for (k, (candidate, u)) in candidates.iter().zip(elements).enumerate() {
        let mut root = roots[k];
        let is_second = root.square() != numbers[k];
        if is_second {
            let norm = u.norm();
            root = root * minus_125 * norm.square() * norm;
        }
        let which = usize::from(is_second);
        chosen[k] = (candidate.x[which], candidate.g[which]);
        halves[k] = (chosen[k].1.c0 + root).halved();
    }
    let inverses = L::run(Power::<L>(&halves, &ROOT_INVERSE, core::marker::PhantomData));
    let point = |(k, u): (usize, &Fp2<Fp>)| {
        let ((x, g), t, r) = (chosen[k], halves[k], inverses[k]);
        let (real, other) = (t * r, (g.c1 * r).halved());
        let y = if real.square() == t {
            Fp2 { c0: real, c1: other }
        } else {
            Fp2 { c0: other, c1: -real }
        };
        if y.square() != g {
            return map_g2(u);
        }
        let y = if is_odd_2(u) == is_odd_2(&y) { y } else { -y };
        evaluate(&ISOGENY, x, y)
    };
    elements.iter().enumerate().map(point).collect()
}

const ISOGENY: Isogeny<Fp2<Fp>> = super::isogeny::G2;

/// As in `simplified_swu`, with one inversion for all.
fn candidates(elements: &[Fp2<Fp>]) -> Vec<Candidates> {
    let [a, b, z] = G2_CURVE;
    let parts: Vec<_> = elements
        .iter()
        .map(|u| {
            let zu2 = z * u.square();
            let sum = zu2.square() + zu2;
            if sum.is_zero() { (zu2, b, z * a) } else { (zu2, -b * (sum + Fp2::ONE), a * sum) }
        })
        .collect();
    let mut inverses: Vec<_> = parts.iter().map(|(_, _, denominator)| *denominator).collect();
    Fp2::invert_all(&mut inverses);
    let candidate = |((zu2, numerator, _), inverse): (&(Fp2<Fp>, Fp2<Fp>, _), &Fp2<Fp>)| {
        let x = *numerator * *inverse;
        let g = (x.square() + a) * x + b;
        Candidates { x: [x, *zu2 * x], g: [g, zu2.square() * *zu2 * g] }
    };
    parts.iter().zip(&inverses).map(candidate).collect()
}

/// [`super::clear_g2`] in lanes.
struct Clear<'x, L>(&'x [Jacobian<BlsG2>; LANES], core::marker::PhantomData<L>);

type Point<L> = LanePoint<Fp2<Lane<L>>>;

/// `|x| P` for the parameter x.
#[inline(always)]
fn times_x<L: Lanes>(point: &Point<L>) -> Point<L> {
    let mut product = *point;
    let mut bit = 63;
    while bit > 0 {
        bit -= 1;
        product = product.double();
        if X >> bit & 1 == 1 {
            product = product.plus(point);
        }
    }
    product
}

impl<L: Lanes> Task for Clear<'_, L> {
    type Result = [Jacobian<BlsG2>; LANES];

    #[inline(always)]
    fn run(self) -> Self::Result {
        let (mut x, mut y, mut z) = ([Fp2::ZERO; LANES], [Fp2::ZERO; LANES], [Fp2::ZERO; LANES]);
        for lane in 0..LANES {
            (x[lane], y[lane], z[lane]) = (self.0[lane].x, self.0[lane].y, self.0[lane].z);
        }
        let point: Point<L> = LanePoint {
            x: Lane::pairs_from_scalars(&x),
            y: Lane::pairs_from_scalars(&y),
            z: Lane::pairs_from_scalars(&z),
        };
        let of_x = Lane::pairs_from_scalars(&[Fp::FROBENIUS_INVERSES[2]; LANES]);
        let of_y = Lane::pairs_from_scalars(&[Fp::FROBENIUS_INVERSES[3]; LANES]);
        let twice = point.double();
        let psi = psi(&point, &of_x, &of_y);
        let minus_psi = psi.negated();
        let multiple = times_x(&point);
        let left = times_x(&multiple.plus(&point).plus(&minus_psi));
        let right = self::psi(&self::psi(&twice, &of_x, &of_y), &of_x, &of_y);
        let sum = left.plus(&minus_psi).plus(&point.negated()).plus(&right);
        let (x, y, z) = (
            Lane::pairs_to_scalars(&sum.x),
            Lane::pairs_to_scalars(&sum.y),
            Lane::pairs_to_scalars(&sum.z),
        );
        let mut cleared = [Jacobian::INFINITY; LANES];
        for lane in 0..LANES {
            cleared[lane] = Jacobian { x: x[lane], y: y[lane], z: z[lane] };
        }
        cleared
    }
}

#[inline(always)]
fn psi<L: Lanes>(point: &Point<L>, of_x: &Fp2<Lane<L>>, of_y: &Fp2<Lane<L>>) -> Point<L> {
    LanePoint {
        x: point.x.conjugate() * *of_x,
        y: point.y.conjugate() * *of_y,
        z: point.z.conjugate(),
    }
}

/// The points that messages are hashed to.
pub(super) fn hash_all<L: Lanes>(messages: &[&[u8]], dst: &[u8]) -> Vec<Affine<BlsG2>> {
    let elements: Vec<Fp2<Fp>> =
        messages.iter().flat_map(|message| field_elements(message, dst)).collect();
    let points: Vec<Jacobian<BlsG2>> =
        map::<L>(&elements).chunks_exact(2).map(|pair| pair[0] + pair[1]).collect();
    let mut cleared = Vec::with_capacity(points.len());
    for some in points.chunks(LANES) {
        let mut lanes = [some[0]; LANES];
        lanes[..some.len()].copy_from_slice(some);
        let in_lanes = L::run(Clear::<L>(&lanes, core::marker::PhantomData));
        let exact = |(point, cleared): (&Jacobian<BlsG2>, &Jacobian<BlsG2>)| {
            // Where a formula did not hold, or for infinity.
            if cleared.is_infinity() { super::clear_g2(point) } else { *cleared }
        };
        cleared.extend(some.iter().zip(&in_lanes).map(exact));
    }
    Jacobian::all_to_affine(&cleared)
}
