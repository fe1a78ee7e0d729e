//! Counts against the ledgers of forged chains.

mod damage;
mod ledger;
mod support;
