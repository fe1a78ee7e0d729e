//! MuHash of many elements, generic over vectors: one element is derived per 32-bit lane, and one product accumulates per 64-bit
//! lane.
//!
//! Multiplication is commutative, so each lane multiplies its share of the elements, and the lanes are combined at the end. With
//! one number per lane no word moves between lanes, and Karatsuba's method costs additions only. As in [`lanes`](super::lanes)
//! all code is inlined into the kernels. Bounds: `docs/kernels/hashes.md`.

use super::lanes::{LANES_MAX, Words, sixteen};
use super::portable::chacha20::initial_state;
use crate::num3072::{FOLD, LIMBS, Num3072};

/// Maximum number of parallel products.
pub(super) const PRODUCTS_MAX: usize = LANES_MAX / 2;

/// Maximum limbs of a number.
const LIMBS_MAX: usize = 112;

/// A number per 64-bit lane, limb by limb.
pub(super) type Numbers<V> = [V; LIMBS_MAX];

/// The columns of a product per 64-bit lane.
pub(super) type Columns<V> = [V; 2 * LIMBS_MAX];

/// The 64-bit words of one number per lane, followed by a zero.
pub(super) type NumberWords<V> = [V; LIMBS + 1];

/// The same vectors in 64-bit lanes.
pub(super) trait Wide: Words {
    fn and(self, other: Self) -> Self;
    fn splat_64(word: u64) -> Self;
    fn add_64(self, other: Self) -> Self;
    fn sub_64(self, other: Self) -> Self;
    fn shift_left_64(self, bits: u32) -> Self;
    fn shift_right_64(self, bits: u32) -> Self;
    /// The product of the lower halves of each 64-bit lane.
    fn multiply(self, other: Self) -> Self;
    /// Pairs each 32-bit lane with the upper half `high`; the order of lanes is arbitrary.
    fn interleave(self, high: Self) -> [Self; 2];
}

/// Limb format of numbers, and their multiplication modulo p.
///
/// The defaults are for 32-bit multipliers: a sum of eight limbs of 28 bits still fits.
pub(super) trait Limbs {
    type Vector: Wide;

    /// Bits per limb.
    const BITS: u32 = 28;

    /// Limbs of a factor: the minimum for a number that yields [`BASE`](Self::BASE) after repeated halving.
    const LIMBS: usize = 112;

    /// Limbs of the numbers that [`base`](Self::base) multiplies.
    const BASE: usize = 14;

    /// [`karatsuba`] compiled with the vector features, for its recursion.
    fn product(
        a: &[Self::Vector],
        b: &[Self::Vector],
        out: &mut [Self::Vector],
        scratch: &mut [Self::Vector],
    );

    /// Splits words into limbs.
    #[inline(always)]
    fn split(words: &NumberWords<Self::Vector>, out: &mut Numbers<Self::Vector>) {
        split_28(words, out);
    }

    /// The columns of a product of [`BASE`](Self::BASE) limbs.
    #[inline(always)]
    fn base(a: &[Self::Vector], b: &[Self::Vector], out: &mut [Self::Vector]) {
        let (a, b) = (a.first_chunk(), b.first_chunk());
        product_14(a.expect("14 limbs"), b.expect("14 limbs"), out);
    }

    /// Reduces a product modulo p to limbs of a factor.
    #[inline(always)]
    fn reduce(columns: &mut Columns<Self::Vector>, out: &mut Numbers<Self::Vector>) {
        reduce_28(columns, out);
    }
}

