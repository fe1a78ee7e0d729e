//! The engine from outside, in one program: linking and the libraries below are paid for once.

mod faults;
mod forged;
mod real_blocks;
mod rules;
mod shard;
mod validate;
