//! Target section of a plan.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Settings per kind of target.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TargetsPlan {
    /// For `assay`.
    pub assay: AssayPlan,
    /// For `bitcoind=PATH`.
    pub bitcoind: BitcoindPlan,
    /// For `+fulcrum=PATH`.
    #[serde(skip_serializing_if = "super::is_default")]
    pub fulcrum: IndexPlan,
    /// For `+electrs=PATH`.
    #[serde(skip_serializing_if = "super::is_default")]
    pub electrs: IndexPlan,
    /// For `+electrumx=PATH`.
    #[serde(skip_serializing_if = "super::is_default")]
    pub electrumx: IndexPlan,
}

/// Settings of an index that is a separate program.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct IndexPlan {
    /// Additional arguments.
    pub args: Vec<String>,
    /// Additions to the configuration file (Fulcrum, electrs) or the environment (`ElectrumX`).
    pub config: BTreeMap<String, Setting>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Setting {
    Flag(bool),
    Integer(i64),
    Number(f64),
    Text(String),
}

impl std::fmt::Display for Setting {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Flag(value) => value.fmt(f),
            Self::Integer(value) => value.fmt(f),
            Self::Number(value) => value.fmt(f),
            Self::Text(value) => value.fmt(f),
        }
    }
}

/// Settings of Assay's node.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct AssayPlan {
    /// Additional arguments.
    pub args: Vec<String>,
    /// Additional arguments with the index in the node: `assay+index`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub index_args: Vec<String>,
}

/// Settings of the Bitcoin Core family.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct BitcoindPlan {
    /// Additional arguments.
    pub args: Vec<String>,
    /// `-dbcache`, in MiB.
    pub dbcache_mib: u32,
    /// `-maxmempool`, in MB.
    pub maxmempool_mb: u32,
    /// `-excessiveblocksize` in bytes, for BCHN only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub excessive_block_bytes: Option<u64>,
}

impl Default for BitcoindPlan {
    fn default() -> Self {
        Self {
            args: Vec::new(),
            dbcache_mib: 2048,
            maxmempool_mb: 4000,
            excessive_block_bytes: None,
        }
    }
}
