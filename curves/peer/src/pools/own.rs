//! `assay-pool`, the pool of this repository.

use std::sync::LazyLock;

use assay_pool::{Pool as Threads, Worker, chunks};

use super::{Forks, Pool, Task};

/// `assay-pool`, for all processors.
#[derive(Clone, Copy)]
pub(super) struct Own;

static THREADS: LazyLock<Threads> =
    LazyLock::new(|| Threads::of_all_processors().expect("threads can be started"));

impl Pool for Own {
    fn reduce<T: Send + 'static>(
        self,
        count: usize,
        identity: fn() -> T,
        map: impl Fn(usize) -> T + Sync + Send,
        combine: fn(T, T) -> T,
    ) -> T {
        let fold = |_: &Worker, sum, item| combine(sum, map(item));
        THREADS.run(|worker| worker.fold(0..count, identity, fold, combine))
    }

    fn rows<T: Send>(
        self,
        table: &mut [T],
        columns: usize,
        body: impl Fn(usize, &mut [T]) + Sync + Send,
    ) {
        let rows = chunks(table, columns);
        THREADS.run(|worker| worker.for_each(rows, |_, (row, cells)| body(row, cells)));
    }
}

impl Forks for Own {
    type Scope<'a> = &'a Worker;

    #[inline(always)]
    fn join<A: Send, B: Send>(
        scope: &mut Self::Scope<'_>,
        first: impl FnOnce(&mut Self::Scope<'_>) -> A + Send,
        second: impl FnOnce(&mut Self::Scope<'_>) -> B + Send,
    ) -> (A, B) {
        scope.join(|mut worker| first(&mut worker), |mut worker| second(&mut worker))
    }

    fn run<R: Send>(self, task: impl Task<R>) -> R {
        THREADS.run(|mut worker| task.run::<Self>(&mut worker))
    }
}
