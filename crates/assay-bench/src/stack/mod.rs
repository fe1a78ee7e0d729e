//! Report 1:  what larger stack elements cost (BIP-360).

use serde::{Deserialize, Serialize};

use crate::harness::Row;
use crate::suite::{Benchmark, Extent, Published, Study, Suite};
use crate::{BenchError, Progress};

/// The section `[stack]` of a plan.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct StackSettings {}

/// What the section asks for.
#[derive(Clone, Debug)]
pub struct StackSuite {
    _settings: StackSettings,
}

impl StackSuite {
    /// With these settings.
    pub fn new(settings: StackSettings) -> Self {
        Self { _settings: settings }
    }
}

impl Suite for StackSuite {
    fn benchmarks(&self, _extent: Extent) -> Result<Vec<Benchmark<'_>>, BenchError> {
        Ok(Vec::new())
    }

    fn studies(
        &self,
        _extent: Extent,
        _rows: &[Row],
        _progress: &dyn Progress,
    ) -> Result<Vec<Study>, BenchError> {
        Ok(Vec::new())
    }

    fn published(&self) -> Vec<Published> {
        Vec::new()
    }
}
