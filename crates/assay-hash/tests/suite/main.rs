//! Published vectors, every backend against the portable one, and slow oracles.

mod backends;
mod hex;
mod merkle;
mod muhash;
mod siphash;
mod vectors;
