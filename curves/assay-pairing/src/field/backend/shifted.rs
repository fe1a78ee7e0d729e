//! Products modulo one prime with MULX and ADX, in which a sum stays in its registers: the step that clears its lowest
//! word writes the high halves of its products one place lower. `Fe::sum_of_products` has the bounds and is the oracle.
//!
//! Each prime has its own code with a fixed address: with six limbs that is faster by a tenth than an address in a
//! register, as in `mulx.rs` (docs/kernels/pairing-ifma.md). A sum is in r8 and the registers above it.

#![expect(unsafe_code, reason = "inline assembly")]

use core::arch::asm;

use super::{Prime, with_inverse};
use crate::field::primes;

pub(super) static BLS12_381: Prime = with_inverse(&primes::BLS12_381);
static BLS12_377: Prime = with_inverse(&primes::BLS12_377);

/// A function outside of LLVM's view, with its prime; arguments and results are in registers.
macro_rules! kernel {
    ($name:ident, $prime:ident: $($line:expr),+ $(,)?) => {
        #[unsafe(naked)]
        unsafe extern "C" fn $name() {
            core::arch::naked_asm!($($line,)+ "ret", prime = sym $prime);
        }
    };
}

/// Starts a sum with the product of rdx and a number.
macro_rules! start_6 {
    ($a:literal) => {
        concat!(
            "mulx r9, r8, [",
            $a,
            "]\n",
            "mulx r10, rax, [",
            $a,
            " + 8]\n",
            "add r9, rax\n",
            "mulx r11, rax, [",
            $a,
            " + 16]\n",
            "adc r10, rax\n",
            "mulx r12, rax, [",
            $a,
            " + 24]\n",
            "adc r11, rax\n",
            "mulx r13, rax, [",
            $a,
            " + 32]\n",
            "adc r12, rax\n",
            "mulx r14, rax, [",
            $a,
            " + 40]\n",
            "adc r13, rax\n",
            "adc r14, 0\n",
        )
    };
}

/// Adds the product of rdx and a number to a sum of six words, with a new one above them.
macro_rules! add_6 {
    ($a:literal) => {
        concat!(
            // Clears both carries.
            "xor r14d, r14d\n",
            "mulx r14, rax, [",
            $a,
            "]\n",
            "adox r8, rax\n",
            "adcx r9, r14\n",
            "mulx r14, rax, [",
            $a,
            " + 8]\n",
            "adox r9, rax\n",
            "adcx r10, r14\n",
            "mulx r14, rax, [",
            $a,
            " + 16]\n",
            "adox r10, rax\n",
            "adcx r11, r14\n",
            "mulx r14, rax, [",
            $a,
            " + 24]\n",
            "adox r11, rax\n",
            "adcx r12, r14\n",
            "mulx r14, rax, [",
            $a,
            " + 32]\n",
            "adox r12, rax\n",
            "adcx r13, r14\n",
            "mulx r14, rax, [",
            $a,
            " + 40]\n",
            "adox r13, rax\n",
            "mov edx, 0\n",
            "adcx r14, rdx\n",
            "adox r14, rdx\n",
        )
    };
}

/// The same for a sum of seven words.
macro_rules! add_7 {
    ($a:literal) => {
        concat!(
            "xor eax, eax\n",
            "mulx r15, rax, [",
            $a,
            "]\n",
            "adox r8, rax\n",
            "adcx r9, r15\n",
            "mulx r15, rax, [",
            $a,
            " + 8]\n",
            "adox r9, rax\n",
            "adcx r10, r15\n",
            "mulx r15, rax, [",
            $a,
            " + 16]\n",
            "adox r10, rax\n",
            "adcx r11, r15\n",
            "mulx r15, rax, [",
            $a,
            " + 24]\n",
            "adox r11, rax\n",
            "adcx r12, r15\n",
            "mulx r15, rax, [",
            $a,
            " + 32]\n",
            "adox r12, rax\n",
            "adcx r13, r15\n",
            "mulx r15, rax, [",
            $a,
            " + 40]\n",
            "adox r13, rax\n",
            "adcx r14, r15\n",
            "mov edx, 0\n",
            "adox r14, rdx\n",
        )
    };
}

