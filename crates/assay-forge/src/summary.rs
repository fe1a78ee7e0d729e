//! Progress, result and errors of a forge, which may run for minutes.

use thiserror::Error;

use crate::{
    ledger::{BlockLine, Ledger, Phase},
    options::OptionsError,
    output::OutputError,
    reference_rate::Rates,
};

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
    fn start(&mut self, _estimate: &Estimate) {}
    fn phase(&mut self, _phase: Phase, _blocks: u32) {}
    fn signed(&mut self, _signatures: u64) {}
    fn block(&mut self, _line: &BlockLine) {}
    /// Progress of hashing the final UTXO set, in coins.
    fn utxo(&mut self, _done: u64, _total: u64) {}
}

impl Progress for () {}

#[derive(Clone, Debug)]
pub struct Summary {
    pub ledger: Ledger,
    pub threads: usize,
    pub signatures: u64,
    pub schnorr_signatures: u64,
    /// Wall time of making blocks: planning, key derivation, signing, ordering, writing. Excludes hashing the final UTXO set.
    pub making_seconds: f64,
    /// Part of it spent on signing, including signature hashes.
    pub signing_seconds: f64,
    pub utxo_seconds: f64,
    pub wall_seconds: f64,
    pub phases: Vec<PhaseTime>,
}

impl Summary {
    /// Signatures per second over the whole making of blocks.
    pub fn signatures_per_second(&self) -> f64 {
        self.signatures as f64 / self.making_seconds.max(f64::MIN_POSITIVE)
    }

    /// Time that libsecp256k1 alone would need for these signatures on all threads, at the given single-thread rates
    /// ([`reference_rate::sign_rate`](crate::reference_rate::sign_rate)), divided by the time of making the blocks. The ideal is
    /// 1.
    pub fn efficiency(&self, one_thread: &Rates) -> f64 {
        let ecdsa = (self.signatures - self.schnorr_signatures) as f64 / one_thread.ecdsa_per_s;
        let schnorr = self.schnorr_signatures as f64 / one_thread.schnorr_per_s;
        (ecdsa + schnorr) / self.threads as f64 / self.making_seconds.max(f64::MIN_POSITIVE)
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PhaseTime {
    pub phase: Phase,
    pub blocks: u32,
    pub signatures: u64,
    /// Wall time.
    pub seconds: f64,
}

#[derive(Debug, Error)]
pub enum ForgeError {
    #[error(transparent)]
    Options(#[from] OptionsError),
    #[error(transparent)]
    Output(#[from] OutputError),
    #[error("cannot start {threads} threads")]
    Threads { threads: usize, source: rayon::ThreadPoolBuildError },
}
