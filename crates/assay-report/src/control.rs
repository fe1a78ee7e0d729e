//! The control load: constant work, timed before and after each run.
//!
//! If its time changes, the machine changed (throttling, a neighbour on the same host): comparisons leave that run out.
//! It is in this crate because tests compile it with optimisation.

use std::hint::black_box;
use std::time::Instant;

use crate::stats::median;

/// Rounds of the control load; about fifty milliseconds on a machine of 2025.
const ROUNDS: u32 = 24_000_000;

/// Number of timings; their median hides a single interruption of a fifth of a second.
const REPEATS: usize = 5;

/// Runs the control load on one core, and returns the median of its times in nanoseconds.
pub fn time_control_load_ns() -> u64 {
    let times: Vec<f64> = (0..REPEATS).map(|_| time_once_ns() as f64).collect();
    median(&times) as u64
}

/// Runs the control load once on one core and returns its time in nanoseconds.
pub fn time_once_ns() -> u64 {
    let start = Instant::now();
    black_box(mix(black_box(ROUNDS)));
    start.elapsed().as_nanos() as u64
}

/// Integer work in the manner of SHA-256: additions, rotations, choose and majority, in one chain
/// of dependencies so that it measures the clock frequency and not the width of the core.
pub fn mix(rounds: u32) -> u32 {
    let mut state: [u32; 4] = [0x6a09_e667, 0xbb67_ae85, 0x3c6e_f372, 0xa54f_f53a];
    for round in 0..rounds {
        let [a, b, c, d] = state;
        let choose = (a & b) ^ (!a & c);
        let majority = (a & b) ^ (a & c) ^ (b & c);
        let sigma = a.rotate_right(2) ^ a.rotate_right(13) ^ a.rotate_right(22);
        let first = d.wrapping_add(choose).wrapping_add(sigma).wrapping_add(round);
        state = [first.wrapping_add(majority), a, b.wrapping_add(first), c];
    }
    state[0] ^ state[1] ^ state[2] ^ state[3]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_load_is_fixed_work() {
        assert_eq!(mix(1000), mix(1000));
        assert_ne!(mix(1000), mix(1001));
    }
}
