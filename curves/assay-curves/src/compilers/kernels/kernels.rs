//! The kernels in Rust, as in `portable.c`, `intrinsics.c` and `assembly.c`. Pointers are raw, so
//! that results may alias operands, and the compiler has no more information than for C.
#![allow(unsafe_code, reason = "pointers, intrinsics and inline assembly, as in C")]

use core::arch::asm;
use core::arch::x86_64::{_addcarry_u64, _subborrow_u64};

/// The prime of BN254, and minus its inverse modulo 2^64 in the last word.
static P4: [u64; 5] = [
    0x3c208c16d87cfd47,
    0x97816a916871ca8d,
    0xb85045b68181585d,
    0x30644e72e131a029,
    0x87d20782e4866389,
];

/// The prime of BLS12-381, and minus its inverse modulo 2^64 in the last word.
static P6: [u64; 7] = [
    0xb9feffffffffaaab,
    0x1eabfffeb153ffff,
    0x6730d2a0f6b0f624,
    0x64774b84f38512bf,
    0x4b1ba7b6434bacd7,
    0x1a0111ea397fe69a,
    0x89f3fffcfffcfffd,
];

/// One step per word, for 4 or 6 words, unrolled like the C macro of that name.
macro_rules! each {
    ($n:expr, $i:ident => $step:block) => {{
        each!(@ $i 0 $step); each!(@ $i 1 $step); each!(@ $i 2 $step); each!(@ $i 3 $step);
        if $n > 4 {
            each!(@ $i 4 $step); each!(@ $i 5 $step);
        }
    }};
    (@ $i:ident $value:literal $step:block) => {{
        const $i: usize = $value;
        $step
    }};
}

mod portable {
    #[inline(always)]
    fn add(a: u64, b: u64, carry: &mut u64) -> u64 {
        let (sum, first) = a.overflowing_add(b);
        let (sum, second) = sum.overflowing_add(*carry);
        *carry = u64::from(first | second);
        sum
    }

    #[inline(always)]
    fn subtract(a: u64, b: u64, borrow: &mut u64) -> u64 {
        let (difference, first) = a.overflowing_sub(b);
        let (difference, second) = difference.overflowing_sub(*borrow);
        *borrow = u64::from(first | second);
        difference
    }

    #[inline(always)]
    fn multiply_add(a: u64, b: u64, sum: u64, carry: &mut u64) -> u64 {
        let sum = u128::from(a) * u128::from(b) + u128::from(sum) + u128::from(*carry);
        *carry = (sum >> 64) as u64;
        sum as u64
    }

    pub unsafe fn add256(a: *mut u64, b: *const u64) {
        let mut carry = 0;
        for i in 0..4 {
            unsafe { *a.add(i) = add(*a.add(i), *b.add(i), &mut carry) };
        }
    }

    #[inline(always)]
    unsafe fn reduce_once(r: *mut u64, t: &[u64; 6], p: &[u64], n: usize) {
        let (mut less, mut borrow) = ([0; 6], 0);
        each!(n, I => { less[I] = subtract(t[I], p[I], &mut borrow) });
        let keep = 0u64.wrapping_sub(borrow);
        each!(n, I => { unsafe { *r.add(I) = (t[I] & keep) | (less[I] & !keep) } });
    }

    #[inline(always)]
    pub unsafe fn add_mod(r: *mut u64, a: *const u64, b: *const u64, p: &[u64], n: usize) {
        let (mut t, mut carry) = ([0; 6], 0);
        each!(n, I => { t[I] = unsafe { add(*a.add(I), *b.add(I), &mut carry) } });
        unsafe { reduce_once(r, &t, p, n) }
    }

    #[inline(always)]
    unsafe fn add_row(t: &mut [u64; 6], a: *const u64, word: u64, p: &[u64], n: usize) {
        let mut carry = 0;
        each!(n, J => { t[J] = multiply_add(unsafe { *a.add(J) }, word, t[J], &mut carry) });
        let (top, m) = (carry, t[0].wrapping_mul(p[n]));
        carry = 0;
        each!(n, J => { t[J.saturating_sub(1)] = multiply_add(m, p[J], t[J], &mut carry) });
        t[n - 1] = top.wrapping_add(carry);
    }

