//! System time and its text form.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

/// The clock of a node. It is the system clock until it is set; then it stands still until it is set again, for tests of chains
/// (Core `util/time.h`, `NodeClock`). Copies share the time.
#[derive(Clone, Debug, Default)]
pub struct Clock {
    /// Seconds since 1970; 0 for the system's clock.
    set_to_s: Arc<AtomicU64>,
}

impl Clock {
    /// Seconds since 1970.
    pub fn now_s(&self) -> u64 {
        match self.set_to_s() {
            Some(time_s) => time_s,
            None => unix_time_s(),
        }
    }

    /// Microseconds since 1970.
    pub fn now_us(&self) -> u64 {
        match self.set_to_s() {
            Some(time_s) => time_s.saturating_mul(1_000_000),
            None => SystemTime::now()
                .duration_since(UNIX_EPOCH)
                .map_or(0, |elapsed| elapsed.as_micros().try_into().unwrap_or(u64::MAX)),
        }
    }

    /// Milliseconds since 1970.
    pub fn now_ms(&self) -> u64 {
        self.now_us() / 1000
    }

    /// Fixed time, seconds since 1970; `None` for the system clock.
    pub fn set_to_s(&self) -> Option<u64> {
        Some(self.set_to_s.load(Ordering::Relaxed)).filter(|time_s| *time_s > 0)
    }

    /// Sets the clock, in seconds since 1970; 0 returns to the system clock.
    pub fn set(&self, time_s: u64) {
        self.set_to_s.store(time_s, Ordering::Relaxed);
    }
}

/// System time, seconds since 1970.
pub(crate) fn unix_time_s() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |elapsed| elapsed.as_secs())
}

/// `1970-01-01T00:00:00Z` form of seconds since 1970 (days to civil date as in H. Hinnant, "chrono-Compatible Low-Level
/// Date Algorithms").
pub fn iso_time(unix_s: u64) -> String {
    let (days, second) = (unix_s / 86_400, unix_s % 86_400);
    let shifted = days + 719_468;
    let era = shifted / 146_097;
    let day_of_era = shifted % 146_097;
    let year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_index = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_index + 2) / 5 + 1;
    let month = if month_index < 10 { month_index + 3 } else { month_index - 9 };
    let year = year_of_era + era * 400 + u64::from(month <= 2);
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_clock_stands_still() {
        let clock = Clock::default();
        assert!(clock.now_s() >= 1_700_000_000);
        clock.clone().set(5);
        assert_eq!((clock.now_s(), clock.set_to_s()), (5, Some(5)));
        clock.set(0);
        assert!(clock.set_to_s().is_none() && clock.now_s() >= 1_700_000_000);
    }

    #[test]
    fn times_print_as_core_prints_them() {
        assert_eq!(iso_time(0), "1970-01-01T00:00:00Z");
        assert_eq!(iso_time(1_296_688_602), "2011-02-02T23:16:42Z");
        assert_eq!(iso_time(951_782_400), "2000-02-29T00:00:00Z");
        assert_eq!(iso_time(4_102_444_799), "2099-12-31T23:59:59Z");
    }
}
