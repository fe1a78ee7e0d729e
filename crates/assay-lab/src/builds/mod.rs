//! Builds of programs that lie in git: a revision, a preset and a compiler make programs that are kept.
//!
//! A build happens in a folder of its own, `work/KEY` of the cache, and is moved to `KEY` as a whole when it is complete; so what
//! is in the cache is finished, whatever was killed. A later attempt continues in the same folder. A lock is held meanwhile, by
//! the compilers that this program starts as well: where this one is killed and they go on, nobody else builds next to them.

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

/// Hears how builds go.
pub trait Watch {
    /// A revision is next, the one with this number, from 1, of so many.
    fn begin(&self, revision: &str, number: usize, of: usize);
    /// A part of its build begins.
    fn stage(&self, what: &str);
    /// So many steps of the part are done; how many there are is not always known.
    fn step(&self, done: u64, total: Option<u64>);
    /// A revision is done, or failed.
    fn end(&self, made: &Made);
    /// Whether to stop; asked several times a second.
    fn wants_stop(&self) -> bool {
        false
    }
}

#[derive(Debug, thiserror::Error)]
pub enum BuildFault {
    #[error("{what} {}", path.display())]
    Io {
        /// What was to be done.
        what: &'static str,
        path: PathBuf,
        source: io::Error,
    },
    #[error("cannot run {program}: install it (Debian: apt-get install {package})")]
    NoProgram {
        program: String,
        package: &'static str,
        /// What the system says.
        source: io::Error,
    },
    #[error("git in {}: {text}", folder.display())]
    Git {
        folder: PathBuf,
        /// What it says.
        text: String,
    },
    #[error("{} has no revision {revision:?}; fetch it, or name a commit, tag or branch that `git log` knows", repository.display())]
    NoRevision { revision: String, repository: PathBuf },
    #[error("compiler {name:?}: give gcc, clang, or the path of one of them")]
    Compiler {
        /// What was given.
        name: String,
    },
    /// The preset does not know such revisions.
    #[error("preset {preset} has no recipe for {revision} (version {version}); it has {ranges}")]
    NoRecipe {
        preset: String,
        revision: String,
        /// What its source says.
        version: String,
        /// What there is.
        ranges: String,
    },
    #[error("{stage} failed ({status}); the log is {}; it ends with\n{tail}", log.display())]
    Stage {
        stage: &'static str,
        /// How it ended.
        status: String,
        log: PathBuf,
        /// The end of that.
        tail: String,
    },
    #[error("the build made no {name}: looked for {looked}; the log is {}", log.display())]
    Missing {
        name: String,
        /// Where it was looked for.
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
