//! Inverses modulo odd numbers by Bernstein and Yang's division steps ("Fast constant-time gcd computation and modular inversion",
//! 2019), variable time: 62 steps on the lowest words yield a matrix, which is then applied to the whole numbers. Steps are counted
//! as in libsecp256k1's `modinv64` (`doc/safegcd_implementation.md`).
//!
//! For `MuHash`, and the arithmetic of `assay-secp` and `assay-pairing` (`docs/adr/0056-shared-arithmetic.md`).

pub(crate) const MASK: u64 = u64::MAX >> 2;

/// A signed number of 62-bit limbs; the top one has the sign, the others are not negative.
pub(crate) type Signed<const L: usize> = [i64; L];

/// An odd modulus of `N` words, in `L` limbs with room for the sign and the factor of two that values grow by.
pub struct Modulus<const N: usize, const L: usize> {
    limbs: Signed<L>,
    /// Inverse of the modulus, modulo 2^62.
    inverse: u64,
}

/// `2^62 (f, g)` after 62 steps is this matrix times (f, g).
pub(crate) struct Matrix {
    pub(crate) u: i64,
    pub(crate) v: i64,
    pub(crate) q: i64,
    pub(crate) r: i64,
}

/// Inverse of an odd number, modulo 2^62.
pub(crate) const fn inverse_of_word(word: u64) -> u64 {
    let (mut inverse, mut step) = (1u64, 0);
    // Newton's iteration doubles the correct bits: 1, 2, 4, … 64.
    while step < 6 {
        inverse = inverse.wrapping_mul(2u64.wrapping_sub(word.wrapping_mul(inverse)));
        step += 1;
    }
    inverse & MASK
}

impl<const N: usize, const L: usize> Modulus<N, L> {
    /// From words, least significant first.
    pub const fn new(words: &[u64; N]) -> Self {
        Self { limbs: split(words), inverse: inverse_of_word(words[0]) }
    }

    /// The inverse of a number below the modulus and coprime to it; zero for zero.
    #[inline]
    pub fn inverse(&self, number: &[u64; N]) -> [u64; N] {
        debug_assert!(62 * L >= 64 * N + 2, "{L} limbs for {N} words");
        let (mut f, mut g) = (self.limbs, split(number));
        let (mut d, mut e) = ([0; L], [0; L]);
        e[0] = 1;
        let mut eta = -1;
        // Invariants: d x = f and e x = g modulo the modulus, up to powers of two removed by the matrices.
        while g != [0; L] {
            let matrix = steps(&mut eta, f[0] as u64, g[0] as u64);
            self.apply_modulo(&mut d, &mut e, &matrix);
            apply(&mut f, &mut g, &matrix);
        }
        // f is 1 or -1.
        join(&self.normalized(d, f[L - 1] < 0))
    }

    /// `(d, e) = matrix (d, e) / 2^62` modulo the modulus; both stay above minus twice the modulus and below it.
    #[inline]
    fn apply_modulo(&self, d: &mut Signed<L>, e: &mut Signed<L>, m: &Matrix) {
        let Self { limbs, inverse } = self;
        let (sign_d, sign_e) = (d[L - 1] >> 63, e[L - 1] >> 63);
        let mut multiple_d = (m.u & sign_d) + (m.v & sign_e);
        let mut multiple_e = (m.q & sign_d) + (m.r & sign_e);
        let mut carry_d = product(m.u, d[0]) + product(m.v, e[0]);
        let mut carry_e = product(m.q, d[0]) + product(m.r, e[0]);
        // The multiples of the modulus that clear the low 62 bits.
        let clear = |carry: i128, multiple: i64| {
            (inverse.wrapping_mul(carry as u64).wrapping_add(multiple as u64) & MASK) as i64
        };
        multiple_d -= clear(carry_d, multiple_d);
        multiple_e -= clear(carry_e, multiple_e);
        carry_d += product(limbs[0], multiple_d);
        carry_e += product(limbs[0], multiple_e);
        (carry_d, carry_e) = (carry_d >> 62, carry_e >> 62);
        for i in 1..L {
            carry_d += product(m.u, d[i]) + product(m.v, e[i]) + product(limbs[i], multiple_d);
            carry_e += product(m.q, d[i]) + product(m.r, e[i]) + product(limbs[i], multiple_e);
            d[i - 1] = (carry_d as u64 & MASK) as i64;
            e[i - 1] = (carry_e as u64 & MASK) as i64;
            (carry_d, carry_e) = (carry_d >> 62, carry_e >> 62);
        }
        (d[L - 1], e[L - 1]) = (carry_d as i64, carry_e as i64);
    }

