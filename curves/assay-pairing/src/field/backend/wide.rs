//! Products before their reduction, and the reduction, with MULX and ADX: numbers of 2 N limbs, and
//! unreduced sums of N limbs. `field/wide.rs` has the bounds and the oracle.

#![expect(unsafe_code, reason = "inline assembly")]

use core::arch::asm;

use super::Prime;

/// Adds a limb of the second factor times the first factor to the sum in registers, sets the
/// register above them, and stores the lowest word of the sum, which is final.
macro_rules! row {
    ($at:literal, $lowest:literal, $top:literal; $($limb:literal $above:literal $a:literal),+) => {
        concat!(
            "mov rdx, [{b} + ", $at, "]\n",
            // Clears both carries.
            "xor ", $top, ", ", $top, "\n",
            $(
                "mulx {hi}, {lo}, [{a} + ", $a, "]\n",
                "adcx ", $limb, ", {lo}\n",
                "adox ", $above, ", {hi}\n",
            )+
            "adc ", $top, ", 0\n",
            "mov [{out} + ", $at, "], ", $lowest, "\n",
        )
    };
}

macro_rules! row_6 {
    ($at:literal; $t0:literal $t1:literal $t2:literal $t3:literal $t4:literal $t5:literal $t6:literal) => {
        row!($at, $t0, $t6; $t0 $t1 0, $t1 $t2 8, $t2 $t3 16, $t3 $t4 24, $t4 $t5 32, $t5 $t6 40)
    };
}

macro_rules! row_4 {
    ($at:literal; $t0:literal $t1:literal $t2:literal $t3:literal $t4:literal) => {
        row!($at, $t0, $t4; $t0 $t1 0, $t1 $t2 8, $t2 $t3 16, $t3 $t4 24)
    };
}

/// The product of any numbers. The caller has checked `mulx::is_available`.
#[inline(always)]
pub(super) fn product_6(out: &mut [[u64; 6]; 2], a: &[u64; 6], b: &[u64; 6]) {
    // SAFETY: reads the limbs of both factors and writes those of the result; callers have checked
    // that the CPU has the instructions.
    unsafe {
        asm!(
            "mov rdx, [{b}]",
            "mulx {t1}, {t0}, [{a}]",
            "mov [{out}], {t0}",
            "mulx {t2}, {lo}, [{a} + 8]",
            "add {t1}, {lo}",
            "mulx {t3}, {lo}, [{a} + 16]",
            "adc {t2}, {lo}",
            "mulx {t4}, {lo}, [{a} + 24]",
            "adc {t3}, {lo}",
            "mulx {t5}, {lo}, [{a} + 32]",
            "adc {t4}, {lo}",
            "mulx {t6}, {lo}, [{a} + 40]",
            "adc {t5}, {lo}",
            "adc {t6}, 0",
            row_6!(8; "{t1}" "{t2}" "{t3}" "{t4}" "{t5}" "{t6}" "{t0}"),
            row_6!(16; "{t2}" "{t3}" "{t4}" "{t5}" "{t6}" "{t0}" "{t1}"),
            row_6!(24; "{t3}" "{t4}" "{t5}" "{t6}" "{t0}" "{t1}" "{t2}"),
            row_6!(32; "{t4}" "{t5}" "{t6}" "{t0}" "{t1}" "{t2}" "{t3}"),
            row_6!(40; "{t5}" "{t6}" "{t0}" "{t1}" "{t2}" "{t3}" "{t4}"),
            "mov [{out} + 48], {t6}",
            "mov [{out} + 56], {t0}",
            "mov [{out} + 64], {t1}",
            "mov [{out} + 72], {t2}",
            "mov [{out} + 80], {t3}",
            "mov [{out} + 88], {t4}",
            t0 = out(reg) _,
            t1 = out(reg) _,
            t2 = out(reg) _,
            t3 = out(reg) _,
            t4 = out(reg) _,
            t5 = out(reg) _,
            t6 = out(reg) _,
            lo = out(reg) _,
            hi = out(reg) _,
            a = in(reg) a,
            b = in(reg) b,
            out = in(reg) out,
            out("rdx") _,
            options(nostack),
        );
    }
}

