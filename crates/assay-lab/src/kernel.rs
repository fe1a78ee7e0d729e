//! Where the program around Bitcoin Core's kernel is: a peer that is built apart, since it compiles Bitcoin Core.

use std::env;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

/// Name of the program.
pub const PROGRAM: &str = "assay-peer-kernel";

/// There is no kernel peer.
#[derive(Debug, thiserror::Error)]
#[error(
    "cannot find {PROGRAM}{}; build it with `cd peers/kernel && cargo build --release` (CMake, a C++20 compiler and the Boost headers are needed), or name it with --kernel PATH",
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
