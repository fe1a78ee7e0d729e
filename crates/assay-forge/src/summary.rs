//! Result of a forge.

use crate::{
    ledger::{Ledger, Phase},
    reference_rate::Rates,
};

#[derive(Clone, Debug)]
pub struct Summary {
    /// The written ledger.
    pub ledger: Ledger,
    pub threads: usize,
    pub signatures: u64,
    /// Schnorr signatures among them.
    pub schnorr_signatures: u64,
    /// Wall time of making blocks: planning, key derivation, signing, ordering, writing. Excludes hashing the final UTXO set.
    pub making_seconds: f64,
    /// Part of it spent on signing, including signature hashes.
    pub signing_seconds: f64,
    pub utxo_seconds: f64,
    /// Total wall time.
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
