//! Expected responses of a server, derived from the chain.

/// Source of the scripts of a chain. The laboratory links no chain code, so the forge provides them.
pub trait Expected {
    /// All scripts in a reproducible order. Iterated twice: to choose, then to keep.
    fn scripts(&self) -> Box<dyn Iterator<Item = ExpectedScript> + '_>;
}

/// Expected state of one script.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ExpectedScript {
    /// SHA-256 of the script, unreversed; the protocol prints it reversed.
    pub hash: [u8; 32],
    /// Transactions that pay to it or spend from it, each once, in chain order.
    pub history: Vec<ExpectedTx>,
    /// Outputs that paid to it, in any order.
    pub coins: Vec<ExpectedCoin>,
}

/// A confirmed transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct ExpectedTx {
    pub height: u32,
    /// Txid in internal byte order.
    pub txid: [u8; 32],
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ExpectedCoin {
    /// Creating transaction.
    pub tx: ExpectedTx,
    /// Output index.
    pub vout: u32,
    /// Amount in satoshi.
    pub value: u64,
    /// Height of the spending block.
    pub spent: Option<u32>,
}
