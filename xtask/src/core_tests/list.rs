//! The list of Core's tests with the expected results for our node: `xtask/core-tests.toml`.

use std::fs;
use std::path::Path;

use anyhow::{Context, bail};
use serde::Deserialize;

/// A test from Core, or one of ours in Core's framework.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Test {
    /// File name without `.py`.
    pub(super) name: String,
    pub(super) must_pass: bool,
    /// Reason if it need not pass.
    pub(super) reason: Option<String>,
    /// True for our own tests, in `xtask/functional`, between our node and Core's program.
    #[serde(default)]
    pub(super) with_core: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct List {
    test: Vec<Test>,
}

/// The named tests, also unlisted ones; without names the required ones, or all. Without Core's program its tests are omitted.
pub(super) fn chosen(names: &[String], all: bool, has_core: bool) -> anyhow::Result<Vec<Test>> {
    let List { test: mut tests } =
        toml::from_str(LIST).context("cannot read xtask/core-tests.toml")?;
    if names.is_empty() {
        tests.retain(|test| (all || test.must_pass) && (has_core || !test.with_core));
        return Ok(tests);
    }
    let named = |name: &String| {
        let known = tests.iter().find(|test| test.name == *name).cloned();
        known.unwrap_or_else(|| Test {
            name: name.clone(),
            must_pass: false,
            reason: None,
            with_core: false,
        })
    };
    let tests: Vec<Test> = names.iter().map(named).collect();
    match tests.iter().find(|test| test.with_core && !has_core) {
        Some(test) => bail!("{} needs Core's own program: --core BITCOIND", test.name),
        None => Ok(tests),
    }
}

/// Core tests in a folder that are missing in the list; wallet tests are excluded.
pub(super) fn unlisted(folder: &Path) -> anyhow::Result<Vec<String>> {
    let listed = chosen(&[], true, true)?;
    let mut names = Vec::new();
    for entry in
        fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))?
    {
        let file = entry?.file_name();
        let Some(name) = file.to_str().and_then(|file| file.strip_suffix(".py")) else { continue };
        let is_ours = !name.starts_with("wallet_") && !PROGRAMS.contains(&name);
        if is_ours && !listed.iter().any(|test| test.name == name) {
            names.push(name.to_owned());
        }
    }
    names.sort_unstable();
    Ok(names)
}

/// Programs in the folder that are not tests.
const PROGRAMS: [&str; 3] = ["combine_logs", "create_cache", "test_runner"];

const LIST: &str = include_str!("../../core-tests.toml");

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_test_is_listed_once_with_a_reason_if_it_may_fail() {
        let tests = chosen(&[], true, true).unwrap();
        let names: BTreeSet<&str> = tests.iter().map(|test| test.name.as_str()).collect();
        assert_eq!(names.len(), tests.len());
        for test in &tests {
            assert_eq!(test.reason.is_none(), test.must_pass, "{}", test.name);
        }
        assert!(!chosen(&[], false, false).unwrap().is_empty());
        let named = chosen(&["rpc_uptime".to_owned(), "nosuch".to_owned()], false, false).unwrap();
        assert!(named[0].must_pass && !named[1].must_pass);
    }

    #[test]
    fn a_test_that_the_list_lacks_is_found() {
        let folder = std::env::temp_dir().join(format!("xtask-unlisted-{}", std::process::id()));
        fs::create_dir_all(folder.join("test_framework")).unwrap();
        let files =
            ["rpc_uptime.py", "wallet_basic.py", "test_runner.py", "README.md", "p2p_new.py"];
        for file in files {
            fs::write(folder.join(file), "").unwrap();
        }
        assert_eq!(unlisted(&folder).unwrap(), ["p2p_new"]);
        fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn tests_with_core_need_it() {
        let is_there =
            |has_core| chosen(&[], false, has_core).unwrap().iter().any(|test| test.with_core);
        assert!(is_there(true) && !is_there(false));
        let name = ["assay_snapshot_exchange".to_owned()];
        assert!(chosen(&name, false, true).is_ok());
        let error = chosen(&name, false, false).unwrap_err().to_string();
        assert!(error.ends_with("--core BITCOIND"), "{error}");
    }
}
