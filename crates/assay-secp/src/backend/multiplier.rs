//! Multipliers of 52 by 52 bits in every lane, which add parts of the product to a lane.
//!
//! Doubles: for integers a and b below 2^52 the fused multiply-add `fma(a, b, 2^104)` is 2^104 plus the product rounded to a
//! multiple h of 2^52, since there are no other doubles between 2^104 and 2^105. Its bits, as an integer, are those of 2^104 plus
//! h. `2^104 - 2^52 h` is exact, and `fma(a, b, that + c)` is the rest of the product plus c, which is exact too. Its bits are
//! those of c plus the rest as long as c plus any rest stays between 2^52 and 2^53. With truncation the rest is between 0 and
//! 2^52, and c is 2^52; with rounding to nearest it is between -2^51 and 2^51, and c is 1.5 * 2^52. (N. Emmart, F. Zheng and C.
//! Weems, "Faster Modular Exponentiation using Double Precision Floating Point Arithmetic on the GPU", ARITH 2018.)

#![expect(unsafe_code, reason = "intrinsics")]

use core::arch::x86_64::{
    __m256i, __m512i, _MM_FROUND_NO_EXC, _MM_FROUND_TO_ZERO, _mm256_add_epi64, _mm256_add_pd,
    _mm256_and_si256, _mm256_castpd_si256, _mm256_castsi256_pd, _mm256_fmadd_pd,
    _mm256_madd52hi_avx_epu64, _mm256_madd52hi_epu64, _mm256_madd52lo_avx_epu64,
    _mm256_madd52lo_epu64, _mm256_or_si256, _mm256_set1_epi64x, _mm256_sub_pd, _mm512_add_epi64,
    _mm512_add_pd, _mm512_and_si512, _mm512_castpd_si512, _mm512_castsi512_pd,
    _mm512_fmadd_round_pd, _mm512_madd52hi_epu64, _mm512_madd52lo_epu64, _mm512_or_si512,
    _mm512_set1_epi64, _mm512_sub_pd,
};

use crate::lanes::steps::Operation;

/// Intrinsics as an expression.
macro_rules! intrinsic {
    ($call:expr) => {{
        // SAFETY: only code inlined into the kernels has vectors to pass, and their callers have
        // checked the CPU for the features; memory operands are references to as many bytes as the
        // instruction reads or writes.
        unsafe { $call }
    }};
}
pub(super) use intrinsic;

/// Methods of a vector that are one intrinsic each.
macro_rules! intrinsics {
    ($wrap:ident; $($name:ident($($operand:ident),+): $intrinsic:path;)+) => {$(
        #[inline(always)]
        fn $name(self, $($operand: Self),+) -> Self {
            $wrap(intrinsic!($intrinsic(self.0, $($operand.0),+)))
        }
    )+};
}
pub(super) use intrinsics;

/// Multiplies in the lanes of a vector; the methods are those of [`Lanes`](crate::lanes::Lanes).
pub(super) trait Multiplier<V>: Copy {
    const LOW_OFFSET: u64;
    const HIGH_OFFSET: u64;
    const ROUNDS: bool;
    const CARRIES: bool;
    const REDUCES_AT_ONCE: bool;
    fn factor(limb: V) -> V;
    fn value(factor: V) -> V;
    fn twice_factor(factor: V) -> V;
    fn add_mul_low(sum: V, a: V, b: V) -> V;
    fn add_mul_high(sum: V, a: V, b: V) -> V;
    fn add_small_product(sum: V, a: V, b: V) -> V;
    fn run<O: Operation>(operation: O, result: &mut O::Result);
}

