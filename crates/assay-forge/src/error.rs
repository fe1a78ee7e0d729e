//! Why a chain could not be forged.

use thiserror::Error;

use crate::{options::OptionsError, output::OutputError};

/// Why a chain could not be forged.
#[derive(Debug, Error)]
pub enum ForgeError {
    /// The options do not suit the recipe.
    #[error(transparent)]
    Options(#[from] OptionsError),
    /// The chain directory could not be written.
    #[error(transparent)]
    Output(#[from] OutputError),
    /// The threads could not be started.
    #[error("cannot start {threads} threads")]
    Threads {
        /// How many.
        threads: usize,
        /// Why.
        source: rayon::ThreadPoolBuildError,
    },
}
