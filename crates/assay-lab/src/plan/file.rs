//! Text of plans: kinds, parsing with positions, and errors.

use std::collections::HashSet;
use std::fmt::Display;
use std::io;
use std::ops::Range;
use std::path::PathBuf;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// Kind of a plan, its key `kind`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// A chain that is fed to nodes, or synced by them: [`super::Plan`].
    #[default]
    Chain,
    /// Transactions without blocks: [`crate::admission::MempoolPlan`].
    Mempool,
    /// Benchmarks, of `assay-bench`.
    Bench,
    /// Steps of a branch, of `assay-bench`.
    Steps,
}

impl Kind {
    /// Name in plans.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Chain => "chain",
            Self::Mempool => "mempool",
            Self::Bench => "bench",
            Self::Steps => "steps",
        }
    }

    /// Kind of a plan, valid or not.
    ///
    /// # Errors
    /// When `text` is not TOML or has an unknown kind.
    pub fn of(text: &str, origin: &str) -> Result<Self, PlanError> {
        #[derive(Deserialize)]
        struct Head {
            #[serde(default)]
            kind: Kind,
        }
        read::<Head>(text, origin).map(|head| head.kind)
    }
}

/// Parses a plan of a known kind without validating its values; `origin` names it in errors.
///
/// # Errors
/// When `text` is not TOML, has an unknown key, lacks one, or a value is of the wrong type.
pub fn read<P: DeserializeOwned>(text: &str, origin: &str) -> Result<P, PlanError> {
    toml::from_str(text)
        .map_err(|error| PlanError::syntax(text, origin, error.span(), error.message()))
}

/// Adds the name of the plan to the result of a validation.
///
/// # Errors
/// When a value is invalid.
pub fn checked(result: Result<(), BadValue>, origin: &str) -> Result<(), PlanError> {
    result.map_err(|(key, value, rule)| PlanError::Value {
        origin: origin.to_owned(),
        key,
        value,
        rule,
    })
}

/// Key, value and violated rule.
pub type BadValue = (String, String, &'static str);

/// Checks a value.
///
/// # Errors
/// When it is not valid.
pub fn valid(
    is_valid: bool,
    key: &str,
    value: &dyn Display,
    rule: &'static str,
) -> Result<(), BadValue> {
    if is_valid { Ok(()) } else { Err((key.to_owned(), value.to_string(), rule)) }
}

/// Checks that no name is there twice.
///
/// # Errors
/// When one is.
pub fn distinct<'a>(
    key: &str,
    names: impl IntoIterator<Item = &'a str>,
    rule: &'static str,
) -> Result<(), BadValue> {
    let mut seen = HashSet::new();
    names.into_iter().try_for_each(|name| valid(seen.insert(name), key, &name, rule))
}

#[derive(Debug, thiserror::Error)]
pub enum PlanError {
    #[error("no built-in plan {name:?}; there are: {known}")]
    UnknownName {
        /// Requested name.
        name: String,
        known: String,
    },
    #[error("{name} is a plan of kind {}, not of kind {}", kind.as_str(), wanted.as_str())]
    OtherKind { name: String, kind: Kind, wanted: Kind },
    /// A flag changes a key that plans of another kind have.
    #[error("{change} means nothing for {name}, a plan of kind {}: {owners}", kind.as_str())]
    UnknownKey {
        /// The flag with its value.
        change: String,
        name: String,
        kind: Kind,
        /// Key, and the plans that have it.
        owners: String,
    },
    /// A flag changes a key to a value of the wrong type.
    #[error("{change}: {message}")]
    Change { change: String, message: String },
    #[error("cannot read plan {}", path.display())]
    Read { path: PathBuf, source: io::Error },
    /// Invalid TOML, an unknown or missing key, or a value of the wrong type.
    #[error("{origin}, line {line}, column {column}: {message}")]
    Syntax {
        /// File or built-in name.
        origin: String,
        /// Line number from 1.
        line: usize,
        /// Column in characters from 1.
        column: usize,
        message: String,
    },
    #[error("{origin}: {key} = {value}: {rule}")]
    Value {
        /// File or built-in name.
        origin: String,
        key: String,
        value: String,
        rule: &'static str,
    },
}

impl PlanError {
    pub fn unknown<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> Self {
        let known = known.collect::<Vec<_>>().join(", ");
        Self::UnknownName { name: name.to_owned(), known }
    }

    /// A parser error at a position of `text`, whose name is `origin`; without a span the position is the beginning.
    fn syntax(text: &str, origin: &str, span: Option<Range<usize>>, message: &str) -> Self {
        let (line, column) = position(text, span.map_or(0, |span| span.start));
        Self::Syntax { origin: origin.to_owned(), line, column, message: message.to_owned() }
    }
}

/// Line and column (both from 1) of a byte offset.
fn position(text: &str, byte: usize) -> (usize, usize) {
    let before = text.get(..byte).unwrap_or(text);
    let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
    (before.matches('\n').count() + 1, before[line_start..].chars().count() + 1)
}
