//! Products modulo one prime with MULX and ADX, in which a sum stays in its registers: the step that clears its lowest
//! word writes the high halves of its products one place lower. `Fe::sum_of_products` has the bounds and is the oracle.
//! Also products and squares of numbers `c0 + c1 u` with `u^2 = -1`, of which `tower/tests.rs` has the oracle.
//!
//! Each prime has its own code with a fixed address: with six limbs that is faster by a tenth than an address in a
//! register, as in `mulx.rs` (docs/kernels/pairing-ifma.md). A sum is in r8 and the registers above it.

#![expect(unsafe_code, reason = "inline assembly")]

use core::arch::asm;

use super::{Prime, with_inverse};
use crate::field::primes;

static BLS12_381: Prime = with_inverse(&primes::BLS12_381);
static BLS12_377: Prime = with_inverse(&primes::BLS12_377);
static BN254: Prime = with_inverse(&primes::BN254);
static NOGAMI: Prime = with_inverse(&primes::BN254_NOGAMI);

/// A function outside of LLVM's view, with its prime; arguments and results are in registers.
macro_rules! kernel {
    ($name:ident, $prime:ident: $($line:expr),+ $(,)?) => {
        #[unsafe(naked)]
        unsafe extern "C" fn $name() {
            core::arch::naked_asm!($($line,)+ "ret", prime = sym $prime);
        }
    };
}

/// Passes the registers of a sum of four words, the one above them, and those that are free at its correction.
macro_rules! four {
    ($part:ident!($($what:tt)*)) => { $part!($($what)*; ("r8" "r9" "r10" "r11"); "r12"; ("r12" "rax" "rdx" "r15")) };
}

/// The same of six words; two of the free registers depend on the kernel.
macro_rules! six {
    ($free0:literal $free1:literal $part:ident!($($what:tt)*)) => {
        $part!(
            $($what)*; ("r8" "r9" "r10" "r11" "r12" "r13"); "r14";
            ($free0 $free1 "r15" "rax" "rdx" "r14")
        )
    };
}

/// Starts a sum with the product of rdx and a number.
macro_rules! start {
    ($number:literal; ($first:literal $($words:literal)+); $top:literal) => {
        concat!(
            "mulx r9, ", $first, ", [", $number, "]\n",
            start_words!("add"; $number; $($words)+ $top; 8 16 24 32 40),
            "adc ", $top, ", 0\n",
        )
    };
}

macro_rules! start_words {
    ($add:literal; $number:literal; $top:literal; $($at:literal)*) => { "" };
    ($add:literal; $number:literal; $word:literal $above:literal $($words:literal)*; $at:literal $($ats:literal)*) => {
        concat!(
            "mulx ", $above, ", rax, [", $number, " + ", $at, "]\n",
            $add, " ", $word, ", rax\n",
            start_words!("adc"; $number; $above $($words)*; $($ats)*),
        )
    };
}

/// Adds the product of rdx and a number, and sets the word above.
macro_rules! add {
    ($number:literal; ($($words:literal)+); $top:literal) => {
        concat!(
            // Clears both carries.
            "xor ", $top, "d, ", $top, "d\n",
            add_words!($top; $number; $($words)+; 0 8 16 24 32 40),
            "mov edx, 0\n",
            "adcx ", $top, ", rdx\n",
            "adox ", $top, ", rdx\n",
        )
    };
}

/// The same for a sum that has the word above.
macro_rules! add_above {
    ($number:literal; ($($words:literal)+); $top:literal) => {
        concat!(
            "xor eax, eax\n",
            add_words!("r15"; $number; $($words)+; 0 8 16 24 32 40),
            "adcx ", $top, ", r15\n",
            "mov edx, 0\n",
            "adox ", $top, ", rdx\n",
        )
    };
}

macro_rules! add_words {
    ($high:literal; $number:literal; $last:literal; $at:literal $($ats:literal)*) => {
        concat!("mulx ", $high, ", rax, [", $number, " + ", $at, "]\nadox ", $last, ", rax\n")
    };
    ($high:literal; $number:literal; $word:literal $above:literal $($words:literal)*; $at:literal $($ats:literal)*) => {
        concat!(
            "mulx ", $high, ", rax, [", $number, " + ", $at, "]\n",
            "adox ", $word, ", rax\n",
            "adcx ", $above, ", ", $high, "\n",
            add_words!($high; $number; $above $($words)*; $($ats)*),
        )
    };
}

