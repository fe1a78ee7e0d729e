//! Progress of benchmarks on standard error: a bar on a terminal, a line for each part elsewhere.

use std::io::IsTerminal;
use std::path::Path;
use std::time::Duration;

use assay_bench::Progress;
use assay_bench::conditions::Conditions;
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