/// The multiplier's methods of [`Lanes`], for a vector that `$wrap` makes of a register.
macro_rules! multiplied_by {
    ($multiplier:ident, $wrap:ident) => {
        const LOW_OFFSET: u64 = $multiplier::LOW_OFFSET;
        const HIGH_OFFSET: u64 = $multiplier::HIGH_OFFSET;
        const ROUNDS: bool = $multiplier::ROUNDS;
        const CARRIES: bool = $multiplier::CARRIES;
        const REDUCES_AT_ONCE: bool = $multiplier::REDUCES_AT_ONCE;

        #[inline(always)]
        fn factor(self) -> Self {
            $wrap($multiplier::factor(self.0))
        }

        #[inline(always)]
        fn value(self) -> Self {
            $wrap($multiplier::value(self.0))
        }

        #[inline(always)]
        fn twice_factor(self) -> Self {
            $wrap($multiplier::twice_factor(self.0))
        }

        #[inline(always)]
        fn add_mul_low(self, a: Self, b: Self) -> Self {
            $wrap($multiplier::add_mul_low(self.0, a.0, b.0))
        }

        #[inline(always)]
        fn add_mul_high(self, a: Self, b: Self) -> Self {
            $wrap($multiplier::add_mul_high(self.0, a.0, b.0))
        }

        #[inline(always)]
        fn add_small_product(self, a: Self, b: Self) -> Self {
            $wrap($multiplier::add_small_product(self.0, a.0, b.0))
        }

        #[inline(always)]
        fn run<O: $crate::lanes::steps::Operation>(operation: O, result: &mut O::Result) {
            $multiplier::run(operation, result);
        }
    };
}
pub(super) use multiplied_by;

/// Operations with the target features of the calling kernels, inlined or not at the compiler's choice.
macro_rules! run {
    ($features:literal) => {
        #[inline(always)]
        fn run<O: Operation>(operation: O, result: &mut O::Result) {
            #[target_feature(enable = $features)]
            fn step<O: Operation>(operation: O, result: &mut O::Result) {
                *result = operation.result();
            }
            intrinsic!(step(operation, result));
        }
    };
}

/// The same as separate functions. Rust 1.95 ignores `inline(never)` on functions with target features, but they cannot be
/// inlined into the intermediate one.
macro_rules! run_apart {
    ($features:literal) => {
        #[inline(never)]
        fn run<O: Operation>(operation: O, result: &mut O::Result) {
            #[target_feature(enable = $features)]
            fn apart<O: Operation>(operation: O, result: &mut O::Result) {
                let aligned = Aligned;
                // SAFETY: it contains no instruction.
                unsafe {
                    core::arch::asm!("/* {0} */", in(reg) &raw const aligned, options(nostack, preserves_flags));
                }
                *result = operation.result();
            }
            intrinsic!(apart(operation, result));
        }
    };
}

/// A variable of this type aligns its function's stack frame. Otherwise the compiler would place vectors across cache lines, and
/// sometimes across pages, at three quarters of the speed.
#[repr(align(64))]
struct Aligned;

/// The 52-bit multiply and add of AVX-512.
#[derive(Clone, Copy)]
pub(super) struct Ifma;

/// The same for AVX-IFMA, in four lanes.
#[derive(Clone, Copy)]
pub(super) struct AvxIfma;

/// Doubles and their fused multiply-add. In eight lanes each instruction specifies rounding toward zero; in four lanes MXCSR
/// determines the rounding, which must be to nearest.
#[derive(Clone, Copy)]
pub(super) struct Doubles;

