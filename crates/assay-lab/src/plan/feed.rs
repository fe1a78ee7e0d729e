//! Feed section of a plan.

use assay_report::number::in_percent;
use clap::ValueEnum;
use serde::{Deserialize, Serialize};

use super::pace::{Pace, Rate};
use super::{BadValue, Delivery};

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct FeedPlan {
    #[serde(alias = "deliver")]
    pub by: Delivery,
    /// Pre-relayed shares of each block's transactions; one run per value.
    pub seen: Vec<f64>,
    pub seen_mode: SeenMode,
    /// Fraction of the pre-relayed transactions that are sent before a parent in the block.
    #[serde(skip_serializing_if = "is_default")]
    pub orphans: f64,
    #[serde(skip_serializing_if = "is_default")]
    pub pace: Pace,
    #[serde(skip_serializing_if = "is_default")]
    pub rate: Rate,
    /// Transactions per burst, if a rate is set.
    #[serde(skip_serializing_if = "is_one")]
    pub burst: usize,
    #[serde(skip_serializing_if = "is_default")]
    pub compact: Compact,
    #[serde(skip_serializing_if = "is_default")]
    pub prefill: Prefill,
    /// Set the node's mock time to the block's before its transactions (`setmocktime`): compact blocks need a recent tip.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub mock_time: bool,
    /// Connections to the node over which transactions are spread.
    #[serde(skip_serializing_if = "is_one")]
    pub connections: usize,
    /// Transactions per JSON-RPC batch request.
    pub batch: usize,
    /// Time limit of one block in seconds; the run is invalid beyond it.
    pub block_timeout_s: u64,
}

/// Selection of the pre-relayed transactions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum SeenMode {
    /// First ones in generation order, as in the published test.
    #[default]
    Prefix,
    /// A seeded random choice, closed under ancestors within the block.
    Random,
}

/// Announcement mode of compact blocks (BIP152).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum Compact {
    /// Unsolicited once the node selects the peer (high bandwidth), by header until then.
    #[default]
    High,
    /// Announced by header, and sent on request.
    Low,
}

/// Prefilled transactions of a compact block.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum Prefill {
    /// Only the coinbase, as BIP152 requires.
    #[default]
    Coinbase,
    /// All transactions that were not pre-relayed as well.
    Unseen,
}

impl Default for FeedPlan {
    fn default() -> Self {
        Self {
            by: Delivery::default(),
            seen: vec![0.0],
            seen_mode: SeenMode::default(),
            orphans: 0.0,
            pace: Pace::default(),
            rate: Rate::default(),
            burst: 1,
            compact: Compact::default(),
            prefill: Prefill::default(),
            mock_time: false,
            connections: 1,
            batch: 250,
            block_timeout_s: 3600,
        }
    }
}

impl FeedPlan {
    /// Validates the values alone.
    ///
    /// # Errors
    /// Key, value and rule when a value is outside its range.
    pub fn check_values(&self) -> Result<(), (String, String, &'static str)> {
        let by = if self.connections > 1 { Delivery::P2p } else { self.by };
        Self { by, ..self.clone() }.check()
    }

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
        if !(0.0..=1.0).contains(&self.orphans) {
            let rule = "a share lies between 0.0 and 1.0";
            return bad("feed.orphans", self.orphans.to_string(), rule);
        }
        if !self.by.is_relay() && self.connections != 1 {
            let rule = "only peers have several connections: by = \"p2p\" or \"compact\"";
            return bad("feed.connections", self.connections.to_string(), rule);
        }
        if !(1..=64).contains(&self.connections) {
            return bad("feed.connections", self.connections.to_string(), "use 1 to 64");
        }
        if !(1..=100_000).contains(&self.burst) {
            return bad("feed.burst", self.burst.to_string(), "use 1 to 100000");
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

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands over references")]
const fn is_one(count: &usize) -> bool {
    *count == 1
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}
