//! Generates deterministic chains from a recipe and a seed.
//!
//! A recipe describes the contents of a chain. The forge writes the chain as a node would accept it: real signatures, valid
//! blocks, trivial proof of work. The same recipe, seed and scale yield the same bytes on any machine and for any number of
//! threads.
//!
//! ```
//! use assay_forge::{ForgeOptions, Recipe, forge};
//! let recipe = Recipe::builtin("bch-scaling")?;
//! let options = ForgeOptions { scale: 0.0001, stop_height: Some(101), ..ForgeOptions::default() };
//! let dir = tempfile::tempdir()?;
//! let summary = forge(&recipe, &options, dir.path(), &mut ())?;
//! assert_eq!(summary.ledger.tip.height, 101);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! A chain directory contains `blocks/blk*.dat` in Bitcoin Core's framing, `order/<height>.bin` with the transactions of each
//! block in generation order (parents before children), and `ledger.jsonl` with exact counts ([`Ledger`]).
//!
//! libsecp256k1 makes the signatures over hashes computed here. The hashing code is independent of the interpreter that verifies
//! them, so each chain is also a differential test. Deliberately absent: validation and networking.

mod block;
mod coins;
mod forge;
mod forge_state;
mod history;
mod keys;
mod kind;
mod lock;
mod network;
mod options;
mod output;
mod outputs;
mod phases;
mod plan;
mod random;
mod raw;
mod recipe;
pub mod reference_rate;
mod scaling;
pub mod scripts;
mod shape;
mod sighash;
mod sign;
mod signing_threads;
mod summary;
mod utxo;
mod widths;

pub use assay_ledger::{
    self as ledger, Age, BlockLine, ChainLine, FilesLine, Ledger, LedgerError, Phase, RangeLine,
    Series, SpendOrder, TipLine,
};
pub use forge::{estimate, forge};
pub use network::Network;
pub use options::{ForgeOptions, OptionsError, Variant};
pub use output::OutputError;
pub use recipe::{Recipe, RecipeError};
pub use summary::{Estimate, ForgeError, PhaseTime, Progress, Summary};
