//! Bitcoin Core's kernel in a program of ours, and where that program is: a peer that is built apart, since it compiles Bitcoin Core.

use std::collections::BTreeSet;
use std::env;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use super::assay::files_args;
use super::program::{fingerprint, first_line, output_of};
use super::way::SyncLaunch;
use super::{Family, Target, TargetError};

/// Name of the program.
pub const PROGRAM: &str = "assay-peer-kernel";

/// There is no kernel peer.
#[derive(Debug, thiserror::Error)]
#[error(
    "cannot find {PROGRAM}{}; build it with `cd peers/kernel && cargo build --release` (CMake, a C++20 compiler and the Boost headers are needed), or name it: `--target kernel=PATH` of a plan, `--kernel PATH` of a benchmark",
    describe(looked)
)]
pub struct KernelNotFound {
    /// Where it was looked for.
    pub looked: Vec<PathBuf>,
}

fn describe(looked: &[PathBuf]) -> String {
    let names: Vec<String> = looked.iter().map(|path| path.display().to_string()).collect();
    if names.is_empty() { String::new() } else { format!(" (looked at {})", names.join(", ")) }
}

/// Names the program where nothing else does.
const VARIABLE: &str = "ASSAY_PEER_KERNEL";

/// The program at `path`; without one, at the path in the environment's `ASSAY_PEER_KERNEL`; without that, where Cargo puts it in a
/// checkout that holds the working folder or this program.
///
/// # Errors
/// When there is no such file.
pub fn find(path: Option<&Path>) -> Result<PathBuf, KernelNotFound> {
    let named = path.map(Path::to_owned).or_else(|| env::var_os(VARIABLE).map(PathBuf::from));
    let looked = named.map_or_else(usual_places, |path| vec![path]);
    match looked.iter().find(|path| path.is_file()) {
        Some(found) => Ok(found.clone()),
        None => Err(KernelNotFound { looked }),
    }
}

fn usual_places() -> Vec<PathBuf> {
    let target = env::var_os("CARGO_TARGET_DIR").unwrap_or_else(|| "target".into());
    let built =
        |root: &Path| root.join("peers").join("kernel").join(&target).join("release").join(PROGRAM);
    let is_checkout = |root: &&Path| root.join("peers").join("kernel").is_dir();
    let mut places = Vec::new();
    let folders = [env::current_dir().ok(), env::current_exe().ok()];
    for folder in folders.iter().flatten() {
        if let Some(root) = folder.ancestors().find(is_checkout) {
            places.push(built(root));
        }
    }
    // Beside this program, as an installation would have it.
    let sibling = env::current_exe().ok().map(|path| path.with_file_name(OsStr::new(PROGRAM)));
    places.extend(sibling);
    places.dedup();
    places
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
        // Its submitting thread verifies too, as the workers do.
        let workers = threads.saturating_sub(1).to_string();
        args.extend(["--worker-threads".into(), workers.into()]);
    }
    args
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_peer_is_told_with_the_way_to_build_it() {
        let error = find(Some(Path::new("/nonexistent/peer"))).expect_err("there is none");
        let text = error.to_string();
        assert!(text.contains("/nonexistent/peer"), "{text}");
        assert!(text.contains("cd peers/kernel && cargo build --release"), "{text}");
    }
}
