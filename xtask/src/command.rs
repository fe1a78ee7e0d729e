//! Starting other programs.

use std::process::Command;

use anyhow::{Context, bail};

/// Removes from the environment what `cargo xtask` says about itself: build scripts that read it (ring's) would run again, and
/// all that needs them be built again, when cargo is called directly next.
pub(crate) fn forget_xtask(command: &mut Command) {
    for (name, _) in std::env::vars_os() {
        let name = name.to_string_lossy();
        if name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_") {
            command.env_remove(name.as_ref());
        }
    }
}

/// Runs a command to its end, which must be a success.
pub(crate) fn finish(command: &mut Command) -> anyhow::Result<()> {
    forget_xtask(command);
    let status = command.status().with_context(|| format!("cannot start {command:?}"))?;
    if !status.success() {
        bail!("{command:?} ended with {status}");
    }
    Ok(())
}
