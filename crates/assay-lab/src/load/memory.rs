//! Samples the server's memory from its process or its metrics.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use super::LoadOptions;
use crate::process::sample;

const PERIOD: Duration = Duration::from_millis(100);
/// Longest wait for metrics.
const TIMEOUT: Duration = Duration::from_secs(2);
/// Metric name in Prometheus' conventions.
const METRIC: &str = "process_resident_memory_bytes";

/// The server's memory at the start, and its peak until `stop` is set.
pub(crate) fn watch(options: &LoadOptions, stop: &AtomicBool) -> [Option<u64>; 2] {
    let first = look(options);
    let mut peak = first;
    while !stop.load(Ordering::Relaxed) {
        thread::sleep(PERIOD);
        peak = peak.max(look(options));
    }
    [first, peak]
}

fn look(options: &LoadOptions) -> Option<u64> {
    if let Some(pid) = options.server_pid {
        return sample::look(pid).rss_bytes;
    }
    let url = format!("http://{}/metrics", options.server_metrics.as_ref()?);
    let config = ureq::Agent::config_builder().proxy(None).timeout_global(Some(TIMEOUT));
    let agent = config.build().new_agent();
    read_metric(&agent.get(url).call().ok()?.body_mut().read_to_string().ok()?)
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
