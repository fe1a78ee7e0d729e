//! What came of it.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::Duration;

use assay_report::stats::median;
use serde::{Deserialize, Serialize};

use crate::machine::{Machine, Software};

/// What the node was doing when it was killed.
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

/// Figures collected while the rounds go on.
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

    /// The index came to the tip after `took` and answered about so many scripts.
    pub(crate) fn index_verified(&mut self, took: Duration, scripts: usize) {
        self.index_s.push(took.as_secs_f64());
        self.answers += scripts as u64;
    }

    pub(crate) fn killed(&mut self, activity: Activity) {
        self.kills += 1;
        *self.by_activity.entry(activity).or_default() += 1;
    }

    pub(crate) fn started(&mut self, took: Duration) {
        // The first start of a round has nothing to recover; it is one in dozens and left in.
        self.starts_s.push(took.as_secs_f64());
    }
}

/// Results of a crash experiment; written as `crash.json`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CrashReport {
    pub schema: u32,
    /// When it was written, as ISO 8601 in UTC.
    pub created: String,
    pub target: String,
    /// What it calls itself.
    pub version: String,
    /// Recipe of the two rival chains.
    pub recipe: String,
    /// Their size.
    pub scale: f64,
    /// Seeds of the two chains.
    pub chain_seeds: [u64; 2],
    /// Heights of the two chains.
    pub chain_heights: [u32; 2],
    /// Seed of schedules and moments.
    pub seed: u64,
    /// Sizes of the coin cache, MiB, in turns.
    pub cache_mib: Vec<u32>,
    /// Processes killed.
    pub kills: u32,
    /// Whether by panics inside rather than by SIGKILL.
    #[serde(default)]
    pub by_panic: bool,
    /// Whether blocks came from a peer rather than by RPC.
    #[serde(default)]
    pub from_peer: bool,
    /// The same by what the node was doing.
    pub kills_by_activity: BTreeMap<String, u32>,
    /// Rounds, each with a fresh data folder.
    pub rounds: u32,
    /// Blocks that the node acknowledged.
    pub blocks_acknowledged: u64,
    /// Of these, blocks that it did not know after a kill.
    pub blocks_lost: u64,
    /// Turns back by `invalidateblock` and `reconsiderblock`.
    pub turns_back: u64,
    /// Starts after which tip, blocks and `MuHash` were compared with the straight run.
    pub verified: u64,
    /// What was wrong; the experiment ends at the first.
    pub failure: Option<String>,
    /// The index of the node, where it has one.
    #[serde(default)]
    pub index: Option<IndexReport>,
    /// Seconds from the start of the process to its first answer, after kills and stops.
    pub recovery_s: Spread,
    /// The same after a proper stop with the whole chain stored.
    pub clean_start_s: Spread,
    /// Seconds for everything.
    pub seconds: f64,
    pub machine: Machine,
    /// The software of the laboratory.
    pub software: Software,
    /// The command line that does it again.
    pub rerun: String,
}

/// What came of the comparisons of an index.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct IndexReport {
    /// Script hashes asked for each time, of both chains.
    pub scripts: u64,
    /// Tips at which the answers of an index that was never killed were noted.
    pub fresh_tips: u64,
    /// Of these, tips at which they were compared with the script ledger of the forge.
    pub ledger_tips: u64,
    /// Starts after which the answers were compared, byte for byte.
    pub verified: u64,
    /// Script hashes compared, over all of these starts; history, balance, unspent outputs and status of each.
    pub compared: u64,
    /// Seconds from the question until the index was at the node's tip.
    pub catch_up_s: Spread,
}

/// How values are spread.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Spread {
    /// How many there are.
    pub count: usize,
    pub median: f64,
    /// 95 of 100 are at most this.
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
    /// Whether nothing was lost and nothing was wrong.
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
