//! Progress on standard error: a bar on a terminal, lines elsewhere.

use std::borrow::Cow;
use std::io::IsTerminal;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::output;

/// Shorter operations show no bar.
const SILENT: Duration = Duration::from_secs(2);

/// Time between two lines without a terminal.
const LINE_EVERY: Duration = Duration::from_secs(10);

/// Progress of a long operation. A bar is shown after a delay, and removed on drop.
pub(crate) struct Bar {
    line: ProgressBar,
    start: Instant,
    is_terminal: bool,
    is_shown: AtomicBool,
    /// Time of the last line, or of the start.
    said: Mutex<Instant>,
}

impl Bar {
    pub(crate) fn new(template: &str) -> Self {
        let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::hidden());
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style.progress_chars("=> "));
        }
        let start = Instant::now();
        Self {
            line: bar,
            start,
            is_terminal: std::io::stderr().is_terminal(),
            is_shown: AtomicBool::new(false),
            said: Mutex::new(start),
        }
    }

    pub(crate) fn set(&self, done: u64, total: u64) {
        self.show();
        self.line.set_length(total);
        self.line.set_position(done);
    }

    pub(crate) fn step(&self) {
        self.show();
        self.line.inc(1);
    }

    /// Begins another part, whose rate and remaining time are its own.
    pub(crate) fn restart(&self, total: u64) {
        self.set(0, total);
        self.line.reset_eta();
    }

    /// Text of `{msg}` in the template.
    pub(crate) fn message(&self, text: impl Into<Cow<'static, str>>) {
        self.line.set_message(text);
    }

    /// Prints a line, above the bar on a terminal.
    pub(crate) fn say(&self, text: &str) {
        self.line.suspend(|| output::complain(text));
        *self.said.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
    }

    /// Without a terminal: prints a line, unless the last one is recent. Of several threads one prints.
    pub(crate) fn line(&self, text: impl FnOnce() -> String) {
        if self.is_terminal {
            return;
        }
        let Ok(mut said) = self.said.try_lock() else { return };
        if said.elapsed() >= LINE_EVERY {
            *said = Instant::now();
            output::complain(&text());
        }
    }

    /// Without a terminal: prints a line.
    pub(crate) fn heading(&self, text: &str) {
        if !self.is_terminal {
            self.say(text);
        }
    }

    fn show(&self) {
        if self.is_shown.load(Ordering::Relaxed)
            || self.start.elapsed() < SILENT
            || self.is_shown.swap(true, Ordering::Relaxed)
        {
            return;
        }
        if self.is_terminal {
            self.line.set_draw_target(ProgressDrawTarget::stderr_with_hz(5));
            // A step may take seconds; the ticker keeps the clock running.
            self.line.enable_steady_tick(Duration::from_secs(1));
        }
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        self.line.finish_and_clear();
    }
}
