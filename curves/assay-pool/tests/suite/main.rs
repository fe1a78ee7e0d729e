//! The pool from outside: the tests that stress Constantine's pool (overhead, extreme imbalance, nesting, contention, conditional
//! tasks), and the ends of tasks and pools (panics, threads, sleep).

use std::num::NonZero;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use assay_pool::{Pool, Scope, Worker, chunks};

fn pool(threads: usize) -> Pool {
    Pool::new(NonZero::new(threads).expect("not zero")).expect("threads")
}

/// The text with which it panics.
fn panic_of<R>(work: impl FnOnce() -> R) -> &'static str {
    let Err(panic) = catch_unwind(AssertUnwindSafe(work)) else { panic!("it should panic") };
    panic.downcast_ref::<&str>().expect("a text")
}

/// Waits until another thread has done its part, so that the fork was stolen.
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
fn a_panic_in_a_stolen_half_comes_back() {
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

/// Tasks that never ran are dropped exactly once, and so are results that nobody reads.
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
        // The pool works as before.
        assert_eq!(pool.run(|worker| worker.join(|_| 1, |_| 2)), (1, 2));
    }
}

/// States of this process's threads that are named so: `S` sleeps, `R` runs or wants to.
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

/// Of one thread, of as many as there are processors, and of more.
fn pools() -> [Pool; 3] {
    [pool(1), pool(2), pool(7)]
}

fn fibonacci(worker: &Worker, n: u64) -> u64 {
    if n < 2 {
        return n;
    }
    let (a, b) = worker.join(|w| fibonacci(w, n - 1), |w| fibonacci(w, n - 2));
    a + b
}

/// Some steps that no compiler foresees.
fn work(steps: u64) -> u64 {
    (0..steps).fold(std::hint::black_box(1), |x, step| (x ^ (x >> 29)).wrapping_mul(step | 1))
}

#[test]
fn overhead_of_forks_that_do_nothing() {
    for pool in pools() {
        for _ in 0..10 {
            assert_eq!(pool.run(|worker| fibonacci(worker, 22)), 17_711);
        }
    }
}

#[test]
fn overhead_of_empty_tasks() {
    const TASKS: usize = 100_000;
    for pool in pools() {
        let count = AtomicUsize::new(0);
        pool.run(|worker| {
            worker.scope(|worker, scope| {
                for _ in 0..TASKS {
                    scope.spawn(worker, |_, _| {
                        count.fetch_add(1, Ordering::Relaxed);
                    });
                }
            });
        });
        assert_eq!(count.into_inner(), TASKS);
    }
}

/// Of 10,000 items the last, the first or one in the middle takes as long as all others together.
#[test]
fn extreme_imbalance() {
    const ITEMS: usize = 10_000;
    for pool in pools() {
        for heavy in [0, 3_333, ITEMS - 1] {
            let visit = |_: &Worker, sum: usize, item: usize| {
                std::hint::black_box(work(if item == heavy { 1_000_000 } else { 100 }));
                sum + item
            };
            let sum = pool.run(|worker| worker.fold(0..ITEMS, || 0, visit, |a, b| a + b));
            assert_eq!(sum, ITEMS * (ITEMS - 1) / 2);
        }
    }
}

#[test]
fn nested_loops_and_forks() {
    for pool in pools() {
        let mut table = vec![0u64; 40 * 30];
        pool.run(|worker| {
            worker.for_each(chunks(&mut table, 30), |worker, (row, cells)| {
                worker.for_each(chunks(cells, 1), |worker, (column, cell)| {
                    let count = (row * column) as u64;
                    let sum =
                        worker.fold(0..100, || count, |_, a, b| a + b as u64, |a, b| a + b - count);
                    cell[0] = sum + fibonacci(worker, 5) - 5;
                });
            });
        });
        let right = (0..40 * 30).map(|at| (at / 30 * (at % 30)) as u64 + 4_950);
        assert!(table.into_iter().eq(right));
    }
}

