//! Products and sums of products modulo a prime whose address is in a register, with MULX and ADX: two carry chains at
//! once, one for the low halves of products and one for the high ones.
//!
//! Montgomery multiplication, one limb of the second factors at a time; `Fe::sum_of_products` has the bounds and is the
//! oracle. A sum of T products has T rows per reduction row, is reduced once, and never stores 2 N limbs (Longa,
//! "Efficient algorithms for large prime characteristic fields and their application to bilinear pairings", 2022,
//! section 3).

#![expect(unsafe_code, reason = "inline assembly")]

use core::arch::asm;

use super::Prime;
use assay_hash::cpu::{CpuFeature, has};

/// True if this CPU has the instructions.
#[inline(always)]
pub(super) fn is_available() -> bool {
    has(CpuFeature::Adx)
}

/// Adds the product of rdx and a number to a sum of words, of which the last one is above those of the product; both
/// carries are left for the word above.
macro_rules! add_multiple {
    ($number:literal; $($words:literal)+) => {
        // Clears both carries.
        concat!("xor r15d, r15d\n", add_limbs!($number; $($words)+; 0 8 16 24 32 40))
    };
}

macro_rules! add_limbs {
    ($number:literal; $top:literal; $($at:literal)*) => { "" };
    ($number:literal; $word:literal $above:literal $($words:literal)*; $at:literal $($ats:literal)*) => {
        concat!(
            "mulx rax, r15, [", $number, " + ", $at, "]\n",
            "adcx ", $word, ", r15\n",
            "adox ", $above, ", rax\n",
            add_limbs!($number; $above $($words)*; $($ats)*),
        )
    };
}

/// Adds a limb of the second factor at rdi times the first one at rsi; or, for the listed numbers of products, a limb
/// of each second factor times its first factor, with lists of pointers at rdi and rsi.
macro_rules! add_products {
    ($row:literal; ; ($($words:literal)+); $top:literal) => {
        concat!("mov rdx, [rdi + ", $row, "]\n", add_multiple!("rsi"; $($words)+ $top), "adc ", $top, ", 0\n")
    };
    ($row:literal; $($k:literal)+; $words:tt; $top:literal) => {
        concat!($(add_product!($row; $k; $words $top), "adc ", $top, ", 0\n",)+)
    };
}

macro_rules! add_product {
    ($row:literal; $k:literal; ($($words:literal)+) $top:literal) => {
        concat!(
            "mov r14, [rsi + 8*", $k, "]\n",
            "mov rdx, [rdi + 8*", $k, "]\n",
            "mov rdx, [rdx + ", $row, "]\n",
            add_multiple!("r14"; $($words)+ $top),
        )
    };
}

/// Adds the multiple of the prime that clears the lowest word of the sum; both carries are left for the word above.
macro_rules! clear_lowest {
    ($inverse:literal; $first:literal $($words:literal)+) => {
        concat!(
            "mov rdx, ", $first, "\n",
            "imul rdx, [rcx + ", $inverse, "]\n",
            add_multiple!("rcx"; $first $($words)+),
        )
    };
}

/// Rows of a product or a sum of products: adds multiples of the first factors and clears the lowest word of the sum,
/// whose register is that of the word above in the next row. Then subtracts the prime unless the result is below it.
macro_rules! rows {
    (; $inverse:literal; $($k:literal)*; $words:tt; $top:literal; $free:tt) => { correct!($words; $free) };
    (
        $row:literal $($rows:literal)*; $inverse:literal; $($k:literal)*;
        ($first:literal $second:literal $($words:literal)+); $top:literal; $free:tt
    ) => {
        concat!(
            add_products!($row; $($k)*; ($first $second $($words)+); $top),
            clear_lowest!($inverse; $first $second $($words)+ $top),
            "adc ", $top, ", 0\n",
            rows!($($rows)*; $inverse; $($k)*; ($second $($words)+ $top); $first; $free),
        )
    };
}

/// The same with a second word above: the sum may exceed 2^(64 N) between rows, and the last addition of a row and the
/// clearing may carry into that word. The result is below three times the prime.
macro_rules! rows_above {
    (; $inverse:literal; $($k:literal)+, $last:literal; $words:tt; $top:literal $above:literal; $free:tt) => {
        concat!(correct!($words; $free), correct!($words; $free))
    };
    (
        $row:literal $($rows:literal)*; $inverse:literal; $($k:literal)+, $last:literal;
        ($first:literal $second:literal $($words:literal)+); $top:literal $above:literal; $free:tt
    ) => {
        concat!(
            add_products!($row; $($k)+; ($first $second $($words)+); $top),
            add_product!($row; $last; ($first $second $($words)+) $top),
            carry_above!($top $above),
            clear_lowest!($inverse; $first $second $($words)+ $top),
            carry_above!($top $above),
            rows_above!($($rows)*; $inverse; $($k)+, $last; ($second $($words)+ $top); $above $first; $free),
        )
    };
}

/// Adds both carries to the two words above.
macro_rules! carry_above {
    ($top:literal $above:literal) => {
        concat!(
            // No flag changes here, and the additions preserve each other's.
            "mov eax, 0\n",
            "adcx ",
            $top,
            ", rax\n",
            "adcx ",
            $above,
            ", rax\n",
            "adox ",
            $above,
            ", rax\n",
        )
    };
}

/// Subtracts the prime from a number in registers unless it is below the prime; nothing without free registers.
macro_rules! correct {
    ($words:tt; ()) => { "" };
    (($($word:literal)+); ($($free:literal)+)) => {
        concat!(
            $("mov ", $free, ", ", $word, "\n",)+
            subtract_prime!("sub"; $($free)+; 0 8 16 24 32 40),
            $("cmovnc ", $word, ", ", $free, "\n",)+
        )
    };
}

