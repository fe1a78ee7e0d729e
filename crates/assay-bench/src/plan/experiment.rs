//! Plans of all kinds by name or path, with changes of their keys.

use std::borrow::Cow;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::{fmt, fs};

use assay_lab::admission::MempoolPlan;
use assay_lab::plan::{BadValue, Kind, Plan, PlanError, checked, read};
use toml::{Table, Value};

use super::{BenchPlan, StepsPlan};

/// A plan; its key `kind` selects the type.
#[derive(Clone, Debug, PartialEq)]
pub enum Experiment {
    Chain(Box<Plan>),
    Mempool(Box<MempoolPlan>),
    Bench(Box<BenchPlan>),
    Steps(Box<StepsPlan>),
}

impl Experiment {
    /// Names and texts of all built-in plans.
    pub fn builtin() -> impl Iterator<Item = (&'static str, &'static str)> {
        let others =
            [("ibd-tracking-core", include_str!("../../../../plans/ibd-tracking-core.toml"))];
        let benches = BenchPlan::BUILTIN.into_iter().chain(others);
        Plan::BUILTIN.into_iter().chain([MempoolPlan::BUILTIN]).chain(benches)
    }

    /// Parses and validates a plan; `origin` names it in errors.
    ///
    /// # Errors
    /// When `text` is not TOML, has an unknown key, or a value is invalid.
    pub fn parse(text: &str, origin: &str) -> Result<Self, PlanError> {
        let plan = Self::read(Kind::of(text, origin)?, text, origin)?;
        checked(plan.check(), origin)?;
        Ok(plan)
    }

    pub fn title(&self) -> &str {
        match self {
            Self::Chain(plan) => &plan.title,
            Self::Mempool(plan) => &plan.title,
            Self::Bench(plan) => &plan.title,
            Self::Steps(plan) => &plan.title,
        }
    }

    fn read(kind: Kind, text: &str, origin: &str) -> Result<Self, PlanError> {
        Ok(match kind {
            Kind::Chain => Self::Chain(read(text, origin)?),
            Kind::Mempool => Self::Mempool(read(text, origin)?),
            Kind::Bench => Self::Bench(read(text, origin)?),
            Kind::Steps => Self::Steps(read(text, origin)?),
        })
    }

    fn check(&self) -> Result<(), BadValue> {
        match self {
            Self::Chain(plan) => plan.check(),
            Self::Mempool(plan) => plan.check(),
            Self::Bench(plan) => plan.check(),
            Self::Steps(plan) => plan.check(),
        }
    }

    /// Makes relative paths relative to the folder of the plan.
    fn enter(&mut self, folder: &Path) {
        match self {
            Self::Chain(plan) => plan.enter(folder),
            Self::Mempool(_) => {}
            Self::Bench(plan) => plan.enter(folder),
            Self::Steps(plan) => plan.enter(folder),
        }
    }
}

/// A changed key of a plan: `--set KEY=VALUE`, or a flag that is short for it.
#[derive(Clone, Debug, PartialEq)]
pub struct Change {
    key: String,
    value: Value,
    /// As on the command line, for errors.
    flag: String,
}

impl Change {
    /// A key that `flag` stands for.
    pub fn new(flag: &str, key: &str, value: Value) -> Self {
        Self { key: key.to_owned(), value, flag: flag.to_owned() }
    }

    /// The key with its sections, separated by dots.
    pub fn key(&self) -> &str {
        &self.key
    }
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.flag)
    }
}

impl FromStr for Change {
    type Err = &'static str;

    /// A value that is not TOML is a string.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let rule = "give KEY=VALUE, such as feed.pace=600s; plans/README.md lists the keys";
        let (key, given) = text.split_once('=').ok_or(rule)?;
        if key.split('.').any(str::is_empty) {
            return Err(rule);
        }
        let table = format!("value = {given}").parse::<Table>().ok();
        let mut alone = table.filter(|table| table.len() == 1);
        let value = alone.as_mut().and_then(|table| table.remove("value"));
        Ok(Self::new(&format!("--set {text}"), key, value.unwrap_or_else(|| given.into())))
    }
}

/// The text of a plan, whose keys can be changed before it is used.
#[derive(Clone, Debug)]
pub struct PlanText {
    pub kind: Kind,
    /// Built-in name or path.
    name: String,
    text: Cow<'static, str>,
    /// Folder of relative paths, of a plan in a file.
    folder: Option<PathBuf>,
}

