//! `assay-pool`, the pool of this repository.

use std::sync::LazyLock;

use assay_pool::{Pool as Threads, Worker, chunks};

/// `assay-pool`, for all processors.
#[derive(Clone, Copy)]
pub(super) struct Own;

static THREADS: LazyLock<Threads> =
    LazyLock::new(|| Threads::of_all_processors().expect("threads can be started"));

pool! {
    Own;
    reduce(count, identity, map, combine) {
        let fold = |_: &Worker, sum, item| combine(sum, map(item));
        THREADS.run(|worker| worker.fold(0..count, identity, fold, combine))
    }

    rows(table, columns, body) {
        let rows = chunks(table, columns);
        THREADS.run(|worker| worker.for_each(rows, |_, (row, cells)| body(row, cells)));
    }
}

forks! {
    Own: &'a Worker;
    join(scope, first, second) {
        scope.join(|mut worker| first(&mut worker), |mut worker| second(&mut worker))
    }

    run(task) {
        THREADS.run(|mut worker| task.run::<Self>(&mut worker))
    }
}
