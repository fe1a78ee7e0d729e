//! Progress of benchmarks on standard error: a bar on a terminal, a line for each part elsewhere.

use std::cell::{Cell, RefCell};
use std::io::IsTerminal;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use assay_bench::Progress;
use assay_bench::conditions::Conditions;
use assay_bench::suite::Watch;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::output;

pub(super) struct Bar {
    /// `None` if standard error is no terminal.
    bar: Option<ProgressBar>,
}

impl Bar {
    pub(super) fn new() -> Self {
        let bar = std::io::stderr().is_terminal().then(|| {
            let bar = ProgressBar::with_draw_target(Some(0), ProgressDrawTarget::stderr_with_hz(5));
            let style = ProgressStyle::with_template("{msg:<32} [{bar:25}] {pos}/{len}  {elapsed}");
            if let Ok(style) = style {
                bar.set_style(style.progress_chars("=> "));
            }
            bar
        });
        Self { bar }
    }

    /// Prints caveats about figures measured under the current conditions.
    pub(super) fn warn(&self) {
        for warning in Conditions::now().warnings {
            self.say(&format!("warning: {warning}"));
        }
    }

    fn say(&self, text: &str) {
        match &self.bar {
            Some(bar) => bar.suspend(|| output::complain(text)),
            None => output::complain(text),
        }
    }
}

impl Progress for Bar {
    fn begin(&self, part: &str, steps: u64) {
        let Some(bar) = &self.bar else { return self.say(part) };
        bar.set_message(part.to_owned());
        bar.set_length(steps);
        bar.set_position(0);
    }

    fn step(&self) {
        if let Some(bar) = &self.bar {
            bar.inc(1);
        }
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

/// Progress of a run of many benchmarks and of the stages after them: count, rate and remaining time.
pub(super) struct RunBar {
    bar: Bar,
    stop: Arc<AtomicBool>,
    start: Instant,
    /// The current part of a stage; `None` during benchmarks.
    part: RefCell<Option<Part>>,
    /// Time of the last printed line, if there is no terminal.
    said: Cell<Option<Instant>>,
}

struct Part {
    name: String,
    steps: u64,
    done: u64,
    start: Instant,
}

/// Time between two lines without a terminal.
const LINE_EVERY: Duration = Duration::from_secs(10);

impl RunBar {
    pub(super) fn stopped_by(stop: Arc<AtomicBool>) -> Self {
        let bar = Bar::new();
        if let Some(bar) = &bar.bar {
            let template = "[{bar:25}] {pos}/{len}  {per_sec}, {eta} left  {wide_msg}";
            if let Ok(style) = ProgressStyle::with_template(template) {
                bar.set_style(style.progress_chars("=> "));
            }
            // One step may take seconds; the ticker keeps the clock running.
            bar.enable_steady_tick(Duration::from_secs(1));
        }
        let (part, said) = (RefCell::new(None), Cell::new(None));
        Self { bar, stop, start: Instant::now(), part, said }
    }

    pub(super) fn warn(&self) {
        self.bar.warn();
    }

    /// True if the next line is due; restarts the interval.
    fn is_due(&self) -> bool {
        if self.said.get().is_some_and(|said| said.elapsed() < LINE_EVERY) {
            return false;
        }
        self.said.set(Some(Instant::now()));
        true
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
        if let Some(bar) = &self.bar.bar {
            bar.set_message(name.to_owned());
        }
        let mut part = self.part.borrow_mut();
        let Some(part) = part.as_mut() else { return };
        *part = Part { name: name.to_owned(), steps, done: 0, start: Instant::now() };
        if let Some(bar) = &self.bar.bar {
            bar.set_length(steps);
            bar.set_position(0);
            bar.reset_eta();
        } else {
            self.said.set(Some(Instant::now()));
            output::complain(name);
        }
    }

    fn step(&self) {
        let mut part = self.part.borrow_mut();
        match (&self.bar.bar, part.as_mut()) {
            (Some(bar), None) => bar.tick(),
            (Some(bar), Some(_)) => bar.inc(1),
            (None, None) => {}
            (None, Some(part)) => {
                part.done += 1;
                if self.is_due() {
                    let Part { name, steps, done, start } = part;
                    let speed = speed(*done, *steps, start.elapsed());
                    output::complain(&format!("{name}: {done} of {steps}{speed}"));
                }
            }
        }
    }
}

impl Watch for RunBar {
    fn benchmark(&self, name: &str, number: usize, total: usize) {
        *self.part.borrow_mut() = None;
        if let Some(bar) = &self.bar.bar {
            bar.set_length(total as u64);
            bar.set_position(number as u64);
            return bar.set_message(name.to_owned());
        }
        if self.is_due() {
            let speed = speed(number as u64, total as u64, self.start.elapsed());
            output::complain(&format!("benchmark {} of {total}: {name}{speed}", number + 1));
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
