//! `-help` and `-version`.

use std::fmt::Write as _;

use super::options::{Fate, OPTIONS};
use crate::cli::VERSION;

/// First line of `-help` and `-version`.
pub(crate) fn version() -> String {
    format!("{} daemon version v{VERSION} bitcoind\n", super::CLIENT_NAME)
}

/// Text of `-help`: options with an effect, then the names of accepted options without one.
pub(crate) fn text() -> String {
    let mut text = version();
    text.push_str(
        "\nRuns the node of 'assay node' with the options and the configuration file of Bitcoin Core.\n\
         \nUsage: bitcoind [options]\n\nOptions:\n",
    );
    for option in OPTIONS.iter() {
        if let Fate::Works(help) = option.fate {
            write!(text, "\n  -{}{}\n", option.name, option.argument)
                .expect("writing to a string does not fail");
            wrap(help, "       ", &mut text);
        }
    }
    names(&mut text, "Not available:", |fate| matches!(fate, Fate::Rejected { .. }));
    names(&mut text, "Read for the sake of configuration files:", |fate| fate == Fate::Dropped);
    text
}

fn names(text: &mut String, title: &str, is_wanted: impl Fn(Fate) -> bool) {
    let names = OPTIONS.iter().filter(|option| is_wanted(option.fate));
    let names: Vec<String> = names.map(|option| format!("-{}", option.name)).collect();
    text.push('\n');
    text.push_str(title);
    text.push_str("\n\n");
    wrap(&names.join(" "), "  ", text);
}

/// Wraps words into lines of at most 79 columns.
fn wrap(words: &str, indent: &str, text: &mut String) {
    let mut column = 0;
    for word in words.split(' ') {
        if column > 0 && column + 1 + word.len() > 79 {
            text.push('\n');
            column = 0;
        }
        let before = if column == 0 { indent } else { " " };
        text.push_str(before);
        text.push_str(word);
        column += before.len() + word.len();
    }
    text.push('\n');
}
