//! Integration tests: transactions, blocks and messages.

mod addresses;
mod filter;
mod p2p;
mod parse;
