//! Report 3, micro part:  each optimisation of the initial block download, before and after.

use serde::{Deserialize, Serialize};

use crate::harness::Row;
use crate::suite::{Benchmark, Extent, Published, Study, Suite};
use crate::{BenchError, Progress};

/// The section `[ibd]` of a plan.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct IbdSettings {}

/// What the section asks for.
#[derive(Clone, Debug)]
pub struct IbdSuite {
    _settings: IbdSettings,
}

impl IbdSuite {
    /// With these settings.
    pub fn new(settings: IbdSettings) -> Self {
        Self { _settings: settings }
    }
}

impl Suite for IbdSuite {
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
