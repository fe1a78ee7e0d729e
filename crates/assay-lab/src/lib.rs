//! Runs plans: starts targets, samples, compares, plots, reports.
//!
//! A *plan* is a small TOML file that selects the chain to forge, the pre-relayed share of each block, and the nodes to measure.
//! The laboratory forges the chain (with a given command), starts every target as a process of its own, feeds it over JSON-RPC or
//! P2P, timestamps events on one monotonic clock, samples the process from outside, compares the end state with the ledger of the
//! chain, and writes the report.
//!
//! ```
//! let plan = assay_lab::plan::Plan::builtin("bch-scaling")?;
//! assert_eq!(plan.feed.seen, [0.0, 0.9]);
//! # Ok::<(), assay_lab::plan::PlanError>(())
//! ```
//!
//! Deliberately absent: everything that is timed. This crate links no code of the engine, the node or the forge; it only uses
//! their command lines, as with any other node. It shares encodings (`assay-wire`) and the format of the ledger ([`chain`]).

pub mod admission;
pub mod builds;
pub mod chain;
pub mod companion;
pub mod compare;
pub mod crash;
pub mod electrum;
pub mod emit;
mod feed;
mod forge;
pub mod history;
pub mod hostile;
pub mod load;
pub mod logs;
pub mod machine;
pub mod mixed;
pub mod network;
pub mod outside;
pub mod p2p;
pub mod peers;
pub mod plan;
pub mod process;
pub mod progress;
pub mod reference;
pub mod report;
pub mod results;
pub mod run;
pub mod survey;
mod swarm;
pub mod sync;
pub mod target;
pub mod wallet;
