//! Progress of an index build on standard error, and the time of each block.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use assay_electrum::follow::Listener;
use assay_electrum::index::Counts;

use crate::bar::Bar;

#[derive(Clone, Copy, Debug)]
pub(super) struct Step {
    pub(super) height: u32,
    pub(super) counts: Counts,
    /// Time since the previous block.
    pub(super) elapsed: Duration,
}

pub(super) struct Progress {
    bar: Bar,
    tip: u32,
    state: Mutex<State>,
}

struct State {
    last: Instant,
    inputs: u64,
    steps: Vec<Step>,
}

impl Progress {
    pub(super) fn new(tip: u32) -> Self {
        let bar = Bar::new("indexing [{bar:25}] {pos}/{len} blocks  {per_sec}  ETA {eta}");
        let state = State { last: Instant::now(), inputs: 0, steps: Vec::new() };
        Self { bar, tip, state: Mutex::new(state) }
    }

    /// Removes the bar and returns the steps.
    pub(super) fn finish(self) -> Vec<Step> {
        self.state.into_inner().unwrap_or_else(PoisonError::into_inner).steps
    }
}

impl Listener for Progress {
    fn connected(&self, height: u32, counts: &Counts) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        let elapsed = now - state.last;
        state.steps.push(Step { height, counts: *counts, elapsed });
        state.last = now;
        state.inputs += counts.inputs;
        let (tip, inputs) = (self.tip, state.inputs);
        self.bar.set(u64::from(height) + 1, u64::from(tip) + 1);
        self.bar.line(|| format!("height {height} of {tip}, {inputs} inputs"));
    }
}
