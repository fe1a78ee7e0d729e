//! The kernels: the only functions that enable target features, with their CPU requirements.
//!
//! Vector methods are inlined into the kernels and never called elsewhere. Code over [`Lanes`](crate::lanes::Lanes) therefore
//! uses only loops: a closure passed to the standard library is a separate function without the features.

#![expect(unsafe_code, reason = "entry into target-feature functions, reading MXCSR")]

use assay_hash::cpu::CpuFeature::{self, Avx2, Avx512f, Avx512ifma, Avx512vl, Avxifma, Fma};
use assay_hash::cpu::has;

use super::avx2::Quad;
use super::avx512::Octet;
use super::multiplier::{AvxIfma, Doubles, Ifma};
use super::{Backend, Kernels};
#[cfg(test)]
use crate::lanes::LANES;
use crate::lanes::Line;
use crate::lanes::answer;
use crate::lanes::group::{Group, Question};
use crate::lanes::msm::{self, Work};
#[cfg(test)]
use crate::lanes::small_groups::{self, Formulas, Raw};

/// The kernels of this backend, if this CPU has the features.
pub(super) fn kernels(backend: Backend) -> Option<Kernels> {
    let (needs, kernels): (&[CpuFeature], Kernels) = match backend {
        Backend::Ifma => (&[Avx512f, Avx512ifma], ifma::KERNELS),
        Backend::Ifma256 => (&[Avx512f, Avx512ifma, Avx512vl], ifma_256::KERNELS),
        Backend::AvxIfma => (&[Avx2, Avxifma], avx_ifma::KERNELS),
        Backend::Avx512 => (&[Avx512f], avx512::KERNELS),
        Backend::Avx2 => (&[Avx2, Fma], avx2::KERNELS),
        Backend::Libsecp | Backend::Portable | Backend::PortableRounded => return None,
    };
    needs.iter().all(|feature| has(*feature)).then_some(kernels)
}

/// The formulas over some vectors.
#[cfg(test)]
macro_rules! formulas {
    (
        $features:literal, $lanes:ty;
        $($name:ident($($operand:ident: $type:ty),+) -> $result:ty;)+
    ) => {{
        $(
            #[target_feature(enable = $features)]
            fn $name($($operand: $type),+) -> $result {
                small_groups::$name::<$lanes>($($operand),+)
            }
        )+
        Formulas {
            $(
                // SAFETY: `kernels` returns this only on CPUs with the features.
                $name: |$($operand),+| unsafe { $name($($operand),+) },
            )+
        }
    }};
}

/// A module of kernels over some vectors. Nothing is computed if `is_possible` is false.
macro_rules! kernels {
    ($name:ident, $features:literal, $lanes:ty, $is_possible:expr) => {
        mod $name {
            use super::*;

            pub(super) const KERNELS: Kernels = Kernels {
                answer: |question, groups, table| {
                    if $is_possible {
                        // SAFETY: `super::kernels` returns this only on CPUs with the features.
                        unsafe { answer(question, groups, table) }
                    } else {
                        for group in groups {
                            group.proven = 0;
                        }
                    }
                },
                // SAFETY: as above.
                weighted_sum: |work, table| $is_possible && unsafe { weighted_sum(work, table) },
                #[cfg(test)]
                formulas: FORMULAS,
            };

            #[target_feature(enable = $features)]
            fn answer(question: Question, groups: &mut [Group], table: &[Line]) {
                answer::answer::<$lanes>(question, groups, table);
            }

            #[target_feature(enable = $features)]
            fn weighted_sum(work: &mut Work, table: &[Line]) -> bool {
                msm::sum::<$lanes>(work, table)
            }

            #[cfg(test)]
            const FORMULAS: Formulas = formulas!(
                $features, $lanes;
                double(a: &Raw) -> Raw;
                add(a: &Raw, b: &Raw) -> Raw;
                add_jacobian(a: &Raw, b: &Raw) -> Raw;
                products(operands: &[[u64; LANES]; 2]) -> [[u64; LANES]; 4];
                ladders(key: &Raw, digits: &Group, table: &[Line]) -> [Raw; 2];
            );
        }
    };
}

