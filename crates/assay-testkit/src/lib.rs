//! Test helpers: transactions and blocks, seeded choices, hex text, the test data folder.
//!
//! Only a dev-dependency of other crates: `cargo xtask tidy` checks it. Everything panics on unexpected input, because that input
//! is part of a test.
//!
//! ```
//! use assay_testkit::chain::{TxBuilder, coinbase};
//! let paid = coinbase(200, 5_000_000_000).build();
//! let spent = TxBuilder::new(2).spend(assay_wire::OutPoint { txid: paid.view().txid(), vout: 0 }, &[], u32::MAX);
//! assert_eq!(spent.output(1_000, &[0x51]).build().view().output(0).value, 1_000);
//! ```
//!
//! Deliberately absent: consensus rules. `assay-hash` and `assay-secp` do not use this crate, so that their packages with their
//! tests are self-contained.

pub mod chain;
pub mod data;
pub mod hex;
pub mod random;
