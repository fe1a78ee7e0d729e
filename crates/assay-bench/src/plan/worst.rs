//! The section `[worst]` of a plan: worst blocks.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// The section `[worst]` of a plan.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct WorstSettings {
    /// Names of rule sets (docs/consensus.md, "Rule sets").
    pub rules: Vec<String>,
    /// Names of classes; all if empty.
    pub classes: Vec<String>,
    /// Maximum expected seconds of a block; above 0 and at most 3600.
    pub seconds_max: f64,
    /// The wrapper of Bitcoin Core's kernel; by default its place in Cargo's target folder.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kernel: Option<PathBuf>,
    /// The same built with a limit of 8,000 bytes (peers/kernel/README.md); by default its place in Cargo's target folder.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kernel_8000: Option<PathBuf>,
    /// Nodes that receive the blocks over RPC, as in `assay run --target`, which overrides them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub nodes: Vec<String>,
}

impl Default for WorstSettings {
    fn default() -> Self {
        let rules = ["today", "bip54", "report-8000", "pqsig", "cat", "ctv", "bip448", "p2mr"];
        Self {
            rules: rules.map(str::to_owned).to_vec(),
            classes: Vec::new(),
            seconds_max: 15.0,
            kernel: None,
            kernel_8000: None,
            nodes: Vec::new(),
        }
    }
}