/// Generates the entry functions of the kernels for a limb format. They are safe to call if the module's `available` is true.
macro_rules! muhash_entries {
    ($limbs:ty, $features:literal) => {
        /// The products of the elements of `keys`, one per 64-bit lane, in the first entries of `out`. The number of keys must be
        /// a multiple of the 32-bit lanes.
        pub(super) fn products(keys: &[[u8; 32]], out: &mut [Num3072; muhash::PRODUCTS_MAX]) {
            #[target_feature(enable = $features)]
            fn kernel(keys: &[[u8; 32]], out: &mut [Num3072; muhash::PRODUCTS_MAX]) {
                muhash::products::<$limbs>(keys, out);
            }
            // SAFETY: `Backend` selects this module only on CPUs for which `available` is true.
            unsafe { kernel(keys, out) }
        }

        fn product(
            a: &[<$limbs as Limbs>::Vector],
            b: &[<$limbs as Limbs>::Vector],
            out: &mut [<$limbs as Limbs>::Vector],
            scratch: &mut [<$limbs as Limbs>::Vector],
        ) {
            #[target_feature(enable = $features)]
            fn kernel(
                a: &[<$limbs as Limbs>::Vector],
                b: &[<$limbs as Limbs>::Vector],
                out: &mut [<$limbs as Limbs>::Vector],
                scratch: &mut [<$limbs as Limbs>::Vector],
            ) {
                muhash::karatsuba::<$limbs>(a, b, out, scratch);
            }
            // SAFETY: only kernels of this module, which run on CPUs for which `available` is true, have vectors.
            unsafe { kernel(a, b, out, scratch) }
        }
    };
}
pub(super) use muhash_entries;

/// The products of the elements of `keys`, whose number must be a multiple of the 32-bit lanes.
#[inline(always)]
pub(super) fn products<L: Limbs>(keys: &[[u8; 32]], out: &mut [Num3072; PRODUCTS_MAX]) {
    let zero = L::Vector::splat(0);
    let mut product = [zero; LIMBS_MAX];
    product[0] = L::Vector::splat_64(1);
    // Results are written in place: numbers are up to 7 KiB long, and copies are expensive.
    let mut elements = [[zero; LIMBS_MAX]; 2];
    let mut columns = [zero; 2 * LIMBS_MAX];
    let mut scratch = [zero; 2 * LIMBS_MAX];
    for (group, keys) in keys.chunks_exact(L::Vector::LANES).enumerate() {
        derive::<L>(keys, &mut elements);
        let mut factors = &elements[..];
        if group == 0 {
            product = elements[0];
            factors = &elements[1..];
        }
        for element in factors {
            let columns_used = &mut columns[..2 * L::LIMBS];
            L::product(&product[..L::LIMBS], &element[..L::LIMBS], columns_used, &mut scratch);
            L::reduce(&mut columns, &mut product);
        }
    }
    let mut limbs = [[0; LANES_MAX]; LIMBS_MAX];
    for (lanes, limb) in limbs.iter_mut().zip(product) {
        *lanes = limb.lanes();
    }
    for (lane, out) in out.iter_mut().take(L::Vector::LANES / 2).enumerate() {
        *out = number::<L>(&limbs, lane);
    }
}

/// The number in a 64-bit lane, given the 32-bit lanes of all limbs.
fn number<L: Limbs>(limbs: &[[u32; LANES_MAX]; LIMBS_MAX], lane: usize) -> Num3072 {
    let limb = |lanes: &[u32; LANES_MAX]| {
        let halves = &lanes.as_chunks::<2>().0[lane];
        u64::from(halves[0]) | u64::from(halves[1]) << 32
    };
    Num3072::from_limbs(L::BITS, limbs[..L::LIMBS].iter().map(limb))
}

/// The elements of the keys, one per 32-bit lane: their `ChaCha20` key streams.
#[inline(always)]
fn derive<L: Limbs>(keys: &[[u8; 32]], elements: &mut [Numbers<L::Vector>; 2]) {
    let mut rows = [&keys[0]; LANES_MAX];
    for (row, key) in rows.iter_mut().zip(keys) {
        *row = key;
    }
    let key = L::Vector::load(&rows, 0);
    let mut words = [[L::Vector::splat(0); LIMBS + 1]; 2];
    for counter in 0..LIMBS / 8 {
        let block = chacha_block(&key, counter as u32);
        for (i, [low, high]) in block.as_chunks().0.iter().enumerate() {
            let [first, second] = low.interleave(*high);
            words[0][8 * counter + i] = first;
            words[1][8 * counter + i] = second;
        }
    }
    for (words, element) in words.iter().zip(elements) {
        L::split(words, element);
    }
}

