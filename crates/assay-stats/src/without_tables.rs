//! The interface of Parquet files and SQL in a build without the feature `tables`: every call says how to build them in.

use std::convert::Infallible;
use std::ops::ControlFlow;
use std::path::Path;

use crate::answer::{Cell, Loaded, Source};
use crate::rows::{BlockRow, TxRow};

/// This build has neither Parquet nor `SQLite`.
#[derive(Debug, thiserror::Error)]
#[error("{}", crate::WITHOUT_TABLES)]
pub struct ParquetError;

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub enum SqlError {
    /// The statement is not one; a build with the feature says so.
    #[error("{message}")]
    Syntax {
        /// What `SQLite` says.
        message: String,
        /// Where, in bytes of the statement.
        offset: Option<usize>,
    },
    /// This build has neither Parquet nor `SQLite`.
    #[error(transparent)]
    NotBuilt(#[from] ParquetError),
}

/// Never made in this build.
#[derive(Debug)]
pub struct ParquetWriter(Infallible);

impl ParquetWriter {
    /// Fails.
    ///
    /// # Errors
    /// Always: [`ParquetError`].
    pub fn create(_: &Path, _: &str, _: u32) -> Result<Self, ParquetError> {
        Err(ParquetError)
    }

    /// Never called.
    ///
    /// # Errors
    /// None.
    pub fn block(&mut self, _: &BlockRow) -> Result<(), ParquetError> {
        match self.0 {}
    }

    /// Never called.
    ///
    /// # Errors
    /// None.
    pub fn txs(&mut self, _: Vec<TxRow>) -> Result<(), ParquetError> {
        match self.0 {}
    }

    /// Never called.
    ///
    /// # Errors
    /// None.
    pub fn finish(self) -> Result<u64, ParquetError> {
        match self.0 {}
    }
}

/// Fails.
///
/// # Errors
/// Always: [`SqlError::NotBuilt`].
pub fn query(
    _: &str,
    _: Source<'_>,
    _: &mut dyn FnMut(&Loaded),
    _: &mut dyn FnMut(&[String]),
    _: &mut dyn FnMut(Vec<Cell>) -> ControlFlow<()>,
) -> Result<Loaded, SqlError> {
    Err(ParquetError.into())
}
