//! The times of a part, in a file next to its result: results are the same bytes everywhere, times are not.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use super::{ShardError, io_failed, unusable};

/// Adds up the processor time of stages, over all threads of a part.
#[derive(Debug, Default)]
pub struct StageClock([AtomicU64; STAGES]);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    /// Reading a block, parsing it, hashing its transactions.
    Read,
    /// Checks that need no coins.
    Check,
    /// Reading spent coins, and the checks that need them, without scripts.
    Coins,
    /// Hashing coins into sums.
    Sums,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PartTiming {
    /// From start to end.
    pub elapsed: Duration,
    /// Processor time of the process; zero if the system does not report it.
    pub cpu: Duration,
    /// Threads that verified scripts.
    pub threads: u32,
    /// Processor time of stages: reading blocks, checking them without coins, spent coins and the checks with them, sums. The
    /// rest of `cpu` is scripts.
    pub stages: [Duration; STAGES],
}

pub const STAGES: usize = 4;

impl StageClock {
    pub(crate) fn time<T>(&self, stage: Stage, work: impl FnOnce() -> T) -> T {
        let start = Reading::new();
        let result = work();
        let nanoseconds = start.elapsed().as_nanos() as u64;
        self.0[stage as usize].fetch_add(nanoseconds, Ordering::Relaxed);
        result
    }

    /// Returns the sums so far, and resets them to zero.
    pub fn take(&self) -> [Duration; STAGES] {
        std::array::from_fn(|stage| Duration::from_nanos(self.0[stage].swap(0, Ordering::Relaxed)))
    }
}

/// The clock of a thread's processor time if there is one: with more threads than cores the time of day says little.
struct Reading(#[cfg(target_os = "linux")] Duration, #[cfg(not(target_os = "linux"))] Instant);

impl Reading {
    #[cfg(target_os = "linux")]
    fn new() -> Self {
        Self(clock(rustix::time::ClockId::ThreadCPUTime))
    }

    #[cfg(target_os = "linux")]
    fn elapsed(&self) -> Duration {
        clock(rustix::time::ClockId::ThreadCPUTime).saturating_sub(self.0)
    }

    #[cfg(not(target_os = "linux"))]
    fn new() -> Self {
        Self(Instant::now())
    }

    #[cfg(not(target_os = "linux"))]
    fn elapsed(&self) -> Duration {
        self.0.elapsed()
    }
}

#[cfg(target_os = "linux")]
fn clock(id: rustix::time::ClockId) -> Duration {
    let time = rustix::time::clock_gettime(id);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// Processor time of this process so far; zero if the system does not report it.
fn process_cpu() -> Duration {
    #[cfg(target_os = "linux")]
    return clock(rustix::time::ClockId::ProcessCPUTime);
    #[cfg(not(target_os = "linux"))]
    Duration::ZERO
}

#[derive(Debug)]
pub struct PartTimer {
    start: Instant,
    cpu: Duration,
}

impl PartTimer {
    #[expect(clippy::new_without_default, reason = "it reads the clock")]
    pub fn new() -> Self {
        Self { start: Instant::now(), cpu: process_cpu() }
    }

    pub fn finish(&self, threads: usize, clock: &StageClock) -> PartTiming {
        PartTiming {
            elapsed: self.start.elapsed(),
            cpu: process_cpu().saturating_sub(self.cpu),
            threads: threads as u32,
            stages: clock.take(),
        }
    }
}

impl PartTiming {
    /// Writes the file, in place of an earlier one.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn write(&self, dir: &Path, part: usize) -> Result<(), ShardError> {
        let path = path_of(dir, part);
        let fresh = path.with_extension(format!("{}.new", std::process::id()));
        let written = fs::write(&fresh, self.text(part)).and_then(|()| fs::rename(&fresh, &path));
        written.map_err(io_failed(&path))
    }

    /// Reads the file of a part; `None` if it does not exist.
    ///
    /// # Errors
    /// It has other contents.
    pub fn read(dir: &Path, part: usize) -> Result<Option<Self>, ShardError> {
        let path = path_of(dir, part);
        match fs::read_to_string(&path) {
            Ok(text) => match Self::parse(&text, part) {
                Some(timing) => Ok(Some(timing)),
                None => Err(unusable(&path, "is no timing of this part; remove it")),
            },
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
            Err(source) => Err(ShardError::Io { path, source }),
        }
    }

    fn text(&self, part: usize) -> String {
        let mut text = format!("{TITLE}\npart {part}\nthreads {}\n", self.threads);
        for (name, time) in
            NAMES.iter().zip([&self.elapsed, &self.cpu].into_iter().chain(&self.stages))
        {
            // Writing into a string does not fail.
            let _ = writeln!(text, "{name} {}", time.as_micros());
        }
        text
    }

    fn parse(text: &str, part: usize) -> Option<Self> {
        let mut lines = text.lines();
        let mut value = |key: &str| lines.next()?.strip_prefix(key)?.strip_prefix(' ');
        (value("assay")? == TITLE.strip_prefix("assay ")?).then_some(())?;
        (value("part")?.parse() == Ok(part)).then_some(())?;
        let threads = value("threads")?.parse().ok()?;
        let mut times = [Duration::ZERO; 2 + STAGES];
        for (name, time) in NAMES.iter().zip(&mut times) {
            *time = Duration::from_micros(value(name)?.parse().ok()?);
        }
        lines.next().is_none().then_some(())?;
        let [elapsed, cpu, stages @ ..] = times;
        Some(Self { elapsed, cpu, threads, stages })
    }
}

fn path_of(dir: &Path, part: usize) -> PathBuf {
    dir.join(format!("part-{part:05}.time"))
}

const TITLE: &str = "assay shard timing 1";
/// Microseconds.
const NAMES: [&str; 2 + STAGES] =
    ["elapsed_us", "cpu_us", "read_us", "check_us", "coins_us", "sums_us"];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_timing_comes_back_and_nothing_else_is_one() {
        let dir = tempfile::tempdir().unwrap();
        let clock = StageClock::default();
        let timer = PartTimer::new();
        assert_eq!(clock.time(Stage::Sums, || 7), 7);
        let mut timing = timer.finish(3, &clock);
        assert_eq!(clock.take(), [Duration::ZERO; STAGES]);
        timing.elapsed = Duration::from_micros(1_234_567);
        (timing.cpu, timing.stages) =
            (Duration::from_micros(9), [Duration::from_micros(4); STAGES]);
        assert_eq!(PartTiming::read(dir.path(), 5).unwrap(), None);
        timing.write(dir.path(), 5).unwrap();
        assert_eq!(PartTiming::read(dir.path(), 5).unwrap(), Some(timing));
        let text = timing.text(5);
        for wrong in [
            text.replace("part 5", "part 6"),
            text.replace("timing 1", "timing 2"),
            text.replace("cpu_us", "cpu_ms"),
            format!("{text}x"),
            text[..text.len() - 2].replace("sums_us", "sums"),
        ] {
            assert_eq!(PartTiming::parse(&wrong, 5), None);
        }
    }
}
