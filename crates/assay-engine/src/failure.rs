//! A failure of the engine, after which the process should end.

use parking_lot::{Condvar, Mutex};

/// Cause of the failure, once it has occurred.
#[derive(Default)]
pub(crate) struct Failure {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    cause: Option<String>,
    is_closing: bool,
}

impl Failure {
    /// Records the failure; only the first cause is kept.
    pub(crate) fn set(&self, cause: String) {
        self.state.lock().cause.get_or_insert(cause);
        self.changed.notify_all();
    }

    /// The engine has closed without a failure.
    pub(crate) fn close(&self) {
        self.state.lock().is_closing = true;
        self.changed.notify_all();
    }

    /// The cause, if the engine has failed.
    pub(crate) fn cause(&self) -> Option<String> {
        self.state.lock().cause.clone()
    }

    /// Waits for a failure; `None` when the engine has closed.
    pub(crate) fn wait(&self) -> Option<String> {
        let mut state = self.state.lock();
        while state.cause.is_none() && !state.is_closing {
            self.changed.wait(&mut state);
        }
        state.cause.clone()
    }
}
