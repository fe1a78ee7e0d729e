//! Sums of products modulo a prime, reduced once: Montgomery multiplication by one limb of all second factors at a
//! time, as in `Fe::sum_of_products`, which has the bounds and is the oracle (Longa, "Efficient algorithms for large
//! prime characteristic fields and their application to bilinear pairings", 2022, section 3).
//!
//! A sum of T products has T rows per reduction row, and never stores 2 N limbs.

#![expect(unsafe_code, reason = "inline assembly")]

use core::arch::asm;

use super::Prime;
use super::mulx::{add_multiple, clear_4, clear_6, clear_lowest, kernel};

/// Adds a limb of a second factor times its first factor; lists of pointers to both are at `rdi` and `rsi`.
macro_rules! add_product {
    ($k:literal $at:literal; $($limbs:tt)+) => {
        concat!(
            "mov r14, [rsi + 8*", $k, "]\n",
            "mov rdx, [rdi + 8*", $k, "]\n",
            "mov rdx, [rdx + ", $at, "]\n",
            add_multiple!("r14"; $($limbs)+),
        )
    };
}

/// Adds a limb of all second factors, over four limbs and with a sum of five words; then clears the lowest word.
macro_rules! row_4 {
    ($at:literal; $($k:literal)+; $w:tt) => {
        concat!($(add_4!($k $at; $w),)+ clear_all_4!($w))
    };
}

macro_rules! add_4 {
    ($k:literal $at:literal; ($t0:literal $t1:literal $t2:literal $t3:literal $t4:literal)) => {
        concat!(
            add_product!($k $at; $t0 $t1 0, $t1 $t2 8, $t2 $t3 16, $t3 $t4 24),
            "adc ", $t4, ", 0\n",
        )
    };
}

macro_rules! clear_all_4 {
    (($($t:literal)+)) => { clear_4!($($t)+) };
}

