//! Tells what is in a chain: counts per block and range of heights, Parquet files of them, and SQL over both.
//!
//! [`BlockSet`] finds the blocks of block files, whatever their order, and chooses the branch with the most work;
//! [`read`] goes through it in parallel and hands out rows in the order of heights; [`Ranges`] adds them up,
//! [`ParquetWriter`] writes them, [`query`] asks them questions. Memory does not grow with the chain, apart from some
//! hundred bytes per header.
//!
//! ```no_run
//! use assay_consensus::params::ChainParams;
//! use assay_stats::{BlockSet, Heights, Item, Ranges, ReadOptions, read};
//! use std::{ops::ControlFlow, path::Path, sync::Arc};
//!
//! let params = Arc::new(ChainParams::by_name("regtest").expect("a known chain"));
//! let set = BlockSet::open(Path::new("chain"), params, 2, &|_, _| ())?;
//! let mut ranges = Ranges::new(set.heights(), None);
//! read(&set, Heights::ALL, &ReadOptions::default(), &mut |item| {
//!     if let Item::Block(row) = &item {
//!         ranges.add(row);
//!     }
//!     ControlFlow::Continue(())
//! });
//! println!("{} inputs", ranges.total().inputs);
//! # Ok::<(), assay_stats::OpenError>(())
//! ```
//!
//! Parquet files and SQL need the feature `tables`; without it [`ParquetWriter::create`] and [`query`] fail and say so. The two
//! libraries take as long to compile as the engine does, and most builds never write a table.
//!
//! Deliberately absent: validation. Headers must obey their rules, and the bytes of a block must be those that its header commits
//! to; no other rule is checked. `assay_engine` finds the blocks, for validation as for this.

mod answer;
mod block_set;
#[cfg_attr(
    not(feature = "tables"),
    expect(dead_code, reason = "values are read for tables alone; names are listed in any build")
)]
mod columns;
mod counts;
mod kind;
#[cfg(feature = "tables")]
mod parquet_files;
mod ranges;
mod read;
mod rows;
#[cfg(feature = "tables")]
mod sql;
mod whole;
#[cfg(not(feature = "tables"))]
mod without_tables;

pub use answer::{Cell, Loaded, Source};
pub use assay_engine::{FilePlace, FoundChain, InvalidBlock, MissingBlock, Stray};
pub use block_set::{BlockSet, Heights, OpenError, ReadError, detect_chain};
pub use columns::{describe_tables, list_tables};
pub use counts::{Counts, TypeCount};
pub use kind::OutputKind;
#[cfg(feature = "tables")]
pub use parquet_files::{BLOCKS_FILE, ParquetError, ParquetWriter, TXS_FILE};
pub use ranges::{RangeRow, Ranges};
pub use read::{Detail, Item, ReadOptions, read};
pub use rows::{BlockRow, TxRow};
#[cfg(feature = "tables")]
pub use sql::{SqlError, query};
pub use whole::{NotWhole, listing_sha256};
#[cfg(not(feature = "tables"))]
pub use without_tables::{ParquetError, ParquetWriter, SqlError, query};

/// Whether this build has Parquet files and SQL: the feature `tables`.
pub const HAS_TABLES: bool = cfg!(feature = "tables");

/// What to do where it has not.
pub const WITHOUT_TABLES: &str = "this build has no Parquet files and no SQL; `cargo build --release --features tables` builds them in";
