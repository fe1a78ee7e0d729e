//! Inverses modulo odd numbers by Bernstein and Yang's division steps (2019), variable time: 62 steps on the lowest words yield a
//! matrix, which is then applied to the whole numbers. Steps are counted as in libsecp256k1's `modinv64`
//! (`doc/safegcd_implementation.md`).

/// Bits of a limb.
const BITS: u32 = 62;
const LIMBS: usize = 5;
const MASK: u64 = u64::MAX >> (64 - BITS);

/// A signed number; all limbs but the top one are from 0 to 2^62 - 1.
type Signed = [i64; LIMBS];

/// An odd modulus below 2^256.
pub(super) struct Modulus {
    limbs: Signed,
    /// Inverse of the modulus, modulo 2^62.
    inverse: u64,
}

/// `2^62 (f, g)` after 62 steps is this matrix times (f, g).
struct Matrix {
    u: i64,
    v: i64,
    q: i64,
    r: i64,
}

impl Modulus {
    pub(super) const fn new(words: [u64; 4]) -> Self {
        let mut inverse = 1u64;
        let mut step = 0;
        // Newton's iteration doubles the correct bits: 1, 2, 4, … 64.
        while step < 6 {
            inverse = inverse.wrapping_mul(2u64.wrapping_sub(words[0].wrapping_mul(inverse)));
            step += 1;
        }
        Self { limbs: to_limbs(words), inverse: inverse & MASK }
    }

    /// The inverse of a number below the modulus and coprime to it; zero for zero.
    pub(super) fn inverse(&self, number: &[u64; 4]) -> [u64; 4] {
        let (mut d, mut e) = ([0; LIMBS], [0; LIMBS]);
        e[0] = 1;
        let (mut f, mut g) = (self.limbs, to_limbs(*number));
        let mut eta = -1;
        // d = f / number and e = g / number modulo the modulus, up to powers of two removed by the matrices.
        while g != [0; LIMBS] {
            let matrix = steps(&mut eta, f[0] as u64, g[0] as u64);
            self.update_quotients(&mut d, &mut e, &matrix);
            update_numbers(&mut f, &mut g, &matrix);
        }
        self.normalized(d, f[LIMBS - 1] < 0)
    }

    /// d and e stay above minus twice the modulus and below the modulus.
    fn update_quotients(&self, d: &mut Signed, e: &mut Signed, matrix: &Matrix) {
        let Matrix { u, v, q, r } = *matrix;
        let (sign_d, sign_e) = (d[LIMBS - 1] >> 63, e[LIMBS - 1] >> 63);
        // Multiple of the modulus to add: one for each negative number, and enough to clear the low 62 bits.
        let multiple = |x: i64, y: i64, low: i128| -> i64 {
            let by_sign = (x & sign_d) + (y & sign_e);
            let to_zero = self.inverse.wrapping_mul(low as u64).wrapping_add(by_sign as u64) & MASK;
            by_sign - to_zero as i64
        };
        let product = |x: i64, y: i64, k: usize| {
            i128::from(x) * i128::from(d[k]) + i128::from(y) * i128::from(e[k])
        };
        let (low_d, low_e) = (product(u, v, 0), product(q, r, 0));
        let (of_d, of_e) = (multiple(u, v, low_d), multiple(q, r, low_e));
        let with = |sum: i128, multiple: i64, k: usize| {
            sum + i128::from(self.limbs[k]) * i128::from(multiple)
        };
        let (mut next_d, mut next_e) = ([0; LIMBS], [0; LIMBS]);
        let (mut carry_d, mut carry_e) =
            (with(low_d, of_d, 0) >> BITS, with(low_e, of_e, 0) >> BITS);
        for k in 1..LIMBS {
            carry_d += with(product(u, v, k), of_d, k);
            carry_e += with(product(q, r, k), of_e, k);
            (next_d[k - 1], next_e[k - 1]) =
                ((carry_d as u64 & MASK) as i64, (carry_e as u64 & MASK) as i64);
            carry_d >>= BITS;
            carry_e >>= BITS;
        }
        (next_d[LIMBS - 1], next_e[LIMBS - 1]) = (carry_d as i64, carry_e as i64);
        (*d, *e) = (next_d, next_e);
    }

