//! A token bucket per account, and the admission decisions based on it.

use std::time::{Duration, Instant};

use crate::server::config::Limits;
use crate::server::schedule::Priority;

/// A client within this many units of its full budget counts as light and has priority.
const LIGHT_UNITS: f64 = 300.0;

/// Debt is capped at the refill of this many seconds, however long one request took.
const DEBT_SECONDS_MAX: f64 = 60.0;

/// Initial level of a new client, of the light units.
const NEW_CLIENT_UNITS: f64 = 100.0;

/// Share of the light units needed before a client counts as light again.
const RETURN_SHARE: f64 = 2.0 / 3.0;

/// Number of units that a light client may be below a full budget of `burst`.
fn light_units(burst: f64) -> f64 {
    LIGHT_UNITS.min(burst / 2.0)
}

/// A token bucket: refilled over time, drained by requests.
#[derive(Debug)]
pub(in crate::server) struct RateLimit {
    level: f64,
    burst: f64,
    per_second: f64,
    at: Instant,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(in crate::server) enum Admission {
    /// Process now, with this priority.
    Now(Priority),
    Delay(Duration),
    Reject,
}

impl RateLimit {
    pub(in crate::server) fn new(limits: &Limits, now: Instant) -> Self {
        let burst = f64::from(limits.units_burst);
        // Reconnecting does not make a client light.
        let level = burst - light_units(burst) + NEW_CLIENT_UNITS.min(light_units(burst));
        Self { level, burst, per_second: f64::from(limits.units_per_second), at: now }
    }

    pub(in crate::server) fn spend(&mut self, units: f64, now: Instant) {
        self.fill(now);
        self.level = (self.level - units).max(-DEBT_SECONDS_MAX * self.per_second.max(1.0));
    }

    /// Admission decision for the next request; rejects it if the delay would exceed `throttle_max`.
    pub(in crate::server) fn admit(&mut self, throttle_max: Duration, now: Instant) -> Admission {
        if self.per_second <= 0.0 {
            return Admission::Now(Priority::High);
        }
        self.fill(now);
        if self.level >= self.burst - light_units(self.burst) {
            return Admission::Now(Priority::High);
        }
        if self.level >= 0.0 {
            return Admission::Now(Priority::Normal);
        }
        let wait = -self.level / self.per_second;
        if wait <= throttle_max.as_secs_f64() {
            Admission::Delay(Duration::from_secs_f64(wait))
        } else {
            Admission::Reject
        }
    }

    /// Time until the client counts as light again. The threshold is higher than for staying light, as a hysteresis.
    pub(in crate::server) fn light_in(&mut self, now: Instant) -> Duration {
        if self.per_second <= 0.0 {
            return Duration::ZERO;
        }
        self.fill(now);
        let missing = self.burst - light_units(self.burst) * (1.0 - RETURN_SHARE) - self.level;
        Duration::from_secs_f64((missing / self.per_second).max(0.0))
    }

    pub(in crate::server) fn full_in(&mut self, now: Instant) -> Duration {
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

/// Cost of requests: a fixed part, processing time, and bytes transferred.
pub(in crate::server) fn units(requests: usize, work: Duration, bytes: usize) -> f64 {
    requests as f64 + work.as_secs_f64() * 10_000.0 + bytes as f64 / 4096.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_is_first_delayed_and_then_rejected() {
        let limits = Limits { units_per_second: 100, units_burst: 1000, ..Limits::default() };
        let start = Instant::now();
        let most = Duration::from_secs(2);
        let mut budget = RateLimit::new(&limits, start);
        assert_eq!(budget.admit(most, start), Admission::Now(Priority::High));
        // The initial level was 800 of 1,000.
        budget.spend(500.0, start);
        assert_eq!(budget.admit(most, start), Admission::Now(Priority::Normal));
        budget.spend(400.0, start);
        assert_eq!(budget.admit(most, start), Admission::Delay(Duration::from_secs(1)));
        budget.spend(200.0, start);
        assert_eq!(budget.admit(most, start), Admission::Reject);
        assert_eq!(
            budget.admit(most, start + Duration::from_secs(4)),
            Admission::Now(Priority::Normal)
        );
        assert_eq!(
            budget.admit(most, start + Duration::from_mins(1)),
            Admission::Now(Priority::High)
        );
        // The level never exceeds the burst.
        budget.spend(1001.0, start + Duration::from_mins(10));
        assert!(matches!(budget.admit(most, start + Duration::from_mins(10)), Admission::Delay(_)));
    }

    #[test]
    fn no_budget_is_no_limit() {
        let limits = Limits { units_per_second: 0, ..Limits::default() };
        let start = Instant::now();
        let mut budget = RateLimit::new(&limits, start);
        budget.spend(1e9, start);
        assert_eq!(budget.admit(Duration::ZERO, start), Admission::Now(Priority::High));
    }

    #[test]
    fn work_and_bytes_cost() {
        assert!((units(1, Duration::from_millis(1), 8192) - 13.0).abs() < 1e-9);
    }
}
