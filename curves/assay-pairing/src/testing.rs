//! Seeded test inputs, with edge cases of carries and borrows.

use crate::curve::{Affine, Curve};
use crate::field::{Fe, Modulus};
use crate::limbs;
use crate::tower::{Fp2, Fp6, Fp12, TowerModulus};

/// Tests that are a call each.
macro_rules! tests {
    ($($name:ident: $call:expr;)+) => {$(
        #[test]
        fn $name() {
            $call;
        }
    )+};
}
pub(crate) use tests;

/// A random number generator (xorshift64*) for tests.
pub(crate) struct Rng(u64);

impl Rng {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    pub(crate) fn word(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    /// A word that is often an edge case.
    pub(crate) fn edge_word(&mut self) -> u64 {
        match self.word() % 8 {
            0 => 0,
            1 => u64::MAX,
            2 => 1 << (self.word() % 64),
            3 => (1 << (self.word() % 64)) - 1,
            _ => self.word(),
        }
    }

    /// Half of them uniform, half with edge-case limbs or near zero and the prime, as Montgomery forms.
    pub(crate) fn fe<M: Modulus<N>, const N: usize>(&mut self) -> Fe<M, N> {
        let kind = self.word() % 8;
        let small = self.word() % 4;
        let limbs = match kind {
            0 => limbs::plus_small(&[0; N], small),
            1 => limbs::minus_small(&M::MODULUS, 1 + small),
            2 | 3 => core::array::from_fn(|_| self.edge_word()),
            _ => core::array::from_fn(|_| self.word()),
        };
        let mut value = limbs;
        // Only the high limb is reduced, so the others stay as drawn.
        while !limbs::less(&value, &M::MODULUS) {
            value[N - 1] = if value[N - 1] == 0 { 0 } else { value[N - 1] >> 1 };
        }
        Fe::from_montgomery(value)
    }

    pub(crate) fn fp2<M: TowerModulus<N>, const N: usize>(&mut self) -> Fp2<Fe<M, N>> {
        Fp2 { c0: self.fe(), c1: self.fe() }
    }

    pub(crate) fn fp6<M: TowerModulus<N>, const N: usize>(&mut self) -> Fp6<Fe<M, N>> {
        Fp6 { c0: self.fp2(), c1: self.fp2(), c2: self.fp2() }
    }

    pub(crate) fn fp12<M: TowerModulus<N>, const N: usize>(&mut self) -> Fp12<Fe<M, N>> {
        Fp12 { c0: self.fp6(), c1: self.fp6() }
    }
}

/// Lowercase hexadecimal.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().concat()
}

/// Random elements of any field.
pub(crate) trait Random {
    fn random(rng: &mut Rng) -> Self;
}

impl<M: Modulus<N>, const N: usize> Random for Fe<M, N> {
    fn random(rng: &mut Rng) -> Self {
        rng.fe()
    }
}

impl<M: TowerModulus<N>, const N: usize> Random for Fp2<Fe<M, N>> {
    fn random(rng: &mut Rng) -> Self {
        rng.fp2()
    }
}

/// Random points of a curve.
pub(crate) trait Point {
    /// A point of the curve, in the group or not.
    fn point_of_curve<C: Curve<Base: Random>>(&mut self) -> Affine<C>;
}

impl Point for Rng {
    fn point_of_curve<C: Curve<Base: Random>>(&mut self) -> Affine<C> {
        loop {
            let x = C::Base::random(self);
            let is_largest = self.word() & 1 == 1;
            if let Some(point) = Affine::from_x(x, is_largest) {
                return point;
            }
        }
    }
}
