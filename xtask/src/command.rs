//! Runs other programs.

use std::process::Command;

use anyhow::{Context, bail};

/// Removes cargo's variables for `cargo xtask` from the environment. Otherwise build scripts that read them (ring's) and their
/// dependents would be rebuilt when cargo is next called directly.
pub(crate) fn forget_xtask(command: &mut Command) {
    for (name, _) in std::env::vars_os() {
        let name = name.to_string_lossy();
        if name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_") {
            command.env_remove(name.as_ref());
        }
    }
}

/// Runs a command; fails unless it succeeds.
pub(crate) fn finish(command: &mut Command) -> anyhow::Result<()> {
    forget_xtask(command);
    let status = command.status().with_context(|| format!("cannot start {command:?}"))?;
    if !status.success() {
        bail!("{command:?} ended with {status}");
    }
    Ok(())
}
