//! The engine on forged chains: complete syncs, pre-relayed transactions, restarts, kills, reorgs, bad blocks.
//!
//! A forged chain is a differential test: libsecp256k1 signed it over hashes that the forge computed itself, and the forge kept
//! its own UTXO set, whose hash the engine must reach.

mod bad_blocks;
pub(crate) mod chain;
mod control;
mod deep_reorg;
mod defect;
mod fixture;
mod follow;
mod mempool;
mod mempool_file;
mod mempool_hostile;
mod mempool_limits;
mod mempool_reorg;
pub(crate) mod mint;
mod packages;
mod reorg;
mod snapshot;
mod sync;
mod trials;
