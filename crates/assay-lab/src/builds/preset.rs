//! Presets: build recipes of a program's revisions, as data.

use std::fs;
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::plan::{BadValue, PlanError, checked, is_target_name, read, valid};

const FORMAT: u32 = 1;

/// Preset if none is named.
pub const DEFAULT: &str = "bitcoin-core";

const BUILTIN: [(&str, &str); 3] = [
    ("bitcoin-core", include_str!("../../../../plans/builds/bitcoin-core.toml")),
    ("bitcoin-core-bench", include_str!("../../../../plans/builds/bitcoin-core-bench.toml")),
    ("bchn", include_str!("../../../../plans/builds/bchn.toml")),
];

/// Build recipes of one program.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Preset {
    format: u32,
    /// Name in keys and lists.
    pub name: String,
    /// Its product.
    pub title: String,
    /// Built-in preset that it extends.
    #[serde(default)]
    extends: Option<String>,
    /// Places of the version in the source; the first file with all marks decides.
    #[serde(default, rename = "version")]
    versions: Vec<VersionMark>,
    /// Recipes; the first match is used.
    #[serde(default, rename = "recipe")]
    recipes: Vec<Recipe>,
    /// Additions to recipes of the extended preset.
    #[serde(default)]
    add: Additions,
}

/// Place of a version in a source file.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
struct VersionMark {
    file: String,
    /// Searched one after the other; the numbers after them form the version.
    marks: Vec<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum System {
    Cmake,
    /// autogen.sh, configure and make.
    Autotools,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Recipe {
    /// Versions from the first, below the second: `28.99..`, `0.10..29`, `..`.
    versions: String,
    /// File that the revision must contain.
    file: String,
    pub system: System,
    /// Arguments of `cmake` or `configure`.
    #[serde(default)]
    pub(super) options: Vec<String>,
    /// Further arguments; `{cc}` and `{cxx}` stand for the compilers.
    #[serde(default)]
    pub(super) compiler: Vec<String>,
    /// Further arguments if flags are given: `{flags}`.
    #[serde(default)]
    pub(super) flags: Vec<String>,
    /// Compiler flags placed before those of the user: an old source may need them with a new compiler.
    #[serde(default)]
    pub(super) always_flags: String,
    /// Arguments with ccache.
    #[serde(default)]
    ccache: Vec<String>,
    /// Arguments without ccache.
    #[serde(default)]
    no_ccache: Vec<String>,
    #[serde(rename = "program")]
    pub(super) programs: Vec<Program>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Program {
    /// File name in the cache.
    pub(super) name: String,
    /// Build target; with autotools, in the folder `src`.
    pub(super) target: String,
    /// Candidate paths in the build folder.
    pub(super) paths: Vec<String>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
struct Additions {
    #[serde(default)]
    cmake: Addition,
    #[serde(default)]
    autotools: Addition,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
struct Addition {
    #[serde(default)]
    options: Vec<String>,
    #[serde(default, rename = "program")]
    programs: Vec<Program>,
}

impl Preset {
    pub fn builtin_names() -> impl Iterator<Item = &'static str> {
        BUILTIN.iter().map(|(name, _)| *name)
    }

    pub fn builtin_text(name: &str) -> Option<&'static str> {
        BUILTIN.iter().find(|(builtin, _)| *builtin == name).map(|(_, text)| *text)
    }

    /// A built-in preset by name, or one from a file if the name contains `/` or an extension.
    ///
    /// # Errors
    /// When it does not exist, or cannot be read or parsed.
    pub fn find(name: &str) -> Result<Self, PlanError> {
        let path = Path::new(name);
        if path.extension().is_some() || path.components().count() > 1 {
            let text = fs::read_to_string(path)
                .map_err(|source| PlanError::Read { path: path.to_owned(), source })?;
            return Self::parse(&text, name);
        }
        let Some(text) = Self::builtin_text(name) else {
            let known: Vec<&str> = Self::builtin_names().collect();
            return Err(PlanError::Value {
                origin: "preset".to_owned(),
                key: "name".to_owned(),
                value: format!("{name} (built in are {})", known.join(", ")),
                rule: "name a built-in preset, or a TOML file by a path that ends with .toml",
            });
        };
        Self::parse(text, name)
    }

    /// Parses a preset; `origin` names it in errors.
    ///
    /// # Errors
    /// On invalid TOML, unknown keys and impossible values.
    pub fn parse(text: &str, origin: &str) -> Result<Self, PlanError> {
        let mut preset: Self = read(text, origin)?;
        if let Some(base) = preset.extends.clone() {
            preset.extend(&base, origin)?;
        }
        checked(preset.check(), origin)?;
        Ok(preset)
    }

    /// Appends the recipes of the extended preset; its own come first.
    fn extend(&mut self, base: &str, origin: &str) -> Result<(), PlanError> {
        if Self::builtin_text(base).is_none() || base == self.name {
            return Err(PlanError::Value {
                origin: origin.to_owned(),
                key: "extends".to_owned(),
                value: base.to_owned(),
                rule: "name another built-in preset",
            });
        }
        let base = Self::find(base)?;
        self.versions.extend(base.versions);
        for mut recipe in base.recipes {
            let addition = match recipe.system {
                System::Cmake => &self.add.cmake,
                System::Autotools => &self.add.autotools,
            };
            // After the options that they change: the last one wins with both systems.
            recipe.options.extend(addition.options.iter().cloned());
            recipe.programs.extend(addition.programs.iter().cloned());
            self.recipes.push(recipe);
        }
        Ok(())
    }

    fn check(&self) -> Result<(), BadValue> {
        let name_rule = "use letters, digits, '-', '_' and '.'";
        valid(self.format == FORMAT, "format", &self.format, "only format 1 is known")?;
        valid(is_target_name(&self.name), "name", &self.name, name_rule)?;
        valid(!self.recipes.is_empty(), "recipe", &"none", "give one at least")?;
        for Recipe { versions, programs, .. } in &self.recipes {
            let rule = "give FROM..BELOW, FROM.., ..BELOW or .., such as 28.99..";
            valid(Range::parse(versions).is_some(), "recipe.versions", versions, rule)?;
            valid(!programs.is_empty(), "recipe.program", &"none", "give one at least")?;
            let is_inside = |path: &String| {
                let is_normal = |part| matches!(part, std::path::Component::Normal(_));
                !path.is_empty() && Path::new(path).components().all(is_normal)
            };
            for program in programs {
                let is_name = is_target_name(&program.name);
                valid(is_name, "recipe.program.name", &program.name, name_rule)?;
                let are_inside = !program.paths.is_empty() && program.paths.iter().all(is_inside);
                let rule = "give paths inside the folder of the build";
                valid(are_inside, "recipe.program.paths", &program.paths.join(", "), rule)?;
            }
        }
        Ok(())
    }

    /// Version that a revision states; `read` returns the text of one of its files.
    pub(super) fn version_of(
        &self,
        mut read: impl FnMut(&str) -> Option<String>,
    ) -> Option<Vec<u32>> {
        self.versions.iter().find_map(|mark| mark.version_in(&read(&mark.file)?))
    }

    /// First recipe whose range holds the version and whose file exists.
    pub(super) fn recipe_for(
        &self,
        version: Option<&[u32]>,
        mut has: impl FnMut(&str) -> bool,
    ) -> Option<&Recipe> {
        self.recipes.iter().find(|recipe| {
            let range = Range::parse(&recipe.versions);
            range.is_some_and(|range| range.holds(version)) && has(&recipe.file)
        })
    }

    /// Ranges and files of all recipes, for errors.
    pub(super) fn ranges(&self) -> String {
        let range = |recipe: &Recipe| format!("{} with {}", recipe.versions, recipe.file);
        self.recipes.iter().map(range).collect::<Vec<_>>().join(", ")
    }
}

impl VersionMark {
    fn version_in(&self, text: &str) -> Option<Vec<u32>> {
        let mut rest = text;
        let mut version = Vec::new();
        for mark in &self.marks {
            rest = &rest[rest.find(mark.as_str())? + mark.len()..];
            let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
            version.extend(numbers(&rest[..end])?);
        }
        (!version.is_empty()).then_some(version)
    }
}

/// Numbers between dots; empty for an empty text.
fn numbers(text: &str) -> Option<Vec<u32>> {
    let parts = text.split('.').filter(|part| !part.is_empty());
    parts.map(|part| part.parse().ok()).collect()
}

struct Range {
    from: Option<Vec<u32>>,
    below: Option<Vec<u32>>,
}

impl Range {
    fn parse(text: &str) -> Option<Self> {
        let (from, below) = text.split_once("..")?;
        let end = |text: &str| -> Option<Option<Vec<u32>>> {
            let is_version = |c: char| c.is_ascii_digit() || c == '.';
            if !text.chars().all(is_version) || text.starts_with('.') {
                return None;
            }
            let found = numbers(text)?;
            Some((!found.is_empty()).then_some(found))
        };
        Some(Self { from: end(from)?, below: end(below)? })
    }

    /// A revision without a version only matches the range of all versions.
    fn holds(&self, version: Option<&[u32]>) -> bool {
        match version {
            None => self.from.is_none() && self.below.is_none(),
            Some(version) => {
                self.from.as_deref().is_none_or(|from| from <= version)
                    && self.below.as_deref().is_none_or(|below| version < below)
            }
        }
    }
}

impl Recipe {
    /// Arguments of `cmake` or `configure` without those of ccache, which do not change the result.
    pub(super) fn arguments(&self, cc: &str, cxx: &str, flags: &str) -> Vec<String> {
        let flags = [self.always_flags.as_str(), flags].map(str::trim);
        let flags: Vec<&str> = flags.into_iter().filter(|part| !part.is_empty()).collect();
        let flags = flags.join(" ");
        let compilers = self.compiler.iter().map(|one| one.replace("{cc}", cc));
        let compilers = compilers.map(|one| one.replace("{cxx}", cxx));
        let mut arguments: Vec<String> = self.options.iter().cloned().chain(compilers).collect();
        if !flags.is_empty() {
            arguments.extend(self.flags.iter().map(|one| one.replace("{flags}", &flags)));
        }
        arguments
    }

    /// Arguments that switch ccache on or off.
    pub(super) fn ccache_arguments(&self, is_there: bool) -> &[String] {
        if is_there { &self.ccache } else { &self.no_ccache }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CMAKE: &str = "cmake_minimum_required(VERSION 3.22)\nset(CLIENT_VERSION_MAJOR 29)\nset(CLIENT_VERSION_MINOR 99)\n";
    const CONFIGURE: &str =
        "AC_PREREQ([2.69])\ndefine(_CLIENT_VERSION_MAJOR, 0)\ndefine(_CLIENT_VERSION_MINOR, 21)\n";
    const BCHN: &str =
        "cmake_minimum_required(VERSION 3.16)\nproject(bitcoin-cash-node\n\tVERSION 28.0.1\n";

    #[test]
    fn builtin_presets_parse() {
        for name in Preset::builtin_names() {
            assert_eq!(Preset::find(name).expect("valid").name, name);
        }
        let names = |name: &str| -> Vec<Vec<String>> {
            let recipes = Preset::find(name).expect("valid").recipes;
            let of = |recipe: &Recipe| recipe.programs.iter().map(|one| one.name.clone()).collect();
            recipes.iter().map(of).collect()
        };
        assert_eq!(names("bitcoin-core"), vec![vec!["bitcoind", "bitcoin-cli"]; 2]);
        let with_bench = vec!["bitcoind", "bitcoin-cli", "bench_bitcoin"];
        assert_eq!(names("bitcoin-core-bench"), vec![with_bench; 2]);
    }

    #[test]
    fn versions_of_sources() {
        let core = Preset::find("bitcoin-core").expect("valid");
        let only = |wanted: &'static str, text: &'static str| {
            move |file: &str| (file == wanted).then(|| text.to_owned())
        };
        let version = core.version_of(only("CMakeLists.txt", CMAKE));
        assert_eq!(version, Some(vec![29, 99]));
        let old = core.version_of(only("configure.ac", CONFIGURE));
        assert_eq!(old, Some(vec![0, 21]));
        assert_eq!(core.version_of(|_| None), None);
        assert_eq!(core.version_of(only("CMakeLists.txt", BCHN)), None);
        let bchn = Preset::find("bchn").expect("valid");
        assert_eq!(bchn.version_of(only("CMakeLists.txt", BCHN)), Some(vec![28, 0, 1]));

        let system = |version: &[u32], file: &str| {
            core.recipe_for(Some(version), |name| name == file).map(|recipe| recipe.system)
        };
        assert_eq!(system(&[29, 99], "CMakeLists.txt"), Some(System::Cmake));
        // The switch to CMake happened within 28.99: the file decides.
        assert_eq!(system(&[28, 99], "CMakeLists.txt"), Some(System::Cmake));
        assert_eq!(system(&[28, 99], "configure.ac"), Some(System::Autotools));
        assert_eq!(system(&[0, 21], "configure.ac"), Some(System::Autotools));
        assert_eq!(system(&[0, 9], "configure.ac"), None);
        assert!(core.recipe_for(None, |_| true).is_none(), "no version, no recipe");
        assert!(bchn.recipe_for(None, |_| true).is_some());
    }

    #[test]
    fn arguments_in_their_order() {
        let core = Preset::find("bitcoin-core-bench").expect("valid");
        let recipe = core.recipe_for(Some(&[25, 0]), |_| true).expect("autotools");
        let arguments = recipe.arguments("clang", "clang++", "-O3");
        let end =
            ["--enable-bench", "CC=clang", "CXX=clang++", "CFLAGS=-O2 -O3", "CXXFLAGS=-O2 -O3"];
        assert!(arguments.ends_with(&end.map(str::to_owned)), "{arguments:?}");
        assert!(!recipe.arguments("gcc", "g++", " ").iter().any(|one| one.contains("FLAGS")));
        assert_eq!(recipe.ccache_arguments(false), ["--disable-ccache"]);
    }

    #[test]
    fn impossible_presets_are_rejected() {
        const GOOD: &str = "format = 1\nname = \"mine\"\ntitle = \"T\"\n[[recipe]]\nversions = \"..\"\nfile = \"CMakeLists.txt\"\n\
            system = \"cmake\"\n[[recipe.program]]\nname = \"bitcoind\"\ntarget = \"d\"\npaths = [\"bin/d\"]\n";
        assert!(Preset::parse(GOOD, "p.toml").is_ok());
        for (from, to, said) in [
            ("format = 1", "format = 2", "p.toml: format = 2: only format 1 is known"),
            ("title = \"T\"", "titel = \"T\"", "p.toml, line 3, column 1: unknown field `titel`"),
            ("\"mine\"", "\"../mine\"", "p.toml: name = ../mine"),
            ("\"..\"", "\"new\"", "recipe.versions = new: give FROM..BELOW"),
            ("\"..\"", "\"29\"", "recipe.versions = 29"),
            ("\"cmake\"", "\"scons\"", "unknown variant `scons`"),
            ("bin/d", "../../etc/passwd", "inside the folder of the build"),
            ("bin/d", "/bin/d", "inside the folder of the build"),
            ("\"bitcoind\"", "\"a/b\"", "recipe.program.name = a/b"),
            ("[[recipe]]", "extends = \"none\"\n[[recipe]]", "extends = none: name another"),
        ] {
            assert!(GOOD.contains(from), "{from}");
            let error = Preset::parse(&GOOD.replacen(from, to, 1), "p.toml").expect_err(to);
            assert!(error.to_string().contains(said), "{error}");
        }
        let error = Preset::find("core").expect_err("none").to_string();
        assert!(error.contains("bitcoin-core, bitcoin-core-bench, bchn"), "{error}");
        assert!(matches!(Preset::find("./none.toml"), Err(PlanError::Read { .. })));
    }
}
