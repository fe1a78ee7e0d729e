//! Results of a crash experiment.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::Duration;

use assay_report::stats::median;
use serde::{Deserialize, Serialize};

use crate::machine::{Machine, Software};

/// Activity of the node at the time of the kill.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Activity {
    Starting,
    Extending,
    Reorganising,
    TurningBack,
    Indexing,
    Stopping,
}

impl Activity {
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Starting => "starting",
            Self::Extending => "extending the chain",
            Self::Reorganising => "reorganising to the rival chain",
            Self::TurningBack => "invalidating and reconsidering",
            Self::Indexing => "the index catches up or answers",
            Self::Stopping => "stopping",
        }
    }
}

/// Figures collected during the rounds.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    pub(crate) kills: u32,
    by_activity: BTreeMap<Activity, u32>,
    pub(crate) acknowledged: u64,
    pub(crate) lost: u64,
    pub(crate) turns_back: u64,
    pub(crate) verified: u64,
    starts_s: Vec<f64>,
    index_s: Vec<f64>,
    answers: u64,
}

impl Tally {
    pub(crate) fn starts(&self) -> usize {
        self.starts_s.len()
    }

    /// Records that the index reached the tip after `took` and matched for `scripts` scripts.
    pub(crate) fn index_verified(&mut self, took: Duration, scripts: usize) {
        self.index_s.push(took.as_secs_f64());
        self.answers += scripts as u64;
    }

    pub(crate) fn killed(&mut self, activity: Activity) {
        self.kills += 1;
        *self.by_activity.entry(activity).or_default() += 1;
    }

    pub(crate) fn started(&mut self, took: Duration) {
        // The first start of a round has nothing to recover; it is one in dozens and is included.
        self.starts_s.push(took.as_secs_f64());
    }
}

/// Results of a crash experiment; written as `crash.json`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CrashReport {
    pub schema: u32,
    /// Time of writing, ISO 8601 in UTC.
    pub created: String,
    pub target: String,
    /// Version string of the node.
    pub version: String,
    /// Recipe of the two chains.
    pub recipe: String,
    /// Scale of the two chains.
    pub scale: f64,
    /// Seeds of the two chains.
    pub chain_seeds: [u64; 2],
    /// Heights of the two chains.
    pub chain_heights: [u32; 2],
    /// Seed of schedules and kill times.
    pub seed: u64,
    /// Coin cache sizes in MiB, used in rotation.
    pub cache_mib: Vec<u32>,
    /// Processes killed.
    pub kills: u32,
    /// True for injected panics, false for SIGKILL.
    #[serde(default)]
    pub by_panic: bool,
    /// True if blocks came from a peer, false for RPC.
    #[serde(default)]
    pub from_peer: bool,
    /// Kills by the node's activity.
    pub kills_by_activity: BTreeMap<String, u32>,
    /// Rounds, each with a fresh data folder.
    pub rounds: u32,
    /// Blocks that the node acknowledged.
    pub blocks_acknowledged: u64,
    /// Acknowledged blocks that were missing after a kill.
    pub blocks_lost: u64,
    /// Number of `invalidateblock` and `reconsiderblock` pairs.
    pub turns_back: u64,
    /// Starts after which tip, blocks and `MuHash` were compared with the straight run.
    pub verified: u64,
    /// First failure; it ends the experiment.
    pub failure: Option<String>,
    /// Index results, if the node has an index.
    #[serde(default)]
    pub index: Option<IndexReport>,
    /// Seconds from the process start to the first response, after kills and stops.
    pub recovery_s: Spread,
    /// The same after a proper stop with the whole chain stored.
    pub clean_start_s: Spread,
    /// Total duration in seconds.
    pub seconds: f64,
    pub machine: Machine,
    /// Software of the laboratory.
    pub software: Software,
    /// Command line that repeats the run.
    pub rerun: String,
}

/// Results of the index comparisons.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct IndexReport {
    /// Script hashes queried each time, of both chains.
    pub scripts: u64,
    /// Tips at which the responses of an index without kills were recorded.
    pub fresh_tips: u64,
    /// Tips of these that were compared with the script ledger of the forge.
    pub ledger_tips: u64,
    /// Starts after which the responses were compared byte by byte.
    pub verified: u64,
    /// Script hashes compared over all these starts: history, balance, unspent outputs and status of each.
    pub compared: u64,
    /// Seconds from the request until the index reached the node's tip.
    pub catch_up_s: Spread,
}

