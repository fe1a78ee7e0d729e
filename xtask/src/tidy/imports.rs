//! Names of a crate's top-level modules in the files of its other modules.

use std::collections::{BTreeMap, BTreeSet};

use super::tokens::{self, Token};

/// Sources of one crate: path below `src/`, with `/`, and text.
pub(super) type Sources = BTreeMap<String, String>;

/// Place of a name: file and line.
pub(super) type Place = (String, usize);

/// For each top-level module, the others that it names in code that is no test, each with the first place.
pub(super) fn edges(sources: &Sources) -> BTreeMap<String, BTreeMap<String, Place>> {
    let scanned: BTreeMap<&str, Scan> = sources
        .iter()
        .map(|(path, text)| (path.as_str(), Scan::of(module_path(path), text)))
        .collect();
    let tests: BTreeSet<&Vec<String>> =
        scanned.values().flat_map(|scan| &scan.test_modules).collect();
    let is_test = |module: &[String]| {
        (1..=module.len()).any(|length| tests.iter().any(|test| test[..] == module[..length]))
    };
    let tops: BTreeSet<String> =
        sources.keys().filter_map(|path| module_path(path).into_iter().next()).collect();
    let exports = exports(&scanned, &tops);
    let mut edges: BTreeMap<String, BTreeMap<String, Place>> = BTreeMap::new();
    for (path, scan) in &scanned {
        let module = module_path(path);
        let Some(top) = module.first().filter(|_| !is_test(&module)) else { continue };
        for (named, line) in &scan.named {
            let Some(first) = named.first() else { continue };
            let target = if tops.contains(first) { Some(first) } else { exports.get(first) };
            if let Some(target) = target.filter(|target| *target != top) {
                let of_top = edges.entry(top.clone()).or_default();
                of_top.entry(target.clone()).or_insert_with(|| ((*path).to_owned(), *line));
            }
        }
    }
    edges
}

/// For each file, the other files of the crate that it names in code that is no test, each with the first place. Names that a
/// module exports from a module below it stand for that one.
pub(super) fn file_edges(sources: &Sources) -> BTreeMap<String, BTreeMap<String, Place>> {
    let files: BTreeMap<Vec<String>, &str> =
        sources.keys().map(|path| (module_path(path), path.as_str())).collect();
    let scans: BTreeMap<Vec<String>, Scan> = sources
        .iter()
        .map(|(path, text)| (module_path(path), Scan::of(module_path(path), text)))
        .collect();
    let tests: BTreeSet<&Vec<String>> =
        scans.values().flat_map(|scan| &scan.test_modules).collect();
    let is_test = |module: &[String]| {
        (1..=module.len()).any(|length| tests.contains(&module[..length].to_vec()))
    };
    let owner = |path: &[String]| {
        let mut length =
            (0..=path.len()).rev().find(|length| files.contains_key(&path[..*length]))?;
        let mut module = path[..length].to_vec();
        while let Some(name) = path.get(length) {
            let exported = scans[&module]
                .imported
                .iter()
                .find(|import| import.len() > 1 && import.last() == Some(name));
            let below = exported.map(|import| [&module[..], &import[..1]].concat());
            match below.filter(|below| files.contains_key(below)) {
                Some(below) => module = below,
                None => break,
            }
            length += 1;
        }
        Some(module)
    };
    let mut edges: BTreeMap<String, BTreeMap<String, Place>> = BTreeMap::new();
    for (module, scan) in scans.iter().filter(|(module, _)| !is_test(module)) {
        let relative = scan.imported.iter().map(|import| ([&module[..], import].concat(), 0));
        for (named, line) in scan.named.iter().cloned().chain(relative) {
            let Some(target) = owner(&named).filter(|target| {
                !target.starts_with(module) && !module.starts_with(target) && !is_test(target)
            }) else {
                continue;
            };
            let of_file = edges.entry(files[module].to_owned()).or_default();
            of_file
                .entry(files[&target].to_owned())
                .or_insert_with(|| (files[module].to_owned(), line));
        }
    }
    edges
}

/// Names that the root exports from a module: code that names `crate::Error` uses the module it is in.
fn exports(scanned: &BTreeMap<&str, Scan>, tops: &BTreeSet<String>) -> BTreeMap<String, String> {
    let mut exports = BTreeMap::new();
    let roots = scanned.iter().filter(|(path, _)| module_path(path).is_empty());
    for path in roots.flat_map(|(_, scan)| &scan.imported) {
        if let (Some(first), Some(last)) = (path.first(), path.last())
            && tops.contains(first)
            && path.len() > 1
        {
            exports.insert(last.clone(), first.clone());
        }
    }
    exports
}

