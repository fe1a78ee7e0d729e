//! Builds revisions one after the other.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde::Serialize;
use sha2::{Digest, Sha256};

use super::cache::{Build, BuiltProgram, Cache};
use super::compiler::{Compiler, is_there};
use super::preset::{Preset, Recipe, System};
use super::source::Repository;
use super::stage::{LOG, Stage};
use super::{BuildFault, Watch};
use crate::machine::utc_now;

/// Folders and marker files in the folder of a build.
const SOURCE: &str = "source";
const OUT: &str = "out";
const DONE: &str = "done";
/// A marker is written after its stage has succeeded.
const CHECKED_OUT: &str = "checked-out";
const CONFIGURED: &str = "configured";
/// Pause between attempts to lock a key.
const WAIT: Duration = Duration::from_millis(300);

#[derive(Debug, Clone)]
pub struct MakeOptions {
    pub repository: Repository,
    /// Revisions as git names them.
    pub revisions: Vec<String>,
    pub preset: Preset,
    pub compiler: Compiler,
    pub flags: String,
    pub jobs: usize,
}

/// Result of one revision.
#[derive(Debug, Serialize)]
pub struct Made {
    /// Requested name.
    pub revision: String,
    #[serde(flatten)]
    pub outcome: Outcome,
}

#[derive(Debug, Serialize)]
#[serde(tag = "status", rename_all = "kebab-case")]
pub enum Outcome {
    Built {
        build: Build,
    },
    /// It was in the cache.
    Found {
        build: Build,
    },
    Failed {
        #[serde(serialize_with = "text_of")]
        error: BuildFault,
    },
}

fn text_of<S: serde::Serializer>(error: &BuildFault, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_str(&whole_text(error))
}

/// An error with its causes.
pub fn whole_text(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(source) = cause {
        text = format!("{text}: {source}");
        cause = source.source();
    }
    text
}

impl Made {
    pub fn build(&self) -> Option<&Build> {
        match &self.outcome {
            Outcome::Built { build } | Outcome::Found { build } => Some(build),
            Outcome::Failed { .. } => None,
        }
    }

    pub fn error(&self) -> Option<String> {
        match &self.outcome {
            Outcome::Failed { error } => Some(whole_text(error)),
            _ => None,
        }
    }
}

/// Builds every revision that is not in the cache. A failure does not stop the others; a stop skips the rest.
pub fn make(cache: &Cache, options: &MakeOptions, watch: &dyn Watch) -> Vec<Made> {
    let mut all = Vec::with_capacity(options.revisions.len());
    for (index, revision) in options.revisions.iter().enumerate() {
        watch.begin(revision, index + 1, options.revisions.len());
        let outcome =
            one(cache, options, revision, watch).unwrap_or_else(|error| Outcome::Failed { error });
        let is_stopped = matches!(&outcome, Outcome::Failed { error: BuildFault::Stopped });
        let made = Made { revision: revision.clone(), outcome };
        watch.end(&made);
        all.push(made);
        if is_stopped {
            break;
        }
    }
    all
}

/// Finds or builds a revision.
fn one(
    cache: &Cache,
    options: &MakeOptions,
    revision: &str,
    watch: &dyn Watch,
) -> Result<Outcome, BuildFault> {
    let repository = &options.repository;
    let commit = repository.commit(revision)?;
    let read = |file: &str| repository.file(&commit, file);
    let version = options.preset.version_of(read);
    let shown = version.as_ref().map_or_else(String::new, |numbers| {
        numbers.iter().map(u32::to_string).collect::<Vec<_>>().join(".")
    });
    let recipe = options.preset.recipe_for(version.as_deref(), |file| read(file).is_some());
    let recipe = recipe.ok_or_else(|| BuildFault::NoRecipe {
        preset: options.preset.name.clone(),
        revision: revision.to_owned(),
        version: if shown.is_empty() { "unknown".to_owned() } else { shown.clone() },
        ranges: options.preset.ranges(),
    })?;
    let key = key(&commit, options, recipe);
    let _lock = wait_for(cache, &key, watch)?;
    if let Some(mut build) = cache.build(&key) {
        cache.name(&mut build, revision)?;
        return Ok(Outcome::Found { build });
    }
    cache.note_failure(&key, None);
    let job = Job { cache, options, recipe, commit: &commit, key: &key, work: cache.work(&key) };
    let start = Instant::now();
    let built = job.build(watch).and_then(|programs| {
        let build = Build {
            schema: Build::SCHEMA,
            key: key.clone(),
            commit: commit.clone(),
            names: Vec::new(),
            subject: repository.subject(&commit)?,
            version: shown,
            preset: options.preset.name.clone(),
            system: recipe.system,
            compiler: options.compiler.clone(),
            flags: options.flags.clone(),
            arguments: job.arguments(),
            programs,
            repository: repository.path().to_owned(),
            seconds: start.elapsed().as_secs_f64(),
            created: utc_now(),
        };
        job.keep(build)
    });
    match built {
        Ok(mut build) => {
            cache.name(&mut build, revision)?;
            Ok(Outcome::Built { build })
        }
        Err(error) => {
            if !matches!(error, BuildFault::Stopped) {
                cache.note_failure(&key, Some(&whole_text(&error)));
            }
            Err(error)
        }
    }
}

