//! What a plan says of how a target is fed.

use assay_report::number::in_percent;
use serde::{Deserialize, Serialize};

use super::{BadValue, Delivery};

/// How to feed a target.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FeedPlan {
    /// How blocks come to a target.
    #[serde(default)]
    pub by: Delivery,
    /// Shares of each block's transactions to send before the block; one run per value.
    pub seen: Vec<f64>,
    /// Which transactions are sent beforehand.
    #[serde(default)]
    pub seen_mode: SeenMode,
    /// Read from older plans and results, never written: there is one pace.
    #[serde(default, skip_serializing)]
    pub pace: Pace,
    /// Transactions per JSON-RPC batch request.
    #[serde(default = "default_batch")]
    pub batch: usize,
    /// Longest wait for one block, in seconds, before the run is void.
    #[serde(default = "default_block_timeout_s")]
    pub block_timeout_s: u64,
}

/// Which transactions of a block are sent beforehand.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SeenMode {
    /// The front of the order in which they were generated, as in the published test.
    #[default]
    Prefix,
    /// A seeded random choice, closed under ancestors inside the block.
    Random,
}

/// How fast the chain is fed. It is no setting any more, since it never had a second value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Pace {
    /// Each request as soon as the previous one was answered.
    #[default]
    Asap,
}

impl FeedPlan {
    /// Checks what the plan says.
    pub(super) fn check(&self) -> Result<(), BadValue> {
        let bad = |key: &str, value: String, rule: &'static str| Err((key.to_owned(), value, rule));
        if self.seen.is_empty() {
            return bad("feed.seen", "[]".to_owned(), "at least one share is needed");
        }
        for (index, seen) in self.seen.iter().enumerate() {
            if !(0.0..=1.0).contains(seen) {
                return bad("feed.seen", seen.to_string(), "a share lies between 0.0 and 1.0");
            }
            if self.seen[..index].iter().any(|other| in_percent(*other) == in_percent(*seen)) {
                return bad("feed.seen", seen.to_string(), "each share once, in whole percent");
            }
        }
        if !(1..=10_000).contains(&self.batch) {
            return bad("feed.batch", self.batch.to_string(), "use 1 to 10000");
        }
        if !(1..=86_400).contains(&self.block_timeout_s) {
            let value = self.block_timeout_s.to_string();
            return bad("feed.block_timeout_s", value, "use 1 to 86400");
        }
        Ok(())
    }
}

const fn default_batch() -> usize {
    250
}

const fn default_block_timeout_s() -> u64 {
    3600
}