/// Parts are combined in their order, on whichever thread they ran.
#[test]
fn folds_keep_the_order() {
    for pool in pools() {
        for count in [0, 1, 2, 3, 1_000] {
            let push = |_: &Worker, mut list: Vec<usize>, item| {
                std::hint::black_box(work(50));
                list.push(item);
                list
            };
            let list =
                pool.run(|worker| worker.fold(0..count, Vec::new, push, |a, b| [a, b].concat()));
            assert!(list.into_iter().eq(0..count));
        }
        let mut slice = [0u8; 10];
        pool.run(|worker| {
            worker.for_each(chunks(&mut slice, 4), |_, (i, part)| part.fill(i as u8));
        });
        assert_eq!(slice, [0, 0, 0, 0, 1, 1, 1, 1, 2, 2]);
    }
}

/// More callers at once than the pool has seats.
#[test]
fn contention_of_callers() {
    for pool in pools() {
        thread::scope(|scope| {
            for _ in 0..12 {
                scope.spawn(|| {
                    for n in 0..40 {
                        let spawned = pool.spawn(move |worker| fibonacci(worker, n % 15));
                        let (here, there) =
                            pool.run(|worker| (fibonacci(worker, n % 15), spawned.join(worker)));
                        assert_eq!(here, there);
                        // A task that comes in from outside again.
                        pool.run(|_| pool.run(|worker| assert_eq!(fibonacci(worker, 10), 55)));
                    }
                });
            }
        });
    }
}

/// A search in which each task decides whether others are made, and that ends once one has found it.
#[test]
fn conditional_tasks() {
    fn look<'a>(
        worker: &Worker,
        scope: &Scope<'a>,
        node: u64,
        found: &'a AtomicU64,
        seen: &'a AtomicUsize,
    ) {
        seen.fetch_add(1, Ordering::Relaxed);
        if work(node % 64) ^ node == u64::MAX || node == 77_777 {
            found.store(node, Ordering::Relaxed);
        }
        for child in [2 * node, 2 * node + 1] {
            if child < 1 << 17 && found.load(Ordering::Relaxed) == 0 {
                scope.spawn(worker, move |worker, scope| look(worker, scope, child, found, seen));
            }
        }
    }
    for pool in pools() {
        let (found, seen) = (AtomicU64::new(0), AtomicUsize::new(0));
        pool.run(|worker| {
            worker.scope(|worker, scope| look(worker, scope, 1, &found, &seen));
        });
        assert_eq!(found.into_inner(), 77_777);
        assert!(seen.into_inner() < 1 << 17);
    }
}

/// Futures of futures, awaited in an order of their own.
#[test]
fn tasks_that_wait_for_tasks() {
    fn sum(worker: &Worker, from: u64, to: u64) -> u64 {
        if to - from <= 3 {
            return (from..to).sum();
        }
        let middle = from.midpoint(to);
        let second = worker.spawn(move |worker| sum(worker, middle, to));
        let first = worker.spawn(move |worker| sum(worker, from, middle));
        second.join(worker) + first.join(worker)
    }
    for pool in pools() {
        let handle = pool.spawn(|worker| sum(worker, 0, 10_000));
        assert_eq!(pool.run(|worker| handle.join(worker)), 49_995_000);
    }
}

#[test]
fn dropping_a_pool_runs_spawned_tasks() {
    for pool in pools() {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        COUNT.store(0, Ordering::Relaxed);
        let handles: Vec<_> = (0..1_000)
            .map(|_| {
                pool.spawn(|worker| {
                    drop(worker.spawn(|_| COUNT.fetch_add(1, Ordering::Relaxed)));
                })
            })
            .collect();
        drop(pool);
        assert!(handles.iter().all(assay_pool::Handle::is_finished));
        assert_eq!(COUNT.load(Ordering::Relaxed), 1_000);
    }
}

/// Pauses that are longer than anybody searches.
#[test]
fn sleeping_and_waking() {
    let pool = pool(4);
    for round in 0..200u64 {
        let xor = |_: &Worker, sum, _| sum ^ work(2_000);
        let sum = pool.run(|worker| worker.fold(0..16, || 0, xor, |a, b| a ^ b));
        assert_eq!(sum, 0, "an even number of equal terms");
        let pause = Duration::from_micros(if round % 10 == 0 { 500 } else { round });
        let start = Instant::now();
        while start.elapsed() < pause {
            thread::yield_now();
        }
    }
}
