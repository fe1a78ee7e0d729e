//! Block templates: which unconfirmed transactions the next block should hold, and the coinbase and header that go with them.
//!
//! Blocks equal those of Bitcoin Core byte for byte (`node/miner.cpp`), so that whoever compares chains by their hashes finds
//! the same ones.

mod assemble;
mod coinbase;
mod template;

use std::sync::Arc;

use assay_wire::Transaction;

pub(crate) use assemble::{Assembled, assemble};
pub use template::{BlockTemplate, TemplateTx};

/// How templates are made, as the node's owner wants it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MiningConfig {
    /// Least fee rate of a chunk that goes into a template, satoshi per 1,000 virtual bytes (Core's `-blockmintxfee`).
    pub min_fee_sat_per_kvb: u64,
    /// Weight of a template, at most (`-blockmaxweight`).
    pub weight_max: u64,
    /// Weight kept free for header, count and coinbase (`-blockreservedweight`).
    pub reserved_weight: u64,
    /// The version of blocks in place of the one that signals ask for (`-blockversion`).
    pub version: Option<i32>,
    /// Whether the fee rate of each transaction that goes into a template is logged (`-printpriority`).
    pub print_fee_rates: bool,
}

impl MiningConfig {
    /// Core's defaults for a chain whose blocks weigh at most this.
    pub const fn new(weight_max: u64) -> Self {
        Self {
            min_fee_sat_per_kvb: 1,
            weight_max,
            reserved_weight: RESERVED_WEIGHT,
            version: None,
            print_fee_rates: false,
        }
    }
}

/// What a template is asked for.
#[derive(Clone, Debug)]
pub struct TemplateOptions {
    /// Whom the coinbase pays.
    pub coinbase_script: Vec<u8>,
    /// What the block holds.
    pub selection: Selection,
}

/// Which transactions a template holds.
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

/// Core's `DEFAULT_BLOCK_RESERVED_WEIGHT` (`policy/policy.h`).
const RESERVED_WEIGHT: u64 = 8000;