/// Summary of a distribution.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Spread {
    /// Number of values.
    pub count: usize,
    pub median: f64,
    /// 95th percentile.
    pub p95: f64,
    pub max: f64,
}

impl Spread {
    pub(crate) fn of(values: &[f64]) -> Self {
        let mut sorted = values.to_vec();
        sorted.sort_by(f64::total_cmp);
        let rank = (sorted.len() * 95).div_ceil(100).saturating_sub(1);
        Self {
            count: sorted.len(),
            median: median(&sorted),
            p95: sorted.get(rank).copied().unwrap_or_default(),
            max: sorted.last().copied().unwrap_or_default(),
        }
    }
}

impl CrashReport {
    /// True if nothing was lost or wrong.
    pub fn is_good(&self) -> bool {
        self.failure.is_none() && self.blocks_lost == 0
    }

    pub(crate) fn take(&mut self, tally: &Tally) {
        self.kills = tally.kills;
        self.kills_by_activity = tally
            .by_activity
            .iter()
            .map(|(activity, kills)| (activity.as_str().to_owned(), *kills))
            .collect();
        self.blocks_acknowledged = tally.acknowledged;
        self.blocks_lost = tally.lost;
        self.turns_back = tally.turns_back;
        self.verified = tally.verified;
        self.recovery_s = Spread::of(&tally.starts_s);
        if let Some(index) = &mut self.index {
            index.verified = tally.index_s.len() as u64;
            index.compared = tally.answers;
            index.catch_up_s = Spread::of(&tally.index_s);
        }
    }

    pub fn terminal(&self) -> String {
        let mut text = String::new();
        let mut line = |name: &str, value: String| {
            writeln!(text, "{name:<34} {value}").expect("writing to a string does not fail");
        };
        line("target", format!("{} ({})", self.target, self.version));
        let [a, b] = self.chain_seeds;
        let [high, low] = self.chain_heights;
        line(
            "rival chains",
            format!("{}, seeds {a} and {b}, {high} and {low} blocks", self.recipe),
        );
        let way = if self.from_peer { "peer-to-peer, from a second node" } else { "JSON-RPC" };
        line("blocks come by", way.to_owned());
        line("rounds, seed", format!("{}, {}", self.rounds, self.seed));
        let how = if self.by_panic { "ended by injected panics" } else { "kills (SIGKILL)" };
        line(how, self.kills.to_string());
        for (activity, kills) in &self.kills_by_activity {
            line(&format!("  while {activity}"), kills.to_string());
        }
        line("blocks acknowledged", self.blocks_acknowledged.to_string());
        line("  lost by a kill", self.blocks_lost.to_string());
        line("turns back (invalidate, reconsider)", self.turns_back.to_string());
        line("starts verified (tip, blocks, MuHash)", self.verified.to_string());
        line("  wrong", u32::from(self.failure.is_some()).to_string());
        if let Some(index) = &self.index {
            line("index compared after starts", index.verified.to_string());
            line("  script hashes, all four answers", index.compared.to_string());
            line(
                "  fresh index noted at",
                format!("{} tips, {} held to the ledger", index.fresh_tips, index.ledger_tips),
            );
            line("  index at the tip after", index.catch_up_s.to_text());
        }
        line("start to first answer, after kills", self.recovery_s.to_text());
        line("  after a proper stop", self.clean_start_s.to_text());
        line("time", format!("{:.1} s", self.seconds));
        if let Some(failure) = &self.failure {
            line("FAILURE", failure.clone());
        }
        let verdict = match (&self.failure, self.blocks_lost) {
            (Some(_), _) => "WRONG STATE after a kill",
            (None, 0) => "nothing lost, nothing wrong",
            (None, _) => "state right, but acknowledged blocks lost",
        };
        line("verdict", verdict.to_owned());
        text
    }
}

impl Spread {
    fn to_text(self) -> String {
        let ms = |seconds: f64| seconds * 1e3;
        let Self { count, median, p95, max } = self;
        format!(
            "median {:.0} ms, p95 {:.0} ms, max {:.0} ms ({count} starts)",
            ms(median),
            ms(p95),
            ms(max)
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spreads() {
        assert_eq!(Spread::of(&[]), Spread::default());
        let values: Vec<f64> = (1..=100).map(f64::from).collect();
        let spread = Spread::of(&values);
        assert_eq!((spread.count, spread.p95, spread.max), (100, 95.0, 100.0));
        assert!((spread.median - 50.5).abs() < 1e-9);
    }
}
