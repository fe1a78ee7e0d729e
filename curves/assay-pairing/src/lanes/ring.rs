//! Lanes as the base field of a tower: range-preserving sums and differences, and sums of products reduced once.
//!
//! - *settled*: carried, and the value below 1.01 p.
//! - *reduced*: carried, and the value below 2.4 p. The form of sums of products.
//!
//! Operands of additions, subtractions and products are in one of both forms.

#![expect(clippy::needless_range_loop, reason = "limbs of several elements go by one index")]

use core::ops::{Add, Mul, Neg, Sub};

use super::field::{LaneFe, MASK, for_limbs, split};
use super::{LANES, Lanes, Task, Words};
use crate::field::Fe;
use crate::limbs;
use crate::tower::{Fp2, TowerModulus, TowerRing, Twist, times_small, triple_b_over_xi};

/// Columns of a sum of products, signed, each less than 2^62 in magnitude.
pub(super) type Columns<L> = [L; 16];

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

/// Columns of the sum of such products.
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

task! {
    /// [`TowerRing::product`]: Karatsuba's, on columns.
    fn product_2<M: TowerModulus>(
        a: &'t Fp2<LaneFe<L, M, N, K>>,
        b: &'t Fp2<LaneFe<L, M, N, K>>,
    ) -> Fp2<LaneFe<L, M, N, K>> {
        let sums = [a.c0.plus(&a.c1), b.c0.plus(&b.c1)];
        let mut columns = [[L::splat(0); 16]; 3];
        add_product(&mut columns[0], a.c0.limbs(), b.c0.limbs());
        add_product(&mut columns[1], a.c1.limbs(), b.c1.limbs());
        add_product(&mut columns[2], sums[0].limbs(), sums[1].limbs());
        LaneFe::of_karatsuba(&columns)
    }
}

