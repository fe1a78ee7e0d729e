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

/// Adds a limb of one factor times the other to the sum in registers, of which the last is the word above.
macro_rules! add_row {
    ($b:literal, $top:literal; $($limb:literal $above:literal $at:literal),+) => {
        concat!(
            "mov rdx, [{b} + ", $b, "]\n",
            // Clears both carries.
            "xor {lo:e}, {lo:e}\n",
            $(
                "mulx {hi}, {lo}, [{a} + ", $at, "]\n",
                "adcx ", $limb, ", {lo}\n",
                "adox ", $above, ", {hi}\n",
            )+
            "adc ", $top, ", 0\n",
        )
    };
}

/// The first of all rows, which there is nothing to add to: one chain of carries is enough.
macro_rules! start_row {
    ($lowest:literal, $first:literal; $($limb:literal $above:literal $at:literal),+; $top:literal) => {
        concat!(
            "mov rdx, [{b}]\n",
            "mulx ", $first, ", ", $lowest, ", [{a}]\n",
            // Clears the carry.
            "xor {lo:e}, {lo:e}\n",
            $(
                "mulx ", $above, ", {lo}, [{a} + ", $at, "]\n",
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
            "adc ", $top, ", 0\n",
        )
    };
}

/// Clears the lowest of six words; then it is zero and takes the place of the top one.
macro_rules! clear_6 {
    ($t0:literal $t1:literal $t2:literal $t3:literal $t4:literal $t5:literal $t6:literal) => {
        clear_lowest!($t0, 48, $t6; $t0 $t1 0, $t1 $t2 8, $t2 $t3 16, $t3 $t4 24, $t4 $t5 32, $t5 $t6 40)
    };
}

/// One limb of the second factor, over six limbs.
macro_rules! row_6 {
    ($b:literal; $t0:literal $t1:literal $t2:literal $t3:literal $t4:literal $t5:literal $t6:literal) => {
        concat!(
            add_row!($b, $t6; $t0 $t1 0, $t1 $t2 8, $t2 $t3 16, $t3 $t4 24, $t4 $t5 32, $t5 $t6 40),
            clear_6!($t0 $t1 $t2 $t3 $t4 $t5 $t6),
        )
    };
}

/// The same over four limbs.
macro_rules! clear_4 {
    ($t0:literal $t1:literal $t2:literal $t3:literal $t4:literal) => {
        clear_lowest!($t0, 32, $t4; $t0 $t1 0, $t1 $t2 8, $t2 $t3 16, $t3 $t4 24)
    };
}

/// The same over four limbs.
macro_rules! row_4 {
    ($b:literal; $t0:literal $t1:literal $t2:literal $t3:literal $t4:literal) => {
        concat!(
            add_row!($b, $t4; $t0 $t1 0, $t1 $t2 8, $t2 $t3 16, $t3 $t4 24),
            clear_4!($t0 $t1 $t2 $t3 $t4),
        )
    };
}

/// The Montgomery product of numbers whose product is below `p R`.
///
/// The caller has seen [`is_available`] return true.
#[inline(never)]
pub(super) fn product_6(out: &mut [u64; 6], a: &[u64; 6], b: &[u64; 6], prime: &'static Prime) {
    let (t0, t1, t2, t3, t4, t6);
    // SAFETY: reads the limbs of both arrays and of the prime, and writes registers alone; the words
    // call it where the CPU has the instructions.
    unsafe {
        asm!(
            start_row!("{t0}", "{t1}"; "{t1}" "{t2}" 8, "{t2}" "{t3}" 16, "{t3}" "{t4}" 24, "{t4}" "{t5}" 32, "{t5}" "{t6}" 40; "{t6}"),
            clear_6!("{t0}" "{t1}" "{t2}" "{t3}" "{t4}" "{t5}" "{t6}"),
            row_6!(8; "{t1}" "{t2}" "{t3}" "{t4}" "{t5}" "{t6}" "{t0}"),
            row_6!(16; "{t2}" "{t3}" "{t4}" "{t5}" "{t6}" "{t0}" "{t1}"),
            row_6!(24; "{t3}" "{t4}" "{t5}" "{t6}" "{t0}" "{t1}" "{t2}"),
            row_6!(32; "{t4}" "{t5}" "{t6}" "{t0}" "{t1}" "{t2}" "{t3}"),
            row_6!(40; "{t5}" "{t6}" "{t0}" "{t1}" "{t2}" "{t3}" "{t4}"),
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
    *out = [t6, t0, t1, t2, t3, t4];
}

/// The Montgomery product of numbers whose product is below `p R`, over four limbs.
///
/// The caller has seen [`is_available`] return true.
#[inline(never)]
pub(super) fn product_4(out: &mut [u64; 4], a: &[u64; 4], b: &[u64; 4], prime: &'static Prime) {
    let (t0, t1, t2, t4);
    // SAFETY: reads the limbs of both arrays and of the prime, and writes registers alone; the words
    // call it where the CPU has the instructions.
    unsafe {
        asm!(
            start_row!("{t0}", "{t1}"; "{t1}" "{t2}" 8, "{t2}" "{t3}" 16, "{t3}" "{t4}" 24; "{t4}"),
            clear_4!("{t0}" "{t1}" "{t2}" "{t3}" "{t4}"),
            row_4!(8; "{t1}" "{t2}" "{t3}" "{t4}" "{t0}"),
            row_4!(16; "{t2}" "{t3}" "{t4}" "{t0}" "{t1}"),
            row_4!(24; "{t3}" "{t4}" "{t0}" "{t1}" "{t2}"),
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
    *out = [t4, t0, t1, t2];
}