    #[inline(always)]
    pub unsafe fn mont_mul(r: *mut u64, a: *const u64, b: *const u64, p: &[u64], n: usize) {
        let mut t = [0; 6];
        each!(n, I => { unsafe { add_row(&mut t, a, *b.add(I), p, n) } });
        unsafe { reduce_once(r, &t, p, n) }
    }
}

#[allow(unused_unsafe, reason = "newer compilers have these intrinsics as safe functions")]
mod intrinsics {
    use super::{_addcarry_u64, _subborrow_u64};

    pub unsafe fn add256(a: *mut u64, b: *const u64) {
        let mut carry = 0;
        for i in 0..4 {
            carry = unsafe { _addcarry_u64(carry, *a.add(i), *b.add(i), &mut *a.add(i)) };
        }
    }

    #[cfg(target_feature = "bmi2")]
    #[inline(always)]
    unsafe fn product(a: u64, b: u64, high: &mut u64) -> u64 {
        unsafe { core::arch::x86_64::_mulx_u64(a, b, high) }
    }

    #[cfg(not(target_feature = "bmi2"))]
    #[inline(always)]
    unsafe fn product(a: u64, b: u64, high: &mut u64) -> u64 {
        let both = u128::from(a) * u128::from(b);
        *high = (both >> 64) as u64;
        both as u64
    }

    #[inline(always)]
    unsafe fn reduce_once(r: *mut u64, t: &[u64], p: &[u64], n: usize) {
        let (mut less, mut borrow) = ([0; 6], 0);
        each!(n, I => { borrow = unsafe { _subborrow_u64(borrow, t[I], p[I], &mut less[I]) } });
        let keep = 0u64.wrapping_sub(u64::from(borrow));
        each!(n, I => { unsafe { *r.add(I) = (t[I] & keep) | (less[I] & !keep) } });
    }

    #[inline(always)]
    pub unsafe fn add_mod(r: *mut u64, a: *const u64, b: *const u64, p: &[u64], n: usize) {
        let (mut t, mut carry) = ([0; 6], 0);
        each!(n, I => { carry = unsafe { _addcarry_u64(carry, *a.add(I), *b.add(I), &mut t[I]) } });
        unsafe { reduce_once(r, &t, p, n) }
    }

    /// Row `at` of the sum, from word `at` on.
    #[inline(always)]
    unsafe fn add_row(t: &mut [u64; 13], at: usize, a: *const u64, word: u64, n: usize) {
        let (mut low, mut high) = ([0; 6], [0; 6]);
        each!(n, J => { low[J] = unsafe { product(*a.add(J), word, &mut high[J]) } });
        let mut carry = 0;
        each!(n, J => { carry = unsafe { _addcarry_u64(carry, t[at + J], low[J], &mut t[at + J]) } });
        t[at + n] = t[at + n].wrapping_add(u64::from(carry));
        carry = 0;
        each!(n, J => { carry = unsafe { _addcarry_u64(carry, t[at + J + 1], high[J], &mut t[at + J + 1]) } });
    }

    #[inline(always)]
    pub unsafe fn mont_mul(r: *mut u64, a: *const u64, b: *const u64, p: &[u64], n: usize) {
        let mut t = [0; 13];
        each!(n, I => {
            unsafe {
                add_row(&mut t, I, a, *b.add(I), n);
                let m = t[I].wrapping_mul(p[n]);
                add_row(&mut t, I, p.as_ptr(), m, n);
            }
        });
        unsafe { reduce_once(r, &t[n..], p, n) }
    }
}

/// The code of `assembly.c` in the syntax of `asm!`.
mod assembly {
    use super::{P4, P6, asm};