/// The same with a sixth word: the sum may exceed 2^(64 N) between rows, and the last addition of a
/// row and the clearing may carry into that word.
macro_rules! row_4_above {
    ($at:literal; $($k:literal)+, $last:literal; ($t0:literal $t1:literal $t2:literal $t3:literal $t4:literal $t5:literal)) => {
        concat!(
            $(add_4!($k $at; ($t0 $t1 $t2 $t3 $t4)),)+
            add_product!($last $at; $t0 $t1 0, $t1 $t2 8, $t2 $t3 16, $t3 $t4 24),
            carry_above!($t4 $t5),
            clear_lowest!($t0, 32; $t0 $t1 0, $t1 $t2 8, $t2 $t3 16, $t3 $t4 24),
            carry_above!($t4 $t5),
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

/// The row over six limbs, with a sum of seven words.
macro_rules! row_6 {
    ($at:literal; $($k:literal)+; $w:tt) => {
        concat!($(add_6!($k $at; $w),)+ clear_all_6!($w))
    };
}

macro_rules! add_6 {
    ($k:literal $at:literal; ($t0:literal $t1:literal $t2:literal $t3:literal $t4:literal $t5:literal $t6:literal)) => {
        concat!(
            add_product!($k $at; $t0 $t1 0, $t1 $t2 8, $t2 $t3 16, $t3 $t4 24, $t4 $t5 32, $t5 $t6 40),
            "adc ", $t6, ", 0\n",
        )
    };
}

macro_rules! clear_all_6 {
    (($($t:literal)+)) => { clear_6!($($t)+) };
}

/// Subtracts the prime from four words unless they are below it.
macro_rules! subtract_4 {
    ($t0:literal $t1:literal $t2:literal $t3:literal) => {
        concat!(
            "mov rax, ",
            $t0,
            "\n",
            "mov rdx, ",
            $t1,
            "\n",
            "mov r14, ",
            $t2,
            "\n",
            "mov r15, ",
            $t3,
            "\n",
            "sub rax, [rcx]\n",
            "sbb rdx, [rcx + 8]\n",
            "sbb r14, [rcx + 16]\n",
            "sbb r15, [rcx + 24]\n",
            "cmovnc ",
            $t0,
            ", rax\n",
            "cmovnc ",
            $t1,
            ", rdx\n",
            "cmovnc ",
            $t2,
            ", r14\n",
            "cmovnc ",
            $t3,
            ", r15\n",
        )
    };
}

/// A sum over four limbs in `r12, r8, r9, r10`, with five words.
macro_rules! kernel_4 {
    ($name:ident: $($k:literal)+) => {
        kernel!(
            $name:
            "xor r8d, r8d", "xor r9d, r9d", "xor r10d, r10d", "xor r11d, r11d", "xor r12d, r12d",
            row_4!(0; $($k)+; ("r8" "r9" "r10" "r11" "r12")),
            row_4!(8; $($k)+; ("r9" "r10" "r11" "r12" "r8")),
            row_4!(16; $($k)+; ("r10" "r11" "r12" "r8" "r9")),
            row_4!(24; $($k)+; ("r11" "r12" "r8" "r9" "r10")),
            subtract_4!("r12" "r8" "r9" "r10"),
        );
    };
}

/// A sum over six limbs in `r13, r8, r9, r10, r11, r12`.
macro_rules! kernel_6 {
    ($name:ident: $($k:literal)+) => {
        kernel!(
            $name:
            "push rbx",
            "xor r8d, r8d", "xor r9d, r9d", "xor r10d, r10d", "xor r11d, r11d", "xor r12d, r12d", "xor ebx, ebx", "xor r13d, r13d",
            row_6!(0; $($k)+; ("r8" "r9" "r10" "r11" "r12" "rbx" "r13")),
            row_6!(8; $($k)+; ("r9" "r10" "r11" "r12" "rbx" "r13" "r8")),
            row_6!(16; $($k)+; ("r10" "r11" "r12" "rbx" "r13" "r8" "r9")),
            row_6!(24; $($k)+; ("r11" "r12" "rbx" "r13" "r8" "r9" "r10")),
            row_6!(32; $($k)+; ("r12" "rbx" "r13" "r8" "r9" "r10" "r11")),
            row_6!(40; $($k)+; ("rbx" "r13" "r8" "r9" "r10" "r11" "r12")),
            "mov rax, r13", "mov rdx, r8", "mov r14, r9", "mov r15, r10", "mov rsi, r11", "mov rdi, r12",
            "sub rax, [rcx]", "sbb rdx, [rcx + 8]", "sbb r14, [rcx + 16]", "sbb r15, [rcx + 24]", "sbb rsi, [rcx + 32]", "sbb rdi, [rcx + 40]",
            "cmovnc r13, rax", "cmovnc r8, rdx", "cmovnc r9, r14", "cmovnc r10, r15", "cmovnc r11, rsi", "cmovnc r12, rdi",
            "pop rbx",
        );
    };
}

kernel_4!(kernel_4_of_2: 0 1);
kernel_4!(kernel_4_of_3: 0 1 2);
kernel_6!(kernel_6_of_2: 0 1);
kernel_6!(kernel_6_of_3: 0 1 2);
kernel_6!(kernel_6_of_4: 0 1 2 3);
kernel_6!(kernel_6_of_6: 0 1 2 3 4 5);

kernel!(
    kernel_4_of_6:
    "xor r8d, r8d", "xor r9d, r9d", "xor r10d, r10d", "xor r11d, r11d", "xor r12d, r12d", "xor r13d, r13d",
    row_4_above!(0; 0 1 2 3 4, 5; ("r8" "r9" "r10" "r11" "r12" "r13")),
    row_4_above!(8; 0 1 2 3 4, 5; ("r9" "r10" "r11" "r12" "r13" "r8")),
    row_4_above!(16; 0 1 2 3 4, 5; ("r10" "r11" "r12" "r13" "r8" "r9")),
    row_4_above!(24; 0 1 2 3 4, 5; ("r11" "r12" "r13" "r8" "r9" "r10")),
    // Below three times the prime.
    subtract_4!("r12" "r13" "r8" "r9"),
    subtract_4!("r12" "r13" "r8" "r9"),
);

/// Defines the call of a kernel: name, limbs and products, and the registers of the sum and of other words.
macro_rules! call {
    ($(#[$doc:meta])* $name:ident: $kernel:ident, $n:literal, $t:literal; $($word:ident $register:tt),+; $($other:tt)*) => {
        $(#[$doc])*
        ///
        /// The caller has checked `mulx::is_available`.
        #[inline(always)]
        pub(super) fn $name(a: &[&[u64; $n]; $t], b: &[&[u64; $n]; $t], prime: &'static Prime) -> [u64; $n] {
            $(let $word;)+
            // SAFETY: reads the pointers of both lists, the limbs at each and the prime, and writes
            // the listed registers; callers have checked that the CPU has the instructions. The
            // call pushes below the stack pointer, which the compiler allows for.
            unsafe {
                asm!(
                    "call {kernel}",
                    kernel = sym $kernel,
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

call!(
    /// The Montgomery sum of two products that are below `p R` together.
    sum_4_of_2: kernel_4_of_2, 4, 2; t0 "r12", t1 "r8", t2 "r9", t3 "r10"; "r11"
);
call!(
    /// The same of three products.
    sum_4_of_3: kernel_4_of_3, 4, 3; t0 "r12", t1 "r8", t2 "r9", t3 "r10"; "r11"
);
call!(
    /// The sum of six products that are below `2 p R` together.
    sum_4_of_6: kernel_4_of_6, 4, 6; t0 "r12", t1 "r13", t2 "r8", t3 "r9"; "r10" "r11"
);
call!(
    /// Over six limbs, the sum of two products that are below `p R` together.
    sum_6_of_2: kernel_6_of_2, 6, 2; t0 "r13", t1 "r8", t2 "r9", t3 "r10", t4 "r11", t5 "r12";
);
call!(
    /// The same of three products.
    sum_6_of_3: kernel_6_of_3, 6, 3; t0 "r13", t1 "r8", t2 "r9", t3 "r10", t4 "r11", t5 "r12";
);
call!(
    /// The same of four products.
    sum_6_of_4: kernel_6_of_4, 6, 4; t0 "r13", t1 "r8", t2 "r9", t3 "r10", t4 "r11", t5 "r12";
);
call!(
    /// The same of six products.
    sum_6_of_6: kernel_6_of_6, 6, 6; t0 "r13", t1 "r8", t2 "r9", t3 "r10", t4 "r11", t5 "r12";
);
