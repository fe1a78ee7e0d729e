//! Trace of a loop: threads and times of its rows.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Instant;

use serde::Serialize;

/// Thread and times of a row. Stored in the row itself, so that recording costs two clock readings and no lock.
#[derive(Clone, Copy, Debug, Default)]
pub struct Record {
    pub thread: u32,
    pub span: Span,
}

/// A span of work, in nanoseconds since the start of the run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(into = "(u64, u64)")]
pub struct Span {
    pub start_ns: u64,
    pub end_ns: u64,
}

impl From<Span> for (u64, u64) {
    fn from(Span { start_ns, end_ns }: Span) -> Self {
        (start_ns, end_ns)
    }
}

/// Number of threads that have recorded a row.
static THREADS: AtomicU32 = AtomicU32::new(0);

thread_local! {
    static THREAD: u32 = THREADS.fetch_add(1, Ordering::Relaxed);
}

impl Record {
    /// Runs the work of a row in a run that started at `start`.
    pub fn of(start: Instant, work: impl FnOnce()) -> Self {
        let start_ns = start.elapsed().as_nanos() as u64;
        work();
        let end_ns = start.elapsed().as_nanos() as u64;
        Self { thread: THREAD.with(|number| *number), span: Span { start_ns, end_ns } }
    }
}

/// Trace of a run.
#[derive(Clone, Debug)]
pub struct Trace {
    /// Time from the start until the pool had finished.
    pub wall_ns: u64,
    /// Threads in the order of their first record in this process.
    pub threads: Vec<Thread>,
    /// Canonical bytes of the result.
    pub answer: Vec<u8>,
}

/// Activity of one thread in a run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Thread {
    pub rows: usize,
    /// Time spent in rows, without the gaps merged into `spans`.
    pub busy_ns: u64,
    /// Busy spans, at most [`SPANS_MAX`]. Spans less than [`GAP_NS`] apart are merged, and more if there are too many.
    pub spans: Vec<Span>,
}

/// Maximum number of spans of a thread.
pub const SPANS_MAX: usize = 256;

/// Time between two rows that is not a gap.
pub const GAP_NS: u64 = 1_000;

impl Trace {
    /// Groups records of rows by thread.
    pub fn new(wall_ns: u64, records: impl Iterator<Item = Record>, answer: Vec<u8>) -> Self {
        let mut spans: BTreeMap<u32, Vec<Span>> = BTreeMap::new();
        for Record { thread, span } in records {
            spans.entry(thread).or_default().push(span);
        }
        Self { wall_ns, threads: spans.into_values().map(Thread::new).collect(), answer }
    }
}

impl Thread {
    fn new(mut rows: Vec<Span>) -> Self {
        rows.sort_by_key(|span| span.start_ns);
        let busy_ns = rows.iter().map(|span| span.end_ns - span.start_ns).sum();
        let mut gap_ns = GAP_NS;
        let mut spans = merged(&rows, gap_ns);
        while spans.len() > SPANS_MAX {
            gap_ns *= 2;
            spans = merged(&rows, gap_ns);
        }
        Self { rows: rows.len(), busy_ns, spans }
    }
}

fn merged(sorted: &[Span], gap_ns: u64) -> Vec<Span> {
    let mut spans: Vec<Span> = Vec::new();
    for &span in sorted {
        match spans.last_mut() {
            Some(last) if span.start_ns < last.end_ns + gap_ns => last.end_ns = span.end_ns,
            _ => spans.push(span),
        }
    }
    spans
}
