//! Errors of the forge.

use thiserror::Error;

use crate::{options::OptionsError, output::OutputError};

/// Forging a chain failed.
#[derive(Debug, Error)]
pub enum ForgeError {
    /// The options do not fit the recipe.
    #[error(transparent)]
    Options(#[from] OptionsError),
    #[error(transparent)]
    Output(#[from] OutputError),
    #[error("cannot start {threads} threads")]
    Threads { threads: usize, source: rayon::ThreadPoolBuildError },
}
