//! Lanes as the base field of a tower: sums and differences that stay in range, and sums of products that are reduced
//! once.
//!
//! - *settled*: carried, and the value below 1.01 p.
//! - *reduced*: carried, and the value below 2.4 p: what sums of products are.
//!
//! What is added, subtracted and multiplied is one or the other.

#![expect(clippy::needless_range_loop, reason = "limbs of several elements go by one index")]

use core::ops::{Add, Mul, Neg, Sub};

use super::field::{LaneFe, MASK, for_limbs, split};
use super::{LANES, Lanes, Task, Words};
use crate::field::Fe;
use crate::limbs;
use crate::tower::{Fp2, TowerModulus, TowerRing, Twist, times_small, triple_b_over_xi};

/// Columns of a sum of products, signed, each less than 2^62 in magnitude.
pub(super) type Columns<L> = [L; 16];

/// Adds a product.
#[inline(always)]
pub(super) fn add_product<L: Lanes, const K: usize>(
    columns: &mut Columns<L>,
    a: &[L; K],
    b: &[L; K],
) {
    for_limbs!(i in K => {
        for j in 0..K {
            columns[i + j] = columns[i + j].add_mul_low(a[j], b[i]);
            columns[i + j + 1] = columns[i + j + 1].add_mul_high(a[j], b[i]);
        }
    });
}

/// A product whose second factor is the same in all lanes: lane `lane` of `b`.
pub(super) struct Term<'t, L, const K: usize> {
    pub(super) a: &'t [L; K],
    pub(super) b: &'t [Words; K],
    pub(super) lane: usize,
}

/// The columns of the sum of such products.
pub(super) struct Dot<'t, L, const K: usize, const T: usize>(pub(super) [Term<'t, L, K>; T]);

impl<L: Lanes, const K: usize, const T: usize> Task for Dot<'_, L, K, T> {
    type Result = Columns<L>;

    #[inline(always)]
    fn run(self) -> Columns<L> {
        let mut columns = [L::splat(0); 16];
        for t in 0..T {
            let Term { a, b, lane } = &self.0[t];
            for_limbs!(i in K => {
                let b = L::splat(b[i][lane % LANES]);
                for j in 0..K {
                    columns[i + j] = columns[i + j].add_mul_low(a[j], b);
                    columns[i + j + 1] = columns[i + j + 1].add_mul_high(a[j], b);
                }
            });
        }
        columns
    }
}

/// [`TowerRing::two_products`].
struct Two<'o, L, const K: usize>([&'o [L; K]; 2], [&'o [L; K]; 2]);

impl<L: Lanes, const K: usize> Task for Two<'_, L, K> {
    type Result = Columns<L>;

    #[inline(always)]
    fn run(self) -> Columns<L> {
        let mut columns = [L::splat(0); 16];
        for k in 0..2 {
            add_product(&mut columns, self.0[k], self.1[k]);
        }
        columns
    }
}

/// [`LaneFe::of_columns`].
struct Reduce<'o, L, M, const N: usize, const K: usize>(
    &'o Columns<L>,
    core::marker::PhantomData<M>,
);

impl<L: Lanes, M: TowerModulus<N>, const N: usize, const K: usize> Task for Reduce<'_, L, M, N, K> {
    type Result = LaneFe<L, M, N, K>;

    #[inline(always)]
    fn run(self) -> Self::Result {
        let mut columns = *self.0;
        for i in 0..K {
            let prime = L::splat(LaneFe::<L, M, N, K>::PRIME[i]);
            columns[K + i] = columns[K + i].add(prime);
        }
        LaneFe::reduced(columns)
    }
}

/// [`LaneFe::settle`].
struct Settle<'o, L, M, const N: usize, const K: usize>(&'o [L; K], core::marker::PhantomData<M>);

impl<L: Lanes, M: TowerModulus<N>, const N: usize, const K: usize> Task for Settle<'_, L, M, N, K> {
    type Result = LaneFe<L, M, N, K>;

    #[inline(always)]
    fn run(self) -> Self::Result {
        LaneFe::settled_now(*self.0)
    }
}

impl<L: Lanes, M: TowerModulus<N>, const N: usize, const K: usize> LaneFe<L, M, N, K> {
    /// `2^(52 K + 10) / p`, rounded down: less than 2^52 for the primes here.
    const RECIPROCAL: u64 = {
        let (mut rest, mut quotient, mut i) = ([0; N], 0u64, 0);
        rest[0] = 1;
        while i < 52 * K + 10 {
            rest = limbs::add(&rest, &rest).0;
            assert!(quotient >> 51 == 0);
            quotient *= 2;
            if !limbs::less(&rest, &M::MODULUS) {
                rest = limbs::sub(&rest, &M::MODULUS).0;
                quotient += 1;
            }
            i += 1;
        }
        quotient
    };

    /// `2^(52 K) - p`.
    const COMPLEMENT: [u64; K] = {
        let (mut parts, mut i) = (Self::PRIME, 0);
        while i < K {
            parts[i] ^= MASK;
            i += 1;
        }
        // The prime is odd, so nothing carries.
        parts[0] += 1;
        parts
    };

    /// A value from -16 p to 47 p whose limbs are less than 2^61 in magnitude.
    #[inline(always)]
    pub(super) fn settle(limbs: &[L; K]) -> Self {
        L::run(Settle(limbs, core::marker::PhantomData))
    }

