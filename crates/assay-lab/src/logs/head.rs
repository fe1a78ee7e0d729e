//! Parses the part before the message with one grammar for programs, journals, syslog daemons, supervisors and container
//! runtimes.
//!
//! ```text
//! head    = { blank | piece }                       up to a known message
//! piece   = stamp [":"] | group | tag | origin | header
//! stamp   = see `stamp::read`
//! group   = "[" … "]" | "(" … ")" | "<" … ">"       a stamp may begin the first kind: "[I:2018-…]", "[2023-…Z INFO x]"
//! tag     = "INFO" | "INFO:" | "INFO:name:" | "SYNC:" | "- name -" | "name | " | "name stdout | " | container id | "MESSAGE="
//! origin  = [host] [facility] unit ["[" pid "]"] ":"     after a stamp, or with a pid
//! header  = ("stdout" | "stderr") ("F" | "P") " "        of CRI; P: the line continues in the next record
//!         | "<" number ">" ["1" stamp host app pid id data]     of syslog, RFC 3164 and RFC 5424
//! ```
//!
//! Colours and JSON are removed before ([`envelope`](super::envelope)). The last stamp is the program's own.

use super::stamp::{self, Stamp};

/// Parsed head of a line, with the offset of its message.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Head {
    pub(super) stamp: Option<Stamp>,
    pub(super) body: usize,
    /// Container record, if the line is one.
    pub(super) record: Option<Record>,
    /// True if host and unit may follow.
    is_open: bool,
    /// True if the last piece was a name between dashes.
    is_dashed: bool,
}

/// A container record: a line, or a part of one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Record {
    /// Offset of its text.
    pub(super) text: usize,
    /// 0: standard output; 1: standard error.
    pub(super) stream: usize,
    /// True if the line continues in the next record of the stream.
    pub(super) is_partial: bool,
}

/// Maximum number of pieces; more are no log line.
const PIECES_MAX: usize = 24;
/// Maximum length of a piece.
const PIECE_BYTES_MAX: usize = 200;
const LEVELS: [&[u8]; 14] = [
    b"TRACE",
    b"DEBUG",
    b"DEBG",
    b"INFO",
    b"NOTICE",
    b"WARN",
    b"WARNING",
    b"ERROR",
    b"CRITICAL",
    b"CRIT",
    b"FATAL",
    b"INF",
    b"WRN",
    b"ERR",
];
/// Beginnings of known messages. None of them is parsed as a host or a unit.
const MESSAGES: [&[u8]; 18] = [
    b"UpdateTip: new best=",
    b"SetBestChain: new best=",
    b"Processed ",
    b"Block ",
    b"block=",
    b"block_organized",
    b"best=",
    b"chain updated: ",
    b"Indexed ",
    b"indexing ",
    b"flush #",
    b"our height: ",
    b"Saved ",
    b"Starting electrs",
    b"starting electrs",
    b"Status: time=",
    b"Synchronizing ",
    b"Version ",
];

impl Head {
    #[inline]
    pub(super) fn of(line: &[u8]) -> Self {
        let mut head = Self::default();
        for _ in 0..PIECES_MAX {
            head.body += blanks(&line[head.body..]);
            let Some(length) = head.piece(&line[head.body..]) else { break };
            head.body += length;
        }
        head
    }

    /// True if the line ends too early to classify, and may have been a known message.
    pub(super) fn is_cut(&self, line: &[u8]) -> bool {
        let body = &line[self.body..];
        body.len() >= 3 && MESSAGES.iter().any(|message| message.starts_with(body))
    }