    pub unsafe fn add256(a: *mut u64, b: *const u64) {
        unsafe {
            asm!(
                "mov {t0}, [{b}]", "mov {t1}, [{b} + 8]", "mov {t2}, [{b} + 16]", "mov {t3}, [{b} + 24]",
                "add [{a}], {t0}", "adc [{a} + 8], {t1}", "adc [{a} + 16], {t2}", "adc [{a} + 24], {t3}",
                t0 = out(reg) _, t1 = out(reg) _, t2 = out(reg) _, t3 = out(reg) _,
                a = in(reg) a, b = in(reg) b, options(nostack),
            );
        }
    }

    macro_rules! reduce_4 {
        ($t0:ident $t1:ident $t2:ident $t3:ident) => {
            asm!(
                "mov {s0}, {v0}", "mov {s1}, {v1}", "mov {s2}, {v2}", "mov {s3}, {v3}",
                "sub {s0}, [{p}]", "sbb {s1}, [{p} + 8]", "sbb {s2}, [{p} + 16]", "sbb {s3}, [{p} + 24]",
                "cmovnc {v0}, {s0}", "cmovnc {v1}, {s1}", "cmovnc {v2}, {s2}", "cmovnc {v3}, {s3}",
                v0 = inout(reg) $t0, v1 = inout(reg) $t1, v2 = inout(reg) $t2, v3 = inout(reg) $t3,
                s0 = out(reg) _, s1 = out(reg) _, s2 = out(reg) _, s3 = out(reg) _,
                p = in(reg) P4.as_ptr(), options(nostack),
            )
        };
    }

    macro_rules! reduce_6 {
        ($t0:ident $t1:ident $t2:ident $t3:ident $t4:ident $t5:ident) => {
            asm!(
                "mov {s0}, {v0}", "mov {s1}, {v1}", "mov {s2}, {v2}",
                "mov {s3}, {v3}", "mov {s4}, {v4}", "mov {s5}, {v5}",
                "sub {s0}, [{p}]", "sbb {s1}, [{p} + 8]", "sbb {s2}, [{p} + 16]",
                "sbb {s3}, [{p} + 24]", "sbb {s4}, [{p} + 32]", "sbb {s5}, [{p} + 40]",
                "cmovnc {v0}, {s0}", "cmovnc {v1}, {s1}", "cmovnc {v2}, {s2}",
                "cmovnc {v3}, {s3}", "cmovnc {v4}, {s4}", "cmovnc {v5}, {s5}",
                v0 = inout(reg) $t0, v1 = inout(reg) $t1, v2 = inout(reg) $t2,
                v3 = inout(reg) $t3, v4 = inout(reg) $t4, v5 = inout(reg) $t5,
                s0 = out(reg) _, s1 = out(reg) _, s2 = out(reg) _,
                s3 = out(reg) _, s4 = out(reg) _, s5 = out(reg) _,
                p = in(reg) P6.as_ptr(), options(nostack),
            )
        };
    }

    pub unsafe fn add_mod_4(r: *mut u64, a: *const u64, b: *const u64) {
        unsafe {
            let [mut t0, mut t1, mut t2, mut t3] = *a.cast::<[u64; 4]>();
            asm!(
                "add {t0}, [{b}]", "adc {t1}, [{b} + 8]", "adc {t2}, [{b} + 16]", "adc {t3}, [{b} + 24]",
                t0 = inout(reg) t0, t1 = inout(reg) t1, t2 = inout(reg) t2, t3 = inout(reg) t3,
                b = in(reg) b, options(nostack),
            );
            reduce_4!(t0 t1 t2 t3);
            *r.cast::<[u64; 4]>() = [t0, t1, t2, t3];
        }
    }

    pub unsafe fn add_mod_6(r: *mut u64, a: *const u64, b: *const u64) {
        unsafe {
            let [mut t0, mut t1, mut t2, mut t3, mut t4, mut t5] = *a.cast::<[u64; 6]>();
            asm!(
                "add {t0}, [{b}]", "adc {t1}, [{b} + 8]", "adc {t2}, [{b} + 16]",
                "adc {t3}, [{b} + 24]", "adc {t4}, [{b} + 32]", "adc {t5}, [{b} + 40]",
                t0 = inout(reg) t0, t1 = inout(reg) t1, t2 = inout(reg) t2,
                t3 = inout(reg) t3, t4 = inout(reg) t4, t5 = inout(reg) t5,
                b = in(reg) b, options(nostack),
            );
            reduce_6!(t0 t1 t2 t3 t4 t5);
            *r.cast::<[u64; 6]>() = [t0, t1, t2, t3, t4, t5];
        }
    }

