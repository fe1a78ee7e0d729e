//! Samples CPU, memory, disk and threads of a process from outside.
//!
//! One thread reads three small files under `/proc` ten times a second, at a cost of some tens of microseconds each time. Values
//! that the system does not offer stay empty and are printed as unavailable.

use std::fs;
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::machine::clock::Clock;
use crate::machine::disk::{self, number};

/// Resources over time, as columns of equal length.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Samples {
    pub period_s: f64,
    pub time_s: Vec<f64>,
    /// Cumulative user and system time in seconds.
    pub cpu_s: Vec<Option<f64>>,
    pub rss_bytes: Vec<Option<u64>>,
    /// Cumulative bytes read from disk.
    pub read_bytes: Vec<Option<u64>>,
    /// Cumulative bytes written to disk.
    pub write_bytes: Vec<Option<u64>>,
    pub threads: Vec<Option<u64>>,
    /// Peak resident memory, as recorded by the kernel.
    pub rss_peak_bytes: Option<u64>,
}

/// Sampling interval.
pub(crate) const PERIOD: Duration = Duration::from_millis(100);

/// Resource usage of a process at one time.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Look {
    /// Cumulative user and system time in seconds.
    pub(crate) cpu_s: Option<f64>,
    pub(crate) rss_bytes: Option<u64>,
    pub(crate) rss_peak_bytes: Option<u64>,
    /// Bytes transferred by the disk, not by the page cache.
    pub(crate) read_bytes: Option<u64>,
    pub(crate) write_bytes: Option<u64>,
    pub(crate) threads: Option<u64>,
}

/// Reads the current usage; empty if the process has ended.
pub(crate) fn look(pid: u32) -> Look {
    let read = |name: &str| fs::read_to_string(format!("/proc/{pid}/{name}")).unwrap_or_default();
    let status = read("status");
    let disk = disk::of_process(pid);
    Look {
        cpu_s: cpu_seconds(&read("stat")),
        rss_bytes: kib(&status, "VmRSS:"),
        rss_peak_bytes: kib(&status, "VmHWM:"),
        read_bytes: disk.map(|disk| disk.read_bytes),
        write_bytes: disk.map(|disk| disk.written_bytes),
        threads: number(&status, "Threads:"),
    }
}

/// Cumulative CPU time in seconds.
pub(crate) fn cpu_s(pid: u32) -> Option<f64> {
    cpu_seconds(&fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)
}

/// The same including reaped children.
pub(crate) fn cpu_with_children_s(pid: u32) -> Option<f64> {
    ticks_s(&fs::read_to_string(format!("/proc/{pid}/stat")).ok()?, 4)
}

/// Start time of a process in clock ticks since boot (field 22); `None` if it has ended or is a zombie.
pub(crate) fn started_ticks(pid: u32) -> Option<u64> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let mut fields = fields_after_name(&stat)?;
    fields.next().filter(|state| *state != "Z")?;
    fields.nth(18)?.parse().ok()
}

/// Fields of `/proc/<pid>/stat` from the third on. The second is the program's name in brackets, which may contain spaces and
/// brackets, so the fields start after the last bracket.
fn fields_after_name(stat: &str) -> Option<impl Iterator<Item = &str>> {
    Some(stat.rsplit_once(')')?.1.split_ascii_whitespace())
}

/// `utime + stime`, fields 14 and 15.
pub(crate) fn cpu_seconds(stat: &str) -> Option<f64> {
    ticks_s(stat, 2)
}

/// Every process with the text of its `stat` file; none on systems without `/proc`.
pub(super) fn all_stats() -> impl Iterator<Item = (u32, String)> {
    fs::read_dir("/proc").into_iter().flatten().flatten().filter_map(|entry| {
        let pid = entry.file_name().to_str()?.parse().ok()?;
        Some((pid, fs::read_to_string(entry.path().join("stat")).ok()?))
    })
}

pub(super) fn parent(stat: &str) -> Option<u32> {
    fields_after_name(stat)?.nth(1)?.parse().ok()
}

/// Process whose children are the kernel threads, `kthreadd`.
pub(super) const KERNEL: u32 = 2;

/// Sum of `fields` fields from `utime` on: user and system time of the process, then of its children.
fn ticks_s(stat: &str, fields: usize) -> Option<f64> {
    let mut values = fields_after_name(stat)?.skip(11);
    let mut ticks = 0;
    for _ in 0..fields {
        ticks += values.next()?.parse::<u64>().ok()?;
    }
    Some(ticks as f64 / rustix::param::clock_ticks_per_second() as f64)
}

fn kib(text: &str, key: &str) -> Option<u64> {
    number(text, key).map(|kib| kib * 1024)
}

/// A thread that samples one process until stopped.
#[derive(Debug)]
pub(crate) struct Sampler {
    stop: Sender<()>,
    thread: JoinHandle<Samples>,
}

impl Sampler {
    /// Starts to sample process `pid` on the run's clock.
    pub(crate) fn start(pid: u32, clock: Clock) -> Self {
        let (stop, stopped) = mpsc::channel::<()>();
        let thread = thread::spawn(move || {
            let mut samples = Samples { period_s: PERIOD.as_secs_f64(), ..Samples::default() };
            loop {
                push(&mut samples, clock.now_s(), &look(pid));
                match stopped.recv_timeout(PERIOD) {
                    Err(RecvTimeoutError::Timeout) => {}
                    Ok(()) | Err(RecvTimeoutError::Disconnected) => return samples,
                }
            }
        });
        Self { stop, thread }
    }

    pub(crate) fn finish(self) -> Samples {
        // The sampler may have ended already.
        let _ = self.stop.send(());
        self.thread.join().unwrap_or_default()
    }
}

fn push(samples: &mut Samples, time_s: f64, look: &Look) {
    if *look == Look::default() {
        return;
    }
    samples.time_s.push(round_ms(time_s));
    samples.cpu_s.push(look.cpu_s);
    samples.rss_bytes.push(look.rss_bytes);
    samples.read_bytes.push(look.read_bytes);
    samples.write_bytes.push(look.write_bytes);
    samples.threads.push(look.threads);
    samples.rss_peak_bytes = samples.rss_peak_bytes.max(look.rss_peak_bytes).max(look.rss_bytes);
}

fn round_ms(seconds: f64) -> f64 {
    (seconds * 1000.0).round() / 1000.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stat_with_brackets_in_the_name() {
        let stat = "7 (a) (b) x) S 1 7 7 0 -1 4194560 100 0 0 0 150 50 0 0 20 0 4 0 100 1 2";
        assert_eq!(cpu_seconds(stat), Some(2.0));
        assert_eq!([stat, "9 (kworker/0:1) I 2 0 0 0"].map(parent), [Some(1), Some(KERNEL)]);
        assert_eq!(ticks_s(stat, 4), Some(2.0));
        assert_eq!(cpu_seconds("garbage"), None);
        assert_eq!(cpu_seconds("7 (x) S 1"), None);
    }

    #[test]
    fn samples_itself() {
        let own = look(std::process::id());
        if own == Look::default() {
            eprintln!("skipped: no /proc");
            return;
        }
        assert!(own.rss_bytes.is_some_and(|bytes| bytes > 100_000));
        assert!(own.threads.is_some_and(|threads| threads >= 1));
    }

    #[test]
    fn sampler_stops_at_once() {
        let sampler = Sampler::start(std::process::id(), Clock::start());
        let samples = sampler.finish();
        assert_eq!(samples.time_s.len(), samples.rss_bytes.len());
    }

    #[test]
    fn ended_process_is_empty() {
        assert_eq!(look(u32::MAX), Look::default());
    }
}
