//! Locates the wrapper of Bitcoin Core's kernel: a separately built peer, since it compiles Bitcoin Core.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use super::SyncLaunch;
use super::assay::files_args;
use super::program::{fingerprint, first_line, output_of};
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
    match build {
        Build::Ordinary => find(path),
        Build::Element8000 => first(
            path.map_or_else(|| build.companion().in_checkouts(), |path| vec![path.to_owned()]),
        ),
    }
}

/// Path of the program: `path`, else `ASSAY_PEER_KERNEL`, else the folder of this program, else
/// Cargo's output in a checkout around the working folder or this program.
///
/// # Errors
/// If no file exists at these paths.
pub fn find(path: Option<&Path>) -> Result<PathBuf, KernelNotFound> {
    first(Build::Ordinary.companion().places(path))
}

fn first(looked: Vec<PathBuf>) -> Result<PathBuf, KernelNotFound> {
    match looked.iter().find(|path| path.is_file()) {
        Some(found) => Ok(found.clone()),
        None => Err(KernelNotFound { looked }),
    }
}

impl Target {
    pub(super) fn detect_kernel(program: Option<&Path>) -> Result<Self, TargetError> {
        let program = find(program)?;
        let banner = first_line(&output_of(&program, &["--version"])?);
        if !banner.starts_with(PROGRAM) {
            return Err(TargetError::UnknownFamily { program, banner });
        }
        Ok(Self {
            name: "kernel".to_owned(),
            family: Family::Kernel,
            version: banner,
            command: vec![program.as_os_str().to_owned()],
            fingerprint: fingerprint(program.as_os_str()),
            options: BTreeSet::new(),
            extra: Vec::new(),
            cores: Vec::new(),
            index: None,
        })
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
