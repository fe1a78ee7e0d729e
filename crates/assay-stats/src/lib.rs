//! Chain statistics: counts per block, transaction and range of heights, from block files.
//!
//! [`BlockSet`] finds the blocks of block files in any order, and chooses the branch with the most
//! work; [`read`] reads it in parallel and returns rows in order of height; [`Ranges`] sums them
//! up. Memory does not grow with the chain, apart from some hundred bytes per header.
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
//! Deliberately absent: validation. Headers must follow their rules, and the bytes of a block must
//! match the commitments of its header; no other rule is checked. `assay_engine` finds the blocks,
//! for validation and for this crate.

mod block_set;
mod counts;
mod kind;
mod ranges;
mod read;
mod rows;
mod whole;

pub use assay_engine::InvalidBlock;
pub use block_set::{BlockSet, Heights, OpenError, ReadError, detect_chain};
pub use counts::{Counts, TypeCount};
pub use kind::OutputKind;
pub use ranges::{RangeRow, Ranges};
pub use read::{Item, ReadOptions, read};
pub use rows::{BlockRow, TxRow};
pub use whole::{NotWhole, listing_sha256};
