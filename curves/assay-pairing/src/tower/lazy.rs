//! Products in Fp6 and Fp12 with one reduction per coefficient of the result instead of one per
//! product (Aranha et al., 2011, section 3). `tower/tests.rs` has the oracle.
//!
//! Bounds are in units of p^2, with n for the non-residue of the tower, 1 or 5, the negated square of u. A sum of k
//! products of elements of Fp2 has a real part from -n k to k and an imaginary part from 0 to 2 k; Karatsuba's
//! differences are such sums again, exactly, as long as sums of factors are not reduced. Factors that are sums of two
//! elements of Fp6 need 8 p < R for that, which holds for six limbs; with four limbs these sums are reduced.
//! Everything that depends on n and xi is decided at compile time, without a cost for n = 1.

use core::marker::PhantomData;

use super::{Fp2, Fp6, Fp12, TowerModulus, TowerRing as _};
use crate::field::Fe;
use crate::field::wide::{Range, Sum, Wide, Within, leaves_room};

/// Real and imaginary part of a factor: below p, or sums with bounds known to the caller.
type Factor<'a, const N: usize> = [&'a [u64; N]; 2];

/// A sum of products in Fp2.
#[derive(Clone, Copy)]
struct Products<M, const N: usize> {
    c0: Wide<M, N>,
    c1: Wide<M, N>,
}

#[inline(always)]
fn factor<M, const N: usize>(x: &Fp2<Fe<M, N>>) -> Factor<'_, N> {
    [&x.c0.0, &x.c1.0]
}

/// Sum of factors; its double, which Karatsuba's method needs, must be below R.
#[inline(always)]
fn sum<const N: usize>(a: Factor<'_, N>, b: Factor<'_, N>) -> [Sum<N>; 2] {
    [Sum::of(a[0], b[0]), Sum::of(a[1], b[1])]
}

#[inline(always)]
fn of<const N: usize>(sum: &[Sum<N>; 2]) -> Factor<'_, N> {
    [&sum[0].0, &sum[1].0]
}

impl<M: TowerModulus<N>, const N: usize> Products<M, N> {
    const ZERO: Self = Self { c0: Wide::ZERO, c1: Wide::ZERO };

    /// Sets the sum to a product, by three products of words. Not inlined, since towers call it for every product.
    #[inline(never)]
    fn set_product(&mut self, a: Factor<'_, N>, b: Factor<'_, N>) {
        let mut other = Wide::<M, N>::ZERO;
        self.c0.set_product(a[0], b[0]);
        other.set_product(a[1], b[1]);
        self.c1.set_product(&Sum::of(a[0], a[1]).0, &Sum::of(b[0], b[1]).0);
        self.c1.sub(&self.c0);
        self.c1.sub(&other);
        sub_times_non_residue(&mut self.c0, &other);
    }

    /// Sets the square of a reduced element: the real part is from 0 to n + 1, the imaginary one from 0 to 2.
    ///
    /// `(a0 + a1) (a0 - n a1) = a0^2 - n a1^2 - (n - 1) a0 a1`, and the imaginary part is `2 a0 a1`.
    #[inline(never)]
    fn set_square(&mut self, a: &Fp2<Fe<M, N>>) {
        const { assert!(M::NON_RESIDUE % 2 == 1) };
        self.c0.set_product(&Sum::of(&a.c0.0, &a.c1.0).0, &minus_multiple(a).0);
        self.c1.set_product(&Sum::of(&a.c0.0, &a.c0.0).0, &a.c1.0);
        for _ in 0..M::NON_RESIDUE / 2 {
            self.c0.add(&self.c1);
        }
    }

    #[inline(always)]
    fn add(&mut self, other: &Self) {
        self.c0.add(&other.c0);
        self.c1.add(&other.c1);
    }

    #[inline(always)]
    fn sub(&mut self, other: &Self) {
        self.c0.sub(&other.c0);
        self.c1.sub(&other.c1);
    }

    /// Adds xi times the other, for xi = u or 1 + u.
    #[inline(always)]
    fn add_times_xi(&mut self, other: &Self) {
        debug_assert!(adds_xi::<M, N>(), "sums of other xi are reduced first");
        if M::XI == 1 {
            self.c0.add(&other.c0);
        }
        sub_times_non_residue(&mut self.c0, &other.c1);
        self.c1.add(&other.c0);
        if M::XI == 1 {
            self.c1.add(&other.c1);
        }
    }
}

