//! Sync section of a plan: named targets with arguments, and shared settings.

use serde::{Deserialize, Serialize};

use super::{
    BadValue, FeedPlan, Plan, TargetSpec, TargetSpecError, USE_TARGETS, is_default, is_target_name,
    valid,
};

/// A target with a name or arguments of its own: `[[runs.target]]`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TargetPlan {
    /// Name in tables and file names; derived from program and version if not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Target as in `targets`.
    pub spec: String,
    /// Arguments appended after all others.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub args: Vec<String>,
    /// Cores that it is bound to; any if empty.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cores: Vec<usize>,
}

impl TargetPlan {
    /// Parses the target.
    ///
    /// # Errors
    /// When it is of no known kind.
    pub fn spec(&self) -> Result<TargetSpec, TargetSpecError> {
        let mut spec: TargetSpec = self.spec.parse()?;
        if self.name.is_some() {
            spec.name.clone_from(&self.name);
        }
        spec.args.extend(self.args.iter().cloned());
        spec.cores.clone_from(&self.cores);
        Ok(spec)
    }
}

/// Sync settings, translated for every kind of target.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SyncPlan {
    /// Coin cache in MiB.
    pub dbcache_mib: u32,
    /// True to let a program assume signatures below a known block valid; otherwise it checks all.
    pub assumevalid: bool,
    /// Script check threads; one per core if not given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub threads: Option<u32>,
    /// Maximum send rate of the source, MB (of 1,000,000 bytes) per second.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate_mb_s: Option<f64>,
    /// Poll interval of the height in milliseconds.
    pub poll_ms: u64,
    /// Runs after which nodes compute the `MuHash` of their UTXO set.
    #[serde(skip_serializing_if = "is_default")]
    pub muhash: MuHashAfter,
}

/// Runs of a target after which a node hashes its UTXO set. A large set takes minutes: Bitcoin Core adds the coins one by one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum MuHashAfter {
    #[default]
    EveryRun,
    /// The first; the others only compare tip, transactions, and number and amount of the coins.
    FirstRun,
}

impl MuHashAfter {
    /// True if the run of this round hashes.
    pub(crate) fn includes(self, repeat: u32) -> bool {
        self == Self::EveryRun || repeat == 0
    }
}

impl Default for SyncPlan {
    fn default() -> Self {
        Self {
            // Fixed in Bitcoin Core's kernel.
            dbcache_mib: 450,
            assumevalid: false,
            threads: None,
            rate_mb_s: None,
            poll_ms: 10,
            muhash: MuHashAfter::default(),
        }
    }
}

pub(super) fn check(plan: &Plan) -> Result<(), BadValue> {
    for target in &plan.runs.target {
        if let Some(name) = &target.name {
            let rule = "use letters, digits, '.', '-' and '_', a letter or digit first";
            valid(is_target_name(name), "runs.target.name", name, rule)?;
        }
        check_spec("runs.target.spec", &target.spec)?;
    }
    let SyncPlan { dbcache_mib, threads, rate_mb_s, poll_ms, .. } = plan.sync;
    valid(dbcache_mib > 0, "sync.dbcache_mib", &0, "coins need memory")?;
    valid(threads != Some(0), "sync.threads", &0, "leave it out for one per core")?;
    if let Some(rate) = rate_mb_s {
        let is_rate = rate.is_finite() && rate > 0.0;
        valid(is_rate, "sync.rate_mb_s", &rate, "leave it out for no limit")?;
    }
    valid((1..=10_000).contains(&poll_ms), "sync.poll_ms", &poll_ms, "use 1 to 10000")?;
    let FeedPlan { by, seen, .. } = &plan.feed;
    let rule = "a target that fetches blocks is sent no transactions: use [0.0]";
    valid(!by.is_sync() || *seen == [0.0], "feed.seen", &format!("{seen:?}"), rule)
}

/// Validates the target in `text`; `key` is its position.
pub(super) fn check_spec(key: &str, text: &str) -> Result<(), BadValue> {
    let Err(error) = text.parse::<TargetSpec>() else { return Ok(()) };
    let rule = match error {
        TargetSpecError::Unknown { .. } => USE_TARGETS,
        TargetSpecError::OwnIndex { .. } => "only our own node has an index of ours",
        TargetSpecError::Quotes { .. } => "a quotation mark has no partner",
    };
    Err((key.to_owned(), text.to_owned(), rule))
}