macro_rules! subtract_prime {
    ($code:literal; ; $($at:literal)*) => { "" };
    ($code:literal; $word:literal $($words:literal)*; $at:literal $($ats:literal)*) => {
        concat!($code, " ", $word, ", [rcx + ", $at, "]\n", subtract_prime!("sbb"; $($words)*; $($ats)*))
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

/// All rows of a product, and its correction. The result is in r12 and r8 to r10.
macro_rules! product_4 {
    () => {
        concat!(
            "mov rdx, [rdi]\n",
            "mulx r9, r8, [rsi]\n",
            // Clears the carry.
            "xor r15d, r15d\n",
            "mulx r10, r15, [rsi + 8]\n",
            "adc r9, r15\n",
            "mulx r11, r15, [rsi + 16]\n",
            "adc r10, r15\n",
            "mulx r12, r15, [rsi + 24]\n",
            "adc r11, r15\n",
            "adc r12, 0\n",
            clear_lowest!(32; "r8" "r9" "r10" "r11" "r12"),
            "adc r12, 0\n",
            rows!(8 16 24; 32; ; ("r9" "r10" "r11" "r12"); "r8"; ("r15" "rax" "rdx" "r11")),
        )
    };
}

kernel!(kernel_4: product_4!());

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
    // The registers of the number are those of the sum above its lowest word.
    "mov rdx, r9",
    "mulx r9, r8, r9",
    "xor r15d, r15d",
    "mulx r10, r15, r10",
    "adc r9, r15",
    "mulx r11, r15, r11",
    "adc r10, r15",
    "mulx r12, r15, r12",
    "adc r11, r15",
    "adc r12, 0",
    clear_lowest!(32; "r8" "r9" "r10" "r11" "r12"),
    "adc r12, 0",
    rows!(8 16 24; 32; ; ("r9" "r10" "r11" "r12"); "r8"; ()),
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
    product_4!(),
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

/// A sum of products: its kernel, and the call with the registers of the sum and of other words.
macro_rules! sum {
    ($name:ident, $n:literal, $t:literal; $($word:ident $register:tt),+; [$($other:tt)*]; $($line:expr),+) => {
        /// The Montgomery sum of products, which are below `p R` together, or below `2 p R` for six of four limbs.
        ///
        /// The caller has checked [`is_available`].
        #[inline(always)]
        pub(super) fn $name(a: &[&[u64; $n]; $t], b: &[&[u64; $n]; $t], prime: &'static Prime) -> [u64; $n] {
            kernel!(kernel: $($line),+);
            $(let $word;)+
            // SAFETY: reads the pointers of both lists, the limbs at each and the prime, and writes
            // the listed registers; callers have checked that the CPU has the instructions. The
            // call pushes below the stack pointer, which the compiler allows for.
            unsafe {
                asm!(
                    "call {kernel}",
                    kernel = sym kernel,
                    inout("rsi") a => _,
                    inout("rdi") b => _,
                    in("rcx") prime,
                    $(out($register) $word,)+
                    $(out($other) _,)*
                    out("rax") _,
                    out("rdx") _,
                    out("r14") _,
                    out("r15") _,
                    options(pure, readonly),
                );
            }
            [$($word),+]
        }
    };
}

macro_rules! sum_4 {
    ($name:ident, $t:literal: $($k:literal)+) => {
        sum!(
            $name, 4, $t; t0 "r12", t1 "r8", t2 "r9", t3 "r10"; ["r11"];
            "xor r8d, r8d", "xor r9d, r9d", "xor r10d, r10d", "xor r11d, r11d", "xor r12d, r12d",
            rows!(0 8 16 24; 32; $($k)+; ("r8" "r9" "r10" "r11"); "r12"; ("rax" "rdx" "r14" "r15"))
        );
    };
}

macro_rules! sum_6 {
    ($name:ident, $t:literal: $($k:literal)+) => {
        sum!(
            $name, 6, $t; t0 "r13", t1 "r8", t2 "r9", t3 "r10", t4 "r11", t5 "r12"; [];
            "push rbx",
            "xor r8d, r8d", "xor r9d, r9d", "xor r10d, r10d", "xor r11d, r11d", "xor r12d, r12d", "xor ebx, ebx", "xor r13d, r13d",
            rows!(
                0 8 16 24 32 40; 48; $($k)+; ("r8" "r9" "r10" "r11" "r12" "rbx"); "r13";
                ("rax" "rdx" "r14" "r15" "rsi" "rdi")
            ),
            "pop rbx"
        );
    };
}

sum_4!(sum_4_of_2, 2: 0 1);
sum_4!(sum_4_of_3, 3: 0 1 2);
sum!(
    sum_4_of_6, 4, 6; t0 "r12", t1 "r13", t2 "r8", t3 "r9"; ["r10" "r11"];
    "xor r8d, r8d", "xor r9d, r9d", "xor r10d, r10d", "xor r11d, r11d", "xor r12d, r12d", "xor r13d, r13d",
    rows_above!(0 8 16 24; 32; 0 1 2 3 4, 5; ("r8" "r9" "r10" "r11"); "r12" "r13"; ("rax" "rdx" "r14" "r15"))
);
sum_6!(sum_6_of_2, 2: 0 1);
sum_6!(sum_6_of_3, 3: 0 1 2);
sum_6!(sum_6_of_4, 4: 0 1 2 3);
sum_6!(sum_6_of_6, 6: 0 1 2 3 4 5);