/// Subtracts n times another sum.
#[inline(always)]
fn sub_times_non_residue<M: TowerModulus<N>, const N: usize>(
    sum: &mut Wide<M, N>,
    other: &Wide<M, N>,
) {
    sum.sub(other);
    let (mut multiple, mut rest) = (*other, M::NON_RESIDUE / 2);
    while rest > 0 {
        let once = multiple;
        multiple.add(&once);
        if rest % 2 == 1 {
            sum.sub(&multiple);
        }
        rest /= 2;
    }
}

/// `c0 - n c1`, reduced.
#[inline(always)]
fn minus_multiple<M: TowerModulus<N>, const N: usize>(a: &Fp2<Fe<M, N>>) -> Fe<M, N> {
    if M::NON_RESIDUE == 1 { a.c0 - a.c1 } else { a.c0 + a.c1.times_u_square() }
}

/// True if sums to be multiplied by xi are added before their reduction: for xi = u or 1 + u.
#[inline(always)]
const fn adds_xi<M: TowerModulus<N>, const N: usize>() -> bool {
    M::XI <= 1
}

/// The first bound if sums with xi are added before their reduction, else the second.
const fn with_xi<M: TowerModulus<N>, const N: usize>(added: usize, other: usize) -> usize {
    if adds_xi::<M, N>() { added } else { other }
}

/// Ranges that depend on the tower, as bounds in which `n` is the non-residue and `xi` the real part of xi.
macro_rules! ranges {
    ($($(#[$doc:meta])* $name:ident($n:ident, $xi:ident): $below:expr, $above:expr;)*) => {$(
        $(#[$doc])*
        struct $name<M, const N: usize>(PhantomData<M>);

        impl<M: TowerModulus<N>, const N: usize> Range for $name<M, N> {
            const BELOW: usize = {
                let ($n, $xi) = (M::NON_RESIDUE as usize, M::XI as usize);
                let _ = ($n, $xi);
                $below
            };
            const ABOVE: usize = {
                let ($n, $xi) = (M::NON_RESIDUE as usize, M::XI as usize);
                let _ = ($n, $xi);
                $above
            };
        }
    )*};
}

ranges! {
    /// The real part of a product in Fp2.
    ProductReal(n, xi): n, 1;
    Norm(n, xi): 0, n + 1;
    /// The real part of [`Coefficient::exact`].
    Real(n, xi): with_xi::<M, N>(n * (11 + 5 * xi), 5 * n), with_xi::<M, N>(6, 5);
    /// The imaginary part of [`Coefficient::exact`].
    Imaginary(n, xi): with_xi::<M, N>(5 * n, 0), with_xi::<M, N>(12 + 5 * xi, 10);
    /// The real part of [`Coefficient::of_reduced_sums`].
    RealOfReduced(n, xi): 3 * n + 6, 3 + 6 * n;
    /// The real part of a square minus two others.
    LessSquaresReal(n, xi): 2 * (n + 1), n + 1;
    /// The real part of a square plus xi times another one, if that is added.
    SquaresReal(n, xi): with_xi::<M, N>(2 * n, 0), with_xi::<M, N>((n + 1) * (1 + xi), 2);
    /// The imaginary part of a square plus xi times another one.
    SquaresImaginary(n, xi): 0, with_xi::<M, N>(n + 3 + 2 * xi, 2);
}

/// A coefficient of Fp12: plain products and those multiplied by xi.
struct Coefficient;

impl Coefficient {
    /// Six products in total, of which k, at most five, have the factor xi. With xi = 1 + u (n = 1) the real part is
    /// above -(6 - k) - 3 k and the imaginary one below 2 (6 - k) + 3 k. With xi = u, which maps `c0 + c1 u` to
    /// `-n c1 + c0 u`, the real part is from -n (6 - k) - 2 n k to 6 - k, the imaginary one from -n k to 2 (6 - k) +
    /// k. With another xi both sums are reduced separately, at most five products each.
    #[inline(never)]
    fn exact<M: TowerModulus<N>, const N: usize>(
        plain: &Products<M, N>,
        by_xi: Option<&Products<M, N>>,
    ) -> Fp2<Fe<M, N>> {
        if const { adds_xi::<M, N>() } {
            let mut sum = *plain;
            if let Some(by_xi) = by_xi {
                sum.add_times_xi(by_xi);
            }
            return Fp2 {
                c0: sum.c0.reduced::<Real<M, N>>(),
                c1: sum.c1.reduced::<Imaginary<M, N>>(),
            };
        }
        let reduced = |sum: &Products<M, N>| Fp2 {
            c0: sum.c0.reduced::<Real<M, N>>(),
            c1: sum.c1.reduced::<Imaginary<M, N>>(),
        };
        match by_xi {
            Some(by_xi) => reduced(plain) + reduced(by_xi).times_xi(),
            None => reduced(plain),
        }
    }

    /// Up to three products of reduced sums, minus twice as many others.
    #[inline(never)]
    fn of_reduced_sums<M: TowerModulus<N>, const N: usize>(
        plain: &Products<M, N>,
        by_xi: Option<&Products<M, N>>,
    ) -> Fp2<Fe<M, N>> {
        let reduced = |sum: &Products<M, N>| Fp2 {
            c0: sum.c0.reduced::<RealOfReduced<M, N>>(),
            c1: sum.c1.reduced::<Within<12, 6>>(),
        };
        match by_xi {
            Some(by_xi) => reduced(plain) + reduced(by_xi).times_xi(),
            None => reduced(plain),
        }
    }
}

/// A sum of products in Fp6: the part wrapped around by v^3 = xi is separate.
#[derive(Clone, Copy)]
struct Sextic<M, const N: usize> {
    plain: [Products<M, N>; 3],
    by_xi: [Products<M, N>; 2],
}

/// Coefficients of an element of Fp6 as factors.
type Factors<'a, const N: usize> = [Factor<'a, N>; 3];

#[inline(always)]
fn factors<M, const N: usize>(x: &Fp6<Fe<M, N>>) -> Factors<'_, N> {
    [factor(&x.c0), factor(&x.c1), factor(&x.c2)]
}