/// Adds the multiple of the prime that clears the lowest word, and leaves those above it. `-1 / p` is in a register:
/// reading it from memory makes a product of six limbs slower by a tenth.
macro_rules! clear {
    ($inverse:literal; ($($words:literal)+); $top:literal) => {
        concat!(
            "mov rdx, r8\n",
            "imul rdx, ", $inverse, "\n",
            "xor eax, eax\n",
            "mulx r15, rax, [rip + {prime}]\n",
            "adcx rax, r8\n",
            "mov r8, r15\n",
            "mov r15d, 0\n",
            "adcx r8, r9\n",
            clear_words!($($words)+; $top; 8 16 24 32 40),
        )
    };
}

macro_rules! clear_words {
    ($below:literal $last:literal; $top:literal; $at:literal $($ats:literal)*) => {
        concat!(
            "mulx ", $last, ", rax, [rip + {prime} + ", $at, "]\n",
            "adox ", $below, ", rax\n",
            "adcx r15, ", $top, "\n",
            "adox ", $last, ", r15\n",
        )
    };
    ($below:literal $word:literal $above:literal $($words:literal)*; $top:literal; $at:literal $($ats:literal)*) => {
        concat!(
            "mulx ", $word, ", rax, [rip + {prime} + ", $at, "]\n",
            "adox ", $below, ", rax\n",
            "adcx ", $word, ", ", $above, "\n",
            clear_words!($word $above $($words)*; $top; $($ats)*),
        )
    };
}

/// Subtracts the prime unless the number is below it.
macro_rules! correct {
    (; ($($word:literal)+); $top:literal; ($($free:literal)+)) => {
        concat!(
            subtract_prime!("sub"; $($word $free)+; 0 8 16 24 32 40),
            $("cmovnc ", $word, ", ", $free, "\n",)+
        )
    };
}

macro_rules! subtract_prime {
    ($code:literal; ; $($at:literal)*) => { "" };
    ($code:literal; $word:literal $free:literal $($words:literal)*; $at:literal $($ats:literal)*) => {
        concat!(
            "mov ", $free, ", ", $word, "\n",
            $code, " ", $free, ", [rip + {prime} + ", $at, "]\n",
            subtract_prime!("sbb"; $($words)*; $($ats)*),
        )
    };
}

macro_rules! store {
    ($to:literal; ($($word:literal)+); $top:literal; $free:tt) => {
        store_words!($to; $($word)+; 0 8 16 24 32 40)
    };
}

macro_rules! store_words {
    ($to:literal; ; $($at:literal)*) => { "" };
    ($to:literal; $word:literal $($words:literal)*; $at:literal $($ats:literal)*) => {
        concat!("mov [", $to, " + ", $at, "], ", $word, "\n", store_words!($to; $($words)*; $($ats)*))
    };
}

/// Rows of a product without correction: all limbs of the second factor, or those after the first row.
macro_rules! rows {
    ($b:literal, $a:literal, $inverse:literal; $($at:literal)+; $words:tt; $top:literal; $free:tt) => {
        concat!($(
            "mov rdx, [", $b, " + ", $at, "]\n",
            add!($a; $words; $top),
            clear!($inverse; $words; $top),
        )+)
    };
}

/// A product without correction.
macro_rules! product {
    ($b:literal, $a:literal, $inverse:literal; $($at:literal)+; $words:tt; $top:literal; $free:tt) => {
        concat!(
            "mov rdx, [", $b, "]\n",
            start!($a; $words; $top),
            clear!($inverse; $words; $top),
            rows!($b, $a, $inverse; $($at)+; $words; $top; $free),
        )
    };
}

/// A sum of two products without correction (Longa, 2022).
macro_rules! two_products {
    ($b0:literal, $a0:literal, $b1:literal, $a1:literal, $inverse:literal; $($at:literal)+; $words:tt; $top:literal; $free:tt) => {
        concat!(
            "mov rdx, [", $b0, "]\n",
            start!($a0; $words; $top),
            "mov rdx, [", $b1, "]\n",
            add_above!($a1; $words; $top),
            clear!($inverse; $words; $top),
            $(
                "mov rdx, [", $b0, " + ", $at, "]\n",
                add!($a0; $words; $top),
                "mov rdx, [", $b1, " + ", $at, "]\n",
                add_above!($a1; $words; $top),
                clear!($inverse; $words; $top),
            )+
        )
    };
}

/// p minus a number, stored on the stack.
macro_rules! negated {
    ($number:literal; $($at:literal),+) => {
        concat!(
            "mov rax, [rip + {prime}]\n",
            "sub rax, [", $number, "]\n",
            "mov [rsp], rax\n",
            $(
                "mov rax, [rip + {prime} + ", $at, "]\n",
                "sbb rax, [", $number, " + ", $at, "]\n",
                "mov [rsp + ", $at, "], rax\n",
            )+
        )
    };
}

