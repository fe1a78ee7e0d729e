//! Sums and differences modulo a prime, with one carry chain each. In plain Rust, compilers turn
//! borrows of constants into comparisons, and dependent code into branches.

#![expect(unsafe_code, reason = "inline assembly")]

use core::arch::asm;

use super::Prime;

/// `a + b`, minus the prime unless that is negative.
#[inline(always)]
pub(super) fn plus_6(a: &[u64; 6], b: &[u64; 6], prime: &'static Prime) -> [u64; 6] {
    let [mut t0, mut t1, mut t2, mut t3, mut t4, mut t5] = *a;
    // SAFETY: reads the limbs of b and of the prime, and writes registers alone.
    unsafe {
        asm!(
            "add {t0}, [{b}]",
            "adc {t1}, [{b} + 8]",
            "adc {t2}, [{b} + 16]",
            "adc {t3}, [{b} + 24]",
            "adc {t4}, [{b} + 32]",
            "adc {t5}, [{b} + 40]",
            "mov {s0}, {t0}",
            "mov {s1}, {t1}",
            "mov {s2}, {t2}",
            "mov {s3}, {t3}",
            "mov {s4}, {t4}",
            "mov {b}, {t5}",
            "sub {s0}, [{p}]",
            "sbb {s1}, [{p} + 8]",
            "sbb {s2}, [{p} + 16]",
            "sbb {s3}, [{p} + 24]",
            "sbb {s4}, [{p} + 32]",
            "sbb {b}, [{p} + 40]",
            "cmovnc {t0}, {s0}",
            "cmovnc {t1}, {s1}",
            "cmovnc {t2}, {s2}",
            "cmovnc {t3}, {s3}",
            "cmovnc {t4}, {s4}",
            "cmovnc {t5}, {b}",
            t0 = inout(reg) t0,
            t1 = inout(reg) t1,
            t2 = inout(reg) t2,
            t3 = inout(reg) t3,
            t4 = inout(reg) t4,
            t5 = inout(reg) t5,
            s0 = out(reg) _,
            s1 = out(reg) _,
            s2 = out(reg) _,
            s3 = out(reg) _,
            s4 = out(reg) _,
            b = inout(reg) b => _,
            p = in(reg) prime,
            options(pure, readonly, nostack),
        );
    }
    [t0, t1, t2, t3, t4, t5]
}

/// `a + b`, minus the prime unless that is negative.
#[inline(always)]
pub(super) fn plus_4(a: &[u64; 4], b: &[u64; 4], prime: &'static Prime) -> [u64; 4] {
    let [mut t0, mut t1, mut t2, mut t3] = *a;
    // SAFETY: reads the limbs of b and of the prime, and writes registers alone.
    unsafe {
        asm!(
            "add {t0}, [{b}]",
            "adc {t1}, [{b} + 8]",
            "adc {t2}, [{b} + 16]",
            "adc {t3}, [{b} + 24]",
            "mov {s0}, {t0}",
            "mov {s1}, {t1}",
            "mov {s2}, {t2}",
            "mov {b}, {t3}",
            "sub {s0}, [{p}]",
            "sbb {s1}, [{p} + 8]",
            "sbb {s2}, [{p} + 16]",
            "sbb {b}, [{p} + 24]",
            "cmovnc {t0}, {s0}",
            "cmovnc {t1}, {s1}",
            "cmovnc {t2}, {s2}",
            "cmovnc {t3}, {b}",
            t0 = inout(reg) t0,
            t1 = inout(reg) t1,
            t2 = inout(reg) t2,
            t3 = inout(reg) t3,
            s0 = out(reg) _,
            s1 = out(reg) _,
            s2 = out(reg) _,
            b = inout(reg) b => _,
            p = in(reg) prime,
            options(pure, readonly, nostack),
        );
    }
    [t0, t1, t2, t3]
}

