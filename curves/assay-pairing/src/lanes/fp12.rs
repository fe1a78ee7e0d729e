//! One element of Fp12 in lanes: lane k has the coefficient of w^k over Fp2, for
//! `Fp12 = Fp2[w] / (w^6 - xi)`. The last two lanes are unused.

#![expect(clippy::needless_range_loop, reason = "limbs of several elements go by one index")]

use super::field::LaneFe;
use super::ring::{Dot, Term, karatsuba};
use super::{LANES, Lanes, Words};
use crate::field::Fe;
use crate::tower::{Fp2, Fp6, Fp12, TowerField as _, TowerModulus};

/// An element of Fp12; both parts are settled or reduced (`ring`).
#[derive(Clone, Copy, Debug)]
pub(crate) struct LaneFp12<L, M, const N: usize, const K: usize> {
    re: LaneFe<L, M, N, K>,
    im: LaneFe<L, M, N, K>,
}

/// An element of Fp2 in every lane, in memory: real part, imaginary part, and their sum for Karatsuba's product.
#[derive(Clone, Copy)]
pub(crate) struct Factors<const K: usize>([[Words; K]; 3]);

impl<const K: usize> Factors<K> {
    pub(crate) const ZERO: Self = Self([[[0; LANES]; K]; 3]);

    #[inline(always)]
    pub(crate) fn new<L: Lanes, M: TowerModulus<N>, const N: usize>(
        x: &Fp2<LaneFe<L, M, N, K>>,
    ) -> Self {
        let mut factors = Self::ZERO;
        x.c0.store(&mut factors.0[0]);
        x.c1.store(&mut factors.0[1]);
        x.c0.plus(&x.c1).store(&mut factors.0[2]);
        factors
    }
}

/// Multiplication by `w^j`: lane k is lane k - j, or lane k - j + 6 of xi times the element.
const ROTATIONS: [Words; 6] = {
    let (mut rotations, mut j) = ([[6; LANES]; 6], 0);
    while j < 6 {
        let mut k = 0;
        while k < 6 {
            rotations[j][k] = if k >= j { k - j } else { 8 + k + 6 - j } as u64;
            k += 1;
        }
        j += 1;
    }
    rotations
};

/// Exchanges lanes k and k + 3.
const HALVES: Words = [3, 4, 5, 0, 1, 2, 6, 7];

/// For squares in Fp4: from lanes of the first and the second coefficients to powers of w.
const FROM_FP4: Words = [0, 8 + 2, 1, 8, 2, 8 + 1, 6, 7];

impl<L: Lanes, M: TowerModulus<N>, const N: usize, const K: usize> LaneFp12<L, M, N, K> {
    /// True if xi is `1 + u`, u^2 is -1, and 1 / R has room: then products with xi need not be settled.
    const IS_LOOSE: bool = M::XI == 1 && M::NON_RESIDUE == 1 && LaneFe::<L, M, N, K>::HAS_ROOM;

    #[inline(always)]
    pub(crate) fn new(x: &Fp12<Fe<M, N>>) -> Self {
        let (a, b) = (&x.c0, &x.c1);
        Self::of([a.c0, b.c0, a.c1, b.c1, a.c2, b.c2])
    }

    #[inline(always)]
    fn of(coefficients: [Fp2<Fe<M, N>>; 6]) -> Self {
        let (mut re, mut im) = ([Fe::ZERO; LANES], [Fe::ZERO; LANES]);
        for k in 0..6 {
            (re[k], im[k]) = (coefficients[k].c0, coefficients[k].c1);
        }
        Self { re: LaneFe::from_scalars(&re), im: LaneFe::from_scalars(&im) }
    }

    #[inline(always)]
    pub(crate) fn to_tower(self) -> Fp12<Fe<M, N>> {
        let (re, im) = (self.re.to_scalars(), self.im.to_scalars());
        let part = |k: usize| Fp2 { c0: re[k], c1: im[k] };
        let half = |k: usize| Fp6 { c0: part(k), c1: part(k + 2), c2: part(k + 4) };
        Fp12 { c0: half(0), c1: half(1) }
    }

