//! Messages hold no Rust debug text: `{:?}` prints names of types and fields, which mean nothing to a user.
//!
//! Text that came from outside is the exception: there `{:?}` adds quotation marks and escapes control
//! characters. Assertions and panics are for developers.

use std::path::{Path, PathBuf};

use super::tokens::{self, Token};

/// Variables that hold text, or lists of names or numbers as in TOML, in every message.
const TEXT: &[&str] = &[
    "allowed", "banner", "base", "chain", "cores", "era", "excerpt", "inputs", "key", "line",
    "machine", "name", "names", "plan", "revision", "seen", "text", "until", "user", "wanted",
    "wrong",
];

/// Strings that are no messages, or none of a program that users have: the file, what the string holds, and the reason.
const EXCEPTIONS: &[(&str, &str, &str)] = &[
    ("crates/assay-hash/src/cpu.rs", "no feature is called", "the name in the environment"),
    ("crates/assay-lab/src/compare/simulated.rs", "", "tests"),
    (
        "crates/assay-lab/src/run/block_files.rs",
        "",
        "what a folder was made from, compared as text",
    ),
    ("crates/assay-lab/src/run/snapshot.rs", "", "what a folder was made from, compared as text"),
    (
        "crates/assay-node/src/log.rs",
        "value:?",
        "what `tracing` passes, whose messages are checked where they are",
    ),
    ("crates/assay-node/src/rpc/fuzzing.rs", "", "fuzz targets"),
    ("crates/assay-secp/src/batch/differential/mod.rs", "", "tests"),
    ("crates/assay-secp/src/lanes/small_groups.rs", "", "tests"),
    ("crates/assay-store/src/defect/points.rs", "{point:?}", "names in the environment of tests"),
    ("crates/assay/src/commands/crash.rs", "{point:?}", "the same names"),
    ("crates/assay/src/commands/block.rs", "{:?}", "the names of script flags"),
];

/// Programs for developers.
const NOT_SHIPPED: [&str; 3] = ["curves/peer", "xtask", "crates/assay-testkit"];

/// Macros whose strings only developers read.
const FOR_DEVELOPERS: &[&str] = &[
    "assert",
    "assert_eq",
    "assert_ne",
    "debug_assert",
    "debug_assert_eq",
    "debug_assert_ne",
    "panic",
    "prop_assert",
    "prop_assert_eq",
    "unreachable",
];

/// Adds a finding for every message with debug text.
pub(super) fn check(
    root: &Path,
    sources: &[PathBuf],
    findings: &mut Vec<String>,
) -> anyhow::Result<()> {
    for path in sources.iter().filter(|path| super::is_rust(path) && !is_test(path)) {
        let name = path.to_string_lossy();
        for (line, text) in debug_text(&super::read(&root.join(path))?) {
            let is_listed =
                EXCEPTIONS.iter().any(|(file, part, _)| name == *file && text.contains(part));
            if !is_listed {
                findings.push(format!("{name}:{line}: a message with debug text: {text}"));
            }
        }
    }
    Ok(())
}

/// True if a file is compiled for tests alone, or is an example or a fuzz target.
pub(super) fn is_test(path: &Path) -> bool {
    let folders = ["tests", "examples", "benches", "fuzz", "fuzz_targets"];
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    path.iter().any(|part| folders.iter().any(|folder| part == *folder))
        || stem == "tests"
        || stem.ends_with("_tests")
        || NOT_SHIPPED.iter().any(|folder| path.starts_with(folder))
}

/// Strings with debug text in code that is not for developers, by line.
fn debug_text(source: &str) -> Vec<(usize, &str)> {
    // Tests stand at the end of a file.
    let source = source.split("#[cfg(test)]\nmod ").next().unwrap_or(source);
    let tokens = tokens::with_strings(source);
    // For each open bracket: true within a macro for developers.
    let mut open = Vec::new();
    let mut found = Vec::new();
    for (at, token) in tokens.iter().enumerate() {
        match token.text {
            "(" | "[" | "{" => {
                let is_outer = open.last().is_some_and(|is| *is);
                open.push(is_outer || is_for_developers(&tokens[..at]));
            }
            ")" | "]" | "}" => drop(open.pop()),
            text if token.is_string()
                && has_debug_text(text)
                && !open.last().is_some_and(|is| *is) =>
            {
                found.push((token.line, text));
            }
            _ => {}
        }
    }
    found
}

/// True if a bracket behind these tokens opens the arguments of a macro for developers, or the body of `impl Debug`.
fn is_for_developers(before: &[Token<'_>]) -> bool {
    if let [.., name, sign] = before
        && sign.text == "!"
    {
        return FOR_DEVELOPERS.contains(&name.text);
    }
    let head =
        before.iter().rev().take(24).take_while(|token| !["{", "}", ";"].contains(&token.text));
    let names: Vec<&str> = head.map(|token| token.text).collect();
    names.contains(&"impl") && names.contains(&"Debug")
}

/// True if a string prints a value other than text with `{:?}`.
fn has_debug_text(string: &str) -> bool {
    string.split('{').skip(1).any(|piece| {
        let Some((inside, _)) = piece.split_once('}') else { return false };
        let Some((name, form)) = inside.split_once(':') else { return false };
        form.ends_with('?') && !TEXT.contains(&name)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_and_others() {
        let lines = |source: &str| -> Vec<usize> {
            debug_text(source).into_iter().map(|(line, _)| line).collect()
        };
        let bad = concat!(
            "#[error(\"cannot do it: {source:?}\")]\n",
            "fn f() { bail!(\"{}: {:?}\", a, b) }\n",
            "fn g() { tracing::info!(\"{x:#?}\"); }\n",
            "fn h() { let x = format!(\"{:02x?}\", y); }\n",
        );
        assert_eq!(lines(bad), [1, 2, 3, 4]);
        let good = concat!(
            "#[error(\"unknown name {name:?}\")]\n",
            "fn f() { assert!(x, \"{y:?}\"); panic!(\"{}\", format!(\"{z:?}\")); }\n",
            "impl fmt::Debug for X { fn fmt(&self) { write!(f, \"{:?}\", self.0) } }\n",
            "fn g() { let x = \"{:?\"; let y = \"{a}\"; } // {z:?}\n",
            "#[cfg(test)]\nmod tests { fn f() { println!(\"{x:?}\"); } }\n",
        );
        assert!(lines(good).is_empty());
    }
}
