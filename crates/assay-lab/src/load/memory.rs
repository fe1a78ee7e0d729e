//! Samples the server's memory from its process or its metrics.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use super::LoadOptions;
use crate::process::sample;

/// Sampling interval.
const PERIOD: Duration = Duration::from_millis(100);
/// Longest wait for metrics.
const TIMEOUT: Duration = Duration::from_secs(2);
/// Metric name in Prometheus' conventions.
const METRIC: &str = "process_resident_memory_bytes";

/// Source of memory figures.
#[derive(Debug, Clone)]
enum Source {
    Process(u32),
    Metrics(String),
}

/// A sampling thread.
#[derive(Debug)]
pub(crate) struct MemoryWatch {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<[Option<u64>; 2]>,
}

impl MemoryWatch {
    /// Starts if the options define a source.
    pub(crate) fn start(options: &LoadOptions) -> Option<Self> {
        let source = match (options.server_pid, &options.server_metrics) {
            (Some(pid), _) => Source::Process(pid),
            (None, Some(address)) => Source::Metrics(format!("http://{address}/metrics")),
            (None, None) => return None,
        };
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let thread = thread::spawn(move || {
            let first = look(&source);
            let mut peak = first;
            while !stopped.load(Ordering::Relaxed) {
                thread::sleep(PERIOD);
                peak = peak.max(look(&source));
            }
            [first, peak]
        });
        Some(Self { stop, thread })
    }

    /// Stops; returns the first value and the maximum.
    pub(crate) fn finish(self) -> [Option<u64>; 2] {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.join().unwrap_or_default()
    }
}

fn look(source: &Source) -> Option<u64> {
    match source {
        Source::Process(pid) => sample::look(*pid).rss_bytes,
        Source::Metrics(url) => {
            let agent = ureq::Agent::config_builder()
                .proxy(None)
                .timeout_global(Some(TIMEOUT))
                .build()
                .new_agent();
            let text = agent.get(url).call().ok()?.body_mut().read_to_string().ok()?;
            read_metric(&text)
        }
    }
}

fn read_metric(text: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(METRIC))?;
    let value: f64 = line.split_ascii_whitespace().next()?.parse().ok()?;
    Some(value as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metrics() {
        let text = "# HELP process_resident_memory_bytes x\nprocess_resident_memory_bytes 1.5e6\n";
        assert_eq!(read_metric(text), Some(1_500_000));
        assert_eq!(read_metric("nothing"), None);
    }
}
