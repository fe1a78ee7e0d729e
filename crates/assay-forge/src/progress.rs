//! Progress reporting for a forge that may run for minutes.

use crate::ledger::{BlockLine, Phase};

/// Approximate size of a chain: for progress bars and free-space checks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Estimate {
    /// Number of blocks, exact.
    pub blocks: u32,
    /// Number of signatures, within a few per cent (more if blocks hold only a few transactions).
    pub signatures: u64,
    /// Size of the block files, likewise.
    pub bytes: u64,
}

/// Receives events from [`forge`](crate::forge). Every method is empty by default.
pub trait Progress {
    /// The forge starts.
    fn start(&mut self, _estimate: &Estimate) {}
    /// A phase with this many blocks starts.
    fn phase(&mut self, _phase: Phase, _blocks: u32) {}
    /// More signatures were made.
    fn signed(&mut self, _signatures: u64) {}
    /// A block was written.
    fn block(&mut self, _line: &BlockLine) {}
    /// Progress of hashing the final UTXO set, in coins.
    fn utxo(&mut self, _done: u64, _total: u64) {}
}

/// Ignores all events.
impl Progress for () {}
