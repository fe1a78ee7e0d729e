//! The clocks of logs.

use ::time::{Date, Month, UtcDateTime};

/// A moment as a log has it.
///
/// Zones are taken off where a stamp has one. btcd and Fulcrum write local time without a zone: such
/// stamps are read as UTC, which is right for differences.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stamp {
    /// Microseconds since 1970, or since some other midnight when not dated.
    pub us: i64,
    /// Whether the year is known. Without it, moments of one log can only be subtracted.
    pub is_dated: bool,
}

/// How a stamp is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Shape {
    /// `2019-01-09T12:51:59Z`, a blank instead of the `T`, with or without fraction and zone.
    Iso,
    /// `01/09/19 12:51:59`.
    Slashes,
    /// `20:13:59 2013-10-23`.
    TimeFirst,
    /// `20:13:59.123456`.
    TimeOnly,
    /// `Apr 14 22:50:53`.
    Syslog,
}

pub(super) const DAY_US: i64 = 86_400_000_000;

/// A stamp of this shape at the front of the text.
pub(super) fn parse(shape: Shape, text: &[u8]) -> Option<Stamp> {
    match shape {
        Shape::Iso => {
            let day = iso_day(text)?;
            let (time_us, length) = time(text.get(11..)?)?;
            let zone_us = zone_us(&text[11 + length..]);
            Some(Stamp { us: day * DAY_US + time_us - zone_us, is_dated: true })
        }
        Shape::Slashes => {
            let year = 2000 + two(text, 6)?;
            let day = civil_day(year, two(text, 0)?, two(text, 3)?)?;
            let (time_us, _) = time(text.get(9..)?)?;
            Some(Stamp { us: day * DAY_US + time_us, is_dated: true })
        }
        Shape::TimeFirst => {
            let (time_us, length) = time(text)?;
            let day = iso_day(text.get(length + 1..)?)?;
            Some(Stamp { us: day * DAY_US + time_us, is_dated: true })
        }
        Shape::TimeOnly => time(text).map(|(us, _)| Stamp { us, is_dated: false }),
        Shape::Syslog => {
            let month = month(text)?;
            let tens = text.get(4)?;
            let tens = if *tens == b' ' { 0 } else { i64::from(tens.wrapping_sub(b'0')) };
            let ones = i64::from(text.get(5)?.wrapping_sub(b'0'));
            // Any leap year will do, so that 29 February is a day.
            let day = civil_day(1972, month, tens * 10 + ones)?;
            let (time_us, _) = time(text.get(7..)?)?;
            Some(Stamp { us: day * DAY_US + time_us, is_dated: false })
        }
    }
}

/// Seconds since 1970 of a block's date: ISO or with slashes.
pub(super) fn date(text: &[u8]) -> Option<i64> {
    let shape = if text.get(2) == Some(&b'/') { Shape::Slashes } else { Shape::Iso };
    parse(shape, text).map(|stamp| stamp.us.div_euclid(1_000_000))
}

/// The number of a month, from 1.
pub(super) fn month(text: &[u8]) -> Option<i64> {
    const NAMES: [&[u8; 3]; 12] = [
        b"Jan", b"Feb", b"Mar", b"Apr", b"May", b"Jun", b"Jul", b"Aug", b"Sep", b"Oct", b"Nov",
        b"Dec",
    ];
    let name = text.get(..3)?;
    NAMES.iter().position(|known| *known == name).map(|index| index as i64 + 1)
}

fn two(text: &[u8], at: usize) -> Option<i64> {
    let [a, b] = *text.get(at..at + 2)? else { return None };
    (a.is_ascii_digit() && b.is_ascii_digit())
        .then(|| i64::from(a - b'0') * 10 + i64::from(b - b'0'))
}

/// Pairs of digits at these places; `None` where a byte is no digit. All are judged at once.
#[inline]
fn pairs<const LENGTH: usize, const PAIRS: usize>(
    text: &[u8; LENGTH],
    places: [usize; PAIRS],
) -> Option<[i64; PAIRS]> {
    let mut largest = 0;
    let values = places.map(|at| {
        let (tens, ones) = (text[at].wrapping_sub(b'0'), text[at + 1].wrapping_sub(b'0'));
        largest = largest.max(tens).max(ones);
        i64::from(tens) * 10 + i64::from(ones)
    });
    (largest <= 9).then_some(values)
}

#[inline]
fn iso_day(text: &[u8]) -> Option<i64> {
    let text = text.first_chunk::<10>()?;
    (text[4] == b'-' && text[7] == b'-').then_some(())?;
    let [century, year, month, day] = pairs(text, [0, 2, 5, 8])?;
    civil_day(century * 100 + year, month, day)
}

