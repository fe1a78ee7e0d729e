//! The plan: an experiment as a TOML file. Every field is documented in `plans/README.md`.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

mod chain;
mod feed;
mod file;
mod pace;
mod published;
mod settings;
mod sync;
mod target;

pub(crate) use self::chain::check_scale;
pub use self::chain::{ChainPlan, Keys, Variant};
pub use self::feed::{Compact, Delivery, FeedPlan, Prefill, SeenMode};
pub use self::file::{BadValue, Kind, PlanError, checked, distinct, read, valid};
pub use self::pace::{Pace, Rate};
pub use self::published::{Figure, FigureKind, Published};
pub use self::settings::{AssayPlan, BitcoindPlan, IndexPlan, Setting, TargetsPlan};
pub use self::sync::{SyncPlan, TargetPlan};
pub use self::target::{BuiltSpec, IndexKind, IndexSpec, NodeSpec, TargetSpec, TargetSpecError};
pub(crate) use self::target::{USE_TARGETS, is_target_name};

pub const PLAN_FORMAT: u32 = 1;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Plan {
    /// Version of the plan format; see [`PLAN_FORMAT`].
    pub format: u32,
    #[serde(default, skip_serializing_if = "is_default")]
    pub kind: Kind,
    /// Short name, used for directories.
    pub name: String,
    /// Heading of the report.
    pub title: String,
    /// One paragraph under the heading.
    pub summary: String,
    pub chain: ChainPlan,
    pub feed: FeedPlan,
    /// Sync settings shared by all targets.
    #[serde(default, skip_serializing_if = "is_default")]
    pub sync: SyncPlan,
    pub runs: RunsPlan,
    #[serde(default)]
    pub index: IndexCheckPlan,
    #[serde(default)]
    pub target: TargetsPlan,
    /// Phases of the chain, in order.
    #[serde(rename = "phase")]
    pub phases: Vec<PhasePlan>,
    /// Transaction kinds whose time is fitted against their width.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub scaling: Vec<ScalingPlan>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub published: Option<Published>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct IndexCheckPlan {
    /// Maximum number of queried script hashes; a seeded sample if the chain has more.
    pub scripts_max: usize,
    pub sample_seed: u64,
}

impl Default for IndexCheckPlan {
    fn default() -> Self {
        Self { scripts_max: 100_000, sample_seed: 1 }
    }
}

/// Targets and repetitions.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunsPlan {
    /// Targets as on the command line: a node with an optional index; see [`TargetSpec`].
    #[serde(default = "default_targets")]
    pub targets: Vec<String>,
    /// Further targets with names and arguments of their own.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub target: Vec<TargetPlan>,
    /// Runs per target and pre-relayed share.
    #[serde(default = "one")]
    pub repeat: u32,
    /// Initial runs of each target that are not recorded.
    #[serde(default)]
    pub warmup: u32,
    /// Empty the page cache before each run, if permitted.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub drop_caches: bool,
    /// Evict only the chain's block files before each run, which needs no privileges.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub drop_blocks: bool,
    /// Folder that is copied as the initial data folder of every run; empty without it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start_from: Option<PathBuf>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PhasePlan {
    /// Name in the ledger.
    pub name: String,
    /// Name in the report.
    pub title: String,
    /// First and last height of this phase in the published chain.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub published_heights: Option<[u32; 2]>,
    /// True if the phase counts in totals and charts; false for set-up phases.
    #[serde(default = "yes")]
    pub measured: bool,
}

impl Plan {
    /// Built-in plans: names and texts.
    pub const BUILTIN: [(&'static str, &'static str); 11] = [
        ("bch-scaling", include_str!("../../../../plans/bch-scaling.toml")),
        ("bitcoin-scaling", include_str!("../../../../plans/bitcoin-scaling.toml")),
        ("compact-blocks", include_str!("../../../../plans/compact-blocks.toml")),
        ("core-evolution", include_str!("../../../../plans/core-evolution.toml")),
        ("coins", include_str!("../../../../plans/coins.toml")),
        ("placement", include_str!("../../../../plans/placement.toml")),
        ("sighash-scaling", include_str!("../../../../plans/sighash-scaling.toml")),
        ("aa", include_str!("../../../../plans/aa.toml")),
        ("ibd-tracking-macro", include_str!("../../../../plans/ibd-tracking-macro.toml")),
        ("ibd-tracking-history", include_str!("../../../../plans/ibd-tracking-history.toml")),
        ("dbcache", include_str!("../../../../plans/dbcache.toml")),
    ];