    /// `d` or `-d`, for d above minus twice the modulus and below it, as the residue below the modulus.
    #[inline]
    fn normalized(&self, mut d: Signed<L>, is_negated: bool) -> Signed<L> {
        let add_modulus_if_negative = |d: &mut Signed<L>| {
            if d[L - 1] < 0 {
                for (limb, modulus) in d.iter_mut().zip(&self.limbs) {
                    *limb += modulus;
                }
                carry(d);
            }
        };
        add_modulus_if_negative(&mut d);
        if is_negated {
            d = d.map(|limb| -limb);
            carry(&mut d);
        }
        add_modulus_if_negative(&mut d);
        d
    }
}

/// Reduces all limbs but the top one to 62 bits.
#[inline(always)]
pub(crate) fn carry<const L: usize>(x: &mut Signed<L>) {
    for i in 0..L - 1 {
        x[i + 1] += x[i] >> 62;
        x[i] &= MASK as i64;
    }
}

pub(crate) const fn split<const N: usize, const L: usize>(words: &[u64; N]) -> Signed<L> {
    let (mut limbs, mut i) = ([0; L], 0);
    while i < L {
        let (word, shift) = (62 * i / 64, 62 * i % 64);
        let mut limb = if word < N { words[word] >> shift } else { 0 };
        if shift > 2 && word + 1 < N {
            limb |= words[word + 1] << (64 - shift);
        }
        limbs[i] = (limb & MASK) as i64;
        i += 1;
    }
    limbs
}

#[inline]
pub(crate) fn join<const N: usize, const L: usize>(limbs: &Signed<L>) -> [u64; N] {
    let mut words = [0; N];
    for (i, limb) in limbs.iter().enumerate() {
        let (word, shift) = (62 * i / 64, 62 * i % 64);
        if word < N {
            words[word] |= (*limb as u64) << shift;
        }
        if shift > 2 && word + 1 < N {
            words[word + 1] |= *limb as u64 >> (64 - shift);
        }
    }
    words
}

/// 62 division steps on the low bits of f and g.
#[inline]
pub(crate) fn steps(eta: &mut i64, mut f: u64, mut g: u64) -> Matrix {
    let (mut u, mut v, mut q, mut r) = (1u64, 0u64, 0u64, 1u64);
    let mut left = 62;
    loop {
        // The bits above the remaining ones are set, so that no more are counted.
        let zeros = (g | u64::MAX << left).trailing_zeros();
        g >>= zeros;
        u <<= zeros;
        v <<= zeros;
        *eta -= i64::from(zeros);
        left -= zeros;
        if left == 0 {
            break;
        }
        let factor = if *eta < 0 {
            *eta = -*eta;
            (f, g) = (g, f.wrapping_neg());
            (u, q) = (q, u.wrapping_neg());
            (v, r) = (r, v.wrapping_neg());
            // Clears up to six bits of g at once: `f (f^2 - 2)` is -1 / f modulo 64.
            f.wrapping_mul(g).wrapping_mul(f.wrapping_mul(f).wrapping_sub(2))
                & cancelled(*eta, left, 63)
        } else {
            // Up to four: `f + ((f + 1) & 4) 2` is 1 / f modulo 16.
            let inverse = f.wrapping_add((f.wrapping_add(1) & 4) << 1);
            inverse.wrapping_neg().wrapping_mul(g) & cancelled(*eta, left, 15)
        };
        g = g.wrapping_add(f.wrapping_mul(factor));
        q = q.wrapping_add(u.wrapping_mul(factor));
        r = r.wrapping_add(v.wrapping_mul(factor));
    }
    Matrix { u: u as i64, v: v as i64, q: q as i64, r: r as i64 }
}

/// Mask of the bits of g that may be cleared before f and g are swapped again.
#[inline]
fn cancelled(eta: i64, left: u32, most: u64) -> u64 {
    let count = (eta + 1).min(i64::from(left)) as u32;
    u64::MAX >> (64 - count) & most
}

#[inline(always)]
pub(crate) fn product(a: i64, b: i64) -> i128 {
    i128::from(a) * i128::from(b)
}

/// `(f, g) = matrix (f, g) / 2^62`, which is exact.
#[inline(always)]
pub(crate) fn apply(f: &mut [i64], g: &mut [i64], m: &Matrix) {
    let length = f.len();
    let mut carry_f = product(m.u, f[0]) + product(m.v, g[0]);
    let mut carry_g = product(m.q, f[0]) + product(m.r, g[0]);
    (carry_f, carry_g) = (carry_f >> 62, carry_g >> 62);
    for i in 1..length {
        carry_f += product(m.u, f[i]) + product(m.v, g[i]);
        carry_g += product(m.q, f[i]) + product(m.r, g[i]);
        f[i - 1] = (carry_f as u64 & MASK) as i64;
        g[i - 1] = (carry_g as u64 & MASK) as i64;
        (carry_f, carry_g) = (carry_f >> 62, carry_g >> 62);
    }
    (f[length - 1], g[length - 1]) = (carry_f as i64, carry_g as i64);
}
