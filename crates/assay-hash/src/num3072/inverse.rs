//! The inverse modulo p by division steps (Bernstein and Yang, "Fast constant-time gcd
//! computation and modular inversion", 2019), in variable time: nothing here is secret.
//!
//! A division step maps `(delta, f, g)`, f odd, to `(1 - delta, g, (g - f) / 2)` if `delta > 0` and g is odd, else to `(1 +
//! delta, f, (g + (g mod 2) f) / 2)`. The branches of the next 62 steps depend only on the low 62 bits of f and g, so [`jump`]
//! runs them on single words and collects a matrix, and [`apply`] and [`apply_modular`] apply the matrix once to the long
//! numbers.
//!
//! In addition to f and g, d and e are maintained with `f = d x` and `g = e x` modulo p. At the end g is 0, f is the greatest
//! common divisor 1 or -1, and d or -d is the inverse.
//!
//! Bernstein and Yang bound the steps by (49 * 3072 + 57) / 17 < 8 859, so by 143 jumps. Each jump adds at most p / 2 to the
//! magnitude of d and e (see [`apply_modular`]), which therefore stays below 73 p; the 28 spare bits of 50 limbs of 62 bits are
//! more than sufficient.

use super::{FOLD, LIMBS, Num3072};

/// Bits per limb, and division steps per jump.
const BITS: u32 = 62;

/// Limbs of a long signed number: 3100 bits.
const LONG: usize = 50;

/// The low bits of a limb.
const MASK: i64 = (1 << BITS) - 1;

/// Position of bit 3072: limb 49, bit 34.
const TOP_BIT: u32 = 3072 - 49 * BITS;

/// 1 / p modulo 2^62.
const P_INVERSE: u64 = {
    let p = FOLD.wrapping_neg();
    let mut inverse = 1u64;
    // Each Newton step doubles the correct low bits, from 1 (p is odd).
    let mut step = 0;
    while step < 6 {
        inverse = inverse.wrapping_mul(2u64.wrapping_sub(p.wrapping_mul(inverse)));
        step += 1;
    }
    inverse & MASK as u64
};

/// A signed number, limbs in `0..2^62` except the top one, which carries the sign.
type Long = [i64; LONG];

/// The effect of one jump: `2^62 (f', g') = (u f + v g, q f + r g)`. `|u| + |v| <= 2^62`, and the
/// same for q and r.
struct Matrix {
    u: i64,
    v: i64,
    q: i64,
    r: i64,
}