macro_rules! integer_multiplier {
    ($multiplier:ty, $vector:ty, $add:ident, $low:ident, $high:ident, $features:literal) => {
        impl Multiplier<$vector> for $multiplier {
            const LOW_OFFSET: u64 = 0;
            const HIGH_OFFSET: u64 = 0;
            const ROUNDS: bool = false;
            const CARRIES: bool = false;
            const REDUCES_AT_ONCE: bool = false;

            run!($features);

            #[inline(always)]
            fn factor(limb: $vector) -> $vector {
                limb
            }

            #[inline(always)]
            fn value(factor: $vector) -> $vector {
                factor
            }

            #[inline(always)]
            fn twice_factor(factor: $vector) -> $vector {
                intrinsic!($add(factor, factor))
            }

            #[inline(always)]
            fn add_mul_low(sum: $vector, a: $vector, b: $vector) -> $vector {
                intrinsic!($low(sum, a, b))
            }

            #[inline(always)]
            fn add_mul_high(sum: $vector, a: $vector, b: $vector) -> $vector {
                intrinsic!($high(sum, a, b))
            }

            #[inline(always)]
            fn add_small_product(sum: $vector, a: $vector, b: $vector) -> $vector {
                intrinsic!($low(sum, a, b))
            }
        }
    };
}

integer_multiplier!(
    Ifma,
    __m512i,
    _mm512_add_epi64,
    _mm512_madd52lo_epu64,
    _mm512_madd52hi_epu64,
    "avx512f,avx512ifma"
);
integer_multiplier!(
    Ifma,
    __m256i,
    _mm256_add_epi64,
    _mm256_madd52lo_epu64,
    _mm256_madd52hi_epu64,
    "avx512f,avx512ifma,avx512vl,avx2"
);
integer_multiplier!(
    AvxIfma,
    __m256i,
    _mm256_add_epi64,
    _mm256_madd52lo_avx_epu64,
    _mm256_madd52hi_avx_epu64,
    "avx2,avxifma"
);

const MASK_52: i64 = (1 << 52) - 1;

/// 2^52, whose bits plus an integer below 2^52 are those of 2^52 plus that integer.
const UNIT: f64 = (1u64 << 52) as f64;

/// Addend of products for their high parts.
const HIGH: f64 = UNIT * UNIT;

/// Bits of a constant in every lane.
macro_rules! constant {
    ($set:ident, $constant:expr) => {
        intrinsic!($set($constant.to_bits() as i64))
    };
}

/// Conversions of factors, and sums of small products, by doubles; the offset is that of low parts.
macro_rules! of_doubles {
    (
        $vector:ty, $offset:expr, $fma:ident; $set:ident, $and:ident, $or:ident, $sum:ident, $add:ident, $sub:ident,
        $doubles:ident, $bits:ident
    ) => {
        #[inline(always)]
        fn factor(limb: $vector) -> $vector {
            let unit = constant!($set, UNIT);
            intrinsic!({
                let low = $and(limb, $set(MASK_52));
                let above = $doubles($or(low, unit));
                $bits($sub(above, $doubles(unit)))
            })
        }

        #[inline(always)]
        fn value(factor: $vector) -> $vector {
            let unit = constant!($set, UNIT);
            intrinsic!({
                let above = $add($doubles(factor), $doubles(unit));
                $and($bits(above), $set(MASK_52))
            })
        }

        #[inline(always)]
        fn twice_factor(factor: $vector) -> $vector {
            let factor = intrinsic!($doubles(factor));
            intrinsic!($bits($add(factor, factor)))
        }

        #[inline(always)]
        fn add_small_product(sum: $vector, a: $vector, b: $vector) -> $vector {
            let product = $fma(a, b, constant!($set, $offset));
            intrinsic!($sum(sum, product))
        }
    };
}

impl Multiplier<__m512i> for Doubles {
    const LOW_OFFSET: u64 = UNIT.to_bits();
    const HIGH_OFFSET: u64 = HIGH.to_bits();
    const ROUNDS: bool = false;
    const CARRIES: bool = true;
    const REDUCES_AT_ONCE: bool = false;

    run_apart!("avx512f");

    of_doubles!(
        __m512i, UNIT, fma_512; _mm512_set1_epi64, _mm512_and_si512, _mm512_or_si512, _mm512_add_epi64,
        _mm512_add_pd, _mm512_sub_pd, _mm512_castsi512_pd, _mm512_castpd_si512
    );

