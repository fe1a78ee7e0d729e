//! Detects interference from other processes during a run.
//!
//! The control load before and after a run misses load in between. So during each run the system's counters are read, and a short
//! fixed computation is timed on every core. [`crate::results::disturbance`] defines the limits in advance.

use std::collections::HashMap;
use std::fs;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use assay_report::control::mix;
use rustix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};

use super::{cores, sample};

/// Interval between two probes of a core.
const PERIOD: Duration = Duration::from_millis(20);

/// Rounds of the control load in a probe: about 40 µs on a machine of 2025, 0.2 % of a core.
const PROBE_ROUNDS: u32 = 20_000;

/// State of the machine during one run. Counters cover the cores that the laboratory and its targets may use.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Interference {
    /// Length of the run in seconds.
    pub wall_s: f64,
    /// Cores that the laboratory and its targets may use.
    pub cores: usize,
    /// CPU seconds of all programs on these cores (`/proc/stat`: user, nice, system), without interrupts: loopback causes them.
    pub busy_s: Option<f64>,
    /// CPU seconds of the laboratory, its descendants and the kernel threads.
    pub own_s: Option<f64>,
    /// CPU seconds stolen by the host (`/proc/stat`: steal); 0 if unreported.
    pub steal_s: Option<f64>,
    /// Seconds during which a task waited for a core (`/proc/pressure/cpu`), also caused by a target with more threads than cores.
    pub pressure_s: Option<f64>,
    /// Probe times per core.
    pub probes: Vec<CoreProbe>,
}

/// CPU time of a fixed computation of one thread bound to a core, repeated during a run. It excludes waiting for the core, but
/// includes a lower clock and a host that takes the core away.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct CoreProbe {
    pub core: usize,
    pub count: usize,
    /// 10th percentile, µs.
    pub low_us: f64,
    pub median_us: f64,
    /// 90th percentile, µs.
    pub high_us: f64,
}

impl Interference {
    /// CPU seconds of other programs.
    pub fn foreign_s(&self) -> Option<f64> {
        self.busy_s.zip(self.own_s).map(|(busy, own)| (busy - own).max(0.0))
    }

    pub fn capacity_s(&self) -> f64 {
        self.wall_s * self.cores as f64
    }
}

/// Counter values in seconds.
#[derive(Debug, Clone, Default)]
struct Counters {
    busy: Option<f64>,
    steal: Option<f64>,
    pressure: Option<f64>,
    own: Option<f64>,
    /// CPU time per kernel thread, by pid.
    kernel: HashMap<u32, f64>,
}

impl Counters {
    fn read(allowed: &[usize]) -> Self {
        let stat = fs::read_to_string("/proc/stat").unwrap_or_default();
        let (busy, steal) = of_cores(&stat, allowed).unzip();
        Self {
            busy,
            steal,
            pressure: pressure_s(&fs::read_to_string("/proc/pressure/cpu").unwrap_or_default()),
            own: sample::cpu_with_children_s(std::process::id()),
            kernel: kernel_threads(),
        }
    }
}

/// CPU time of kernel threads, which write and send on behalf of all processes.
fn kernel_threads() -> HashMap<u32, f64> {
    let of_kernel = |(pid, stat): (u32, String)| {
        let is_thread = sample::parent(&stat) == Some(sample::KERNEL);
        is_thread.then_some((pid, sample::cpu_seconds(&stat)?))
    };
    sample::all_stats().filter_map(of_kernel).collect()
}

/// CPU time between two readings, without threads that ended in between.
fn growth_s(before: &HashMap<u32, f64>, after: &HashMap<u32, f64>) -> f64 {
    let grown = |(pid, after_s): (&u32, &f64)| {
        after_s - before.get(pid).filter(|before_s| *before_s <= after_s).unwrap_or(&0.0)
    };
    after.iter().map(grown).sum()
}

/// Busy and stolen time of these cores from `/proc/stat` (proc(5): user, nice, system, idle, iowait, irq, softirq, steal).
fn of_cores(stat: &str, allowed: &[usize]) -> Option<(f64, f64)> {
    let per_s = rustix::param::clock_ticks_per_second() as f64;
    let (mut busy, mut steal, mut found) = (0, 0, 0);
    for line in stat.lines().filter_map(|line| line.strip_prefix("cpu")) {
        let mut fields = line.split(' ');
        let Some(core) = fields.next().and_then(|number| number.parse::<usize>().ok()) else {
            continue;
        };
        if !allowed.contains(&core) {
            continue;
        }
        let ticks: Vec<u64> = fields.map_while(|ticks| ticks.parse().ok()).collect();
        let &[user, nice, system, _idle, _iowait, _irq, _softirq, stolen, ..] = ticks.as_slice()
        else {
            return None;
        };
        busy += user + nice + system;
        steal += stolen;
        found += 1;
    }
    (found > 0).then_some((busy as f64 / per_s, steal as f64 / per_s))
}

/// Total of the line `some`, which is in microseconds.
fn pressure_s(text: &str) -> Option<f64> {
    let line = text.lines().find(|line| line.starts_with("some "))?;
    let micros: f64 = line.rsplit_once("total=")?.1.trim().parse().ok()?;
    Some(micros / 1e6)
}

