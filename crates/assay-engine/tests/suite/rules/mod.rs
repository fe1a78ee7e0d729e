//! Rules that need a chain: what the engine makes of blocks built by hand, coinbase by coinbase.

mod bip54;
mod chain;
mod order;
mod overwrites;
mod own_coins;