/// A block of the key stream with nonce zero (RFC 8439) in each lane.
#[inline(always)]
fn chacha_block<W: Words>(key: &[W; 8], counter: u32) -> [W; 16] {
    let mut start = [W::splat(0); 16];
    for (word, constant) in start.iter_mut().zip(initial_state(&[0; 32])) {
        *word = W::splat(constant);
    }
    start[4..12].copy_from_slice(key);
    start[12] = W::splat(counter);
    let mut x = start;
    for _ in 0..10 {
        quarter::<W, 0, 4, 8, 12>(&mut x);
        quarter::<W, 1, 5, 9, 13>(&mut x);
        quarter::<W, 2, 6, 10, 14>(&mut x);
        quarter::<W, 3, 7, 11, 15>(&mut x);
        quarter::<W, 0, 5, 10, 15>(&mut x);
        quarter::<W, 1, 6, 11, 12>(&mut x);
        quarter::<W, 2, 7, 8, 13>(&mut x);
        quarter::<W, 3, 4, 9, 14>(&mut x);
    }
    for (word, start) in x.iter_mut().zip(start) {
        *word = word.add(start);
    }
    x
}

#[inline(always)]
fn quarter<W: Words, const A: usize, const B: usize, const C: usize, const D: usize>(
    x: &mut [W; 16],
) {
    x[A] = x[A].add(x[B]);
    x[D] = x[D].xor(x[A]).rotate_left(16);
    x[C] = x[C].add(x[D]);
    x[B] = x[B].xor(x[C]).rotate_left(12);
    x[A] = x[A].add(x[B]);
    x[D] = x[D].xor(x[A]).rotate_left(8);
    x[C] = x[C].add(x[D]);
    x[B] = x[B].xor(x[C]).rotate_left(7);
}

/// The columns of a product from three of half the length (Karatsuba): the middle part is
/// `(a0 + a1) (b0 + b1) - a0 b0 - a1 b1`. `out` is twice as long as the factors, `scratch` longer.
#[inline(always)]
pub(super) fn karatsuba<L: Limbs>(
    a: &[L::Vector],
    b: &[L::Vector],
    out: &mut [L::Vector],
    scratch: &mut [L::Vector],
) {
    if a.len() == L::BASE {
        return L::base(a, b, out);
    }
    let half = a.len() / 2;
    let ((a0, a1), (b0, b1)) = (a.split_at(half), b.split_at(half));
    let (low, high) = out.split_at_mut(2 * half);
    let (cross, scratch) = scratch.split_at_mut(2 * half);
    // The sums are stored temporarily in the place of a result.
    let (a_sum, b_sum) = low.split_at_mut(half);
    add(a0, a1, a_sum);
    add(b0, b1, b_sum);
    L::product(a_sum, b_sum, cross, scratch);
    L::product(a0, b0, low, scratch);
    L::product(a1, b1, high, scratch);

    let ((low0, low1), (high0, high1)) = (low.split_at_mut(half), high.split_at_mut(half));
    let (cross0, cross1) = cross.split_at(half);
    let middle = low0.iter().zip(low1).zip(cross0);
    for (((low0, low1), cross0), ((high0, high1), cross1)) in
        middle.zip(high0.iter_mut().zip(high1).zip(cross1))
    {
        let inner = low1.sub_64(*high0);
        *low1 = cross0.sub_64(*low0).add_64(inner);
        *high0 = cross1.sub_64(*high1).sub_64(inner);
    }
}

#[inline(always)]
fn add<V: Wide>(a: &[V], b: &[V], out: &mut [V]) {
    for ((out, a), b) in out.iter_mut().zip(a).zip(b) {
        *out = a.add_64(*b);
    }
}

/// The low 28 bits.
const MASK_28: u64 = (1 << 28) - 1;

/// Limbs of 28 bits for a number: 3080 bits. The two further limbs of a factor are zero.
const LIMBS_28: usize = 110;

/// 2^3080 modulo p.
const FOLD_28: u64 = FOLD << (28 * LIMBS_28 - 64 * LIMBS);

