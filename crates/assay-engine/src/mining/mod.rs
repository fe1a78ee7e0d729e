//! Block templates: which unconfirmed transactions the next block should hold, and the coinbase and header that go with them.
//!
//! Blocks equal those of Bitcoin Core byte for byte (`node/miner.cpp`), so that a comparison of chains by their hashes finds
//! the same ones.

mod assemble;
mod coinbase;
mod template;

use std::sync::Arc;

use assay_wire::Transaction;

pub(crate) use assemble::{Assembled, assemble};
pub use template::{BlockTemplate, TemplateTx};

#[derive(Clone, Debug)]
pub struct TemplateOptions {
    /// Whom the coinbase pays.
    pub coinbase_script: Vec<u8>,
    pub selection: Selection,
}

#[derive(Clone, Debug)]
pub enum Selection {
    /// What pays most of the mempool.
    Mempool,
    /// These in this order, whatever they pay; the coinbase does not collect their fees.
    These(Vec<Arc<Transaction>>),
}

/// Figures of the template that was made last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LastTemplate {
    /// Weight, with what is reserved for header and coinbase.
    pub weight: u64,
    /// Transactions, without the coinbase.
    pub txs: usize,
}
