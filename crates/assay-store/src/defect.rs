//! Fail-stop: after a defect the process ends at once and reports the reason.
//!
//! A panic is a defect in this program, never a response to bad input. An unwind can leave related structures inconsistent (coins
//! and tip, index and chain), and code that catches it would continue with that state and write it to disk. So no code does:
//! programs call [`stop_on_panic`] first, and code that changes state holds a [`Whole`] meanwhile, which ends the
//! process in programs that did not. The disk is then as after a SIGKILL, and every start recovers from that.

mod points;

use std::any::Any;
use std::io::Write as _;
use std::panic::PanicHookInfo;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

pub use points::{HAS_POINTS, Point, point, set_delays, write_passes};

/// Exit status after a defect: `EX_SOFTWARE` of `sysexits.h`.
pub const EXIT_STATUS: i32 = 70;

/// Limit for the reason and the cleanup: a lock of the failing thread, or a pipe without a reader, must not keep the process alive.
const REPORT_TIMEOUT: Duration = Duration::from_secs(2);

static LOG: OnceLock<fn(&str)> = OnceLock::new();
static CLEANUP: OnceLock<fn()> = OnceLock::new();

/// Also passes the reason to `write`, for the program's log. Only the first call has an effect.
pub fn log_to(write: fn(&str)) {
    LOG.get_or_init(|| write);
}

/// Also calls `cleanup` before the process ends, for what outlives it: child processes and temporary files. Only the first call
/// has an effect.
pub fn clean_up_with(cleanup: fn()) {
    CLEANUP.get_or_init(|| cleanup);
}

/// Ends the process with [`EXIT_STATUS`] after writing `reason` to standard error and the log.
///
/// No destructor and no exit handler runs, since the state is inconsistent.
pub fn stop(reason: &str) -> ! {
    static IS_STOPPING: AtomicBool = AtomicBool::new(false);
    if IS_STOPPING.swap(true, Ordering::SeqCst) {
        // Another thread writes its reason, or this write failed; the process ends shortly.
        thread::sleep(REPORT_TIMEOUT);
    } else {
        report(reason.to_owned());
    }
    signal_hook::low_level::exit(EXIT_STATUS)
}

fn report(reason: String) {
    let (done, is_done) = mpsc::channel();
    let write = move || {
        let text = format!("assay: stopped by a defect: {reason}\n");
        // A failed write of the report cannot be reported.
        let _ = std::io::stderr().lock().write_all(text.as_bytes());
        if let Some(log) = LOG.get() {
            log(&reason);
        }
        if let Some(cleanup) = CLEANUP.get() {
            cleanup();
        }
        let _ = done.send(());
    };
    // On a separate thread: this one may hold the lock of the log or of standard error.
    if thread::Builder::new().name("defect".to_owned()).spawn(write).is_ok() {
        let _ = is_done.recv_timeout(REPORT_TIMEOUT);
    }
}

/// Makes a panic on any thread end the process. Programs call it first.
pub fn stop_on_panic() {
    std::panic::set_hook(Box::new(|info| stop(&describe(info))));
}

fn describe(info: &PanicHookInfo<'_>) -> String {
    let thread = thread::current();
    let name = thread.name().unwrap_or("unnamed");
    let place = info.location().map_or_else(String::new, |at| format!(" at {at}"));
    let cause = message(info.payload());
    let backtrace = std::backtrace::Backtrace::capture();
    let trace = match backtrace.status() {
        std::backtrace::BacktraceStatus::Captured => format!("\n{backtrace}"),
        _ => String::new(),
    };
    format!("thread {name} panicked{place}: {cause}{trace}")
}

fn message(payload: &(dyn Any + Send)) -> &str {
    let text = payload.downcast_ref::<&str>().copied();
    text.or_else(|| payload.downcast_ref::<String>().map(String::as_str)).unwrap_or("no message")
}

/// Guard for a change of state in several dependent steps: a panic that unwinds through it ends the process.
#[derive(Debug)]
pub struct Whole {
    what: &'static str,
    /// Destructors that run because of an earlier panic may change state.
    was_panicking: bool,
}

impl Whole {
    /// Starts the change `what`, the name in the report.
    pub fn begin(what: &'static str) -> Self {
        Self { what, was_panicking: thread::panicking() }
    }
}

impl Drop for Whole {
    fn drop(&mut self) {
        if !self.was_panicking && thread::panicking() {
            stop(&format!("a panic interrupted a change of {}", self.what));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Changes state in its destructor during the unwind of another panic.
    struct Tidy;

    impl Drop for Tidy {
        fn drop(&mut self) {
            drop(Whole::begin("nothing"));
        }
    }

    #[test]
    fn a_completed_change_does_not_end_the_process() {
        drop(Whole::begin("nothing"));
        let outcome = std::panic::catch_unwind(|| {
            let _tidy = Tidy;
            panic!("as expected");
        });
        assert!(outcome.is_err());
    }
}
