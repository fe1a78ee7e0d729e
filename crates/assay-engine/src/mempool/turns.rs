//! Who may work: blocks first, then one submission of transactions at a time.
//!
//! A block waits for nothing here but for the engine's lock, and of those who submit transactions at most one holds or wants
//! it. What they do without the lock takes cores all the same, so between steps they wait while a block is being judged.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex, MutexGuard};

/// As long as this one submission may wait for blocks in all: while a chain is synced, there is always a block.
const WAIT_MAX: Duration = Duration::from_secs(1);

#[derive(Default)]
pub(crate) struct Turns {
    /// Blocks that are being judged, or wait for the engine's lock.
    blocks: AtomicUsize,
    waiting: Mutex<()>,
    blocks_done: Condvar,
    policy: Mutex<()>,
}

/// The turn of a block.
pub(crate) struct BlockTurn<'a>(&'a Turns);

/// The turn of a submission of transactions.
pub(crate) struct PolicyTurn<'a> {
    turns: &'a Turns,
    deadline: Instant,
    _one_at_a_time: MutexGuard<'a, ()>,
}

impl Turns {
    /// A block begins at once.
    pub(crate) fn block(&self) -> BlockTurn<'_> {
        self.blocks.fetch_add(1, Ordering::SeqCst);
        BlockTurn(self)
    }

    /// A submission begins after the one before it, and after blocks.
    pub(crate) fn policy(&self) -> PolicyTurn<'_> {
        let one_at_a_time = self.policy.lock();
        let deadline = Instant::now() + WAIT_MAX;
        let turn = PolicyTurn { turns: self, deadline, _one_at_a_time: one_at_a_time };
        turn.pause();
        turn
    }
}

impl Drop for BlockTurn<'_> {
    fn drop(&mut self) {
        if self.0.blocks.fetch_sub(1, Ordering::SeqCst) == 1 {
            // Whoever has seen the block and is about to wait holds this lock.
            drop(self.0.waiting.lock());
            self.0.blocks_done.notify_all();
        }
    }
}

impl PolicyTurn<'_> {
    /// Waits while blocks are being judged. Not to be called with the engine's lock held.
    pub(crate) fn pause(&self) {
        if self.turns.blocks.load(Ordering::SeqCst) == 0 {
            return;
        }
        let mut waiting = self.turns.waiting.lock();
        while self.turns.blocks.load(Ordering::SeqCst) > 0 {
            if self.turns.blocks_done.wait_until(&mut waiting, self.deadline).timed_out() {
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicBool;

    use super::*;

    #[test]
    fn submissions_wait_for_blocks_and_for_each_other() {
        let turns = Turns::default();
        let is_judged = AtomicBool::new(false);
        let inside = AtomicUsize::new(0);
        let (first, second) = (turns.block(), turns.block());
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    let turn = turns.policy();
                    assert!(is_judged.load(Ordering::SeqCst), "a block comes first");
                    assert_eq!(inside.fetch_add(1, Ordering::SeqCst), 0, "one at a time");
                    turn.pause();
                    assert_eq!(inside.fetch_sub(1, Ordering::SeqCst), 1);
                });
            }
            drop(first);
            is_judged.store(true, Ordering::SeqCst);
            drop(second);
        });
    }
}
