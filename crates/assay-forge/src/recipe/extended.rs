//! Recipes that extend a built-in history: their keys override its keys, and their eras follow its eras.

use serde::Deserialize;
use toml::{Table, Value};

use super::{BUILTIN, HistoryFile, Recipe, RecipeError, RecipeKind};

/// The key with the name of the extended recipe.
pub(super) const EXTENDS: &str = "extends";

/// The table array that is appended to instead of replaced.
const ADDED: &str = "era";

/// The recipe of `text`, parsed as `own`.
pub(super) fn recipe(text: &str, mut own: Table) -> Result<Recipe, RecipeError> {
    let name = own.remove(EXTENDS).unwrap_or(Value::Boolean(false));
    let base = name.as_str().and_then(base);
    let Some(base) = base else {
        let base = name.as_str().map_or_else(|| name.to_string(), str::to_owned);
        return Err(RecipeError::Extends { base });
    };
    let mut tables: Table = toml::from_str(base).map_err(RecipeError::Syntax)?;
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
