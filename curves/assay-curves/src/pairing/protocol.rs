//! Messages between subjects and this program, as lines of JSON.

use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, Default, Deserialize)]
pub(super) struct Description {
    pub name: String,
    pub version: String,
    pub compiler: String,
    pub operations: Vec<Offer>,
    /// Operations that can be traced; older programs list none.
    #[serde(default)]
    pub traces: Vec<Offer>,
}

#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub(super) struct Offer {
    /// Curve or group of protocols.
    pub curve: String,
    pub operation: String,
    /// Called functions of the library.
    pub how: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Order {
    /// Curve or group of protocols.
    pub curve: String,
    pub operation: String,
    /// Size, such as a number of points.
    pub size: usize,
    /// Number of threads; 0 for all.
    pub threads: usize,
    pub seed: u64,
    /// Inputs that do not follow from the seed, hexadecimal.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub inputs: String,
}

#[derive(Clone, Debug, Deserialize)]
pub(super) struct Answer {
    /// SHA-256 of the canonical bytes.
    pub digest: String,
    /// First bytes of the result.
    #[serde(rename = "answer")]
    pub shown: String,
}

/// Trace of one run of a subject.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct Trace {
    pub wall_ns: u64,
    pub threads: Vec<Thread>,
    /// SHA-256 of the computed result.
    pub digest: String,
}

/// Activity of one thread; times in nanoseconds since the start of the run.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct Thread {
    /// Time spent in rows.
    pub busy_ns: u64,
    /// Starts and ends, in order.
    pub spans: Vec<(u64, u64)>,
}
