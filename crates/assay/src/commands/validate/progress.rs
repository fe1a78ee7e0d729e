//! Progress of a validation on standard error: a bar on a terminal, periodic lines elsewhere.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use assay_engine::{ConnectState, InvalidBlock, ScanReport, ValidateProgress};
use indicatif::{BinaryBytes, FormattedDuration};

use super::report::scan_lines;
use crate::bar::Bar;
use crate::output;

/// Time between two lines for other programs.
const MACHINE_INTERVAL: Duration = Duration::from_millis(10);

/// Number of damaged places listed.
const STRAYS_SHOWN: usize = 5;

pub(crate) struct Progress {
    bar: Bar,
    state: Mutex<State>,
    /// True if heights are printed on standard output as lines of JSON.
    for_programs: bool,
    start: Instant,
}

#[derive(Default)]
struct State {
    last_for_programs: Option<Instant>,
    /// Start of connecting, and the bytes connected before.
    connect_start: Option<(Instant, u64)>,
}

impl Progress {
    pub(crate) fn new(for_programs: bool) -> Self {
        let bar = Bar::new("{msg} [{bar:25}] {bytes}/{total_bytes}  {bytes_per_sec}  ETA {eta}");
        bar.message("looking for blocks");
        Self { bar, state: Mutex::default(), for_programs, start: Instant::now() }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Prints the height as JSON: always the last one, others at intervals.
    fn print_height(&self, state: &ConnectState, own: &mut State) {
        let is_due = own.last_for_programs.is_none_or(|last| last.elapsed() >= MACHINE_INTERVAL);
        if !self.for_programs || !(is_due || state.height == state.last_height) {
            return;
        }
        own.last_for_programs = Some(Instant::now());
        let (height, elapsed_s) = (state.height, self.start.elapsed().as_secs_f64());
        // If the reader has gone, printing the result fails as well.
        let _ = output::print(&format!(
            "{{\"kind\":\"height\",\"height\":{height},\"elapsed_s\":{elapsed_s:.6}}}\n"
        ));
    }
}

impl ValidateProgress for Progress {
    fn scanning(&self, bytes_done: u64, bytes_total: u64) {
        self.bar.set(bytes_done, bytes_total);
        let [done, total] = [bytes_done, bytes_total].map(BinaryBytes);
        self.bar.line(|| format!("looked for blocks in {done} of {total}"));
    }

    fn scanned(&self, report: &ScanReport) {
        self.bar.say(scan_lines(report, STRAYS_SHOWN).trim_end());
    }

    fn invalid(&self, block: &InvalidBlock) {
        // Length and rates of the previous branch do not apply to another one.
        self.state().connect_start = None;
        self.bar.say(&block.to_string());
    }

    fn connected(&self, state: &ConnectState) {
        let mut own = self.state();
        self.print_height(state, &mut own);
        let (start, bytes_start) = *own.connect_start.get_or_insert_with(|| {
            self.bar.restart(state.bytes_total);
            (Instant::now(), state.bytes_done)
        });
        self.bar.message(format!("height {}", state.height));
        self.bar.set(state.bytes_done, state.bytes_total);
        self.bar.line(|| {
            let rate = state.bytes_done.saturating_sub(bytes_start) as f64
                / start.elapsed().as_secs_f64().max(1e-9);
            let left_s = (state.bytes_total - state.bytes_done) as f64 / rate.max(1.0);
            let left = FormattedDuration(Duration::from_secs(left_s as u64));
            format!(
                "height {} of {}, {:.1} % of {}, {:.1} MiB/s, {} transactions, {} inputs, coins in memory {} MiB, ETA {left}",
                state.height,
                state.last_height,
                state.bytes_done as f64 * 100.0 / state.bytes_total.max(1) as f64,
                BinaryBytes(state.bytes_total),
                rate / f64::from(1 << 20),
                state.totals.txs,
                state.totals.inputs,
                state.cache_bytes >> 20,
            )
        });
    }

    fn flushing(&self, height: u32) {
        self.bar.message(format!("height {height}, writing coins"));
    }

    fn hashing(&self, height: u32) {
        self.bar.message(format!("height {height}, hashing coins"));
    }
}
