//! Words that do not belong into what users read: documents, help, reports, errors.
//!
//! The list holds coined or translated phrases that have an established word in the field. Each is
//! one that no sentence needs, so a finding is mended by writing the sentence as Bitcoin Core's
//! documentation or a systems paper would.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context;

/// A phrase in lower case, and what to write instead. A final `*` stands for any ending.
const WORDS: &[(&str, &str)] = &[
    ("a stranger", "a new user, another key"),
    ("beside", "against, next to, with"),
    ("by turns", "alternately"),
    ("came to", "amounted to, was"),
    ("cannot tell", "does not report"),
    ("comes to", "amounts to, is"),
    ("do not count", "are discarded, are ignored"),
    ("does not count", "is discarded, is ignored"),
    ("fall short", "miss the target"),
    ("falls short", "misses the target"),
    ("fell short", "missed the target"),
    ("for people", "human-readable"),
    ("in turns", "interleaved, alternately"),
    ("in vain", "without result"),
    ("made-up", "synthetic, simulated"),
    ("moments", "times"),
    ("newcomer*", "new transaction, new client"),
    ("refusal*", "rejection, error"),
    ("refuse*", "reject"),
    ("seen share*", "pre-relayed share"),
    ("speaks against", "caveat"),
    ("take turns", "are interleaved, alternate"),
    ("takes turns", "is interleaved, alternates"),
    ("taking turns", "interleaved"),
    ("tells", "reports, shows"),
    ("told", "reported, announced; \"not told\": unavailable"),
    ("took turns", "were interleaved, alternated"),
    ("void run*", "discarded run"),
    ("whoever", "who"),
    ("yardstick*", "reference rate"),
];

/// Adds the findings in all files that hold text for users.
pub(crate) fn check(
    root: &Path,
    files: &[PathBuf],
    findings: &mut Vec<String>,
) -> anyhow::Result<()> {
    for path in files {
        let Some(kind) = Kind::of(path) else { continue };
        let file = root.join(path);
        let text =
            fs::read_to_string(&file).with_context(|| format!("cannot read {}", file.display()))?;
        for (line, phrase, instead) in forbidden(&visible(&text, kind)) {
            let path = path.display();
            findings.push(format!("{path}:{line}: \"{phrase}\": write {instead}"));
        }
    }
    Ok(())
}

/// First words of comments that are a clause in place of a noun: "what it holds" for "contents".
const CLAUSES: [&str; 8] = ["what", "whether", "how", "where", "who", "whoever", "why", "those"];

/// Parts of names of functions that make a clause of them, or let things speak.
const NAME_PARTS: [&str; 7] = ["what", "who", "whoever", "said", "told", "tells", "beside"];

/// Lines and parts of the names of functions in a Rust source that `NAME_PARTS` lists.
pub(crate) fn in_names(text: &str) -> impl Iterator<Item = (usize, &'static str)> {
    text.lines().enumerate().filter_map(|(number, line)| {
        let (before, after) = line.split_once("fn ")?;
        let is_code = before.chars().all(|c| c.is_ascii_lowercase() || " ()".contains(c));
        let name = after.split(|c: char| c != '_' && !c.is_alphanumeric()).next()?;
        let part = NAME_PARTS.into_iter().find(|part| name.split('_').any(|word| word == *part))?;
        is_code.then_some((number + 1, part))
    })
}

/// Lines and phrases of the comments of a Rust source that `WORDS` lists or that begin with a clause.
pub(crate) fn in_comments(text: &str) -> Vec<(usize, &'static str)> {
    let mut comments = String::with_capacity(text.len());
    let mut found = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let comment =
            line.trim_start().strip_prefix("//").map(|rest| rest.trim_start_matches(['/', '!']));
        let comment = comment.unwrap_or_default();
        let first = comment.trim_start().split(|c: char| !c.is_alphanumeric()).next();
        let clause = CLAUSES
            .iter()
            .find(|clause| first.is_some_and(|first| first.eq_ignore_ascii_case(clause)));
        // A clause in lower case goes on from the line before.
        found.extend(
            clause
                .filter(|_| comment.trim_start().starts_with(char::is_uppercase))
                .map(|clause| (number + 1, *clause)),
        );
        comments.push_str(comment);
        comments.push('\n');
    }
    found.extend(forbidden(&comments).into_iter().map(|(line, phrase, _)| (line, phrase)));
    found
}

/// Parts of a file that users read.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// All of it.
    Document,
    /// All below its head.
    Snapshot,
    /// Comments at flags, and errors.
    Flags,
    /// Errors.
    Source,
}