    /// The same, with 17 p added: the top limbs give the quotient by p, rounded down but for an error of 2^-15, and
    /// the complement of p times that is added modulo 2^(52 K).
    #[inline(always)]
    fn settled_now(mut limbs: [L; K]) -> Self {
        const { assert!(limbs::bits(&M::MODULUS) + 6 <= 52 * K) };
        let offset = Self::constant(const { Self::multiple(17) });
        for i in 0..K {
            limbs[i] = limbs[i].add(offset.limbs()[i]);
        }
        for i in [K - 3, K - 2] {
            limbs[i + 1] = limbs[i + 1].add(limbs[i].sar::<52>());
            limbs[i] = limbs[i].and(L::splat(MASK));
        }
        let top = limbs[K - 1].sub(L::splat(2));
        let quotient = L::splat(0).add_mul_high(top, L::splat(Self::RECIPROCAL)).shr::<10>();
        for i in 0..K {
            let complement = L::splat(Self::COMPLEMENT[i]);
            limbs[i] = limbs[i].add_mul_low(quotient, complement);
            if i + 1 < K {
                limbs[i + 1] = limbs[i + 1].add_mul_high(quotient, complement);
            }
        }
        for i in 0..K - 1 {
            limbs[i + 1] = limbs[i + 1].add(limbs[i].sar::<52>());
            limbs[i] = limbs[i].and(L::splat(MASK));
        }
        limbs[K - 1] = limbs[K - 1].and(L::splat(MASK));
        Self::from_limbs(limbs)
    }

    /// The element of a sum of products that is above -p R: reduced if it is below 0.4 p R.
    #[inline(always)]
    pub(super) fn of_columns(columns: &Columns<L>) -> Self {
        L::run(Reduce(columns, core::marker::PhantomData))
    }

    /// A scalar in every lane, as a constant.
    const fn lane_form(x: Fe<M, N>) -> [u64; K] {
        // From R = 2^(64 N) to 2^(52 K).
        let (mut form, mut i) = (x, 64 * N);
        while i < 52 * K {
            form = form.plus(&form);
            i += 1;
        }
        split(&form.0)
    }
}

impl<L: Lanes, M: TowerModulus<N>, const N: usize, const K: usize> Add for LaneFe<L, M, N, K> {
    type Output = Self;
    #[inline(always)]
    fn add(self, other: Self) -> Self {
        let mut limbs = *self.limbs();
        for i in 0..K {
            limbs[i] = limbs[i].add(other.limbs()[i]);
        }
        Self::settle(&limbs)
    }
}

impl<L: Lanes, M: TowerModulus<N>, const N: usize, const K: usize> Sub for LaneFe<L, M, N, K> {
    type Output = Self;
    #[inline(always)]
    fn sub(self, other: Self) -> Self {
        let mut limbs = *self.limbs();
        for i in 0..K {
            limbs[i] = limbs[i].sub(other.limbs()[i]);
        }
        Self::settle(&limbs)
    }
}

impl<L: Lanes, M: TowerModulus<N>, const N: usize, const K: usize> Neg for LaneFe<L, M, N, K> {
    type Output = Self;
    #[inline(always)]
    fn neg(self) -> Self {
        let mut limbs = [L::splat(0); K];
        for i in 0..K {
            limbs[i] = limbs[i].sub(self.limbs()[i]);
        }
        Self::settle(&limbs)
    }
}

impl<L: Lanes, M: TowerModulus<N>, const N: usize, const K: usize> Mul for LaneFe<L, M, N, K> {
    type Output = Self;
    #[inline(always)]
    fn mul(self, other: Self) -> Self {
        self.times(&other)
    }
}

impl<L: Lanes, M: TowerModulus<N>, const N: usize, const K: usize> TowerRing
    for LaneFe<L, M, N, K>
{
    const XI: u64 = M::XI;
    const TWIST: Twist = M::TWIST;

    #[inline(always)]
    fn one() -> Self {
        Self::one()
    }

    #[inline(always)]
    fn squared(&self) -> Self {
        self.squared()
    }

    #[inline(always)]
    fn two_products(a: [Self; 2], b: [Self; 2]) -> Self {
        let pairs = Two([a[0].limbs(), a[1].limbs()], [b[0].limbs(), b[1].limbs()]);
        Self::of_columns(&L::run(pairs))
    }

    #[inline(always)]
    fn crossed_products(a: [Self; 2], [b0, b1]: [Self; 2]) -> Self {
        Self::two_products(a, [b1, b0])
    }

    #[inline(always)]
    fn halved(&self) -> Self {
        let mut limbs = *self.limbs();
        let is_odd = L::splat(0).sub(limbs[0].and(L::splat(1)));
        for i in 0..K {
            limbs[i] = limbs[i].add(is_odd.and(L::splat(Self::PRIME[i])));
        }
        for i in 0..K {
            let above = if i + 1 < K { limbs[i + 1].and(L::splat(1)) } else { L::splat(0) };
            limbs[i] = limbs[i].shr::<1>().add(above.shl::<51>());
        }
        Self::carried(limbs)
    }

    #[inline(always)]
    fn times_triple_b(x: Fp2<Self>) -> Fp2<Self> {
        match M::TWIST {
            Twist::M => times_small(x, 3 * M::B).times_xi(),
            Twist::D => {
                let c0 = Self::constant(const { Self::lane_form(triple_b_over_xi().c0) });
                let c1 = Self::constant(const { Self::lane_form(triple_b_over_xi().c1) });
                x * Fp2 { c0, c1 }
            }
        }
    }
}
