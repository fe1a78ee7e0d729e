//! The section `[compilers]` of a plan: compilers of big-number arithmetic.

use serde::{Deserialize, Serialize};

/// All kernels in the order of the report; the suffix is the number of 64-bit words.
pub const KERNELS: [&str; 5] = ["add256", "add-mod-4", "add-mod-6", "mont-mul-4", "mont-mul-6"];

/// Timing modes: dependent calls, or eight such chains at once.
pub const TIMINGS: [&str; 2] = ["latency", "throughput"];

/// Maximum number of operand pairs of a comparison with plain Rust.
const CHECKS_MAX: usize = 100_000;

/// The section `[compilers]` of a plan.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct CompilersSettings {
    /// Names on `PATH`, and paths. Missing ones are listed as absent.
    pub compilers: Vec<String>,
    /// Optimisation levels: 1 to 3.
    pub levels: Vec<u8>,
    /// Names of [`KERNELS`].
    pub kernels: Vec<String>,
    /// Names of [`TIMINGS`].
    pub timings: Vec<String>,
    /// Random operand pairs for the comparison of every kernel with plain Rust, after the edge cases.
    pub checks: usize,
    /// Seed of the operands.
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
    /// Key, value and violated rule.
    pub(super) fn check(&self) -> Result<(), (&'static str, String, &'static str)> {
        if let Some(empty) = self.compilers.iter().find(|name| name.trim().is_empty()) {
            return Err(("compilers.compilers", empty.clone(), "use names on PATH, or paths"));
        }
        let unknown = |names: &[String], known: &[&str]| {
            names.iter().find(|name| !known.contains(&name.as_str())).cloned()
        };
        if let Some(name) = unknown(&self.kernels, &KERNELS) {
            let rule = "use add256, add-mod-4, add-mod-6, mont-mul-4, mont-mul-6";
            return Err(("compilers.kernels", name, rule));
        }
        if let Some(name) = unknown(&self.timings, &TIMINGS) {
            return Err(("compilers.timings", name, "use latency, throughput"));
        }
        if let Some(level) = self.levels.iter().find(|level| !(1..=3).contains(*level)) {
            return Err(("compilers.levels", level.to_string(), "use 1 to 3"));
        }
        if !(1..=CHECKS_MAX).contains(&self.checks) {
            return Err(("compilers.checks", self.checks.to_string(), "use 1 to 100000"));
        }
        let levels: Vec<String> = self.levels.iter().map(ToString::to_string).collect();
        for (key, values) in [
            ("compilers.compilers", &self.compilers),
            ("compilers.levels", &levels),
            ("compilers.kernels", &self.kernels),
            ("compilers.timings", &self.timings),
        ] {
            if values.is_empty() {
                return Err((key, "[]".to_owned(), "name one at least"));
            }
            let again =
                values.iter().enumerate().find(|(index, one)| values[..*index].contains(one));
            if let Some((_, value)) = again {
                return Err((key, value.clone(), "name each once"));
            }
        }
        Ok(())
    }
}
