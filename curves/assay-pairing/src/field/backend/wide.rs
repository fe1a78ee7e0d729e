//! Products before their reduction, and the reduction, with MULX and ADX: numbers of 2 N limbs, and
//! unreduced sums of N limbs. `field/wide.rs` has the bounds and the oracle.

#![expect(unsafe_code, reason = "inline assembly")]

use core::arch::asm;

use super::Prime;

/// Adds the product of rdx and a number to a sum of words, of which the last one is above those of the product.
macro_rules! add_multiple {
    ($number:literal; $top:literal; $($at:literal)*) => { "" };
    ($number:literal; $word:literal $above:literal $($words:literal)*; $at:literal $($ats:literal)*) => {
        concat!(
            "mulx {hi}, {lo}, [{", $number, "} + ", $at, "]\n",
            "adcx ", $word, ", {lo}\n",
            "adox ", $above, ", {hi}\n",
            add_multiple!($number; $above $($words)*; $($ats)*),
        )
    };
}

/// The first row of a product: one carry chain is enough.
macro_rules! start {
    ($add:literal; $top:literal; $($at:literal)*) => { concat!("adc ", $top, ", 0\n") };
    ($add:literal; $word:literal $above:literal $($words:literal)*; $at:literal $($ats:literal)*) => {
        concat!(
            "mulx ", $above, ", {lo}, [{a} + ", $at, "]\n",
            $add, " ", $word, ", {lo}\n",
            start!("adc"; $above $($words)*; $($ats)*),
        )
    };
}

/// Adds each further limb of the second factor times the first factor to the sum, sets the word above it, and
/// stores the lowest word of the sum, which is final: its register is that of the word above in the next row.
/// Then stores the upper half.
macro_rules! rows {
    (; $($word:literal)+; $top:literal; $($at:literal)+) => {
        concat!($("mov [{out} + ", $at, "], ", $word, "\n",)+)
    };
    ($row:literal $($rows:literal)*; $first:literal $second:literal $($words:literal)+; $top:literal; $($upper:literal)+) => {
        concat!(
            "mov rdx, [{b} + ", $row, "]\n",
            // Clears both carries.
            "xor ", $top, ", ", $top, "\n",
            add_multiple!("a"; $first $second $($words)+ $top; 0 8 16 24 32 40),
            "adc ", $top, ", 0\n",
            "mov [{out} + ", $row, "], ", $first, "\n",
            rows!($($rows)*; $second $($words)+ $top; $first; $($upper)+),
        )
    };
}

/// Adds multiples of the prime that clear the lowest words of the sum, two in each step. Both words of a quotient are
/// computed at once, by `-1 / p` modulo 2^128, since the latency from one quotient to the next limits a reduction.
macro_rules! clear {
    (; $inverse:literal $high:literal; $($words:literal)+; $top:literal) => { "" };
    (
        $step:literal $($steps:literal)*; $inverse:literal $high:literal;
        $first:literal $second:literal $third:literal $($words:literal)+; $top:literal
    ) => {
        concat!(
            "mov rdx, [{p} + ", $inverse, "]\n",
            "mulx {hi}, {lo}, ", $first, "\n",
            "mov {q}, ", $second, "\n",
            "imul {q}, rdx\n",
            "mov rdx, [{p} + ", $high, "]\n",
            "imul rdx, ", $first, "\n",
            "add {q}, {hi}\n",
            "add {q}, rdx\n",
            "mov rdx, {lo}\n",
            add_prime!($first $second $third $($words)+; $top),
            "mov rdx, {q}\n",
            add_prime!($second $third $($words)+ $top; $first),
            clear!($($steps)*; $inverse $high; $third $($words)+ $top $first; $second),
        )
    };
}

/// Adds the product of the prime and rdx to the sum; the word above it is zero.
macro_rules! add_prime {
    ($($words:literal)+; $top:literal) => {
        concat!(
            "xor {lo:e}, {lo:e}\n",
            add_multiple!("p"; $($words)+ $top; 0 8 16 24 32 40),
            "adc ", $top, ", 0\n",
        )
    };
}

/// Adds a number in memory.
macro_rules! add {
    ($number:literal + $base:literal; ($word:literal $free:literal $at:literal $(, $words:literal $frees:literal $ats:literal)+)) => {
        concat!(
            "add ", $word, ", [{", $number, "} + ", $base, "]\n",
            $("adc ", $words, ", [{", $number, "} + ", $base, " + ", $ats, "]\n",)+
        )
    };
}

/// Subtracts a multiple of the prime unless the result would be negative.
macro_rules! correct {
    ($base:literal; ($word:literal $free:literal $at:literal $(, $words:literal $frees:literal $ats:literal)+)) => {
        concat!(
            "mov ", $free, ", ", $word, "\n",
            $("mov ", $frees, ", ", $words, "\n",)+
            "sub ", $free, ", [{p} + ", $base, "]\n",
            $("sbb ", $frees, ", [{p} + ", $base, " + ", $ats, "]\n",)+
            "cmovnc ", $word, ", ", $free, "\n",
            $("cmovnc ", $words, ", ", $frees, "\n",)+
        )
    };
}