impl<M: TowerModulus<N>, const N: usize> Sextic<M, N> {
    const ZERO: Self = Self { plain: [Products::ZERO; 3], by_xi: [Products::ZERO; 2] };

    /// Sets the sum to a product by Karatsuba's method, six products in Fp2.
    #[inline(always)]
    fn set_product(&mut self, a: Factors<'_, N>, b: Factors<'_, N>) {
        let mut p1 = Products::<M, N>::ZERO;
        let Self { plain: [c0, c1, c2], by_xi: [c3, c4] } = self;
        c0.set_product(a[0], b[0]);
        p1.set_product(a[1], b[1]);
        c4.set_product(a[2], b[2]);
        c3.set_product(of(&sum(a[1], a[2])), of(&sum(b[1], b[2])));
        c3.sub(&p1);
        c3.sub(c4);
        c1.set_product(of(&sum(a[0], a[1])), of(&sum(b[0], b[1])));
        c1.sub(c0);
        c1.sub(&p1);
        c2.set_product(of(&sum(a[0], a[2])), of(&sum(b[0], b[2])));
        c2.sub(c0);
        c2.sub(c4);
        c2.add(&p1);
    }

    /// Sets the sum to the product with `b0 + b1 v`: five products in Fp2.
    #[inline(always)]
    fn set_product_01(&mut self, a: Factors<'_, N>, b: [Factor<'_, N>; 2]) {
        let mut p1 = Products::<M, N>::ZERO;
        let Self { plain: [c0, c1, c2], by_xi: [c3, _] } = self;
        c0.set_product(a[0], b[0]);
        p1.set_product(a[1], b[1]);
        c3.set_product(a[2], b[1]);
        c1.set_product(of(&sum(a[0], a[1])), of(&sum(b[0], b[1])));
        c1.sub(c0);
        c1.sub(&p1);
        c2.set_product(a[2], b[0]);
        c2.add(&p1);
    }

    #[inline(always)]
    fn sub(&mut self, other: &Self) {
        for (a, b) in self.plain.iter_mut().zip(&other.plain) {
            a.sub(b);
        }
        for (a, b) in self.by_xi.iter_mut().zip(&other.by_xi) {
            a.sub(b);
        }
    }

    /// Adds v times another sum, and reduces the result.
    #[inline(always)]
    fn reduced_with_v_times(&mut self, other: &Self) -> Fp6<Fe<M, N>> {
        let [o0, o1, o2] = &other.plain;
        let [o3, o4] = &other.by_xi;
        self.by_xi[0].add(o2);
        self.plain[1].add(o0);
        self.by_xi[1].add(o3);
        self.plain[2].add(o1);
        Fp6 {
            c0: Coefficient::exact(&self.plain[0], Some(&self.by_xi[0])),
            c1: Coefficient::exact(&self.plain[1], Some(&self.by_xi[1])),
            c2: Coefficient::exact(&self.plain[2], Some(o4)),
        }
    }

    /// Reduces a sum of at most six products of elements of Fp6.
    #[inline(always)]
    fn reduced(&self) -> Fp6<Fe<M, N>> {
        Fp6 {
            c0: Coefficient::exact(&self.plain[0], Some(&self.by_xi[0])),
            c1: Coefficient::exact(&self.plain[1], Some(&self.by_xi[1])),
            c2: Coefficient::exact(&self.plain[2], None),
        }
    }

    /// Reduces the product of sums of halves minus the products of both halves.
    #[inline(always)]
    fn reduced_difference(&mut self, p0: &Self, p1: &Self) -> Fp6<Fe<M, N>> {
        self.sub(p0);
        self.sub(p1);
        if has_room::<M, N>() {
            return self.reduced();
        }
        Fp6 {
            c0: Coefficient::of_reduced_sums(&self.plain[0], Some(&self.by_xi[0])),
            c1: Coefficient::of_reduced_sums(&self.plain[1], Some(&self.by_xi[1])),
            c2: Coefficient::of_reduced_sums(&self.plain[2], None),
        }
    }
}

