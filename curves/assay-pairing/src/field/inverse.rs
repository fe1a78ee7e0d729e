//! Inversion by Bernstein and Yang's division steps ("Fast constant-time gcd computation and modular
//! inversion", 2019), 62 at a time as in libsecp256k1's `doc/safegcd_implementation.md`, variable time.

use super::Modulus;

const MASK: u64 = u64::MAX >> 2;

/// Sixty-two steps on the low bits of f and g, as the matrix by which both are multiplied.
struct Matrix {
    u: i64,
    v: i64,
    q: i64,
    r: i64,
}

/// A signed number of 62-bit limbs; the top one has the sign, the others are not negative.
type Signed<const L: usize> = [i64; L];

/// `1 / x` modulo the prime; `x` is not zero and below the prime.
pub(super) fn of<M: Modulus<N>, const N: usize>(x: &[u64; N]) -> [u64; N] {
    // One limb for the sign and the factor of two that values grow by.
    match N {
        4 => inverse::<M, N, 5>(x),
        5 => inverse::<M, N, 6>(x),
        6 => inverse::<M, N, 7>(x),
        _ => unreachable!("fields have four limbs to six"),
    }
}

const fn split<const N: usize, const L: usize>(x: &[u64; N]) -> Signed<L> {
    let (mut limbs, mut i) = ([0; L], 0);
    while i < L {
        let (word, shift) = (62 * i / 64, 62 * i % 64);
        let mut limb = if word < N { x[word] >> shift } else { 0 };
        if shift > 2 && word + 1 < N {
            limb |= x[word + 1] << (64 - shift);
        }
        limbs[i] = (limb & MASK) as i64;
        i += 1;
    }
    limbs
}

fn join<const N: usize, const L: usize>(limbs: &Signed<L>) -> [u64; N] {
    let mut x = [0; N];
    for (i, limb) in limbs.iter().enumerate() {
        let (word, shift) = (62 * i / 64, 62 * i % 64);
        if word < N {
            x[word] |= (*limb as u64) << shift;
        }
        if shift > 2 && word + 1 < N {
            x[word + 1] |= *limb as u64 >> (64 - shift);
        }
    }
    x
}

fn inverse<M: Modulus<N>, const N: usize, const L: usize>(x: &[u64; N]) -> [u64; N] {
    let prime: Signed<L> = const { split(&M::MODULUS) };
    // 1 / p modulo 2^62.
    let prime_inverse =
        const { crate::limbs::negated_inverse_64(M::MODULUS[0]).wrapping_neg() & MASK };
    let (mut f, mut g) = (prime, split(x));
    let (mut d, mut e) = ([0; L], [0; L]);
    e[0] = 1;
    let mut eta = -1;
    // Invariants: d x = f and e x = g modulo the prime.
    while g != [0; L] {
        let matrix;
        (eta, matrix) =
            steps(eta, f[0] as u64 | (f[1] as u64) << 62, g[0] as u64 | (g[1] as u64) << 62);
        apply_modulo(&mut d, &mut e, &matrix, &prime, prime_inverse);
        apply(&mut f, &mut g, &matrix);
    }
    // f is 1 or -1.
    let is_negative = f[L - 1] < 0;
    join(&normalized(d, is_negative, &prime))
}

fn steps(mut eta: i64, f: u64, g: u64) -> (i64, Matrix) {
    let (mut f, mut g) = (f, g);
    let (mut u, mut v, mut q, mut r) = (1u64, 0u64, 0u64, 1u64);
    let mut left = 62u32;
    loop {
        // Halves g until it is odd.
        let zeros = (g | u64::MAX << left).trailing_zeros();
        g >>= zeros;
        u <<= zeros;
        v <<= zeros;
        eta -= i64::from(zeros);
        left -= zeros;
        if left == 0 {
            break;
        }
        let bits: u32;
        let factor = if eta < 0 {
            eta = -eta;
            (f, g) = (g, f.wrapping_neg());
            (u, q) = (q, u.wrapping_neg());
            (v, r) = (r, v.wrapping_neg());
            // A multiple of f clears up to six bits of g: -g / f modulo 64.
            bits = u32::try_from(eta + 1).map_or(left, |steps| steps.min(left)).min(6);
            f.wrapping_mul(g).wrapping_mul(f.wrapping_mul(f).wrapping_sub(2))
        } else {
            // The same modulo 16.
            bits = u32::try_from(eta + 1).map_or(left, |steps| steps.min(left)).min(4);
            let inverse = f.wrapping_add((f.wrapping_add(1) & 4) << 1);
            inverse.wrapping_neg().wrapping_mul(g)
        } & ((1 << bits) - 1);
        g = g.wrapping_add(f.wrapping_mul(factor));
        q = q.wrapping_add(u.wrapping_mul(factor));
        r = r.wrapping_add(v.wrapping_mul(factor));
    }
    (eta, Matrix { u: u as i64, v: v as i64, q: q as i64, r: r as i64 })
}

