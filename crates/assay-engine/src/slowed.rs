//! Slower on purpose, to see whether a comparison finds it.
//!
//! With the feature `slowed` every block that is judged is followed by a busy wait of a twentieth of the time that it
//! took, before anybody hears of the new tip. Without the feature nothing of this is there.

use std::cell::Cell;
use std::time::{Duration, Instant};

/// A twentieth: 5 %.
const PART: u32 = 20;

thread_local! {
    static BEGIN: Cell<Option<Instant>> = const { Cell::new(None) };
}

/// A block has come to this thread.
pub(crate) fn block_begins() {
    BEGIN.set(Some(Instant::now()));
}

/// Its judgement is done, if one was begun.
pub(crate) fn block_ends() {
    if let Some(begin) = BEGIN.take() {
        spin(begin.elapsed());
    }
}

/// Keeps this core busy for a twentieth of `took`. Sleeping would let others have it.
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
