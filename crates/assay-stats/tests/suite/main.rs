//! Counts, files and answers against the ledgers of forged chains.

mod damage;
mod ledger;
mod support;
mod tables;
