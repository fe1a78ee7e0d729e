//! The section `[compilers]` of a plan: compilers of big-number arithmetic.

use assay_lab::plan::{BadValue, distinct, valid};
use serde::{Deserialize, Serialize};

/// All kernels in the order of the report; the suffix is the number of 64-bit words.
pub const KERNELS: [&str; 5] = ["add256", "add-mod-4", "add-mod-6", "mont-mul-4", "mont-mul-6"];

/// Timing modes: dependent calls, or eight such chains at once.
pub const TIMINGS: [&str; 2] = ["latency", "throughput"];

/// Maximum number of operand pairs of a comparison with plain Rust.
const CHECKS_MAX: usize = 100_000;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct CompilersSettings {
    /// Names on `PATH`, and paths. Missing ones are listed as absent.
    pub compilers: Vec<String>,
    /// Optimisation levels: 1 to 3.
    pub levels: Vec<u8>,
    pub kernels: Vec<String>,
    pub timings: Vec<String>,
    /// Random operand pairs for the comparison of every kernel with plain Rust, after the edge cases.
    pub checks: usize,
    pub seed: u64,
}

impl Default for CompilersSettings {
    fn default() -> Self {
        let compilers = [
            "gcc", "gcc-11", "gcc-12", "gcc-13", "gcc-14", "clang", "clang-14", "clang-16",
            "clang-19", "rustc",
        ];
        Self {
            compilers: compilers.map(str::to_owned).to_vec(),
            levels: vec![2, 3],
            kernels: KERNELS.map(str::to_owned).to_vec(),
            timings: TIMINGS.map(str::to_owned).to_vec(),
            checks: 200,
            seed: 7,
        }
    }
}

impl CompilersSettings {
    pub(super) fn check(&self) -> Result<(), BadValue> {
        for name in &self.compilers {
            let rule = "use names on PATH, or paths";
            valid(!name.trim().is_empty(), "compilers.compilers", name, rule)?;
        }
        for name in &self.kernels {
            let rule = "use add256, add-mod-4, add-mod-6, mont-mul-4, mont-mul-6";
            valid(KERNELS.contains(&name.as_str()), "compilers.kernels", name, rule)?;
        }
        for name in &self.timings {
            let is_known = TIMINGS.contains(&name.as_str());
            valid(is_known, "compilers.timings", name, "use latency, throughput")?;
        }
        for level in &self.levels {
            valid((1..=3).contains(level), "compilers.levels", level, "use 1 to 3")?;
        }
        let is_count = (1..=CHECKS_MAX).contains(&self.checks);
        valid(is_count, "compilers.checks", &self.checks, "use 1 to 100000")?;
        let levels: Vec<String> = self.levels.iter().map(ToString::to_string).collect();
        for (key, values) in [
            ("compilers.compilers", &self.compilers),
            ("compilers.levels", &levels),
            ("compilers.kernels", &self.kernels),
            ("compilers.timings", &self.timings),
        ] {
            valid(!values.is_empty(), key, &"[]", "name one at least")?;
            distinct(key, values.iter().map(String::as_str), "name each once")?;
        }
        Ok(())
    }
}
