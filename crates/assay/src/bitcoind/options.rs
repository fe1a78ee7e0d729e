//! All options of Bitcoin Core's `bitcoind`, and the effect of each here.
//!
//! The list is complete (Core `init.cpp`, `init/common.cpp`, `chainparamsbase.cpp`, `wallet/init.cpp`), so that an
//! existing `bitcoin.conf` loads, and only misspelt names are rejected.

use std::sync::LazyLock;

#[derive(Debug, Clone, Copy)]
#[expect(clippy::struct_excessive_bools, reason = "properties, each on its own")]
pub(crate) struct Opt {
    /// Name without the dash.
    pub(crate) name: &'static str,
    /// Argument in the help after the name: `=<n>`, or empty.
    pub(crate) argument: &'static str,
    pub(crate) fate: Fate,
    /// True if outside of sections the option applies to the main chain only.
    pub(crate) is_network_only: bool,
    /// True if `-no…` is an error.
    pub(crate) forbids_negation: bool,
    pub(crate) needs_value: bool,
    /// True if the log masks the value.
    pub(crate) is_secret: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fate {
    /// Has the effect that its help describes.
    Works(&'static str),
    /// Accepted and ignored: the node behaves the same without it.
    Dropped,
    /// Any value but the default is an error with this reason: ignoring the option would violate the user's intent.
    Rejected { default: &'static str, reason: &'static str },
}

const TABLE: &str = include_str!("options.txt");

/// All options, sorted by name.
pub(crate) static OPTIONS: LazyLock<Vec<Opt>> =
    LazyLock::new(|| TABLE.lines().map(Opt::read).collect());

impl Opt {
    /// A line of the table: name with its argument, marks, and help or reason. The first mark is the fate: `works`, `dropped`,
    /// or `rejected=` with the default.
    fn read(line: &'static str) -> Self {
        let mut parts = line.splitn(3, " | ");
        let mut next = || parts.next().unwrap_or_default();
        let (option, marks, text) = (next(), next(), next());
        let (name, argument) = option.split_at(option.find('=').unwrap_or(option.len()));
        let has = |mark| marks.split(' ').any(|one| one == mark);
        let rejected = marks.split(' ').find_map(|mark| mark.strip_prefix("rejected="));
        Self {
            name,
            argument,
            fate: match rejected {
                Some(default) => Fate::Rejected { default, reason: text },
                None if has("works") => Fate::Works(text),
                None => Fate::Dropped,
            },
            is_network_only: has("network"),
            forbids_negation: has("positive"),
            needs_value: has("value"),
            is_secret: has("secret"),
        }
    }
}

pub(crate) fn find(name: &str) -> Option<&'static Opt> {
    let found = OPTIONS.binary_search_by(|option| option.name.cmp(name));
    found.ok().map(|index| &OPTIONS[index])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_in_order_and_found() {
        assert!(OPTIONS.is_sorted_by(|one, next| one.name < next.name));
        for option in OPTIONS.iter() {
            assert_eq!(find(option.name).map(|found| found.name), Some(option.name));
        }
        assert!(find("nosuch").is_none());
        // Such a name would parse as a negation.
        assert!(!OPTIONS.iter().any(|option| option.name.starts_with("no")));
    }

    #[test]
    fn lines_have_a_fate_and_known_marks() {
        for line in TABLE.lines() {
            let parts: Vec<&str> = line.split(" | ").collect();
            let (fate, marks) = parts[1].split_once(' ').unwrap_or((parts[1], ""));
            let has_text = fate == "works" || fate.starts_with("rejected=");
            assert!(has_text || fate == "dropped", "{line}");
            assert_eq!(parts.len(), if has_text { 3 } else { 2 }, "{line}");
            let known = ["network", "positive", "value", "secret"];
            assert!(marks.split_terminator(' ').all(|mark| known.contains(&mark)), "{line}");
        }
    }
}
