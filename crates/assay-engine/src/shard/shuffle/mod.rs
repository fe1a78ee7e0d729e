//! The coins that blocks spend, found by sorting on disk, for a chain that nobody has validated in order: a shuffle.
//!
//! 1. [`prepare_shuffle`] finds the chain and cuts it into ranges of blocks.
//! 2. [`scatter_range`] reads the blocks of a range. What is created and spent within it is matched in memory; every other
//!    output and every other input goes to a partition, by the hash of its outpoint.
//! 3. [`join_partition`] matches the inputs of a partition with its outputs. What nobody spends is left over.
//! 4. [`gather_range`] merges the coins of a range in the order of its inputs into a file of spent coins, [`gather_left`] those
//!    left over into a snapshot: the files that `validate --write-spent` writes, and no more trusted than those.
//!
//! Every step stays within a memory limit whatever the blocks hold: what does not fit is written earlier, or read in several
//! passes. Every file is renamed when it is whole, so whatever is there is done. Layout: `docs/formats.md`.

mod gather;
mod join;
mod memory;
mod plan;
mod records;
mod scatter;
mod window;

pub use gather::{gather_left, gather_range, has_gathered_left, has_gathered_range};
pub use join::{Joined, MissingCoin, join_partition};
pub use memory::{least_memory_bytes, unit_memory_bytes};
pub use plan::{BlockRange, Shuffle, ShuffleConfig, prepare_shuffle};
pub use scatter::{Scattered, scatter_range};
