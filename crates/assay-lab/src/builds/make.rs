//! Builds revisions one after the other.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::Context as _;
use assay_report::atomic_file;
use serde::Serialize;
use sha2::{Digest, Sha256};

use super::cache::{Build, BuiltProgram, Cache, SCHEMA};
use super::compiler::{Compiler, is_there};
use super::preset::{Preset, Recipe, System};
use super::source::Repository;
use super::stage::{LOG, Stage};
use super::{Stopped, no_program};
use crate::machine::disk::{remove_folder, renew_folder};
use crate::machine::utc_now;
use crate::progress::{Event, Reporter};

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
    /// `built`, `found` in the cache, or `failed`.
    pub(super) status: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    build: Option<Build>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) error: Option<String>,
}

impl Made {
    pub fn build(&self) -> Option<&Build> {
        self.build.as_ref()
    }
}

/// Builds every revision that is not in the cache. A failure does not stop the others; a stop skips the rest.
pub fn make(cache: &Cache, options: &MakeOptions, reporter: &dyn Reporter) -> Vec<Made> {
    let mut all = Vec::with_capacity(options.revisions.len());
    for (index, revision) in options.revisions.iter().enumerate() {
        let (number, of) = (index + 1, options.revisions.len());
        reporter.line(&format!("build {number}/{of}: {revision}"));
        let outcome = one(cache, options, revision, reporter);
        let is_stopped = outcome.as_ref().is_err_and(anyhow::Error::is::<Stopped>);
        let (status, text) = match &outcome {
            Ok((build, true)) => {
                ("built", format!("built in {:.0} s: {}", build.seconds, build.key))
            }
            Ok((build, false)) => ("found", format!("built before: {}", build.key)),
            Err(error) => ("failed", format!("FAILED: {error:#}")),
        };
        reporter.line(&format!("  {text}"));
        let (build, error) = match outcome {
            Ok((build, _)) => (Some(build), None),
            Err(error) => (None, Some(format!("{error:#}"))),
        };
        all.push(Made { revision: revision.clone(), status, build, error });
        if is_stopped {
            break;
        }
    }
    all
}

