//! Locates the wrapper of Bitcoin Core's kernel: a separately built peer, since it compiles Bitcoin Core.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use super::SyncLaunch;
use super::assay::files_args;
use super::program::banner_of;
use super::{Family, Target, TargetError};
use crate::companion::{self, Companion};

pub const PROGRAM: &str = "assay-peer-kernel";

#[derive(Debug, thiserror::Error)]
#[error(
    "cannot find {PROGRAM}{}; build it with `cd peers/kernel && cargo build --release` (CMake, a C++20 compiler and the Boost headers are needed), or name it: `--target kernel=PATH` of a plan, `--kernel PATH` of a benchmark",
    companion::listed(looked)
)]
pub struct KernelNotFound {
    pub looked: Vec<PathBuf>,
}

/// Build variant of a kernel peer, which fixes its limit of stack elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Build {
    /// As in Bitcoin Core.
    Ordinary,
    /// Stack elements of up to 8,000 bytes (peers/kernel/README.md).
    Element8000,
}

impl Build {
    const fn companion(self) -> Companion<'static> {
        let file = match self {
            Self::Ordinary => "target/release/assay-peer-kernel",
            Self::Element8000 => "target/element-8000/release/assay-peer-kernel",
        };
        Companion { variable: "ASSAY_PEER_KERNEL", folder: "peers/kernel", file }
    }
}

/// The program of this build at `path`; by default in Cargo's target folder of a checkout around the working folder or program.
///
/// # Errors
/// If no file exists at these paths.
pub fn find_build(build: Build, path: Option<&Path>) -> Result<PathBuf, KernelNotFound> {
    let looked = match (build, path) {
        (Build::Element8000, None) => build.companion().in_checkouts(),
        _ => build.companion().places(path),
    };
    let found = looked.iter().find(|path| path.is_file()).cloned();
    found.ok_or(KernelNotFound { looked })
}

/// Path of the program: `path`, else `ASSAY_PEER_KERNEL`, else the folder of this program, else
/// Cargo's output in a checkout around the working folder or this program.
///
/// # Errors
/// If no file exists at these paths.
pub fn find(path: Option<&Path>) -> Result<PathBuf, KernelNotFound> {
    find_build(Build::Ordinary, path)
}

impl Target {
    pub(super) fn detect_kernel(program: Option<&Path>) -> Result<Self, TargetError> {
        let program = find(program)?;
        let names = ("kernel".to_owned(), banner_of(&program, PROGRAM)?);
        Ok(Self::of(Family::Kernel, names, vec![program.into()], BTreeSet::new()))
    }
}

pub(super) fn sync_args(with: &SyncLaunch<'_>) -> Vec<OsString> {
    let mut args = files_args(with);
    if let Some(threads) = with.plan.sync.threads {
        // The submitting thread verifies too, like the workers.
        let workers = threads.saturating_sub(1).to_string();
        args.extend(["--worker-threads".into(), workers.into()]);
    }
    args
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_peer_error_names_the_build() {
        let error = find(Some(Path::new("/nonexistent/peer"))).expect_err("there is none");
        let text = error.to_string();
        assert!(text.contains("/nonexistent/peer"), "{text}");
        assert!(text.contains("cd peers/kernel && cargo build --release"), "{text}");
    }
}