/// The same over four limbs.
#[inline(always)]
pub(super) fn product_4(out: &mut [[u64; 4]; 2], a: &[u64; 4], b: &[u64; 4]) {
    // SAFETY: reads the limbs of both factors and writes those of the result; callers have checked
    // that the CPU has the instructions.
    unsafe {
        asm!(
            "mov rdx, [{b}]",
            "mulx {t1}, {t0}, [{a}]",
            "mov [{out}], {t0}",
            "mulx {t2}, {lo}, [{a} + 8]",
            "add {t1}, {lo}",
            "mulx {t3}, {lo}, [{a} + 16]",
            "adc {t2}, {lo}",
            "mulx {t4}, {lo}, [{a} + 24]",
            "adc {t3}, {lo}",
            "adc {t4}, 0",
            row_4!(8; "{t1}" "{t2}" "{t3}" "{t4}" "{t0}"),
            row_4!(16; "{t2}" "{t3}" "{t4}" "{t0}" "{t1}"),
            row_4!(24; "{t3}" "{t4}" "{t0}" "{t1}" "{t2}"),
            "mov [{out} + 32], {t4}",
            "mov [{out} + 40], {t0}",
            "mov [{out} + 48], {t1}",
            "mov [{out} + 56], {t2}",
            t0 = out(reg) _,
            t1 = out(reg) _,
            t2 = out(reg) _,
            t3 = out(reg) _,
            t4 = out(reg) _,
            lo = out(reg) _,
            hi = out(reg) _,
            a = in(reg) a,
            b = in(reg) b,
            out = in(reg) out,
            out("rdx") _,
            options(nostack),
        );
    }
}