    /// Parses a built-in plan.
    ///
    /// # Errors
    /// When there is no plan of that name.
    pub fn builtin(name: &str) -> Result<Self, PlanError> {
        match Self::BUILTIN.iter().find(|(builtin, _)| *builtin == name) {
            Some((_, text)) => Self::parse(text, &format!("built-in plan {name}")),
            None => Err(PlanError::unknown(name, Self::BUILTIN.iter().map(|(name, _)| *name))),
        }
    }

    /// Parses and validates a plan; `origin` names it in errors.
    ///
    /// # Errors
    /// When `text` is no plan of a chain, or a value is invalid.
    pub fn parse(text: &str, origin: &str) -> Result<Self, PlanError> {
        let plan: Self = read(text, origin)?;
        checked(plan.check(), origin)?;
        Ok(plan)
    }

    /// Makes relative paths relative to the folder of the plan.
    pub fn enter(&mut self, folder: &Path) {
        if self.recipe_is_file() {
            self.chain.recipe = folder.join(&self.chain.recipe).display().to_string();
        }
    }

    /// True if the recipe is a file, false for a built-in name.
    pub(crate) fn recipe_is_file(&self) -> bool {
        self.chain.recipe.contains('/')
            || Path::new(&self.chain.recipe).extension().is_some_and(|ext| ext == "toml")
    }

    /// Parses the targets, in order.
    ///
    /// # Errors
    /// When one is of no known kind, which a validated plan does not have.
    pub fn targets(&self) -> Result<Vec<TargetSpec>, TargetSpecError> {
        let plain = self.runs.targets.iter().map(|target| target.parse());
        plain.chain(self.runs.target.iter().map(TargetPlan::spec)).collect()
    }

    /// Title of a phase; its ledger name if the plan does not list it.
    pub fn phase_title<'a>(&'a self, name: &'a str) -> &'a str {
        self.phases.iter().find(|phase| phase.name == name).map_or(name, |phase| &phase.title)
    }

    pub fn is_measured(&self, name: &str) -> bool {
        self.phases.iter().find(|phase| phase.name == name).is_none_or(|phase| phase.measured)
    }

    /// Validates values that TOML types cannot express.
    ///
    /// # Errors
    /// Key, value and violated rule.
    pub fn check(&self) -> Result<(), BadValue> {
        let Self { chain, index, runs, .. } = self;
        valid(self.format == PLAN_FORMAT, "format", &self.format, "only format 1 is known")?;
        valid(self.kind == Kind::Chain, "kind", &self.kind.as_str(), "use \"chain\"")?;
        valid(is_name(&self.name), "name", &self.name, "use small letters, digits and '-'")?;
        let scales = [("chain.scale", Some(chain.scale)), ("chain.byte_scale", chain.byte_scale)];
        for (key, scale) in scales {
            let Some(scale) = scale else { continue };
            check_scale(scale).map_err(|rule| (key.to_owned(), scale.to_string(), rule))?;
        }
        valid(!chain.recipe.is_empty(), "chain.recipe", &"", "a recipe is needed")?;
        let is_one = !chain.distinct_keys || chain.keys.is_empty();
        valid(is_one, "chain.distinct_keys", &true, "give it or `keys`, not both")?;
        let are_distinct = match chain.keys[..] {
            [] | [_] => true,
            [first, second] => first != second,
            _ => false,
        };
        valid(are_distinct, "chain.keys", &serde_json::json!(chain.keys), "each kind once")?;
        valid(index.scripts_max > 0, "index.scripts_max", &0, "at least one script is needed")?;
        let is_empty = chain.stop_height == Some(0);
        valid(!is_empty, "chain.stop_height", &0, "the first block has height 1")?;
        self.feed.check()?;
        valid((1..=100).contains(&runs.repeat), "runs.repeat", &runs.repeat, "use 1 to 100")?;
        valid(runs.warmup <= 10, "runs.warmup", &runs.warmup, "use 0 to 10")?;
        for target in &runs.targets {
            sync::check_spec("runs.targets", target)?;
        }
        sync::check(self)?;
        self.check_phases()
    }