    macro_rules! chains {
        ($factor:literal $top:literal; $($limb:literal $above:literal $at:literal),+) => {
            concat!(
                "xor {lo:e}, {lo:e}\n",
                $(
                    "mulx {hi}, {lo}, [{", $factor, "} + ", $at, "]\n",
                    "adcx {", $limb, "}, {lo}\n",
                    "adox {", $above, "}, {hi}\n",
                )+
                "adc {", $top, "}, 0\n",
            )
        };
    }

    macro_rules! first {
        ($top:literal; $($limb:literal $above:literal $at:literal),+) => {
            concat!(
                "mov rdx, [{b}]\n",
                "mulx {t1}, {t0}, [{a}]\n",
                "xor {lo:e}, {lo:e}\n",
                $(
                    "mulx {", $above, "}, {lo}, [{a} + ", $at, "]\n",
                    "adc {", $limb, "}, {lo}\n",
                )+
                "adc {", $top, "}, 0\n",
            )
        };
    }

    macro_rules! clear_4 {
        ($t0:literal $t1:literal $t2:literal $t3:literal $t4:literal) => {
            concat!(
                "mov rdx, {", $t0, "}\nimul rdx, [{p} + 32]\n",
                chains!("p" $t4; $t0 $t1 0, $t1 $t2 8, $t2 $t3 16, $t3 $t4 24),
            )
        };
    }

    macro_rules! clear_6 {
        ($t0:literal $t1:literal $t2:literal $t3:literal $t4:literal $t5:literal $t6:literal) => {
            concat!(
                "mov rdx, {", $t0, "}\nimul rdx, [{p} + 48]\n",
                chains!("p" $t6; $t0 $t1 0, $t1 $t2 8, $t2 $t3 16, $t3 $t4 24, $t4 $t5 32, $t5 $t6 40),
            )
        };
    }

    macro_rules! row_4 {
        ($at:literal; $t0:literal $t1:literal $t2:literal $t3:literal $t4:literal) => {
            concat!(
                "mov rdx, [{b} + ", $at, "]\n",
                chains!("a" $t4; $t0 $t1 0, $t1 $t2 8, $t2 $t3 16, $t3 $t4 24),
                clear_4!($t0 $t1 $t2 $t3 $t4),
            )
        };
    }

    macro_rules! row_6 {
        ($at:literal; $t0:literal $t1:literal $t2:literal $t3:literal $t4:literal $t5:literal $t6:literal) => {
            concat!(
                "mov rdx, [{b} + ", $at, "]\n",
                chains!("a" $t6; $t0 $t1 0, $t1 $t2 8, $t2 $t3 16, $t3 $t4 24, $t4 $t5 32, $t5 $t6 40),
                clear_6!($t0 $t1 $t2 $t3 $t4 $t5 $t6),
            )
        };
    }

    pub unsafe fn mont_mul_4(r: *mut u64, a: *const u64, b: *const u64) {
        unsafe {
            let (mut t0, mut t1, mut t2, mut t4): (u64, u64, u64, u64);
            asm!(
                first!("t4"; "t1" "t2" 8, "t2" "t3" 16, "t3" "t4" 24),
                clear_4!("t0" "t1" "t2" "t3" "t4"),
                row_4!(8; "t1" "t2" "t3" "t4" "t0"),
                row_4!(16; "t2" "t3" "t4" "t0" "t1"),
                row_4!(24; "t3" "t4" "t0" "t1" "t2"),
                t0 = out(reg) t0, t1 = out(reg) t1, t2 = out(reg) t2, t3 = out(reg) _, t4 = out(reg) t4,
                lo = out(reg) _, hi = out(reg) _,
                a = in(reg) a, b = in(reg) b, p = in(reg) P4.as_ptr(), out("rdx") _, options(nostack),
            );
            reduce_4!(t4 t0 t1 t2);
            *r.cast::<[u64; 4]>() = [t4, t0, t1, t2];
        }
    }

