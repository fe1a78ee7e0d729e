//! Pairings in lanes. Points of up to eight pairs are doubled and added in one lane each; the Miller function of all
//! pairs and the final exponentiation are one element of Fp12, with its coefficients in lanes.

use super::line::{Accumulator, Line, places};
use super::{Multiple, Pair, Pairing, finite};
use crate::curve::Affine;
use crate::field::Fe;
use crate::lanes::field::LaneFe;
use crate::lanes::fp12::{Factors, LaneFp12};
use crate::lanes::{LANES, Lanes, task};
use crate::tower::cyclotomic::Cyclotomic;
use crate::tower::{Fp2, Fp12, TowerModulus};

/// Coordinates of points of the second group.
type Coordinates<L, M, const N: usize, const K: usize> = [Fp2<LaneFe<L, M, N, K>>; 2];

/// Up to eight pairs.
struct Group<L, M, const N: usize, const K: usize> {
    count: usize,
    p: [LaneFe<L, M, N, K>; 2],
    q: Coordinates<L, M, N, K>,
    sum: Accumulator<LaneFe<L, M, N, K>>,
    /// The coefficients of the last line.
    line: [Factors<K>; 3],
}

task! {
    fn from_scalars<M: TowerModulus>(scalars: &'t [Fe<M, N>; LANES]) -> LaneFe<L, M, N, K> {
        LaneFe::from_scalars(scalars)
    }
}

/// Scalars in lanes, padded with zeros.
fn load<L: Lanes, M: TowerModulus<N>, const N: usize, const K: usize>(
    scalars: impl Iterator<Item = Fe<M, N>>,
) -> LaneFe<L, M, N, K> {
    let mut all = [Fe::ZERO; LANES];
    for (lane, scalar) in all.iter_mut().zip(scalars) {
        *lane = scalar;
    }
    from_scalars(&all)
}

fn load_points<C, L: Lanes, M: TowerModulus<N>, const N: usize, const K: usize>(
    points: &[Affine<C>],
) -> Coordinates<L, M, N, K>
where
    C: crate::curve::Curve<Base = Fp2<Fe<M, N>>>,
{
    let part = |of: fn(&Affine<C>) -> Fe<M, N>| load(points.iter().map(of));
    [
        Fp2 { c0: part(|q| q.x.c0), c1: part(|q| q.x.c1) },
        Fp2 { c0: part(|q| q.y.c0), c1: part(|q| q.y.c1) },
    ]
}