/// `a - b`, plus the prime if that is negative.
#[inline(always)]
pub(super) fn minus_6(a: &[u64; 6], b: &[u64; 6], prime: &'static Prime) -> [u64; 6] {
    let [mut t0, mut t1, mut t2, mut t3, mut t4, mut t5] = *a;
    // SAFETY: reads the limbs of b and of the prime, and writes registers alone.
    unsafe {
        asm!(
            "sub {t0}, [{b}]",
            "sbb {t1}, [{b} + 8]",
            "sbb {t2}, [{b} + 16]",
            "sbb {t3}, [{b} + 24]",
            "sbb {t4}, [{b} + 32]",
            "sbb {t5}, [{b} + 40]",
            // All ones after a borrow.
            "sbb {b}, {b}",
            "mov {s0}, [{p}]",
            "mov {s1}, [{p} + 8]",
            "mov {s2}, [{p} + 16]",
            "mov {s3}, [{p} + 24]",
            "mov {s4}, [{p} + 32]",
            "and {s0}, {b}",
            "and {s1}, {b}",
            "and {s2}, {b}",
            "and {s3}, {b}",
            "and {s4}, {b}",
            "and {b}, [{p} + 40]",
            "add {t0}, {s0}",
            "adc {t1}, {s1}",
            "adc {t2}, {s2}",
            "adc {t3}, {s3}",
            "adc {t4}, {s4}",
            "adc {t5}, {b}",
            t0 = inout(reg) t0,
            t1 = inout(reg) t1,
            t2 = inout(reg) t2,
            t3 = inout(reg) t3,
            t4 = inout(reg) t4,
            t5 = inout(reg) t5,
            s0 = out(reg) _,
            s1 = out(reg) _,
            s2 = out(reg) _,
            s3 = out(reg) _,
            s4 = out(reg) _,
            b = inout(reg) b => _,
            p = in(reg) prime,
            options(pure, readonly, nostack),
        );
    }
    [t0, t1, t2, t3, t4, t5]
}

/// `a - b`, plus the prime if that is negative.
#[inline(always)]
pub(super) fn minus_4(a: &[u64; 4], b: &[u64; 4], prime: &'static Prime) -> [u64; 4] {
    let [mut t0, mut t1, mut t2, mut t3] = *a;
    // SAFETY: reads the limbs of b and of the prime, and writes registers alone.
    unsafe {
        asm!(
            "sub {t0}, [{b}]",
            "sbb {t1}, [{b} + 8]",
            "sbb {t2}, [{b} + 16]",
            "sbb {t3}, [{b} + 24]",
            // All ones after a borrow.
            "sbb {b}, {b}",
            "mov {s0}, [{p}]",
            "mov {s1}, [{p} + 8]",
            "mov {s2}, [{p} + 16]",
            "and {s0}, {b}",
            "and {s1}, {b}",
            "and {s2}, {b}",
            "and {b}, [{p} + 24]",
            "add {t0}, {s0}",
            "adc {t1}, {s1}",
            "adc {t2}, {s2}",
            "adc {t3}, {b}",
            t0 = inout(reg) t0,
            t1 = inout(reg) t1,
            t2 = inout(reg) t2,
            t3 = inout(reg) t3,
            s0 = out(reg) _,
            s1 = out(reg) _,
            s2 = out(reg) _,
            b = inout(reg) b => _,
            p = in(reg) prime,
            options(pure, readonly, nostack),
        );
    }
    [t0, t1, t2, t3]
}

/// `a + b`, which is below 2^384.
#[inline(always)]
pub(super) fn add_6(a: &mut [u64; 6], b: &[u64; 6]) {
    // SAFETY: reads the limbs of b and writes registers alone.
    unsafe {
        let [t0, t1, t2, t3, t4, t5] = a;
        asm!(
            "add {t0}, [{b}]",
            "adc {t1}, [{b} + 8]",
            "adc {t2}, [{b} + 16]",
            "adc {t3}, [{b} + 24]",
            "adc {t4}, [{b} + 32]",
            "adc {t5}, [{b} + 40]",
            t0 = inout(reg) *t0,
            t1 = inout(reg) *t1,
            t2 = inout(reg) *t2,
            t3 = inout(reg) *t3,
            t4 = inout(reg) *t4,
            t5 = inout(reg) *t5,
            b = in(reg) b,
            options(pure, readonly, nostack),
        );
    }
}