/// The module that a file below `src/` is; empty of the roots.
fn module_path(path: &str) -> Vec<String> {
    let path = path.strip_suffix(".rs").unwrap_or(path);
    let mut parts: Vec<String> = path.split('/').map(str::to_owned).collect();
    if parts.last().is_some_and(|last| last == "mod")
        || matches!(parts[..], [ref only] if only == "lib" || only == "main")
    {
        parts.pop();
    }
    parts
}

/// Paths in a file.
struct Scan {
    /// Paths from the root of the crate, each with its line.
    named: Vec<(Vec<String>, usize)>,
    /// Paths at the start of `use` items as written, with the last name they give.
    imported: Vec<Vec<String>>,
    /// Modules in files of their own that are compiled for tests alone.
    test_modules: Vec<Vec<String>>,
}

impl Scan {
    fn of(module: Vec<String>, text: &str) -> Self {
        let tokens = tokens::of(text);
        let mut walk = Walk {
            tokens: &tokens,
            at: 0,
            module,
            inline: Vec::new(),
            depth: 0,
            scan: Self { named: Vec::new(), imported: Vec::new(), test_modules: Vec::new() },
        };
        walk.run();
        walk.scan
    }
}

struct Walk<'a> {
    tokens: &'a [Token<'a>],
    at: usize,
    /// The module that the tokens stand in.
    module: Vec<String>,
    /// Depths of braces at which inline modules began.
    inline: Vec<usize>,
    depth: usize,
    scan: Scan,
}

