//! The engine refuses to go on: whoever runs it should end.

use parking_lot::{Condvar, Mutex};

/// Why, once it has happened.
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
    /// It has happened; the first cause counts.
    pub(crate) fn set(&self, cause: String) {
        self.state.lock().cause.get_or_insert(cause);
        self.changed.notify_all();
    }

    /// It cannot happen any more.
    pub(crate) fn close(&self) {
        self.state.lock().is_closing = true;
        self.changed.notify_all();
    }

    /// The cause, if it has happened.
    pub(crate) fn cause(&self) -> Option<String> {
        self.state.lock().cause.clone()
    }

    /// Waits for it; `None` when it cannot happen any more.
    pub(crate) fn wait(&self) -> Option<String> {
        let mut state = self.state.lock();
        while state.cause.is_none() && !state.is_closing {
            self.changed.wait(&mut state);
        }
        state.cause.clone()
    }
}