impl Num3072 {
    /// The inverse modulo p; zero for zero.
    pub(crate) fn inverse(&self) -> Self {
        let mut f = [0; LONG];
        f[0] = -(FOLD as i64);
        f[LONG - 1] = 1 << TOP_BIT;
        let mut g = to_long(&self.normalised().0);
        let mut d = [0; LONG];
        let mut e = [0; LONG];
        e[0] = 1;
        let mut delta = 1;
        let mut length = LONG;
        carry(&mut f);
        while g[..length].iter().any(|&limb| limb != 0) {
            let matrix;
            (delta, matrix) = jump(delta, f[0] as u64, g[0] as u64);
            apply(&matrix, &mut f[..length], &mut g[..length]);
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

/// Runs 62 division steps on the low words.
fn jump(mut delta: i64, mut f: u64, mut g: u64) -> (i64, Matrix) {
    let (mut u, mut v, mut q, mut r) = (1u64, 0u64, 0u64, 1u64);
    let mut left = BITS;
    loop {
        // An even g is only halved; instead of halving q and r, u and v double.
        let zeros = (g | (u64::MAX << left)).trailing_zeros();
        g >>= zeros;
        u <<= zeros;
        v <<= zeros;
        delta += i64::from(zeros);
        left -= zeros;
        if left == 0 {
            break;
        }
        if delta > 0 {
            delta = -delta;
            (f, g) = (g, f.wrapping_neg());
            (u, q) = (q, u.wrapping_neg());
            (v, r) = (r, v.wrapping_neg());
        }
        // The next 1 - delta steps do not swap, so one multiple of f clears that many bits of g.
        let inverse = f.wrapping_mul(3) ^ 2; // 1 / f modulo 32
        let inverse = inverse.wrapping_mul(2u64.wrapping_sub(f.wrapping_mul(inverse)));
        let bits = (1 - delta).min(i64::from(left)).min(10) as u32;
        let w = g.wrapping_neg().wrapping_mul(inverse) & ((1 << bits) - 1);
        g = g.wrapping_add(w.wrapping_mul(f));
        q = q.wrapping_add(w.wrapping_mul(u));
        r = r.wrapping_add(w.wrapping_mul(v));
    }
    (delta, Matrix { u: u as i64, v: v as i64, q: q as i64, r: r as i64 })
}

/// `(f, g) = (u f + v g, q f + r g) / 2^62`, which is exact.
fn apply(matrix: &Matrix, f: &mut [i64], g: &mut [i64]) {
    let (mut carry_f, mut carry_g) = (0i128, 0i128);
    let length = f.len();
    for i in 0..length {
        let (fi, gi) = (i128::from(f[i]), i128::from(g[i]));
        carry_f += i128::from(matrix.u) * fi + i128::from(matrix.v) * gi;
        carry_g += i128::from(matrix.q) * fi + i128::from(matrix.r) * gi;
        if i > 0 {
            f[i - 1] = carry_f as i64 & MASK;
            g[i - 1] = carry_g as i64 & MASK;
        } else {
            debug_assert_eq!((carry_f as i64 & MASK, carry_g as i64 & MASK), (0, 0));
        }
        carry_f >>= BITS;
        carry_g >>= BITS;
    }
    f[length - 1] = carry_f as i64;
    g[length - 1] = carry_g as i64;
}

/// `(d, e) = (u d + v e, q d + r e) / 2^62` modulo p.
///
/// A multiple of p in `-2^61 p .. 2^61 p` makes the sum divisible by 2^62, so with
/// `|u| + |v| <= 2^62` the magnitude grows by at most p / 2.
fn apply_modular(matrix: &Matrix, d: &mut Long, e: &mut Long) {
    let (mut carry_d, mut carry_e) = (0i128, 0i128);
    let (mut multiple_d, mut multiple_e) = (0i128, 0i128);
    for i in 0..LONG {
        let (di, ei) = (i128::from(d[i]), i128::from(e[i]));
        carry_d += i128::from(matrix.u) * di + i128::from(matrix.v) * ei;
        carry_e += i128::from(matrix.q) * di + i128::from(matrix.r) * ei;
        if i == 0 {
            // p is -FOLD in its lowest limb, 2^TOP_BIT in its highest, and zero between.
            multiple_d = clearing_multiple(carry_d as u64);
            multiple_e = clearing_multiple(carry_e as u64);
            carry_d -= multiple_d * i128::from(FOLD);
            carry_e -= multiple_e * i128::from(FOLD);
            debug_assert_eq!((carry_d as i64 & MASK, carry_e as i64 & MASK), (0, 0));
        } else {
            if i == LONG - 1 {
                carry_d += multiple_d << TOP_BIT;
                carry_e += multiple_e << TOP_BIT;
            }
            d[i - 1] = carry_d as i64 & MASK;
            e[i - 1] = carry_e as i64 & MASK;
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

/// Reduces all limbs but the top one to `0..2^62`.
fn carry(x: &mut Long) {
    for i in 0..LONG - 1 {
        x[i + 1] += x[i] >> BITS;
        x[i] &= MASK;
    }
}

/// Regroups 64-bit limbs.
fn to_long(limbs: &[u64; LIMBS]) -> Long {
    core::array::from_fn(|i| {
        let bit = i * BITS as usize;
        let (index, shift) = (bit / 64, bit % 64);
        let low = limbs[index] >> shift;
        let high = limbs.get(index + 1).map_or(0, |&limb| u128::from(limb) << (64 - shift));
        (low | high as u64) as i64 & MASK
    })
}

/// Reduces a number of magnitude below 2^7 p to a residue; limbs may be out of range.
fn from_long(mut x: Long) -> Num3072 {
    // 128 p makes it positive.
    x[0] -= 128 * FOLD as i64;
    x[LONG - 1] += 128 << TOP_BIT;
    carry(&mut x);
    let mut wide = [0u64; 2 * LIMBS];
    for (i, &limb) in x.iter().enumerate() {
        let bit = i * BITS as usize;
        let (index, shift) = (bit / 64, bit % 64);
        let spread = u128::from(limb as u64) << shift;
        wide[index] |= spread as u64;
        wide[index + 1] |= (spread >> 64) as u64;
    }
    Num3072::from_wide(&wide)
}
