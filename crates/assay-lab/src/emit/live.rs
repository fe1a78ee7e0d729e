//! Progress of an emission.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use assay_report::number;

use crate::progress::{Event, Reporter};

/// Counts of one node, written by its thread.
#[derive(Default)]
pub(super) struct Live {
    name: String,
    pub(super) height: AtomicU64,
    pub(super) txs: AtomicU64,
    /// Transactions sent of the current block.
    pub(super) txs_now: AtomicU64,
    pub(super) orphans: AtomicU64,
    pub(super) in_mempool: AtomicU64,
    pub(super) rejected: AtomicU64,
}

impl Live {
    pub(super) fn new(name: &str) -> Self {
        Self { name: name.to_owned(), ..Self::default() }
    }

    fn line(&self, until: u32, first: u64, seconds: f64) -> String {
        let of = |count: &AtomicU64| count.load(Ordering::Relaxed);
        let (height, txs) = (of(&self.height), of(&self.txs) + of(&self.txs_now));
        let done = height.saturating_sub(first);
        let left = u64::from(until).saturating_sub(height);
        let eta = match done {
            0 => String::new(),
            _ => format!(", {} left", number::seconds(seconds / done as f64 * left as f64)),
        };
        format!(
            "{}: block {height} of {until}, {} transactions sent ({} a second), {} in the mempool, {} before a parent, {} rejected{eta}",
            self.name,
            number::count(txs),
            number::count((txs as f64 / seconds.max(0.001)) as u64),
            number::count(of(&self.in_mempool)),
            number::count(of(&self.orphans)),
            number::count(of(&self.rejected)),
        )
    }
}

/// Reports the counts of all nodes every second, after two seconds.
pub(super) fn show(lives: &[Live], until: u32, reporter: &dyn Reporter, is_done: &AtomicBool) {
    let started = Instant::now();
    let mut next = started + Duration::from_secs(2);
    let mut firsts: Vec<Option<u64>> = vec![None; lives.len()];
    while !is_done.load(Ordering::Relaxed) {
        thread::sleep(Duration::from_millis(50));
        for (first, live) in firsts.iter_mut().zip(lives) {
            let height = live.height.load(Ordering::Relaxed);
            if height > 0 {
                first.get_or_insert(height);
            }
        }
        if Instant::now() < next {
            continue;
        }
        next += Duration::from_secs(1);
        let seconds = started.elapsed().as_secs_f64();
        let counts = lives.iter().zip(&firsts);
        let counts = counts.map(|(live, first)| live.line(until, first.unwrap_or(0), seconds));
        let counts: Vec<String> = counts.collect();
        reporter.event(&Event::Status(&counts.join("; ")));
    }
    reporter.event(&Event::Finished);
}