impl Walk<'_> {
    fn text(&self, ahead: usize) -> &str {
        self.tokens.get(self.at + ahead).map_or("", |token| token.text)
    }

    fn run(&mut self) {
        while self.at < self.tokens.len() {
            match self.text(0) {
                "#" if self.is_test_attribute() => self.skip_test(),
                "mod" if self.text(2) == "{" => {
                    let name = self.text(1).to_owned();
                    self.module.push(name);
                    self.inline.push(self.depth);
                    self.depth += 1;
                    self.at += 3;
                }
                "{" => {
                    self.depth += 1;
                    self.at += 1;
                }
                "}" => {
                    self.depth = self.depth.saturating_sub(1);
                    if self.inline.last() == Some(&self.depth) {
                        self.inline.pop();
                        self.module.pop();
                    }
                    self.at += 1;
                }
                "use" => {
                    self.at += 1;
                    self.tree(&mut Vec::new(), true);
                }
                "crate" | "super" | "self" if self.text(1) == "::" && !self.is_inside_path() => {
                    self.tree(&mut Vec::new(), false);
                }
                _ => self.at += 1,
            }
        }
    }

    fn is_inside_path(&self) -> bool {
        self.at > 0 && self.tokens[self.at - 1].text == "::"
    }

    /// `#[cfg(test)]`, and `#[cfg(all(test, …))]`, but not `#[cfg(not(test))]`.
    fn is_test_attribute(&self) -> bool {
        if !(self.text(1) == "[" && self.text(2) == "cfg") {
            return false;
        }
        let end = self.end_of_group(self.at + 1, "[", "]");
        let inside = &self.tokens[self.at..end];
        let has = |word: &str| inside.iter().any(|token| token.text == word);
        has("test") && !has("not") && !has("any")
    }

    /// Position behind the group that opens at `from`.
    fn end_of_group(&self, from: usize, open: &str, close: &str) -> usize {
        let mut depth = 0;
        for (at, token) in self.tokens.iter().enumerate().skip(from) {
            if token.text == open {
                depth += 1;
            } else if token.text == close {
                depth -= 1;
                if depth == 0 {
                    return at + 1;
                }
            }
        }
        self.tokens.len()
    }

    /// Steps over an item for tests, with its attributes.
    fn skip_test(&mut self) {
        while self.text(0) == "#" {
            self.at = self.end_of_group(self.at + 1, "[", "]");
        }
        let mut at = self.at;
        while at < self.tokens.len() {
            match self.tokens[at].text {
                "mod" if self.tokens.get(at + 2).is_some_and(|token| token.text == ";") => {
                    let mut module = self.module.clone();
                    module.push(self.tokens[at + 1].text.to_owned());
                    self.scan.test_modules.push(module);
                    at += 2;
                }
                ";" => {
                    self.at = at + 1;
                    return;
                }
                "(" => at = self.end_of_group(at, "(", ")"),
                "[" => at = self.end_of_group(at, "[", "]"),
                "{" if self.tokens[self.at].text != "use" => {
                    self.at = self.end_of_group(at, "{", "}");
                    return;
                }
                _ => at += 1,
            }
        }
        self.at = at;
    }

    /// Walks a path with its groups, and notes every path in it.
    fn tree(&mut self, path: &mut Vec<String>, is_use: bool) {
        let length = path.len();
        let line = self.tokens.get(self.at).map_or(0, |token| token.line);
        loop {
            if self.text(0) == "{"
                && (is_use || path.len() > length)
                && self.is_inside_path_or_use(path)
            {
                self.at += 1;
                while !matches!(self.text(0), "}" | "") {
                    self.tree(path, true);
                    if self.text(0) == "," {
                        self.at += 1;
                    }
                }
                self.at += 1;
                path.truncate(length);
                return;
            }
            let Some(token) = self.tokens.get(self.at).filter(|token| token.is_name()) else {
                // `*`, or the end of tokens that were no path.
                if self.text(0) == "*" || self.text(0) == "::" {
                    self.at += 1;
                }
                break;
            };
            path.push(token.text.to_owned());
            self.at += 1;
            if self.text(0) != "::" {
                break;
            }
            self.at += 1;
        }
        self.note(path, line, is_use);
        if is_use && self.text(0) == "as" {
            self.at += 2;
        }
        path.truncate(length);
        if self.at < self.tokens.len() && is_use && !matches!(self.text(0), "," | "}" | ";" | "") {
            self.at += 1;
        }
    }

    fn is_inside_path_or_use(&self, path: &[String]) -> bool {
        path.is_empty() || self.is_inside_path()
    }

    fn note(&mut self, path: &[String], line: usize, is_use: bool) {
        let mut base = self.module.clone();
        let mut rest = path;
        match path.first().map(String::as_str) {
            Some("crate") => {
                base.clear();
                rest = &path[1..];
            }
            Some("self") => {
                rest = &path[1..];
                if is_use {
                    self.scan.imported.push(rest.to_vec());
                }
            }
            Some("super") => {}
            _ => {
                if is_use {
                    self.scan.imported.push(path.to_vec());
                }
                return;
            }
        }
        while rest.first().is_some_and(|word| word == "super") {
            base.pop();
            rest = &rest[1..];
        }
        base.extend(rest.iter().filter(|word| *word != "self").cloned());
        self.scan.named.push((base, line));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(files: &[(&str, &str)]) -> Vec<(String, String)> {
        let sources =
            files.iter().map(|(path, text)| ((*path).to_owned(), (*text).to_owned())).collect();
        let of = |(from, to): (String, BTreeMap<String, Place>)| {
            to.into_keys().map(move |to| (from.clone(), to))
        };
        edges(&sources).into_iter().flat_map(of).collect()
    }

    fn pairs(expected: &[(&str, &str)]) -> Vec<(String, String)> {
        expected.iter().map(|(from, to)| ((*from).to_owned(), (*to).to_owned())).collect()
    }

    #[test]
    fn every_form_of_a_path_is_seen() {
        let files = [
            ("lib.rs", "mod a; mod b; mod c; mod d; mod e; pub use e::Fault;"),
            ("a.rs", "use crate::b::{self, Thing};\nuse crate::{c::{x, y}, Fault as F};"),
            ("b.rs", "fn f() { super::c::go(); let s = \"crate::d\"; } // crate::d"),
            ("c/mod.rs", "mod inner { use super::super::d; }"),
            ("c/deep.rs", "use super::super::e::Fault; use super::local; use std::fmt;"),
            ("d.rs", "fn f() { println!(\"{}\", crate::e::name()) }"),
            ("e.rs", "use self::own::Thing;"),
        ];
        let expected =
            [("a", "b"), ("a", "c"), ("a", "e"), ("b", "c"), ("c", "d"), ("c", "e"), ("d", "e")];
        assert_eq!(found(&files), pairs(&expected));
    }

    #[test]
    fn tests_may_look_anywhere() {
        let files = [
            ("lib.rs", "mod a; mod b; #[cfg(test)] mod fixture;"),
            (
                "a.rs",
                "#[cfg(test)] mod tests { use crate::b; } #[cfg(test)] use crate::b::X; fn g() {}",
            ),
            (
                "b/mod.rs",
                "use crate::a; #[cfg(test)] #[expect(x)] mod tests; #[cfg(test)] fn f(b: [u8; 2]) -> crate::fixture::F { crate::fixture::f() }",
            ),
            ("b/tests.rs", "use crate::fixture;"),
            ("fixture.rs", "use crate::a; use crate::b;"),
        ];
        assert_eq!(found(&files), pairs(&[("b", "a")]));
        let not_a_test = [
            ("lib.rs", "mod a; mod b;"),
            ("a.rs", "#[cfg(not(test))] fn f() { crate::b::f() }"),
            ("b.rs", ""),
        ];
        assert_eq!(found(&not_a_test), pairs(&[("a", "b")]));
    }
}
