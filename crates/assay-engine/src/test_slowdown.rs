//! Deliberate slowdown, to test that a comparison detects it.
//!
//! With the feature `slowed` every validated block is followed by a busy wait of a twentieth of its time, before the new tip is
//! announced. Without the feature this compiles to nothing.

use std::cell::Cell;
use std::time::{Duration, Instant};

/// One twentieth: 5 %.
const PART: u32 = 20;

thread_local! {
    static BEGIN: Cell<Option<Instant>> = const { Cell::new(None) };
}

/// Starts the measurement of a block on this thread.
pub(crate) fn block_begins() {
    BEGIN.set(Some(Instant::now()));
}

/// Ends the measurement of a block, if started, and waits.
pub(crate) fn block_ends() {
    if let Some(begin) = BEGIN.take() {
        spin(begin.elapsed());
    }
}

/// Keeps this core busy for a twentieth of `took`. A sleep would free it for others.
pub(crate) fn spin(took: Duration) {
    let (begin, goal) = (Instant::now(), took / PART);
    while begin.elapsed() < goal {
        std::hint::spin_loop();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_twentieth_is_added_once() {
        let time = |work: fn()| {
            let begin = Instant::now();
            work();
            begin.elapsed()
        };
        assert!(time(|| spin(Duration::from_millis(200))) >= Duration::from_millis(10));
        block_begins();
        std::thread::sleep(Duration::from_millis(100));
        assert!(time(block_ends) >= Duration::from_millis(5));
        assert_eq!(BEGIN.get(), None, "nothing is begun any more");
    }
}
