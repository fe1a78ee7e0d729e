//! Record of a crash experiment.

use std::collections::BTreeMap;
use std::time::Duration;

use assay_report::record::{Outcome, Record, Unit, count};

use super::Setup;
use super::oracle::Oracle;
use crate::machine::new_record;

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
    /// Name of the number of kills.
    const fn metric(self) -> &'static str {
        match self {
            Self::Starting => "kills while starting",
            Self::Extending => "kills while extending the chain",
            Self::Reorganising => "kills while reorganising to the rival chain",
            Self::TurningBack => "kills while invalidating and reconsidering",
            Self::Indexing => "kills while the index catches up or responds",
            Self::Stopping => "kills while stopping",
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
    /// Seconds from each start to the first response.
    pub(crate) starts_s: Vec<f64>,
    /// Seconds from a start until the index reached the tip, if it was compared.
    pub(crate) index_s: Vec<f64>,
    /// Script hashes compared.
    pub(crate) answers: u64,
}

impl Tally {
    pub(crate) fn killed(&mut self, activity: Activity) {
        self.kills += 1;
        *self.by_activity.entry(activity).or_default() += 1;
    }
}

#[derive(Debug, Default)]
pub(crate) struct End {
    /// Rounds, each with a fresh data folder.
    pub(crate) rounds: u32,
    /// First failure of the node.
    pub(crate) failure: Option<String>,
    /// True if its index alone failed.
    pub(crate) is_of_index: bool,
    pub(crate) took: Duration,
}

impl Tally {
    pub(super) fn record(&self, (setup, oracle): (&Setup<'_>, &Oracle), end: &End) -> Record {
        let options = setup.options;
        let mut record = new_record("crash", &options.software, &options.rerun, &options.out_dir);
        let (name, [one, two]) = (setup.target.name.as_str(), &setup.chains);
        record.set("target", format!("{name} ({})", setup.target.version));
        let chains = format!(
            "{}, scale {}, seeds {} and {}, {} and {} blocks",
            one.header.recipe,
            one.header.scale,
            one.header.seed,
            two.header.seed,
            one.tip.height,
            two.tip.height
        );
        record.set("rival chains", chains);
        let from_peer = "peer-to-peer, from a second node";
        record.set("blocks come by", if options.from_peer { from_peer } else { "JSON-RPC" });
        let is_panic = options.panic_points.is_some();
        record.set("kills by", if is_panic { "injected panics" } else { "SIGKILL" });
        record.set("seed", options.seed);
        record.set_all("coin caches, MiB", &options.cache_mib);

        let mut figures = vec![
            count("rounds", end.rounds.into()),
            count("kills", self.kills.into()),
            count("blocks acknowledged", self.acknowledged),
            count("blocks lost", self.lost),
            count("blocks invalidated and reconsidered", self.turns_back),
            count("starts verified", self.verified),
            ("duration", Unit::Seconds, Some(end.took.as_secs_f64())),
        ];
        let by_activity = self.by_activity.iter();
        let kills = by_activity.map(|(activity, kills)| count(activity.metric(), (*kills).into()));
        figures.splice(2..2, kills);
        let lost = (self.lost > 0).then(|| format!("{} acknowledged blocks lost", self.lost));
        let failure = |of_index| end.failure.clone().filter(|_| end.is_of_index == of_index);
        record.check("acknowledged blocks after each start", Outcome::of(self.acknowledged, lost));
        let state = Outcome::of(self.verified, failure(false));
        record.check("tip, last blocks and MuHash after each start", state);
        if let Some(index) = &oracle.index {
            record.check("index as without kills", Outcome::of(self.answers, failure(true)));
            figures.extend([
                count("script hashes", index.scripts.len() as u64),
                count("tips of the index without kills", index.answers.len() as u64),
                count("  of them compared with the ledger", index.ledger_tips),
                count("index compared after starts", self.index_s.len() as u64),
                count("script hashes compared", self.answers),
            ]);
        }
        record.add((name, "", None), &figures);
        for (metric, values) in [
            ("start to first response, after kills", &self.starts_s),
            ("start to first response, after stops", &oracle.clean_start_s),
            ("start to the index at the tip", &self.index_s),
        ] {
            record.add_rounds((name, ""), (metric, Unit::Seconds), values);
        }
        let result = match (&end.failure, self.lost) {
            (Some(_), _) => "wrong state after a kill",
            (None, 0) => "nothing lost, nothing wrong",
            (None, _) => "state correct, but acknowledged blocks lost",
        };
        record.headline =
            format!("{} kills of {name} in {} rounds: {result}.", self.kills, end.rounds);
        record
    }
}
