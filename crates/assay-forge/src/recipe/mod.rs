//! Recipes: descriptions of chains in TOML.

mod history;
mod scaling;
mod widths;

use std::{fmt, ops::RangeInclusive};

use serde::{Deserialize, de::DeserializeOwned};
use thiserror::Error;
use toml::{Table, Value};

pub(crate) use self::history::{Fork, HistoryFile, Shapes, outputs_of_tx};
pub(crate) use self::scaling::{ScalingFile, Scripts};
pub(crate) use self::widths::{WidthsFile, bound};
use crate::network::{DUST, Network};

#[derive(Clone, Debug)]
pub struct Recipe {
    pub(crate) kind: RecipeKind,
    sha256: [u8; 32],
}

#[derive(Clone, Debug)]
pub(crate) enum RecipeKind {
    /// Fan-out, steady state, fan-in.
    Scaling(Box<ScalingFile>),
    /// Transactions with few to many inputs.
    Widths(Box<WidthsFile>),
    /// Eras of the main chain.
    History(Box<HistoryFile>),
}

impl Recipe {
    /// A built-in recipe.
    ///
    /// # Errors
    /// [`RecipeError::Unknown`] if there is none with this name.
    pub fn builtin(name: &str) -> Result<Self, RecipeError> {
        match BUILTIN.iter().find(|(builtin, _)| *builtin == name) {
            Some((_, text)) => Self::from_toml(text),
            None => Err(RecipeError::Unknown { name: name.to_owned() }),
        }
    }

    pub fn builtin_names() -> impl Iterator<Item = &'static str> {
        BUILTIN.iter().map(|(name, _)| *name)
    }

    /// The text of a built-in recipe: a commented template for custom ones.
    pub fn builtin_text(name: &str) -> Option<&'static str> {
        BUILTIN.iter().find(|(builtin, _)| *builtin == name).map(|(_, text)| *text)
    }

    /// Parses and checks a recipe.
    ///
    /// # Errors
    /// If the recipe is malformed or impossible; the error names key, value and rule.
    pub fn from_toml(text: &str) -> Result<Self, RecipeError> {
        let tables: Table = read(text)?;
        if tables.contains_key(EXTENDS) {
            return extended(text, tables);
        }
        let kind = if tables.contains_key("widths") {
            let file: WidthsFile = read(text)?;
            file.check()?;
            RecipeKind::Widths(Box::new(file))
        } else if tables.contains_key("history") {
            let file: HistoryFile = read(text)?;
            file.check()?;
            RecipeKind::History(Box::new(file))
        } else {
            let file: ScalingFile = read(text)?;
            file.check()?;
            RecipeKind::Scaling(Box::new(file))
        };
        Ok(Self { kind, sha256: assay_hash::sha256(text.as_bytes()) })
    }

    pub fn name(&self) -> &str {
        self.head().0
    }

    pub fn network(&self) -> Network {
        self.head().1
    }

    fn head(&self) -> (&str, Network) {
        match &self.kind {
            RecipeKind::Scaling(file) => (&file.name, file.chain),
            RecipeKind::Widths(file) => (&file.name, file.chain),
            RecipeKind::History(file) => (&file.name, file.chain),
        }
    }

    /// Scale for a quick run: seconds of work.
    pub fn scale_by_default(&self) -> f64 {
        match &self.kind {
            RecipeKind::History(_) => 0.05,
            _ => 0.02,
        }
    }

    /// SHA-256 of the recipe's text, followed by the text of the history that it extends, if any.
    pub fn sha256(&self) -> [u8; 32] {
        self.sha256
    }
}

