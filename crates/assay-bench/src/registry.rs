//! Suites by section name, and selection of their benchmarks by name.

use anyhow::{Result, bail};

use crate::selfcheck::SelfCheckSuite;
use crate::suite::{Benchmark, Extent, Suite};

/// A suite with the name of its section in a plan.
pub struct Section {
    pub name: &'static str,
    pub suite: Box<dyn Suite>,
}

impl Section {
    pub fn harness() -> Self {
        Self { name: "harness", suite: Box::new(SelfCheckSuite) }
    }
}

/// Benchmarks of these sections that pass a filter, each with the name of its section.
///
/// # Errors
/// When a section's settings are invalid, or two benchmarks have the same name.
pub fn benchmarks<'a>(
    sections: &'a [Section],
    extent: Extent,
    filter: &Filter,
) -> Result<Vec<(&'static str, Benchmark<'a>)>> {
    let mut all: Vec<(&'static str, Benchmark<'a>)> = Vec::new();
    for section in sections {
        for benchmark in section.suite.benchmarks(extent)? {
            if all.iter().any(|(_, other)| other.name == benchmark.name) {
                bail!("there are two benchmarks {}", benchmark.name);
            }
            all.push((section.name, benchmark));
        }
    }
    all.retain(|(_, benchmark)| filter.admits(&benchmark.name));
    Ok(all)
}

/// Selects names by a substring, or by a pattern of the whole name if it contains `*` (anything) or `?` (one character).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Filter {
    patterns: Vec<String>,
}

impl Filter {
    /// A filter that accepts names matching any of the patterns; without patterns, all names.
    pub fn new(patterns: impl IntoIterator<Item = String>) -> Self {
        Self { patterns: patterns.into_iter().collect() }
    }

    pub fn admits(&self, name: &str) -> bool {
        let matches = |pattern: &String| {
            let is_glob = pattern.contains(['*', '?']);
            if is_glob {
                glob(pattern.as_bytes(), name.as_bytes())
            } else {
                name.contains(pattern.as_str())
            }
        };
        self.patterns.is_empty() || self.patterns.iter().any(matches)
    }
}

/// Matches a pattern against a whole name. A star takes as little as possible, and more when the rest does not match.
fn glob(pattern: &[u8], name: &[u8]) -> bool {
    let (mut at, mut next) = (0, 0);
    let mut star: Option<(usize, usize)> = None;
    while at < name.len() {
        match pattern.get(next) {
            Some(b'*') => {
                star = Some((next, at));
                next += 1;
            }
            Some(c) if *c == b'?' || *c == name[at] => {
                at += 1;
                next += 1;
            }
            _ => match &mut star {
                None => return false,
                Some((place, taken)) => {
                    *taken += 1;
                    (next, at) = (*place + 1, *taken);
                }
            },
        }
    }
    pattern[next..].iter().all(|c| *c == b'*')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn filters() {
        for (pattern, name, admitted) in [
            ("sha256", "script/sha256/520", true),
            ("sha512", "script/sha256/520", false),
            ("script/*/520", "script/sha256/520", true),
            ("script/*/52", "script/sha256/520", false),
            ("*256*", "script/sha256/520", true),
            ("*/5?0", "script/sha256/520", true),
            ("?", "script", false),
            ("s*t*0", "script/sha256/520", true),
            ("*", "", true),
        ] {
            let filter = Filter::new([pattern.to_owned()]);
            assert_eq!(filter.admits(name), admitted, "{pattern} {name}");
        }
        assert!(Filter::default().admits("anything"));
        let two = Filter::new(["a".to_owned(), "b*".to_owned()]);
        assert!(two.admits("xa") && two.admits("bc") && !two.admits("xb"));
    }
}
