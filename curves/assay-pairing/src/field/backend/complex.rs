//! Products and squares of numbers `c0 + c1 u` with `u^2 = -1` modulo one prime, with MULX and ADX and the rows of `shifted.rs`.
//! `tower/tests.rs` has the oracle.

#![expect(unsafe_code, reason = "inline assembly")]

use core::arch::asm;

use super::shifted::{
    BLS12_381, add_6, add_7, clear_6, correct_6, kernel, product_6, rows_6, start_6, store_6,
};
use super::{Prime, with_inverse};
use crate::field::primes;

static BN254: Prime = with_inverse(&primes::BN254);
static NOGAMI: Prime = with_inverse(&primes::BN254_NOGAMI);

/// A limb of both second factors of a sum of two products.
macro_rules! pair_6 {
    ($b0:literal, $a0:literal; $b1:literal, $a1:literal) => {
        concat!(
            "mov rdx, [",
            $b0,
            "]\n",
            add_6!($a0),
            "mov rdx, [",
            $b1,
            "]\n",
            add_7!($a1),
            clear_6!("rbp"),
        )
    };
}

/// p minus a number, stored on the stack.
macro_rules! negated {
    ($first:literal; $($at:literal),+) => {
        concat!(
            "mov rax, [rip + {prime}]\n",
            "sub rax, [", $first, "]\n",
            "mov [rsp], rax\n",
            $(
                "mov rax, [rip + {prime} + ", $at, "]\n",
                "sbb rax, [", $first, " + ", $at, "]\n",
                "mov [rsp + ", $at, "], rax\n",
            )+
        )
    };
}

// The product `(a0 + a1 u) (b0 + b1 u)` for `u^2 = -1`, of the numbers at `rsi` and `rdi`, to `rcx`: two sums of two products
// each (Longa, 2022), the imaginary part first, since the real one takes `p - a1`.
kernel!(
    product_381, BLS12_381:
    "push rbx",
    "push rbp",
    "sub rsp, 56",
    "mov [rsp + 48], rcx",
    "mov rbp, [rip + {prime} + 48]",
    negated!("rsi + 48"; 8, 16, 24, 32, 40),
    "mov rdx, [rdi + 48]", start_6!("rsi"), "mov rdx, [rdi]", add_7!("rsi + 48"), clear_6!("rbp"),
    pair_6!("rdi + 56", "rsi"; "rdi + 8", "rsi + 48"),
    pair_6!("rdi + 64", "rsi"; "rdi + 16", "rsi + 48"),
    pair_6!("rdi + 72", "rsi"; "rdi + 24", "rsi + 48"),
    pair_6!("rdi + 80", "rsi"; "rdi + 32", "rsi + 48"),
    pair_6!("rdi + 88", "rsi"; "rdi + 40", "rsi + 48"),
    correct_6!("rbx", "rcx"),
    "mov rcx, [rsp + 48]",
    store_6!("rcx + 48"),
    "mov rdx, [rdi]", start_6!("rsi"), "mov rdx, [rdi + 48]", add_7!("rsp"), clear_6!("rbp"),
    pair_6!("rdi + 8", "rsi"; "rdi + 56", "rsp"),
    pair_6!("rdi + 16", "rsi"; "rdi + 64", "rsp"),
    pair_6!("rdi + 24", "rsi"; "rdi + 72", "rsp"),
    pair_6!("rdi + 32", "rsi"; "rdi + 80", "rsp"),
    pair_6!("rdi + 40", "rsi"; "rdi + 88", "rsp"),
    correct_6!("rbx", "rcx"),
    "mov rcx, [rsp + 48]",
    store_6!("rcx"),
    "add rsp, 56",
    "pop rbp",
    "pop rbx",
);

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

// The square of the number at `rsi`, to `rcx`: `(a0 + a1) (a0 + p - a1)` and `2 a0 a1`, of sums below 2 p, for 4 p < R.
kernel!(
    square_381, BLS12_381:
    "sub rsp, 152",
    "mov [rsp + 144], rcx",
    "mov rdi, [rip + {prime} + 48]",
    negated!("rsi + 48"; 8, 16, 24, 32, 40),
    added!("rsp", "rsi", "rsp"; 8, 16, 24, 32, 40),
    added!("rsi", "rsi + 48", "rsp + 48"; 8, 16, 24, 32, 40),
    added!("rsi", "rsi", "rsp + 96"; 8, 16, 24, 32, 40),
    product_6!("rsi + 48", "rsp + 96", "rdi"),
    correct_6!("rcx", "rsi"),
    "mov rcx, [rsp + 144]",
    store_6!("rcx + 48"),
    product_6!("rsp", "rsp + 48", "rdi"),
    correct_6!("rcx", "rsi"),
    "mov rcx, [rsp + 144]",
    store_6!("rcx"),
    "add rsp, 152",
);

/// The same over four limbs, with a sum in r8 to r12.
macro_rules! start_4 {
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
            "adc r12, 0\n",
        )
    };
}

/// Adds to a sum of four words, with a new one above them.
macro_rules! add_4 {
    ($a:literal) => {
        concat!(
            "xor r12d, r12d\n",
            "mulx r12, rax, [",
            $a,
            "]\n",
            "adox r8, rax\n",
            "adcx r9, r12\n",
            "mulx r12, rax, [",
            $a,
            " + 8]\n",
            "adox r9, rax\n",
            "adcx r10, r12\n",
            "mulx r12, rax, [",
            $a,
            " + 16]\n",
            "adox r10, rax\n",
            "adcx r11, r12\n",
            "mulx r12, rax, [",
            $a,
            " + 24]\n",
            "adox r11, rax\n",
            "mov edx, 0\n",
            "adcx r12, rdx\n",
            "adox r12, rdx\n",
        )
    };
}

