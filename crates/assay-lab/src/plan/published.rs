//! Published figures that a plan prints for comparison.

use serde::{Deserialize, Serialize};

/// Figures published by others, with source and machine.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Published {
    pub title: String,
    /// Source in words.
    pub source: String,
    pub machine: String,
    /// Published height minus ours.
    pub height_offset: u32,
    /// Caveats of a comparison.
    pub notes: Vec<String>,
    #[serde(rename = "figure")]
    pub figures: Vec<Figure>,
}

/// One published row.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Figure {
    /// Measured software.
    pub subject: String,
    /// Kind of software; only nodes are compared with nodes.
    pub kind: FigureKind,
    /// Phase by its ledger name.
    pub phase: String,
    /// Pre-relayed share.
    pub seen: f64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tx_per_s: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inputs_per_s: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outputs_per_s: Option<f64>,
    /// MiB (2^20 bytes) per second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mib_per_s: Option<f64>,
    /// Printed if a figure is missing, or next to it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

/// Kind of software of a published figure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FigureKind {
    /// A validating node.
    Node,
    /// An index over a node.
    Index,
}
