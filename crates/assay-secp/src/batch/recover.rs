//! Public key recovery (SEC 1, 4.1.6), single and in batches.
//!
//! `Q = (s / r) R - (m / r) G`, where r is the x coordinate of R. As in verification a lane is either correct or has no result
//! (`docs/kernels/secp-lanes.md`); recoveries without a result are repeated in words.

use super::Backend;
use super::prepare::Job;
use super::prover::{Octets, divide_by_s};
use super::table::generator_multiples;
use crate::backend::Kernels;
use crate::lanes::group::{Key, Question};
use crate::scalar::Scalar;
use crate::words;

/// Signatures per round, which share inversions.
const AT_ONCE: usize = 1024;

/// An ECDSA signature for key recovery.
///
/// x of R is r itself, never r plus the group order; a high s is used unchanged.
#[derive(Clone, Copy, Debug)]
pub struct Signed<'a> {
    /// The signed hash, big-endian.
    pub msg: &'a [u8; 32],
    /// Big-endian, from 1 to the group order minus 1.
    pub r: &'a [u8; 32],
    /// Big-endian, from 1 to the group order minus 1.
    pub s: &'a [u8; 32],
    /// True if the y coordinate of R is odd.
    pub is_y_odd: bool,
}

impl Signed<'_> {
    /// The coordinates of the key. `None` if r or s is zero or not below the group order, if no point has the x coordinate r, or
    /// if the key would be infinity.
    pub fn recover(&self) -> Option<[u8; 64]> {
        let Job { key, r: s, u1, u2: r, .. } = self.job(0)?;
        let inverse = words::inverse(r);
        let (u1, u2) = (u1.mul(inverse), Scalar(s).mul(inverse));
        let table = generator_multiples();
        assert!(!table.is_empty(), "libsecp256k1 makes multiples of the generator");
        words::combine(&key.x, key.is_odd, u1, u2, table).map(to_bytes)
    }

    /// Before the division by r, which is stored in u2; s is stored in r. `None` if there is no key.
    fn job(&self, index: usize) -> Option<Job> {
        let [r, s] = [self.r, self.s].map(Scalar::from_bytes);
        let (r, s) = (r.filter(|r| !r.is_zero())?, s.filter(|s| !s.is_zero())?);
        // The order is below the prime, so r is a coordinate.
        let key = Key { x: r.0, is_odd: self.is_y_odd };
        let u1 = Scalar::reduced(self.msg).negate();
        Some(Job { index, key, r: s.0, is_r_odd: false, u1, u2: r })
    }
}

/// Recovers keys in batches; reuses its memory between batches.
#[derive(Debug)]
pub struct Recoverer {
    kernels: Option<Kernels>,
    jobs: Vec<Job>,
    prefixes: Vec<Scalar>,
    octets: Octets,
}

impl Recoverer {
    /// A recoverer with the fastest backend ([`Backend::fastest`]).
    pub fn new() -> Self {
        Self::with_backend(Backend::fastest())
    }

    /// A recoverer with this backend, or none if the CPU cannot run it or its self-test fails.
    pub fn with_backend(backend: Backend) -> Self {
        let kernels = backend.kernels().filter(|_| backend.passes_self_test());
        Self { kernels, jobs: Vec::new(), prefixes: Vec::new(), octets: Octets::default() }
    }

    /// Replaces the contents of `out` by the result of [`Signed::recover`] for each.
    pub fn recover(&mut self, signed: &[Signed<'_>], out: &mut Vec<Option<[u8; 64]>>) {
        out.clear();
        out.resize(signed.len(), None);
        if let Some(kernels) = self.kernels {
            for (number, chunk) in signed.chunks(AT_ONCE).enumerate() {
                let first = number * AT_ONCE;
                self.jobs.clear();
                self.jobs.extend(chunk.iter().zip(first..).filter_map(|(one, at)| one.job(at)));
                self.in_lanes(&kernels, out);
            }
        }
        for (signed, key) in signed.iter().zip(out) {
            *key = key.or_else(|| signed.recover());
        }
    }

    /// Processes the jobs, except those without a result in lanes.
    fn in_lanes(&mut self, kernels: &Kernels, out: &mut [Option<[u8; 64]>]) {
        let table = generator_multiples();
        if table.is_empty() {
            return;
        }
        divide_by_s(&mut self.jobs, &mut self.prefixes);
        let answered = self.octets.answer(kernels, Question::Recover, &self.jobs, table);
        for (job, group, lane) in answered {
            if group.proven >> lane & 1 == 1 {
                out[job.index] = Some(to_bytes(group.sum(lane)));
            }
        }
    }
}

/// Both coordinates, big-endian.
fn to_bytes(coordinates: [[u64; 4]; 2]) -> [u8; 64] {
    let mut bytes = [0; 64];
    for (half, words) in bytes.as_chunks_mut::<32>().0.iter_mut().zip(coordinates) {
        *half = Scalar(words).to_bytes();
    }
    bytes
}

impl Default for Recoverer {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests;
