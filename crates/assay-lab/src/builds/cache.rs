//! The folder of finished builds, and what is in it.

use std::fs::{self, File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};

use assay_report::atomic_file;
use serde::{Deserialize, Serialize};

use super::BuildFault;
use super::compiler::Compiler;
use super::preset::System;

/// Names the folder where nothing else does.
const VARIABLE: &str = "ASSAY_BUILDS";
/// What a finished build says of itself.
pub(super) const MANIFEST: &str = "build.json";
/// The folder of builds that are not finished.
const WORK: &str = "work";
/// Why a build failed.
const FAILED: &str = "failed.txt";
/// Characters of a commit's hash that name it at least.
const COMMIT_MIN: usize = 7;
const SCHEMA: u32 = 1;

/// A finished build: `build.json`, schema version 1.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Build {
    /// Version of this form.
    pub(super) schema: u32,
    /// Its folder: commit, preset, compiler, and a digest of everything that the result depends on.
    pub key: String,
    pub commit: String,
    /// Names under which it was asked for: tags, branches, short hashes.
    pub names: Vec<String>,
    /// First line of the commit's message.
    pub subject: String,
    /// What the source says of its version; empty where it does not.
    pub version: String,
    pub preset: String,
    /// What generated the build.
    pub system: System,
    pub compiler: Compiler,
    /// Their flags, as given.
    pub flags: String,
    /// Arguments of `cmake` or `configure`.
    pub arguments: Vec<String>,
    pub programs: Vec<BuiltProgram>,
    pub repository: PathBuf,
    /// Seconds that its last, successful attempt took.
    pub seconds: f64,
    /// When that ended, as ISO 8601 in UTC.
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

    /// Whether a word behind the `+` of a target means it.
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
        /// Flags of the command that makes it.
        hint: String,
        /// Where it was looked for.
        folder: PathBuf,
    },
    #[error(
        "{revision}{} may be any of {keys}: choose by compiler, preset or the end of the key, such as core@{revision}+{example}",
        plus(with)
    )]
    Several {
        revision: String,
        with: Vec<String>,
        /// Those that there are.
        keys: String,
        /// The end of one key.
        example: String,
    },
    #[error(transparent)]
    Folder(#[from] BuildFault),
}

fn plus(words: &[String]) -> String {
    words.iter().fold(String::new(), |text, word| text + "+" + word)
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Entry {
    pub key: String,
    pub state: State,
    /// Bytes on disk.
    pub bytes: u64,
    /// The build, where it is finished.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub build: Option<Build>,
    /// Why it failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// The output of its build.
    pub log: PathBuf,
}

/// How far a build is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum State {
    /// Its programs can be used.
    Finished,
    /// Somebody is building it.
    Building,
    /// It was interrupted.
    Unfinished,
    Failed,
}

impl State {
    /// The word for it.
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
    /// Keys of those that somebody is building.
    pub busy: Vec<String>,
    /// Bytes that are free now.
    pub bytes: u64,
}

#[derive(Debug, Clone)]
pub struct Cache {
    root: PathBuf,
}

