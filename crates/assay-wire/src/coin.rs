//! An unspent output with what the rules need to know of its origin.

use crate::script::Script;
use crate::transaction::TxOut;

/// An unspent output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Coin {
    /// Satoshi.
    pub value: i64,
    /// Height of the block that created it.
    pub height: u32,
    /// Whether a coinbase created it, so that it must mature.
    pub coinbase: bool,
    /// The script that locks it.
    pub script_pubkey: Script,
}

impl Coin {
    /// The output alone.
    #[inline]
    pub fn as_tx_out(&self) -> TxOut<'_> {
        TxOut { value: self.value, script_pubkey: &self.script_pubkey }
    }
}