/// The same for a sum of five words.
macro_rules! add_5 {
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
            "mov edx, 0\n",
            "adox r12, rdx\n",
        )
    };
}

macro_rules! clear_4 {
    () => {
        concat!(
            "mov rdx, r8\n",
            "imul rdx, r14\n",
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
            "adcx r15, r12\n",
            "adox r11, r15\n",
        )
    };
}

macro_rules! correct_4 {
    () => {
        concat!(
            "mov r12, r8\n",
            "sub r12, [rip + {prime}]\n",
            "mov rax, r9\n",
            "sbb rax, [rip + {prime} + 8]\n",
            "mov rdx, r10\n",
            "sbb rdx, [rip + {prime} + 16]\n",
            "mov r15, r11\n",
            "sbb r15, [rip + {prime} + 24]\n",
            "cmovnc r8, r12\n",
            "cmovnc r9, rax\n",
            "cmovnc r10, rdx\n",
            "cmovnc r11, r15\n",
        )
    };
}

macro_rules! store_4 {
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
        )
    };
}

macro_rules! pair_4 {
    ($b0:literal, $a0:literal; $b1:literal, $a1:literal) => {
        concat!(
            "mov rdx, [",
            $b0,
            "]\n",
            add_4!($a0),
            "mov rdx, [",
            $b1,
            "]\n",
            add_5!($a1),
            clear_4!(),
        )
    };
}

/// A product without correction.
macro_rules! product_4 {
    ($b:literal, $a:literal) => {
        concat!(
            "mov rdx, [",
            $b,
            "]\n",
            start_4!($a),
            clear_4!(),
            "mov rdx, [",
            $b,
            " + 8]\n",
            add_4!($a),
            clear_4!(),
            "mov rdx, [",
            $b,
            " + 16]\n",
            add_4!($a),
            clear_4!(),
            "mov rdx, [",
            $b,
            " + 24]\n",
            add_4!($a),
            clear_4!(),
        )
    };
}

/// Product and square as over six limbs.
macro_rules! complex_4 {
    ($product:ident, $square:ident, $prime:ident) => {
        kernel!(
            $product, $prime:
            "sub rsp, 32",
            "mov r14, [rip + {prime} + 32]",
            negated!("rsi + 32"; 8, 16, 24),
            "mov rdx, [rdi + 32]", start_4!("rsi"), "mov rdx, [rdi]", add_5!("rsi + 32"), clear_4!(),
            pair_4!("rdi + 40", "rsi"; "rdi + 8", "rsi + 32"),
            pair_4!("rdi + 48", "rsi"; "rdi + 16", "rsi + 32"),
            pair_4!("rdi + 56", "rsi"; "rdi + 24", "rsi + 32"),
            correct_4!(),
            store_4!("rcx + 32"),
            "mov rdx, [rdi]", start_4!("rsi"), "mov rdx, [rdi + 32]", add_5!("rsp"), clear_4!(),
            pair_4!("rdi + 8", "rsi"; "rdi + 40", "rsp"),
            pair_4!("rdi + 16", "rsi"; "rdi + 48", "rsp"),
            pair_4!("rdi + 24", "rsi"; "rdi + 56", "rsp"),
            correct_4!(),
            store_4!("rcx"),
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
            product_4!("rsi + 32", "rsp + 64"),
            correct_4!(),
            store_4!("rcx + 32"),
            product_4!("rsp", "rsp + 32"),
            correct_4!(),
            store_4!("rcx"),
            "add rsp, 96",
        );
    };
}

complex_4!(product_bn254, square_bn254, BN254);
complex_4!(product_nogami, square_nogami, NOGAMI);

/// A number `c0 + c1 u` as limbs, for reading.
pub(super) type Complex<const N: usize> = *const [[u64; N]; 2];

/// Calls a kernel that reads two numbers and writes one.
macro_rules! call_complex {
    ($kernel:ident, $out:ident, $a:ident, $b:ident) => {
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

/// Writes the product of two numbers for `u^2 = -1`; `false`, without writing anything, for an unknown prime.
///
/// # Safety
/// `out` does not overlap the factors, which are below the prime, and the CPU has the instructions.
#[inline(always)]
pub(super) unsafe fn product<const N: usize>(
    out: *mut [[u64; N]; 2],
    a: Complex<N>,
    b: Complex<N>,
    prime: &'static Prime,
) -> bool {
    // SAFETY: guaranteed by the caller; both numbers have twice as many limbs as the prime has, and
    // the test selects a prime of N limbs.
    unsafe {
        match N {
            6 if prime[0] == BLS12_381[0] => call_complex!(product_381, out, a, b),
            4 if prime[0] == BN254[0] => call_complex!(product_bn254, out, a, b),
            4 if prime[0] == NOGAMI[0] => call_complex!(product_nogami, out, a, b),
            _ => return false,
        }
    }
    true
}

/// Writes the square, as [`product`].
///
/// # Safety
/// As for [`product`].
#[inline(always)]
pub(super) unsafe fn square<const N: usize>(
    out: *mut [[u64; N]; 2],
    a: Complex<N>,
    prime: &'static Prime,
) -> bool {
    let b = a;
    // SAFETY: as above.
    unsafe {
        match N {
            6 if prime[0] == BLS12_381[0] => call_complex!(square_381, out, a, b),
            4 if prime[0] == BN254[0] => call_complex!(square_bn254, out, a, b),
            4 if prime[0] == NOGAMI[0] => call_complex!(square_nogami, out, a, b),
            _ => return false,
        }
    }
    true
}
