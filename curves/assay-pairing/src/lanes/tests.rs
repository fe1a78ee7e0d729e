//! Lanes against scalars, one test body over every kind of lanes.

use super::field::LaneFe;
use super::{LANES, Lanes, Task};
use crate::backend::Portable;
use crate::field::{Fe, Field as _, Modulus};
use crate::testing::Rng;
use crate::{bls12_377, bls12_381, bn254, bn254_nogami};

struct Check<L, M, const N: usize, const K: usize>(usize, core::marker::PhantomData<(L, M)>);

impl<L: Lanes, M: Modulus<N>, const N: usize, const K: usize> Task for Check<L, M, N, K> {
    type Result = ();

    /// Products, sums and differences of elements at the allowed bounds.
    #[inline(always)]
    fn run(self) {
        let mut rng = Rng::new(10);
        for case in 0..self.0 {
            let (mut a, mut b, mut c) =
                ([Fe::<M, N>::ZERO; LANES], [Fe::ZERO; LANES], [Fe::ZERO; LANES]);
            for lane in 0..LANES {
                (a[lane], b[lane], c[lane]) = (rng.fe(), rng.fe(), rng.fe());
                if lane == case % 16 {
                    b[lane] = a[lane];
                }
            }
            let mask = rng.word() as u8;
            let (x, y, z) = (
                LaneFe::<L, M, N, K>::from_scalars(&a),
                LaneFe::from_scalars(&b),
                LaneFe::from_scalars(&c),
            );
            let difference = x.minus(&y);
            let negated = z.negate_where(mask);
            let product = difference.times(&negated);
            let settled = product.minus_both_stored(&x, &y);
            let last = settled.minus_stored(&z);
            // Three differences of up to 6 p are the largest factors.
            let wide = x.minus(&negated);
            let squares = [wide.squared().to_scalars(), wide.times(&wide).to_scalars()];
            let zeros = difference.zeros();
            let found = [difference, negated, product, settled, last].map(LaneFe::to_scalars);
            let mut is_zero = 0;
            for lane in 0..LANES {
                let (a, b, c) = (a[lane], b[lane], c[lane]);
                let c_negated = if mask >> lane & 1 == 1 { -c } else { c };
                let product = (a - b) * c_negated;
                let settled = product - a - b;
                let right = [a - b, c_negated, product, settled, settled - c];
                for k in 0..right.len() {
                    assert_eq!(found[k][lane], right[k], "{k}: {a:?} {b:?} {c:?}");
                }
                for square in squares {
                    assert_eq!(square[lane], (a - c_negated).square());
                }
                is_zero |= u8::from(a == b) << lane;
            }
            assert_eq!(zeros, is_zero);
            assert!(difference.may_have_zero() || is_zero == 0);
        }
    }
}

fn check<L: Lanes>(cases: usize) {
    L::run(Check::<L, bls12_381::FpModulus, 6, 8>(cases, core::marker::PhantomData));
    L::run(Check::<L, bn254::FpModulus, 4, 5>(cases, core::marker::PhantomData));
    L::run(Check::<L, bls12_377::FpModulus, 6, 8>(cases, core::marker::PhantomData));
    L::run(Check::<L, bn254_nogami::FpModulus, 4, 5>(cases, core::marker::PhantomData));
}

#[test]
fn portable() {
    check::<Portable>(5_000);
}

#[cfg(target_arch = "x86_64")]
#[test]
fn ifma() {
    if !crate::backend::ifma_is_available() {
        println!("skipped: this CPU has no AVX-512 IFMA");
        return;
    }
    check::<crate::backend::Ifma>(20_000);
}

/// The largest factors, 8 p - 1 in all lanes, for the primes with the least room below R / 64; the product is stored.
#[test]
fn largest_factors() {
    struct Largest<L, M>(core::marker::PhantomData<(L, M)>);

    impl<L: Lanes, M: Modulus<4>> Task for Largest<L, M> {
        type Result = ();

        #[inline(always)]
        fn run(self) {
            let [a, b, c, d] = M::MODULUS;
            let prime = [a, b, c, d, 0];
            let largest = (0..8).fold([0; 5], |sum, _| crate::limbs::add(&sum, &prime).0);
            // Uses these limbs unchanged.
            let parts: [u64; 5] = super::field::split(&crate::limbs::minus_small(&largest, 1));
            let x = LaneFe::<L, M, 4, 5>::constant(parts);
            let product = x.times(&x).minus_stored(&x.minus(&x));
            let scalars = x.to_scalars();
            for (lane, found) in product.to_scalars().into_iter().enumerate() {
                assert_eq!(found, scalars[lane].square());
            }
        }
    }

    Portable::run(Largest::<Portable, bn254::FpModulus>(core::marker::PhantomData));
    Portable::run(Largest::<Portable, bn254_nogami::FpModulus>(core::marker::PhantomData));
    #[cfg(target_arch = "x86_64")]
    if crate::backend::ifma_is_available() {
        type Ifma = crate::backend::Ifma;
        Ifma::run(Largest::<Ifma, bn254::FpModulus>(core::marker::PhantomData));
        Ifma::run(Largest::<Ifma, bn254_nogami::FpModulus>(core::marker::PhantomData));
    }
}