impl PlanText {
    /// Finds a plan by its path, or the built-in plan of that name.
    ///
    /// # Errors
    /// When there is none, or it is not TOML.
    pub fn find(name: &str) -> Result<Self, PlanError> {
        let path = Path::new(name);
        let (text, folder): (Cow<'static, str>, _) =
            if path.extension().is_some() || path.components().count() > 1 {
                let text = fs::read_to_string(path)
                    .map_err(|source| PlanError::Read { path: path.to_owned(), source })?;
                (text.into(), path.parent().map(Path::to_owned))
            } else {
                let known = || Experiment::builtin().map(|(name, _)| name);
                let found = Experiment::builtin().find(|(builtin, _)| *builtin == name);
                let (_, text) = found.ok_or_else(|| PlanError::unknown(name, known()))?;
                (text.into(), None)
            };
        Ok(Self { kind: Kind::of(&text, name)?, name: name.to_owned(), text, folder })
    }

    /// True if the plan has this section or key at the top level.
    pub fn has(&self, key: &str) -> bool {
        self.text.parse::<Table>().is_ok_and(|table| table.contains_key(key))
    }

    /// The plan after all changes.
    ///
    /// # Errors
    /// When plans of this kind have no such key, or a value is invalid.
    pub fn plan(&self, changes: &[Change]) -> Result<Experiment, PlanError> {
        let mut plan = Experiment::read(self.kind, &self.text, &self.name)?;
        checked(plan.check(), &self.name)?;
        if let Some(folder) = &self.folder {
            plan.enter(folder);
        }
        let mut text = self.text.clone();
        for change in changes {
            let (after, changed) = self.changed(&text, change)?;
            (text, plan) = (after.into(), changed);
            if let Some(folder) = &self.folder {
                plan.enter(folder);
            }
        }
        checked(plan.check(), "command line")?;
        Ok(plan)
    }

    /// The plan, which has to be of a chain.
    ///
    /// # Errors
    /// When it is of another kind, or not valid.
    pub fn chain(&self) -> Result<Plan, PlanError> {
        match self.plan(&[])? {
            Experiment::Chain(plan) => Ok(*plan),
            _ => Err(self.other_kind(Kind::Chain)),
        }
    }

    /// The plan after all changes, which has to be of benchmarks.
    ///
    /// # Errors
    /// When it is of another kind, or a value is invalid.
    pub fn bench(&self, changes: &[Change]) -> Result<BenchPlan, PlanError> {
        match self.plan(changes)? {
            Experiment::Bench(plan) => Ok(*plan),
            _ => Err(self.other_kind(Kind::Bench)),
        }
    }

    fn other_kind(&self, wanted: Kind) -> PlanError {
        PlanError::OtherKind { name: self.name.clone(), kind: self.kind, wanted }
    }

    fn changed(&self, text: &str, change: &Change) -> Result<(String, Experiment), PlanError> {
        let name = || change.to_string();
        put(self.kind, text, change).map_err(|why| match why {
            Misfit::Value(message) => PlanError::Change { change: name(), message },
            Misfit::Key => PlanError::UnknownKey {
                change: name(),
                name: self.name.clone(),
                kind: self.kind,
                owners: owners(change),
            },
        })
    }
}

/// Reason why a plan cannot be changed.
enum Misfit {
    /// The plan has no such key.
    Key,
    /// The value is of the wrong type.
    Value(String),
}

/// Changes a key; one value stands for a list of it where the key is a list.
fn put(kind: Kind, text: &str, change: &Change) -> Result<(String, Experiment), Misfit> {
    let with = |value: Value| -> Result<(String, Experiment), Misfit> {
        let mut table: Table = text.parse().map_err(|_| Misfit::Key)?;
        let mut section = &mut table;
        let mut names = change.key.split('.').peekable();
        while let Some(name) = names.next() {
            if names.peek().is_none() {
                section.insert(name.to_owned(), value);
                break;
            }
            // Another section of a plan of benchmarks would add a suite.
            if kind == Kind::Bench && !section.contains_key(name) {
                return Err(Misfit::Key);
            }
            let inner = section.entry(name).or_insert_with(|| Table::new().into());
            section = inner.as_table_mut().ok_or(Misfit::Key)?;
        }
        let text = toml::to_string(&table).map_err(|error| Misfit::Value(error.to_string()))?;
        match Experiment::read(kind, &text, "") {
            Ok(plan) => Ok((text, plan)),
            Err(PlanError::Syntax { message, .. }) if message.starts_with("unknown field") => {
                Err(Misfit::Key)
            }
            Err(PlanError::Syntax { message, .. }) => Err(Misfit::Value(message)),
            Err(error) => Err(Misfit::Value(error.to_string())),
        }
    };
    match with(change.value.clone()) {
        Err(Misfit::Value(message)) => {
            with(vec![change.value.clone()].into()).map_err(|_| Misfit::Value(message))
        }
        done => done,
    }
}

/// The built-in plans that have the key of a change.
fn owners(change: &Change) -> String {
    let has = |text: &str| {
        let kind = Kind::of(text, "")?;
        Ok::<_, PlanError>(!matches!(put(kind, text, change), Err(Misfit::Key)))
    };
    let plans = Experiment::builtin().filter(|(_, text)| has(text).unwrap_or_default());
    let names: Vec<&str> = plans.map(|(name, _)| name).collect();
    let key = change.key();
    if names.is_empty() {
        format!("no plan has a key {key}")
    } else {
        format!("{key} is a key of {}", names.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn find(name: &str) -> PlanText {
        PlanText::find(name).expect("built in")
    }

    fn change(text: &str) -> Change {
        text.parse().expect("a change")
    }

    #[test]
    fn builtin_plans_parse() {
        for (name, text) in Experiment::builtin() {
            let plan = find(name).plan(&[]).expect("a built-in plan is valid");
            assert_eq!(plan, Experiment::parse(text, name).expect("valid"));
            assert!(!plan.title().is_empty());
            let again = match &plan {
                Experiment::Chain(plan) => {
                    let json = serde_json::to_string(plan).expect("a plan is JSON");
                    Experiment::Chain(serde_json::from_str(&json).expect("and back"))
                }
                Experiment::Bench(plan) => {
                    assert_eq!(plan.name, name);
                    let json = serde_json::to_string(plan).expect("a plan is JSON");
                    Experiment::Bench(serde_json::from_str(&json).expect("and back"))
                }
                Experiment::Steps(plan) => {
                    assert_eq!(plan.name, name);
                    let json = serde_json::to_string(plan).expect("a plan is JSON");
                    Experiment::Steps(serde_json::from_str(&json).expect("and back"))
                }
                Experiment::Mempool(_) => plan.clone(),
            };
            assert_eq!(again, plan);
        }
    }

    #[test]
    fn keys_are_changed() {
        let changes =
            ["feed.seen=0.5", "runs.repeat=4", "feed.by=p2p", "sync.threads=2"].map(change);
        let Ok(Experiment::Chain(plan)) = find("bch-scaling").plan(&changes) else {
            panic!("valid")
        };
        assert_eq!((&plan.feed.seen[..], plan.runs.repeat), (&[0.5][..], 4));
        assert_eq!((plan.feed.by.as_str(), plan.sync.threads), ("p2p", Some(2)));
        let changes = ["worst.nodes=[\"assay\"]", "worst.seconds_max=3"].map(change);
        let Ok(Experiment::Bench(plan)) = find("worst-blocks").plan(&changes) else {
            panic!("valid")
        };
        let worst = plan.worst.as_ref().expect("a section");
        assert_eq!((&worst.nodes[..], worst.seconds_max), (&["assay".to_owned()][..], 3.0));
        // Only the values after all changes are validated.
        let sync = ["feed.by=peer", "feed.seen=[0.0]"].map(change);
        assert!(find("bch-scaling").plan(&sync).is_ok());
        assert!(find("bch-scaling").plan(&sync[..1]).is_err());
    }

    #[test]
    fn wrong_changes_name_the_plans_of_the_key() {
        for (plan, text, said) in [
            (
                "mempool",
                "feed.seen=1",
                "--set feed.seen=1 means nothing for mempool, a plan of kind mempool: feed.seen is a key of bch-scaling, ",
            ),
            ("stack-element-size", "worst.nodes=a", "worst.nodes is a key of worst-blocks"),
            ("aa", "pairs=3", "pairs is a key of ibd-tracking-core"),
            ("aa", "chain.sede=3", "no plan has a key chain.sede"),
            ("aa", "chain.seed.x=3", "no plan has a key chain.seed.x"),
            ("aa", "chain.seed=x", "--set chain.seed=x: invalid type: string \"x\", expected u64"),
            ("aa", "feed.by=post", "unknown variant `post`"),
            ("aa", "chain.scale=99", "command line: chain.scale = 99: a scale is above 0"),
            ("ibd-tracking-core", "rounds=0", "command line: rounds = 0"),
        ] {
            let error = find(plan).plan(&[change(text)]).expect_err(text).to_string();
            assert!(error.contains(said), "{error}");
        }
        for text in ["", "seed", "=1", ".seed=1", "chain.=1"] {
            assert!(text.parse::<Change>().is_err(), "{text}");
        }
    }

    #[test]
    fn values_are_toml_or_strings() {
        for (text, value) in [
            ("a=1", Value::from(1)),
            ("a=\"1\"", "1".into()),
            ("a=[0.5, 1.0]", vec![0.5, 1.0].into()),
            ("a=/opt/x=y", "/opt/x=y".into()),
            ("a=1\nb = 2", "1\nb = 2".into()),
            ("a=", "".into()),
        ] {
            assert_eq!(change(text).value, value, "{text}");
        }
    }
}