    /// Length of the first piece.
    #[inline]
    fn piece(&mut self, rest: &[u8]) -> Option<usize> {
        let is_open = std::mem::replace(&mut self.is_open, false);
        let is_dashed = std::mem::replace(&mut self.is_dashed, false);
        let first = *rest.first()?;
        if (first.is_ascii_digit() || first.is_ascii_uppercase() || first == b'@')
            && let Some((stamp, length)) = stamp::read(rest)
        {
            return self.stamp(rest, stamp, length);
        }
        match first {
            b'[' => self.bracket(rest),
            b'(' => closed(rest, b')'),
            b'<' => self.angle(rest),
            b'-' => self.dash(rest, is_dashed),
            // The byte order mark of UTF-8.
            0xef => rest.starts_with(b"\xef\xbb\xbf").then_some(3),
            b'0'..=b'9' | b'A'..=b'Z' | b'a'..=b'z' => self.word(rest, is_open),
            _ => None,
        }
    }

    fn stamp(&mut self, rest: &[u8], stamp: Stamp, length: usize) -> Option<usize> {
        let length = length + usize::from(rest.get(length) == Some(&b':'));
        is_end(rest, length).then_some(())?;
        (self.stamp, self.is_open) = (Some(stamp), true);
        if !rest[0].is_ascii_uppercase() || !rest[1].is_ascii_digit() {
            return Some(length);
        }
        // klog: thread and source location follow, up to a bracket.
        closed(rest, b']')
    }

    #[inline]
    fn bracket(&mut self, rest: &[u8]) -> Option<usize> {
        let length = closed(rest, b']')?;
        let inside = &rest[1..length - 1];
        // bcoin's files have a letter for the level before the time.
        let from = if inside.get(1) == Some(&b':') { 2 } else { blanks(inside) };
        if let Some((stamp, _)) = inside.get(from..).and_then(stamp::read) {
            (self.stamp, self.is_open) = (Some(stamp), true);
        }
        Some(length)
    }

    /// `<34>` and `<165>1 …` of syslog, `<Controller>` of Fulcrum.
    fn angle(&mut self, rest: &[u8]) -> Option<usize> {
        let digits = rest[1..].iter().take_while(|byte| byte.is_ascii_digit()).count();
        if digits == 0 || rest.get(1 + digits) != Some(&b'>') {
            return closed(rest, b'>');
        }
        let mut at = digits + 2;
        self.is_open = true;
        if !rest[at..].starts_with(b"1 ") {
            return Some(at);
        }
        at += 2;
        self.stamp = stamp::read(&rest[at..]).map(|(stamp, _)| stamp).or(self.stamp);
        for _ in 0..5 {
            at += memchr::memchr(b' ', &rest[at..])? + 1;
        }
        // Structured data: none, or elements with quoted values.
        if rest.get(at) == Some(&b'-') {
            return Some(at + 1);
        }
        while rest.get(at) == Some(&b'[') {
            let (mut is_quoted, mut is_escaped) = (false, false);
            at += 1 + rest[at..].iter().position(|byte| {
                is_quoted ^= *byte == b'"' && !is_escaped;
                is_escaped = !is_escaped && *byte == b'\\';
                *byte == b']' && !is_quoted
            })?;
        }
        Some(at)
    }

    /// Repeated `- name - `.
    fn dash(&mut self, rest: &[u8], is_dashed: bool) -> Option<usize> {
        let name = rest.strip_prefix(b"- ")?;
        let window = &name[..PIECE_BYTES_MAX.min(name.len())];
        let length = memchr::memmem::find(window, b" - ").filter(|length| {
            let is_word = window[..*length].iter().all(|byte| is_name(*byte));
            is_word && self.stamp.is_some() && stamp::read(name).is_none()
        });
        self.is_dashed = length.is_some();
        length.map(|length| 2 + length).or(is_dashed.then_some(2))
    }

