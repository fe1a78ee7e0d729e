//! What only tests need: transactions and blocks, seeded choices, hexadecimal text, the test data folder.
//!
//! A dev-dependency of other crates and never more: `cargo xtask tidy` checks it. Everything panics on input that is not
//! as it should be, because that input is part of a test.
//!
//! ```
//! use assay_testkit::chain::{TxBuilder, coinbase};
//! let paid = coinbase(200, 5_000_000_000).build();
//! let spent = TxBuilder::new(2).spend(assay_wire::OutPoint { txid: paid.view().txid(), vout: 0 }, &[], u32::MAX);
//! assert_eq!(spent.output(1_000, &[0x51]).build().view().output(0).value, 1_000);
//! ```
//!
//! Deliberately absent: anything that knows the rules. `assay-hash` and `assay-secp` do not use it: their packages carry
//! their tests and stand alone.

pub mod chain;
pub mod data;
pub mod hex;
pub mod random;
