//! Progress of an index build on standard error, and the time of each block.

use std::io::IsTerminal;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use assay_electrum::follow::Listener;
use assay_electrum::index::Counts;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::output;

/// An added block.
#[derive(Clone, Copy, Debug)]
pub(super) struct Step {
    pub(super) height: u32,
    pub(super) counts: Counts,
    /// Time since the previous block.
    pub(super) elapsed: Duration,
}

pub(super) struct Progress {
    bar: Option<ProgressBar>,
    tip: u32,
    state: Mutex<State>,
}

struct State {
    last: Instant,
    said: Instant,
    inputs: u64,
    steps: Vec<Step>,
}

impl Progress {
    pub(super) fn new(tip: u32) -> Self {
        let bar = std::io::stderr().is_terminal().then(|| {
            let target = ProgressDrawTarget::stderr_with_hz(5);
            let bar = ProgressBar::with_draw_target(Some(u64::from(tip) + 1), target);
            let template = "{msg} [{bar:25}] {pos}/{len} blocks  {per_sec}  ETA {eta}";
            if let Ok(style) = ProgressStyle::with_template(template) {
                bar.set_style(style.progress_chars("=> "));
            }
            bar.set_message("indexing");
            bar
        });
        let now = Instant::now();
        let state = State { last: now, said: now, inputs: 0, steps: Vec::new() };
        Self { bar, tip, state: Mutex::new(state) }
    }

    /// Removes the bar and returns the steps.
    pub(super) fn finish(self) -> Vec<Step> {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
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
        match &self.bar {
            Some(bar) => bar.set_position(u64::from(height) + 1),
            None if now - state.said >= LINE_INTERVAL => {
                state.said = now;
                let (tip, inputs) = (self.tip, state.inputs);
                output::complain(&format!("height {height} of {tip}, {inputs} inputs"));
            }
            None => {}
        }
    }
}

const LINE_INTERVAL: Duration = Duration::from_secs(10);