    /// Names, levels, hosts and units.
    #[inline]
    fn word(&mut self, rest: &[u8], is_open: bool) -> Option<usize> {
        let window = &rest[..PIECE_BYTES_MAX.min(rest.len())];
        if let Some(length) = column(window) {
            return Some(length);
        }
        if MESSAGES.iter().any(|message| rest.starts_with(message) || message.starts_with(rest)) {
            return None;
        }
        let length =
            window.iter().position(|byte| matches!(byte, b' ' | b'\t')).unwrap_or(window.len());
        let word = &window[..length];
        let is_id = matches!(length, 12 | 64) && word.iter().all(u8::is_ascii_hexdigit);
        if is_id {
            return Some(length);
        }
        if let Some(record) = self.record(rest, word) {
            (self.record, self.is_open) = (Some(record), true);
            return Some(record.text - self.body);
        }
        if rest.starts_with(b"MESSAGE=") {
            return Some(8);
        }
        let capitals = word.iter().take_while(|byte| byte.is_ascii_uppercase()).count();
        match word.get(capitals) {
            None if LEVELS.contains(&word) => {
                self.is_open = true;
                return Some(capitals);
            }
            Some(b':') if capitals >= 3 && length == capitals + 1 => return Some(length),
            // A Python logger: `INFO:BlockProcessor:`.
            Some(b':') if LEVELS.contains(&&word[..capitals]) => {
                let name = &window[capitals + 1..];
                let end = memchr::memchr(b':', name)?;
                return name[..end].iter().all(|byte| is_name(*byte)).then_some(capitals + end + 2);
            }
            _ => {}
        }
        origin(window, is_open)
    }

    /// `stdout F ` and its variants, after the stamp of a container runtime.
    fn record(&self, rest: &[u8], word: &[u8]) -> Option<Record> {
        self.stamp?;
        let stream = [&b"stdout"[..], b"stderr"].iter().position(|name| *name == word)?;
        let flag = *rest.get(word.len() + 1)?;
        let is_flag = matches!(flag, b'F' | b'P') && is_end(rest, word.len() + 2);
        let text = (word.len() + 3).min(rest.len());
        is_flag.then_some(Record { text: self.body + text, stream, is_partial: flag == b'P' })
    }
}

fn blanks(text: &[u8]) -> usize {
    text.iter().take_while(|byte| matches!(byte, b' ' | b'\t')).count()
}

/// True if a piece of this length ends there.
fn is_end(rest: &[u8], length: usize) -> bool {
    matches!(rest.get(length), None | Some(b' ' | b'\t'))
}

fn is_name(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"-_./:@\\".contains(&byte)
}

/// A piece up to and including this byte.
#[inline]
fn closed(rest: &[u8], close: u8) -> Option<usize> {
    let end = rest.iter().take(PIECE_BYTES_MAX).position(|byte| *byte == close)? + 1;
    (is_end(rest, end) || matches!(rest[end], b'[' | b':')).then_some(end)
}

/// `name |` and `name stdout |` of docker-compose and process managers.
fn column(window: &[u8]) -> Option<usize> {
    let end = memchr::memmem::find(window, b" | ")?;
    let mut words = window[..end].split(|byte| *byte == b' ').filter(|word| !word.is_empty());
    let is_word = |byte: &u8| byte.is_ascii_alphanumeric() || b"-_.|".contains(byte);
    let is_name = words.next()?.iter().all(is_word);
    let is_stream = words.next().is_none_or(|word| word == b"stdout" || word == b"stderr");
    (is_name && is_stream && words.next().is_none()).then_some(end + 2)
}

/// `host program[123]:`, `host daemon.info program:`, `program[123]:`.
fn origin(window: &[u8], is_open: bool) -> Option<usize> {
    let end = memchr::memmem::find(window, b": ")
        .or_else(|| window.len().checked_sub(1).filter(|end| window[*end] == b':'))?;
    let has_pid = window[..end].ends_with(b"]");
    let words = window[..end].split(|byte| *byte == b' ').filter(|word| !word.is_empty());
    let is_word = |word: &[u8]| word.iter().all(|byte| is_name(*byte) || b"[]()".contains(byte));
    let count = words.clone().count();
    (words.clone().all(is_word) && (count == 1 && has_pid || is_open && count <= 3))
        .then_some(end + 1)
}
