//! Rules that need a chain, tested with hand-built blocks.

mod bip54;
mod chain;
mod order;
mod overwrites;
mod own_coins;
