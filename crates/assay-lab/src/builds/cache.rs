//! The cache of finished builds.

use std::fs::{self, File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use assay_report::atomic_file;
use serde::{Deserialize, Serialize};

use super::compiler::Compiler;
use super::preset::System;
use crate::machine::disk::{folder_bytes, remove_folder};

/// Environment variable that sets the folder.
const VARIABLE: &str = "ASSAY_BUILDS";
/// Manifest of a finished build.
pub(super) const MANIFEST: &str = "build.json";
/// Folder of unfinished builds.
const WORK: &str = "work";
/// Reason of a failed build.
const FAILED: &str = "failed.txt";
/// Minimum number of characters of an abbreviated commit hash.
const COMMIT_MIN: usize = 7;
pub(super) const SCHEMA: u32 = 1;

/// A finished build: `build.json`, schema version 1.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Build {
    pub(super) schema: u32,
    /// Folder name: commit, preset, compiler, and a digest of all inputs of the build.
    pub key: String,
    pub commit: String,
    /// Requested names: tags, branches, short hashes.
    pub names: Vec<String>,
    /// First line of the commit message.
    pub subject: String,
    /// Version in the source; empty if it has none.
    pub version: String,
    pub preset: String,
    pub system: System,
    pub compiler: Compiler,
    /// Compiler flags, as given.
    pub flags: String,
    /// Arguments of `cmake` or `configure`.
    pub arguments: Vec<String>,
    pub programs: Vec<BuiltProgram>,
    pub repository: PathBuf,
    /// Duration of the last, successful attempt in seconds.
    pub seconds: f64,
    /// Time of its end, ISO 8601 in UTC.
    pub created: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BuiltProgram {
    pub name: String,
    pub path: PathBuf,
    pub bytes: u64,
}

impl Build {
    pub fn program(&self, name: &str) -> Option<&Path> {
        self.programs.iter().find(|program| program.name == name).map(|one| one.path.as_path())
    }

    /// The digest at the end of the key.
    pub fn digest(&self) -> &str {
        self.key.rsplit('-').next().unwrap_or(&self.key)
    }

    /// True if a word after the `+` of a target matches this build.
    fn is_meant_by(&self, word: &str) -> bool {
        word == self.compiler.name
            || word == self.preset
            || word == self.key
            || (word.len() >= 4 && self.digest().starts_with(word))
    }

    fn is_of(&self, revision: &str) -> bool {
        let is_hash = revision.len() >= COMMIT_MIN && self.commit.starts_with(revision);
        is_hash || self.names.iter().any(|name| name == revision)
    }
}

#[derive(Debug, thiserror::Error)]
pub enum FindError {
    #[error(
        "there is no build of {revision}{} with a {program} in {}: make it with `assay builds make --repo PATH --rev {revision}{hint}` (`assay builds list` lists those that are there)",
        plus(with), folder.display()
    )]
    None {
        revision: String,
        with: Vec<String>,
        program: String,
        /// Flags of the command that makes the build.
        hint: String,
        folder: PathBuf,
    },
    #[error(
        "{revision}{} may be any of {keys}: choose by compiler, preset or the end of the key, such as core@{revision}+{example}",
        plus(with)
    )]
    Several {
        revision: String,
        with: Vec<String>,
        keys: String,
        /// End of one key.
        example: String,
    },
    #[error(transparent)]
    Folder(#[from] anyhow::Error),
}

fn plus(words: &[String]) -> String {
    words.iter().fold(String::new(), |text, word| text + "+" + word)
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Entry {
    pub key: String,
    pub state: State,
    pub bytes: u64,
    /// Present if finished.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub build: Option<Build>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    pub log: PathBuf,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum State {
    /// Its programs can be used.
    Finished,
    /// Another process is building it.
    Building,
    /// It was interrupted.
    Unfinished,
    Failed,
}

impl State {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Finished => "finished",
            Self::Building => "building",
            Self::Unfinished => "unfinished",
            Self::Failed => "failed",
        }
    }
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Cleaned {
    pub removed: Vec<String>,
    /// Keys skipped because another process is building them.
    pub busy: Vec<String>,
    pub bytes: u64,
}

