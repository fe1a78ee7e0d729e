//! Steps of formulas: products of operands, and the reductions of their columns.
//!
//! If products are long ([`Lanes::run`]), each is a separate function that reads its operands in place and writes its result in
//! place. Formulas do each step for several vectors before the next one. A reduction is a long chain of dependent instructions,
//! so the reductions of several vectors fill each other's gaps.

use super::Lanes;
use super::field::{Columns, Factor, Fe, Sum};

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

/// Columns to reduce.
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

/// The reduced product.
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