/// True if unreduced sums of halves of Fp12 can be factors in Fp6.
#[inline(always)]
const fn has_room<M: TowerModulus<N>, const N: usize>() -> bool {
    adds_xi::<M, N>() && leaves_room::<M, N>(8)
}

/// The sum of elements of Fp6 as a factor: reduced without [`has_room`].
#[inline(always)]
fn half_sum<M: TowerModulus<N>, const N: usize>(
    a: &Fp6<Fe<M, N>>,
    b: &Fp6<Fe<M, N>>,
) -> Fp6<Fe<M, N>> {
    let [c0, c1, c2] = [(a.c0, b.c0), (a.c1, b.c1), (a.c2, b.c2)].map(|(a, b)| pair_sum(&a, &b));
    Fp6 { c0, c1, c2 }
}

/// The same in Fp2. With [`has_room`] the result is no valid element: its limbs are only read as a factor.
#[inline(always)]
fn pair_sum<M: TowerModulus<N>, const N: usize>(
    a: &Fp2<Fe<M, N>>,
    b: &Fp2<Fe<M, N>>,
) -> Fp2<Fe<M, N>> {
    if has_room::<M, N>() {
        let unreduced = |a: &Fe<M, N>, b: &Fe<M, N>| Fe::unreduced(Sum::of(&a.0, &b.0).0);
        return Fp2 { c0: unreduced(&a.c0, &b.c0), c1: unreduced(&a.c1, &b.c1) };
    }
    *a + *b
}

pub(super) fn product_6<M: TowerModulus<N>, const N: usize>(
    a: &Fp6<Fe<M, N>>,
    b: &Fp6<Fe<M, N>>,
) -> Fp6<Fe<M, N>> {
    let mut product = Sextic::ZERO;
    product.set_product(factors(a), factors(b));
    product.reduced()
}

pub(super) fn product_12<M: TowerModulus<N>, const N: usize>(
    a: &Fp12<Fe<M, N>>,
    b: &Fp12<Fe<M, N>>,
) -> Fp12<Fe<M, N>> {
    let (mut p0, mut p1, mut sums) = (Sextic::ZERO, Sextic::ZERO, Sextic::ZERO);
    p0.set_product(factors(&a.c0), factors(&b.c0));
    p1.set_product(factors(&a.c1), factors(&b.c1));
    sums.set_product(factors(&half_sum(&a.c0, &a.c1)), factors(&half_sum(&b.c0, &b.c1)));
    let c1 = sums.reduced_difference(&p0, &p1);
    Fp12 { c0: p0.reduced_with_v_times(&p1), c1 }
}

