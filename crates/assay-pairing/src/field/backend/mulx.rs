//! Products modulo a prime with MULX and ADX: two chains of carries at once, one for the low halves of products and one for the
//! high ones.
//!
//! Montgomery's multiplication, a limb of one factor at a time, as in `Fe::sum_of_products`, which has the bounds and is
//! the oracle.

#![expect(unsafe_code, reason = "inline assembly")]

use core::arch::asm;

use super::Prime;
use assay_hash::cpu::{CpuFeature, has};

/// Whether this CPU has the instructions.
#[inline(always)]
pub(super) fn is_available() -> bool {
    has(CpuFeature::Adx)
}

/// Adds a limb (at `$b`) times a number (at `$a`) to the sum in registers, of which the last is the word above.
macro_rules! add_row {
    ($a:literal, $b:literal, $top:literal; $($limb:literal $above:literal $at:literal),+) => {
        concat!(
            "mov rdx, [{b} + ", $b, "]\n",
            // Clears both carries.
            "xor {lo:e}, {lo:e}\n",
            $(
                "mulx {hi}, {lo}, [{a} + ", $a, " + ", $at, "]\n",
                "adcx ", $limb, ", {lo}\n",
                "adox ", $above, ", {hi}\n",
            )+
            "mov {lo:e}, 0\n",
            "adcx ", $top, ", {lo}\n",
        )
    };
}

/// The first of all rows, which there is nothing to add to: one chain of carries is enough.
macro_rules! start_row {
    ($a:literal, $b:literal, $lowest:literal, $first:literal; $($limb:literal $above:literal $at:literal),+; $top:literal) => {
        concat!(
            "mov rdx, [{b} + ", $b, "]\n",
            "mulx ", $first, ", ", $lowest, ", [{a} + ", $a, "]\n",
            // Clears the carry.
            "xor {lo:e}, {lo:e}\n",
            $(
                "mulx ", $above, ", {lo}, [{a} + ", $a, " + ", $at, "]\n",
                "adc ", $limb, ", {lo}\n",
            )+
            "adc ", $top, ", 0\n",
        )
    };
}

/// Adds the multiple of the prime that makes the lowest word of the sum zero.
macro_rules! clear_lowest {
    ($lowest:literal, $inverse:literal, $top:literal; $($limb:literal $above:literal $at:literal),+) => {
        concat!(
            "mov rdx, ", $lowest, "\n",
            "imul rdx, [{p} + ", $inverse, "]\n",
            "xor {lo:e}, {lo:e}\n",
            $(
                "mulx {hi}, {lo}, [{p} + ", $at, "]\n",
                "adcx ", $limb, ", {lo}\n",
                "adox ", $above, ", {hi}\n",
            )+
            "mov {lo:e}, 0\n",
            "adcx ", $top, ", {lo}\n",
        )
    };
}

/// One limb of the second factors, over six limbs, for all pairs of factors; then the lowest word is zero and takes the
/// place of the top one.
macro_rules! row_6 {
    ($($a:literal $b:literal),*; $t0:literal $t1:literal $t2:literal $t3:literal $t4:literal $t5:literal $t6:literal) => {
        concat!(
            $(add_row!($a, $b, $t6; $t0 $t1 0, $t1 $t2 8, $t2 $t3 16, $t3 $t4 24, $t4 $t5 32, $t5 $t6 40),)*
            clear_lowest!($t0, 48, $t6; $t0 $t1 0, $t1 $t2 8, $t2 $t3 16, $t3 $t4 24, $t4 $t5 32, $t5 $t6 40),
        )
    };
}

/// The same for the first limb of the second factors.
macro_rules! first_row_6 {
    ($a:literal $b:literal $(, $other_a:literal $other_b:literal)*) => {
        concat!(
            start_row!($a, $b, "{t0}", "{t1}"; "{t1}" "{t2}" 8, "{t2}" "{t3}" 16, "{t3}" "{t4}" 24, "{t4}" "{t5}" 32, "{t5}" "{t6}" 40; "{t6}"),
            row_6!($($other_a $other_b),*; "{t0}" "{t1}" "{t2}" "{t3}" "{t4}" "{t5}" "{t6}"),
        )
    };
}

/// The same over four limbs.
macro_rules! first_row_4 {
    ($a:literal $b:literal $(, $other_a:literal $other_b:literal)*) => {
        concat!(
            start_row!($a, $b, "{t0}", "{t1}"; "{t1}" "{t2}" 8, "{t2}" "{t3}" 16, "{t3}" "{t4}" 24; "{t4}"),
            row_4!($($other_a $other_b),*; "{t0}" "{t1}" "{t2}" "{t3}" "{t4}"),
        )
    };
}

/// The same over four limbs.
macro_rules! row_4 {
    ($($a:literal $b:literal),*; $t0:literal $t1:literal $t2:literal $t3:literal $t4:literal) => {
        concat!(
            $(add_row!($a, $b, $t4; $t0 $t1 0, $t1 $t2 8, $t2 $t3 16, $t3 $t4 24),)*
            clear_lowest!($t0, 32, $t4; $t0 $t1 0, $t1 $t2 8, $t2 $t3 16, $t3 $t4 24),
        )
    };
}

