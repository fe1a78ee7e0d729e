//! Progress of benchmarks on standard error: a bar on a terminal, a line for each part elsewhere.

use std::cell::Cell;
use std::io::IsTerminal;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use assay_bench::Progress;
use assay_bench::conditions::Conditions;
use assay_bench::suite::Watch;
use assay_lab::sync::SyncProgress;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::output;

pub(super) struct Bar {
    /// Absent where standard error is no terminal.
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

    /// Tells what speaks against trusting figures that are taken now.
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

impl SyncProgress for Bar {
    fn chain(&self, dir: &Path, is_forged: bool) {
        let doing = if is_forged { "forging the chain into" } else { "chain" };
        self.say(&format!("{doing} {}", dir.display()));
    }

    fn run(&self, name: &str, done: usize, total: usize) {
        let Some(bar) = &self.bar else {
            return self.say(&format!("run {} of {total}: {name}", done + 1));
        };
        bar.set_message(name.to_owned());
        bar.set_length(total as u64);
        bar.set_position(done as u64);
        // A run takes seconds: the clock keeps moving meanwhile. A redraw a second costs next to nothing.
        bar.enable_steady_tick(Duration::from_secs(1));
    }

    fn end(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
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

/// Progress of a run of many benchmarks: how many are done, how fast that goes, and how long the others will take.
pub(super) struct RunBar {
    bar: Bar,
    stop: Arc<AtomicBool>,
    start: Instant,
    /// When the last line was printed where there is no terminal.
    said: Cell<Option<Instant>>,
}

/// Time between two lines where there is no terminal.
const LINE_EVERY: Duration = Duration::from_secs(10);

impl RunBar {
    pub(super) fn stopped_by(stop: Arc<AtomicBool>) -> Self {
        let bar = Bar::new();
        if let Some(bar) = &bar.bar {
            let template = "[{bar:25}] {pos}/{len}  {per_sec}, {eta} left  {wide_msg}";
            if let Ok(style) = ProgressStyle::with_template(template) {
                bar.set_style(style.progress_chars("=> "));
            }
        }
        Self { bar, stop, start: Instant::now(), said: Cell::new(None) }
    }

    pub(super) fn warn(&self) {
        self.bar.warn();
    }
}

impl Progress for RunBar {
    fn begin(&self, part: &str, _: u64) {
        if let Some(bar) = &self.bar.bar {
            bar.set_message(part.to_owned());
        }
    }

    fn step(&self) {
        if let Some(bar) = &self.bar.bar {
            bar.tick();
        }
    }
}

impl Watch for RunBar {
    fn benchmark(&self, name: &str, number: usize, total: usize) {
        if let Some(bar) = &self.bar.bar {
            bar.set_length(total as u64);
            bar.set_position(number as u64);
            return bar.set_message(name.to_owned());
        }
        if self.said.get().is_some_and(|said| said.elapsed() < LINE_EVERY) {
            return;
        }
        self.said.set(Some(Instant::now()));
        let elapsed_s = self.start.elapsed().as_secs_f64();
        let speed = if number > 0 {
            let rate = number as f64 / elapsed_s;
            format!(", {rate:.1}/s, {:.0} s left", (total - number) as f64 / rate)
        } else {
            String::new()
        };
        output::complain(&format!("benchmark {} of {total}: {name}{speed}", number + 1));
    }

    fn note(&self, text: &str) {
        self.bar.say(text);
    }

    fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }
}
