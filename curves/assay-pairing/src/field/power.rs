//! Powers and functions based on them: square roots and the Legendre symbol.

use super::{Fe, Field, Modulus, backend};
use crate::limbs;

const WIDTH: usize = 5;

/// Power by sliding windows that skip zeros and end in a one, so that odd powers of the element are enough.
pub(super) fn windowed<M: Modulus<N>, const N: usize>(x: &Fe<M, N>, exponent: &[u64]) -> Fe<M, N> {
    let square = x.square();
    let mut odd_powers = [*x; 1 << (WIDTH - 1)];
    for k in 1..odd_powers.len() {
        odd_powers[k] = odd_powers[k - 1].times(&square);
    }
    // The power so far, if any, and its number of pending squares.
    let (mut power, mut squares) = (None::<Fe<M, N>>, 0);
    let mut above = limbs::bits(exponent);
    while above > 0 {
        if !limbs::bit(exponent, above - 1) {
            squares += 1;
            above -= 1;
            continue;
        }
        let mut below = above.saturating_sub(WIDTH);
        while !limbs::bit(exponent, below) {
            below += 1;
        }
        let digit = (below..above)
            .rev()
            .fold(0, |digit, index| 2 * digit + usize::from(limbs::bit(exponent, index)));
        let factor = &odd_powers[digit / 2];
        power = Some(match power {
            Some(power) => power.squares_times(squares + above - below, factor),
            None => *factor,
        });
        squares = 0;
        above = below;
    }
    let Some(power) = power else { return Fe::ONE };
    if squares > 0 { power.squares_times(squares, &Fe::ONE) } else { power }
}

impl<M: Modulus<N>, const N: usize> Fe<M, N> {
    /// True if 4 p < R: then products of numbers below 2 p are below 2 p, without a correction.
    const HAS_ROOM: bool = M::MODULUS[N - 1] >> 62 == 0;

    /// One or more repeated squares, and the product of the last one and a factor.
    #[inline(always)]
    fn squares_times(&self, count: usize, factor: &Self) -> Self {
        if Self::HAS_ROOM
            && let Some(product) = backend::squares_times(&self.0, count, &factor.0, Self::PRIME)
        {
            return Self::raw(product);
        }
        (0..count).fold(*self, |power, _| power.square()).times(factor)
    }

    /// `(p - 3) / 4` for p = 3 modulo 4: this power of a square is the inverse of its root.
    pub(crate) const ROOT_INVERSE: [u64; N] = limbs::half(&limbs::half(&M::MODULUS));

    /// Exponent of two in p - 1.
    pub(crate) const TWO_ADICITY: usize = {
        let (mut odd, mut count) = (limbs::minus_small(&M::MODULUS, 1), 0);
        while odd[0] & 1 == 0 {
            odd = limbs::half(&odd);
            count += 1;
        }
        count
    };

    /// The odd factor of p - 1.
    const ODD_FACTOR: [u64; N] = {
        let (mut odd, mut count) = (limbs::minus_small(&M::MODULUS, 1), 0);
        while count < Self::TWO_ADICITY {
            odd = limbs::half(&odd);
            count += 1;
        }
        odd
    };

    /// The power of the smallest non-residue to the odd factor: a root of one of order 2^s.
    const ROOT_OF_ONE: Self = {
        let exponent = limbs::half(&M::MODULUS);
        let mut small = 2;
        while Self::from_u64(small).const_power(&exponent).equals(&Self::ONE) {
            small += 1;
        }
        Self::from_u64(small).const_power(&Self::ODD_FACTOR)
    };

    /// 1 for squares, -1 for others, 0 for zero.
    pub fn legendre(&self) -> i32 {
        let power = self.power(&const { limbs::half(&M::MODULUS) });
        i32::from(power == Self::ONE) - i32::from(power != Self::ONE && power != Self::ZERO)
    }
}

/// By one power if p = 3 modulo 4, otherwise by the algorithm of Tonelli and Shanks.
pub(super) fn sqrt<M: Modulus<N>, const N: usize>(x: &Fe<M, N>) -> Option<Fe<M, N>> {
    let root = if Fe::<M, N>::TWO_ADICITY == 1 {
        x.power(&const { limbs::plus_small(&limbs::half(&limbs::half(&M::MODULUS)), 1) })
    } else {
        tonelli_shanks(x)?
    };
    (root.square() == *x).then_some(root)
}

fn tonelli_shanks<M: Modulus<N>, const N: usize>(x: &Fe<M, N>) -> Option<Fe<M, N>> {
    if x.is_zero() {
        return Some(*x);
    }
    // x^((q - 1) / 2) for the odd factor q.
    let power = x.power(&const { limbs::half(&Fe::<M, N>::ODD_FACTOR) });
    let mut root = power * *x;
    let mut rest = root * power;
    let (mut generator, mut order) = (Fe::<M, N>::ROOT_OF_ONE, Fe::<M, N>::TWO_ADICITY);
    // root^2 = rest x, and rest has an order that divides 2^(order - 1) if x is a square.
    while rest != Fe::ONE {
        let mut square = rest;
        let mut squarings = 0;
        while square != Fe::ONE {
            square = square.square();
            squarings += 1;
            if squarings == order {
                return None;
            }
        }
        for _ in 0..order - squarings - 1 {
            generator = generator.square();
        }
        root *= generator;
        generator = generator.square();
        rest *= generator;
        order = squarings;
    }
    Some(root)
}
