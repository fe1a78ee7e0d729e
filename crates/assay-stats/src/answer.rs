//! What a query reads and what it answers.

use std::path::Path;

use assay_engine::InvalidBlock;

use crate::block_set::BlockSet;
use crate::read::ReadOptions;

/// Where the rows come from.
#[derive(Clone, Copy, Debug)]
pub enum Source<'a> {
    /// Block files; threads and the meaning of "many inputs" are those of the options.
    Blocks(&'a BlockSet, &'a ReadOptions),
    /// A folder that [`crate::ParquetWriter`] wrote, or one that has such folders, of ranges of one chain.
    Parquet(&'a Path),
}

/// What was read before the query ran.
#[derive(Debug, Default)]
pub struct Loaded {
    /// Rows of blocks.
    pub blocks: u64,
    /// Rows of transactions.
    pub txs: u64,
    /// Blocks that could not be counted and are missing, the first few.
    pub damage: Vec<InvalidBlock>,
    /// How many there are.
    pub damage_count: u64,
}

/// A value in an answer.
#[derive(Clone, Debug, PartialEq)]
pub enum Cell {
    /// No value.
    Null,
    /// A whole number.
    Int(i64),
    /// Another number.
    Real(f64),
    /// Text.
    Text(String),
    /// Bytes.
    Blob(Vec<u8>),
}