/// Passes operands and registers of four limbs: `-1 / p` in the prime, the lowest words of a product with those above
/// the first row, the steps of a reduction, the upper half, and the registers of a reduced number with free ones.
macro_rules! four {
    ($define:ident: $($what:tt)*) => {
        $define! {
            4, 32 40, $($what)*; t0 t1 t2, t3, t4; "{t0}" "{t1}" "{t2}" "{t3}"; "{t4}"; 8 16 24; 32 40 48 56; 0 1;
            t4 t0 t1 t2; ("{t4}" "{lo}" 0, "{t0}" "{hi}" 8, "{t1}" "rdx" 16, "{t2}" "{t3}" 24)
        }
    };
}

/// The same of six limbs.
macro_rules! six {
    ($define:ident: $($what:tt)*) => {
        $define! {
            6, 48 56, $($what)*; t0 t1 t2 t3 t4, t5, t6; "{t0}" "{t1}" "{t2}" "{t3}" "{t4}" "{t5}"; "{t6}"; 8 16 24 32 40;
            48 56 64 72 80 88; 0 1 2; t6 t0 t1 t2 t3 t4;
            ("{t6}" "{lo}" 0, "{t0}" "{hi}" 8, "{t1}" "rdx" 16, "{t2}" "{t5}" 24, "{t3}" "{w}" 32, "{t4}" "{q}" 40)
        }
    };
}

macro_rules! product {
    (
        $n:literal, $inverse:literal $high:literal, $name:ident; $($operand:ident)+, $last:ident, $above:ident;
        $first:literal $second:literal $($words:literal)+; $top:literal; $($row:literal)+; $($upper:literal)+; $($rest:tt)*
    ) => {
        /// The product of any numbers. The caller has checked `mulx::is_available`.
        #[inline(always)]
        pub(super) fn $name(out: &mut [[u64; $n]; 2], a: &[u64; $n], b: &[u64; $n]) {
            // SAFETY: reads the limbs of both factors and writes those of the result; callers have checked
            // that the CPU has the instructions.
            unsafe {
                asm!(
                    "mov rdx, [{b}]",
                    concat!("mulx ", $second, ", ", $first, ", [{a}]"),
                    concat!("mov [{out}], ", $first),
                    start!("add"; $second $($words)+ $top; $($row)+),
                    rows!($($row)+; $second $($words)+ $top; $first; $($upper)+),
                    $($operand = out(reg) _,)+
                    $last = out(reg) _,
                    $above = out(reg) _,
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
    };
}

four!(product: product_4);
six!(product: product_6);

macro_rules! reduce {
    (
        $n:literal, $inverse:literal $high:literal, $name:ident $rows:literal $(+ $offset:literal)? $(- $multiple:literal)+;
        $($operand:ident)+, $last:ident, $above:ident; $($words:literal)+; $top:literal; $($row:literal)+;
        $upper:literal $($uppers:literal)+; $($step:literal)+; $($result:ident)+; $registers:tt
    ) => {
        /// A Montgomery reduction: divides by R. The table is the prime, the offset to add, and multiples of the prime
        /// to subtract unless the result would be negative. The caller has checked `mulx::is_available`.
        #[inline(always)]
        pub(super) fn $name(out: &mut [u64; $n], wide: &[[u64; $n]; 2], table: &'static [Prime; $rows]) {
            let [$(mut $operand,)+ $last] = wide[0];
            let $above;
            // SAFETY: reads the limbs of the number and the table, and writes registers only;
            // callers have checked that the CPU has the instructions.
            unsafe {
                asm!(
                    concat!("xor {", stringify!($above), ":e}, {", stringify!($above), ":e}"),
                    clear!($($step)+; $inverse $high; $($words)+; $top),
                    add!("w" + $upper; $registers),
                    $(add!("p" + $offset; $registers),)?
                    $(correct!($multiple; $registers),)+
                    $($operand = inout(reg) $operand,)+
                    $last = inout(reg) $last => _,
                    $above = out(reg) $above,
                    lo = out(reg) _,
                    hi = out(reg) _,
                    q = out(reg) _,
                    w = inout(reg) wide => _,
                    p = in(reg) table,
                    out("rdx") _,
                    options(pure, readonly, nostack),
                );
            }
            *out = [$($result),+];
        }
    };
}

four!(reduce: reduce_4_by_0 3 - 128);
four!(reduce: reduce_4_by_1 3 + 64 - 128);
four!(reduce: reduce_4_by_2 4 + 64 - 128 - 192);
four!(reduce: reduce_4_by_3 5 + 64 - 128 - 192 - 256);
six!(reduce: reduce_6_by_0 3 - 128);
six!(reduce: reduce_6_by_1 3 + 64 - 128);
six!(reduce: reduce_6_by_2 4 + 64 - 128 - 192);
six!(reduce: reduce_6_by_3 5 + 64 - 128 - 192 - 256);

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
