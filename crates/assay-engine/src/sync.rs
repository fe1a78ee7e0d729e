//! Locks, atomics and threads for state shared between threads: those of `parking_lot`, `std` and `rayon`, or with the feature
//! `model` those of shuttle, which chooses the next thread at each of them (`src/model.rs`, `docs/block-states.md`).

#[cfg(not(feature = "model"))]
mod real {
    use rayon::ThreadPool;
    use rayon::prelude::*;

    pub(crate) use parking_lot::{Condvar, Mutex, MutexGuard};
    pub(crate) use std::sync::atomic;

    /// Runs `task` on a thread of the pool, asynchronously.
    pub(crate) fn spawn(pool: &ThreadPool, task: impl FnOnce() + Send + 'static) {
        pool.spawn(task);
    }

    /// Runs `work` on all items, on the threads of the pool.
    pub(crate) fn for_each<T: Send>(
        pool: &ThreadPool,
        items: &mut [T],
        work: impl Fn(usize, &mut T) + Sync + Send,
    ) {
        pool.install(|| {
            items.par_iter_mut().enumerate().for_each(|(index, item)| work(index, item));
        });
    }
}

#[cfg(not(feature = "model"))]
pub(crate) use real::*;

#[cfg(feature = "model")]
mod modelled {
    use std::ops::{Deref, DerefMut};
    use std::time::Duration;

    use rayon::ThreadPool;

    pub(crate) use shuttle::sync::atomic;

    #[derive(Debug, Default)]
    pub(crate) struct Mutex<T>(shuttle::sync::Mutex<T>);

    /// Always holds its guard, except while it waits on a [`Condvar`].
    pub(crate) struct MutexGuard<'a, T> {
        of: &'a Mutex<T>,
        held: Option<shuttle::sync::MutexGuard<'a, T>>,
    }

    #[derive(Debug, Default)]
    pub(crate) struct Condvar(shuttle::sync::Condvar);

    pub(crate) struct Timeout(bool);

    impl Timeout {
        pub(crate) fn timed_out(&self) -> bool {
            self.0
        }
    }

    impl<T> Mutex<T> {
        pub(crate) fn new(value: T) -> Self {
            Self(shuttle::sync::Mutex::new(value))
        }

        pub(crate) fn lock(&self) -> MutexGuard<'_, T> {
            MutexGuard { of: self, held: Some(self.0.lock().expect("a panic ends the model")) }
        }

        pub(crate) fn try_lock(&self) -> Option<MutexGuard<'_, T>> {
            self.0.try_lock().ok().map(|held| MutexGuard { of: self, held: Some(held) })
        }
    }

    impl<T> MutexGuard<'_, T> {
        pub(crate) fn unlock_fair(guard: Self) {
            drop(guard);
        }
    }

    impl<T> Deref for MutexGuard<'_, T> {
        type Target = T;

        fn deref(&self) -> &T {
            self.held.as_ref().expect("it is held")
        }
    }

    impl<T> DerefMut for MutexGuard<'_, T> {
        fn deref_mut(&mut self) -> &mut T {
            self.held.as_mut().expect("it is held")
        }
    }

    impl Condvar {
        pub(crate) fn new() -> Self {
            Self(shuttle::sync::Condvar::new())
        }

        pub(crate) fn notify_all(&self) {
            self.0.notify_all();
        }

        pub(crate) fn wait<T>(&self, guard: &mut MutexGuard<'_, T>) {
            let held = guard.held.take().expect("it is held");
            guard.held = Some(self.0.wait(held).expect("a panic ends the model"));
        }

        /// The model has no time: another thread may run, and the wait times out.
        pub(crate) fn wait_for<T>(&self, guard: &mut MutexGuard<'_, T>, _: Duration) -> Timeout {
            drop(guard.held.take());
            shuttle::thread::yield_now();
            *guard = guard.of.lock();
            Timeout(true)
        }
    }

    pub(crate) fn spawn(_: &ThreadPool, task: impl FnOnce() + Send + 'static) {
        shuttle::thread::spawn(task);
    }

    /// On this thread: items are independent of each other, but the effects of `work` are not.
    pub(crate) fn for_each<T: Send>(
        _: &ThreadPool,
        items: &mut [T],
        work: impl Fn(usize, &mut T) + Sync + Send,
    ) {
        items.iter_mut().enumerate().for_each(|(index, item)| work(index, item));
    }
}

#[cfg(feature = "model")]
pub(crate) use modelled::*;
