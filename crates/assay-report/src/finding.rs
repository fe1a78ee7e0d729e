//! Questions of published reports and their answers from results: the rows of `reports/README.md`.

use serde::{Deserialize, Serialize};

/// A question, and the selection of the figure that answers it. Without `benchmark`, `phase` and `step`, the answer of the whole
/// report is used.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Question {
    pub ask: String,
    /// Plan whose results answer it, if not that of the report.
    pub plan: Option<String>,
    pub benchmark: Option<String>,
    /// Alternative of the benchmark, if not the fastest.
    pub alternative: Option<String>,
    /// Name of a chain phase in the plan.
    pub phase: Option<String>,
    /// Name of a branch step in the plan.
    pub step: Option<String>,
    /// Pre-relayed share of the phase, 0 to 1.
    #[serde(default)]
    pub seen: f64,
    /// True for the phase of the index, false for the node.
    #[serde(default)]
    pub index: bool,
    /// Published figure, if the results contain none.
    pub published: Option<String>,
    /// Caveat, if the results do not state it themselves.
    #[serde(default)]
    pub caveat: String,
}

/// Answer to a question; a row of a table.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// Published figure with unit and source.
    pub published: String,
    /// Measured figure with unit.
    pub measured: String,
    /// Verdict: faster or slower, by how much, and its uncertainty.
    pub verdict: String,
    pub caveat: String,
}
