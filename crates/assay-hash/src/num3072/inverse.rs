//! The inverse modulo p by division steps, for a modulus whose lowest and highest limbs alone are not zero.
//!
//! At the end g is 0, f is the greatest common divisor 1 or -1, and d or -d is the inverse.
//!
//! Bernstein and Yang bound the steps by (49 * 3072 + 57) / 17 < 8 859, so by 143 rounds of 62. Each round adds at most p / 2 to
//! the magnitude of d and e (see [`apply_modular`]), which therefore stays below 73 p; the 28 spare bits of 50 limbs of 62 bits
//! are more than sufficient.

use super::{FOLD, Num3072};
use crate::division_steps::{
    MASK, Matrix, Signed, apply, carry, inverse_of_word, join, product, split, steps,
};

/// Bits per limb, and division steps per matrix.
const BITS: u32 = 62;

/// Limbs of a long signed number: 3100 bits.
const LONG: usize = 50;

/// Position of bit 3072: limb 49, bit 34.
const TOP_BIT: u32 = 3072 - 49 * BITS;

/// 1 / p modulo 2^62.
const P_INVERSE: u64 = inverse_of_word(FOLD.wrapping_neg());

type Long = Signed<LONG>;

impl Num3072 {
    /// The inverse modulo p; zero for zero.
    pub(crate) fn inverse(&self) -> Self {
        let mut f = [0; LONG];
        f[0] = -(FOLD as i64);
        f[LONG - 1] = 1 << TOP_BIT;
        let mut g: Long = split(&self.normalised().0);
        let mut d = [0; LONG];
        let mut e = [0; LONG];
        e[0] = 1;
        let mut eta = -1;
        let mut length = LONG;
        carry(&mut f);
        while g[..length].iter().any(|&limb| limb != 0) {
            let matrix = steps(&mut eta, f[0] as u64, g[0] as u64);
            apply(&mut f[..length], &mut g[..length], &matrix);
            apply_modular(&matrix, &mut d, &mut e);
            length = shrink(&mut f, &mut g, length);
        }
        // The sign of f is in its highest used limb.
        if f[length - 1] < 0 {
            for limb in &mut d {
                *limb = -*limb;
            }
        }
        from_long(d)
    }
}

/// `(d, e) = (u d + v e, q d + r e) / 2^62` modulo p.
///
/// A multiple of p in `-2^61 p .. 2^61 p` makes the sum divisible by 2^62, so with
/// `|u| + |v| <= 2^62` the magnitude grows by at most p / 2.
fn apply_modular(matrix: &Matrix, d: &mut Long, e: &mut Long) {
    let (mut carry_d, mut carry_e) = (0i128, 0i128);
    let (mut multiple_d, mut multiple_e) = (0i128, 0i128);
    for i in 0..LONG {
        carry_d += product(matrix.u, d[i]) + product(matrix.v, e[i]);
        carry_e += product(matrix.q, d[i]) + product(matrix.r, e[i]);
        if i == 0 {
            // p is -FOLD in its lowest limb, 2^TOP_BIT in its highest, and zero between.
            multiple_d = clearing_multiple(carry_d as u64);
            multiple_e = clearing_multiple(carry_e as u64);
            carry_d -= multiple_d * i128::from(FOLD);
            carry_e -= multiple_e * i128::from(FOLD);
            debug_assert_eq!((carry_d as u64 & MASK, carry_e as u64 & MASK), (0, 0));
        } else {
            if i == LONG - 1 {
                carry_d += multiple_d << TOP_BIT;
                carry_e += multiple_e << TOP_BIT;
            }
            d[i - 1] = (carry_d as u64 & MASK) as i64;
            e[i - 1] = (carry_e as u64 & MASK) as i64;
        }
        carry_d >>= BITS;
        carry_e >>= BITS;
    }
    d[LONG - 1] = carry_d as i64;
    e[LONG - 1] = carry_e as i64;
}

/// The m in `-2^61..2^61` for which `low + m p` ends in 62 zero bits.
fn clearing_multiple(low: u64) -> i128 {
    let m = low.wrapping_mul(P_INVERSE).wrapping_neg();
    // Sign-extend the low 62 bits.
    i128::from(((m << (64 - BITS)) as i64) >> (64 - BITS))
}

/// Drops top limbs that only repeat the sign, in both numbers at once.
fn shrink(f: &mut Long, g: &mut Long, mut length: usize) -> usize {
    while length > 1 {
        let (top_f, top_g) = (f[length - 1], g[length - 1]);
        if !matches!(top_f, 0 | -1) || !matches!(top_g, 0 | -1) {
            break;
        }
        // Below the top, limbs are unsigned; the new top limb inherits the sign.
        f[length - 2] |= top_f << BITS;
        g[length - 2] |= top_g << BITS;
        length -= 1;
    }
    length
}

/// Reduces a number of magnitude below 2^7 p to a residue; limbs may be out of range.
fn from_long(mut x: Long) -> Num3072 {
    // 128 p makes it positive.
    x[0] -= 128 * FOLD as i64;
    x[LONG - 1] += 128 << TOP_BIT;
    carry(&mut x);
    Num3072::from_wide(&join(&x))
}