/// Adds the product of the prime and rdx to the sum in registers; the register above the others is zero.
macro_rules! add_prime {
    ($top:literal; $($limb:literal $above:literal $at:literal),+) => {
        concat!(
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

/// Adds the multiple of the prime that clears the lowest two words of the sum. Both words of the quotient are
/// computed at once, by `-1 / p` modulo 2^128, since the latency from one quotient to the next limits a reduction.
macro_rules! clear_two {
    ($t0:literal $t1:literal, $inverse:literal $high:literal; $first:expr, $second:expr) => {
        concat!(
            "mov rdx, [{p} + ",
            $inverse,
            "]\n",
            "mulx {hi}, {lo}, ",
            $t0,
            "\n",
            "mov {q}, ",
            $t1,
            "\n",
            "imul {q}, rdx\n",
            "mov rdx, [{p} + ",
            $high,
            "]\n",
            "imul rdx, ",
            $t0,
            "\n",
            "add {q}, {hi}\n",
            "add {q}, rdx\n",
            "mov rdx, {lo}\n",
            $first,
            "mov rdx, {q}\n",
            $second,
        )
    };
}

macro_rules! add_prime_6 {
    ($t0:literal $t1:literal $t2:literal $t3:literal $t4:literal $t5:literal $t6:literal) => {
        add_prime!($t6; $t0 $t1 0, $t1 $t2 8, $t2 $t3 16, $t3 $t4 24, $t4 $t5 32, $t5 $t6 40)
    };
}

macro_rules! clear_6 {
    ($t0:literal $t1:literal $t2:literal $t3:literal $t4:literal $t5:literal $t6:literal) => {
        clear_two!(
            $t0 $t1, 48 56;
            add_prime_6!($t0 $t1 $t2 $t3 $t4 $t5 $t6),
            add_prime_6!($t1 $t2 $t3 $t4 $t5 $t6 $t0)
        )
    };
}

macro_rules! add_prime_4 {
    ($t0:literal $t1:literal $t2:literal $t3:literal $t4:literal) => {
        add_prime!($t4; $t0 $t1 0, $t1 $t2 8, $t2 $t3 16, $t3 $t4 24)
    };
}

macro_rules! clear_4 {
    ($t0:literal $t1:literal $t2:literal $t3:literal $t4:literal) => {
        clear_two!(
            $t0 $t1, 32 40;
            add_prime_4!($t0 $t1 $t2 $t3 $t4),
            add_prime_4!($t1 $t2 $t3 $t4 $t0)
        )
    };
}

/// Subtracts a number of six limbs unless the result would be negative.
macro_rules! correct_6 {
    ($at:literal) => {
        concat!(
            "mov {lo}, {t6}\n",
            "mov {hi}, {t0}\n",
            "mov rdx, {t1}\n",
            "mov {t5}, {t2}\n",
            "mov {w}, {t3}\n",
            "mov {q}, {t4}\n",
            "sub {lo}, [{p} + ",
            $at,
            "]\n",
            "sbb {hi}, [{p} + ",
            $at,
            " + 8]\n",
            "sbb rdx, [{p} + ",
            $at,
            " + 16]\n",
            "sbb {t5}, [{p} + ",
            $at,
            " + 24]\n",
            "sbb {w}, [{p} + ",
            $at,
            " + 32]\n",
            "sbb {q}, [{p} + ",
            $at,
            " + 40]\n",
            "cmovnc {t6}, {lo}\n",
            "cmovnc {t0}, {hi}\n",
            "cmovnc {t1}, rdx\n",
            "cmovnc {t2}, {t5}\n",
            "cmovnc {t3}, {w}\n",
            "cmovnc {t4}, {q}\n",
        )
    };
}

macro_rules! correct_4 {
    ($at:literal) => {
        concat!(
            "mov {lo}, {t4}\n",
            "mov {hi}, {t0}\n",
            "mov rdx, {t1}\n",
            "mov {t3}, {t2}\n",
            "sub {lo}, [{p} + ",
            $at,
            "]\n",
            "sbb {hi}, [{p} + ",
            $at,
            " + 8]\n",
            "sbb rdx, [{p} + ",
            $at,
            " + 16]\n",
            "sbb {t3}, [{p} + ",
            $at,
            " + 24]\n",
            "cmovnc {t4}, {lo}\n",
            "cmovnc {t0}, {hi}\n",
            "cmovnc {t1}, rdx\n",
            "cmovnc {t2}, {t3}\n",
        )
    };
}

/// Adds the offset of a reduction; empty if the offset is zero.
macro_rules! offset_6 {
    () => {
        concat!(
            "add {t6}, [{p} + 64]\n",
            "adc {t0}, [{p} + 72]\n",
            "adc {t1}, [{p} + 80]\n",
            "adc {t2}, [{p} + 88]\n",
            "adc {t3}, [{p} + 96]\n",
            "adc {t4}, [{p} + 104]\n",
        )
    };
}

macro_rules! offset_4 {
    () => {
        concat!(
            "add {t4}, [{p} + 64]\n",
            "adc {t0}, [{p} + 72]\n",
            "adc {t1}, [{p} + 80]\n",
            "adc {t2}, [{p} + 88]\n",
        )
    };
}

/// A Montgomery reduction over six limbs: divides by R, adds the offset, and subtracts the multiples that fit.
macro_rules! reduce_6 {
    ($name:ident, $rows:literal; $offset:expr; $($at:literal),+) => {
        /// A Montgomery reduction. The table is the prime, the offset to add, and multiples of the prime to subtract
        /// unless the result would be negative. The caller has checked `mulx::is_available`.
        #[inline(always)]
        pub(super) fn $name(out: &mut [u64; 6], wide: &[[u64; 6]; 2], table: &'static [Prime; $rows]) {
            let [mut t0, mut t1, mut t2, mut t3, mut t4, t5] = wide[0];
            let t6;
            // SAFETY: reads the limbs of the number and the table, and writes registers only;
            // callers have checked that the CPU has the instructions.
            unsafe {
                asm!(
                    "xor {t6:e}, {t6:e}",
                    clear_6!("{t0}" "{t1}" "{t2}" "{t3}" "{t4}" "{t5}" "{t6}"),
                    clear_6!("{t2}" "{t3}" "{t4}" "{t5}" "{t6}" "{t0}" "{t1}"),
                    clear_6!("{t4}" "{t5}" "{t6}" "{t0}" "{t1}" "{t2}" "{t3}"),
                    "add {t6}, [{w} + 48]",
                    "adc {t0}, [{w} + 56]",
                    "adc {t1}, [{w} + 64]",
                    "adc {t2}, [{w} + 72]",
                    "adc {t3}, [{w} + 80]",
                    "adc {t4}, [{w} + 88]",
                    $offset,
                    $(correct_6!($at),)+
                    t0 = inout(reg) t0,
                    t1 = inout(reg) t1,
                    t2 = inout(reg) t2,
                    t3 = inout(reg) t3,
                    t4 = inout(reg) t4,
                    t5 = inout(reg) t5 => _,
                    t6 = out(reg) t6,
                    lo = out(reg) _,
                    hi = out(reg) _,
                    q = out(reg) _,
                    w = inout(reg) wide => _,
                    p = in(reg) table,
                    out("rdx") _,
                    options(pure, readonly, nostack),
                );
            }
            *out = [t6, t0, t1, t2, t3, t4];
        }
    };
}

/// The same over four limbs.
macro_rules! reduce_4 {
    ($name:ident, $rows:literal; $offset:expr; $($at:literal),+) => {
        /// A Montgomery reduction. The table is the prime, the offset to add, and multiples of the prime to subtract
        /// unless the result would be negative. The caller has checked `mulx::is_available`.
        #[inline(always)]
        pub(super) fn $name(out: &mut [u64; 4], wide: &[[u64; 4]; 2], table: &'static [Prime; $rows]) {
            let [mut t0, mut t1, mut t2, t3] = wide[0];
            let t4;
            // SAFETY: reads the limbs of the number and the table, and writes registers only;
            // callers have checked that the CPU has the instructions.
            unsafe {
                asm!(
                    "xor {t4:e}, {t4:e}",
                    clear_4!("{t0}" "{t1}" "{t2}" "{t3}" "{t4}"),
                    clear_4!("{t2}" "{t3}" "{t4}" "{t0}" "{t1}"),
                    "add {t4}, [{w} + 32]",
                    "adc {t0}, [{w} + 40]",
                    "adc {t1}, [{w} + 48]",
                    "adc {t2}, [{w} + 56]",
                    $offset,
                    $(correct_4!($at),)+
                    t0 = inout(reg) t0,
                    t1 = inout(reg) t1,
                    t2 = inout(reg) t2,
                    t3 = inout(reg) t3 => _,
                    t4 = out(reg) t4,
                    lo = out(reg) _,
                    hi = out(reg) _,
                    q = out(reg) _,
                    w = in(reg) wide,
                    p = in(reg) table,
                    out("rdx") _,
                    options(pure, readonly, nostack),
                );
            }
            *out = [t4, t0, t1, t2];
        }
    };
}

reduce_6!(reduce_6_by_0, 3; ""; 128);
reduce_6!(reduce_6_by_1, 3; offset_6!(); 128);
reduce_6!(reduce_6_by_2, 4; offset_6!(); 128, 192);
reduce_6!(reduce_6_by_3, 5; offset_6!(); 128, 192, 256);
reduce_4!(reduce_4_by_0, 3; ""; 128);
reduce_4!(reduce_4_by_1, 3; offset_4!(); 128);
reduce_4!(reduce_4_by_2, 4; offset_4!(); 128, 192);
reduce_4!(reduce_4_by_3, 5; offset_4!(); 128, 192, 256);

/// A carry chain over words in memory: the first numbers plus or minus the second.
macro_rules! chain {
    ($(#[$documentation:meta])* $name:ident, $number:ty; $first:literal $next:literal; $($at:literal),+) => {
        $(#[$documentation])*
        #[inline(always)]
        pub(super) fn $name(a: &mut $number, b: &$number) {
            // SAFETY: reads and writes the limbs of a and reads those of b.
            unsafe {
                asm!(
                    "mov {t}, [{a}]",
                    concat!($first, " {t}, [{b}]"),
                    "mov [{a}], {t}",
                    $(
                        concat!("mov {t}, [{a} + ", $at, "]"),
                        concat!($next, " {t}, [{b} + ", $at, "]"),
                        concat!("mov [{a} + ", $at, "], {t}"),
                    )+
                    t = out(reg) _,
                    a = in(reg) a,
                    b = in(reg) b,
                    options(nostack),
                );
            }
        }
    };
}

chain!(
    /// `a + b` modulo 2^768.
    add_12, [[u64; 6]; 2]; "add" "adc"; 8, 16, 24, 32, 40, 48, 56, 64, 72, 80, 88
);
chain!(
    /// `a - b` modulo 2^768.
    sub_12, [[u64; 6]; 2]; "sub" "sbb"; 8, 16, 24, 32, 40, 48, 56, 64, 72, 80, 88
);
chain!(
    /// `a + b` modulo 2^512.
    add_8, [[u64; 4]; 2]; "add" "adc"; 8, 16, 24, 32, 40, 48, 56
);
chain!(
    /// `a - b` modulo 2^512.
    sub_8, [[u64; 4]; 2]; "sub" "sbb"; 8, 16, 24, 32, 40, 48, 56
);
