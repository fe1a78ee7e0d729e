//! Lines out of bytes, events out of lines.

use memchr::memmem::Finder;

use super::head::Head;
use super::steps::Steps;
use super::{Event, Fault, core, others};

/// Longer lines are no progress of any program; they are passed over and reported.
pub const LINE_BYTES_MAX: usize = 1 << 16;

/// A line that is an event, or should be one.
#[derive(Debug, Clone, PartialEq)]
pub struct Found {
    /// Number of the line, from 1.
    pub line: u64,
    /// What it says.
    pub event: Result<Event, Fault>,
}

/// Takes a log in pieces of any size; see the [module](super).
#[derive(Debug)]
pub struct Parser {
    mark: Finder<'static>,
    /// A line that is not complete yet.
    carry: Vec<u8>,
    /// The line under way is too long and passed over.
    is_skipping: bool,
    /// Lines that ended.
    lines: u64,
    state: State,
}

/// What lines need of those before them.
#[derive(Debug, Default)]
struct State {
    steps: Steps,
    height: Option<u32>,
}

impl Default for Parser {
    fn default() -> Self {
        Self::new()
    }
}

impl Parser {
    /// A parser at the beginning of a log.
    pub fn new() -> Self {
        Self {
            mark: Finder::new(core::MARK),
            carry: Vec::new(),
            is_skipping: false,
            lines: 0,
            state: State::default(),
        }
    }

    /// Lines so far, the one under way included.
    pub const fn lines(&self) -> u64 {
        self.lines + (self.is_skipping || !self.carry.is_empty()) as u64
    }

    /// Takes the next bytes and tells of every line that they complete.
    pub fn feed(&mut self, mut bytes: &[u8], sink: &mut dyn FnMut(Found)) {
        if self.is_skipping || !self.carry.is_empty() {
            let Some(end) = memchr::memchr(b'\n', bytes) else { return self.keep(bytes, sink) };
            self.keep(&bytes[..end], sink);
            bytes = &bytes[end + 1..];
            self.lines += 1;
            let is_skipped = std::mem::take(&mut self.is_skipping);
            let line = std::mem::take(&mut self.carry);
            if !is_skipped {
                let at = self.mark.find(&line);
                self.line(&line, at, sink);
            }
            // The memory serves the next line.
            self.carry = line;
            self.carry.clear();
        }
        let whole = memchr::memrchr(b'\n', bytes).map_or(0, |last| last + 1);
        self.block(&bytes[..whole], sink);
        self.keep(&bytes[whole..], sink);
    }

    /// The log is over; a line that lacks its end is judged as it is.
    pub fn finish(&mut self, sink: &mut dyn FnMut(Found)) {
        let line = std::mem::take(&mut self.carry);
        if std::mem::take(&mut self.is_skipping) {
            self.lines += 1;
            return;
        }
        if line.is_empty() {
            return;
        }
        self.lines += 1;
        let at = self.mark.find(&line);
        let is_whole = ends_whole(&line);
        let mut is_told = is_beginning(&line);
        let cut = Found { line: self.lines, event: Err(Fault::Cut) };
        if is_told {
            sink(cut.clone());
        }
        self.line(&line, at, &mut |found| {
            // A number at the end may have lost digits.
            let is_sound = found.event.is_ok() && is_whole;
            if !is_told {
                sink(if is_sound { found } else { cut.clone() });
            }
            is_told = true;
        });
    }

    /// Keeps the beginning of a line, within bounds.
    fn keep(&mut self, bytes: &[u8], sink: &mut dyn FnMut(Found)) {
        if self.is_skipping || bytes.is_empty() {
            return;
        }
        if self.carry.len() + bytes.len() > LINE_BYTES_MAX {
            self.carry.clear();
            self.is_skipping = true;
            sink(Found { line: self.lines + 1, event: Err(Fault::TooLong) });
        } else {
            self.carry.extend_from_slice(bytes);
        }
    }

    /// Whole lines.
    fn block(&mut self, block: &[u8], sink: &mut dyn FnMut(Found)) {
        let find = |mark: &Finder<'_>, from: usize| mark.find(&block[from..]).map(|at| from + at);
        // Bitcoin Core's tips are looked for in all lines at once, the others line by line.
        let mut next = find(&self.mark, 0).unwrap_or(usize::MAX);
        let mut begin = 0;
        for end in memchr::memchr_iter(b'\n', block) {
            self.lines += 1;
            let line = &block[begin..end];
            let at = (next < end).then(|| next - begin);
            if at.is_some() {
                next = find(&self.mark, end).unwrap_or(usize::MAX);
            }
            if line.len() > LINE_BYTES_MAX {
                sink(Found { line: self.lines, event: Err(Fault::TooLong) });
            } else {
                self.line(line, at, sink);
            }
            begin = end + 1;
        }
    }

    /// One line without its end; `at` is where [`core::MARK`] is in it.
    #[inline]
    fn line(&mut self, line: &[u8], at: Option<usize>, sink: &mut dyn FnMut(Found)) {
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        if let Some(event) = self.state.event(line, at) {
            sink(Found { line: self.lines, event });
        }
    }
}

impl State {
    #[inline]
    fn event(&mut self, line: &[u8], at: Option<usize>) -> Option<Result<Event, Fault>> {
        if let Some(at) = at {
            let tip = core::tip(line, at);
            if let Ok(progress) = &tip {
                self.height = Some(progress.height);
                self.steps.height = Some(progress.height);
            }
            return Some(tip.map(Event::Progress));
        }
        let head = Head::of(line);
        let body = &line[head.body..];
        if matches!(body.first(), Some(b' ' | b'-')) {
            return match self.steps.take(body) {
                Ok(steps) => steps.map(|steps| Ok(Event::Steps(steps))),
                Err(fault) => Some(Err(fault)),
            };
        }
        let event = others::event(line, &head, self.height);
        match &event {
            Some(Ok(Event::Progress(progress))) => self.height = Some(progress.height),
            // What a killed program began is not the next one's.
            Some(Ok(Event::Start(_))) => *self = Self::default(),
            _ => {}
        }
        event
    }
}

/// Whether a line that lacks its end can have lost nothing but that.
fn ends_whole(line: &[u8]) -> bool {
    let line = line.trim_ascii_end();
    let digits = line.iter().rev().take_while(|byte| byte.is_ascii_digit()).count();
    if digits == 0 {
        return !line.ends_with(b".");
    }
    // `progress=%f` has six digits, always.
    digits == 6
        && line[..line.len() - digits]
            .rsplit(|byte| *byte == b' ')
            .next()
            .is_some_and(|word| word.starts_with(b"progress=") && word.ends_with(b"."))
}

/// Whether a line ends before anyone could say what it is, and may have become a tip.
fn is_beginning(line: &[u8]) -> bool {
    let body = &line[Head::of(line).body..];
    let marks: [&[u8]; 4] = [b"UpdateTip: new best=", b"SetBestChain: ", b"Processed ", b"Block "];
    body.len() >= 3 && marks.iter().any(|mark| mark.starts_with(body))
}