/// A sum of words, each with its own offset, stored on the stack.
macro_rules! added {
    ($a:literal, $b:literal, $to:literal; $($at:literal),+) => {
        concat!(
            "mov rax, [", $a, "]\n",
            "add rax, [", $b, "]\n",
            "mov [", $to, "], rax\n",
            $(
                "mov rax, [", $a, " + ", $at, "]\n",
                "adc rax, [", $b, " + ", $at, "]\n",
                "mov [", $to, " + ", $at, "], rax\n",
            )+
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
            six!("rsi" "rdi" product!("rdi", "rsi", "rcx"; 8 16 24 32 40)),
            six!("rsi" "rdi" correct!()),
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
            six!("rsi" "rdi" store!("rsp")),
            "mov rdx, r8",
            "mulx r15, r8, r8",
            "mulx r14, r9, r9",
            "add r9, r15",
            "mulx r15, r10, r10",
            "adc r10, r14",
            "mulx r14, r11, r11",
            "adc r11, r15",
            "mulx r15, r12, r12",
            "adc r12, r14",
            "mulx r14, r13, r13",
            "adc r13, r15",
            "adc r14, 0",
            clear!("rcx"; ("r8" "r9" "r10" "r11" "r12" "r13"); "r14"),
            six!("rsi" "rdi" rows!("rsp", "rsp", "rcx"; 8 16 24 32 40)),
            "dec qword ptr [rsp + 48]",
            "jnz 2b",
            six!("rsi" "rdi" store!("rsp")),
            "mov rdi, [rsp + 56]",
            six!("rsi" "rdi" product!("rdi", "rsp", "rcx"; 8 16 24 32 40)),
            six!("rsi" "rdi" correct!()),
            "add rsp, 64",
        );
    };
}

kernels_6!(product_381, squares_381, BLS12_381);
kernels_6!(product_377, squares_377, BLS12_377);

// The product `(a0 + a1 u) (b0 + b1 u)` of the numbers at `rsi` and `rdi`, to `rcx`: two sums of two products each, the
// imaginary part first, since the real one takes `p - a1`.
kernel!(
    complex_product_381, BLS12_381:
    "push rbx",
    "push rbp",
    "sub rsp, 56",
    "mov [rsp + 48], rcx",
    "mov rbp, [rip + {prime} + 48]",
    negated!("rsi + 48"; 8, 16, 24, 32, 40),
    six!("rbx" "rcx" two_products!("rdi + 48", "rsi", "rdi", "rsi + 48", "rbp"; 8 16 24 32 40)),
    six!("rbx" "rcx" correct!()),
    "mov rcx, [rsp + 48]",
    six!("rbx" "rcx" store!("rcx + 48")),
    six!("rbx" "rcx" two_products!("rdi", "rsi", "rdi + 48", "rsp", "rbp"; 8 16 24 32 40)),
    six!("rbx" "rcx" correct!()),
    "mov rcx, [rsp + 48]",
    six!("rbx" "rcx" store!("rcx")),
    "add rsp, 56",
    "pop rbp",
    "pop rbx",
);

// The square of the number at `rsi`, to `rcx`: `(a0 + a1) (a0 + p - a1)` and `2 a0 a1`, of sums below 2 p, for 4 p < R.
kernel!(
    complex_square_381, BLS12_381:
    "sub rsp, 152",
    "mov [rsp + 144], rcx",
    "mov rdi, [rip + {prime} + 48]",
    negated!("rsi + 48"; 8, 16, 24, 32, 40),
    added!("rsp", "rsi", "rsp"; 8, 16, 24, 32, 40),
    added!("rsi", "rsi + 48", "rsp + 48"; 8, 16, 24, 32, 40),
    added!("rsi", "rsi", "rsp + 96"; 8, 16, 24, 32, 40),
    six!("rcx" "rsi" product!("rsi + 48", "rsp + 96", "rdi"; 8 16 24 32 40)),
    six!("rcx" "rsi" correct!()),
    "mov rcx, [rsp + 144]",
    six!("rcx" "rsi" store!("rcx + 48")),
    six!("rcx" "rsi" product!("rsp", "rsp + 48", "rdi"; 8 16 24 32 40)),
    six!("rcx" "rsi" correct!()),
    "mov rcx, [rsp + 144]",
    six!("rcx" "rsi" store!("rcx")),
    "add rsp, 152",
);