    #[inline(always)]
    fn add_mul_low(sum: __m512i, a: __m512i, b: __m512i) -> __m512i {
        let constant = constant!(_mm512_set1_epi64, HIGH + UNIT);
        let high = fma_512(a, b, constant!(_mm512_set1_epi64, HIGH));
        intrinsic!({
            let minus = _mm512_sub_pd(_mm512_castsi512_pd(constant), _mm512_castsi512_pd(high));
            settled(_mm512_add_epi64(sum, fma_512(a, b, _mm512_castpd_si512(minus))))
        })
    }

    #[inline(always)]
    fn add_mul_high(sum: __m512i, a: __m512i, b: __m512i) -> __m512i {
        let high = fma_512(a, b, constant!(_mm512_set1_epi64, HIGH));
        intrinsic!(settled(_mm512_add_epi64(sum, high)))
    }
}

/// Forces the sum to be computed here. Otherwise the compiler would add all products of a column at the end, and keep them in
/// memory until then. (With the sixteen registers of AVX2 some must be in memory anyway, and that version was faster.)
#[inline]
#[target_feature(enable = "avx512f")]
fn settled(mut sum: __m512i) -> __m512i {
    // SAFETY: it contains no instruction.
    unsafe {
        core::arch::asm!("/* {0} */", inout(zmm_reg) sum, options(nomem, nostack, preserves_flags));
    }
    sum
}

/// `a b + c` of doubles, toward zero.
#[inline(always)]
fn fma_512(a: __m512i, b: __m512i, c: __m512i) -> __m512i {
    intrinsic!({
        _mm512_castpd_si512(_mm512_fmadd_round_pd::<{ _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC }>(
            _mm512_castsi512_pd(a),
            _mm512_castsi512_pd(b),
            _mm512_castsi512_pd(c),
        ))
    })
}

impl Multiplier<__m256i> for Doubles {
    const LOW_OFFSET: u64 = (1.5 * UNIT).to_bits();
    const HIGH_OFFSET: u64 = HIGH.to_bits();
    const ROUNDS: bool = true;
    const CARRIES: bool = true;
    const REDUCES_AT_ONCE: bool = true;

    run_apart!("avx2,fma");

    of_doubles!(
        __m256i, 1.5 * UNIT, fma_256; _mm256_set1_epi64x, _mm256_and_si256, _mm256_or_si256, _mm256_add_epi64,
        _mm256_add_pd, _mm256_sub_pd, _mm256_castsi256_pd, _mm256_castpd_si256
    );

    /// 2^104 plus 1.5 * 2^52 is not a double, so two steps are needed from one to the other.
    #[inline(always)]
    fn add_mul_low(sum: __m256i, a: __m256i, b: __m256i) -> __m256i {
        let constant = constant!(_mm256_set1_epi64x, HIGH);
        let low = constant!(_mm256_set1_epi64x, 1.5 * UNIT);
        let high = fma_256(a, b, constant);
        intrinsic!({
            let minus = _mm256_sub_pd(_mm256_castsi256_pd(constant), _mm256_castsi256_pd(high));
            let minus = _mm256_add_pd(minus, _mm256_castsi256_pd(low));
            _mm256_add_epi64(sum, fma_256(a, b, _mm256_castpd_si256(minus)))
        })
    }

    #[inline(always)]
    fn add_mul_high(sum: __m256i, a: __m256i, b: __m256i) -> __m256i {
        let high = fma_256(a, b, constant!(_mm256_set1_epi64x, HIGH));
        intrinsic!(_mm256_add_epi64(sum, high))
    }
}

/// `a b + c` of doubles, to the nearest.
#[inline(always)]
fn fma_256(a: __m256i, b: __m256i, c: __m256i) -> __m256i {
    intrinsic!({
        _mm256_castpd_si256(_mm256_fmadd_pd(
            _mm256_castsi256_pd(a),
            _mm256_castsi256_pd(b),
            _mm256_castsi256_pd(c),
        ))
    })
}
