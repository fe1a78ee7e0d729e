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

/// Adds a number in `rdx` times a factor to the sum in registers; both carries are left for the word above the last.
macro_rules! add_multiple {
    ($a:literal; $($limb:literal $above:literal $at:literal),+) => {
        concat!(
            // Clears both carries.
            "xor r15d, r15d\n",
            $(
                "mulx rax, r15, [", $a, " + ", $at, "]\n",
                "adcx ", $limb, ", r15\n",
                "adox ", $above, ", rax\n",
            )+
        )
    };
}

/// Adds a limb of one factor times the other to the sum in registers, of which the last is the word above.
macro_rules! add_row {
    ($b:literal, $top:literal; $($limbs:tt)+) => {
        concat!(
            "mov rdx, [rdi + ", $b, "]\n",
            add_multiple!("rsi"; $($limbs)+),
            "adc ", $top, ", 0\n",
        )
    };
}

/// The first of all rows, which there is nothing to add to: one chain of carries is enough.
macro_rules! start_row {
    ($lowest:literal, $first:literal; $($limb:literal $above:literal $at:literal),+; $top:literal) => {
        concat!(
            "mov rdx, [rdi]\n",
            "mulx ", $first, ", ", $lowest, ", [rsi]\n",
            // Clears the carry.
            "xor r15d, r15d\n",
            $(
                "mulx ", $above, ", r15, [rsi + ", $at, "]\n",
                "adc ", $limb, ", r15\n",
            )+
            "adc ", $top, ", 0\n",
        )
    };
}

/// Makes the lowest word of the sum zero by a multiple of the prime; both carries are left.
macro_rules! clear_lowest {
    ($lowest:literal, $inverse:literal; $($limbs:tt)+) => {
        concat!(
            "mov rdx, ", $lowest, "\n",
            "imul rdx, [rcx + ", $inverse, "]\n",
            add_multiple!("rcx"; $($limbs)+),
        )
    };
}

/// Clears the lowest of six words; then it is zero and takes the place of the top one.
macro_rules! clear_6 {
    ($t0:literal $t1:literal $t2:literal $t3:literal $t4:literal $t5:literal $t6:literal) => {
        concat!(
            clear_lowest!($t0, 48; $t0 $t1 0, $t1 $t2 8, $t2 $t3 16, $t3 $t4 24, $t4 $t5 32, $t5 $t6 40),
            "adc ", $t6, ", 0\n",
        )
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
        concat!(
            clear_lowest!($t0, 32; $t0 $t1 0, $t1 $t2 8, $t2 $t3 16, $t3 $t4 24),
            "adc ", $t4, ", 0\n",
        )
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

/// A product by numbers in memory, in a function that LLVM does not know: `rsi` and `rdi` are the factors, `rcx` the prime, and the
/// result comes back in registers. A result in memory would be copied two words at a time, and a load of two words that were
/// stored one by one waits until both are in the cache, longer than a fifth of the product.
macro_rules! kernel {
    ($name:ident: $($line:expr),+ $(,)?) => {
        #[unsafe(naked)]
        unsafe extern "C" fn $name() {
            core::arch::naked_asm!($($line,)+ "ret");
        }
    };
}

pub(super) use {add_multiple, clear_4, clear_6, clear_lowest, kernel};

kernel!(
    kernel_6:
    start_row!("r8", "r9"; "r9" "r10" 8, "r10" "r11" 16, "r11" "r12" 24, "r12" "r13" 32, "r13" "r14" 40; "r14"),
    clear_6!("r8" "r9" "r10" "r11" "r12" "r13" "r14"),
    row_6!(8; "r9" "r10" "r11" "r12" "r13" "r14" "r8"),
    row_6!(16; "r10" "r11" "r12" "r13" "r14" "r8" "r9"),
    row_6!(24; "r11" "r12" "r13" "r14" "r8" "r9" "r10"),
    row_6!(32; "r12" "r13" "r14" "r8" "r9" "r10" "r11"),
    row_6!(40; "r13" "r14" "r8" "r9" "r10" "r11" "r12"),
    "mov r15, r14",
    "mov rax, r8",
    "mov rdx, r9",
    "mov r13, r10",
    "mov rsi, r11",
    "mov rdi, r12",
    "sub r15, [rcx]",
    "sbb rax, [rcx + 8]",
    "sbb rdx, [rcx + 16]",
    "sbb r13, [rcx + 24]",
    "sbb rsi, [rcx + 32]",
    "sbb rdi, [rcx + 40]",
    "cmovnc r14, r15",
    "cmovnc r8, rax",
    "cmovnc r9, rdx",
    "cmovnc r10, r13",
    "cmovnc r11, rsi",
    "cmovnc r12, rdi",
);

kernel!(
    kernel_4:
    start_row!("r8", "r9"; "r9" "r10" 8, "r10" "r11" 16, "r11" "r12" 24; "r12"),
    clear_4!("r8" "r9" "r10" "r11" "r12"),
    row_4!(8; "r9" "r10" "r11" "r12" "r8"),
    row_4!(16; "r10" "r11" "r12" "r8" "r9"),
    row_4!(24; "r11" "r12" "r8" "r9" "r10"),
    "mov r15, r12",
    "mov rax, r8",
    "mov rdx, r9",
    "mov r11, r10",
    "sub r15, [rcx]",
    "sbb rax, [rcx + 8]",
    "sbb rdx, [rcx + 16]",
    "sbb r11, [rcx + 24]",
    "cmovnc r12, r15",
    "cmovnc r8, rax",
    "cmovnc r9, rdx",
    "cmovnc r10, r11",
);

/// The Montgomery product of numbers whose product is below `p R`.
///
/// The caller has seen [`is_available`] return true.
#[inline(always)]
pub(super) fn product_6(a: &[u64; 6], b: &[u64; 6], prime: &'static Prime) -> [u64; 6] {
    let (t0, t1, t2, t3, t4, t5);
    // SAFETY: reads the limbs of both arrays and of the prime, and writes the registers that are named; the words call it
    // where the CPU has the instructions. What the call pushes is below the stack pointer, which the compiler knows.
    unsafe {
        asm!(
            "call {kernel}",
            kernel = sym kernel_6,
            inout("rsi") a => _,
            inout("rdi") b => _,
            in("rcx") prime,
            out("r14") t0,
            out("r8") t1,
            out("r9") t2,
            out("r10") t3,
            out("r11") t4,
            out("r12") t5,
            out("r13") _,
            out("r15") _,
            out("rax") _,
            out("rdx") _,
            options(pure, readonly),
        );
    }
    [t0, t1, t2, t3, t4, t5]
}

/// The same over four limbs.
///
/// The caller has seen [`is_available`] return true.
#[inline(always)]
pub(super) fn product_4(a: &[u64; 4], b: &[u64; 4], prime: &'static Prime) -> [u64; 4] {
    let (t0, t1, t2, t3);
    // SAFETY: as in `product_6`.
    unsafe {
        asm!(
            "call {kernel}",
            kernel = sym kernel_4,
            in("rsi") a,
            in("rdi") b,
            in("rcx") prime,
            out("r12") t0,
            out("r8") t1,
            out("r9") t2,
            out("r10") t3,
            out("r11") _,
            out("r15") _,
            out("rax") _,
            out("rdx") _,
            options(pure, readonly),
        );
    }
    [t0, t1, t2, t3]
}
