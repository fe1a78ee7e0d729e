//! Squareness of field elements.
//!
//! The Jacobi symbol `(a / p)` by the binary algorithm: halving and subtraction, with a sign that follows quadratic reciprocity
//! (Handbook of Applied Cryptography, 2.149, and the rule for factors of two). `p` is prime, so the symbol is 1 exactly for
//! nonzero squares.

type Limbs = [u64; 4];

/// 2^256 - 2^32 - 977, least significant limb first.
const PRIME: Limbs = [0xffff_fffe_ffff_fc2f, u64::MAX, u64::MAX, u64::MAX];

/// True if the big endian number is a nonzero square modulo the field prime.
///
/// The number must be below the prime.
pub(crate) fn is_square(value: &[u8; 32]) -> bool {
    let mut a = [0; 4];
    for (limb, bytes) in a.iter_mut().zip(value.rchunks_exact(8)) {
        let mut word = [0; 8];
        word.copy_from_slice(bytes);
        *limb = u64::from_be_bytes(word);
    }
    debug_assert!(less(&a, &PRIME));
    jacobi(a, PRIME) == 1
}

/// The Jacobi symbol `(a / n)` for odd `n` and `a < n`.
fn jacobi(mut a: Limbs, mut n: Limbs) -> i32 {
    let mut negative = false;
    while a != [0; 4] {
        // (2 / n) is -1 exactly for n = 3 or 5 modulo 8.
        let twos = halve(&mut a);
        negative ^= twos & 1 == 1 && matches!(n[0] & 7, 3 | 5);
        if less(&a, &n) {
            // Reciprocity for odd numbers: the sign changes if both are 3 modulo 4.
            negative ^= a[0] & n[0] & 3 == 3;
            std::mem::swap(&mut a, &mut n);
        }
        subtract(&mut a, &n);
    }
    if n != [1, 0, 0, 0] {
        return 0;
    }
    if negative { -1 } else { 1 }
}

/// Divides out all factors of two and returns their number; `a` must not be zero.
fn halve(a: &mut Limbs) -> u32 {
    let mut total = 0;
    while a[0] == 0 {
        *a = [a[1], a[2], a[3], 0];
        total += 64;
    }
    let shift = a[0].trailing_zeros();
    if shift > 0 {
        let carry = 64 - shift;
        a[0] = a[0] >> shift | a[1] << carry;
        a[1] = a[1] >> shift | a[2] << carry;
        a[2] = a[2] >> shift | a[3] << carry;
        a[3] >>= shift;
    }
    total + shift
}

fn less(a: &Limbs, b: &Limbs) -> bool {
    a.iter().rev().lt(b.iter().rev())
}

/// `a -= b`, for `a >= b`.
fn subtract(a: &mut Limbs, b: &Limbs) {
    let mut borrow = false;
    for (limb, &other) in a.iter_mut().zip(b) {
        let (partial, first) = limb.overflowing_sub(other);
        let (digit, second) = partial.overflowing_sub(u64::from(borrow));
        *limb = digit;
        borrow = first || second;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `a * b` modulo the field prime by shift and add: a slow reference.
    fn multiply(a: &Limbs, b: &Limbs) -> Limbs {
        let mut product = [0; 4];
        for bit in (0..256).rev() {
            product = add(&product, &product);
            if b[bit / 64] >> (bit % 64) & 1 == 1 {
                product = add(&product, a);
            }
        }
        product
    }

    fn add(a: &Limbs, b: &Limbs) -> Limbs {
        let mut sum = [0; 4];
        let mut carry = 0u128;
        for index in 0..4 {
            carry += u128::from(a[index]) + u128::from(b[index]);
            sum[index] = carry as u64;
            carry >>= 64;
        }
        if carry == 1 || !less(&sum, &PRIME) {
            // Subtracting p is adding 2^32 + 977 modulo 2^256.
            let mut carry = u128::from(0x1_0000_03d1u64);
            for limb in &mut sum {
                carry += u128::from(*limb);
                *limb = carry as u64;
                carry >>= 64;
            }
        }
        sum
    }

    fn to_bytes(a: &Limbs) -> [u8; 32] {
        let mut bytes = [0; 32];
        for (chunk, limb) in bytes.rchunks_exact_mut(8).zip(a) {
            chunk.copy_from_slice(&limb.to_be_bytes());
        }
        bytes
    }

    #[test]
    fn squares_are_squares_and_their_negations_are_not() {
        let mut seed = 0x9e37_79b9_7f4a_7c15u64;
        let mut next = || {
            seed ^= seed << 13;
            seed ^= seed >> 7;
            seed ^= seed << 17;
            seed
        };
        for round in 0..300 {
            let mut a = [next(), next(), next(), next() >> 1];
            // Includes short numbers and numbers with many factors of two.
            if round % 3 == 1 {
                a[3] = 0;
                a[2] = 0;
            } else if round % 3 == 2 {
                a[0] = 0;
                a[1] <<= 20;
            }
            let square = multiply(&a, &a);
            assert!(is_square(&to_bytes(&square)));
            // -1 is not a square because p = 3 modulo 4.
            let mut negated = PRIME;
            subtract(&mut negated, &square);
            assert!(!is_square(&to_bytes(&negated)));
        }
    }

    #[test]
    fn small_cases() {
        for (a, n, symbol) in
            [(1, 3, 1), (2, 3, -1), (2, 7, 1), (3, 7, -1), (5, 9, 1), (3, 9, 0), (2, 15, 1)]
        {
            assert_eq!(jacobi([a, 0, 0, 0], [n, 0, 0, 0]), symbol, "({a}/{n})");
        }
        assert!(!is_square(&[0; 32]));
    }

    /// Against the definition for every residue of a few primes.
    #[test]
    fn agrees_with_the_definition_for_small_primes() {
        for p in [3u64, 5, 7, 11, 13, 17, 97, 257] {
            for a in 1..p {
                let is_square = (1..p).any(|x| x * x % p == a);
                let symbol = jacobi([a, 0, 0, 0], [p, 0, 0, 0]);
                assert_eq!(symbol == 1, is_square, "({a}/{p})");
            }
        }
    }
}