/// Key of a build, derived from all inputs of its programs.
fn key(commit: &str, options: &MakeOptions, recipe: &Recipe) -> String {
    let Compiler { name, cc, cxx, version } = &options.compiler;
    let recipe = serde_json::to_string(recipe).unwrap_or_default();
    let mut digest = Sha256::new();
    for part in [commit, &recipe, cc, cxx, version, options.flags.trim()] {
        // Length prefixes separate the parts.
        digest.update((part.len() as u64).to_le_bytes());
        digest.update(part);
    }
    let digest = faster_hex::hex_string(&digest.finalize()[..4]);
    let commit = commit.get(..12).unwrap_or(commit);
    format!("{commit}-{}-{name}-{digest}", options.preset.name)
}

/// Waits for the lock of a key. Child processes inherit it: after a kill the key is free once the last of them has ended.
fn wait_for(cache: &Cache, key: &str, watch: &dyn Watch) -> Result<File, BuildFault> {
    let mut is_waiting = false;
    loop {
        if let Some(lock) = cache.lock(key)? {
            rustix::io::fcntl_setfd(&lock, rustix::io::FdFlags::empty())
                .map_err(|error| BuildFault::io("cannot lock", cache.work(key), error.into()))?;
            return Ok(lock);
        }
        if !std::mem::replace(&mut is_waiting, true) {
            watch.stage("waiting: another process builds it");
        }
        if watch.wants_stop() {
            return Err(BuildFault::Stopped);
        }
        std::thread::sleep(WAIT);
    }
}

struct Job<'a> {
    cache: &'a Cache,
    options: &'a MakeOptions,
    recipe: &'a Recipe,
    commit: &'a str,
    key: &'a str,
    work: PathBuf,
}

