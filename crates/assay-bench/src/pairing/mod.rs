//! Report 5:  pairing-friendly curves, the protocols on them, and thread pools, library beside library.

use serde::{Deserialize, Serialize};

use crate::harness::Row;
use crate::suite::{Benchmark, Extent, Published, Study, Suite};
use crate::{BenchError, Progress};

/// The section `[pairing]` of a plan.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct PairingSettings {}

/// What the section asks for.
#[derive(Clone, Debug)]
pub struct PairingSuite {
    _settings: PairingSettings,
}

impl PairingSuite {
    /// With these settings.
    pub fn new(settings: PairingSettings) -> Self {
        Self { _settings: settings }
    }
}

impl Suite for PairingSuite {
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
