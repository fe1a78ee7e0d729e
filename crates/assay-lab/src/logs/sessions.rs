//! Turns events into a curve: time since the start, corrected for jumps of the log's clock.

use super::stamp::DAY_US;
use super::summary::{Row, Tally};
use super::{Event, Format, Found, Progress, Stamp, Txs};

/// Backward jump from which the clock counts as set back; smaller ones come from concurrent threads.
const SET_BACK_US: i64 = 2_000_000;

/// Assembles the events of one log into rows.
#[derive(Debug, Default)]
pub struct Sessions {
    clock: Clock,
    /// Waits for the step times that follow it.
    held: Option<Row>,
    session: u32,
    has_rows: bool,
    /// Total time of completed sessions.
    before_s: f64,
    elapsed_s: f64,
    txs: u64,
    height: Option<u32>,
    tally: Tally,
}

/// Monotonic clock of one session.
#[derive(Debug, Default)]
struct Clock {
    start_us: Option<i64>,
    last_us: Option<i64>,
    /// Correction of stamps for backward jumps and midnight.
    shift_us: i64,
    longest_pause_s: f64,
    set_back: u64,
}

impl Sessions {
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a parsed line; returns the row that it completes, which is the previous one.
    pub fn take(&mut self, found: Found) -> Option<Row> {
        match found.event {
            Err(fault) => {
                self.tally.fault(found.line, &fault, found.excerpt);
                None
            }
            Ok(Event::Progress(progress)) => {
                let row = self.row(found.line, progress);
                self.held.replace(row)
            }
            Ok(Event::Steps(steps)) => {
                self.tally.steps(&steps);
                let held = self.held.as_mut().filter(|row| row.steps.is_none())?;
                let is_its = steps.height == Some(held.progress.height);
                (is_its && held.progress.format.is_core()).then_some(())?;
                held.steps = Some(steps);
                self.held.take()
            }
            Ok(Event::Start(start)) => {
                if self.has_rows || self.session == 0 {
                    self.end_session();
                    self.session += 1;
                }
                self.clock = Clock::default();
                if let Some(stamp) = start.stamp {
                    self.clock.elapsed_s(stamp);
                }
                self.tally.start(Some(&start));
                self.held.take()
            }
            Ok(Event::Headers { height, stamp }) => {
                let headers = &mut self.tally.summary.headers;
                *headers = (*headers).max(Some(height));
                if let Some(stamp) = stamp {
                    self.clock.elapsed_s(stamp);
                }
                None
            }
            Ok(Event::Timeout) => {
                self.tally.summary.timeouts += 1;
                None
            }
        }
    }

    pub fn finish(&mut self) -> Option<Row> {
        self.end_session();
        self.held.take()
    }

    pub(super) fn tally(&self) -> &Tally {
        &self.tally
    }

    fn end_session(&mut self) {
        self.before_s += self.elapsed_s;
        self.elapsed_s = 0.0;
        self.has_rows = false;
        self.tally.summary.clock_set_back += std::mem::take(&mut self.clock.set_back);
    }

    fn row(&mut self, line: u64, progress: Progress) -> Row {
        if self.session == 0 {
            self.session = 1;
            self.tally.start(None);
        }
        self.has_rows = true;
        if progress.format == Format::Libbitcoin4 && self.clock.start_us.is_none() {
            // It counts seconds since its start, not since its first line.
            self.clock.elapsed_s(Stamp { us: 0, is_dated: false });
        }
        let elapsed_s = progress.stamp.map(|stamp| self.clock.elapsed_s(stamp));
        self.elapsed_s = elapsed_s.unwrap_or(self.elapsed_s);
        let blocks = self.height.and_then(|height| progress.height.checked_sub(height));
        let txs_total = match (progress.txs, blocks) {
            (Txs::Total(txs), _) => {
                self.txs = txs;
                Some(txs)
            }
            (Txs::Since(txs), _) => {
                self.txs = self.txs.saturating_add(txs);
                Some(self.txs)
            }
            (Txs::PerBlock(each), Some(blocks)) => {
                self.txs = self.txs.saturating_add((each * f64::from(blocks)).round() as u64);
                Some(self.txs)
            }
            _ => None,
        };
        if !progress.background {
            self.height = Some(progress.height);
        }
        let row = Row {
            line,
            session: self.session,
            elapsed_s,
            running_s: elapsed_s.map(|elapsed_s| self.before_s + elapsed_s),
            txs_total,
            progress,
            steps: None,
        };
        self.tally.row(&row);
        let longest_s = &mut self.tally.summary.longest_pause_s;
        *longest_s = longest_s.max(self.clock.longest_pause_s);
        row
    }
}

impl Clock {
    /// Seconds since the first stamp.
    fn elapsed_s(&mut self, stamp: Stamp) -> f64 {
        let mut us = stamp.us.saturating_add(self.shift_us);
        let (Some(start_us), Some(last_us)) = (self.start_us, self.last_us) else {
            self.start_us = Some(us);
            self.last_us = Some(us);
            return 0.0;
        };
        if us < last_us.saturating_sub(SET_BACK_US) {
            let back_us = last_us.saturating_sub(us);
            let round_us = if back_us <= DAY_US { DAY_US } else { 366 * DAY_US };
            if stamp.is_dated || back_us < round_us / 2 {
                self.shift_us = self.shift_us.saturating_add(back_us);
                self.set_back += 1;
            } else {
                // Times without a date passed midnight or the new year.
                self.shift_us = self.shift_us.saturating_add(round_us);
            }
            us = stamp.us.saturating_add(self.shift_us);
        }
        let us = us.max(last_us);
        self.longest_pause_s = self.longest_pause_s.max(seconds(us.saturating_sub(last_us)));
        self.last_us = Some(us);
        seconds(us.saturating_sub(start_us))
    }
}

fn seconds(us: i64) -> f64 {
    us as f64 / 1e6
}
