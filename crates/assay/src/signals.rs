//! SIGINT and SIGTERM: one rule for all commands.
//!
//! A command that can stop in order asks for [`stop_flag`] and returns soon after the flag is set. A command that has not returned
//! within [`GRACE`], one that never asks, and any at the second signal, is ended from here: its child processes are killed and
//! its temporary files removed. What is finished is on disk by then, as journals are written line by line and other files whole or
//! not at all. The exit status is 128 and the number of the signal in every case.
//!
//! `assay node` and `assay bitcoind` are not watched: there a signal is the usual way to stop, and they end with 0 as Bitcoin Core does.

use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::sync::{Arc, LazyLock};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Context;
use assay_report::{Temporary, remove_all};
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use crate::output;

/// Time that a command has to stop in order.
const GRACE: Duration = Duration::from_millis(1500);
/// How often is looked for a second signal.
const PAUSE: Duration = Duration::from_millis(20);

static STOP: LazyLock<Arc<AtomicBool>> = LazyLock::new(Arc::default);
/// Whether the command looks at the flag.
static IS_ASKED: AtomicBool = AtomicBool::new(false);
/// Whether the command writes coins that would have to be made again, however long that takes.
static IS_SAVING: AtomicBool = AtomicBool::new(false);
/// Exit status by the first signal; 0 before it.
static STATUS: AtomicU8 = AtomicU8::new(0);

/// Watches for signals from now on. With `has_scratch` all temporary files go to a folder that is removed when this is dropped, or
/// by a signal; a command that makes none has no folder, which it would leave when it is killed.
pub(crate) fn watch(has_scratch: bool) -> anyhow::Result<Option<Temporary>> {
    let mut signals = Signals::new([SIGINT, SIGTERM]).context("cannot watch for signals")?;
    let scratch = has_scratch.then(scratch).flatten();
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
        assay_lab::process::kill_descendants();
        remove_all();
        output::complain("assay: interrupted");
        signal_hook::low_level::exit(status.into())
    };
    let thread = thread::Builder::new().name("signals".to_owned());
    thread.spawn(wait).context("cannot watch for signals")?;
    Ok(scratch)
}

/// A flag that the first signal sets.
pub(crate) fn stop_flag() -> Arc<AtomicBool> {
    IS_ASKED.store(true, Ordering::SeqCst);
    Arc::clone(&STOP)
}

/// Lets the command take longer than [`GRACE`]: it writes what it has verified first.
pub(crate) fn save_first() {
    IS_SAVING.store(true, Ordering::SeqCst);
}

/// Exit status after a signal; `None` where there was none.
pub(crate) fn status() -> Option<u8> {
    Some(STATUS.load(Ordering::SeqCst)).filter(|status| *status > 0)
}

/// A folder of this process among the system's temporary files, for all that it puts there. Where it cannot be made, such as on a
/// system without a writable disk, a command that needs it says so.
fn scratch() -> Option<Temporary> {
    let create =
        || tempfile::Builder::new().prefix("assay-").tempdir().map(tempfile::TempDir::keep);
    let scratch = Temporary::folder(create).ok()?;
    tempfile::env::override_temp_dir(scratch.path()).ok()?;
    Some(scratch)
}