impl Kind {
    /// Decisions, results and the change log are history, whose words stay.
    fn of(path: &Path) -> Option<Self> {
        let name = path.to_str()?;
        let is_history =
            name.starts_with("docs/adr/") || name.starts_with("reports/") || name == "CHANGELOG.md";
        match path.extension()?.to_str()? {
            "md" => (!is_history).then_some(Self::Document),
            "snap" => Some(Self::Snapshot),
            "rs" if name.starts_with("crates/assay/src/cli") => Some(Self::Flags),
            "rs" if name.starts_with("crates/") || name.starts_with("curves/") => {
                Some(Self::Source)
            }
            _ => None,
        }
    }
}

/// The text with everything blank that users do not read, line for line.
fn visible(text: &str, kind: Kind) -> String {
    let mut is_error = false;
    let mut dashes = 0;
    let mut kept = String::with_capacity(text.len());
    for line in text.lines() {
        let code = line.trim_start();
        is_error |= code.starts_with("#[error(");
        let comment = code.strip_prefix("///").map(str::trim_start).filter(|_| kind == Kind::Flags);
        let is_shown = match kind {
            Kind::Document => true,
            Kind::Snapshot => dashes >= 2,
            Kind::Flags | Kind::Source => is_error,
        };
        dashes += usize::from(line == "---");
        kept.push_str(comment.unwrap_or(if is_shown { line } else { "" }));
        kept.push('\n');
        is_error &= !code.ends_with(")]");
    }
    kept
}

/// Lines, phrases and what to write instead; phrases may be broken over two lines.
fn forbidden(text: &str) -> Vec<(usize, &'static str, &'static str)> {
    // Every blank is one space, so that a byte of `flat` is a byte of `text`.
    let blank = |c: char| if c.is_ascii_whitespace() { ' ' } else { c.to_ascii_lowercase() };
    let flat: String = text.chars().map(blank).collect();
    let mut found = Vec::new();
    for &(phrase, instead) in WORDS {
        let (stem, is_open) = match phrase.strip_suffix('*') {
            Some(stem) => (stem, true),
            None => (phrase, false),
        };
        for (at, _) in flat.match_indices(stem) {
            let is_part = |c: char| c.is_alphanumeric() || c == '_';
            let starts = !flat[..at].ends_with(is_part);
            let ends = is_open || !flat[at + stem.len()..].starts_with(is_part);
            if starts && ends {
                found.push((text[..at].matches('\n').count() + 1, phrase, instead));
            }
        }
    }
    found.sort_unstable();
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn planted_words_are_found() {
        let of = |name: &str, text: &str| {
            let kind = Kind::of(Path::new(name)).expect("a file that users read");
            let found = forbidden(&visible(text, kind));
            found.into_iter().map(|(line, phrase, _)| (line, phrase)).collect::<Vec<_>>()
        };
        let text = "Both take\nturns.\n\nRefused: a Yardstick.\n";
        let all = [(1, "take turns"), (4, "refuse*"), (4, "yardstick*")];
        assert_eq!(of("docs/x.md", text), all);
        assert_eq!(of("docs/x.md", "besides, intake turns, comes too, become so"), []);
        let snapshot = "---\nexpression: beside\n---\nbeside\n";
        assert_eq!(of("crates/a/tests/snapshots/x.snap", snapshot), [(4, "beside")]);
        let source = "/// Beside.\n#[error(\n    \"not told: {0}\"\n)]\nfn f() { \"beside\"; }\n";
        assert_eq!(of("crates/a/src/x.rs", source), [(3, "told")]);
        assert_eq!(of("crates/assay/src/cli/x.rs", source), [(1, "beside"), (3, "told")]);
    }

    #[test]
    fn planted_comments_are_found() {
        let text = "/// Whether it is on.\nfn f() {} // Beside code.\n//! The rest, or\n//! what is left.\n    // A newcomer.\n";
        assert_eq!(in_comments(text), [(1, "whether"), (5, "newcomer*")]);
        assert_eq!(in_comments("let what = \"Whether\"; /// How.\n"), []);
    }

    #[test]
    fn planted_names_are_found() {
        let text = "fn what_differs(x: u8) {}\n    pub(crate) fn is_told() {}\n// fn beside() {}\nfn somewhat(told: u8) {}\n";
        assert_eq!(in_names(text).collect::<Vec<_>>(), [(1, "what"), (2, "told")]);
    }

    #[test]
    fn history_and_code_keep_their_words() {
        for name in [
            "docs/adr/0001-x.md",
            "reports/a/b/report.md",
            "CHANGELOG.md",
            "xtask/src/words.rs",
            "plans/x.toml",
        ] {
            assert!(Kind::of(Path::new(name)).is_none(), "{name}");
        }
    }
}
