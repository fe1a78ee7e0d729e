//! Questions of published reports, and what results say about them: the rows of `reports/README.md`.

use serde::{Deserialize, Serialize};

/// A question, and which figure of the results answers it. Without `benchmark`, `phase` and `step` the answer of
/// the whole report does.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Question {
    pub ask: String,
    /// The plan whose results answer it, where that is not the plan of the report.
    pub plan: Option<String>,
    pub benchmark: Option<String>,
    /// An alternative of it, where not the fastest.
    pub alternative: Option<String>,
    /// A phase of a chain, by its name in the plan.
    pub phase: Option<String>,
    /// A step of a branch, by its name in the plan.
    pub step: Option<String>,
    /// Pre-relayed share of the phase: 0 to 1.
    #[serde(default)]
    pub seen: f64,
    /// Whether the phase is that of the index rather than of the node.
    #[serde(default)]
    pub index: bool,
    /// What was published, where the results hold no published figure for it.
    pub published: Option<String>,
    /// What limits the comparison, where the results do not say so themselves.
    #[serde(default)]
    pub caveat: String,
}

/// What results say about a question; a row of a table.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// The published figure, with its unit and whose it is.
    pub published: String,
    /// The figure measured, with its unit.
    pub measured: String,
    /// What follows: faster or slower than what, by how much, how certain.
    pub verdict: String,
    pub caveat: String,
}
