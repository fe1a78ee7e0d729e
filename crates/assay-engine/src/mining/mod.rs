//! Block templates: selection of unconfirmed transactions, coinbase and header.
//!
//! Blocks equal those of Bitcoin Core byte for byte (`node/miner.cpp`), so that chains can be compared by their hashes.

mod assemble;
mod coinbase;
mod template;

use std::sync::Arc;

use assay_wire::Transaction;

pub(crate) use assemble::{Assembled, assemble};
pub use template::{BlockTemplate, TemplateTx};

#[derive(Clone, Debug)]
pub struct TemplateOptions {
    /// Output script of the coinbase.
    pub coinbase_script: Vec<u8>,
    pub selection: Selection,
}

#[derive(Clone, Debug)]
pub enum Selection {
    /// The best-paying transactions of the mempool.
    Mempool,
    /// These in this order, regardless of fees; the coinbase does not collect their fees.
    These(Vec<Arc<Transaction>>),
}

/// Figures of the last template.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LastTemplate {
    /// Weight, including the reserved weight of header and coinbase.
    pub weight: u64,
    /// Number of transactions, without the coinbase.
    pub txs: usize,
}
