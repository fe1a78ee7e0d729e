//! Why a plan cannot be taken.

use std::io;
use std::ops::Range;
use std::path::PathBuf;

/// Key, value and the rule it breaks.
pub(crate) type BadValue = (String, String, &'static str);

#[derive(Debug, thiserror::Error)]
pub enum PlanError {
    #[error("no built-in plan {name:?}; there are: {known}")]
    UnknownName {
        /// The name asked for.
        name: String,
        /// The names there are.
        known: String,
    },
    #[error("cannot read plan {}", path.display())]
    Read { path: PathBuf, source: io::Error },
    /// Not TOML, an unknown or missing key, or a value of the wrong type.
    #[error("{origin}, line {line}, column {column}: {message}")]
    Syntax {
        /// File or built-in name.
        origin: String,
        /// Line, from 1.
        line: usize,
        /// Column in characters, from 1.
        column: usize,
        /// What the parser says.
        message: String,
    },
    /// A value that cannot be meant.
    #[error("{origin}: {key} = {value}: {rule}")]
    Value {
        /// File or built-in name.
        origin: String,
        key: String,
        value: String,
        /// The rule it breaks.
        rule: &'static str,
    },
}

impl PlanError {
    /// What a parser says about a place in `text`, of which `origin` is the name; without a place it is the beginning.
    pub fn syntax(text: &str, origin: &str, span: Option<Range<usize>>, message: &str) -> Self {
        let (line, column) = position(text, span.map_or(0, |span| span.start));
        Self::Syntax { origin: origin.to_owned(), line, column, message: message.to_owned() }
    }
}

/// Line and column (both from 1) of a byte position.
fn position(text: &str, byte: usize) -> (usize, usize) {
    let before = text.get(..byte).unwrap_or(text);
    let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
    (before.matches('\n').count() + 1, before[line_start..].chars().count() + 1)
}