/// A function for the sum of products of pairs of six limbs: for each limb of the second factors, where the factors are.
macro_rules! sum_6 {
    ($(#[$documentation:meta])* $name:ident, $operand:ty; $($a:literal [$b0:literal $b1:literal $b2:literal $b3:literal $b4:literal $b5:literal]),+) => {
        $(#[$documentation])*
        ///
        /// The caller has seen [`is_available`] return true.
        #[inline(never)]
        pub(super) fn $name(a: &$operand, b: &$operand, prime: &'static Prime) -> [u64; 6] {
            let (t0, t1, t2, t3, t4, t6);
            // SAFETY: reads the limbs of both arrays and of the prime, and writes registers alone; the words
            // call it where the CPU has the instructions.
            unsafe {
                asm!(
                    first_row_6!($($a $b0),+),
                    row_6!($($a $b1),+; "{t1}" "{t2}" "{t3}" "{t4}" "{t5}" "{t6}" "{t0}"),
                    row_6!($($a $b2),+; "{t2}" "{t3}" "{t4}" "{t5}" "{t6}" "{t0}" "{t1}"),
                    row_6!($($a $b3),+; "{t3}" "{t4}" "{t5}" "{t6}" "{t0}" "{t1}" "{t2}"),
                    row_6!($($a $b4),+; "{t4}" "{t5}" "{t6}" "{t0}" "{t1}" "{t2}" "{t3}"),
                    row_6!($($a $b5),+; "{t5}" "{t6}" "{t0}" "{t1}" "{t2}" "{t3}" "{t4}"),
                    "mov {lo}, {t6}",
                    "mov {hi}, {t0}",
                    "mov rdx, {t1}",
                    "mov {t5}, {t2}",
                    "mov {a}, {t3}",
                    "mov {b}, {t4}",
                    "sub {lo}, [{p}]",
                    "sbb {hi}, [{p} + 8]",
                    "sbb rdx, [{p} + 16]",
                    "sbb {t5}, [{p} + 24]",
                    "sbb {a}, [{p} + 32]",
                    "sbb {b}, [{p} + 40]",
                    "cmovnc {t6}, {lo}",
                    "cmovnc {t0}, {hi}",
                    "cmovnc {t1}, rdx",
                    "cmovnc {t2}, {t5}",
                    "cmovnc {t3}, {a}",
                    "cmovnc {t4}, {b}",
                    t0 = out(reg) t0,
                    t1 = out(reg) t1,
                    t2 = out(reg) t2,
                    t3 = out(reg) t3,
                    t4 = out(reg) t4,
                    t5 = out(reg) _,
                    t6 = out(reg) t6,
                    lo = out(reg) _,
                    hi = out(reg) _,
                    a = inout(reg) a => _,
                    b = inout(reg) b => _,
                    p = in(reg) prime,
                    out("rdx") _,
                    options(pure, readonly, nostack),
                );
            }
            [t6, t0, t1, t2, t3, t4]
        }
    };
}

/// The same over four limbs.
macro_rules! sum_4 {
    ($(#[$documentation:meta])* $name:ident, $operand:ty; $($a:literal [$b0:literal $b1:literal $b2:literal $b3:literal]),+) => {
        $(#[$documentation])*
        ///
        /// The caller has seen [`is_available`] return true.
        #[inline(never)]
        pub(super) fn $name(a: &$operand, b: &$operand, prime: &'static Prime) -> [u64; 4] {
            let (t0, t1, t2, t4);
            // SAFETY: reads the limbs of both arrays and of the prime, and writes registers alone; the words
            // call it where the CPU has the instructions.
            unsafe {
                asm!(
                    first_row_4!($($a $b0),+),
                    row_4!($($a $b1),+; "{t1}" "{t2}" "{t3}" "{t4}" "{t0}"),
                    row_4!($($a $b2),+; "{t2}" "{t3}" "{t4}" "{t0}" "{t1}"),
                    row_4!($($a $b3),+; "{t3}" "{t4}" "{t0}" "{t1}" "{t2}"),
                    "mov {lo}, {t4}",
                    "mov {hi}, {t0}",
                    "mov rdx, {t1}",
                    "mov {t3}, {t2}",
                    "sub {lo}, [{p}]",
                    "sbb {hi}, [{p} + 8]",
                    "sbb rdx, [{p} + 16]",
                    "sbb {t3}, [{p} + 24]",
                    "cmovnc {t4}, {lo}",
                    "cmovnc {t0}, {hi}",
                    "cmovnc {t1}, rdx",
                    "cmovnc {t2}, {t3}",
                    t0 = out(reg) t0,
                    t1 = out(reg) t1,
                    t2 = out(reg) t2,
                    t3 = out(reg) _,
                    t4 = out(reg) t4,
                    lo = out(reg) _,
                    hi = out(reg) _,
                    a = in(reg) a,
                    b = in(reg) b,
                    p = in(reg) prime,
                    out("rdx") _,
                    options(pure, readonly, nostack),
                );
            }
            [t4, t0, t1, t2]
        }
    };
}

sum_6! {
    /// The product.
    product_6, [u64; 6]; 0 [0 8 16 24 32 40]
}
sum_6! {
    /// `a0 b0 + a1 b1`.
    two_products_6, [[u64; 6]; 2]; 0 [0 8 16 24 32 40], 48 [48 56 64 72 80 88]
}
sum_6! {
    /// `a0 b1 + a1 b0`.
    crossed_products_6, [[u64; 6]; 2]; 0 [48 56 64 72 80 88], 48 [0 8 16 24 32 40]
}
sum_4! {
    /// The product.
    product_4, [u64; 4]; 0 [0 8 16 24]
}
sum_4! {
    /// `a0 b0 + a1 b1`.
    two_products_4, [[u64; 4]; 2]; 0 [0 8 16 24], 32 [32 40 48 56]
}
sum_4! {
    /// `a0 b1 + a1 b0`.
    crossed_products_4, [[u64; 4]; 2]; 0 [32 40 48 56], 32 [0 8 16 24]
}
