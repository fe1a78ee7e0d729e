//! What stands before the message: stamps, threads, source locations, categories, levels, and what
//! journals and containers put before that.

use super::stamp::{self, Shape, Stamp};

/// Where the message of a line begins, and what was before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Head {
    /// Shape and place of the last stamp; the last is the program's own.
    stamp: Option<(Shape, usize)>,
    /// Where the message begins.
    pub(super) body: usize,
    /// Whether it is about the chain state in the background.
    pub(super) background: bool,
}

/// Pieces before a message, at most; more are no log line.
const PIECES_MAX: usize = 12;
/// The longest piece in brackets.
const PIECE_BYTES_MAX: usize = 200;

impl Head {
    /// Takes a line apart.
    #[inline]
    pub(super) fn of(line: &[u8]) -> Self {
        let mut head = Self { stamp: None, body: 0, background: false };
        for _ in 0..PIECES_MAX {
            let Some(length) = head.piece(line, head.body) else { break };
            head.body += length;
        }
        head
    }

    /// The stamp, when its digits make sense.
    pub(super) fn stamp(&self, line: &[u8]) -> Option<Stamp> {
        let (shape, at) = self.stamp?;
        stamp::parse(shape, line.get(at..)?)
    }

    /// The length of the piece at `at`, with the blank behind it.
    #[inline]
    fn piece(&mut self, line: &[u8], at: usize) -> Option<usize> {
        let rest = &line[at..];
        match *rest.first()? {
            b'0'..=b'9' => self.stamp_piece(rest, at),
            b'[' => self.bracket(rest, at),
            b'<' => closed(rest, b'>'),
            b'(' => closed(rest, b')'),
            // Colours of terminals.
            0x1b => {
                let end = memchr::memchr(b'm', rest.get(..12.min(rest.len()))?)?;
                Some(end + 1 + usize::from(rest.get(end + 1) == Some(&b' ')))
            }
            b'A'..=b'Z' => self.word(rest, at),
            // `- INFO - `, where a stamp came before.
            b'-' if self.stamp.is_some() => {
                let level = rest.strip_prefix(b"- ")?;
                let length = level.iter().take_while(|byte| byte.is_ascii_uppercase()).count();
                (length >= 4 && level[length..].starts_with(b" - ")).then_some(length + 5)
            }
            b'a'..=b'z' if at == 0 => container(rest),
            _ => None,
        }
    }

    #[inline]
    fn stamp_piece(&mut self, rest: &[u8], at: usize) -> Option<usize> {
        let (shape, mut length) = shape(rest)?;
        let has_zone = matches!(rest.get(length), Some(b'+' | b'-')) && shape == Shape::Iso;
        match rest.get(length) {
            Some(b'Z') => length += 1,
            _ if has_zone => length += 5 + usize::from(rest.get(length + 3) == Some(&b':')),
            _ => {}
        }
        (rest.get(length) == Some(&b' ')).then_some(())?;
        self.stamp = Some((shape, at));
        length += 1;
        // A journal with ISO times puts host and process between.
        if has_zone && let Some(process) = process(&rest[length..]) {
            length += process;
        }
        Some(length)
    }

    #[inline]
    fn bracket(&mut self, rest: &[u8], at: usize) -> Option<usize> {
        let length = closed(rest, b']')?;
        let inside = &rest[1..];
        match inside.first() {
            Some(b'0'..=b'9') if inside.get(4) == Some(&b'-') => {
                self.stamp = Some((Shape::Iso, at + 1));
            }
            // bcoin's files: a letter for the level, and the time.
            Some(b'A'..=b'Z') if inside.get(1) == Some(&b':') => {
                self.stamp = Some((Shape::Iso, at + 3));
            }
            Some(b'b') => self.background |= inside.starts_with(b"background validation]"),
            _ => {}
        }
        Some(length)
    }

    /// Words in capitals before a message, and the date of a journal.
    #[inline]
    fn word(&mut self, rest: &[u8], at: usize) -> Option<usize> {
        let capitals = rest.iter().take(10).take_while(|byte| byte.is_ascii_uppercase()).count();
        if capitals == 1 {
            if rest.get(6) == Some(&b' ') && rest.get(9) == Some(&b':') {
                stamp::month(rest)?;
                self.stamp = Some((Shape::Syslog, at));
                return Some(16 + process(rest.get(16..)?)?);
            }
            return None;
        }
        if !(4..10).contains(&capitals) {
            return None;
        }
        match (rest.get(capitals)?, rest.get(capitals + 1)) {
            // A subsystem of btcd: `SYNC: `.
            (b':', Some(b' ')) if capitals == 4 => Some(6),
            // A logger of Python: `INFO:BlockProcessor:`.
            (b':', _) => {
                let name = rest.get(capitals + 1..)?;
                let end = memchr::memchr(b':', name.get(..40.min(name.len()))?)?;
                let is_name = |byte: &u8| byte.is_ascii_alphanumeric() || b"._".contains(byte);
                name[..end].iter().all(is_name).then_some(())?;
                let end = capitals + 1 + end + 1;
                Some(end + usize::from(rest.get(end) == Some(&b' ')))
            }
            // A level: `INFO [blockchain] `.
            (b' ', Some(b'[')) => Some(capitals + 1),
            _ => None,
        }
    }
}

