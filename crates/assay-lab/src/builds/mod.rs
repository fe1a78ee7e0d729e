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

pub use self::cache::{Build, BuiltProgram, Cache, Cleaned, Entry, FindError, State};
pub use self::compiler::Compiler;
pub use self::make::{Made, MakeOptions, make};
pub use self::preset::{DEFAULT, Preset, Recipe, System};
pub use self::source::Repository;

/// The user stopped a build.
#[derive(Debug, thiserror::Error)]
#[error("stopped; run the same command again to continue")]
struct Stopped;

/// Adds the program to the error of its start, and the Debian package that has it.
fn no_program(source: io::Error, program: &str, package: &str) -> anyhow::Error {
    let advice = format!("cannot run {program}: install it (Debian: apt-get install {package})");
    anyhow::Error::new(source).context(advice)
}
