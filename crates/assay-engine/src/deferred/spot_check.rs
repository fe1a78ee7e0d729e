//! Spot checks and self-tests of the vector code (`docs/deferred-signatures.md`).
//!
//! - libsecp256k1 verifies a secret random sample of the proven checks again ([`assay_secp::Sample`]).
//! - The self-test of the vector code runs on every core that proves, at its first use and every few minutes.
//!
//! A difference ends the process ([`stop_with_evidence`]).

use std::cell::Cell;
use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use assay_secp::{BatchVerifier, Sample};

use super::mismatch_report::{Evidence, stop_with_evidence};

/// Maximum time between two self-tests on a core that proves.
const SELF_TEST_INTERVAL: Duration = Duration::from_mins(5);

/// A sample of one in `one_of` checks, for a new prover.
pub(super) fn sample(one_of: u32) -> Option<Sample> {
    Sample::new(one_of, next_key())
}

/// A random key per prover, from the randomness of the operating system.
fn next_key() -> [u64; 2] {
    /// SipHash with a key that the standard library reads from the operating system.
    static SECRET: LazyLock<RandomState> = LazyLock::new(RandomState::new);
    static SAMPLES: AtomicU64 = AtomicU64::new(0);
    let number = SAMPLES.fetch_add(1, Ordering::Relaxed);
    [(number, 0), (number, 1)].map(|input| SECRET.hash_one(input))
}

/// The core of this thread, if the system reports it.
#[cfg_attr(target_os = "linux", expect(clippy::unnecessary_wraps, reason = "others have none"))]
pub(super) fn current_core() -> Option<usize> {
    #[cfg(target_os = "linux")]
    return Some(rustix::thread::sched_getcpu());
    #[cfg(not(target_os = "linux"))]
    None
}

/// Cores above this number share the slots of lower ones.
const CORES: usize = 1024;

/// Runs the self-test of a backend if it is due on this core, or on this thread if cores have no number.
pub(super) fn test_this_core(verifier: &BatchVerifier) {
    /// Per core, milliseconds from the first call to the last passed test, plus one; 0 for never.
    static PASSED_MS: [AtomicU64; CORES] = [const { AtomicU64::new(0) }; CORES];
    static START: LazyLock<Instant> = LazyLock::new(Instant::now);
    thread_local! {
        static THREAD_PASSED_MS: Cell<u64> = const { Cell::new(0) };
    }
    let now_ms = 1 + START.elapsed().as_millis() as u64;
    let core = current_core();
    let last_ms = match core {
        Some(core) => PASSED_MS[core % CORES].load(Ordering::Relaxed),
        None => THREAD_PASSED_MS.get(),
    };
    if last_ms > 0 && now_ms - last_ms.min(now_ms) < SELF_TEST_INTERVAL.as_millis() as u64 {
        return;
    }
    if !passes(verifier) {
        stop_with_evidence(&Evidence::self_test(verifier.backend(), core));
    }
    // The scheduler may have moved this thread; then the next batch tests the core.
    match current_core() {
        Some(after) if Some(after) == core => {
            PASSED_MS[after % CORES].store(now_ms, Ordering::Relaxed);
        }
        Some(_) => {}
        None => THREAD_PASSED_MS.set(now_ms),
    }
}

fn passes(verifier: &BatchVerifier) -> bool {
    #[cfg(any(test, feature = "planted"))]
    if super::fault_injection::fails_self_test() {
        return false;
    }
    verifier.repeat_self_test()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_prover_has_a_key_of_its_own() {
        let mut halves: Vec<u64> = (0..1000).flat_map(|_| next_key()).collect();
        halves.sort_unstable();
        halves.dedup();
        assert_eq!(halves.len(), 2000);
        assert!(!halves.contains(&0));
    }
}