/// Product and square as over six limbs.
macro_rules! complex_4 {
    ($product:ident, $square:ident, $prime:ident) => {
        kernel!(
            $product, $prime:
            "sub rsp, 32",
            "mov r14, [rip + {prime} + 32]",
            negated!("rsi + 32"; 8, 16, 24),
            four!(two_products!("rdi + 32", "rsi", "rdi", "rsi + 32", "r14"; 8 16 24)),
            four!(correct!()),
            four!(store!("rcx + 32")),
            four!(two_products!("rdi", "rsi", "rdi + 32", "rsp", "r14"; 8 16 24)),
            four!(correct!()),
            four!(store!("rcx")),
            "add rsp, 32",
        );

        kernel!(
            $square, $prime:
            "sub rsp, 96",
            "mov r14, [rip + {prime} + 32]",
            negated!("rsi + 32"; 8, 16, 24),
            added!("rsp", "rsi", "rsp"; 8, 16, 24),
            added!("rsi", "rsi + 32", "rsp + 32"; 8, 16, 24),
            added!("rsi", "rsi", "rsp + 64"; 8, 16, 24),
            four!(product!("rsi + 32", "rsp + 64", "r14"; 8 16 24)),
            four!(correct!()),
            four!(store!("rcx + 32")),
            four!(product!("rsp", "rsp + 32", "r14"; 8 16 24)),
            four!(correct!()),
            four!(store!("rcx")),
            "add rsp, 96",
        );
    };
}

complex_4!(complex_product_bn254, complex_square_bn254, BN254);
complex_4!(complex_product_nogami, complex_square_nogami, NOGAMI);

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
        Some([t0, t1, t2, t3, t4, t5])
    }};
}

/// The Montgomery product of numbers whose product is below `p R`; `None` for an unknown prime, which is decided at
/// compile time.
///
/// The caller has checked `mulx::is_available`.
#[inline(always)]
pub(super) fn product(a: &[u64; 6], b: &[u64; 6], prime: &'static Prime) -> Option<[u64; 6]> {
    match prime[0] {
        first if first == BLS12_381[0] => call_6!(product_381, a, b, 0u64),
        first if first == BLS12_377[0] => call_6!(product_377, a, b, 0u64),
        _ => None,
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
    match prime[0] {
        first if first == BLS12_381[0] => call_6!(squares_381, a, factor, count),
        first if first == BLS12_377[0] => call_6!(squares_377, a, factor, count),
        _ => None,
    }
}

/// Calls a kernel that reads two numbers and writes one.
macro_rules! call_complex {
    ($kernel:ident, $out:ident, $a:ident, $b:expr) => {
        asm!(
            "call {kernel}",
            kernel = sym $kernel,
            inout("rsi") $a => _,
            inout("rdi") $b => _,
            in("rcx") $out,
            out("r8") _,
            out("r9") _,
            out("r10") _,
            out("r11") _,
            out("r12") _,
            out("r13") _,
            out("r14") _,
            out("r15") _,
            out("rax") _,
            out("rdx") _,
        )
    };
}

/// Writes the product of two numbers `c0 + c1 u` for `u^2 = -1`, or the square without the second; `false`, without
/// writing anything, for an unknown prime.
///
/// # Safety
/// `out` does not overlap the operands, which are below the prime, and the CPU has the instructions.
#[inline(always)]
pub(super) unsafe fn complex_product<const N: usize>(
    out: *mut [[u64; N]; 2],
    a: *const [[u64; N]; 2],
    b: Option<*const [[u64; N]; 2]>,
    prime: &'static Prime,
) -> bool {
    // SAFETY: guaranteed by the caller; both numbers have twice as many limbs as the prime has, and
    // the test selects a prime of N limbs.
    unsafe {
        match (N, b) {
            (6, Some(b)) if prime[0] == BLS12_381[0] => {
                call_complex!(complex_product_381, out, a, b);
            }
            (6, None) if prime[0] == BLS12_381[0] => call_complex!(complex_square_381, out, a, a),
            (4, Some(b)) if prime[0] == BN254[0] => call_complex!(complex_product_bn254, out, a, b),
            (4, None) if prime[0] == BN254[0] => call_complex!(complex_square_bn254, out, a, a),
            (4, Some(b)) if prime[0] == NOGAMI[0] => {
                call_complex!(complex_product_nogami, out, a, b);
            }
            (4, None) if prime[0] == NOGAMI[0] => call_complex!(complex_square_nogami, out, a, a),
            _ => return false,
        }
    }
    true
}
