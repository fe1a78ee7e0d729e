//! Arithmetic of single elements in 64-bit words: dispatch to the kernels of this CPU.

#![expect(unsafe_code, reason = "numbers in memory that kernels read and write")]

#[cfg(target_arch = "x86_64")]
mod carries;
#[cfg(target_arch = "x86_64")]
mod mulx;
#[cfg(target_arch = "x86_64")]
mod shifted;
#[cfg(target_arch = "x86_64")]
mod wide;

use crate::limbs;

/// A prime in memory: its limbs, after them `-1 / p mod 2^128`, then zeros; or a multiple of it, without the inverse.
pub(crate) type Prime = [u64; 8];

/// Memory form of a number.
pub(super) const fn in_memory<const N: usize>(number: &[u64; N]) -> Prime {
    let (mut words, mut i) = ([0; 8], 0);
    while i < N {
        words[i] = number[i];
        i += 1;
    }
    words
}

/// Memory form of a prime, with its inverse.
pub(super) const fn with_inverse<const N: usize>(prime: &[u64; N]) -> Prime {
    let mut words = in_memory(prime);
    let inverse = limbs::negated_inverse_128(prime[0] as u128 | (prime[1] as u128) << 64);
    (words[N], words[N + 1]) = (inverse as u64, (inverse >> 64) as u64);
    words
}

/// A copy, limb by limb. If one branch has its result in registers and another, from a function, in
/// memory, LLVM would otherwise keep both in memory.
#[inline(always)]
pub(super) fn apart<const N: usize>(limbs: &[u64; N]) -> [u64; N] {
    let mut copy = [0; N];
    if let [a0, a1, a2, a3, a4, a5] = limbs[..]
        && let Some(copy) = copy.first_chunk_mut()
    {
        *copy = [a0, a1, a2, a3, a4, a5];
    } else if let [a0, a1, a2, a3] = limbs[..]
        && let Some(copy) = copy.first_chunk_mut()
    {
        *copy = [a0, a1, a2, a3];
    } else {
        copy = *limbs;
    }
    copy
}

/// Returns the result of a kernel of four or six limbs for operands of N limbs.
#[cfg(target_arch = "x86_64")]
macro_rules! by_limbs {
    ($n:ident: $four:path, $six:path; $($operand:ident),+; $prime:ident) => {
        match $n {
            4 => return widened($four($($operand.first_chunk()?,)+ $prime)),
            6 => return widened($six($($operand.first_chunk()?,)+ $prime)),
            _ => {}
        }
    };
}

/// The sum of numbers below the prime, modulo the prime.
#[inline(always)]
pub(super) fn plus<const N: usize>(
    a: &[u64; N],
    b: &[u64; N],
    prime: &'static Prime,
) -> Option<[u64; N]> {
    #[cfg(target_arch = "x86_64")]
    by_limbs!(N: carries::four::plus, carries::six::plus; a, b; prime);
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
    by_limbs!(N: carries::four::minus, carries::six::minus; a, b; prime);
    None
}

/// Half of a number below the prime, which has a spare bit, modulo the prime.
#[inline(always)]
pub(super) fn half<const N: usize>(a: &[u64; N], prime: &'static Prime) -> Option<[u64; N]> {
    #[cfg(target_arch = "x86_64")]
    by_limbs!(N: carries::four::half, carries::six::half; a; prime);
    None
}

/// Adds numbers whose sum is below 2^(64 N).
#[inline(always)]
pub(super) fn add_short<const N: usize>(a: &mut [u64; N], b: &[u64; N]) {
    #[cfg(target_arch = "x86_64")]
    if let (Some(a), Some(b)) = (exactly::<N, 6>(a), b.first_chunk()) {
        return carries::six::add(a, b);
    }
    #[cfg(target_arch = "x86_64")]
    if let (Some(a), Some(b)) = (exactly::<N, 4>(a), b.first_chunk()) {
        return carries::four::add(a, b);
    }
    *a = limbs::add(a, b).0;
}

