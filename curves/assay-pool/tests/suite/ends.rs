//! Termination of tasks and pools: panics, threads, sleep.

use std::num::NonZero;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use assay_pool::{Pool, Worker};

fn pool(threads: usize) -> Pool {
    Pool::new(NonZero::new(threads).expect("not zero")).expect("threads")
}

/// Message of the panic.
fn panic_of<R>(work: impl FnOnce() -> R) -> &'static str {
    let Err(panic) = catch_unwind(AssertUnwindSafe(work)) else { panic!("it should panic") };
    panic.downcast_ref::<&str>().expect("a text")
}

/// Waits until another thread has started its half, so that the fork was stolen.
fn wait_for(count: &AtomicUsize, at_least: usize) {
    let start = Instant::now();
    while count.load(Ordering::Acquire) < at_least {
        assert!(start.elapsed() < Duration::from_mins(1), "nobody stole it");
        thread::yield_now();
    }
}

#[test]
fn a_panic_in_the_first_half_waits_for_the_second() {
    let pool = pool(2);
    for _ in 0..100 {
        let (began, ended) = (AtomicUsize::new(0), AtomicUsize::new(0));
        let text = panic_of(|| {
            pool.run(|worker| {
                worker.join(
                    |_| {
                        wait_for(&began, 1);
                        panic!("first")
                    },
                    |_| {
                        began.fetch_add(1, Ordering::Release);
                        thread::yield_now();
                        ended.fetch_add(1, Ordering::Release);
                    },
                )
            })
        });
        assert_eq!((text, ended.load(Ordering::Acquire)), ("first", 1));
    }
}

#[test]
fn a_panic_in_a_stolen_half_is_propagated() {
    let pool = pool(2);
    for _ in 0..100 {
        let began = AtomicUsize::new(0);
        let text = panic_of(|| {
            pool.run(|worker| {
                worker.join(
                    |_| wait_for(&began, 1),
                    |_| {
                        began.fetch_add(1, Ordering::Release);
                        panic!("second")
                    },
                )
            })
        });
        assert_eq!(text, "second");
    }
}

/// A task that did not run is dropped once, and so is an unused result.
#[test]
fn a_panic_drops_everything_once() {
    fn fork(worker: &Worker, depth: usize, owned: Arc<()>) -> Arc<()> {
        assert!(depth > 0, "{}", "at the bottom");
        let kept = Arc::clone(&owned);
        worker.join(move |w| fork(w, depth - 1, owned), move |_| kept).0
    }
    for threads in [1, 2] {
        let pool = pool(threads);
        for depth in 0..50 {
            let owned = Arc::new(());
            let copy = Arc::clone(&owned);
            catch_unwind(AssertUnwindSafe(|| pool.run(|worker| fork(worker, depth, copy))))
                .expect_err("it panics at the bottom");
            assert_eq!(Arc::strong_count(&owned), 1);
        }
    }
}

#[test]
fn panics_in_loops_scopes_and_spawned_tasks() {
    for threads in [1, 3] {
        let pool = pool(threads);
        let text = panic_of(|| {
            pool.run(|worker| {
                worker.for_each(0..1_000, |_, item| {
                    assert!(item != 500, "loop");
                });
            });
        });
        assert_eq!(text, "loop");
        let count = AtomicUsize::new(0);
        let text = panic_of(|| {
            pool.run(|worker| {
                worker.scope(|worker, scope| {
                    for item in 0..100 {
                        let count = &count;
                        scope.spawn(worker, move |_, _| {
                            count.fetch_add(1, Ordering::Relaxed);
                            assert!(item != 50, "scope");
                        });
                    }
                });
            });
        });
        assert_eq!((text, count.into_inner()), ("scope", 100));
        let handle = pool.spawn(|_| panic!("spawned"));
        assert_eq!(panic_of(|| pool.run(|worker| handle.join(worker))), "spawned");
        // The pool still works.
        assert_eq!(pool.run(|worker| worker.join(|_| 1, |_| 2)), (1, 2));
    }
}

/// States of this process's threads with this name: `S` sleeping, `R` runnable.
#[cfg(target_os = "linux")]
fn states(name: &str) -> Vec<String> {
    let tasks = std::fs::read_dir("/proc/self/task").into_iter().flatten().flatten();
    let state = |task: std::fs::DirEntry| {
        let stat = std::fs::read_to_string(task.path().join("stat")).ok()?;
        let (found, rest) = stat.split_once('(')?.1.rsplit_once(')')?;
        found.starts_with(name).then(|| rest.trim_start()[..1].to_owned())
    };
    tasks.filter_map(state).collect()
}

#[cfg(target_os = "linux")]
#[test]
fn idle_threads_sleep_and_end_with_the_pool() {
    let name = "sleeper";
    let pool = Pool::named(name, NonZero::new(6).expect("not zero")).expect("threads");
    for _ in 0..3 {
        let sum = pool.run(|worker| worker.fold(0..100, || 0, |_, a, b| a + b, |a, b| a + b));
        assert_eq!(sum, 4_950);
        let start = Instant::now();
        while states(name) != ["S"; 5] {
            assert!(start.elapsed() < Duration::from_mins(1), "{:?}", states(name));
            thread::yield_now();
        }
    }
    drop(pool);
    assert!(states(name).is_empty());
}

#[test]
fn a_task_may_drop_its_pool() {
    for _ in 0..50 {
        let pool = Arc::new(pool(3));
        let (copy, gone) = (Arc::clone(&pool), Arc::new(AtomicUsize::new(0)));
        let done = Arc::clone(&gone);
        drop(pool.spawn(move |_| {
            drop(copy);
            done.fetch_add(1, Ordering::Release);
        }));
        drop(pool);
        wait_for(&gone, 1);
    }
}
