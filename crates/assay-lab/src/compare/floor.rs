//! The noise floor: ratios of runs of the same software (A/A).

use std::path::Path;

use assay_report::number::in_percent;
use assay_report::{LoadError, ResultsFile};
use serde::{Deserialize, Serialize};

use super::{PairComparison, Source};
use crate::machine::{Machine, utc_now};

const SCHEMA: u32 = 1;
const KIND: &str = "floor";

/// Largest A/A deviations of a machine.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Floor {
    schema: u32,
    kind: String,
    pub created: String,
    pub plan: String,
    pub machine: Machine,
    pub rows: Vec<FloorRow>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FloorRow {
    pub seen: f64,
    /// Measured quantity, as in comparisons.
    pub what: String,
    pub pairs: usize,
    /// Largest distance from 1 within the 95 % interval of the mean ratio, as a fraction.
    pub share: f64,
}

impl Floor {
    /// Noise floor of the comparisons whose sides are the same; the largest of several.
    pub(super) fn measured(sources: &[Source], comparisons: &[PairComparison]) -> Option<Self> {
        let results = &sources.first()?.results;
        let mut rows: Vec<FloorRow> = Vec::new();
        for row in
            comparisons.iter().filter(|compared| compared.is_aa).flat_map(|compared| &compared.rows)
        {
            let new = FloorRow {
                seen: row.seen,
                what: row.what.clone(),
                pairs: row.ratio.pairs,
                share: row.ratio.reach(),
            };
            match rows.iter_mut().find(|old| old.is_about(new.seen, &new.what)) {
                Some(old) if old.share < new.share => *old = new,
                Some(_) => {}
                None => rows.push(new),
            }
        }
        let floor = Self {
            schema: SCHEMA,
            kind: KIND.to_owned(),
            created: utc_now(),
            plan: results.plan.name.clone(),
            machine: results.machine.clone(),
            rows,
        };
        (!floor.rows.is_empty()).then_some(floor)
    }

    /// Reads a saved noise floor; `None` if the file is of another kind.
    ///
    /// # Errors
    /// When the file cannot be read or has another version.
    pub fn load(path: &Path) -> Result<Option<Self>, LoadError> {
        if path.is_dir() {
            return Ok(None);
        }
        let file = ResultsFile::read(path)?;
        if !file.is_of(KIND) {
            return Ok(None);
        }
        file.parse("noise floor", SCHEMA..=SCHEMA).map(Some)
    }

    /// Noise floor of a figure; the largest of all if that figure was not measured.
    pub fn of(&self, seen: f64, what: &str) -> f64 {
        let own = self.rows.iter().find(|row| row.is_about(seen, what));
        let largest = || self.rows.iter().map(|row| row.share).fold(0.0, f64::max);
        own.map_or_else(largest, |row| row.share)
    }

    pub fn is_of(&self, machine: &Machine) -> bool {
        self.machine.cpu == machine.cpu && self.machine.cores == machine.cores
    }
}

impl FloorRow {
    fn is_about(&self, seen: f64, what: &str) -> bool {
        in_percent(self.seen) == in_percent(seen) && self.what == what
    }
}
