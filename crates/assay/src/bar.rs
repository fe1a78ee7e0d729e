//! A progress bar on standard error.

use std::io::IsTerminal;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// Shorter operations show no bar.
const SILENT: Duration = Duration::from_secs(2);

/// Progress bar of a long operation, shown on a terminal after a delay.
pub(crate) struct Bar {
    shown: ProgressBar,
    start: Instant,
    is_shown: AtomicBool,
}

impl Bar {
    pub(crate) fn new(template: &str) -> Self {
        let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::hidden());
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style.progress_chars("=> "));
        }
        Self { shown: bar, start: Instant::now(), is_shown: AtomicBool::new(false) }
    }

    pub(crate) fn set(&self, done: u64, total: u64) {
        if !self.is_shown.load(Ordering::Relaxed) {
            if self.start.elapsed() < SILENT || self.is_shown.swap(true, Ordering::Relaxed) {
                return;
            }
            if std::io::stderr().is_terminal() {
                self.shown.set_draw_target(ProgressDrawTarget::stderr_with_hz(5));
            }
        }
        self.shown.set_length(total);
        self.shown.set_position(done);
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        self.shown.finish_and_clear();
    }
}
