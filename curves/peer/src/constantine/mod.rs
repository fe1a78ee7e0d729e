//! Constantine, the library of report 5: a shared library that the user has built and names by
//! path, called through its C interface.

#![expect(unsafe_code, reason = "a library that is found at run time has a C interface only")]

mod curves;
mod library;
mod protocols;

use std::path::Path;

use anyhow::{Context as _, Result};

use crate::table::Table;
use library::Library;

/// Loads the library at a path: its version, compiler and operations. The library stays loaded for
/// the lifetime of the process, like its subject.
///
/// # Errors
/// If there is no such file, or it is not Constantine.
pub(crate) fn open(path: &Path) -> Result<(String, String, Table)> {
    let library: &'static Library = Box::leak(Box::new(
        Library::open(path).with_context(|| format!("Constantine at {}", path.display()))?,
    ));
    let mut table = Table::default();
    curves::operations(&mut table, library)?;
    protocols::operations(&mut table, library)?;
    Ok((library.version.clone(), library.compiler.clone(), table))
}
