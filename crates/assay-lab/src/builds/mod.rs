//! Builds of programs from git: a revision, a preset and a compiler give cached programs.
//!
//! A build runs in its own folder, `work/KEY` of the cache, and is renamed to `KEY` when complete, so every `KEY` is finished
//! even if a process was killed. A later attempt continues in the same folder. The build holds a lock that its compilers inherit:
//! if Assay is killed and they continue, no second build starts next to them.

mod cache;
mod compiler;
mod make;
mod preset;
mod source;
mod stage;
#[cfg(test)]
mod tests;

use std::io;
use std::path::{Path, PathBuf};

pub use self::cache::{Build, BuiltProgram, Cache, Cleaned, Entry, FindError, State};
pub use self::compiler::Compiler;
pub use self::make::{Made, MakeOptions, Outcome, make, whole_text};
pub use self::preset::{DEFAULT, Preset, Recipe, System};
pub use self::source::Repository;

/// Receives the progress of builds.
pub trait Watch {
    /// A revision starts; `number` counts from 1 to `of`.
    fn begin(&self, revision: &str, number: usize, of: usize);
    /// A stage of its build starts.
    fn stage(&self, what: &str);
    /// Steps of the stage done so far; `total` if known.
    fn step(&self, done: u64, total: Option<u64>);
    /// A revision is built or failed.
    fn end(&self, made: &Made);
    /// True to stop; polled several times a second.
    fn wants_stop(&self) -> bool {
        false
    }
}

#[derive(Debug, thiserror::Error)]
pub enum BuildFault {
    #[error("{what} {}", path.display())]
    Io {
        /// Failed operation.
        what: &'static str,
        path: PathBuf,
        source: io::Error,
    },
    #[error("cannot run {program}: install it (Debian: apt-get install {package})")]
    NoProgram {
        program: String,
        package: &'static str,
        /// Error of the operating system.
        source: io::Error,
    },
    #[error("git in {}: {text}", folder.display())]
    Git {
        folder: PathBuf,
        /// Output of git.
        text: String,
    },
    #[error("{} has no revision {revision:?}; fetch it, or name a commit, tag or branch that `git log` knows", repository.display())]
    NoRevision { revision: String, repository: PathBuf },
    #[error("compiler {name:?}: give gcc, clang, or the path of one of them")]
    Compiler {
        /// Requested name.
        name: String,
    },
    /// The preset has no recipe for the revision.
    #[error("preset {preset} has no recipe for {revision} (version {version}); it has {ranges}")]
    NoRecipe {
        preset: String,
        revision: String,
        /// Version in its source.
        version: String,
        ranges: String,
    },
    #[error("{stage} failed ({status}); the log is {}; it ends with\n{tail}", log.display())]
    Stage {
        stage: &'static str,
        status: String,
        log: PathBuf,
        /// End of the log.
        tail: String,
    },
    #[error("the build made no {name}: looked for {looked}; the log is {}", log.display())]
    Missing {
        name: String,
        /// Searched places.
        looked: String,
        log: PathBuf,
    },
    #[error("stopped; run the same command again to continue")]
    Stopped,
}

impl BuildFault {
    pub(super) fn io(what: &'static str, path: impl AsRef<Path>, source: io::Error) -> Self {
        Self::Io { what, path: path.as_ref().to_owned(), source }
    }
}