/// `HH:MM:SS` with or without a fraction, in microseconds, and its length.
fn time(text: &[u8]) -> Option<(i64, usize)> {
    let clock = text.first_chunk::<8>()?;
    (clock[2] == b':' && clock[5] == b':').then_some(())?;
    let [hour, minute, second] = pairs(clock, [0, 3, 6])?;
    // A leap second is one.
    (hour < 24 && minute < 60 && second <= 60).then_some(())?;
    let mut us = (hour * 3600 + minute * 60 + second) * 1_000_000;
    let mut length = 8;
    if let Some(b'.' | b',') = text.get(8)
        && text.get(9).is_some_and(u8::is_ascii_digit)
    {
        length = 9;
        let mut worth = 100_000;
        while let Some(digit @ b'0'..=b'9') = text.get(length) {
            us += i64::from(digit - b'0') * worth;
            worth /= 10;
            length += 1;
        }
    }
    Some((us, length))
}

/// What a zone such as `+0900` or `+09:00` is ahead of UTC.
fn zone_us(text: &[u8]) -> i64 {
    let sign = match text.first() {
        Some(b'+') => 1,
        Some(b'-') => -1,
        _ => return 0,
    };
    let minutes_at = if text.get(3) == Some(&b':') { 4 } else { 3 };
    match (two(text, 1), two(text, minutes_at)) {
        (Some(hours), Some(minutes)) => sign * (hours * 60 + minutes) * 60_000_000,
        _ => 0,
    }
}

/// Days since 1970 of a date of the Gregorian calendar; `None` when there is no such date.
fn civil_day(year: i64, month: i64, day: i64) -> Option<i64> {
    let month = Month::try_from(u8::try_from(month).ok()?).ok()?;
    let date = Date::from_calendar_date(i32::try_from(year).ok()?, month, u8::try_from(day).ok()?);
    Some(i64::from(date.ok()?.to_julian_day() - UtcDateTime::UNIX_EPOCH.to_julian_day()))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The same as `iso_day` and the beginning of `time`, pair by pair.
    fn slowly(text: &[u8]) -> Option<[i64; 7]> {
        let marks = [(4, b'-'), (7, b'-'), (13, b':'), (16, b':')];
        let is_stamp = marks.iter().all(|(at, mark)| text.get(*at) == Some(mark));
        is_stamp.then_some(())?;
        let mut values = [0; 7];
        for (value, at) in values.iter_mut().zip([0, 2, 5, 8, 11, 14, 17]) {
            *value = two(text, at)?;
        }
        let [_, _, _, _, hour, minute, second] = values;
        (hour < 24 && minute < 60 && second <= 60).then_some(values)
    }

    proptest! {
        #[test]
        fn pairs_at_once_and_one_by_one_are_the_same(at in 0..20usize, byte: u8, length in 0..21usize) {
            let mut text = *b"2019-01-09T12:51:59Z";
            text[at] = byte;
            let text = &text[..length.min(text.len())];
            let slowly = slowly(text).and_then(|[century, year, month, day, hour, minute, second]| {
                let day = civil_day(century * 100 + year, month, day)?;
                Some(day * DAY_US + (hour * 3600 + minute * 60 + second) * 1_000_000)
            });
            let fast = parse(Shape::Iso, text).map(|stamp| stamp.us);
            prop_assert_eq!(fast, slowly, "{}", String::from_utf8_lossy(text));
        }
    }

    #[test]
    fn shapes() {
        let us = |shape, text: &str| parse(shape, text.as_bytes()).map(|stamp| stamp.us);
        let second = Some(1_547_038_319_000_000);
        assert_eq!(us(Shape::Iso, "2019-01-09T12:51:59Z UpdateTip"), second);
        assert_eq!(us(Shape::Iso, "2019-01-09 12:51:59 UpdateTip"), second);
        assert_eq!(us(Shape::Iso, "2019-01-09T21:51:59+0900 host"), second);
        assert_eq!(us(Shape::Iso, "2019-01-09T21:51:59+09:00 host"), second);
        assert_eq!(us(Shape::Iso, "2019-01-09T12:51:59.250000Z"), Some(1_547_038_319_250_000));
        assert_eq!(us(Shape::Slashes, "01/09/19 12:51:59 SetBestChain"), second);
        assert_eq!(us(Shape::TimeFirst, "12:51:59 2019-01-09 [INF]"), second);
        assert_eq!(us(Shape::TimeOnly, "00:00:01.000002 INFO"), Some(1_000_002));
        assert_eq!(us(Shape::Syslog, "Jan  2 00:00:00 host"), Some((730 + 1) * DAY_US));
        for text in ["2019-02-29T00:00:00Z", "2019-01-09T24:00:00Z", "2019-13-09T00:00:00Z", ""] {
            assert_eq!(us(Shape::Iso, text), None, "{text}");
        }
        assert_eq!(date(b"1970-01-01 00:00:00"), Some(0));
        assert_eq!(date(b"2000-02-29 00:00:00"), Some(951_782_400));
        assert_eq!(date(b"2100-03-01T00:00:00Z"), Some(4_107_542_400));
    }
}