/// Adds the multiple of the prime that clears the lowest of seven words, and leaves the six above
/// it. `-1 / p` is in a register: reading it from memory makes a product slower by a tenth.
macro_rules! clear_6 {
    ($inverse:literal) => {
        concat!(
            "mov rdx, r8\n",
            "imul rdx, ",
            $inverse,
            "\n",
            "xor eax, eax\n",
            "mulx r15, rax, [rip + {prime}]\n",
            "adcx rax, r8\n",
            "mov r8, r15\n",
            "mov r15d, 0\n",
            "adcx r8, r9\n",
            "mulx r9, rax, [rip + {prime} + 8]\n",
            "adox r8, rax\n",
            "adcx r9, r10\n",
            "mulx r10, rax, [rip + {prime} + 16]\n",
            "adox r9, rax\n",
            "adcx r10, r11\n",
            "mulx r11, rax, [rip + {prime} + 24]\n",
            "adox r10, rax\n",
            "adcx r11, r12\n",
            "mulx r12, rax, [rip + {prime} + 32]\n",
            "adox r11, rax\n",
            "adcx r12, r13\n",
            "mulx r13, rax, [rip + {prime} + 40]\n",
            "adox r12, rax\n",
            "adcx r15, r14\n",
            "adox r13, r15\n",
        )
    };
}

/// Subtracts the prime from six words unless they are below it. The first two registers are free here.
macro_rules! correct_6 {
    ($free0:literal, $free1:literal) => {
        concat!(
            "mov ",
            $free0,
            ", r8\n",
            "sub ",
            $free0,
            ", [rip + {prime}]\n",
            "mov ",
            $free1,
            ", r9\n",
            "sbb ",
            $free1,
            ", [rip + {prime} + 8]\n",
            "mov r15, r10\n",
            "sbb r15, [rip + {prime} + 16]\n",
            "mov rax, r11\n",
            "sbb rax, [rip + {prime} + 24]\n",
            "mov rdx, r12\n",
            "sbb rdx, [rip + {prime} + 32]\n",
            "mov r14, r13\n",
            "sbb r14, [rip + {prime} + 40]\n",
            "cmovnc r8, ",
            $free0,
            "\n",
            "cmovnc r9, ",
            $free1,
            "\n",
            "cmovnc r10, r15\n",
            "cmovnc r11, rax\n",
            "cmovnc r12, rdx\n",
            "cmovnc r13, r14\n",
        )
    };
}

macro_rules! store_6 {
    ($to:literal) => {
        concat!(
            "mov [",
            $to,
            "], r8\n",
            "mov [",
            $to,
            " + 8], r9\n",
            "mov [",
            $to,
            " + 16], r10\n",
            "mov [",
            $to,
            " + 24], r11\n",
            "mov [",
            $to,
            " + 32], r12\n",
            "mov [",
            $to,
            " + 40], r13\n",
        )
    };
}

/// Rows of all limbs but the first.
macro_rules! rows_6 {
    ($b:literal, $a:literal, $inverse:literal) => {
        concat!(
            "mov rdx, [",
            $b,
            " + 8]\n",
            add_6!($a),
            clear_6!($inverse),
            "mov rdx, [",
            $b,
            " + 16]\n",
            add_6!($a),
            clear_6!($inverse),
            "mov rdx, [",
            $b,
            " + 24]\n",
            add_6!($a),
            clear_6!($inverse),
            "mov rdx, [",
            $b,
            " + 32]\n",
            add_6!($a),
            clear_6!($inverse),
            "mov rdx, [",
            $b,
            " + 40]\n",
            add_6!($a),
            clear_6!($inverse),
        )
    };
}

/// A product without correction.
macro_rules! product_6 {
    ($b:literal, $a:literal, $inverse:literal) => {
        concat!(
            "mov rdx, [",
            $b,
            "]\n",
            start_6!($a),
            clear_6!($inverse),
            rows_6!($b, $a, $inverse)
        )
    };
}

/// The first row of the square of the number in registers.
macro_rules! start_square_6 {
    () => {
        concat!(
            "mov rdx, r8\n",
            "mulx r15, r8, r8\n",
            "mulx r14, r9, r9\n",
            "add r9, r15\n",
            "mulx r15, r10, r10\n",
            "adc r10, r14\n",
            "mulx r14, r11, r11\n",
            "adc r11, r15\n",
            "mulx r15, r12, r12\n",
            "adc r12, r14\n",
            "mulx r14, r13, r13\n",
            "adc r13, r15\n",
            "adc r14, 0\n",
        )
    };
}

