//! Limits of a survey: every probe stops at a number of samples or at a time, whichever is first.

use std::time::{Duration, Instant};

/// Thoroughness of a survey.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Effort {
    /// Few samples.
    Quick,
    /// About 15 seconds on any machine: probes have time limits.
    #[default]
    Default,
    /// All samples, without a time limit.
    Thorough,
}

/// Stop condition of a probe.
#[derive(Debug, Clone, Copy)]
pub(super) struct Limit {
    /// Maximum number of samples; the exact number without a time limit.
    pub samples: usize,
    /// Minimum number of samples, regardless of time.
    pub samples_min: usize,
    /// No further sample starts after this time.
    pub time: Option<Duration>,
}

impl Effort {
    /// Limits of the probes: parts of a file, written and synced one by one; the same parts, read in order; random pages of the
    /// file; pages written and synced one by one; repeats of the control load, on one core and again on all.
    pub(super) fn limits(self) -> [Limit; 5] {
        let all = [16, 16, 2000, 64, 100];
        let (samples, samples_min, time_ms) = match self {
            Self::Quick => ([2, 2, 300, 16, 20], [0; 5], None),
            // 14 s in total, plus the last sample of each probe.
            Self::Default => (all, [2, 2, 100, 8, 20], Some([3000, 2000, 1500, 1500, 3000])),
            Self::Thorough => (all, [0; 5], None),
        };
        std::array::from_fn(|at| Limit {
            samples: samples[at],
            samples_min: samples_min[at],
            time: time_ms.map(|time_ms| Duration::from_millis(time_ms[at])),
        })
    }

    /// Name in options and reports.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Quick => "quick",
            Self::Default => "default",
            Self::Thorough => "thorough",
        }
    }
}

impl Limit {
    /// True if another sample is due after `done`, of which the first began at `start`.
    pub(super) fn goes_on(&self, done: usize, start: Instant) -> bool {
        done < self.samples
            && (done < self.samples_min || self.time.is_none_or(|time| start.elapsed() < time))
    }

    /// Finished share of the probe.
    fn share(&self, done: usize, start: Instant) -> f64 {
        let by_count = done as f64 / self.samples.max(1) as f64;
        let by_time = self.time.map_or(0.0, |time| start.elapsed().div_duration_f64(time));
        by_count.max(by_time).min(1.0)
    }
}

/// Reports the progress of a survey.
pub(super) struct Steps<'a> {
    report: &'a (dyn Fn(f64) + Sync),
    done: f64,
}

impl<'a> Steps<'a> {
    pub(super) fn new(report: &'a (dyn Fn(f64) + Sync)) -> Self {
        Self { report, done: 0.0 }
    }

    /// Reports the finished share of the survey, of which the running probe has the share `weight`.
    pub(super) fn report(&self, weight: f64, limit: &Limit, done: usize, start: Instant) {
        (self.report)(self.done + weight * limit.share(done, start));
    }

    pub(super) fn end(&mut self, weight: f64) {
        self.done += weight;
        (self.report)(self.done);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn probes_stop_at_a_count_or_a_time() {
        let start = Instant::now();
        let timed = Limit { samples: 9, samples_min: 3, time: Some(Duration::ZERO) };
        assert!(timed.goes_on(2, start) && !timed.goes_on(3, start));
        let counted = Limit { samples: 9, samples_min: 0, time: None };
        assert!(counted.goes_on(8, start) && !counted.goes_on(9, start));
        assert!((counted.share(3, start) - 1.0 / 3.0).abs() < 1e-12);
        assert!((timed.share(0, start) - 1.0).abs() < 1e-12);
    }

    #[test]
    fn the_default_has_time_limits_below_fifteen_seconds() {
        let limits = Effort::Default.limits();
        let times = limits.iter().chain([&limits[4]]).map(|limit| limit.time);
        let sum: Duration = times.clone().flatten().sum();
        assert!(
            times.clone().all(|time| time.is_some()) && sum <= Duration::from_secs(15),
            "{sum:?}"
        );
        assert!(Effort::Thorough.limits()[4].time.is_none());
    }
}
