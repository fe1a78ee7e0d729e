//! An unspent output with the data that consensus rules need.

use crate::script::Script;
use crate::transaction::TxOut;

/// An unspent output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Coin {
    /// In satoshi.
    pub value: i64,
    /// Height of the block that created it.
    pub height: u32,
    /// True for a coinbase output, which must mature.
    pub coinbase: bool,
    /// The locking script.
    pub script_pubkey: Script,
}

impl Coin {
    /// The output without its origin.
    #[inline]
    pub fn as_tx_out(&self) -> TxOut<'_> {
        TxOut { value: self.value, script_pubkey: &self.script_pubkey }
    }
}
