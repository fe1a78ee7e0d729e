//! Detection of the CPU features available to kernels.
//!
//! Every kernel of the workspace calls [`has`], so that one switch, the environment variable [`HIDE_VARIABLE`], emulates a CPU
//! without a feature: tests and users then run the code for older machines. The variable can only remove features. Third-party
//! libraries detect features themselves and ignore it.

use core::fmt;
use std::sync::OnceLock;

/// Environment variable with a comma-separated list of features to hide.
pub const HIDE_VARIABLE: &str = "ASSAY_HIDE_CPU_FEATURES";

/// A CPU feature used by some kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CpuFeature {
    /// Byte shuffles in 128-bit vectors.
    Ssse3,
    /// Blends in 128-bit vectors.
    Sse41,
    /// SHA-1 and SHA-256 instructions.
    Sha,
    /// 256-bit vectors of integers.
    Avx2,
    /// BMI1 and BMI2: rotations that do not overwrite their operands.
    Bmi2,
    /// Additions with two independent carry chains, and BMI2's multiplication, which preserves both.
    Adx,
    /// Fused multiply-add of doubles.
    Fma,
    /// The 52-bit multiply and add in 256-bit vectors.
    Avxifma,
    /// 512-bit vectors.
    Avx512f,
    /// Bytes in 512-bit vectors.
    Avx512bw,
    /// The 512-bit instructions for 256-bit vectors.
    Avx512vl,
    /// The 52-bit multiply and add in 512-bit vectors.
    Avx512ifma,
    /// SHA-256 instructions of aarch64.
    Sha2,
}

use CpuFeature::{
    Adx, Avx2, Avx512bw, Avx512f, Avx512ifma, Avx512vl, Avxifma, Bmi2, Fma, Sha, Sha2, Sse41, Ssse3,
};

/// All features, each after its prerequisites.
const ALL: [CpuFeature; 13] = [
    Ssse3, Sse41, Sha, Avx2, Bmi2, Adx, Fma, Avxifma, Avx512f, Avx512bw, Avx512vl, Avx512ifma, Sha2,
];

impl CpuFeature {
    /// The name in [`HIDE_VARIABLE`]; the same as in the Rust compiler and Linux, except for dots.
    pub fn name(self) -> &'static str {
        match self {
            Ssse3 => "ssse3",
            Sse41 => "sse4.1",
            Sha => "sha",
            Avx2 => "avx2",
            Bmi2 => "bmi2",
            Adx => "adx",
            Fma => "fma",
            Avxifma => "avxifma",
            Avx512f => "avx512f",
            Avx512bw => "avx512bw",
            Avx512vl => "avx512vl",
            Avx512ifma => "avx512ifma",
            Sha2 => "sha2",
        }
    }

    /// The prerequisite of this feature on every CPU; hiding it hides this feature too.
    fn base(self) -> Option<Self> {
        match self {
            Ssse3 | Sha2 => None,
            Sse41 => Some(Ssse3),
            Sha | Avx2 | Bmi2 | Fma => Some(Sse41),
            Adx => Some(Bmi2),
            Avxifma | Avx512f => Some(Avx2),
            Avx512bw | Avx512vl | Avx512ifma => Some(Avx512f),
        }
    }

    fn bit(self) -> u16 {
        1 << self as u8
    }

    #[cfg(target_arch = "x86_64")]
    fn is_detected(self) -> bool {
        match self {
            Ssse3 => std::arch::is_x86_feature_detected!("ssse3"),
            Sse41 => std::arch::is_x86_feature_detected!("sse4.1"),
            Sha => std::arch::is_x86_feature_detected!("sha"),
            Avx2 => std::arch::is_x86_feature_detected!("avx2"),
            Bmi2 => {
                std::arch::is_x86_feature_detected!("bmi1")
                    && std::arch::is_x86_feature_detected!("bmi2")
            }
            Adx => std::arch::is_x86_feature_detected!("adx"),
            Fma => std::arch::is_x86_feature_detected!("fma"),
            Avxifma => std::arch::is_x86_feature_detected!("avxifma"),
            Avx512f => std::arch::is_x86_feature_detected!("avx512f"),
            Avx512bw => std::arch::is_x86_feature_detected!("avx512bw"),
            Avx512vl => std::arch::is_x86_feature_detected!("avx512vl"),
            Avx512ifma => std::arch::is_x86_feature_detected!("avx512ifma"),
            Sha2 => false,
        }
    }

    #[cfg(target_arch = "aarch64")]
    fn is_detected(self) -> bool {
        self == Sha2 && std::arch::is_aarch64_feature_detected!("sha2")
    }

    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    fn is_detected(self) -> bool {
        false
    }
}

