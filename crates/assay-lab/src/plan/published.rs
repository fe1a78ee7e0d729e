//! Figures of others that a plan prints next to what it measures.

use serde::{Deserialize, Serialize};

/// Figures published by somebody else, with where and on what they were measured.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Published {
    /// Title of the publication.
    pub title: String,
    /// Where it is, in words.
    pub source: String,
    /// The machine it was measured on.
    pub machine: String,
    /// Published height minus ours.
    pub height_offset: u32,
    /// What a reader must know before comparing.
    pub notes: Vec<String>,
    #[serde(rename = "figure")]
    pub figures: Vec<Figure>,
}

/// One published row.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Figure {
    /// The software measured.
    pub subject: String,
    /// What kind of software that is; only nodes are compared with nodes.
    pub kind: FigureKind,
    /// The phase, by its ledger name.
    pub phase: String,
    /// The share of each block seen beforehand.
    pub seen: f64,
    /// Transactions per second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tx_per_s: Option<f64>,
    /// Inputs per second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inputs_per_s: Option<f64>,
    /// Outputs per second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outputs_per_s: Option<f64>,
    /// MiB (2^20 bytes) per second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mib_per_s: Option<f64>,
    /// Printed where a figure is missing, or next to it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

/// What kind of software a published figure is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FigureKind {
    /// A validating node.
    Node,
    /// An index over a node.
    Index,
}
