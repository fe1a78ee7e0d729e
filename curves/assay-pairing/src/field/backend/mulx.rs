//! Products modulo a prime with MULX and ADX: two carry chains at once, one for the low halves of
//! products and one for the high ones.
//!
//! Montgomery multiplication, one limb of a factor at a time; `Fe::sum_of_products` has the bounds and is the oracle.

#![expect(unsafe_code, reason = "inline assembly")]

use core::arch::asm;

use super::Prime;
use assay_hash::cpu::{CpuFeature, has};

/// True if this CPU has the instructions.
#[inline(always)]
pub(super) fn is_available() -> bool {
    has(CpuFeature::Adx)
}

/// Adds the product of `rdx` and a factor to the sum in registers; both carries are left for the word above the last.
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

/// The first row, without a sum to add to: one carry chain is enough.
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

/// Clears the lowest word of the sum by a multiple of the prime; both carries are left.
macro_rules! clear_lowest {
    ($lowest:literal, $inverse:literal; $($limbs:tt)+) => {
        concat!(
            "mov rdx, ", $lowest, "\n",
            "imul rdx, [rcx + ", $inverse, "]\n",
            add_multiple!("rcx"; $($limbs)+),
        )
    };
}

/// Clears the lowest of six words, which is then reused as the top one.
macro_rules! clear_6 {
    ($t0:literal $t1:literal $t2:literal $t3:literal $t4:literal $t5:literal $t6:literal) => {
        concat!(
            clear_lowest!($t0, 48; $t0 $t1 0, $t1 $t2 8, $t2 $t3 16, $t3 $t4 24, $t4 $t5 32, $t5 $t6 40),
            "adc ", $t6, ", 0\n",
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

/// A product by operands in memory, as a function outside of LLVM's view: `rsi` and `rdi` are the factors, `rcx` the
/// prime, and the result is returned in registers. A result in memory would be copied two words at a time, and a load
/// of two words that were stored one by one stalls until both are in the cache, longer than a fifth of the product.
macro_rules! kernel {
    ($name:ident: $($line:expr),+ $(,)?) => {
        #[unsafe(naked)]
        unsafe extern "C" fn $name() {
            core::arch::naked_asm!($($line,)+ "ret");
        }
    };
}

pub(super) use {add_multiple, clear_4, clear_6, clear_lowest, kernel};

/// All rows of a product, and its correction. The result is in r12 and r8 to r10.
macro_rules! product {
    () => {
        concat!(
            start_row!("r8", "r9"; "r9" "r10" 8, "r10" "r11" 16, "r11" "r12" 24; "r12"),
            clear_4!("r8" "r9" "r10" "r11" "r12"),
            row_4!(8; "r9" "r10" "r11" "r12" "r8"),
            row_4!(16; "r10" "r11" "r12" "r8" "r9"),
            row_4!(24; "r11" "r12" "r8" "r9" "r10"),
            "mov r15, r12\n",
            "mov rax, r8\n",
            "mov rdx, r9\n",
            "mov r11, r10\n",
            "sub r15, [rcx]\n",
            "sbb rax, [rcx + 8]\n",
            "sbb rdx, [rcx + 16]\n",
            "sbb r11, [rcx + 24]\n",
            "cmovnc r12, r15\n",
            "cmovnc r8, rax\n",
            "cmovnc r9, rdx\n",
            "cmovnc r10, r11\n",
        )
    };
}

kernel!(kernel_4: product!());

/// The first row of a square whose limbs are in registers, the same that hold the sum above its lowest word.
macro_rules! start_square {
    ($lowest:literal, $first:literal; $($limb:literal $above:literal),+; $top:literal) => {
        concat!(
            "mov rdx, ", $first, "\n",
            "mulx ", $first, ", ", $lowest, ", ", $first, "\n",
            // Clears the carry.
            "xor r15d, r15d\n",
            $(
                "mulx ", $above, ", r15, ", $above, "\n",
                "adc ", $limb, ", r15\n",
            )+
            "adc ", $top, ", 0\n",
        )
    };
}

// Repeated squares of the number at `rsi`, with the count in `rdx`, then the product of the last one and the factor
// at `rdi`. Squares are not corrected: they stay below 2 p, since 4 p < R. They are stored on the stack, and kept in
// registers for the first row of the next one, which would wait for the store otherwise.
kernel!(
    squares_times_4:
    "sub rsp, 48",
    "mov [rsp + 32], rdx",
    "mov [rsp + 40], rdi",
    "mov r9, [rsi]",
    "mov r10, [rsi + 8]",
    "mov r11, [rsi + 16]",
    "mov r12, [rsi + 24]",
    "mov rsi, rsp",
    "mov rdi, rsp",
    "2:",
    "mov [rsp], r9",
    "mov [rsp + 8], r10",
    "mov [rsp + 16], r11",
    "mov [rsp + 24], r12",
    start_square!("r8", "r9"; "r9" "r10", "r10" "r11", "r11" "r12"; "r12"),
    clear_4!("r8" "r9" "r10" "r11" "r12"),
    row_4!(8; "r9" "r10" "r11" "r12" "r8"),
    row_4!(16; "r10" "r11" "r12" "r8" "r9"),
    row_4!(24; "r11" "r12" "r8" "r9" "r10"),
    "mov rax, r12",
    "mov r12, r10",
    "mov r11, r9",
    "mov r10, r8",
    "mov r9, rax",
    "dec qword ptr [rsp + 32]",
    "jnz 2b",
    "mov [rsp], r9",
    "mov [rsp + 8], r10",
    "mov [rsp + 16], r11",
    "mov [rsp + 24], r12",
    "mov rdi, [rsp + 40]",
    product!(),
    "add rsp, 48",
);

/// The Montgomery product of numbers whose product is below `p R`.
///
/// The caller has checked [`is_available`].
#[inline(always)]
pub(super) fn product_4(a: &[u64; 4], b: &[u64; 4], prime: &'static Prime) -> [u64; 4] {
    let (t0, t1, t2, t3);
    // SAFETY: reads the limbs of both arrays and of the prime, and writes the listed registers; callers have checked
    // that the CPU has the instructions. The call pushes below the stack pointer, which the compiler allows for.
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

/// Repeated squares of a number below p times a factor below p, for 4 p < R. The count is not zero.
///
/// The caller has checked [`is_available`].
#[inline(always)]
pub(super) fn squares_4(
    a: &[u64; 4],
    count: u64,
    factor: &[u64; 4],
    prime: &'static Prime,
) -> [u64; 4] {
    let (t0, t1, t2, t3);
    // SAFETY: as in `product_4`. Squares are stored on the stack, below the data of the compiler.
    unsafe {
        asm!(
            "call {kernel}",
            kernel = sym squares_times_4,
            inout("rsi") a => _,
            inout("rdi") factor => _,
            in("rcx") prime,
            inout("rdx") count => _,
            out("r12") t0,
            out("r8") t1,
            out("r9") t2,
            out("r10") t3,
            out("r11") _,
            out("r15") _,
            out("rax") _,
            options(pure, readonly),
        );
    }
    [t0, t1, t2, t3]
}