/// Watches the machine until [`finish`](Self::finish).
#[derive(Debug)]
pub struct Watch {
    start: Instant,
    allowed: Vec<usize>,
    before: Counters,
    /// A thread for each core, which ends when its channel is closed.
    probes: Vec<(Sender<()>, JoinHandle<CoreProbe>)>,
}

impl Watch {
    #[must_use]
    pub fn start() -> Self {
        let allowed = cores::allowed().unwrap_or_default();
        let probe = |&core: &usize| {
            let (sender, stop) = channel();
            let thread = thread::Builder::new().name(format!("probe {core}"));
            Some((sender, thread.spawn(move || probe(core, &stop)).ok()?))
        };
        let probes = allowed.iter().filter_map(probe).collect();
        let before = Counters::read(&allowed);
        Self { start: Instant::now(), before, allowed, probes }
    }

    /// Ends the watch. Children of the laboratory must have been reaped, or they count as foreign.
    pub fn finish(self) -> Interference {
        let after = Counters::read(&self.allowed);
        let wall_s = self.start.elapsed().as_secs_f64();
        let (senders, threads): (Vec<_>, Vec<_>) = self.probes.into_iter().unzip();
        drop(senders);
        let probes = threads.into_iter().filter_map(|thread| thread.join().ok());
        let between = |counter: fn(&Counters) -> Option<f64>| {
            counter(&after).zip(counter(&self.before)).map(|(after, before)| after - before)
        };
        Interference {
            wall_s,
            cores: self.allowed.len(),
            busy_s: between(|counters| counters.busy),
            own_s: between(|counters| counters.own)
                .map(|own_s| own_s + growth_s(&self.before.kernel, &after.kernel)),
            steal_s: between(|counters| counters.steal),
            pressure_s: between(|counters| counters.pressure),
            probes: probes.filter(|probe| probe.count > 0).collect(),
        }
    }
}

/// Probes a core until `stop` is closed.
fn probe(core: usize, stop: &Receiver<()>) -> CoreProbe {
    let mut times_us = Vec::new();
    // An offline core has no probe.
    let _ = cores::on(&[core], || {
        while stop.recv_timeout(PERIOD) == Err(RecvTimeoutError::Timeout) {
            let start_s = cpu_time_s();
            std::hint::black_box(mix(std::hint::black_box(PROBE_ROUNDS)));
            times_us.push((cpu_time_s() - start_s) * 1e6);
        }
    });
    times_us.sort_by(f64::total_cmp);
    let at = |share: f64| {
        let last = times_us.len().saturating_sub(1);
        times_us.get((last as f64 * share).round() as usize).copied().unwrap_or_default()
    };
    CoreProbe { core, count: times_us.len(), low_us: at(0.1), median_us: at(0.5), high_us: at(0.9) }
}

/// CPU seconds of this thread.
fn cpu_time_s() -> f64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

#[cfg(test)]
mod tests {
    use super::*;

    use crate::results::disturbance::disturbance;

    #[test]
    fn counters_of_the_chosen_cores() {
        let stat = "cpu  9 9 9 9 9 9 9 9 0 0\ncpu0 100 10 20 900 5 1 2 30 0 0\ncpu1 1 1 1 1 1 1 1 1 0 0\nintr 7\n";
        assert_eq!(of_cores(stat, &[0]), Some((1.3, 0.3)));
        assert_eq!(of_cores(stat, &[5]), None);
        assert_eq!(of_cores("", &[0]), None);
        assert_eq!(
            pressure_s("some avg10=0.00 avg60=0.00 avg300=0.00 total=1500000\nfull …\n"),
            Some(1.5)
        );
        assert_eq!(pressure_s(""), None);
    }

    /// A program that uses a core until it is dropped.
    struct Neighbour(std::process::Child);

    impl Neighbour {
        fn start() -> Self {
            let mut shell = std::process::Command::new("sh");
            Self(shell.args(["-c", "while :; do :; done"]).spawn().expect("a shell"))
        }
    }

    impl Drop for Neighbour {
        fn drop(&mut self) {
            let _ = self.0.kill();
            let _ = self.0.wait();
        }
    }

    #[test]
    fn detects_load_during_a_run() {
        let watch = Watch::start();
        thread::sleep(Duration::from_millis(300));
        let neighbours: Vec<Neighbour> = watch.allowed.iter().map(|_| Neighbour::start()).collect();
        thread::sleep(Duration::from_millis(1200));
        let seen = watch.finish();
        // Unreaped until here, so their CPU time counts as foreign.
        drop(neighbours);
        if seen.busy_s.is_none() {
            return eprintln!("skipped: no /proc");
        }
        let reason = disturbance(&seen, &[&seen]).expect("most of the time is theirs");
        assert!(reason.starts_with("other programs used "), "{reason}");
    }

    #[test]
    fn own_work_is_counted_as_own() {
        let watch = Watch::start();
        let start_s = cpu_time_s();
        while cpu_time_s() - start_s < 0.3 {
            std::hint::black_box(mix(1000));
        }
        let seen = watch.finish();
        let Some(own_s) = seen.own_s else { return eprintln!("skipped: no /proc") };
        assert!(own_s >= 0.2, "{seen:?}");
        assert!(seen.probes.iter().all(|probe| probe.low_us <= probe.median_us), "{seen:?}");
        assert!(!seen.probes.is_empty(), "{seen:?}");
    }
}