/// Which stamp begins with these digits, and its length without zone.
#[inline]
fn shape(rest: &[u8]) -> Option<(Shape, usize)> {
    if rest.len() < 18 {
        return None;
    }
    let fraction = |from: usize| {
        if !matches!(rest.get(from), Some(b'.' | b',')) {
            return from;
        }
        let digits = rest[from + 1..].iter().take_while(|byte| byte.is_ascii_digit()).count();
        from + 1 + digits
    };
    match (rest[2], rest[4]) {
        (_, b'-') if rest[7] == b'-' && rest[13] == b':' => Some((Shape::Iso, fraction(19))),
        (b'/', _) if rest[5] == b'/' && rest[11] == b':' => Some((Shape::Slashes, 17)),
        (b':', _) if rest[5] == b':' => {
            let end = fraction(8);
            let is_date = rest.get(end + 5) == Some(&b'-') && rest.get(end + 8) == Some(&b'-');
            if is_date { Some((Shape::TimeFirst, end + 11)) } else { Some((Shape::TimeOnly, end)) }
        }
        _ => None,
    }
}

/// A piece up to this byte and the blank behind it.
#[inline]
fn closed(rest: &[u8], close: u8) -> Option<usize> {
    let end = rest.iter().take(PIECE_BYTES_MAX).position(|byte| *byte == close)?;
    match rest.get(end + 1) {
        Some(b' ') => Some(end + 2),
        // The colour may end behind the bracket.
        Some(0x1b) => Some(end + 1),
        _ => None,
    }
}

/// `host program[123]: `.
fn process(rest: &[u8]) -> Option<usize> {
    let window = rest.get(..PIECE_BYTES_MAX.min(rest.len()))?;
    let end = memchr::memmem::find(window, b": ")?;
    let mut blanks = memchr::memchr_iter(b' ', &window[..end]);
    (blanks.next().is_some() && blanks.next().is_none()).then_some(end + 2)
}

/// `electrs   | `, as containers that run together print it.
fn container(rest: &[u8]) -> Option<usize> {
    let window = rest.get(..60.min(rest.len()))?;
    let end = memchr::memmem::find(window, b" | ")?;
    let name = window[..end].trim_ascii_end();
    let is_name = |byte: &u8| byte.is_ascii_alphanumeric() || b"-_.".contains(byte);
    name.iter().all(is_name).then_some(end + 3)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_found() {
        let check = |line: &str, us: Option<i64>| {
            let head = Head::of(line.as_bytes());
            assert_eq!(&line[head.body..], "message", "{line}");
            let stamp = head.stamp(line.as_bytes());
            assert_eq!(stamp.map(|stamp| stamp.us % stamp::DAY_US), us, "{line}");
        };
        let noon = Some(43_200_000_000);
        for line in [
            "message",
            "[*] [bench] message",
            "[info] (chain) message",
            "\x1b[32m[info]\x1b[m (chain) message",
            "INFO:BlockProcessor:message",
            "electrs   | message",
        ] {
            check(line, None);
        }
        for line in [
            "2019-01-09T12:00:00Z message",
            "2019-01-09 12:00:00 message",
            "[*] 2026-01-09T12:00:00.000000Z [msghand] [validation.cpp:12] [F] [bench:info] message",
            "2019-01-09T12:00:00Z (mocktime: 2030-01-01T00:00:00Z) message",
            "01/09/19 12:00:00 message",
            "2024-02-16 12:00:00.000 [INF] SYNC: message",
            "12:00:00 2013-10-23 [INF] BTCD: BMGR: message",
            "12:00:00.000000 INFO [blockchain] message",
            "[2025-01-27 12:00:00.000] <Controller> message",
            "[2025-01-27 12:00:00.000] <Controller> (Debug) message",
            "[2023-07-18T12:00:00.000Z INFO  electrs::chain] message",
            "[I:2018-10-06T12:00:00Z] (chain) message",
            "2018-08-17T12:00:00 - DEBUG - message",
            "Apr 14 12:00:00 raspberrypi Fulcrum[60901]: <Controller> message",
            "2024-01-01T13:00:00+0100 host electrumx[12]: INFO:DB:message",
            "electrs   | [2023-07-18T12:00:00.000Z INFO  electrs::chain] message",
        ] {
            check(line, noon);
        }
    }
}
