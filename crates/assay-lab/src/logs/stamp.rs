//! Time stamps of logs.

use ::time::{Date, Month, UtcDateTime};

use super::cursor::Cursor;

/// A time in a log.
///
/// Zones are subtracted if present. Local times without a zone (btcd, Fulcrum) are read as UTC, which is correct for differences.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stamp {
    /// Microseconds since 1970, or since an unknown midnight if not dated.
    pub us: i64,
    /// True if the year is known. Otherwise only differences within one log are valid.
    pub is_dated: bool,
}

pub(super) const DAY_US: i64 = 86_400_000_000;

/// The stamp at the front of the text, and its length with the zone.
///
/// | form | written by |
/// |---|---|
/// | `2019-01-09T12:51:59.123456Z`; a blank, `_` or `/` between, any zone | programs, containers, journals, svlogd, Go |
/// | `Wed 2019-01-09 12:51:59 CET` | journals, `short-full` |
/// | `Jan  9 12:51:59`, with or without fraction and year | journals, RFC 3164 |
/// | `01/09/19 12:51:59`, `12:51:59 2019-01-09`, `12:51:59.123456` | old programs, libbitcoin |
/// | `1547038319.123456`, `12.345678` | journals, `short-unix` and `short-monotonic` |
/// | `@400000005c35ee790ee6b280` | TAI64N: s6, runit, daemontools |
/// | `I0109 12:51:59.123456` | klog |
#[inline]
pub(super) fn read(text: &[u8]) -> Option<(Stamp, usize)> {
    match *text.first()? {
        b'0'..=b'9' => match (text.get(2), text.get(4)) {
            (Some(b'/'), _) => slashes(text),
            (Some(b':'), _) => time_first(text),
            (_, Some(b'-' | b'/')) => iso(text),
            _ => seconds(text),
        },
        b'@' => tai64n(text),
        b'A'..=b'Z' => named(text),
        _ => None,
    }
}

fn iso(text: &[u8]) -> Option<(Stamp, usize)> {
    let day = iso_day(text)?;
    matches!(text.get(10)?, b'T' | b' ' | b'_').then_some(())?;
    let (time_us, length) = time(&text[11..])?;
    let rest = &text[11 + length..];
    let (zone_us, zone) = match rest {
        [b' ', b'+' | b'-', ..] => Some(zone(&rest[1..]))
            .filter(|(_, length)| *length > 0)
            .map_or((0, 0), |(us, length)| (us, length + 1)),
        _ => zone(rest),
    };
    Some((dated(day, time_us - zone_us), 11 + length + zone))
}

fn slashes(text: &[u8]) -> Option<(Stamp, usize)> {
    (text.get(5)? == &b'/' && text.get(8)? == &b' ').then_some(())?;
    let day = civil_day(2000 + two(text, 6)?, two(text, 0)?, two(text, 3)?)?;
    let (time_us, length) = time(&text[9..])?;
    Some((dated(day, time_us), 9 + length))
}

fn time_first(text: &[u8]) -> Option<(Stamp, usize)> {
    let (time_us, length) = time(text)?;
    Some(match text.get(length + 1..).and_then(iso_day) {
        Some(day) => (dated(day, time_us), length + 11),
        None => (Stamp { us: time_us, is_dated: false }, length),
    })
}

/// Seconds with a fraction: since 1970, or since boot.
fn seconds(text: &[u8]) -> Option<(Stamp, usize)> {
    let mut cursor = Cursor::new(text);
    let seconds = i64::try_from(cursor.number()?).ok()?;
    let (fraction_us, length) = fraction(cursor.rest);
    // Always microseconds.
    (length == 7).then_some(())?;
    let us = seconds.checked_mul(1_000_000)?.checked_add(fraction_us)?;
    Some((Stamp { us, is_dated: seconds > 100_000_000 }, text.len() - cursor.rest.len() + length))
}