task! {
    /// [`TowerRing::square`], or two products with the same factor.
    fn products<M: TowerModulus>(
        a: [&'t LaneFe<L, M, N, K>; 2],
        b: [&'t LaneFe<L, M, N, K>; 2],
    ) -> Fp2<LaneFe<L, M, N, K>> {
        let mut columns = [[L::splat(0); 16]; 2];
        add_product(&mut columns[0], a[0].limbs(), b[0].limbs());
        add_product(&mut columns[1], a[1].limbs(), b[1].limbs());
        let [c0, c1] = LaneFe::both_reduced(columns[0], columns[1]);
        Fp2 { c0, c1 }
    }
}

task! {
    /// [`LaneFe::of_karatsuba`] as a separate function, settled if products of sums are not below 2.4 p.
    pub(super) fn karatsuba<M: TowerModulus>(columns: &'t [Columns<L>; 3]) -> Fp2<LaneFe<L, M, N, K>> {
        let x = LaneFe::<L, M, N, K>::of_karatsuba(columns);
        if LaneFe::<L, M, N, K>::HAS_ROOM {
            return x;
        }
        Fp2 { c0: LaneFe::settled_now(*x.c0.limbs()), c1: LaneFe::settled_now(*x.c1.limbs()) }
    }
}

task! {
    /// [`LaneFe::settle`].
    fn settle<M: TowerModulus>(limbs: &'t [L; K]) -> LaneFe<L, M, N, K> {
        LaneFe::settled_now(*limbs)
    }
}

/// Product with a nonzero number, by doubling and adding.
#[inline(always)]
fn small_multiple<L: Lanes>(x: L, factor: u64) -> L {
    let mut multiple = x;
    for bit in (0..factor.ilog2()).rev() {
        multiple = multiple.add(multiple);
        if factor >> bit & 1 == 1 {
            multiple = multiple.add(x);
        }
    }
    multiple
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

    /// Settles a value from -16 p to 47 p whose limbs are less than 2^61 in magnitude.
    #[inline(always)]
    pub(super) fn settle(limbs: &[L; K]) -> Self {
        settle(limbs)
    }

    /// The same, inlined. 17 p are added; the top limbs yield the quotient by p, rounded down with
    /// an error of 2^-9 (four units of the top limb and the rounding of the reciprocal), and the
    /// complement of p times the quotient is added modulo 2^(52 K).
    #[inline(always)]
    fn settled_now(mut limbs: [L; K]) -> Self {
        const { assert!(limbs::bits(&M::MODULUS) + 6 <= 52 * K && Self::PRIME[K - 1] >> 12 != 0) };
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

    /// True if sums of many products of factors are below `p R / 16`.
    pub(super) const HAS_ROOM: bool = limbs::bits(&M::MODULUS) + 16 <= 52 * K;

    /// From sums of products of real parts, of imaginary ones, and of sums of both: `re = a - n b` for the non-residue
    /// n, `im = c - a - b`. The first difference must be above -p R; results are below 2 p plus the sums divided by R.
    ///
    /// Sums of six products have columns below 2^58.6 and are below 1.5 2^8 p^2, so with n = 5
    /// columns stay below 2^61.2, and with [`Self::HAS_ROOM`] so does the difference above -p R.
    #[inline(always)]
    fn of_karatsuba([a, b, c]: &[Columns<L>; 3]) -> Fp2<Self> {
        const { assert!(M::NON_RESIDUE == 1 || M::NON_RESIDUE <= 5 && Self::HAS_ROOM) };
        let (mut re, mut im) = (*a, *c);
        for i in 0..16 {
            re[i] = a[i].sub(small_multiple(b[i], M::NON_RESIDUE));
            im[i] = c[i].sub(a[i]).sub(b[i]);
        }
        for i in 0..K {
            re[K + i] = re[K + i].add(L::splat(Self::PRIME[i]));
        }
        let [c0, c1] = Self::both_reduced(re, im);
        Fp2 { c0, c1 }
    }

    /// `self` plus or minus a small multiple of another element, at most five times it: at least -12 p.
    #[inline(always)]
    fn combined_with(&self, other: &Self, factor: u64, is_negative: bool) -> Self {
        let mut limbs = *self.limbs();
        for i in 0..K {
            let multiple = small_multiple(other.limbs()[i], factor);
            limbs[i] = if is_negative { limbs[i].sub(multiple) } else { limbs[i].add(multiple) };
        }
        Self::settle(&limbs)
    }

    #[inline(always)]
    pub(crate) fn both_products(a: &[Self; 2], b: &[Self; 2]) -> [Self; 2] {
        let products = products([&a[0], &a[1]], [&b[0], &b[1]]);
        [products.c0, products.c1]
    }

    /// An element of Fp2 in each lane.
    #[inline(always)]
    pub(crate) fn pairs_from_scalars(scalars: &[Fp2<Fe<M, N>>; LANES]) -> Fp2<Self> {
        let (mut c0, mut c1) = ([Fe::ZERO; LANES], [Fe::ZERO; LANES]);
        for lane in 0..LANES {
            (c0[lane], c1[lane]) = (scalars[lane].c0, scalars[lane].c1);
        }
        Fp2 { c0: Self::from_scalars(&c0), c1: Self::from_scalars(&c1) }
    }

    /// Each lane as an element of Fp2.
    #[inline(always)]
    pub(crate) fn pairs_to_scalars(pairs: &Fp2<Self>) -> [Fp2<Fe<M, N>>; LANES] {
        let (c0, c1) = (pairs.c0.to_scalars(), pairs.c1.to_scalars());
        let mut all = [Fp2 { c0: c0[0], c1: c1[0] }; LANES];
        for lane in 0..LANES {
            all[lane] = Fp2 { c0: c0[lane], c1: c1[lane] };
        }
        all
    }

    /// A constant scalar in every lane.
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
    const NON_RESIDUE: u64 = M::NON_RESIDUE;
    const XI: u64 = M::XI;
    const TWIST: Twist = M::TWIST;

    #[inline(always)]
    fn zero() -> Self {
        Self::constant([0; K])
    }

    #[inline(always)]
    fn one() -> Self {
        Self::one()
    }

    #[inline(always)]
    fn product(a: &Fp2<Self>, b: &Fp2<Self>) -> Fp2<Self> {
        product_2(a, b)
    }

    /// `(a0 + a1) (a0 - n a1)`, with the imaginary part `2 a0 a1` added (n - 1) / 2 times.
    #[inline(always)]
    fn square(a: &Fp2<Self>) -> Fp2<Self> {
        let sum = a.c0.plus(&a.c1);
        if M::NON_RESIDUE == 1 {
            let difference = a.c0.minus(&a.c1);
            return products([&sum, &a.c0.plus(&a.c0)], [&difference, &a.c1]);
        }
        let difference = a.c0.combined_with(&a.c1, M::NON_RESIDUE, true);
        let square = products([&sum, &a.c0.plus(&a.c0)], [&difference, &a.c1]);
        Fp2 { c0: square.c0.combined_with(&square.c1, M::NON_RESIDUE / 2, false), ..square }
    }

    #[inline(always)]
    fn scaled(a: &Fp2<Self>, factor: &Self) -> Fp2<Self> {
        products([&a.c0, &a.c1], [factor, factor])
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
    fn tripled(&self) -> Self {
        let mut limbs = *self.limbs();
        for i in 0..K {
            limbs[i] = limbs[i].add(limbs[i].shl::<1>());
        }
        Self::settle(&limbs)
    }

    #[inline(always)]
    fn times_u_square(&self) -> Self {
        Self::zero().combined_with(self, M::NON_RESIDUE, true)
    }

    #[inline(always)]
    fn times_triple_b(x: Fp2<Self>) -> Fp2<Self> {
        match M::TWIST {
            // b is small: 4 for the only curve with such a twist.
            Twist::M => times_small(x.tripled(), M::B).times_xi(),
            Twist::D => {
                let c0 = Self::constant(const { Self::lane_form(triple_b_over_xi().c0) });
                let c1 = Self::constant(const { Self::lane_form(triple_b_over_xi().c1) });
                x * Fp2 { c0, c1 }
            }
        }
    }
}