    fn check_phases(&self) -> Result<(), BadValue> {
        let names = self.phases.iter().map(|phase| phase.name.as_str());
        distinct("phase.name", names.clone(), "each phase once")?;
        let series = self.scaling.iter().map(|plan| plan.series.as_str());
        for name in series.clone() {
            valid(is_name(name), "scaling.series", &name, "use small letters, digits and '-'")?;
        }
        distinct("scaling.series", series, "each series once")?;
        for Figure { phase, .. } in self.published.iter().flat_map(|published| &published.figures) {
            let is_listed = names.clone().any(|name| name == phase);
            let rule = "a figure belongs to a listed phase";
            valid(is_listed, "published.figure.phase", phase, rule)?;
        }
        Ok(())
    }
}

pub(crate) fn is_name(name: &str) -> bool {
    let allowed = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    !name.is_empty() && name.len() <= 64 && name.chars().all(allowed)
}

const fn one() -> u32 {
    1
}

const fn yes() -> bool {
    true
}

pub(crate) fn default_targets() -> Vec<String> {
    vec!["assay".to_owned()]
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// A transaction kind of several widths, each in its own phase named SERIES-WIDTH.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScalingPlan {
    /// Prefix of the phase names.
    pub series: String,
    /// Name in the report.
    pub title: String,
}