task! {
    /// The next line of a group: the tangent, or the line through these points, negated or not.
    fn step<M: TowerModulus>(
        group: &'t mut Group<L, M, N, K>,
        points: Option<(&'t Coordinates<L, M, N, K>, bool)>,
    ) -> () {
        let line: Line<LaneFe<L, M, N, K>> = match points {
            None => group.sum.double(),
            Some(([x, y], is_negative)) => group.sum.add(*x, if is_negative { -*y } else { *y }),
        };
        let [a, b, c] = line.at(group.p[0], group.p[1]);
        group.line = [Factors::new(&a), Factors::new(&b), Factors::new(&c)];
    }
}

task! {
    /// Multiplies a function by the lines of a group.
    fn times_lines<M: TowerModulus>(
        f: &'t mut LaneFp12<L, M, N, K>,
        group: &'t Group<L, M, N, K>,
    ) -> () {
        for lane in 0..group.count {
            *f = f.times_line(const { places(M::TWIST) }, &group.line, lane);
        }
    }
}

enum Operation<'x, L, M, const N: usize, const K: usize> {
    Square,
    Times(&'x LaneFp12<L, M, N, K>),
    CyclotomicSquares(usize),
    Conjugate,
    Frobenius(usize),
}

task! {
    fn update<M: TowerModulus>(
        x: &'t mut LaneFp12<L, M, N, K>,
        operation: Operation<'t, L, M, N, K>,
    ) -> () {
        match operation {
            Operation::Square => *x = x.times(x),
            Operation::Times(other) => *x = x.times(other),
            Operation::CyclotomicSquares(count) => {
                for _ in 0..count {
                    *x = x.cyclotomic_square();
                }
            }
            Operation::Conjugate => *x = x.conjugate(),
            Operation::Frobenius(times) => {
                for _ in 0..times {
                    *x = x.frobenius();
                }
            }
        }
    }
}

task! {
    fn from_tower<M: TowerModulus>(x: &'t Fp12<Fe<M, N>>) -> LaneFp12<L, M, N, K> {
        LaneFp12::new(x)
    }
}

task! {
    fn to_tower<M: TowerModulus>(x: &'t LaneFp12<L, M, N, K>) -> Fp12<Fe<M, N>> {
        x.to_tower()
    }
}

impl<L: Lanes, M: TowerModulus<N>, const N: usize, const K: usize> LaneFp12<L, M, N, K> {
    fn updated(&self, operation: Operation<'_, L, M, N, K>) -> Self {
        let mut x = *self;
        update(&mut x, operation);
        x
    }
}

impl<L: Lanes, M: TowerModulus<N>, const N: usize, const K: usize> Cyclotomic
    for LaneFp12<L, M, N, K>
{
    fn one() -> Self {
        from_tower(&Fp12::ONE)
    }

    fn times(&self, other: &Self) -> Self {
        self.updated(Operation::Times(other))
    }

    fn conjugate(&self) -> Self {
        self.updated(Operation::Conjugate)
    }

    fn frobenius(&self, times: usize) -> Self {
        self.updated(Operation::Frobenius(times))
    }

    fn squared(&self, count: usize) -> Self {
        self.updated(Operation::CyclotomicSquares(count))
    }
}

task! {
    /// End of the loop for a group: X, Y and Z of all points.
    fn end<M: TowerModulus>(group: &'t Group<L, M, N, K>) -> [[Fp2<Fe<M, N>>; LANES]; 3] {
        let [x, y, z] = group.sum.coordinates();
        [LaneFe::pairs_to_scalars(&x), LaneFe::pairs_to_scalars(&y), LaneFe::pairs_to_scalars(&z)]
    }
}

/// Product of the Miller functions of all pairs, and the end of the loop for each.
pub(super) fn miller_loop<P, L, M, const N: usize, const K: usize>(
    pairs: &[Pair<P>],
) -> (Fp12<Fe<M, N>>, Vec<Multiple<P>>)
where
    P: Pairing<Base = Fe<M, N>>,
    L: Lanes,
    M: TowerModulus<N>,
{
    let pairs: Vec<_> = finite::<P>(pairs).copied().collect();
    if pairs.is_empty() {
        return (Fp12::ONE, Vec::new());
    }
    let (p, q): (Vec<_>, Vec<_>) = pairs.into_iter().unzip();
    let mut groups: Vec<Group<L, M, N, K>> = p
        .chunks(LANES)
        .zip(q.chunks(LANES))
        .map(|(p, q)| {
            let x = load(p.iter().map(|p| p.x));
            let y = load(p.iter().map(|p| p.y));
            let q = load_points(q);
            let sum = Accumulator::new(q[0], q[1]);
            Group { count: p.len(), p: [x, y], q, sum, line: [Factors::ZERO; 3] }
        })
        .collect();
    let mut f = from_tower::<L, M, N, K>(&Fp12::ONE);
    for (index, digit) in P::DIGITS.iter().enumerate() {
        if index != 0 {
            update(&mut f, Operation::Square);
        }
        for group in &mut groups {
            step(group, None);
            times_lines(&mut f, group);
            if *digit != 0 {
                let q = group.q;
                step(group, Some((&q, *digit < 0)));
                times_lines(&mut f, group);
            }
        }
    }
    for index in 0..P::LAST_POINTS {
        for (group, q) in groups.iter_mut().zip(q.chunks(LANES)) {
            let last: Vec<_> = q.iter().map(|q| P::last_point(q, index)).collect();
            step(group, Some((&load_points(&last), false)));
            times_lines(&mut f, group);
        }
    }
    let mut ends = Vec::with_capacity(q.len());
    for group in &groups {
        let [x, y, z] = end(group);
        ends.extend((0..group.count).map(|lane| [x[lane], y[lane], z[lane]]));
    }
    let f = to_tower(&f);
    (if P::IS_NEGATIVE { f.conjugate() } else { f }, ends)
}

/// Hard part of the final exponentiation, from an element of the cyclotomic subgroup.
pub(super) fn hard_part<P, L, M, const N: usize, const K: usize>(
    x: &Fp12<Fe<M, N>>,
) -> Fp12<Fe<M, N>>
where
    P: Pairing<Base = Fe<M, N>>,
    L: Lanes,
    M: TowerModulus<N>,
{
    to_tower(&P::hard_part(&from_tower::<L, M, N, K>(x)))
}
