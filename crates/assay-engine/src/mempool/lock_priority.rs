//! Lock priority: block connection before mempool admission, one submission at a time.
//!
//! A block waits only for the engine's lock, and at most one submission holds or waits for it. Work without the lock uses cores
//! as well, so submissions pause between steps while a block is being validated.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex, MutexGuard};

/// Total time that one submission may wait for blocks: during IBD there is always a block.
const WAIT_MAX: Duration = Duration::from_secs(1);

#[derive(Default)]
pub(crate) struct LockPriority {
    /// Blocks being validated, or waiting for the engine's lock.
    blocks: AtomicUsize,
    waiting: Mutex<()>,
    blocks_done: Condvar,
    policy: Mutex<()>,
}

pub(crate) struct BlockTurn<'a>(&'a LockPriority);

/// The turn of a submission of transactions.
pub(crate) struct PolicyTurn<'a> {
    turns: &'a LockPriority,
    deadline: Instant,
    _one_at_a_time: MutexGuard<'a, ()>,
}

impl LockPriority {
    /// Starts a block at once.
    pub(crate) fn block(&self) -> BlockTurn<'_> {
        self.blocks.fetch_add(1, Ordering::SeqCst);
        BlockTurn(self)
    }

    /// Starts a submission after the previous one, and after blocks.
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
            // A thread that has seen the block and is about to wait holds this lock.
            drop(self.0.waiting.lock());
            self.0.blocks_done.notify_all();
        }
    }
}

impl PolicyTurn<'_> {
    /// Waits while blocks are being validated. Must not be called under the engine's lock.
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
        let turns = LockPriority::default();
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
