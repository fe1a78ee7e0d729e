//! The section `[core]` of a plan: `bench_bitcoin` of several builds.

use serde::{Deserialize, Serialize};

/// The section `[core]` of a plan.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CoreSettings {
    /// Benchmarks, by substrings or patterns of names; if empty, all that every build has.
    #[serde(default)]
    pub benchmarks: Vec<String>,
    /// Minimum milliseconds of a benchmark per round and build.
    #[serde(default = "min_time_ms")]
    pub min_time_ms: u64,
    /// The builds; the first one is the baseline.
    #[serde(rename = "build")]
    pub builds: Vec<CoreBuild>,
}

/// A build with its `bench_bitcoin`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CoreBuild {
    /// Name in the report.
    pub name: String,
    /// `core@REV`, a build of `assay builds make` with a preset that ends with `-bench`; or the path of a `bench_bitcoin`.
    pub target: String,
}

const fn min_time_ms() -> u64 {
    100
}

impl CoreSettings {
    /// Key, value and violated rule.
    pub(super) fn check(
        &self,
        is_name: impl Fn(&str) -> bool,
    ) -> Result<(), (&'static str, String, &'static str)> {
        if self.builds.len() < 2 {
            let names = self.builds.iter().map(|build| build.name.clone()).collect();
            return Err(("core.build", names, "it takes two to compare"));
        }
        if !(1..=3_600_000).contains(&self.min_time_ms) {
            return Err(("core.min_time_ms", self.min_time_ms.to_string(), "use 1 to 3600000"));
        }
        for (index, build) in self.builds.iter().enumerate() {
            if !is_name(&build.name) {
                let rule = "use small letters, digits, '-' and '.'";
                return Err(("core.build.name", build.name.clone(), rule));
            }
            if self.builds[..index].iter().any(|other| other.name == build.name) {
                return Err(("core.build.name", build.name.clone(), "each build once"));
            }
        }
        Ok(())
    }
}
