//! Steps of formulas: products of operands, and the reductions of their columns; powers.
//!
//! If products are long ([`Lanes::run`]), each is a separate function that reads its operands in place and writes its result in
//! place. Formulas do each step for several vectors before the next one. A reduction is a long chain of dependent instructions,
//! so the reductions of several vectors fill each other's gaps.

use super::Lanes;
use super::field::{Columns, Factor, Fe, Operand, Sum};

/// An operation for [`Lanes::run`], with its operands.
pub(crate) trait Operation {
    type Result;
    fn result(self) -> Self::Result;
}

/// Products in formulas, with operands in place.
macro_rules! product {
    ($name:ident($($operand:ident: $type:ident),*) $value:block) => {
        pub(crate) struct $name<'o, L>($(pub(super) &'o $type<L>),*);

        impl<L: Lanes> Operation for $name<'_, L> {
            type Result = Columns<L>;

            #[inline(always)]
            fn result(self) -> Columns<L> {
                let Self($($operand),*) = self;
                $value
            }
        }
    };
}
pub(super) use product;

product!(Product(a: Factor, b: Factor) { Columns::zero().plus_product(a, b) });
product!(Square(a: Factor) { Columns::square(None, a) });

/// Target of a reduction of columns.
pub(crate) trait Reduction<L> {
    type Result: Copy;
    const ZERO: Self::Result;
    fn of(columns: &Columns<L>) -> Self::Result;
}

macro_rules! reduction {
    ($name:ident, $result:ident, $method:ident) => {
        pub(crate) struct $name;

        impl<L: Lanes> Reduction<L> for $name {
            type Result = $result<L>;
            const ZERO: $result<L> = $result::ZERO;

            #[inline(always)]
            fn of(columns: &Columns<L>) -> $result<L> {
                columns.$method()
            }
        }
    };
}

reduction!(ToFe, Fe, reduce);
reduction!(ToFactor, Factor, reduce_to_factor);
reduction!(ToSum, Sum, reduce_to_sum);
reduction!(ToTwice, Factor, reduce_twice);
reduction!(ToThrice, Factor, reduce_thrice);
reduction!(ToNegated, Fe, reduce_negated);

pub(super) struct Reduced<'o, L, R>(pub(super) &'o Columns<L>, pub(super) R);

impl<L: Lanes, R: Reduction<L>> Operation for Reduced<'_, L, R> {
    type Result = R::Result;

    #[inline(always)]
    fn result(self) -> R::Result {
        R::of(self.0)
    }
}

/// A product reduced at once.
pub(super) struct ProductReduced<P, R>(pub(super) P, pub(super) R);

impl<L: Lanes, P: Operation<Result = Columns<L>>, R: Reduction<L>> Operation
    for ProductReduced<P, R>
{
    type Result = R::Result;

    #[inline(always)]
    fn result(self) -> R::Result {
        R::of(&self.0.result())
    }
}

#[inline(always)]
pub(super) fn reduced<L: Lanes, P: Operation<Result = Columns<L>>, R: Reduction<L>>(
    product: P,
    reduction: R,
) -> R::Result {
    let mut result = R::ZERO;
    if const { L::REDUCES_AT_ONCE } {
        L::run(ProductReduced(product, reduction), &mut result);
    } else {
        let mut columns = Columns::zero();
        L::run(product, &mut columns);
        L::run(Reduced(&columns, reduction), &mut result);
    }
    result
}

/// `N` products and their reductions, in place or as a new array.
macro_rules! in_steps {
    ($columns:ident, let $values:ident, $k:ident => $product:expr => $reduction:ident) => {
        let mut $values = [<$reduction as Reduction<L>>::ZERO; N];
        if const { L::REDUCES_AT_ONCE } {
            for $k in 0..N {
                L::run(ProductReduced($product, $reduction), &mut $values[$k]);
            }
        } else {
            in_steps!(apart $columns, $values[$k], $k => $product => $reduction);
        }
    };
    (apart $columns:ident, $value:expr, $k:ident => $product:expr => $reduction:ident) => {
        for $k in 0..N {
            L::run($product, &mut $columns[$k]);
        }
        for $k in 0..N {
            L::run(Reduced(&$columns[$k], $reduction), &mut $value);
        }
    };
    ($columns:ident, $value:expr, $k:ident => $product:expr => $reduction:ident) => {
        if const { L::REDUCES_AT_ONCE } {
            // The replaced value is an operand too.
            for $k in 0..N {
                let mut value = <$reduction as Reduction<L>>::ZERO;
                L::run(ProductReduced($product, $reduction), &mut value);
                $value = value;
            }
        } else {
            in_steps!(apart $columns, $value, $k => $product => $reduction);
        }
    };
}
pub(super) use in_steps;