/// Splits words into limbs: seven words are sixteen limbs.
#[inline(always)]
fn split_28<V: Wide>(words: &NumberWords<V>, out: &mut Numbers<V>) {
    let mask = V::splat_64(MASK_28);
    for (limbs, words) in out.as_chunks_mut::<16>().0.iter_mut().zip(words.as_chunks::<7>().0) {
        sixteen!(I => {
            const WORD: usize = 28 * I / 64;
            const BIT: u32 = 28 * I as u32 % 64;
            let mut limb = words[WORD].shift_right_64(BIT);
            if BIT + 28 > 64 {
                limb = limb.xor(words[(WORD + 1) % 7].shift_left_64(64 - BIT));
            }
            limbs[I] = limb.and(mask);
        });
    }
}

/// Reduces a product of factors with limbs below 2^28 + 2^9 to such limbs.
#[inline(always)]
fn reduce_28<V: Wide>(columns: &Columns<V>, out: &mut Numbers<V>) {
    let (mask, factor) = (V::splat_64(MASK_28), V::splat_64(FOLD_28));
    let zero = V::splat(0);
    let (low, high) = columns.split_at(LIMBS_28);
    // Two passes of independent carries over the upper half reduce it for the multiplier; two more over the sums yield limbs.
    let (mut high_carry, mut carry) = ([zero; 2], [zero; 2]);
    for ((out, low), high) in out[..LIMBS_28].iter_mut().zip(low).zip(high) {
        let high = pass(pass(*high, &mut high_carry[0]), &mut high_carry[1]);
        let sum = low.add_64(high.multiply(factor));
        *out = pass(pass(sum, &mut carry[0]), &mut carry[1]);
    }
    // Overflow of the top: the last high limb is tiny, the sum has up to 35 bits.
    let top = carry[0].add_64(carry[1]).add_64(high_carry[1].multiply(factor));
    let mut rest = zero;
    for (out, top) in out.iter_mut().zip([top.and(mask), top.shift_right_64(28), zero]) {
        let sum = out.add_64(top.multiply(factor)).add_64(rest);
        *out = sum.and(mask);
        rest = sum.shift_right_64(28);
    }
    out[3] = out[3].add_64(rest);
}

/// Keeps 28 bits of a column and adds the excess of the previous one.
#[inline(always)]
fn pass<V: Wide>(column: V, carry: &mut V) -> V {
    let limb = column.and(V::splat_64(MASK_28)).add_64(*carry);
    *carry = column.shift_right_64(28);
    limb
}

/// Repeats a statement with a constant index from 0 to 6, so that arrays live in registers.
macro_rules! seven {
    ($index:ident => $body:expr) => {
        seven!($index => $body; 0 1 2 3 4 5 6)
    };
    ($index:ident => $body:expr; $($literal:literal)*) => {$({
        const $index: usize = $literal;
        $body;
    })*};
}

/// The columns of a product, seven at a time: four products of seven limbs, each in two parts.
#[inline(always)]
fn product_14<V: Wide>(a: &[V; 14], b: &[V; 14], out: &mut [V]) {
    let ([a0, a1], [b0, b1]) = (halves(a), halves(b));
    let (out, _) = out.as_chunks_mut::<7>();
    let zero = [V::splat(0); 7];
    out[0] = low(&zero, a0, b0);
    out[1] = low(&low(&high(&zero, a0, b0), a0, b1), a1, b0);
    out[2] = low(&high(&high(&zero, a0, b1), a1, b0), a1, b1);
    out[3] = high(&zero, a1, b1);
}

#[inline(always)]
fn halves<V>(limbs: &[V; 14]) -> [&[V; 7]; 2] {
    let (halves, _) = limbs.as_chunks();
    [&halves[0], &halves[1]]
}

/// Adds the columns 0 to 6 of a product of seven limbs.
#[inline(always)]
fn low<V: Wide>(sums: &[V; 7], a: &[V; 7], b: &[V; 7]) -> [V; 7] {
    let mut sums = *sums;
    seven!(I => seven!(C => if I < C + 1 {
        sums[C] = sums[C].add_64(a[I].multiply(b[(7 + C - I) % 7]));
    }));
    sums
}

