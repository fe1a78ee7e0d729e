//! Amounts and sizes common to all forged chains.

/// Below this an output of any standard script may be dust (3 sat per byte on P2PKH, the most expensive).
pub(crate) const DUST: u64 = 546;
/// Fee per output of the published split.
pub(crate) const SPLIT_FEE: u64 = 250;
/// Amount left in the last change of a short chain: enough for a later phase to split a few times.
pub(crate) const CHAIN_REST: u64 = 20_000;
/// Upper bound of the weight of header, transaction count and coinbase.
pub(crate) const BLOCK_OVERHEAD_WEIGHT: u64 = 4 * (80 + 9 + 200);
