//! Arithmetic of single elements, in 64-bit words: what there is for this CPU, if there is anything.

#[cfg(target_arch = "x86_64")]
mod carries;
#[cfg(target_arch = "x86_64")]
mod mulx;

/// A prime in memory: its limbs, after them `-1 / p mod 2^64`, then zeros.
pub(super) type Prime = [u64; 8];

/// The sum of numbers below the prime, modulo the prime.
#[inline(always)]
pub(super) fn plus<const N: usize>(
    a: &[u64; N],
    b: &[u64; N],
    prime: &'static Prime,
) -> Option<[u64; N]> {
    #[cfg(target_arch = "x86_64")]
    match N {
        4 => return widened(carries::plus_4(a.first_chunk()?, b.first_chunk()?, prime)),
        6 => return widened(carries::plus_6(a.first_chunk()?, b.first_chunk()?, prime)),
        _ => {}
    }
    None
}

/// The difference of numbers below the prime, modulo the prime.
#[inline(always)]
pub(super) fn minus<const N: usize>(
    a: &[u64; N],
    b: &[u64; N],
    prime: &'static Prime,
) -> Option<[u64; N]> {
    #[cfg(target_arch = "x86_64")]
    match N {
        4 => return widened(carries::minus_4(a.first_chunk()?, b.first_chunk()?, prime)),
        6 => return widened(carries::minus_6(a.first_chunk()?, b.first_chunk()?, prime)),
        _ => {}
    }
    None
}

/// The Montgomery product of numbers below the prime.
#[inline(always)]
pub(super) fn product<const N: usize>(
    a: &[u64; N],
    b: &[u64; N],
    prime: &'static Prime,
) -> Option<[u64; N]> {
    #[cfg(target_arch = "x86_64")]
    if mulx::is_available() {
        match N {
            4 => return widened(mulx::product_4(a.first_chunk()?, b.first_chunk()?, prime)),
            6 => return widened(mulx::product_6(a.first_chunk()?, b.first_chunk()?, prime)),
            _ => {}
        }
    }
    None
}

/// `a0 b0 + a1 b1`, reduced once. The prime must leave room for it (`Fe::sum_of_products`).
#[inline(always)]
pub(super) fn two_products<const N: usize>(
    a: &[[u64; N]; 2],
    b: &[[u64; N]; 2],
    prime: &'static Prime,
) -> Option<[u64; N]> {
    #[cfg(target_arch = "x86_64")]
    if mulx::is_available() {
        match N {
            4 => return widened(mulx::two_products_4(narrowed(a)?, narrowed(b)?, prime)),
            6 => return widened(mulx::two_products_6(narrowed(a)?, narrowed(b)?, prime)),
            _ => {}
        }
    }
    None
}

/// `a0 b1 + a1 b0`, reduced once.
#[inline(always)]
pub(super) fn crossed_products<const N: usize>(
    a: &[[u64; N]; 2],
    b: &[[u64; N]; 2],
    prime: &'static Prime,
) -> Option<[u64; N]> {
    #[cfg(target_arch = "x86_64")]
    if mulx::is_available() {
        match N {
            4 => {
                return widened(mulx::crossed_products_4(narrowed(a)?, narrowed(b)?, prime));
            }
            6 => {
                return widened(mulx::crossed_products_6(narrowed(a)?, narrowed(b)?, prime));
            }
            _ => {}
        }
    }
    None
}

/// Both numbers, where they have `L` limbs.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn narrowed<const N: usize, const L: usize>(pair: &[[u64; N]; 2]) -> Option<&[[u64; L]; 2]> {
    pair.as_flattened().as_chunks().0.first_chunk()
}

#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn widened<const N: usize, const L: usize>(limbs: [u64; L]) -> Option<[u64; N]> {
    limbs.first_chunk().copied()
}