    pub unsafe fn mont_mul_6(r: *mut u64, a: *const u64, b: *const u64) {
        unsafe {
            let (mut t0, mut t1, mut t2, mut t3, mut t4, mut t6): (u64, u64, u64, u64, u64, u64);
            asm!(
                first!("t6"; "t1" "t2" 8, "t2" "t3" 16, "t3" "t4" 24, "t4" "t5" 32, "t5" "t6" 40),
                clear_6!("t0" "t1" "t2" "t3" "t4" "t5" "t6"),
                row_6!(8; "t1" "t2" "t3" "t4" "t5" "t6" "t0"),
                row_6!(16; "t2" "t3" "t4" "t5" "t6" "t0" "t1"),
                row_6!(24; "t3" "t4" "t5" "t6" "t0" "t1" "t2"),
                row_6!(32; "t4" "t5" "t6" "t0" "t1" "t2" "t3"),
                row_6!(40; "t5" "t6" "t0" "t1" "t2" "t3" "t4"),
                t0 = out(reg) t0, t1 = out(reg) t1, t2 = out(reg) t2, t3 = out(reg) t3, t4 = out(reg) t4,
                t5 = out(reg) _, t6 = out(reg) t6, lo = out(reg) _, hi = out(reg) _,
                a = in(reg) a, b = in(reg) b, p = in(reg) P6.as_ptr(), out("rdx") _, options(nostack),
            );
            reduce_6!(t6 t0 t1 t2 t3 t4);
            *r.cast::<[u64; 6]>() = [t6, t0, t1, t2, t3, t4];
        }
    }
}

/// Exports the kernels by name, never inlined into their callers.
macro_rules! export {
    ($($name:ident($($pointer:ident: $kind:ty),+) = $body:expr;)+) => {$(
        #[no_mangle]
        #[inline(never)]
        pub unsafe extern "C" fn $name($($pointer: $kind),+) {
            unsafe { $body }
        }
    )+};
}

export! {
    add256_portable(a: *mut u64, b: *const u64) = portable::add256(a, b);
    add256_intrinsics(a: *mut u64, b: *const u64) = intrinsics::add256(a, b);
    add256_assembly(a: *mut u64, b: *const u64) = assembly::add256(a, b);
    add_mod_4_portable(r: *mut u64, a: *const u64, b: *const u64) = portable::add_mod(r, a, b, &P4, 4);
    add_mod_4_intrinsics(r: *mut u64, a: *const u64, b: *const u64) = intrinsics::add_mod(r, a, b, &P4, 4);
    add_mod_4_assembly(r: *mut u64, a: *const u64, b: *const u64) = assembly::add_mod_4(r, a, b);
    add_mod_6_portable(r: *mut u64, a: *const u64, b: *const u64) = portable::add_mod(r, a, b, &P6, 6);
    add_mod_6_intrinsics(r: *mut u64, a: *const u64, b: *const u64) = intrinsics::add_mod(r, a, b, &P6, 6);
    add_mod_6_assembly(r: *mut u64, a: *const u64, b: *const u64) = assembly::add_mod_6(r, a, b);
    mont_mul_4_portable(r: *mut u64, a: *const u64, b: *const u64) = portable::mont_mul(r, a, b, &P4, 4);
    mont_mul_4_intrinsics(r: *mut u64, a: *const u64, b: *const u64) = intrinsics::mont_mul(r, a, b, &P4, 4);
    mont_mul_4_assembly(r: *mut u64, a: *const u64, b: *const u64) = assembly::mont_mul_4(r, a, b);
    mont_mul_6_portable(r: *mut u64, a: *const u64, b: *const u64) = portable::mont_mul(r, a, b, &P6, 6);
    mont_mul_6_intrinsics(r: *mut u64, a: *const u64, b: *const u64) = intrinsics::mont_mul(r, a, b, &P6, 6);
    mont_mul_6_assembly(r: *mut u64, a: *const u64, b: *const u64) = assembly::mont_mul_6(r, a, b);
}