/// The number itself if it has `L` limbs.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn exactly<const N: usize, const L: usize>(limbs: &mut [u64; N]) -> Option<&mut [u64; L]> {
    if N == L { limbs.first_chunk_mut() } else { None }
}

/// Both halves if they have `L` limbs.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn halves<const N: usize, const L: usize>(wide: &[[u64; N]; 2]) -> Option<&[[u64; L]; 2]> {
    if N == L { wide.as_flattened().as_chunks().0.first_chunk() } else { None }
}

/// The same for writing.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn halves_mut<const N: usize, const L: usize>(
    wide: &mut [[u64; N]; 2],
) -> Option<&mut [[u64; L]; 2]> {
    if N == L { wide.as_flattened_mut().as_chunks_mut().0.first_chunk_mut() } else { None }
}

/// The Montgomery product of numbers whose product is below `p R`.
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
            6 => return widened(shifted::product(a.first_chunk()?, b.first_chunk()?, prime)?),
            _ => {}
        }
    }
    None
}

/// Repeated squares of a number below p times a factor below p, for 4 p < R. The count is not zero.
#[inline(always)]
pub(super) fn squares_times<const N: usize>(
    a: &[u64; N],
    count: usize,
    factor: &[u64; N],
    prime: &'static Prime,
) -> Option<[u64; N]> {
    #[cfg(target_arch = "x86_64")]
    if mulx::is_available() {
        let count = count as u64;
        match N {
            4 => {
                let (a, factor) = (a.first_chunk()?, factor.first_chunk()?);
                return widened(mulx::squares_4(a, count, factor, prime));
            }
            6 => {
                let (a, factor) = (a.first_chunk()?, factor.first_chunk()?);
                return widened(shifted::squares(a, count, factor, prime)?);
            }
            _ => {}
        }
    }
    None
}

/// Writes the product of two numbers `c0 + c1 u` with `u^2 = -1`, or the square without the second;
/// `false`, without writing anything, if there is no kernel for this CPU or prime.
///
/// # Safety
/// `out` does not overlap the operands; all coefficients are below the prime, which has N limbs.
#[inline(always)]
pub(crate) unsafe fn complex_product<const N: usize>(
    out: *mut [[u64; N]; 2],
    a: *const [[u64; N]; 2],
    b: Option<*const [[u64; N]; 2]>,
    prime: &'static Prime,
) -> bool {
    #[cfg(target_arch = "x86_64")]
    if mulx::is_available() {
        // SAFETY: guaranteed by the caller, and the CPU has the instructions.
        return unsafe { shifted::complex_product(out, a, b, prime) };
    }
    let _ = (out, a, b, prime);
    false
}

/// The Montgomery sum of products (`Fe::sum_of`).
#[inline(always)]
pub(super) fn sum_of<const N: usize, const T: usize>(
    a: &[&[u64; N]; T],
    b: &[&[u64; N]; T],
    prime: &'static Prime,
) -> Option<[u64; N]> {
    #[cfg(target_arch = "x86_64")]
    if mulx::is_available() {
        return match (N, T) {
            (4, 2) => widened(mulx::sum_4_of_2(&chunks(a)?, &chunks(b)?, prime)),
            (4, 3) => widened(mulx::sum_4_of_3(&chunks(a)?, &chunks(b)?, prime)),
            (4, 6) => widened(mulx::sum_4_of_6(&chunks(a)?, &chunks(b)?, prime)),
            (6, 2) => widened(mulx::sum_6_of_2(&chunks(a)?, &chunks(b)?, prime)),
            (6, 3) => widened(mulx::sum_6_of_3(&chunks(a)?, &chunks(b)?, prime)),
            (6, 4) => widened(mulx::sum_6_of_4(&chunks(a)?, &chunks(b)?, prime)),
            (6, 6) => widened(mulx::sum_6_of_6(&chunks(a)?, &chunks(b)?, prime)),
            _ => None,
        };
    }
    None
}