    #[inline(always)]
    fn pair(&self) -> Fp2<LaneFe<L, M, N, K>> {
        Fp2 { c0: self.re, c1: self.im }
    }

    #[inline(always)]
    fn from_pair(pair: Fp2<LaneFe<L, M, N, K>>) -> Self {
        Self { re: pair.c0, im: pair.c1 }
    }

    /// The sum of products with coefficients of `w^places`, each from lane `lane(place)` of its factors.
    #[inline(always)]
    fn sum_of_rows<const T: usize>(
        &self,
        places: [usize; T],
        factors: [&Factors<K>; T],
        lanes: [usize; T],
    ) -> Self {
        let xi = if Self::IS_LOOSE {
            Fp2 { c0: self.re.minus(&self.im), c1: self.re.plus(&self.im) }
        } else {
            self.pair().times_xi()
        };
        let own = [self.re, self.im, self.re.plus(&self.im)];
        let wrapped = [xi.c0, xi.c1, xi.c0.plus(&xi.c1)];
        let mut columns = [[L::splat(0); 16]; 3];
        for part in 0..3 {
            let mut rows = [[L::splat(0); K]; T];
            for t in 0..T {
                for i in 0..K {
                    let (own, wrapped) = (own[part].limbs()[i], wrapped[part].limbs()[i]);
                    rows[t][i] = own.pick(wrapped, &ROTATIONS[places[t]]);
                }
            }
            columns[part] = L::run(Dot(core::array::from_fn::<_, T, _>(|t| Term {
                a: &rows[t],
                b: &factors[t].0[part],
                lane: lanes[t],
            })));
        }
        Self::from_pair(karatsuba(&columns))
    }

    #[inline(always)]
    pub(crate) fn times(&self, other: &Self) -> Self {
        let factors = Factors::new(&other.pair());
        self.sum_of_rows([0, 1, 2, 3, 4, 5], [&factors; 6], [0, 1, 2, 3, 4, 5])
    }

    /// Product with three coefficients of `w^places`, from one lane of their factors.
    #[inline(always)]
    pub(crate) fn times_line(
        &self,
        places: [usize; 3],
        line: &[Factors<K>; 3],
        lane: usize,
    ) -> Self {
        let [a, b, c] = line;
        self.sum_of_rows(places, [a, b, c], [lane; 3])
    }

    /// The square of an element of the cyclotomic subgroup (Granger and Scott, 2010), by squares in Fp4 of lanes k and k + 3.
    #[inline(always)]
    pub(crate) fn cyclotomic_square(&self) -> Self {
        let x = self.pair();
        let square = x.square();
        let sum = x + Self::moved(&x, &HALVES);
        let sum = sum.square();
        let other = Self::moved(&square, &HALVES);
        // The third of the second coefficients is multiplied by xi.
        let (first, second) = if Self::IS_LOOSE {
            // Limbs without carries. Squares are below 1.01 p, since 1 / R reduces them so far, and
            // x is below 2.4 p, so the value to settle at the end is between -15 p and 15 p.
            let second = loose_sub(&loose_sub(&sum, &square), &other);
            let second = Self::select(0b100, &loose_xi(&second), &second);
            (loose_add(&square, &loose_xi(&other)), second)
        } else {
            let second = sum - square - other;
            (square + other.times_xi(), Self::select(0b100, &second.times_xi(), &second))
        };
        Self {
            re: Self::from_squares(&first.c0, &second.c0, &x.c0),
            im: Self::from_squares(&first.c1, &second.c1, &x.c1),
        }
    }

