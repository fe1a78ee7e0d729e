//! Handling of SIGINT and SIGTERM, the same for all commands.
//!
//! A command with an orderly shutdown asks for [`stop_flag`] and returns soon after the flag is set. This module ends
//! commands that have not returned within [`GRACE`], commands that never ask, and any command at the second signal:
//! it kills the child processes and removes the temporary files. Finished results are on disk by then, since journals
//! are written line by line and other files atomically. The exit status is always 128 plus the number of the signal.
//!
//! `assay node` and `assay bitcoind` are exempt: they stop on a signal in their usual way and exit
//! with 0, as Bitcoin Core does.

use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::sync::{Arc, LazyLock};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Context;
use assay_engine::defect;
use assay_report::child::set_scratch;
use assay_report::{Temporary, remove_all};
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use crate::output;

/// Time for an orderly shutdown.
const GRACE: Duration = Duration::from_millis(1500);
/// Polling interval for a second signal.
const PAUSE: Duration = Duration::from_millis(20);

static STOP: LazyLock<Arc<AtomicBool>> = LazyLock::new(Arc::default);
/// True if the command polls the flag.
static IS_ASKED: AtomicBool = AtomicBool::new(false);
/// True if the command is writing out coins, which may take long and would be lost otherwise.
static IS_SAVING: AtomicBool = AtomicBool::new(false);
/// Exit status from the first signal; 0 before it.
static STATUS: AtomicU8 = AtomicU8::new(0);

/// Starts handling signals, and registers the cleanup after a defect. With `has_scratch`, temporary files go to a folder that is removed when the returned value
/// is dropped, or by a signal. Commands without temporary files have no such folder, so that a kill leaves none.
pub(crate) fn watch(has_scratch: bool) -> anyhow::Result<Option<Temporary>> {
    let mut signals = Signals::new([SIGINT, SIGTERM]).context("cannot watch for signals")?;
    let scratch = has_scratch.then(scratch).flatten();
    defect::clean_up_with(clean_up);
    let wait = move || {
        let Some(signal) = signals.forever().next() else { return };
        let status = 128 + u8::try_from(signal).unwrap_or_default();
        STATUS.store(status, Ordering::SeqCst);
        STOP.store(true, Ordering::SeqCst);
        let start = Instant::now();
        while IS_ASKED.load(Ordering::SeqCst)
            && (start.elapsed() < GRACE || IS_SAVING.load(Ordering::SeqCst))
            && signals.pending().next().is_none()
        {
            thread::sleep(PAUSE);
        }
        clean_up();
        output::complain("assay: interrupted");
        signal_hook::low_level::exit(status.into())
    };
    let thread = thread::Builder::new().name("signals".to_owned());
    thread.spawn(wait).context("cannot watch for signals")?;
    Ok(scratch)
}

/// Ends child processes and removes temporary files.
fn clean_up() {
    assay_lab::process::kill_descendants();
    remove_all();
}

/// A flag that is set by the first signal.
pub(crate) fn stop_flag() -> Arc<AtomicBool> {
    IS_ASKED.store(true, Ordering::SeqCst);
    Arc::clone(&STOP)
}

/// Extends [`GRACE`] until verified data is written out.
pub(crate) fn save_first() {
    IS_SAVING.store(true, Ordering::SeqCst);
}

/// Exit status after a signal; `None` without one.
pub(crate) fn status() -> Option<u8> {
    Some(STATUS.load(Ordering::SeqCst)).filter(|status| *status > 0)
}

/// A folder of this process among the system's temporary files. If it cannot be created, as without
/// a writable disk, only commands that need it fail.
fn scratch() -> Option<Temporary> {
    let create =
        || tempfile::Builder::new().prefix("assay-").tempdir().map(tempfile::TempDir::keep);
    let scratch = Temporary::folder(create).ok()?;
    tempfile::env::override_temp_dir(scratch.path()).ok()?;
    set_scratch(scratch.path());
    Some(scratch)
}