    /// Reduces a number above minus twice the modulus and below it, or its negation, to the residue below the modulus.
    fn normalized(&self, mut number: Signed, is_negated: bool) -> [u64; 4] {
        if number[LIMBS - 1] < 0 {
            number = carried(core::array::from_fn(|k| number[k] + self.limbs[k]));
        }
        if is_negated {
            number = carried(number.map(|limb| -limb));
        }
        if number[LIMBS - 1] < 0 {
            number = carried(core::array::from_fn(|k| number[k] + self.limbs[k]));
        }
        let [a, b, c, d, e] = number.map(|limb| limb as u64);
        [a | b << 62, b >> 2 | c << 60, c >> 4 | d << 58, d >> 6 | e << 56]
    }
}

const fn to_limbs([a, b, c, d]: [u64; 4]) -> Signed {
    let limbs = [a, a >> 62 | b << 2, b >> 60 | c << 4, c >> 58 | d << 6, d >> 56];
    let [a, b, c, d, e] = limbs;
    [(a & MASK) as i64, (b & MASK) as i64, (c & MASK) as i64, (d & MASK) as i64, e as i64]
}

fn carried(limbs: Signed) -> Signed {
    let mut result = limbs;
    for k in 0..LIMBS - 1 {
        result[k + 1] += result[k] >> BITS;
        result[k] &= MASK as i64;
    }
    result
}

/// 62 division steps on the lowest words of f and g.
fn steps(eta: &mut i64, mut f: u64, mut g: u64) -> Matrix {
    let (mut u, mut v, mut q, mut r) = (1u64, 0u64, 0u64, 1u64);
    let mut left = BITS;
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
        let factor;
        if *eta < 0 {
            *eta = -*eta;
            (f, g) = (g, f.wrapping_neg());
            (u, q) = (q, u.wrapping_neg());
            (v, r) = (r, v.wrapping_neg());
            // Clears up to six bits of g at once: `f (f^2 - 2)` is -1 / f modulo 64.
            factor = f.wrapping_mul(g).wrapping_mul(f.wrapping_mul(f).wrapping_sub(2))
                & cancelled(*eta, left, 63);
        } else {
            // Up to four: `f + ((f + 1) & 4) 2` is 1 / f modulo 16.
            let inverse = f.wrapping_add((f.wrapping_add(1) & 4) << 1);
            factor = inverse.wrapping_neg().wrapping_mul(g) & cancelled(*eta, left, 15);
        }
        g = g.wrapping_add(f.wrapping_mul(factor));
        q = q.wrapping_add(u.wrapping_mul(factor));
        r = r.wrapping_add(v.wrapping_mul(factor));
    }
    Matrix { u: u as i64, v: v as i64, q: q as i64, r: r as i64 }
}

/// Mask of the bits of g that may be cleared before f and g are swapped again.
fn cancelled(eta: i64, left: u32, most: u64) -> u64 {
    let count = (eta + 1).min(i64::from(left)) as u32;
    u64::MAX >> (64 - count) & most
}

fn update_numbers(f: &mut Signed, g: &mut Signed, matrix: &Matrix) {
    let Matrix { u, v, q, r } = *matrix;
    let product = |x: i64, y: i64, k: usize| {
        i128::from(x) * i128::from(f[k]) + i128::from(y) * i128::from(g[k])
    };
    let (mut next_f, mut next_g) = ([0; LIMBS], [0; LIMBS]);
    // The low 62 bits are zero.
    let (mut carry_f, mut carry_g) = (product(u, v, 0) >> BITS, product(q, r, 0) >> BITS);
    for k in 1..LIMBS {
        carry_f += product(u, v, k);
        carry_g += product(q, r, k);
        (next_f[k - 1], next_g[k - 1]) =
            ((carry_f as u64 & MASK) as i64, (carry_g as u64 & MASK) as i64);
        carry_f >>= BITS;
        carry_g >>= BITS;
    }
    (next_f[LIMBS - 1], next_g[LIMBS - 1]) = (carry_f as i64, carry_g as i64);
    (*f, *g) = (next_f, next_g);
}
