//! Progress of a validation on standard error: a bar on a terminal, periodic lines elsewhere.

use std::io::IsTerminal;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use assay_engine::{ConnectState, InvalidBlock, ScanReport, ValidateProgress};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use super::report::{scan_lines, size};
use crate::output;

/// Time between two lines.
const LINE_INTERVAL: Duration = Duration::from_secs(10);

/// Time between two lines for other programs.
const MACHINE_INTERVAL: Duration = Duration::from_millis(10);

/// Number of damaged places listed.
const STRAYS_SHOWN: usize = 5;

pub(crate) struct Progress {
    /// `None` if standard error is no terminal.
    bar: Option<ProgressBar>,
    lines: Mutex<Lines>,
    /// True if heights are printed on standard output as lines of JSON.
    for_programs: bool,
    start: Instant,
}

struct Lines {
    last: Instant,
    last_for_programs: Option<Instant>,
    /// Start of connecting, and the bytes connected before.
    connect_start: Option<(Instant, u64)>,
}

impl Progress {
    pub(crate) fn new(for_programs: bool) -> Self {
        let bar = std::io::stderr().is_terminal().then(|| {
            let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr_with_hz(5));
            let template = "{msg} [{bar:25}] {bytes}/{total_bytes}  {bytes_per_sec}  ETA {eta}";
            if let Ok(style) = ProgressStyle::with_template(template) {
                bar.set_style(style.progress_chars("=> "));
            }
            bar
        });
        let start = Instant::now();
        let lines = Lines { last: start, last_for_programs: None, connect_start: None };
        Self { bar, lines: Mutex::new(lines), for_programs, start }
    }

    pub(crate) fn clear(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }

    fn lines(&self) -> MutexGuard<'_, Lines> {
        self.lines.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Prints the height as JSON: always the last one, others at intervals.
    fn print_height(&self, state: &ConnectState, lines: &mut Lines) {
        let is_due = lines.last_for_programs.is_none_or(|last| last.elapsed() >= MACHINE_INTERVAL);
        if !self.for_programs || !(is_due || state.height == state.last_height) {
            return;
        }
        lines.last_for_programs = Some(Instant::now());
        let (height, elapsed_s) = (state.height, self.start.elapsed().as_secs_f64());
        // If the reader has gone, printing the result fails as well.
        let _ = output::print(&format!(
            "{{\"kind\":\"height\",\"height\":{height},\"elapsed_s\":{elapsed_s:.6}}}\n"
        ));
    }

    /// Prints a line above the bar.
    fn say(&self, text: &str) {
        match &self.bar {
            Some(bar) => bar.suspend(|| output::complain(text)),
            None => output::complain(text),
        }
    }
}

impl ValidateProgress for Progress {
    fn scanning(&self, bytes_done: u64, bytes_total: u64) {
        if let Some(bar) = &self.bar {
            bar.set_message("looking for blocks");
            bar.set_length(bytes_total);
            bar.set_position(bytes_done);
            return;
        }
        // Other threads report too; if one holds the lock, this report is skipped.
        let Ok(mut lines) = self.lines.try_lock() else { return };
        if lines.last.elapsed() >= LINE_INTERVAL {
            lines.last = Instant::now();
            let (done, total) = (size(bytes_done), size(bytes_total));
            output::complain(&format!("looked for blocks in {done} of {total}"));
        }
    }

    fn scanned(&self, report: &ScanReport) {
        if let Some(bar) = &self.bar {
            bar.reset();
        }
        self.say(scan_lines(report, STRAYS_SHOWN).trim_end());
    }

    fn invalid(&self, block: &InvalidBlock) {
        // Length and rates of the previous branch do not apply to another one.
        self.lines().connect_start = None;
        self.say(&block.to_string());
    }

    fn connected(&self, state: &ConnectState) {
        let mut lines = self.lines();
        self.print_height(state, &mut lines);
        let (start, bytes_start) = *lines.connect_start.get_or_insert_with(|| {
            if let Some(bar) = &self.bar {
                bar.set_length(state.bytes_total);
                bar.set_position(state.bytes_done);
                bar.reset_eta();
            }
            (Instant::now(), state.bytes_done)
        });
        if let Some(bar) = &self.bar {
            bar.set_message(format!("height {}", state.height));
            bar.set_position(state.bytes_done);
            return;
        }
        if lines.last.elapsed() < LINE_INTERVAL {
            return;
        }
        lines.last = Instant::now();
        let rate = state.bytes_done.saturating_sub(bytes_start) as f64
            / start.elapsed().as_secs_f64().max(1e-9);
        let left_s = (state.bytes_total - state.bytes_done) as f64 / rate.max(1.0);
        output::complain(&format!(
            "height {} of {}, {:.1} % of {}, {:.1} MiB/s, {} transactions, {} inputs, coins in memory {} MiB, ETA {}",
            state.height,
            state.last_height,
            state.bytes_done as f64 * 100.0 / state.bytes_total.max(1) as f64,
            size(state.bytes_total),
            rate / f64::from(1 << 20),
            state.totals.txs,
            state.totals.inputs,
            state.cache_bytes >> 20,
            duration(left_s),
        ));
    }

    fn flushing(&self, height: u32) {
        if let Some(bar) = &self.bar {
            bar.set_message(format!("height {height}, writing coins"));
        }
    }

    fn hashing(&self, height: u32) {
        if let Some(bar) = &self.bar {
            bar.set_message(format!("height {height}, hashing coins"));
        }
    }
}

/// Formats as hours and minutes, or minutes and seconds.
fn duration(seconds: f64) -> String {
    let seconds = seconds as u64;
    let (hours, minutes) = (seconds / 3600, seconds / 60 % 60);
    if hours > 0 {
        format!("{hours} h {minutes:02} min")
    } else {
        format!("{minutes} min {:02} s", seconds % 60)
    }
}
