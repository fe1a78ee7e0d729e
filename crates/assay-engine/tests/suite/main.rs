//! Integration tests of the engine in one program, so that linking is paid for once.

mod faults;
mod forged;
mod real_blocks;
mod rules;
mod shard;
mod validate;
