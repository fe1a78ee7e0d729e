//! What a forge reports when it is done.

use crate::{
    ledger::{Ledger, Phase},
    reference_rate::Rates,
};

/// What was forged, and how fast.
#[derive(Clone, Debug)]
pub struct Summary {
    /// The ledger as written.
    pub ledger: Ledger,
    /// Threads that worked.
    pub threads: usize,
    /// Signatures made.
    pub signatures: u64,
    /// Those of them that are Schnorr signatures.
    pub schnorr_signatures: u64,
    /// Wall time of making blocks: planning, deriving keys, signing, ordering, writing. Only hashing the final UTXO set is left out.
    pub making_seconds: f64,
    /// Part of it in which signatures were made (with the hashes they cover).
    pub signing_seconds: f64,
    /// Wall time of hashing the final UTXO set.
    pub utxo_seconds: f64,
    /// Wall time of everything.
    pub wall_seconds: f64,
    /// Wall time and signatures of each phase.
    pub phases: Vec<PhaseTime>,
}

impl Summary {
    /// Signatures per second over the whole making of blocks.
    pub fn signatures_per_second(&self) -> f64 {
        self.signatures as f64 / self.making_seconds.max(f64::MIN_POSITIVE)
    }

    /// The time that libsecp256k1 alone would take for these signatures on all threads, at the given rates of one thread
    /// ([`reference_rate::sign_rate`](crate::reference_rate::sign_rate)), over the time of making the blocks. 1 is perfect.
    pub fn efficiency(&self, one_thread: &Rates) -> f64 {
        let ecdsa = (self.signatures - self.schnorr_signatures) as f64 / one_thread.ecdsa_per_s;
        let schnorr = self.schnorr_signatures as f64 / one_thread.schnorr_per_s;
        (ecdsa + schnorr) / self.threads as f64 / self.making_seconds.max(f64::MIN_POSITIVE)
    }
}

/// The cost of one phase.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PhaseTime {
    /// Which.
    pub phase: Phase,
    /// Its blocks.
    pub blocks: u32,
    /// Its signatures.
    pub signatures: u64,
    /// Its wall time.
    pub seconds: f64,
}
