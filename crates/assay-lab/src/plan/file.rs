//! Reads plans of all kinds.

use std::fs;
use std::path::Path;

use serde::de::DeserializeOwned;

use super::error::{BadValue, PlanError};

/// A plan of one kind: a TOML file, or a built-in text.
pub trait PlanFile: DeserializeOwned {
    /// Built-in plans by name.
    const BUILTIN: &'static [(&'static str, &'static str)];
    /// Value of the key `kind`; plans of chains have no such key.
    const KIND: Option<&'static str>;

    /// Heading of the report.
    fn title(&self) -> &str;

    /// Validates values that TOML types cannot express.
    ///
    /// # Errors
    /// Key, value and violated rule.
    fn check(&self) -> Result<(), BadValue>;

    /// Makes relative paths relative to the folder of the plan.
    fn enter(&mut self, _folder: &Path) {}

    /// Names of the built-in plans.
    fn builtin_names() -> impl Iterator<Item = &'static str> {
        Self::BUILTIN.iter().map(|(name, _)| *name)
    }

    /// Text of a built-in plan, as a template.
    fn builtin_text(name: &str) -> Option<&'static str> {
        Self::BUILTIN.iter().find(|(builtin, _)| *builtin == name).map(|(_, text)| *text)
    }

    /// True if `text` is a plan of this kind, valid or not.
    fn is_one(text: &str) -> bool {
        let table = text.parse::<toml::Table>();
        table.is_ok_and(|table| table.get("kind").and_then(toml::Value::as_str) == Self::KIND)
    }

    /// Loads a plan from a file.
    ///
    /// # Errors
    /// When the file cannot be read, is not TOML, has an unknown key or an invalid value.
    fn load(path: &Path) -> Result<Self, PlanError> {
        let text = fs::read_to_string(path)
            .map_err(|source| PlanError::Read { path: path.to_owned(), source })?;
        let mut plan = Self::parse(&text, &path.display().to_string())?;
        plan.enter(path.parent().unwrap_or(Path::new("")));
        Ok(plan)
    }

    /// Parses a plan; `origin` names it in errors.
    ///
    /// # Errors
    /// As [`PlanFile::load`].
    fn parse(text: &str, origin: &str) -> Result<Self, PlanError> {
        let plan: Self = toml::from_str(text)
            .map_err(|error| PlanError::syntax(text, origin, error.span(), error.message()))?;
        plan.checked(origin)
    }

    /// Validates a plan after changes; `origin` names it in errors.
    ///
    /// # Errors
    /// When a value is invalid.
    fn checked(self, origin: &str) -> Result<Self, PlanError> {
        match self.check() {
            Ok(()) => Ok(self),
            Err((key, value, rule)) => {
                Err(PlanError::Value { origin: origin.to_owned(), key, value, rule })
            }
        }
    }
}
