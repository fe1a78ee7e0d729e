//! Measures the fastest backend of this machine.
//!
//! CPU features do not determine it: some cores split wide vectors, and some hosts lower the clock for them, which slows code
//! without vectors too. A round is therefore a batch of signatures as in real use, scalar work included, followed by a few
//! signatures by libsecp256k1. It runs on as many threads at once as later use will.

use std::hint::black_box;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use secp256k1::{Message, PublicKey, SecretKey, ecdsa};

use crate::{Backend, BatchVerifier, Check};

/// Signatures per batch.
const BATCH: usize = 64;

/// Signatures verified by libsecp256k1 after a batch.
const AFTERWARDS: usize = 4;

/// Minimum time per backend, so that a lower clock takes effect.
const TIME_PER_BACKEND: Duration = Duration::from_millis(2);

/// Minimum rounds per backend; the first is discarded.
const ROUNDS_MIN: usize = 4;

/// Verification time with a backend.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Speed {
    /// The backend.
    pub backend: Backend,
    /// Time of one ECDSA verification in a batch of 64 with distinct keys, parsing included, in nanoseconds: the minimum over
    /// rounds, and the median over all threads.
    pub ns_per_signature: f64,
    /// Time of a whole round, with libsecp256k1's verifications after the batch: the criterion of the comparison.
    round_ns: f64,
}

impl Backend {
    /// Times every backend of this CPU, except those in portable Rust, on `threads` threads at once, and sorts them by speed.
    /// Takes some 5 milliseconds per backend, plus as much for preparation.
    pub fn measure(threads: usize) -> Vec<Speed> {
        let signatures: Vec<Signature> = (0..BATCH as u8).filter_map(Signature::new).collect();
        let checks: Vec<Check<'_>> = signatures.iter().map(Signature::check).collect();
        let candidates = Self::all().filter(|backend| {
            backend.available() && !matches!(backend, Self::Portable | Self::PortableRounded)
        });
        let mut speeds: Vec<Speed> =
            candidates.map(|backend| time_on_threads(backend, &checks, threads)).collect();
        speeds.sort_by(|a, b| a.round_ns.total_cmp(&b.round_ns));
        speeds
    }

    /// The fastest backend of this machine that passes its self-test, measured by [`Backend::measure`] on all cores on first use
    /// in a process.
    pub fn fastest() -> Self {
        static FASTEST: OnceLock<Backend> = OnceLock::new();
        *FASTEST.get_or_init(|| {
            let threads = std::thread::available_parallelism().map_or(1, usize::from);
            let speeds = Self::measure(threads);
            let found = speeds.iter().map(|speed| speed.backend).find(|one| one.passes_self_test());
            found.unwrap_or(Self::Libsecp)
        })
    }
}

/// The medians of the threads.
fn time_on_threads(backend: Backend, checks: &[Check<'_>], threads: usize) -> Speed {
    let run = || time(BatchVerifier::without_self_test(backend), checks);
    let mut times: Vec<Round> = std::thread::scope(|scope| {
        // If the system rejects a thread, fewer suffice.
        let others: Vec<_> = (1..threads)
            .filter_map(|_| std::thread::Builder::new().spawn_scoped(scope, run).ok())
            .collect();
        let own = run();
        let others = others.into_iter().filter_map(|handle| handle.join().ok());
        others.chain([own]).collect()
    });
    let Round { batch_ns, total_ns } = median(&mut times);
    let ns_per_signature = batch_ns / checks.len() as f64;
    Speed { backend, ns_per_signature, round_ns: total_ns }
}

/// Times of a round, nanoseconds.
#[derive(Clone, Copy)]
struct Round {
    batch_ns: f64,
    total_ns: f64,
}

/// The fastest round of one thread: interference only lengthens rounds, and must not affect the choice.
fn time(mut verifier: BatchVerifier, checks: &[Check<'_>]) -> Round {
    let (mut rounds, mut answers) = (Vec::new(), Vec::new());
    let begin = Instant::now();
    while rounds.len() < ROUNDS_MIN || begin.elapsed() < TIME_PER_BACKEND {
        let start = Instant::now();
        verifier.verify(checks, &mut answers);
        let batch = start.elapsed();
        for check in checks.iter().take(AFTERWARDS) {
            black_box(check.verify());
        }
        let ns = |duration: Duration| duration.as_secs_f64() * 1e9;
        rounds.push(Round { batch_ns: ns(batch), total_ns: ns(start.elapsed()) });
    }
    // The first round includes cold caches and clock changes.
    let by_total = |a: &&Round, b: &&Round| a.total_ns.total_cmp(&b.total_ns);
    rounds[1..].iter().min_by(by_total).copied().unwrap_or(rounds[0])
}

/// The median round by total time, of one or more.
fn median(rounds: &mut [Round]) -> Round {
    rounds.sort_by(|a, b| a.total_ns.total_cmp(&b.total_ns));
    rounds[rounds.len() / 2]
}

/// Operands of a valid check.
pub(crate) struct Signature {
    pubkey: [u8; 33],
    der_sig: Vec<u8>,
    pub(crate) msg: [u8; 32],
}

impl Signature {
    pub(crate) fn new(number: u8) -> Option<Self> {
        let secret = SecretKey::from_secret_bytes(assay_hash::sha256(&[number, 1])).ok()?;
        let msg = assay_hash::sha256(&[number, 2]);
        let der_sig = ecdsa::sign(Message::from_digest(msg), &secret).serialize_der().to_vec();
        Some(Self { pubkey: PublicKey::from_secret_key(&secret).serialize(), der_sig, msg })
    }

    pub(crate) fn check(&self) -> Check<'_> {
        Check::Ecdsa { pubkey: &self.pubkey, der_sig: &self.der_sig, msg: &self.msg }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fastest_backend_is_available() {
        let speeds = Backend::measure(2);
        assert!(speeds.iter().all(|speed| speed.backend.available()));
        assert!(speeds.iter().any(|speed| speed.backend == Backend::Libsecp));
        assert!(speeds.is_sorted_by(|a, b| a.round_ns <= b.round_ns));
        for speed in &speeds {
            println!("{}: {:.0} ns", speed.backend.name(), speed.ns_per_signature);
            assert!(speed.ns_per_signature.is_finite() && speed.ns_per_signature > 0.0);
        }
        assert!(Backend::fastest().available() && Backend::fastest().passes_self_test());
    }
}
