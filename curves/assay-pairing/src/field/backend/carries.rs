//! Sums and differences modulo a prime, with one carry chain each. In plain Rust, compilers turn
//! borrows of constants into comparisons, and dependent code into branches.

#![expect(unsafe_code, reason = "inline assembly")]

use core::arch::asm;

use super::Prime;

/// An instruction on operands of the assembly: `add {t}, {s}`, `add {t}, [{p} + 8]` or `shrd {t}, {s}, 1`.
macro_rules! on {
    ($code:literal $to:ident, $from:ident[$at:literal]) => {
        concat!($code, " {", stringify!($to), "}, [{", stringify!($from), "} + ", $at, "]")
    };
    ($code:literal $to:ident, $from:ident $(, $bits:literal)?) => {
        concat!($code, " {", stringify!($to), "}, {", stringify!($from), "}" $(, ", ", $bits)?)
    };
    ($code:literal $to:ident, $number:literal) => {
        concat!($code, " {", stringify!($to), "}, ", $number)
    };
}

/// The functions over some number of limbs: registers of limbs and free ones, with offsets in bytes. The highest
/// limb has no free register; the one of an operand is used, which has been read by then.
macro_rules! carries {
    (
        $module:ident, $n:literal: $t0:ident $s0:ident, $($t:ident $s:ident $at:literal),+; $top:ident $top_at:literal;
        $($low:ident $high:ident),+
    ) => {
        pub(super) mod $module {
            use super::{Prime, asm};

            /// `a + b`, minus the prime unless that is negative.
            #[inline(always)]
            pub(crate) fn plus(a: &[u64; $n], b: &[u64; $n], prime: &'static Prime) -> [u64; $n] {
                let [mut $t0, $(mut $t,)+ mut $top] = *a;
                // SAFETY: reads the limbs of b and of the prime, and writes registers alone.
                unsafe {
                    asm!(
                        on!("add" $t0, b[0]),
                        $(on!("adc" $t, b[$at]),)+
                        on!("adc" $top, b[$top_at]),
                        on!("mov" $s0, $t0),
                        $(on!("mov" $s, $t),)+
                        on!("mov" b, $top),
                        on!("sub" $s0, p[0]),
                        $(on!("sbb" $s, p[$at]),)+
                        on!("sbb" b, p[$top_at]),
                        on!("cmovnc" $t0, $s0),
                        $(on!("cmovnc" $t, $s),)+
                        on!("cmovnc" $top, b),
                        $t0 = inout(reg) $t0,
                        $($t = inout(reg) $t,)+
                        $top = inout(reg) $top,
                        $s0 = out(reg) _,
                        $($s = out(reg) _,)+
                        b = inout(reg) b => _,
                        p = in(reg) prime,
                        options(pure, readonly, nostack),
                    );
                }
                [$t0, $($t,)+ $top]
            }

            /// `a - b`, plus the prime if that is negative.
            #[inline(always)]
            pub(crate) fn minus(a: &[u64; $n], b: &[u64; $n], prime: &'static Prime) -> [u64; $n] {
                let [mut $t0, $(mut $t,)+ mut $top] = *a;
                // SAFETY: reads the limbs of b and of the prime, and writes registers alone.
                unsafe {
                    asm!(
                        on!("sub" $t0, b[0]),
                        $(on!("sbb" $t, b[$at]),)+
                        on!("sbb" $top, b[$top_at]),
                        // All ones after a borrow.
                        on!("sbb" b, b),
                        on!("mov" $s0, p[0]),
                        $(on!("mov" $s, p[$at]),)+
                        on!("and" $s0, b),
                        $(on!("and" $s, b),)+
                        on!("and" b, p[$top_at]),
                        on!("add" $t0, $s0),
                        $(on!("adc" $t, $s),)+
                        on!("adc" $top, b),
                        $t0 = inout(reg) $t0,
                        $($t = inout(reg) $t,)+
                        $top = inout(reg) $top,
                        $s0 = out(reg) _,
                        $($s = out(reg) _,)+
                        b = inout(reg) b => _,
                        p = in(reg) prime,
                        options(pure, readonly, nostack),
                    );
                }
                [$t0, $($t,)+ $top]
            }

            /// `a + b`, which fits the limbs.
            #[inline(always)]
            pub(crate) fn add(a: &mut [u64; $n], b: &[u64; $n]) {
                let [$t0, $($t,)+ $top] = a;
                // SAFETY: reads the limbs of b and writes registers alone.
                unsafe {
                    asm!(
                        on!("add" $t0, b[0]),
                        $(on!("adc" $t, b[$at]),)+
                        on!("adc" $top, b[$top_at]),
                        $t0 = inout(reg) *$t0,
                        $($t = inout(reg) *$t,)+
                        $top = inout(reg) *$top,
                        b = in(reg) b,
                        options(pure, readonly, nostack),
                    );
                }
            }

            /// Half of a number below the prime, modulo the prime: for an odd number, half of its sum with the prime.
            #[inline(always)]
            pub(crate) fn half(a: &[u64; $n], prime: &'static Prime) -> [u64; $n] {
                let [mut $t0, $(mut $t,)+ mut $top] = *a;
                // SAFETY: reads the limbs of the prime, and writes registers alone.
                unsafe {
                    asm!(
                        on!("mov" m, $t0),
                        on!("and" m, 1),
                        "neg {m}",
                        on!("mov" $s0, p[0]),
                        on!("and" $s0, m),
                        $(
                            on!("mov" $s, p[$at]),
                            on!("and" $s, m),
                        )+
                        on!("and" m, p[$top_at]),
                        on!("add" $t0, $s0),
                        $(on!("adc" $t, $s),)+
                        on!("adc" $top, m),
                        $(on!("shrd" $low, $high, 1),)+
                        on!("shr" $top, 1),
                        $t0 = inout(reg) $t0,
                        $($t = inout(reg) $t,)+
                        $top = inout(reg) $top,
                        $s0 = out(reg) _,
                        $($s = out(reg) _,)+
                        m = out(reg) _,
                        p = in(reg) prime,
                        options(pure, readonly, nostack),
                    );
                }
                [$t0, $($t,)+ $top]
            }
        }
    };
}

carries!(four, 4: t0 s0, t1 s1 8, t2 s2 16; t3 24; t0 t1, t1 t2, t2 t3);
carries!(six, 6: t0 s0, t1 s1 8, t2 s2 16, t3 s3 24, t4 s4 32; t5 40; t0 t1, t1 t2, t2 t3, t3 t4, t4 t5);