/// Seconds from 2^62 on, ten ahead of UTC as daemontools and s6 write them, and nanoseconds, in hexadecimal digits.
fn tai64n(text: &[u8]) -> Option<(Stamp, usize)> {
    const LENGTH: usize = 25;
    let digits = std::str::from_utf8(text.get(1..LENGTH)?).ok()?;
    let seconds = i64::from_str_radix(&digits[..16], 16).ok()? - (1 << 62) - 10;
    let ns = i64::from_str_radix(&digits[16..], 16).ok()?;
    Some((Stamp { us: seconds.checked_mul(1_000_000)? + ns / 1000, is_dated: true }, LENGTH))
}

const DAYS: [&[u8; 3]; 7] = [b"Mon", b"Tue", b"Wed", b"Thu", b"Fri", b"Sat", b"Sun"];

/// Stamps that begin with a weekday, a month, or klog's level.
fn named(text: &[u8]) -> Option<(Stamp, usize)> {
    if matches!(text[0], b'I' | b'W' | b'E' | b'F')
        && let Some(date) = text.get(1..5)
        && let Some([month, day]) = date.first_chunk::<4>().and_then(|date| pairs(date, [0, 2]))
    {
        let (time_us, length) = time(text.get(6..)?)?;
        return Some((
            Stamp { is_dated: false, ..dated(leap_day(month, day)?, time_us) },
            6 + length,
        ));
    }
    let from = if DAYS.iter().any(|day| text.starts_with(*day)) { 4 } else { 0 };
    let rest = text.get(from..)?;
    if rest.first()?.is_ascii_digit() {
        let (stamp, length) = iso(rest)?;
        // Zone abbreviation, which may be ambiguous.
        let name =
            rest[length..].iter().skip(1).take_while(|byte| byte.is_ascii_uppercase()).count();
        return Some((stamp, from + length + if name > 0 { name + 1 } else { 0 }));
    }
    let month = month(rest)?;
    let mut cursor = Cursor::new(&rest[3..]);
    cursor.blanks();
    let day = i64::try_from(cursor.number()?).ok()?;
    cursor.eat(" ")?;
    let (time_us, mut length) = time(cursor.rest)?;
    length += text.len() - cursor.rest.len();
    let year = text
        .get(length + 1..length + 5)
        .filter(|_| matches!(text.get(length + 5), None | Some(b' ')));
    if let Some([century, year]) = year.and_then(|year| pairs(year.first_chunk::<4>()?, [0, 2])) {
        return Some((dated(civil_day(century * 100 + year, month, day)?, time_us), length + 5));
    }
    Some((Stamp { is_dated: false, ..dated(leap_day(month, day)?, time_us) }, length))
}

fn dated(day: i64, time_us: i64) -> Stamp {
    Stamp { us: day * DAY_US + time_us, is_dated: true }
}

/// Day in a leap year, since the year is unknown and 29 February must exist.
fn leap_day(month: i64, day: i64) -> Option<i64> {
    civil_day(1972, month, day)
}

/// A block's date (ISO or with slashes) as seconds since 1970.
pub(super) fn date(text: &[u8]) -> Option<i64> {
    read(text).map(|(stamp, _)| stamp.us.div_euclid(1_000_000))
}

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

/// Pairs of digits at these offsets; `None` if any byte is no digit. Checks all at once.
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
    (matches!(text[4], b'-' | b'/') && text[7] == text[4]).then_some(())?;
    let [century, year, month, day] = pairs(text, [0, 2, 5, 8])?;
    civil_day(century * 100 + year, month, day)
}

/// `HH:MM:SS` with or without a fraction, in microseconds, and its length.
fn time(text: &[u8]) -> Option<(i64, usize)> {
    let clock = text.first_chunk::<8>()?;
    (clock[2] == b':' && clock[5] == b':').then_some(())?;
    let [hour, minute, second] = pairs(clock, [0, 3, 6])?;
    // A leap second is valid.
    (hour < 24 && minute < 60 && second <= 60).then_some(())?;
    let (fraction_us, length) = fraction(&text[8..]);
    Some(((hour * 3600 + minute * 60 + second) * 1_000_000 + fraction_us, 8 + length))
}