impl Job<'_> {
    fn arguments(&self) -> Vec<String> {
        let Compiler { cc, cxx, .. } = &self.options.compiler;
        self.recipe.arguments(cc, cxx, &self.options.flags)
    }

    /// Runs all stages that are not marked as done.
    fn build(&self, watch: &dyn Watch) -> Result<Vec<BuiltProgram>, BuildFault> {
        let (source, out) = (self.work.join(SOURCE), self.work.join(OUT));
        fs::create_dir_all(&self.work)
            .map_err(|error| BuildFault::io("cannot create", &self.work, error))?;
        self.once(CHECKED_OUT, || {
            watch.stage("checking out");
            self.options.repository.check_out(self.commit, &source)
        })?;
        self.once(CONFIGURED, || {
            let io = |error| BuildFault::io("cannot empty", &out, error);
            if out.exists() {
                fs::remove_dir_all(&out).map_err(io)?;
            }
            fs::create_dir_all(&out).map_err(io)?;
            match self.recipe.system {
                System::Cmake => self.configure_cmake(&source, &out, watch),
                System::Autotools => self.configure_autotools(&source, &out, watch),
            }
        })?;
        self.compile(&out, watch)?;
        self.collect(&out)
    }

    /// Runs a stage unless its marker exists.
    fn once(
        &self,
        mark: &str,
        work: impl FnOnce() -> Result<(), BuildFault>,
    ) -> Result<(), BuildFault> {
        let mark = self.work.join(mark);
        if mark.exists() {
            return Ok(());
        }
        work()?;
        File::create(&mark).map(drop).map_err(|error| BuildFault::io("cannot write", &mark, error))
    }

    fn stage(
        &self,
        name: &'static str,
        program: &OsStr,
        arguments: Vec<OsString>,
        folder: &Path,
        watch: &dyn Watch,
    ) -> Result<(), BuildFault> {
        Stage { name, program, arguments, folder, work: &self.work }.run(watch)
    }

    fn all_arguments(&self) -> impl Iterator<Item = OsString> {
        let ccache = self.recipe.ccache_arguments(is_there("ccache")).to_vec();
        self.arguments().into_iter().chain(ccache).map(OsString::from)
    }

    fn configure_cmake(
        &self,
        source: &Path,
        out: &Path,
        watch: &dyn Watch,
    ) -> Result<(), BuildFault> {
        needs("cmake", "cmake")?;
        let generator = if is_there("ninja") { "Ninja" } else { "Unix Makefiles" };
        let mut arguments: Vec<OsString> = vec!["-G".into(), generator.into(), "-S".into()];
        arguments.extend([source.into(), "-B".into(), out.into()]);
        arguments.extend(self.all_arguments());
        self.stage("cmake", OsStr::new("cmake"), arguments, &self.work, watch)
    }

    fn configure_autotools(
        &self,
        source: &Path,
        out: &Path,
        watch: &dyn Watch,
    ) -> Result<(), BuildFault> {
        for (program, package) in AUTOTOOLS {
            needs(program, package)?;
        }
        let autogen = source.join("autogen.sh");
        self.stage("autogen.sh", autogen.as_os_str(), Vec::new(), source, watch)?;
        let configure = source.join("configure");
        self.stage("configure", configure.as_os_str(), self.all_arguments().collect(), out, watch)
    }

    fn compile(&self, out: &Path, watch: &dyn Watch) -> Result<(), BuildFault> {
        let targets = self.recipe.programs.iter().map(|program| OsString::from(&program.target));
        let jobs = self.options.jobs.to_string();
        match self.recipe.system {
            System::Cmake => {
                // Not through `cmake --build`, which does not forward the signal that stops a build.
                let is_ninja = out.join("build.ninja").is_file();
                let program = OsStr::new(if is_ninja { "ninja" } else { "make" });
                let mut arguments: Vec<OsString> = vec!["-C".into(), out.into()];
                arguments.push(format!("-j{jobs}").into());
                arguments.extend(targets);
                self.stage("compiling", program, arguments, &self.work, watch)
            }
            System::Autotools => {
                let mut arguments: Vec<OsString> = vec!["-C".into(), out.join("src").into()];
                arguments.push(format!("-j{jobs}").into());
                arguments.extend(targets);
                self.stage("compiling", OsStr::new("make"), arguments, out, watch)
            }
        }
    }

    /// Copies the programs into one folder.
    fn collect(&self, out: &Path) -> Result<Vec<BuiltProgram>, BuildFault> {
        let done = self.work.join(DONE);
        let io = |what| {
            move |(path, source): (PathBuf, std::io::Error)| BuildFault::io(what, path, source)
        };
        if done.exists() {
            fs::remove_dir_all(&done).map_err(|error| io("cannot empty")((done.clone(), error)))?;
        }
        let bin = done.join("bin");
        fs::create_dir_all(&bin).map_err(|error| io("cannot create")((bin.clone(), error)))?;
        let mut programs = Vec::new();
        for program in &self.recipe.programs {
            let made = program.paths.iter().map(|path| out.join(path)).find(|path| path.is_file());
            let made = made.ok_or_else(|| BuildFault::Missing {
                name: program.name.clone(),
                looked: program.paths.join(", "),
                log: self.work.join(LOG),
            })?;
            let kept = bin.join(&program.name);
            let bytes =
                fs::copy(&made, &kept).map_err(|error| io("cannot copy")((made.clone(), error)))?;
            let path = self.cache.folder(self.key).join("bin").join(&program.name);
            programs.push(BuiltProgram { name: program.name.clone(), path, bytes });
        }
        Ok(programs)
    }

    /// Moves the finished build to its final place atomically and removes its inputs.
    fn keep(&self, build: Build) -> Result<Build, BuildFault> {
        let (done, place) = (self.work.join(DONE), self.cache.folder(self.key));
        let log = self.work.join(LOG);
        fs::copy(&log, done.join(LOG))
            .map_err(|error| BuildFault::io("cannot copy", &log, error))?;
        Cache::write(&build, &done)?;
        if place.exists() {
            // It has no manifest of this version.
            fs::remove_dir_all(&place)
                .map_err(|error| BuildFault::io("cannot replace", &place, error))?;
        }
        fs::rename(&done, &place)
            .map_err(|error| BuildFault::io("cannot move the build to", &place, error))?;
        // Leftovers only cost disk space; `builds clean` removes them.
        let _ = fs::remove_dir_all(&self.work);
        Ok(build)
    }
}

/// Programs that autogen.sh and configure need, with their packages.
const AUTOTOOLS: [(&str, &str); 5] = [
    ("autoconf", "autoconf"),
    ("automake", "automake"),
    ("libtoolize", "libtool"),
    ("pkg-config", "pkg-config"),
    ("make", "make"),
];

fn needs(program: &str, package: &'static str) -> Result<(), BuildFault> {
    if is_there(program) {
        return Ok(());
    }
    let source = std::io::ErrorKind::NotFound.into();
    Err(BuildFault::NoProgram { program: program.to_owned(), package, source })
}