#[derive(Debug, Clone)]
pub struct Cache {
    root: PathBuf,
}

impl Cache {
    /// The user's cache: `ASSAY_BUILDS`, `$XDG_CACHE_HOME/assay/builds` or `~/.cache/assay/builds` (XDG base directory
    /// specification). `None` without a home directory.
    pub fn of_user() -> Option<Self> {
        let absolute = |path: &PathBuf| path.is_absolute();
        let named = std::env::var_os(VARIABLE)
            .map(PathBuf::from)
            .filter(|path| !path.as_os_str().is_empty());
        if let Some(root) = named {
            // Absolute, because programs start in other folders.
            return Some(Self::at(&std::path::absolute(&root).unwrap_or(root)));
        }
        let caches = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from).filter(absolute);
        let home = || std::env::home_dir().filter(absolute).map(|home| home.join(".cache"));
        caches.or_else(home).map(|caches| Self::at(&caches.join("assay").join("builds")))
    }

    pub fn at(root: &Path) -> Self {
        Self { root: root.to_owned() }
    }

    pub fn root(&self) -> &Path {
        &self.root
    }

    pub(super) fn folder(&self, key: &str) -> PathBuf {
        self.root.join(key)
    }

    /// Build folder of a key.
    pub(super) fn work(&self, key: &str) -> PathBuf {
        self.root.join(WORK).join(key)
    }

    /// Locks a key, so that one process at a time builds or removes it; `None` if another process holds it.
    pub(super) fn lock(&self, key: &str) -> anyhow::Result<Option<File>> {
        let folder = self.root.join(WORK);
        let path = folder.join(format!("{key}.lock"));
        let lock = || -> io::Result<Option<File>> {
            fs::create_dir_all(&folder)?;
            let file = File::options().create(true).truncate(false).write(true).open(&path)?;
            match file.try_lock() {
                Ok(()) => Ok(Some(file)),
                Err(TryLockError::WouldBlock) => Ok(None),
                Err(TryLockError::Error(source)) => Err(source),
            }
        };
        lock().with_context(|| format!("cannot lock {}", path.display()))
    }

    pub fn build(&self, key: &str) -> Option<Build> {
        let folder = self.folder(key);
        let text = fs::read(folder.join(MANIFEST)).ok()?;
        let mut build: Build = serde_json::from_slice(&text).ok()?;
        // The folder may have moved since.
        for program in &mut build.programs {
            program.path = folder.join("bin").join(&program.name);
        }
        (build.schema == SCHEMA && build.key == key).then_some(build)
    }

    /// Writes the manifest into a folder.
    pub(super) fn write(build: &Build, folder: &Path) -> anyhow::Result<()> {
        Ok(atomic_file::write_json(&folder.join(MANIFEST), build)?)
    }

    /// Assigns a name to this build and removes it from builds of other commits, because branches move.
    pub(super) fn name(&self, build: &mut Build, name: &str) -> anyhow::Result<()> {
        for mut other in self.finished()? {
            let names = other.names.len();
            if other.commit != build.commit && other.repository == build.repository {
                other.names.retain(|old| old != name);
            }
            if other.names.len() < names {
                Self::write(&other, &self.folder(&other.key))?;
            }
        }
        if !build.names.iter().any(|old| old == name) {
            build.names.push(name.to_owned());
            Self::write(build, &self.folder(&build.key))?;
        }
        Ok(())
    }

    /// Finished builds, sorted by key.
    ///
    /// # Errors
    /// When the folder cannot be read.
    pub fn finished(&self) -> anyhow::Result<Vec<Build>> {
        let keys = names_in(&self.root)?;
        Ok(keys.iter().filter_map(|key| self.build(key)).collect())
    }

    /// Finds the build of a revision that has `program` and matches all words of `with`: a compiler, a preset, the end of a key.
    ///
    /// # Errors
    /// When none or several match.
    pub fn find(&self, revision: &str, with: &[String], program: &str) -> Result<Build, FindError> {
        let is_meant = |build: &Build| {
            build.is_of(revision)
                && build.program(program).is_some_and(Path::is_file)
                && with.iter().all(|word| build.is_meant_by(word))
        };
        let mut found: Vec<Build> = self.finished()?.into_iter().filter(is_meant).collect();
        let (revision, with) = (revision.to_owned(), with.to_vec());
        match found.len() {
            0 => Err(FindError::None {
                hint: hint(&with, program),
                revision,
                with,
                program: program.to_owned(),
                folder: self.root.clone(),
            }),
            1 => Ok(found.remove(0)),
            _ => {
                let keys: Vec<&str> = found.iter().map(|build| build.key.as_str()).collect();
                let (keys, example) = (keys.join(", "), found[0].digest().to_owned());
                Err(FindError::Several { revision, with, keys, example })
            }
        }
    }

    /// All entries, finished or not.
    ///
    /// # Errors
    /// When the folder cannot be read.
    pub fn entries(&self) -> anyhow::Result<Vec<Entry>> {
        let mut entries: Vec<Entry> = Vec::new();
        for build in self.finished()? {
            let folder = self.folder(&build.key);
            entries.push(Entry {
                key: build.key.clone(),
                state: State::Finished,
                bytes: folder_bytes(&folder),
                log: folder.join(super::stage::LOG),
                build: Some(build),
                error: None,
            });
        }
        for key in names_in(&self.root.join(WORK))? {
            let folder = self.work(&key);
            if !folder.is_dir() {
                continue;
            }
            let error = fs::read_to_string(folder.join(FAILED)).ok();
            let state = match (self.lock(&key)?, &error) {
                (None, _) => State::Building,
                (Some(_), Some(_)) => State::Failed,
                (Some(_), None) => State::Unfinished,
            };
            let (bytes, log) = (folder_bytes(&folder), folder.join(super::stage::LOG));
            entries.push(Entry { key, state, bytes, build: None, error, log });
        }
        Ok(entries)
    }

    /// Records the reason of a failure, or clears it.
    pub(super) fn note_failure(&self, key: &str, why: Option<&str>) {
        let path = self.work(key).join(FAILED);
        // Best effort, for lists of builds: the caller reports the failure in any case.
        let _ = match why {
            Some(why) => fs::write(&path, why),
            None => fs::remove_file(&path),
        };
    }

    /// Removes the entries that `is_chosen` selects, except those being built.
    ///
    /// # Errors
    /// When something cannot be removed.
    pub fn clean(&self, is_chosen: impl Fn(&Entry) -> bool) -> anyhow::Result<Cleaned> {
        let mut cleaned = Cleaned::default();
        for entry in self.entries()?.into_iter().filter(is_chosen) {
            let Some(_lock) = self.lock(&entry.key)? else {
                cleaned.busy.push(entry.key);
                continue;
            };
            let folder = match entry.state {
                State::Finished => self.folder(&entry.key),
                _ => self.work(&entry.key),
            };
            // Without its manifest the build is invalid, even if the removal stops midway.
            let _ = fs::remove_file(folder.join(MANIFEST));
            remove_folder(&folder)?;
            cleaned.bytes += entry.bytes;
            cleaned.removed.push(entry.key);
        }
        Ok(cleaned)
    }
}

/// Flags of the command that makes the missing build.
fn hint(with: &[String], program: &str) -> String {
    let is_compiler = |word: &&String| word.contains("gcc") || word.contains("clang");
    let compiler = with.iter().find(is_compiler).map(|word| format!(" --compiler {word}"));
    let preset = (program == "bench_bitcoin").then(|| " --preset bitcoin-core-bench".to_owned());
    [preset, compiler].into_iter().flatten().collect()
}

/// Sorted names in a folder; empty if the folder is missing.
fn names_in(folder: &Path) -> anyhow::Result<Vec<String>> {
    let read = || -> io::Result<Vec<String>> {
        let entries: Vec<_> = fs::read_dir(folder)?.collect::<Result<_, _>>()?;
        Ok(entries.into_iter().filter_map(|entry| entry.file_name().into_string().ok()).collect())
    };
    let mut names = match read() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
        names => names.with_context(|| format!("cannot read {}", folder.display()))?,
    };
    names.sort_unstable();
    Ok(names)
}