kernels!(ifma, "avx512f,avx512ifma", Octet<Ifma>, true);
kernels!(ifma_256, "avx512f,avx512ifma,avx512vl,avx2", Quad<Ifma>, true);
kernels!(avx_ifma, "avx2,avxifma", Quad<AvxIfma>, true);
kernels!(avx512, "avx512f", Octet<Doubles>, true);
kernels!(avx2, "avx2,fma", Quad<Doubles>, rounds_to_nearest());

/// True if doubles round to nearest on this thread and inexact results raise no signal, as Rust assumes. A library in the same
/// process may have changed this; products in four lanes would then be wrong, so nothing is proven.
fn rounds_to_nearest() -> bool {
    const INEXACT_IS_MASKED: u32 = 1 << 12;
    const ROUNDING: u32 = 3 << 13;
    mxcsr() & (INEXACT_IS_MASKED | ROUNDING) == INEXACT_IS_MASKED
}

/// The MXCSR register: control and status of floating-point vectors.
fn mxcsr() -> u32 {
    let mut value = 0u32;
    // SAFETY: the instruction writes four bytes, and every x86-64 CPU has it.
    unsafe {
        core::arch::asm!("stmxcsr [{}]", in(reg) &raw mut value, options(nostack, preserves_flags));
    }
    value
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::Signature;
    use crate::{Backend, BatchVerifier, Check};

    fn set_mxcsr(value: u32) {
        // SAFETY: the instruction reads four bytes; no reserved bit is set. Only the tested code computes with doubles until the
        // old value is restored.
        unsafe {
            core::arch::asm!("ldmxcsr [{}]", in(reg) &raw const value, options(nostack));
        }
    }

    /// Results of `prove` with MXCSR changed.
    fn prove(verifier: &mut BatchVerifier, checks: &[Check<'_>], change: u32) -> Vec<bool> {
        let mut proven = Vec::with_capacity(checks.len());
        let before = mxcsr();
        set_mxcsr(before ^ change);
        verifier.prove(checks, &mut proven);
        set_mxcsr(before);
        proven
    }

    /// Rounding down, up and toward zero, denormals flushed and read as zero, inexact results raising a signal: no false check is
    /// proven, and no check at all if products would be wrong.
    #[test]
    fn mxcsr_modes_prove_nothing_false() {
        const DENORMALS: u32 = 1 << 15 | 1 << 6;
        const INEXACT: u32 = 1 << 12;
        assert!(rounds_to_nearest());
        let signatures: Vec<Signature> = (0..40).filter_map(Signature::new).collect();
        let mut wrong = Signature::new(7).expect("a signature");
        wrong.msg[0] ^= 1;
        let mut checks: Vec<Check<'_>> = signatures.iter().map(Signature::check).collect();
        checks[20] = wrong.check();
        for backend in Backend::all() {
            let mut verifier = BatchVerifier::with_backend(backend);
            if backend == Backend::Libsecp || verifier.backend() != backend {
                continue;
            }
            for (change, needs_nearest) in [
                (0, false),
                (DENORMALS, false),
                (1 << 13, true),
                (2 << 13, true),
                (3 << 13, true),
                (3 << 13 | DENORMALS, true),
            ] {
                let is_refused = needs_nearest && backend == Backend::Avx2;
                let expected: Vec<bool> = (0..40).map(|at| at != 20 && !is_refused).collect();
                let proven = prove(&mut verifier, &checks, change);
                assert_eq!(proven, expected, "{backend:?}, {change:x}");
            }
            // The portable lanes convert no doubles either, but printing and allocation might.
            if matches!(backend, Backend::Avx512 | Backend::Avx2) {
                let proven = prove(&mut verifier, &checks, INEXACT);
                assert_eq!(proven.contains(&true), backend == Backend::Avx512);
            }
        }
    }
}
