//! How a caller follows a forge that may run for minutes.

use crate::ledger::{BlockLine, Phase};

/// What a forge will make, roughly: for progress bars and for checking free space.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Estimate {
    /// Blocks, exact.
    pub blocks: u32,
    /// Signatures, within a few per cent (more where blocks hold only a few transactions).
    pub signatures: u64,
    /// Bytes of the block files, likewise.
    pub bytes: u64,
}

/// Receives events from [`forge`](crate::forge). Every method has an empty default.
pub trait Progress {
    /// The work is about to begin.
    fn start(&mut self, _estimate: &Estimate) {}
    /// A phase begins, with this many blocks.
    fn phase(&mut self, _phase: Phase, _blocks: u32) {}
    /// So many more signatures were made.
    fn signed(&mut self, _signatures: u64) {}
    /// A block was written.
    fn block(&mut self, _line: &BlockLine) {}
    /// The final UTXO set is being hashed: coins done, of how many.
    fn utxo(&mut self, _done: u64, _total: u64) {}
}

/// No progress is shown.
impl Progress for () {}