/// The product with `b0 + b1 v + b4 v w`.
pub(super) fn product_014<M: TowerModulus<N>, const N: usize>(
    a: &Fp12<Fe<M, N>>,
    b0: &Fp2<Fe<M, N>>,
    b1: &Fp2<Fe<M, N>>,
    b4: &Fp2<Fe<M, N>>,
) -> Fp12<Fe<M, N>> {
    let (mut p0, mut p1, mut sums) = (Sextic::ZERO, Sextic::ZERO, Sextic::ZERO);
    p0.set_product_01(factors(&a.c0), [factor(b0), factor(b1)]);
    p1.by_xi[0].set_product(factor(&a.c1.c2), factor(b4));
    p1.plain[1].set_product(factor(&a.c1.c0), factor(b4));
    p1.plain[2].set_product(factor(&a.c1.c1), factor(b4));
    let b14 = pair_sum(b1, b4);
    sums.set_product_01(factors(&half_sum(&a.c0, &a.c1)), [factor(b0), factor(&b14)]);
    let c1 = sums.reduced_difference(&p0, &p1);
    Fp12 { c0: p0.reduced_with_v_times(&p1), c1 }
}

/// `a^2 + b^2 xi` and `2 a b`: a square in Fp4, for xi = u or 1 + u.
#[inline(never)]
pub(super) fn square_4<M: TowerModulus<N>, const N: usize>(
    a: &Fp2<Fe<M, N>>,
    b: &Fp2<Fe<M, N>>,
) -> [Fp2<Fe<M, N>>; 2] {
    let (mut aa, mut bb, mut both) = (Products::ZERO, Products::ZERO, Products::ZERO);
    aa.set_square(a);
    bb.set_square(b);
    both.set_square(&(*a + *b));
    both.sub(&aa);
    both.sub(&bb);
    let other = Fp2 {
        c0: both.c0.reduced::<LessSquaresReal<M, N>>(),
        c1: both.c1.reduced::<Within<4, 2>>(),
    };
    aa.add_times_xi(&bb);
    let squares = Fp2 {
        c0: aa.c0.reduced::<SquaresReal<M, N>>(),
        c1: aa.c1.reduced::<SquaresImaginary<M, N>>(),
    };
    [squares, other]
}

#[inline(never)]
pub(super) fn product_2<M: TowerModulus<N>, const N: usize>(
    a: &Fp2<Fe<M, N>>,
    b: &Fp2<Fe<M, N>>,
) -> Fp2<Fe<M, N>> {
    let mut product = Products::ZERO;
    product.set_product(factor(a), factor(b));
    Fp2 { c0: product.c0.reduced::<ProductReal<M, N>>(), c1: product.c1.reduced::<Within<0, 2>>() }
}

/// The square in Fp2: two products, each with the reduction that it needs in any case.
#[inline(always)]
pub(super) fn square_2<M: TowerModulus<N>, const N: usize>(a: &Fp2<Fe<M, N>>) -> Fp2<Fe<M, N>> {
    let (sum, twice) = (Sum::of(&a.c0.0, &a.c1.0), Sum::of(&a.c0.0, &a.c0.0));
    let mut square = Fp2 {
        c0: Fe::product_of_sums(&sum, &Sum(minus_multiple(a).0)),
        c1: Fe::product_of_sums(&twice, &Sum(a.c1.0)),
    };
    for _ in 0..M::NON_RESIDUE / 2 {
        square.c0 += square.c1;
    }
    square
}

/// The norm of an element of Fp2.
#[inline(never)]
pub(super) fn norm<M: TowerModulus<N>, const N: usize>(a: &Fp2<Fe<M, N>>) -> Fe<M, N> {
    let (mut norm, mut other) = (Wide::<M, N>::ZERO, Wide::ZERO);
    norm.set_product(&a.c0.0, &a.c0.0);
    other.set_product(&a.c1.0, &a.c1.0);
    for _ in 0..M::NON_RESIDUE {
        norm.add(&other);
    }
    norm.reduced::<Norm<M, N>>()
}
