//! End-to-end tests of the commands.

mod block_files;
mod builds;
mod chain;
mod cli;
mod emit;
mod from_snapshot;
mod index;
mod mempool;
mod network;
mod panics;
mod publish;
mod resume;
mod shard;
mod signals;
mod top;
mod validate;
mod wallet;
