//! Feed section of a plan.

use assay_report::number::in_percent;
use clap::ValueEnum;
use serde::{Deserialize, Serialize};

use super::pace::{Pace, Rate};
use super::{BadValue, is_default, valid};

/// Delivery method of blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Delivery {
    /// One at a time by `submitblock` with timestamps: measures every single block.
    #[default]
    Rpc,
    /// One at a time from a peer that announces each, with timestamps: full blocks.
    P2p,
    /// The same as compact blocks (BIP152).
    Compact,
    /// The target fetches them from Assay's node over P2P: an IBD.
    Peer,
    /// Block files, with the block index rebuilt: `-reindex`.
    Reindex,
    /// Block files and block index exist, only the chainstate is rebuilt: `-reindex-chainstate`.
    ReindexChainstate,
    /// External block files: `-loadblock`.
    LoadBlock,
}

impl Delivery {
    /// Name in plans.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Rpc => "rpc",
            Self::P2p => "p2p",
            Self::Compact => "compact",
            Self::Peer => "peer",
            Self::Reindex => "reindex",
            Self::ReindexChainstate => "reindex-chainstate",
            Self::LoadBlock => "load-block",
        }
    }

    /// True if the target fetches blocks at its own pace, so that only its progress is observed.
    pub const fn is_sync(self) -> bool {
        !matches!(self, Self::Rpc | Self::P2p | Self::Compact)
    }

    /// True if the laboratory is the sending peer.
    pub const fn is_relay(self) -> bool {
        matches!(self, Self::P2p | Self::Compact)
    }
}

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
    pub fn check_values(&self) -> Result<(), BadValue> {
        let by = if self.connections > 1 { Delivery::P2p } else { self.by };
        Self { by, ..self.clone() }.check()
    }

    pub(super) fn check(&self) -> Result<(), BadValue> {
        let rule = "a share lies between 0.0 and 1.0";
        let is_share = |share: f64| (0.0..=1.0).contains(&share);
        valid(!self.seen.is_empty(), "feed.seen", &"[]", "at least one share is needed")?;
        for (index, seen) in self.seen.iter().enumerate() {
            valid(is_share(*seen), "feed.seen", seen, rule)?;
            let mut before = self.seen[..index].iter();
            let is_new = before.all(|other| in_percent(*other) != in_percent(*seen));
            valid(is_new, "feed.seen", seen, "each share once, in whole percent")?;
        }
        valid(is_share(self.orphans), "feed.orphans", &self.orphans, rule)?;
        let (connections, key) = (self.connections, "feed.connections");
        let rule = "only peers have several connections: by = \"p2p\" or \"compact\"";
        valid(self.by.is_relay() || connections == 1, key, &connections, rule)?;
        valid((1..=64).contains(&connections), key, &connections, "use 1 to 64")?;
        let Self { burst, batch, block_timeout_s: timeout_s, .. } = self;
        valid((1..=100_000).contains(burst), "feed.burst", burst, "use 1 to 100000")?;
        valid((1..=10_000).contains(batch), "feed.batch", batch, "use 1 to 10000")?;
        let is_timeout = (1..=86_400).contains(timeout_s);
        valid(is_timeout, "feed.block_timeout_s", timeout_s, "use 1 to 86400")
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands over references")]
const fn is_one(count: &usize) -> bool {
    *count == 1
}
