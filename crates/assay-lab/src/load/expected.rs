//! What a server ought to answer, as far as somebody who knows the chain tells it.

/// Knows the scripts of a chain. The laboratory links no chain code of ours: whoever forged the chain answers.
pub trait Expected {
    /// The scripts, in an order that is the same each time. They are asked for twice: once to choose, once to keep.
    fn scripts(&self) -> Box<dyn Iterator<Item = ExpectedScript> + '_>;
}

/// All that happened to one script.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ExpectedScript {
    /// SHA-256 of the script, as the hash function gives it; the protocol prints it reversed.
    pub hash: [u8; 32],
    /// Transactions that pay to it or spend from it, each once, in the order of the chain.
    pub history: Vec<ExpectedTx>,
    /// Outputs that paid to it, in any order.
    pub coins: Vec<ExpectedCoin>,
}

/// A confirmed transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct ExpectedTx {
    pub height: u32,
    /// The transaction, internal byte order.
    pub txid: [u8; 32],
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ExpectedCoin {
    /// The transaction that made it.
    pub tx: ExpectedTx,
    /// Which of its outputs.
    pub vout: u32,
    /// Satoshi.
    pub value: u64,
    /// Height of the block that spends it.
    pub spent: Option<u32>,
}
