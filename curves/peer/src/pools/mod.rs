//! Thread pools behind the interface of the workloads: forks with a join, and loops.

use std::num::NonZero;
use std::thread;

use orx_parallel::{IntoParIter as _, Par as _};
use rayon::prelude::*;

use crate::table::Table;

/// A pool that runs loops.
pub trait Pool: Copy + Send + Sync + 'static {
    /// Combines the results of `map` for 0, 1, … `count`, in any order.
    fn reduce<T: Send + 'static>(
        self,
        count: usize,
        identity: fn() -> T,
        map: impl Fn(usize) -> T + Sync + Send,
        combine: fn(T, T) -> T,
    ) -> T;

    /// Calls `body` with each row and its number.
    fn rows<T: Send>(
        self,
        table: &mut [T],
        columns: usize,
        body: impl Fn(usize, &mut [T]) + Sync + Send,
    );
}

/// A pool with tasks that fork.
pub trait Forks: Pool {
    /// Context that a task forks with.
    type Scope<'a>;

    /// Runs both halves, the second possibly on another thread, and waits for both. Inlined for all
    /// pools, so that none pays for copies of closures.
    fn join<A: Send, B: Send>(
        scope: &mut Self::Scope<'_>,
        first: impl FnOnce(&mut Self::Scope<'_>) -> A + Send,
        second: impl FnOnce(&mut Self::Scope<'_>) -> B + Send,
    ) -> (A, B);

    fn run<R: Send>(self, task: impl Task<R>) -> R;
}

/// A task that forks, independent of the pool.
pub trait Task<R>: Send {
    fn run<F: Forks>(self, scope: &mut F::Scope<'_>) -> R;
}

/// Implements [`Pool`], whose signatures are the same for each.
macro_rules! pool {
    (
        $pool:ty;
        reduce($count:ident, $identity:ident, $map:ident, $combine:ident) $reduce:block
        rows($table:ident, $columns:ident, $body:ident) $rows:block
    ) => {
        impl $crate::pools::Pool for $pool {
            fn reduce<T: Send + 'static>(
                self,
                $count: usize,
                $identity: fn() -> T,
                $map: impl Fn(usize) -> T + Sync + Send,
                $combine: fn(T, T) -> T,
            ) -> T $reduce

            fn rows<T: Send>(
                self,
                $table: &mut [T],
                $columns: usize,
                $body: impl Fn(usize, &mut [T]) + Sync + Send,
            ) $rows
        }
    };
}

/// Implements [`Forks`] for a pool with its scope.
macro_rules! forks {
    (
        $(#[$documentation:meta])*
        $pool:ty: $scope_type:ty;
        join($scope:ident, $first:ident, $second:ident) $join:block
        run($task:ident) $run:block
    ) => {
        impl $crate::pools::Forks for $pool {
            $(#[$documentation])*
            type Scope<'a> = $scope_type;

            #[inline(always)]
            fn join<A: Send, B: Send>(
                $scope: &mut Self::Scope<'_>,
                $first: impl FnOnce(&mut Self::Scope<'_>) -> A + Send,
                $second: impl FnOnce(&mut Self::Scope<'_>) -> B + Send,
            ) -> (A, B) $join

            fn run<R: Send>(self, $task: impl $crate::pools::Task<R>) -> R $run
        }
    };
}

mod own;
pub mod render;
pub mod workloads;

pub const NAMES: [&str; 6] =
    ["sequential", "assay-pool", "rayon", "chili", "orx-parallel", "scoped-threads"];

/// Operations of a pool, and its version.
pub fn table(name: &str) -> Option<(&'static str, Table)> {
    let mut table = Table::default();
    let version = match name {
        "sequential" => {
            workloads::forks(&mut table, Sequential, "one thread, plain calls");
            loops(&mut table, Sequential, "one thread, plain loop");
            "-"
        }
        "assay-pool" => {
            workloads::forks(&mut table, own::Own, "Worker::join");
            loops(&mut table, own::Own, "Worker::fold, Worker::for_each");
            "0.1.0"
        }
        "rayon" => {
            workloads::forks(&mut table, Rayon, "rayon::join");
            loops(&mut table, Rayon, "parallel iterator");
            "1.12"
        }
        "chili" => {
            workloads::forks(&mut table, Chili, "Scope::join");
            loops(&mut table, Chili, "Scope::join down to a leaf");
            "0.2.1"
        }
        // It has loops, but no forks.
        "orx-parallel" => {
            loops(&mut table, Orx, "parallel iterator");
            "4.1"
        }
        "scoped-threads" => {
            workloads::forks(
                &mut table,
                Threads,
                "std::thread::scope, forks until every core has one",
            );
            loops(&mut table, Threads, "std::thread::scope, equal parts");
            env!("PEER_COMPILER")
        }
        _ => return None,
    };
    Some((version, table))
}

/// Adds the loop workloads, timed and traced.
fn loops(table: &mut Table, pool: impl Pool, how: &str) {
    workloads::loops(table, pool, how);
    render::render(table, pool, how);
}

/// Execution without a pool.
#[derive(Clone, Copy)]
struct Sequential;

pool! {
    Sequential;
    reduce(count, identity, map, combine) {
        (0..count).map(map).fold(identity(), combine)
    }

    rows(table, columns, body) {
        table.chunks_mut(columns).enumerate().for_each(|(row, cells)| body(row, cells));
    }
}

forks! {
    Sequential: ();
    join(scope, first, second) {
        (first(scope), second(scope))
    }

    run(task) {
        task.run::<Self>(&mut ())
    }
}

/// The rayon pool of the session.
#[derive(Clone, Copy)]
struct Rayon;

pool! {
    Rayon;
    reduce(count, identity, map, combine) {
        ParallelIterator::reduce((0..count).into_par_iter().map(map), identity, combine)
    }

    rows(table, columns, body) {
        let rows = IndexedParallelIterator::enumerate(table.par_chunks_mut(columns));
        ParallelIterator::for_each(rows, |(row, cells)| body(row, cells));
    }
}

forks! {
    Rayon: ();
    join(_scope, first, second) {
        rayon::join(|| first(&mut ()), || second(&mut ()))
    }

    run(task) {
        task.run::<Self>(&mut ())
    }
}

/// Chili's global pool with the default heartbeat of 100 µs.
#[derive(Clone, Copy)]
struct Chili;

pool! {
    Chili;
    reduce(count, identity, map, combine) {
        fn half<T: Send>(
            scope: &mut chili::Scope<'_>,
            (from, to): (usize, usize),
            map: &(impl Fn(usize) -> T + Sync),
            combine: fn(T, T) -> T,
        ) -> T {
            if to - from == 1 {
                return map(from);
            }
            let middle = from.midpoint(to);
            let (left, right) = scope.join(
                |scope| half(scope, (from, middle), map, combine),
                |scope| half(scope, (middle, to), map, combine),
            );
            combine(left, right)
        }
        if count == 0 {
            return identity();
        }
        half(&mut chili::Scope::global(), (0, count), &map, combine)
    }

    rows(table, columns, body) {
        fn half<T: Send>(
            scope: &mut chili::Scope<'_>,
            first_row: usize,
            table: &mut [T],
            columns: usize,
            body: &(impl Fn(usize, &mut [T]) + Sync),
        ) {
            let rows = table.len() / columns;
            if rows <= 1 {
                return body(first_row, table);
            }
            let (upper, lower) = table.split_at_mut(rows / 2 * columns);
            scope.join(
                |scope| half(scope, first_row, upper, columns, body),
                |scope| half(scope, first_row + rows / 2, lower, columns, body),
            );
        }
        half(&mut chili::Scope::global(), 0, table, columns, &body);
    }
}

forks! {
    Chili: chili::Scope<'a>;
    join(scope, first, second) {
        scope.join(first, second)
    }

    run(task) {
        task.run::<Self>(&mut chili::Scope::global())
    }
}

/// Orx's pool and runner with default settings.
#[derive(Clone, Copy)]
struct Orx;

pool! {
    Orx;
    reduce(count, identity, map, combine) {
        orx_parallel::IntoParIter::into_par(0..count)
            .map(&map)
            .reduce(combine)
            .unwrap_or_else(identity)
    }

    rows(table, columns, body) {
        let rows: Vec<(usize, &mut [T])> = table.chunks_mut(columns).enumerate().collect();
        rows.into_par().for_each(|(row, cells)| body(row, cells));
    }
}

/// Operating system threads, started and ended for each operation.
#[derive(Clone, Copy)]
struct Threads;

fn cores() -> usize {
    thread::available_parallelism().map_or(1, NonZero::get)
}

pool! {
    Threads;
    reduce(count, identity, map, combine) {
        let (parts, map) = (cores(), &map);
        thread::scope(|scope| {
            let part = |part: usize| {
                let range = part * count / parts..(part + 1) * count / parts;
                move || range.map(map).fold(identity(), combine)
            };
            let others: Vec<_> = (1..parts).map(|number| scope.spawn(part(number))).collect();
            let first = part(0)();
            others
                .into_iter()
                .map(|other| other.join().expect("tasks do not panic"))
                .fold(first, combine)
        })
    }

    rows(table, columns, body) {
        let (body, part_rows) = (&body, (table.len() / columns).div_ceil(cores()).max(1));
        thread::scope(|scope| {
            for (part, cells) in table.chunks_mut(part_rows * columns).enumerate() {
                scope.spawn(move || {
                    for (row, cells) in cells.chunks_mut(columns).enumerate() {
                        body(part * part_rows + row, cells);
                    }
                });
            }
        });
    }
}

forks! {
    /// Remaining levels at which a task may start a thread.
    Threads: u32;
    join(budget, first, second) {
        if *budget == 0 {
            return (first(budget), second(budget));
        }
        let rest = *budget - 1;
        thread::scope(|scope| {
            let other = scope.spawn(move || second(&mut { rest }));
            let first = first(&mut { rest });
            (first, other.join().expect("tasks do not panic"))
        })
    }

    run(task) {
        // Levels for one thread per core, and one more against unequal halves.
        task.run::<Self>(&mut (cores().ilog2() + 1))
    }
}