/// Adds the columns 7 to 13.
#[inline(always)]
fn high<V: Wide>(sums: &[V; 7], a: &[V; 7], b: &[V; 7]) -> [V; 7] {
    let mut sums = *sums;
    seven!(I => seven!(C => if I + 1 > C + 1 {
        sums[C] = sums[C].add_64(a[I].multiply(b[(7 + C - I) % 7]));
    }));
    sums
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::{Backend, avx2, avx512, ifma_many};

    /// The product of two numbers in limbs, and its largest limb.
    fn multiply<L: Limbs>(a: &[u64], b: &[u64]) -> (Num3072, u64) {
        let zero = L::Vector::splat(0);
        let [mut x, mut y] = [[zero; LIMBS_MAX]; 2];
        for i in 0..L::LIMBS {
            (x[i], y[i]) = (L::Vector::splat_64(a[i]), L::Vector::splat_64(b[i]));
        }
        let (mut columns, mut scratch) = ([zero; 2 * LIMBS_MAX], [zero; 2 * LIMBS_MAX]);
        L::product(&x[..L::LIMBS], &y[..L::LIMBS], &mut columns[..2 * L::LIMBS], &mut scratch);
        L::reduce(&mut columns, &mut x);
        let limbs = x.map(Words::lanes);
        let products: Vec<Num3072> =
            (0..L::Vector::LANES / 2).map(|lane| number::<L>(&limbs, lane)).collect();
        assert!(products.iter().all(|product| *product == products[0]));
        let limb = |lanes: &[u32; LANES_MAX]| u64::from(lanes[0]) | u64::from(lanes[1]) << 32;
        (products[0].clone(), limbs.iter().map(limb).max().expect("limbs"))
    }

    /// Limbs at the ends of their range, which random elements never have: the `used` lowest, each below 2^BITS + 2^`slack`.
    fn extreme_limbs<L: Limbs>(used: usize, slack: u32) {
        let full = (1 << L::BITS) - 1;
        let most = full + (1 << slack);
        let limbs = |limb: &dyn Fn(usize) -> u64| -> Vec<u64> {
            (0..L::LIMBS).map(|i| if i < used { limb(i) } else { 0 }).collect()
        };
        let mut cases: Vec<Vec<u64>> =
            [0, 1, full, most].iter().map(|&value| limbs(&|_| value)).collect();
        for odd in 0..2 {
            cases.push(limbs(&|i| if i % 2 == odd { most } else { 0 }));
            cases.push(limbs(&|i| if i / L::BASE % 2 == odd { most } else { 0 }));
            cases.push(limbs(&|i| if i / (L::LIMBS / 2) == odd { most } else { 1 }));
        }
        for place in [0, 1, L::BASE - 1, L::BASE, used / 2, used - 2, used - 1] {
            cases.push(limbs(&|i| if i == place { most } else { 0 }));
            cases.push(limbs(&|i| if i == place { 0 } else { full }));
        }
        let mut seed = 1u64;
        for _ in 0..40 {
            cases.push(
                (0..L::LIMBS)
                    .map(|i| {
                        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                        let random = seed >> 24 & full;
                        let limb = [0, 1, full - 1, full, most, random][(seed >> 33) as usize % 6];
                        if i < used { limb } else { 0 }
                    })
                    .collect(),
            );
        }
        for a in &cases {
            for b in &cases {
                let [x, y] = [a, b].map(|n| Num3072::from_limbs(L::BITS, n.iter().copied()));
                let expected = Backend::PORTABLE.mul(&x, &y).normalised();
                let (product, largest) = multiply::<L>(a, b);
                assert_eq!(product.normalised(), expected, "{a:?}\n{b:?}");
                assert!(largest <= most, "{a:?}\n{b:?}");
            }
        }
    }

    #[test]
    fn extreme_limbs_of_28_bits_in_avx2() {
        if avx2::available() {
            extreme_limbs::<avx2::Lanes28>(LIMBS_28, 9);
        } else {
            println!("skipped: this CPU has no AVX2");
        }
    }

    #[test]
    fn extreme_limbs_of_28_bits_in_avx512() {
        if avx512::available() {
            extreme_limbs::<avx512::Lanes28>(LIMBS_28, 9);
        } else {
            println!("skipped: this CPU has no AVX-512");
        }
    }

    #[test]
    fn extreme_limbs_of_48_bits() {
        if avx512::available() && super::super::ifma::available() {
            extreme_limbs::<ifma_many::Lanes48>(64, 43);
        } else {
            println!("skipped: this CPU has no AVX-512 IFMA");
        }
    }
}
