//! Clock of a run.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use time::UtcDateTime;

/// A monotonic clock with one wall-clock anchor, shared by every thread of a run.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Clock {
    start: Instant,
    start_unix_ms: u64,
}

impl Clock {
    pub(crate) fn start() -> Self {
        Self { start: Instant::now(), start_unix_ms: unix_ms() }
    }

    pub(crate) fn now_s(&self) -> f64 {
        self.start.elapsed().as_secs_f64()
    }

    /// The same clock, `seconds` behind: it now shows the current reading of this one.
    pub(crate) fn shifted_back(self, seconds: f64) -> Self {
        let shift = Duration::try_from_secs_f64(seconds).unwrap_or_default();
        Self { start: self.start + shift, ..self }
    }

    pub(crate) const fn start_unix_ms(&self) -> u64 {
        self.start_unix_ms
    }
}

/// The wall clock, in milliseconds since 1970.
pub(crate) fn unix_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO);
    since.as_millis() as u64
}

/// Wall clock in seconds since 1970.
pub(crate) fn now_s() -> u32 {
    u32::try_from(unix_ms() / 1000).unwrap_or(u32::MAX)
}

/// A date and time in UTC, to the second, as ISO 8601.
pub(crate) fn iso8601(unix_ms: u64) -> String {
    let at = UtcDateTime::from_unix_timestamp((unix_ms / 1000) as i64).unwrap_or(UtcDateTime::MAX);
    let (year, month, day) = (at.year(), u8::from(at.month()), at.day());
    let (hour, minute, second) = (at.hour(), at.minute(), at.second());
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates() {
        let cases = [
            (0, "1970-01-01T00:00:00Z"),
            (951_782_400_000, "2000-02-29T00:00:00Z"),
            (1_231_006_505_000, "2009-01-03T18:15:05Z"),
            (1_651_113_031_999, "2022-04-28T02:30:31Z"),
            (4_102_444_799_000, "2099-12-31T23:59:59Z"),
        ];
        for (ms, text) in cases {
            assert_eq!(iso8601(ms), text);
        }
    }
}