/// Kernels over six limbs: the product of the numbers at `rsi` and `rdi`; and repeated squares of the number at
/// `rsi`, with the count in `rcx`, then the product of the last one and the factor at `rdi`. Squares are not
/// corrected: they stay below 2 p, since 4 p < R. They are stored on the stack, and kept in registers for the first
/// row of the next one, which would wait for the store otherwise.
macro_rules! kernels_6 {
    ($product:ident, $squares:ident, $prime:ident) => {
        kernel!(
            $product, $prime:
            "mov rcx, [rip + {prime} + 48]",
            product_6!("rdi", "rsi", "rcx"),
            correct_6!("rsi", "rdi"),
        );

        kernel!(
            $squares, $prime:
            "sub rsp, 64",
            "mov [rsp + 48], rcx",
            "mov [rsp + 56], rdi",
            "mov rcx, [rip + {prime} + 48]",
            "mov r8, [rsi]",
            "mov r9, [rsi + 8]",
            "mov r10, [rsi + 16]",
            "mov r11, [rsi + 24]",
            "mov r12, [rsi + 32]",
            "mov r13, [rsi + 40]",
            "2:",
            store_6!("rsp"),
            start_square_6!(),
            clear_6!("rcx"),
            rows_6!("rsp", "rsp", "rcx"),
            "dec qword ptr [rsp + 48]",
            "jnz 2b",
            store_6!("rsp"),
            "mov rdi, [rsp + 56]",
            product_6!("rdi", "rsp", "rcx"),
            correct_6!("rsi", "rdi"),
            "add rsp, 64",
        );
    };
}

kernels_6!(product_381, squares_381, BLS12_381);
kernels_6!(product_377, squares_377, BLS12_377);

pub(super) use {add_6, add_7, clear_6, correct_6, kernel, product_6, rows_6, start_6, store_6};

/// Calls a kernel of six limbs.
macro_rules! call_6 {
    ($kernel:ident, $a:ident, $b:ident, $count:expr) => {{
        let (t0, t1, t2, t3, t4, t5);
        // SAFETY: reads the limbs of both arrays and of the prime, and writes the listed registers;
        // callers have checked that the CPU has the instructions. The call pushes below the stack
        // pointer, which the compiler allows for.
        unsafe {
            asm!(
                "call {kernel}",
                kernel = sym $kernel,
                inout("rcx") $count => _,
                inout("rsi") $a => _,
                inout("rdi") $b => _,
                out("r8") t0,
                out("r9") t1,
                out("r10") t2,
                out("r11") t3,
                out("r12") t4,
                out("r13") t5,
                out("r14") _,
                out("r15") _,
                out("rax") _,
                out("rdx") _,
                options(pure, readonly),
            );
        }
        [t0, t1, t2, t3, t4, t5]
    }};
}

/// The Montgomery product of numbers whose product is below `p R`; `None` for an unknown prime.
///
/// The caller has checked `mulx::is_available`.
#[inline(always)]
pub(super) fn product(a: &[u64; 6], b: &[u64; 6], prime: &'static Prime) -> Option<[u64; 6]> {
    // Decided at compile time.
    if prime[0] == BLS12_381[0] {
        Some(call_6!(product_381, a, b, 0u64))
    } else if prime[0] == BLS12_377[0] {
        Some(call_6!(product_377, a, b, 0u64))
    } else {
        None
    }
}

/// Repeated squares of a number below p, and the product of the last one and a factor below p, for
/// 4 p < R. The count is not zero. `None` for an unknown prime.
///
/// The caller has checked `mulx::is_available`.
#[inline(always)]
pub(super) fn squares(
    a: &[u64; 6],
    count: u64,
    factor: &[u64; 6],
    prime: &'static Prime,
) -> Option<[u64; 6]> {
    if prime[0] == BLS12_381[0] {
        Some(call_6!(squares_381, a, factor, count))
    } else if prime[0] == BLS12_377[0] {
        Some(call_6!(squares_377, a, factor, count))
    } else {
        None
    }
}