/// The same list with the sizes that the caller has checked.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn chunks<'a, const N: usize, const T: usize, const L: usize, const K: usize>(
    list: &[&'a [u64; N]; T],
) -> Option<[&'a [u64; L]; K]> {
    let list: &[_; K] = list.first_chunk()?;
    let mut chunks = [list[0].first_chunk()?; K];
    for (chunk, limbs) in chunks.iter_mut().zip(list) {
        *chunk = limbs.first_chunk()?;
    }
    Some(chunks)
}

/// Sets a number of 2 N limbs to the product of two numbers; `false` if there is no kernel for this CPU.
#[inline(always)]
pub(super) fn wide_product<const N: usize>(
    out: &mut [[u64; N]; 2],
    a: &[u64; N],
    b: &[u64; N],
) -> bool {
    #[cfg(target_arch = "x86_64")]
    if mulx::is_available() {
        if let (Some(out), Some(a), Some(b)) = (halves_mut(out), a.first_chunk(), b.first_chunk()) {
            wide::product_6(out, a, b);
            return true;
        }
        if let (Some(out), Some(a), Some(b)) = (halves_mut(out), a.first_chunk(), b.first_chunk()) {
            wide::product_4(out, a, b);
            return true;
        }
    }
    false
}

/// `a + b` modulo 2^(128 N); `false` if there is no kernel for this CPU.
#[inline(always)]
pub(super) fn wide_add<const N: usize>(a: &mut [[u64; N]; 2], b: &[[u64; N]; 2]) -> bool {
    #[cfg(target_arch = "x86_64")]
    if let (Some(a), Some(b)) = (halves_mut(a), halves(b)) {
        wide::add_12(a, b);
        return true;
    }
    #[cfg(target_arch = "x86_64")]
    if let (Some(a), Some(b)) = (halves_mut(a), halves(b)) {
        wide::add_8(a, b);
        return true;
    }
    false
}

/// `a - b` modulo 2^(128 N); `false` if there is no kernel for this CPU.
#[inline(always)]
pub(super) fn wide_sub<const N: usize>(a: &mut [[u64; N]; 2], b: &[[u64; N]; 2]) -> bool {
    #[cfg(target_arch = "x86_64")]
    if let (Some(a), Some(b)) = (halves_mut(a), halves(b)) {
        wide::sub_12(a, b);
        return true;
    }
    #[cfg(target_arch = "x86_64")]
    if let (Some(a), Some(b)) = (halves_mut(a), halves(b)) {
        wide::sub_8(a, b);
        return true;
    }
    false
}

/// Divides the number by R modulo the prime (`Wide::reduced`): the table is the prime, an offset,
/// and multiples of the prime. `false` if there is no kernel for this CPU.
#[inline(always)]
pub(super) fn reduce<const N: usize, const C: usize>(
    out: &mut [u64; N],
    number: &[[u64; N]; 2],
    table: &'static [Prime; C],
    has_offset: bool,
) -> bool {
    #[cfg(target_arch = "x86_64")]
    if mulx::is_available() {
        if let (Some(out), Some(number)) = (exactly(&mut *out), halves(number)) {
            let table = table.as_slice();
            match C {
                3 if has_offset => table.first_chunk().map(|t| wide::reduce_6_by_1(out, number, t)),
                3 => table.first_chunk().map(|t| wide::reduce_6_by_0(out, number, t)),
                4 => table.first_chunk().map(|t| wide::reduce_6_by_2(out, number, t)),
                _ => table.first_chunk().map(|t| wide::reduce_6_by_3(out, number, t)),
            };
            return true;
        }
        if let (Some(out), Some(number)) = (exactly(out), halves(number)) {
            let table = table.as_slice();
            match C {
                3 if has_offset => table.first_chunk().map(|t| wide::reduce_4_by_1(out, number, t)),
                3 => table.first_chunk().map(|t| wide::reduce_4_by_0(out, number, t)),
                4 => table.first_chunk().map(|t| wide::reduce_4_by_2(out, number, t)),
                _ => table.first_chunk().map(|t| wide::reduce_4_by_3(out, number, t)),
            };
            return true;
        }
    }
    false
}

#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn widened<const N: usize, const L: usize>(limbs: [u64; L]) -> Option<[u64; N]> {
    limbs.first_chunk().copied()
}
