//! Amounts and sizes that are the same in every forged chain.

/// Below this an output of any standard script may be dust (3 sat per byte on P2PKH, the dearest).
pub(crate) const DUST: u64 = 546;
/// What the published split leaves for its fee, for each output.
pub(crate) const SPLIT_FEE: u64 = 250;
/// What a short chain leaves in its last change: enough for a later phase to split a few times.
pub(crate) const CHAIN_REST: u64 = 20_000;
/// Upper bound for header, transaction count and coinbase.
pub(crate) const BLOCK_OVERHEAD_WEIGHT: u64 = 4 * (80 + 9 + 200);
