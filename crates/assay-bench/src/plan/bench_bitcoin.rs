//! The section `[core]` of a plan: `bench_bitcoin` of several builds.

use assay_lab::plan::{BadValue, valid};
use serde::{Deserialize, Serialize};

use super::check_builds;

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
    pub(super) fn check(&self) -> Result<(), BadValue> {
        let names = self.builds.iter().map(|build| build.name.as_str());
        let all: String = names.clone().collect();
        valid(self.builds.len() >= 2, "core.build", &all, "it takes two to compare")?;
        let is_time = (1..=3_600_000).contains(&self.min_time_ms);
        valid(is_time, "core.min_time_ms", &self.min_time_ms, "use 1 to 3600000")?;
        check_builds("core.build.name", names)
    }
}
