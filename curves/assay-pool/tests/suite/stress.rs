//! Stress tests of Constantine's pool: overhead, extreme imbalance, nesting, contention, conditional tasks.

use std::num::NonZero;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use assay_pool::{Pool, Scope, Worker, chunks};

fn pool(threads: usize) -> Pool {
    Pool::new(NonZero::new(threads).expect("not zero")).expect("threads")
}

/// Pools of one thread, of one per processor, and of more.
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

/// Work that compilers cannot fold.
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

/// One of 10,000 items, the last, the first or a middle one, takes as long as all others together.
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

/// Parts are combined in order, independent of the threads that ran them.
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

/// More concurrent callers than the pool has seats.
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
                        // A task that enters the pool from outside again.
                        pool.run(|_| pool.run(|worker| assert_eq!(fibonacci(worker, 10), 55)));
                    }
                });
            }
        });
    }
}

/// A search in which each task decides on spawning others, and that ends with the first result.
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

/// Handles of handles, joined in another order.
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

/// Pauses longer than the search of an idle worker.
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
