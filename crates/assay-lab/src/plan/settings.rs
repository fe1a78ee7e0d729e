//! What a plan says of each kind of target.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Settings per kind of target.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TargetsPlan {
    /// For `assay`.
    #[serde(default)]
    pub assay: AssayPlan,
    /// For `bitcoind=PATH`.
    #[serde(default)]
    pub bitcoind: BitcoindPlan,
    /// For `+fulcrum=PATH`.
    #[serde(default, skip_serializing_if = "IndexPlan::is_default")]
    pub fulcrum: IndexPlan,
    /// For `+electrs=PATH`.
    #[serde(default, skip_serializing_if = "IndexPlan::is_default")]
    pub electrs: IndexPlan,
    /// For `+electrumx=PATH`.
    #[serde(default, skip_serializing_if = "IndexPlan::is_default")]
    pub electrumx: IndexPlan,
}

/// Settings of an index that is a program of its own.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct IndexPlan {
    /// Arguments added to the command line.
    #[serde(default)]
    pub args: Vec<String>,
    /// Added to what the program is configured by: its configuration file (Fulcrum, electrs) or its environment (`ElectrumX`).
    #[serde(default)]
    pub config: BTreeMap<String, Setting>,
}

impl IndexPlan {
    fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

/// The value of a setting.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Setting {
    Flag(bool),
    Integer(i64),
    /// Another number.
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

/// Settings of our own node.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AssayPlan {
    /// Arguments added to the command line.
    #[serde(default)]
    pub args: Vec<String>,
    /// Arguments added where the node keeps its index as well: `assay+index`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub index_args: Vec<String>,
}

/// Settings of the Bitcoin Core family.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BitcoindPlan {
    /// Arguments added to the command line.
    #[serde(default)]
    pub args: Vec<String>,
    /// `-dbcache`, in MiB.
    #[serde(default = "default_dbcache_mib")]
    pub dbcache_mib: u32,
    /// `-maxmempool`, in MB.
    #[serde(default = "default_maxmempool_mb")]
    pub maxmempool_mb: u32,
    /// `-excessiveblocksize` in bytes, given to BCHN only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub excessive_block_bytes: Option<u64>,
}

impl Default for BitcoindPlan {
    fn default() -> Self {
        Self {
            args: Vec::new(),
            dbcache_mib: default_dbcache_mib(),
            maxmempool_mb: default_maxmempool_mb(),
            excessive_block_bytes: None,
        }
    }
}

const fn default_dbcache_mib() -> u32 {
    2048
}

const fn default_maxmempool_mb() -> u32 {
    4000
}