#[derive(Debug, Error)]
pub enum RecipeError {
    #[error(
        "there is no built-in recipe {name:?}; there are bch-scaling, bitcoin-placement, bitcoin-scaling, history, history-settled, sighash-scaling and wide-set, or give the path of a TOML file"
    )]
    Unknown { name: String },
    #[error("the recipe does not read: {0}")]
    Syntax(#[source] toml::de::Error),
    /// The extended recipe is not an extensible built-in one.
    #[error("extends = {base:?} is impossible: name a built-in recipe that is a history: history")]
    Extends { base: String },
    #[error("{key} = {value} is impossible: {reason}; choose {min} to {max}")]
    Range { key: &'static str, value: u64, min: u64, max: u64, reason: &'static str },
    #[error("{key} is missing: a recipe for {chain} needs it; add it")]
    Missing { key: &'static str, chain: &'static str },
    #[error("{key} means nothing on {chain}: {reason}; remove it")]
    NotForChain { key: &'static str, chain: &'static str, reason: &'static str },
    /// Values are valid separately but not together.
    #[error("{keys} do not go together: {have} {unit}, but {need} {unit} are needed {reason}")]
    Together { keys: &'static str, have: u64, need: u64, unit: &'static str, reason: &'static str },
    #[error("{key} = {value} is impossible: {rule}")]
    List { key: &'static str, value: String, rule: &'static str },
    #[error("era {era:?}: {key} = {value} is impossible: {rule}")]
    Era { era: String, key: &'static str, value: String, rule: &'static str },
    #[error("name = {name:?} is impossible: use 1 to 64 letters, digits, dots and hyphens")]
    Name { name: String },
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Blocks {
    pub(crate) blocks: u32,
}

/// Checks the common head of every recipe.
fn check_head(
    format: u64,
    name: &str,
    block_interval_s: u32,
    fee_sat_per_kb: u64,
) -> Result<(), RecipeError> {
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '.';
    range(("format", format, 1..=1, "this program reads format 1"))?;
    if name.is_empty() || name.len() > 64 || !name.chars().all(plain) {
        return Err(RecipeError::Name { name: name.to_owned() });
    }
    let interval = u64::from(block_interval_s);
    let fee_rule = "nodes relay from 1 satoshi per byte on, and the outputs are small";
    ranges([
        ("block_interval_s", interval, 1..=86_400, "each block must be later than the one before"),
        ("fee_sat_per_kb", fee_sat_per_kb, 1_000..=20_000, fee_rule),
    ])
}

/// Key, value, allowed values and their reason.
type Rule = (&'static str, u64, RangeInclusive<u64>, &'static str);

fn ranges<const N: usize>(rules: [Rule; N]) -> Result<(), RecipeError> {
    rules.into_iter().try_for_each(range)
}

fn range((key, value, allowed, reason): Rule) -> Result<(), RecipeError> {
    if allowed.contains(&value) {
        return Ok(());
    }
    Err(RecipeError::Range { key, value, min: *allowed.start(), max: *allowed.end(), reason })
}

/// Rejects values that are too low together. `reason` is the purpose, and a remedy.
fn enough(
    keys: &'static str,
    (have, need): (u64, u64),
    unit: &'static str,
    reason: &'static str,
) -> Result<(), RecipeError> {
    if have >= need {
        return Ok(());
    }
    Err(RecipeError::Together { keys, have, need, unit, reason })
}

/// Rules for the amounts of fan-out outputs.
fn amount_rules(amount_min: u64, amount_span: u32) -> [Rule; 2] {
    let span_rule = "the span of amounts starts at one value";
    [
        ("fan_out.amount_min", amount_min, DUST..=1_000_000, "less is dust"),
        ("fan_out.amount_span", amount_span.into(), 1..=1_000_000, span_rule),
    ]
}

const MATURITY: &str =
    "a coinbase can be spent after 100 blocks, and those spent are from before the first halving";

fn read<T: DeserializeOwned>(text: &str) -> Result<T, RecipeError> {
    toml::from_str(text).map_err(RecipeError::Syntax)
}

/// The key with the name of the extended recipe.
const EXTENDS: &str = "extends";

/// The table array that is appended to instead of replaced.
const ADDED: &str = "era";

/// The recipe of `text`, parsed as `own`: its keys override those of a built-in history, and its eras follow that one's.
fn extended(text: &str, mut own: Table) -> Result<Recipe, RecipeError> {
    let name = own.remove(EXTENDS).unwrap_or(Value::Boolean(false));
    let base = name.as_str().and_then(base);
    let Some(base) = base else {
        let base = name.as_str().map_or_else(|| name.to_string(), str::to_owned);
        return Err(RecipeError::Extends { base });
    };
    let mut tables: Table = read(base)?;
    merge(&mut tables, own);
    let file = HistoryFile::deserialize(Value::Table(tables)).map_err(RecipeError::Syntax)?;
    file.check()?;
    let both = [text, base].concat();
    let sha256 = assay_hash::sha256(both.as_bytes());
    Ok(Recipe { kind: RecipeKind::History(Box::new(file)), sha256 })
}

/// The text of a built-in history that does not extend another one.
fn base(name: &str) -> Option<&'static str> {
    let (_, text) = BUILTIN.iter().find(|(builtin, _)| *builtin == name)?;
    let tables: Table = toml::from_str(text).ok()?;
    (tables.contains_key("history") && !tables.contains_key(EXTENDS)).then_some(text)
}

fn merge(into: &mut Table, own: Table) {
    for (key, value) in own {
        match (into.get_mut(&key), value) {
            (Some(Value::Table(into)), Value::Table(own)) => merge(into, own),
            (Some(Value::Array(into)), Value::Array(own)) if key == ADDED => into.extend(own),
            (_, value) => {
                into.insert(key, value);
            }
        }
    }
}

impl fmt::Display for Recipe {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} on {}", self.name(), self.network().name())
    }
}

const BUILTIN: [(&str, &str); 7] = [
    ("bch-scaling", include_str!("../../recipes/bch-scaling.toml")),
    ("bitcoin-placement", include_str!("../../recipes/bitcoin-placement.toml")),
    ("bitcoin-scaling", include_str!("../../recipes/bitcoin-scaling.toml")),
    ("history", include_str!("../../recipes/history.toml")),
    ("history-settled", include_str!("../../recipes/history-settled.toml")),
    ("sighash-scaling", include_str!("../../recipes/sighash-scaling.toml")),
    ("wide-set", include_str!("../../recipes/wide-set.toml")),
];
