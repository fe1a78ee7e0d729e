//! Transactions, blocks and messages of peers from outside.

mod addresses;
mod filter;
mod p2p;
mod parse;
