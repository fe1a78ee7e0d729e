//! Progress of benchmarks on standard error: a bar on a terminal, lines elsewhere.

use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use assay_bench::Progress;
use assay_bench::conditions::Conditions;
use assay_bench::suite::Watch;

use crate::bar::Bar;
use crate::output;

/// Prints caveats about figures measured under the current conditions.
pub(super) fn warn() {
    for warning in Conditions::now().warnings {
        output::complain(&format!("warning: {warning}"));
    }
}

/// Progress of a run of many benchmarks and of the stages after them: count, rate and remaining time.
pub(super) struct RunBar {
    bar: Bar,
    stop: Arc<AtomicBool>,
    start: Instant,
    /// The current part of a stage; `None` during benchmarks.
    part: RefCell<Option<Part>>,
}

struct Part {
    name: String,
    steps: u64,
    done: u64,
    start: Instant,
}

impl RunBar {
    pub(super) fn stopped_by(stop: Arc<AtomicBool>) -> Self {
        let bar = Bar::new("[{bar:25}] {pos}/{len}  {per_sec}, {eta} left  {wide_msg}");
        Self { bar, stop, start: Instant::now(), part: RefCell::new(None) }
    }

    /// Progress of one experiment, which has parts alone.
    pub(super) fn of_parts() -> Self {
        let bar = Self::stopped_by(Arc::default());
        bar.stage();
        bar
    }
}

/// Rate and remaining time; empty before the first step.
fn speed(done: u64, total: u64, elapsed: Duration) -> String {
    if done == 0 {
        return String::new();
    }
    let rate = done as f64 / elapsed.as_secs_f64().max(1e-3);
    format!(", {rate:.1}/s, {:.0} s left", total.saturating_sub(done) as f64 / rate)
}

impl Progress for RunBar {
    fn begin(&self, name: &str, steps: u64) {
        self.bar.message(name.to_owned());
        let mut part = self.part.borrow_mut();
        let Some(part) = part.as_mut() else { return };
        *part = Part { name: name.to_owned(), steps, done: 0, start: Instant::now() };
        self.bar.restart(steps);
        self.bar.heading(name);
    }

    fn step(&self) {
        let mut part = self.part.borrow_mut();
        let Some(part) = part.as_mut() else { return };
        part.done += 1;
        self.bar.step();
        let Part { name, steps, done, start } = part;
        self.bar
            .line(|| format!("{name}: {done} of {steps}{}", speed(*done, *steps, start.elapsed())));
    }
}

impl Watch for RunBar {
    fn benchmark(&self, name: &str, number: usize, total: usize) {
        *self.part.borrow_mut() = None;
        self.bar.set(number as u64, total as u64);
        self.bar.message(name.to_owned());
        let speed = speed(number as u64, total as u64, self.start.elapsed());
        let text = format!("benchmark {} of {total}: {name}{speed}", number + 1);
        if number == 0 {
            self.bar.heading(&text);
        } else {
            self.bar.line(|| text);
        }
    }

    fn stage(&self) {
        let part = Part { name: String::new(), steps: 0, done: 0, start: Instant::now() };
        *self.part.borrow_mut() = Some(part);
    }

    fn note(&self, text: &str) {
        self.bar.say(text);
    }

    fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rate_and_remaining_time() {
        assert_eq!(speed(0, 10, Duration::from_secs(5)), "");
        assert_eq!(speed(4, 10, Duration::from_secs(2)), ", 2.0/s, 3 s left");
        assert_eq!(speed(11, 10, Duration::from_secs(1)), ", 11.0/s, 0 s left");
    }
}