impl ScalingPlan {
    /// Inputs per transaction of a phase; `None` if it belongs to another kind.
    pub fn width(&self, phase: &str) -> Option<u32> {
        let width = phase.strip_prefix(&self.series)?.strip_prefix('-')?;
        let is_number = !width.is_empty() && width.bytes().all(|byte| byte.is_ascii_digit());
        width.parse().ok().filter(|width| is_number && *width > 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refuse(edit: impl Fn(&str) -> String) -> String {
        let text = edit(Plan::BUILTIN[0].1);
        Plan::parse(&text, "plan.toml").expect_err("must be refused").to_string()
    }

    #[test]
    fn builtin_plans_parse() {
        for (name, _) in Plan::BUILTIN {
            let plan = Plan::builtin(name).expect("a built-in plan is valid");
            assert_eq!(plan.name, name);
            // A sync measures the whole chain.
            let has_setup = plan.phases.iter().any(|phase| !phase.measured);
            assert_eq!(has_setup, !plan.feed.by.is_sync(), "{name}");
        }
    }

    #[test]
    fn plan_survives_json() {
        let plan = Plan::builtin("bch-scaling").expect("valid");
        let json = serde_json::to_string(&plan).expect("a plan is JSON");
        assert_eq!(serde_json::from_str::<Plan>(&json).expect("and back"), plan);
    }

    #[test]
    fn a_pace_of_older_plans_is_read_and_not_written() {
        let text = Plan::BUILTIN[0].1;
        let with = |pace: &str| text.replace("[feed]\n", &format!("[feed]\npace = \"{pace}\"\n"));
        let plan = Plan::parse(text, "plan.toml").expect("valid");
        assert!(plan == Plan::parse(&with("asap"), "plan.toml").expect("an older plan"));
        let json = serde_json::to_string(&plan).expect("a plan is JSON");
        assert!(!json.contains("pace"), "{json}");
        let refused = refuse(|_| with("slow"));
        assert!(refused.contains("slow") && refused.contains("asap"), "{refused}");
    }

    #[test]
    fn errors_name_key_and_position() {
        let unknown_key = refuse(|text| text.replace("scale =", "scael ="));
        let wrong_type = refuse(|text| text.replace("seed = ", "seed = -"));
        let not_toml = refuse(|text| text.replace("[feed]", "[feed"));
        let bad_mode = refuse(|text| text.replace("\"prefix\"", "\"suffix\""));
        insta::assert_snapshot!(
            [unknown_key, wrong_type, not_toml, bad_mode].join("\n---\n"),
            @r#"
        plan.toml, line 18, column 1: unknown field `scael`, expected one of `recipe`, `seed`, `scale`, `byte_scale`, `variant`, `distinct_keys`, `keys`, `stop_height`
        ---
        plan.toml, line 17, column 8: invalid value: integer `-1`, expected u64
        ---
        plan.toml, line 22, column 6: unclosed table, expected `]`
        ---
        plan.toml, line 24, column 13: unknown variant `suffix`, expected `prefix` or `random`
        "#
        );
    }

    #[test]
    fn rejects_impossible_values() {
        let cases = [
            ("scale = 0.02", "scale = 0"),
            ("scale = 0.02", "scale = nan"),
            ("scale = 0.02", "scale = 1e9"),
            ("seen = [0.0, 0.9]", "seen = []"),
            ("seen = [0.0, 0.9]", "seen = [0.9, 0.9]"),
            ("seen = [0.0, 0.9]", "seen = [1.5]"),
            ("repeat = 2", "repeat = 0"),
            ("targets = [\"assay+index\"]", "targets = [\"btcd\"]"),
            ("batch = 250", "by = \"peer\""),
            ("targets = [\"assay+index\"]", "targets = [\"bitcoind=/b+index\"]"),
            ("variant = \"intended\"", "stop_height = 0"),
            ("variant = \"intended\"", "distinct_keys = true"),
            ("\"faithful\", \"distinct\"", "\"distinct\", \"distinct\""),
            ("scripts_max = 100000", "scripts_max = 0"),
            ("format = 1", "format = 2"),
            ("name = \"bch-scaling\"", "name = \"../up\""),
        ];
        let said: Vec<String> = cases
            .iter()
            .map(|(from, to)| {
                refuse(|text| {
                    assert!(text.contains(from), "{from} is in the plan");
                    text.replacen(from, to, 1)
                })
            })
            .collect();
        insta::assert_snapshot!(said.join("\n"), @r#"
        plan.toml: chain.scale = 0: a scale is above 0 and at most 50
        plan.toml: chain.scale = NaN: a scale is above 0 and at most 50
        plan.toml: chain.scale = 1000000000: a scale is above 0 and at most 50
        plan.toml: feed.seen = []: at least one share is needed
        plan.toml: feed.seen = 0.9: each share once, in whole percent
        plan.toml: feed.seen = 1.5: a share lies between 0.0 and 1.0
        plan.toml: runs.repeat = 0: use 1 to 100
        plan.toml: runs.targets = btcd: use assay[=PATH], engine[=PATH], bitcoind=PATH, core@REV[+COMPILER] (a build of `assay builds make`), btcd=PATH or kernel[=PATH], and +index (ours), +fulcrum=PATH, +electrs=PATH or +electrumx=PATH for an index; a name before it ends with ':', arguments follow after blanks
        plan.toml: feed.seen = [0.0, 0.9]: a target that fetches blocks is sent no transactions: use [0.0]
        plan.toml: runs.targets = bitcoind=/b+index: only our own node has an index of ours
        plan.toml: chain.stop_height = 0: the first block has height 1
        plan.toml: chain.distinct_keys = true: give it or `keys`, not both
        plan.toml: chain.keys = ["distinct","distinct"]: each kind once
        plan.toml: index.scripts_max = 0: at least one script is needed
        plan.toml: format = 2: only format 1 is known
        plan.toml: name = ../up: use small letters, digits and '-'
        "#);
    }

    #[test]
    fn unknown_name_lists_the_known() {
        let error = Plan::builtin("nothing").expect_err("must be refused");
        insta::assert_snapshot!(error, @r#"no built-in plan "nothing"; there are: bch-scaling, bitcoin-scaling, compact-blocks, core-evolution, coins, placement, sighash-scaling, aa, ibd-tracking-macro, ibd-tracking-history, dbcache"#);
    }
}
