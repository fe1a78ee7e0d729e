//! Progress events, and a reporter for terminals.

use std::io::{IsTerminal, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};

use crate::results::{BlockRecord, Run, Status};

/// A progress event. Sent by the laboratory's main thread to the caller's [`Reporter`].
#[derive(Debug)]
#[non_exhaustive]
pub enum Event<'a> {
    /// A result that stays visible.
    Line(&'a str),
    /// The current activity.
    Step(&'a str),
    /// An activity of minutes, repeated with new figures.
    Status(&'a str),
    /// Steps done of a number of steps of this name.
    Count {
        done: u32,
        of: u32,
        unit: &'static str,
    },
    RunStarted {
        /// Name of the run, warm-up runs included.
        id: &'a str,
        /// Number of the run, from 1.
        number: usize,
        of: usize,
        /// Number of blocks to feed.
        blocks: usize,
    },
    /// The run was finished earlier; its results are reused.
    RunSkipped {
        run: &'a Run,
    },
    /// Transactions of a block were sent.
    Transactions {
        height: u32,
        sent: u64,
        total: u64,
    },
    /// A block is the tip.
    Block {
        block: &'a BlockRecord,
        phase: &'a str,
    },
    RunFinished {
        run: &'a Run,
    },
    Finished,
}

/// Receives events. Called between timed sections, except for [`Event::Transactions`]; an implementation should return fast.
pub trait Reporter {
    fn event(&self, event: &Event<'_>);

    fn line(&self, text: &str) {
        self.event(&Event::Line(text));
    }

    fn step(&self, text: &str) {
        self.event(&Event::Step(text));
    }

    /// True to stop the plan, for example after a signal. Polled before every block and ten times a second while the forge runs.
    /// The current run is then invalid, and finished runs are kept.
    fn wants_stop(&self) -> bool {
        false
    }

    /// Fails once the plan is to stop.
    ///
    /// # Errors
    /// When [`Reporter::wants_stop`] is true.
    fn check_stop(&self) -> Result<(), Interrupted> {
        if self.wants_stop() { Err(Interrupted) } else { Ok(()) }
    }
}

/// The user stopped an experiment.
#[derive(Debug, thiserror::Error)]
#[error("interrupted")]
pub struct Interrupted;

#[derive(Debug, Clone, Copy, Default)]
pub struct Silent;

impl Reporter for Silent {
    fn event(&self, _: &Event<'_>) {}
}

/// Reports to standard error: a bar on a terminal, one line per step elsewhere.
#[derive(Debug)]
pub struct Terminal {
    bar: Mutex<Option<ProgressBar>>,
    interactive: bool,
    stop: Arc<AtomicBool>,
    printed: Mutex<Option<Instant>>,
}

impl Default for Terminal {
    fn default() -> Self {
        Self::stopped_by(Arc::default())
    }
}

impl Terminal {
    /// A reporter that stops the plan once `stop` is set, for example by a signal handler.
    pub fn stopped_by(stop: Arc<AtomicBool>) -> Self {
        let interactive = std::io::stderr().is_terminal();
        Self { bar: Mutex::new(None), interactive, stop, printed: Mutex::new(None) }
    }

    fn say(&self, line: &str) {
        self.clear();
        // A closed standard error must not end a run.
        let _ = writeln!(std::io::stderr(), "{line}");
    }

    fn clear(&self) {
        let bar = self.bar.lock().ok().and_then(|mut bar| bar.take());
        if let Some(bar) = bar {
            bar.finish_and_clear();
        }
    }

    fn is_due(&self) -> bool {
        let Ok(mut printed) = self.printed.lock() else { return false };
        let is_due = printed.is_none_or(|printed| printed.elapsed() >= LINE_EVERY);
        if is_due {
            *printed = Some(Instant::now());
        }
        is_due
    }

    /// Spinner on a terminal, periodic lines elsewhere.
    fn spin_or_say(&self, message: String) {
        if self.interactive {
            self.spin(message);
        } else if self.is_due() {
            self.say(&format!("  {message}"));
        }
    }

    fn spin(&self, message: String) {
        self.with_bar(None, |bar| bar.set_message(message));
    }

    /// Uses the bar, creating it on first use; `length` turns a spinner into a bar.
    fn with_bar(&self, length: Option<u64>, update: impl FnOnce(&ProgressBar)) {
        if !self.interactive {
            return;
        }
        let Ok(mut slot) = self.bar.lock() else { return };
        let bar = slot.get_or_insert_with(|| {
            let bar = ProgressBar::new_spinner();
            bar.enable_steady_tick(Duration::from_millis(250));
            bar
        });
        if let Some(length) = length {
            let style = ProgressStyle::with_template("  {bar:28} {pos}/{len} blocks  {msg}");
            bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
            bar.set_length(length);
        }
        update(bar);
    }
}

/// Interval of progress lines without a terminal.
const LINE_EVERY: Duration = Duration::from_secs(20);
const STEPS_PER_LINE: u32 = 50;

impl Terminal {
    /// A bar of steps on a terminal, a line per [`STEPS_PER_LINE`] elsewhere.
    fn count(&self, done: u32, of: u32, unit: &str) {
        self.with_bar(Some(u64::from(of)), |bar| {
            let template =
                format!("  {{bar:28}} {{pos}}/{{len}} {unit}  {{per_sec}}  {{eta_precise}} left");
            let style = ProgressStyle::with_template(&template);
            bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
            bar.set_position(u64::from(done));
        });
        if !self.interactive && done > 0 && done.is_multiple_of(STEPS_PER_LINE) {
            self.say(&format!("  {done} of {of} {unit}"));
        }
    }
}

impl Reporter for Terminal {
    fn wants_stop(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    fn event(&self, event: &Event<'_>) {
        match event {
            Event::Line(text) => self.say(text),
            Event::Step(text) => self.spin((*text).to_owned()),
            Event::Status(text) => self.spin_or_say((*text).to_owned()),
            Event::Count { done, of, unit } => self.count(*done, *of, unit),
            Event::RunStarted { id, number, of, blocks } => {
                self.say(&format!("run {number}/{of}: {id}"));
                self.with_bar(Some(*blocks as u64), |bar| bar.set_message("starting"));
            }
            Event::RunSkipped { run } => self.say(&format!("run {}: finished before", run.id)),
            Event::Transactions { height, sent, total } => self.with_bar(None, |bar| {
                bar.set_message(format!("block {height}: {sent} of {total} transactions sent"));
            }),
            Event::Block { block, phase } => self.with_bar(None, |bar| {
                bar.inc(1);
                bar.set_message(format!("{phase}: {:.3} s", block.service_s));
            }),
            Event::RunFinished { run } => self.say(&finished(run)),
            Event::Finished => self.clear(),
        }
    }
}

fn finished(run: &Run) -> String {
    let total = &run.total;
    match run.status {
        Status::Valid | Status::Disturbed => format!(
            "  {} valid: {:.0} tx/s, {:.2} MiB/s, {:.1} % pre-relayed",
            run.id,
            total.tx_per_s,
            total.mib_per_s,
            run.seen_measured * 100.0
        ),
        Status::Void => {
            let reason = run.void_reason.as_deref().unwrap_or_default();
            format!("  {} VOID: {}", run.id, reason.lines().next().unwrap_or_default())
        }
    }
}