#[inline(always)]
fn product(a: i64, b: i64) -> i128 {
    i128::from(a) * i128::from(b)
}

/// `(f, g) = matrix (f, g) / 2^62`, which is exact.
#[inline]
fn apply<const L: usize>(f: &mut Signed<L>, g: &mut Signed<L>, m: &Matrix) {
    let mut carry_f = product(m.u, f[0]) + product(m.v, g[0]);
    let mut carry_g = product(m.q, f[0]) + product(m.r, g[0]);
    (carry_f, carry_g) = (carry_f >> 62, carry_g >> 62);
    for i in 1..L {
        carry_f += product(m.u, f[i]) + product(m.v, g[i]);
        carry_g += product(m.q, f[i]) + product(m.r, g[i]);
        f[i - 1] = (carry_f as u64 & MASK) as i64;
        g[i - 1] = (carry_g as u64 & MASK) as i64;
        (carry_f, carry_g) = (carry_f >> 62, carry_g >> 62);
    }
    (f[L - 1], g[L - 1]) = (carry_f as i64, carry_g as i64);
}

/// `(d, e) = matrix (d, e) / 2^62` modulo the prime; both stay in (-2p, p).
#[inline]
fn apply_modulo<const L: usize>(
    d: &mut Signed<L>,
    e: &mut Signed<L>,
    m: &Matrix,
    prime: &Signed<L>,
    prime_inverse: u64,
) {
    let (sign_d, sign_e) = (d[L - 1] >> 63, e[L - 1] >> 63);
    let mut multiple_d = (m.u & sign_d) + (m.v & sign_e);
    let mut multiple_e = (m.q & sign_d) + (m.r & sign_e);
    let mut carry_d = product(m.u, d[0]) + product(m.v, e[0]);
    let mut carry_e = product(m.q, d[0]) + product(m.r, e[0]);
    // The multiples of p that clear the low 62 bits.
    let clear = |carry: i128, multiple: i64| {
        (prime_inverse.wrapping_mul(carry as u64).wrapping_add(multiple as u64) & MASK) as i64
    };
    multiple_d -= clear(carry_d, multiple_d);
    multiple_e -= clear(carry_e, multiple_e);
    carry_d += product(prime[0], multiple_d);
    carry_e += product(prime[0], multiple_e);
    (carry_d, carry_e) = (carry_d >> 62, carry_e >> 62);
    for i in 1..L {
        carry_d += product(m.u, d[i]) + product(m.v, e[i]) + product(prime[i], multiple_d);
        carry_e += product(m.q, d[i]) + product(m.r, e[i]) + product(prime[i], multiple_e);
        d[i - 1] = (carry_d as u64 & MASK) as i64;
        e[i - 1] = (carry_e as u64 & MASK) as i64;
        (carry_d, carry_e) = (carry_d >> 62, carry_e >> 62);
    }
    (d[L - 1], e[L - 1]) = (carry_d as i64, carry_e as i64);
}

/// `d` or `-d`, for d in (-2p, p), as a number from 0 to p - 1.
fn normalized<const L: usize>(mut d: Signed<L>, is_negated: bool, prime: &Signed<L>) -> Signed<L> {
    let carry = |d: &mut Signed<L>| {
        for i in 0..L - 1 {
            d[i + 1] += d[i] >> 62;
            d[i] &= MASK as i64;
        }
    };
    let add_prime_if_negative = |d: &mut Signed<L>| {
        if d[L - 1] < 0 {
            for i in 0..L {
                d[i] += prime[i];
            }
            carry(d);
        }
    };
    add_prime_if_negative(&mut d);
    if is_negated {
        d = d.map(|limb| -limb);
        carry(&mut d);
    }
    add_prime_if_negative(&mut d);
    d
}
