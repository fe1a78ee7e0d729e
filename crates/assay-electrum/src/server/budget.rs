//! What a client has used, and what follows from it.

use std::time::{Duration, Instant};

use super::config::Limits;

/// A client within this many units of its full budget is served before others: who asks little does not wait for who asks much.
const EXPRESS_UNITS: f64 = 300.0;

/// Nobody is further in debt than this many seconds make up for: however long one question took, it is forgotten some day.
const DEBT_SECONDS_MAX: f64 = 60.0;

/// What of these a client begins with.
const NEWCOMER_UNITS: f64 = 100.0;

/// The share of that which has to be there before a client counts as modest.
const MODEST_SHARE: f64 = 2.0 / 3.0;

/// By how much a budget of `burst` units may be short of being full for its client to go first.
fn express(burst: f64) -> f64 {
    EXPRESS_UNITS.min(burst / 2.0)
}

/// A bucket of units that fills with time and is emptied by requests.
#[derive(Debug)]
pub(super) struct Budget {
    level: f64,
    burst: f64,
    per_second: f64,
    at: Instant,
}

/// What to do with the next request.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Verdict {
    /// Answer it before those of greedier clients.
    Express,
    /// Answer it.
    Ordinary,
    /// Answer it after a while.
    Wait(Duration),
    /// Answer it with an error.
    Refuse,
}

impl Budget {
    pub(super) fn new(limits: &Limits, now: Instant) -> Self {
        let burst = f64::from(limits.units_burst);
        // Coming anew does not make anybody modest again.
        let level = burst - express(burst) + NEWCOMER_UNITS.min(express(burst));
        Self { level, burst, per_second: f64::from(limits.units_per_second), at: now }
    }

    /// Takes what a request has used.
    pub(super) fn spend(&mut self, units: f64, now: Instant) {
        self.fill(now);
        self.level = (self.level - units).max(-DEBT_SECONDS_MAX * self.per_second.max(1.0));
    }

    /// What may be done next; waiting longer than `throttle_max` is not asked of anybody.
    pub(super) fn verdict(&mut self, throttle_max: Duration, now: Instant) -> Verdict {
        if self.per_second <= 0.0 {
            return Verdict::Express;
        }
        self.fill(now);
        if self.level >= self.burst - express(self.burst) {
            return Verdict::Express;
        }
        if self.level >= 0.0 {
            return Verdict::Ordinary;
        }
        let wait = -self.level / self.per_second;
        if wait <= throttle_max.as_secs_f64() {
            Verdict::Wait(Duration::from_secs_f64(wait))
        } else {
            Verdict::Refuse
        }
    }

    /// Time until the client counts as modest again. Between that and not counting as modest any more there is some way, so that
    /// nobody goes to and fro all the time.
    pub(super) fn modest_in(&mut self, now: Instant) -> Duration {
        if self.per_second <= 0.0 {
            return Duration::ZERO;
        }
        self.fill(now);
        let missing = self.burst - express(self.burst) * (1.0 - MODEST_SHARE) - self.level;
        Duration::from_secs_f64((missing / self.per_second).max(0.0))
    }

    /// Time until nothing would be different if it were new.
    pub(super) fn full_in(&mut self, now: Instant) -> Duration {
        if self.per_second <= 0.0 {
            return Duration::ZERO;
        }
        self.fill(now);
        Duration::from_secs_f64(((self.burst - self.level) / self.per_second).max(0.0))
    }

    fn fill(&mut self, now: Instant) {
        let elapsed = now.saturating_duration_since(self.at).as_secs_f64();
        self.at = now;
        self.level = (self.level + elapsed * self.per_second).min(self.burst);
    }
}

/// What a request costs: itself, the time that it took, and the bytes that it moved.
pub(super) fn units(requests: usize, work: Duration, bytes: usize) -> f64 {
    requests as f64 + work.as_secs_f64() * 10_000.0 + bytes as f64 / 4096.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_is_first_slowed_down_and_then_refused() {
        let limits = Limits { units_per_second: 100, units_burst: 1000, ..Limits::default() };
        let start = Instant::now();
        let most = Duration::from_secs(2);
        let mut budget = Budget::new(&limits, start);
        assert_eq!(budget.verdict(most, start), Verdict::Express);
        // It began with 800 of 1,000: a hundred above those who wait.
        budget.spend(500.0, start);
        assert_eq!(budget.verdict(most, start), Verdict::Ordinary);
        budget.spend(400.0, start);
        assert_eq!(budget.verdict(most, start), Verdict::Wait(Duration::from_secs(1)));
        budget.spend(200.0, start);
        assert_eq!(budget.verdict(most, start), Verdict::Refuse);
        assert_eq!(budget.verdict(most, start + Duration::from_secs(4)), Verdict::Ordinary);
        assert_eq!(budget.verdict(most, start + Duration::from_mins(1)), Verdict::Express);
        // Nothing is saved up beyond the burst.
        budget.spend(1001.0, start + Duration::from_mins(10));
        assert!(matches!(budget.verdict(most, start + Duration::from_mins(10)), Verdict::Wait(_)));
    }

    #[test]
    fn no_budget_is_no_limit() {
        let limits = Limits { units_per_second: 0, ..Limits::default() };
        let start = Instant::now();
        let mut budget = Budget::new(&limits, start);
        budget.spend(1e9, start);
        assert_eq!(budget.verdict(Duration::ZERO, start), Verdict::Express);
    }

    #[test]
    fn work_and_bytes_cost() {
        assert!((units(1, Duration::from_millis(1), 8192) - 13.0).abs() < 1e-9);
    }
}