/// `.123456` or `,123`, in microseconds, and its length.
fn fraction(text: &[u8]) -> (i64, usize) {
    let [b'.' | b',', digits @ ..] = text else { return (0, 0) };
    let (mut us, mut worth, mut length) = (0, 100_000, 0);
    while let Some(digit @ b'0'..=b'9') = digits.get(length) {
        us += i64::from(digit - b'0') * worth;
        worth /= 10;
        length += 1;
    }
    (us, if length > 0 { length + 1 } else { 0 })
}

/// Offset from UTC of a zone such as `Z`, `+09`, `+0900` or `+09:00`, and its length.
fn zone(text: &[u8]) -> (i64, usize) {
    let sign = match text.first() {
        Some(b'Z') => return (0, 1),
        Some(b'+') => 1,
        Some(b'-') => -1,
        _ => return (0, 0),
    };
    let Some(hours) = two(text, 1) else { return (0, 0) };
    let colon = usize::from(text.get(3) == Some(&b':'));
    let (minutes, length) = two(text, 3 + colon).map_or((0, 3), |minutes| (minutes, 5 + colon));
    (sign * (hours * 60 + minutes) * 60_000_000, length)
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

    /// Reference for `iso_day` and the beginning of `time`, pair by pair.
    fn slowly(text: &[u8]) -> Option<[i64; 7]> {
        let marks = [(4, b'-'), (7, b'-'), (13, b':'), (16, b':')];
        let is_stamp = marks.iter().all(|(at, mark)| text.get(*at) == Some(mark))
            && matches!(text.get(10), Some(b'T' | b' ' | b'_'));
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
            let fast = read(text).map(|(stamp, _)| stamp.us);
            prop_assert_eq!(fast, slowly, "{}", String::from_utf8_lossy(text));
        }
    }

    /// One time in every form, with the offset of the message.
    #[test]
    fn forms() {
        let check = |text: &str, us: i64, is_dated: bool| {
            let read = read(format!("{text} more").as_bytes());
            assert_eq!(read, Some((Stamp { us, is_dated }, text.len())), "{text}");
        };
        let second = 1_547_038_319_000_000;
        for text in [
            "2019-01-09T12:51:59Z",
            "2019-01-09 12:51:59",
            "2019-01-09_12:51:59",
            "2019/01/09 12:51:59",
            "2019-01-09T21:51:59+0900",
            "2019-01-09T21:51:59+09:00",
            "2019-01-09T21:51:59+09",
            "01/09/19 12:51:59",
            "12:51:59 2019-01-09",
            "Wed 2019-01-09 12:51:59 UTC",
            "Wed 2019-01-09 13:51:59 +01",
            "Wed Jan  9 12:51:59 2019",
            "@400000005c35ee7900000000",
        ] {
            check(text, second, true);
        }
        for text in [
            "2019-01-09T12:51:59.250000Z",
            "2019-01-09 12:51:59,25",
            "2019-01-09T12:51:59.250000000Z",
            "1547038319.250000",
            "@400000005c35ee790ee6b280",
        ] {
            check(text, second + 250_000, true);
        }
        check("00:00:01.000002", 1_000_002, false);
        check("12.345678", 12_345_678, false);
        let day = (730 + 1) * DAY_US + 1_500_000;
        for text in [
            "Jan  2 00:00:01.5",
            "Jan 02 00:00:01.500",
            "Jan 2 00:00:01.5",
            "I0102 00:00:01.500000",
        ] {
            check(text, day, false);
        }
        for text in ["2019-02-29T00:00:00Z", "2019-01-09T24:00:00Z", "2019-13-09T00:00:00Z", ""] {
            assert_eq!(read(text.as_bytes()), None, "{text}");
        }
        assert_eq!(date(b"1970-01-01 00:00:00"), Some(0));
        assert_eq!(date(b"2000-02-29 00:00:00"), Some(951_782_400));
        assert_eq!(date(b"2100-03-01T00:00:00Z"), Some(4_107_542_400));
    }
}
