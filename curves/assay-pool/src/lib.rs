//! A thread pool by work stealing: forks that cost a few instructions, and loops that are split only when a thread has
//! nothing to do.
//!
//! ```
//! use assay_pool::{Pool, Worker, chunks};
//!
//! fn fibonacci(worker: &Worker, n: u64) -> u64 {
//!     if n < 2 {
//!         return n;
//!     }
//!     let (a, b) = worker.join(|worker| fibonacci(worker, n - 1), |worker| fibonacci(worker, n - 2));
//!     a + b
//! }
//! # fn main() -> std::io::Result<()> {
//! let pool = Pool::of_all_processors()?;
//! assert_eq!(pool.run(|worker| fibonacci(worker, 20)), 6765);
//! let sum = pool.run(|worker| worker.fold(0..1000, || 0, |_, sum, i| sum + i, |a, b| a + b));
//! assert_eq!(sum, 499_500);
//! let mut squares = [0; 100];
//! pool.run(|worker| worker.for_each(chunks(&mut squares, 1), |_, (i, cell)| cell[0] = i * i));
//! assert_eq!(squares[9], 81);
//! let later = pool.spawn(|_| 6 * 7);
//! assert_eq!(pool.run(|worker| later.join(worker)), 42);
//! # Ok(())
//! # }
//! ```
//!
//! - [`Worker::join`] forks: the second task waits on the stack of the first. The oldest waiting
//!   tasks are offered to thieves, never none. A fork that is not stolen needs no atomic operation.
//! - [`Worker::for_each`] and [`Worker::fold`] are loops, which may be nested. There is no grain size: before each
//!   item the worker checks for idle threads, and if there are any, shares the rest but for its own part.
//! - [`Worker::spawn`] and [`Pool::spawn`] return a [`Handle`]; [`Worker::scope`] waits for tasks that borrow.
//! - A thread that waits for a fork, a handle or a scope does other work meanwhile. A thread
//!   without work searches for 50 µs and then sleeps.
//! - A panic in a task is propagated to the waiting caller.
//!
//! Deliberately absent: priorities, thread-local state (the worker is an argument), iterators, and asynchronous I/O.
//! Rationale: `docs/adr/0042-thread-pool.md`.

mod deque;
mod idle;
mod loops;
mod pool;
mod worker;

pub use loops::{Chunks, Items, chunks};
pub use pool::Pool;
pub use worker::{Handle, Scope, Worker};

/// Atomics, locks and parking: the standard library's, or in model tests loom's, which tries all interleavings.
mod sync {
    #[cfg(all(test, loom))]
    pub(crate) use loom::{
        sync::{
            Mutex,
            atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicUsize, Ordering, fence},
        },
        thread::{Thread, current, park, yield_now},
    };
    #[cfg(not(all(test, loom)))]
    pub(crate) use std::{
        sync::{
            Mutex,
            atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicUsize, Ordering, fence},
        },
        thread::{Thread, current, park, yield_now},
    };
}