impl Cache {
    /// That of the user: `ASSAY_BUILDS`, or `assay/builds` in `$XDG_CACHE_HOME`, or in `~/.cache`, as the XDG base directory
    /// specification has it. `None` where there is no home.
    pub fn of_user() -> Option<Self> {
        let absolute = |path: &PathBuf| path.is_absolute();
        let named = std::env::var_os(VARIABLE)
            .map(PathBuf::from)
            .filter(|path| !path.as_os_str().is_empty());
        if let Some(root) = named {
            // Programs are started from other folders.
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

    /// Where a build happens.
    pub(super) fn work(&self, key: &str) -> PathBuf {
        self.root.join(WORK).join(key)
    }

    /// Holds a key, so that one process at a time builds or removes it; `None` where another one has it.
    pub(super) fn lock(&self, key: &str) -> Result<Option<File>, BuildFault> {
        let folder = self.root.join(WORK);
        let path = folder.join(format!("{key}.lock"));
        let io = |source| BuildFault::io("cannot lock", &path, source);
        fs::create_dir_all(&folder).map_err(io)?;
        let file = File::options().create(true).truncate(false).write(true).open(&path);
        let file = file.map_err(io)?;
        match file.try_lock() {
            Ok(()) => Ok(Some(file)),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(source)) => Err(io(source)),
        }
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

    /// Writes what a build says of itself into a folder.
    pub(super) fn write(build: &Build, folder: &Path) -> Result<(), BuildFault> {
        let path = folder.join(MANIFEST);
        let text = serde_json::to_vec_pretty(build)
            .map_err(|error| BuildFault::io("cannot write", &path, error.into()))?;
        atomic_file::write(&path, &text)
            .map_err(|error| BuildFault::io("cannot write", error.path, error.source))
    }

    /// Remembers that a name stands for this build now, and for no build of another commit any more: branches move.
    pub(super) fn name(&self, build: &mut Build, name: &str) -> Result<(), BuildFault> {
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

    /// The finished builds, by key.
    ///
    /// # Errors
    /// When the folder cannot be read.
    pub fn finished(&self) -> Result<Vec<Build>, BuildFault> {
        let keys = names_in(&self.root)?;
        Ok(keys.iter().filter_map(|key| self.build(key)).collect())
    }

    /// The build of a revision that has `program`, and is what all words of `with` mean: a compiler, a preset, the end of a key.
    ///
    /// # Errors
    /// When there is none, or more than one.
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

    /// Everything, finished or not.
    ///
    /// # Errors
    /// When the folder cannot be read.
    pub fn entries(&self) -> Result<Vec<Entry>, BuildFault> {
        let mut entries: Vec<Entry> = Vec::new();
        for build in self.finished()? {
            let folder = self.folder(&build.key);
            entries.push(Entry {
                key: build.key.clone(),
                state: State::Finished,
                bytes: size_of(&folder),
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
            let (bytes, log) = (size_of(&folder), folder.join(super::stage::LOG));
            entries.push(Entry { key, state, bytes, build: None, error, log });
        }
        Ok(entries)
    }

    /// Notes why a build failed, or that it did not.
    pub(super) fn note_failure(&self, key: &str, why: Option<&str>) {
        let path = self.work(key).join(FAILED);
        // A courtesy to those who list builds: the caller reports the failure in any case.
        let _ = match why {
            Some(why) => fs::write(&path, why),
            None => fs::remove_file(&path),
        };
    }

    /// Removes the entries that `is_chosen` chooses, but for those that somebody is building.
    ///
    /// # Errors
    /// When something cannot be removed.
    pub fn clean(&self, is_chosen: impl Fn(&Entry) -> bool) -> Result<Cleaned, BuildFault> {
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
            // Without its manifest it is no build any more, however far the removal gets.
            let _ = fs::remove_file(folder.join(MANIFEST));
            let io = |source| BuildFault::io("cannot remove", &folder, source);
            fs::remove_dir_all(&folder).map_err(io)?;
            cleaned.bytes += entry.bytes;
            cleaned.removed.push(entry.key);
        }
        Ok(cleaned)
    }
}

impl Build {
    pub(super) const SCHEMA: u32 = SCHEMA;
}

/// Flags of the command that makes what was looked for.
fn hint(with: &[String], program: &str) -> String {
    let is_compiler = |word: &&String| word.contains("gcc") || word.contains("clang");
    let compiler = with.iter().find(is_compiler).map(|word| format!(" --compiler {word}"));
    let preset = (program == "bench_bitcoin").then(|| " --preset bitcoin-core-bench".to_owned());
    [preset, compiler].into_iter().flatten().collect()
}

/// Names in a folder, sorted; none where there is no folder.
fn names_in(folder: &Path) -> Result<Vec<String>, BuildFault> {
    let io = |source| BuildFault::io("cannot read", folder, source);
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(io(error)),
    };
    let names: Result<Vec<_>, _> = entries.map(|entry| entry.map(|one| one.file_name())).collect();
    let names = names.map_err(io)?;
    let mut names: Vec<String> =
        names.into_iter().filter_map(|name| name.into_string().ok()).collect();
    names.sort_unstable();
    Ok(names)
}

/// Bytes of all files below a folder; what cannot be read counts nothing.
fn size_of(folder: &Path) -> u64 {
    let Ok(entries) = fs::read_dir(folder) else { return 0 };
    let of = |entry: fs::DirEntry| match entry.file_type() {
        Ok(kind) if kind.is_dir() => size_of(&entry.path()),
        Ok(kind) if kind.is_file() => entry.metadata().map_or(0, |metadata| metadata.len()),
        _ => 0,
    };
    entries.flatten().map(of).sum()
}