/// A name in [`HIDE_VARIABLE`] is not a feature.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownFeature {
    /// The unknown name.
    pub name: String,
}

impl fmt::Display for UnknownFeature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = ALL.map(CpuFeature::name).join(", ");
        write!(f, "{HIDE_VARIABLE}: no feature is called {:?}; there are {names}", self.name)
    }
}

impl std::error::Error for UnknownFeature {}

/// True if the CPU has the feature and it is not hidden.
///
/// # Panics
/// When [`HIDE_VARIABLE`] contains an unknown name: the user must not assume that a feature is hidden when it is not. Programs
/// call [`hidden`] first, which returns an error instead.
#[inline]
pub fn has(feature: CpuFeature) -> bool {
    static USABLE: OnceLock<u16> = OnceLock::new();
    let usable = *USABLE.get_or_init(|| match hidden() {
        Ok(hidden) => bits(ALL.into_iter().filter(|feature| feature.is_detected())) & !bits(hidden),
        Err(unknown) => panic!("{unknown}"),
    });
    usable & feature.bit() != 0
}

/// The features hidden by the environment, and all that depend on them.
///
/// # Errors
/// When the variable contains an unknown name.
pub fn hidden() -> Result<Vec<CpuFeature>, UnknownFeature> {
    let list = std::env::var_os(HIDE_VARIABLE).unwrap_or_default();
    parse(&list.to_string_lossy())
}

fn parse(list: &str) -> Result<Vec<CpuFeature>, UnknownFeature> {
    let mut hidden = Vec::new();
    for name in list.split(',').map(str::trim).filter(|name| !name.is_empty()) {
        let feature = ALL.into_iter().find(|feature| feature.name() == name);
        hidden.push(feature.ok_or_else(|| UnknownFeature { name: name.to_owned() })?);
    }
    Ok(ALL.into_iter().filter(|feature| builds_on(*feature, &hidden)).collect())
}

fn builds_on(feature: CpuFeature, hidden: &[CpuFeature]) -> bool {
    hidden.contains(&feature) || feature.base().is_some_and(|base| builds_on(base, hidden))
}

fn bits(features: impl IntoIterator<Item = CpuFeature>) -> u16 {
    features.into_iter().fold(0, |bits, feature| bits | feature.bit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hides_dependent_features() {
        for (list, hidden) in [
            ("", &[][..]),
            (" , ", &[]),
            ("avx512ifma", &[Avx512ifma]),
            ("avx512bw", &[Avx512bw]),
            ("avx512f", &[Avx512f, Avx512bw, Avx512vl, Avx512ifma]),
            ("avx2, sha", &[Sha, Avx2, Avxifma, Avx512f, Avx512bw, Avx512vl, Avx512ifma]),
            ("ssse3, sha2", &ALL),
        ] {
            assert_eq!(parse(list).as_deref(), Ok(hidden), "{list:?}");
        }
    }

    #[test]
    fn unknown_names_are_reported_with_those_that_exist() {
        let unknown = parse("avx2,avx513").unwrap_err();
        assert_eq!(unknown.name, "avx513");
        let text = unknown.to_string();
        assert!(ALL.iter().all(|feature| text.contains(feature.name())), "{text}");
    }

    #[test]
    fn hidden_features_are_absent() {
        let hidden = hidden().expect("tests run with names that exist");
        for feature in ALL {
            assert_eq!(has(feature), feature.is_detected() && !hidden.contains(&feature));
        }
    }
}
