//! Errors of plans.

use std::io;
use std::ops::Range;
use std::path::PathBuf;

/// Key, value and violated rule.
pub type BadValue = (String, String, &'static str);

#[derive(Debug, thiserror::Error)]
pub enum PlanError {
    #[error("no built-in plan {name:?}; there are: {known}")]
    UnknownName {
        /// Requested name.
        name: String,
        known: String,
    },
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
    /// A parser error at a position of `text`, whose name is `origin`; without a span the position is the beginning.
    pub fn syntax(text: &str, origin: &str, span: Option<Range<usize>>, message: &str) -> Self {
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