impl<L: Lanes> Factor<L> {
    /// Product, weak.
    #[inline(always)]
    pub(crate) fn mul(&self, other: impl Operand<L>) -> Self {
        reduced(Product(self, &other.operand()), ToFactor)
    }

    /// Square of a weak element, weak.
    #[inline(always)]
    pub(crate) fn sqr(&self) -> Self {
        reduced(Square(self), ToFactor)
    }
}

impl<L: Lanes> Fe<L> {
    /// Product, weak.
    #[inline(always)]
    pub(crate) fn mul(&self, other: impl Operand<L>) -> Self {
        reduced(Product(&self.factor(), &other.operand()), ToFe)
    }

    /// Square of a weak element, weak.
    #[inline(always)]
    pub(crate) fn sqr(&self) -> Self {
        reduced(Square(&self.factor()), ToFe)
    }

    /// The lanes in which `self` and `other` differ by a multiple of the prime; both weak.
    #[inline(always)]
    pub(crate) fn equals(&self, other: &Self) -> u8 {
        let difference = Sum::primes(2).plus(self).minus(other);
        // Multiplying by one makes the difference weak.
        difference.carry().mul(&Self::one()).zeros()
    }
}

/// A step of an addition chain for exponents: squares `from` repeatedly, multiplies by `by`, stores the result in `to`.
struct Step {
    from: usize,
    squarings: u32,
    by: usize,
    to: usize,
}

const fn step(from: usize, squarings: u32, by: usize, to: usize) -> Step {
    Step { from, squarings, by, to }
}

/// Slot k holds a power with exponent 2^n - 1, for n = 1, 2, 3, 6, 9, 11, 22, 44, 88, 176, 220, 223.
const CHAIN: [Step; 12] = [
    step(0, 1, 0, 1),
    step(1, 1, 0, 2),
    step(2, 3, 2, 3),
    step(3, 3, 2, 4),
    step(4, 2, 1, 5),
    step(5, 11, 5, 6),
    step(6, 22, 6, 7),
    step(7, 44, 7, 8),
    step(8, 88, 8, 9),
    step(9, 44, 7, 10),
    step(10, 3, 2, 11),
    // Both exponents continue with 0 and 22 ones.
    step(11, 23, 6, 12),
];

/// After [`CHAIN`]: `(p + 1) / 4` except for two squarings.
const TO_SQUARE_ROOT: [Step; 1] = [step(12, 6, 1, 12)];

/// After [`CHAIN`]: `p - 2`.
const TO_INVERSE: [Step; 3] = [step(12, 5, 0, 12), step(12, 3, 1, 12), step(12, 2, 0, 12)];

#[inline(always)]
fn power<L: Lanes, const N: usize>(base: &[Factor<L>; N], tail: &[Step]) -> [Factor<L>; N] {
    let mut slots = [*base; 13];
    let mut columns = [Columns::zero(); N];
    for step in CHAIN.iter().chain(tail) {
        let mut value = slots[step.from];
        for _ in 0..step.squarings {
            in_steps!(columns, value[k], k => Square(&value[k]) => ToFactor);
        }
        for k in 0..N {
            value[k] = value[k].mul(slots[step.by][k]);
        }
        slots[step.to] = value;
    }
    slots[12]
}

/// The square roots of weak elements; unspecified for non-squares. Processes several vectors at a time, since a single chain of
/// squarings leaves the multiplier idle.
#[inline(always)]
pub(crate) fn square_roots<L: Lanes, const N: usize>(of: &[Fe<L>; N]) -> [Fe<L>; N] {
    let mut base = [of[0].factor(); N];
    for (base, of) in base.iter_mut().zip(of) {
        *base = of.factor();
    }
    let mut roots = *of;
    for (root, power) in roots.iter_mut().zip(power(&base, &TO_SQUARE_ROOT)) {
        *root = power.sqr().sqr().fe();
    }
    roots
}

/// The inverse, and zero for zero.
#[inline(always)]
pub(crate) fn inverse<L: Lanes>(of: impl Operand<L>) -> Factor<L> {
    power(&[of.operand()], &TO_INVERSE)[0]
}