/// `a + b`, which is below 2^256.
#[inline(always)]
pub(super) fn add_4(a: &mut [u64; 4], b: &[u64; 4]) {
    // SAFETY: reads the limbs of b and writes registers alone.
    unsafe {
        let [t0, t1, t2, t3] = a;
        asm!(
            "add {t0}, [{b}]",
            "adc {t1}, [{b} + 8]",
            "adc {t2}, [{b} + 16]",
            "adc {t3}, [{b} + 24]",
            t0 = inout(reg) *t0,
            t1 = inout(reg) *t1,
            t2 = inout(reg) *t2,
            t3 = inout(reg) *t3,
            b = in(reg) b,
            options(pure, readonly, nostack),
        );
    }
}

/// Half of a number below the prime, modulo the prime: for an odd number, half of its sum with the prime.
#[inline(always)]
pub(super) fn half_6(a: &[u64; 6], prime: &'static Prime) -> [u64; 6] {
    let [mut t0, mut t1, mut t2, mut t3, mut t4, mut t5] = *a;
    // SAFETY: reads the limbs of the prime, and writes registers alone.
    unsafe {
        asm!(
            "mov {m}, {t0}",
            "and {m}, 1",
            "neg {m}",
            "mov {s0}, [{p}]",
            "and {s0}, {m}",
            "mov {s1}, [{p} + 8]",
            "and {s1}, {m}",
            "mov {s2}, [{p} + 16]",
            "and {s2}, {m}",
            "mov {s3}, [{p} + 24]",
            "and {s3}, {m}",
            "mov {s4}, [{p} + 32]",
            "and {s4}, {m}",
            "and {m}, [{p} + 40]",
            "add {t0}, {s0}",
            "adc {t1}, {s1}",
            "adc {t2}, {s2}",
            "adc {t3}, {s3}",
            "adc {t4}, {s4}",
            "adc {t5}, {m}",
            "shrd {t0}, {t1}, 1",
            "shrd {t1}, {t2}, 1",
            "shrd {t2}, {t3}, 1",
            "shrd {t3}, {t4}, 1",
            "shrd {t4}, {t5}, 1",
            "shr {t5}, 1",
            t0 = inout(reg) t0,
            t1 = inout(reg) t1,
            t2 = inout(reg) t2,
            t3 = inout(reg) t3,
            t4 = inout(reg) t4,
            t5 = inout(reg) t5,
            s0 = out(reg) _,
            s1 = out(reg) _,
            s2 = out(reg) _,
            s3 = out(reg) _,
            s4 = out(reg) _,
            m = out(reg) _,
            p = in(reg) prime,
            options(pure, readonly, nostack),
        );
    }
    [t0, t1, t2, t3, t4, t5]
}

/// Half of a number below the prime, modulo the prime: for an odd number, half of its sum with the prime.
#[inline(always)]
pub(super) fn half_4(a: &[u64; 4], prime: &'static Prime) -> [u64; 4] {
    let [mut t0, mut t1, mut t2, mut t3] = *a;
    // SAFETY: reads the limbs of the prime, and writes registers alone.
    unsafe {
        asm!(
            "mov {m}, {t0}",
            "and {m}, 1",
            "neg {m}",
            "mov {s0}, [{p}]",
            "and {s0}, {m}",
            "mov {s1}, [{p} + 8]",
            "and {s1}, {m}",
            "mov {s2}, [{p} + 16]",
            "and {s2}, {m}",
            "and {m}, [{p} + 24]",
            "add {t0}, {s0}",
            "adc {t1}, {s1}",
            "adc {t2}, {s2}",
            "adc {t3}, {m}",
            "shrd {t0}, {t1}, 1",
            "shrd {t1}, {t2}, 1",
            "shrd {t2}, {t3}, 1",
            "shr {t3}, 1",
            t0 = inout(reg) t0,
            t1 = inout(reg) t1,
            t2 = inout(reg) t2,
            t3 = inout(reg) t3,
            s0 = out(reg) _,
            s1 = out(reg) _,
            s2 = out(reg) _,
            m = out(reg) _,
            p = in(reg) prime,
            options(pure, readonly, nostack),
        );
    }
    [t0, t1, t2, t3]
}