    /// `3 t - 2 x` in even lanes, `3 t + 2 x` in odd ones.
    #[inline(always)]
    fn from_squares(
        first: &LaneFe<L, M, N, K>,
        second: &LaneFe<L, M, N, K>,
        x: &LaneFe<L, M, N, K>,
    ) -> LaneFe<L, M, N, K> {
        let mut limbs = [L::splat(0); K];
        for i in 0..K {
            let t = first.limbs()[i].pick(second.limbs()[i], &FROM_FP4);
            let (t, x) = (t.add(t).add(t), x.limbs()[i].shl::<1>());
            limbs[i] = L::select(0b10_1010, t.add(x), t.sub(x));
        }
        LaneFe::settle(&limbs)
    }

    #[inline(always)]
    fn moved(x: &Fp2<LaneFe<L, M, N, K>>, places: &Words) -> Fp2<LaneFe<L, M, N, K>> {
        let (mut re, mut im) = (*x.c0.limbs(), *x.c1.limbs());
        for i in 0..K {
            re[i] = re[i].pick(re[i], places);
            im[i] = im[i].pick(im[i], places);
        }
        Fp2 { c0: LaneFe::from_limbs(re), c1: LaneFe::from_limbs(im) }
    }

    #[inline(always)]
    fn select(
        mask: u8,
        yes: &Fp2<LaneFe<L, M, N, K>>,
        no: &Fp2<LaneFe<L, M, N, K>>,
    ) -> Fp2<LaneFe<L, M, N, K>> {
        Fp2 { c0: LaneFe::select(mask, &yes.c0, &no.c0), c1: LaneFe::select(mask, &yes.c1, &no.c1) }
    }

    /// The power p^6: maps w to -w.
    #[inline(always)]
    pub(crate) fn conjugate(&self) -> Self {
        let x = self.pair();
        Self::from_pair(Self::select(0b10_1010, &-x, &x))
    }

    /// The power p.
    #[inline(always)]
    pub(crate) fn frobenius(&self) -> Self {
        let factors = Self::of(Fe::<M, N>::FROBENIUS).pair();
        Self::from_pair(self.pair().conjugate() * factors)
    }
}

/// Sum, limb by limb.
#[inline(always)]
fn loose_add<L: Lanes, M: TowerModulus<N>, const N: usize, const K: usize>(
    a: &Fp2<LaneFe<L, M, N, K>>,
    b: &Fp2<LaneFe<L, M, N, K>>,
) -> Fp2<LaneFe<L, M, N, K>> {
    let (mut re, mut im) = (*a.c0.limbs(), *a.c1.limbs());
    for i in 0..K {
        re[i] = re[i].add(b.c0.limbs()[i]);
        im[i] = im[i].add(b.c1.limbs()[i]);
    }
    Fp2 { c0: LaneFe::from_limbs(re), c1: LaneFe::from_limbs(im) }
}

/// Difference, limb by limb.
#[inline(always)]
fn loose_sub<L: Lanes, M: TowerModulus<N>, const N: usize, const K: usize>(
    a: &Fp2<LaneFe<L, M, N, K>>,
    b: &Fp2<LaneFe<L, M, N, K>>,
) -> Fp2<LaneFe<L, M, N, K>> {
    let (mut re, mut im) = (*a.c0.limbs(), *a.c1.limbs());
    for i in 0..K {
        re[i] = re[i].sub(b.c0.limbs()[i]);
        im[i] = im[i].sub(b.c1.limbs()[i]);
    }
    Fp2 { c0: LaneFe::from_limbs(re), c1: LaneFe::from_limbs(im) }
}

/// Product with `1 + u`, limb by limb.
#[inline(always)]
fn loose_xi<L: Lanes, M: TowerModulus<N>, const N: usize, const K: usize>(
    a: &Fp2<LaneFe<L, M, N, K>>,
) -> Fp2<LaneFe<L, M, N, K>> {
    let (mut re, mut im) = (*a.c0.limbs(), *a.c1.limbs());
    for i in 0..K {
        re[i] = a.c0.limbs()[i].sub(a.c1.limbs()[i]);
        im[i] = a.c0.limbs()[i].add(a.c1.limbs()[i]);
    }
    Fp2 { c0: LaneFe::from_limbs(re), c1: LaneFe::from_limbs(im) }
}