/// Finds or builds a revision; true if it was built.
fn one(
    cache: &Cache,
    options: &MakeOptions,
    revision: &str,
    reporter: &dyn Reporter,
) -> anyhow::Result<(Build, bool)> {
    let repository = &options.repository;
    let commit = repository.commit(revision)?;
    let read = |file: &str| repository.file(&commit, file);
    let version = options.preset.version_of(read);
    let shown = version.as_ref().map_or_else(String::new, |numbers| {
        numbers.iter().map(u32::to_string).collect::<Vec<_>>().join(".")
    });
    let recipe = options.preset.recipe_for(version.as_deref(), |file| read(file).is_some());
    let recipe = recipe.with_context(|| {
        let (preset, ranges) = (&options.preset.name, options.preset.ranges());
        let version = if shown.is_empty() { "unknown" } else { &shown };
        format!("preset {preset} has no recipe for {revision} (version {version}); it has {ranges}")
    })?;
    let key = key(&commit, options, recipe);
    let _lock = wait_for(cache, &key, reporter)?;
    if let Some(mut build) = cache.build(&key) {
        cache.name(&mut build, revision)?;
        return Ok((build, false));
    }
    cache.note_failure(&key, None);
    let job = Job { cache, options, recipe, commit: &commit, key: &key, work: cache.work(&key) };
    let start = Instant::now();
    let built = job.build(reporter).and_then(|programs| {
        let build = Build {
            schema: SCHEMA,
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
            Ok((build, true))
        }
        Err(error) => {
            if !error.is::<Stopped>() {
                cache.note_failure(&key, Some(&format!("{error:#}")));
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
fn wait_for(cache: &Cache, key: &str, reporter: &dyn Reporter) -> anyhow::Result<File> {
    let mut is_waiting = false;
    loop {
        if let Some(lock) = cache.lock(key)? {
            rustix::io::fcntl_setfd(&lock, rustix::io::FdFlags::empty())
                .with_context(|| format!("cannot lock {}", cache.work(key).display()))?;
            return Ok(lock);
        }
        if !std::mem::replace(&mut is_waiting, true) {
            reporter.event(&Event::Status("waiting: another process builds it"));
        }
        if reporter.wants_stop() {
            return Err(Stopped.into());
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
    fn build(&self, reporter: &dyn Reporter) -> anyhow::Result<Vec<BuiltProgram>> {
        let (source, out) = (self.work.join(SOURCE), self.work.join(OUT));
        atomic_file::create_folder(&self.work)?;
        self.once(CHECKED_OUT, || {
            reporter.event(&Event::Status("checking out"));
            self.options.repository.check_out(self.commit, &source)
        })?;
        self.once(CONFIGURED, || {
            renew_folder(&out)?;
            match self.recipe.system {
                System::Cmake => self.configure_cmake(&source, &out, reporter),
                System::Autotools => self.configure_autotools(&source, &out, reporter),
            }
        })?;
        self.compile(&out, reporter)?;
        self.collect(&out)
    }

    /// Runs a stage unless its marker exists.
    fn once(&self, mark: &str, work: impl FnOnce() -> anyhow::Result<()>) -> anyhow::Result<()> {
        let mark = self.work.join(mark);
        if mark.exists() {
            return Ok(());
        }
        work()?;
        File::create(&mark).map(drop).with_context(|| format!("cannot write {}", mark.display()))
    }

    fn stage(
        &self,
        name: &'static str,
        program: &OsStr,
        arguments: Vec<OsString>,
        folder: &Path,
        reporter: &dyn Reporter,
    ) -> anyhow::Result<()> {
        Stage { name, program, arguments, folder, work: &self.work }.run(reporter)
    }

    fn all_arguments(&self) -> impl Iterator<Item = OsString> {
        let ccache = self.recipe.ccache_arguments(is_there("ccache")).to_vec();
        self.arguments().into_iter().chain(ccache).map(OsString::from)
    }

    fn configure_cmake(
        &self,
        source: &Path,
        out: &Path,
        reporter: &dyn Reporter,
    ) -> anyhow::Result<()> {
        needs("cmake", "cmake")?;
        let generator = if is_there("ninja") { "Ninja" } else { "Unix Makefiles" };
        let mut arguments: Vec<OsString> = vec!["-G".into(), generator.into(), "-S".into()];
        arguments.extend([source.into(), "-B".into(), out.into()]);
        arguments.extend(self.all_arguments());
        self.stage("cmake", OsStr::new("cmake"), arguments, &self.work, reporter)
    }

    fn configure_autotools(
        &self,
        source: &Path,
        out: &Path,
        reporter: &dyn Reporter,
    ) -> anyhow::Result<()> {
        for (program, package) in AUTOTOOLS {
            needs(program, package)?;
        }
        let autogen = source.join("autogen.sh");
        self.stage("autogen.sh", autogen.as_os_str(), Vec::new(), source, reporter)?;
        let configure = source.join("configure");
        self.stage(
            "configure",
            configure.as_os_str(),
            self.all_arguments().collect(),
            out,
            reporter,
        )
    }

    fn compile(&self, out: &Path, reporter: &dyn Reporter) -> anyhow::Result<()> {
        let targets = self.recipe.programs.iter().map(|program| OsString::from(&program.target));
        let jobs = self.options.jobs.to_string();
        // Not through `cmake --build`, which does not forward the signal that stops a build.
        let program = if out.join("build.ninja").is_file() { "ninja" } else { "make" };
        let folder = match self.recipe.system {
            System::Cmake => out.to_owned(),
            System::Autotools => out.join("src"),
        };
        let mut arguments = vec!["-C".into(), folder.into(), format!("-j{jobs}").into()];
        arguments.extend(targets);
        self.stage("compiling", OsStr::new(program), arguments, &self.work, reporter)
    }

    /// Copies the programs into one folder.
    fn collect(&self, out: &Path) -> anyhow::Result<Vec<BuiltProgram>> {
        let done = self.work.join(DONE);
        remove_folder(&done)?;
        let bin = done.join("bin");
        atomic_file::create_folder(&bin)?;
        let mut programs = Vec::new();
        for program in &self.recipe.programs {
            let made = program.paths.iter().map(|path| out.join(path)).find(|path| path.is_file());
            let made = made.with_context(|| {
                let (name, looked, log) =
                    (&program.name, program.paths.join(", "), self.work.join(LOG));
                format!(
                    "the build made no {name}: looked for {looked}; the log is {}",
                    log.display()
                )
            })?;
            let bytes = copy(&made, &bin.join(&program.name))?;
            let path = self.cache.folder(self.key).join("bin").join(&program.name);
            programs.push(BuiltProgram { name: program.name.clone(), path, bytes });
        }
        Ok(programs)
    }

    /// Moves the finished build to its final place atomically and removes its inputs.
    fn keep(&self, build: Build) -> anyhow::Result<Build> {
        let (done, place) = (self.work.join(DONE), self.cache.folder(self.key));
        copy(&self.work.join(LOG), &done.join(LOG))?;
        Cache::write(&build, &done)?;
        // A build there has no manifest of this version.
        remove_folder(&place)?;
        fs::rename(&done, &place)
            .with_context(|| format!("cannot move the build to {}", place.display()))?;
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

fn needs(program: &str, package: &str) -> anyhow::Result<()> {
    if is_there(program) {
        return Ok(());
    }
    Err(no_program(io::ErrorKind::NotFound.into(), program, package))
}

fn copy(from: &Path, to: &Path) -> anyhow::Result<u64> {
    fs::copy(from, to).with_context(|| format!("cannot copy {}", from.display()))
}
