//! Splits bytes into lines and parses them into events.

use memchr::memmem::Finder;

use super::head::{Head, Record};
use super::steps::Steps;
use super::{Event, Fault, core, envelope, others};

/// Maximum length of a line; longer ones are skipped and reported.
pub const LINE_BYTES_MAX: usize = 1 << 16;

/// A line that is an event or a malformed one.
#[derive(Debug, Clone, PartialEq)]
pub struct Found {
    pub line: u64,
    pub event: Result<Event, Fault>,
    /// Beginning of a rejected line, without control characters.
    pub excerpt: String,
}

/// Maximum bytes of such an excerpt.
const EXCERPT_BYTES_MAX: usize = 300;

impl Found {
    fn fault(line: u64, fault: Fault, text: &[u8]) -> Self {
        let text = String::from_utf8_lossy(&text[..text.len().min(EXCERPT_BYTES_MAX)]);
        let excerpt = text.chars().filter(|c| !c.is_control()).collect();
        Self { line, event: Err(fault), excerpt }
    }
}

/// Accepts a log in pieces of any size; see the [module](super).
#[derive(Debug)]
pub struct Parser {
    mark: Finder<'static>,
    /// The incomplete last line.
    carry: Vec<u8>,
    /// True while an overlong line is skipped.
    is_skipping: bool,
    lines: u64,
    state: State,
    /// A decoded line.
    opened: Vec<u8>,
    /// Line fragments of container runtimes, for standard output and standard error.
    parts: [Vec<u8>; 2],
}

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
    pub fn new() -> Self {
        Self {
            mark: Finder::new(core::MARK),
            carry: Vec::new(),
            is_skipping: false,
            lines: 0,
            state: State::default(),
            opened: Vec::new(),
            parts: [Vec::new(), Vec::new()],
        }
    }

    /// Number of lines so far, including an incomplete one.
    pub const fn lines(&self) -> u64 {
        self.lines + (self.is_skipping || !self.carry.is_empty()) as u64
    }

    /// Parses the next bytes and reports every line that they complete.
    pub fn feed(&mut self, mut bytes: &[u8], sink: &mut dyn FnMut(Found)) {
        if self.is_skipping || !self.carry.is_empty() {
            let Some(end) = memchr::memchr(b'\n', bytes) else { return self.keep(bytes, sink) };
            self.keep(&bytes[..end], sink);
            bytes = &bytes[end + 1..];
            self.lines += 1;
            let is_skipped = std::mem::take(&mut self.is_skipping);
            let line = std::mem::take(&mut self.carry);
            if !is_skipped {
                self.any_line(&line, sink);
            }
            // Reuse the allocation for the next line.
            self.carry = line;
            self.carry.clear();
        }
        let whole = memchr::memrchr(b'\n', bytes).map_or(0, |last| last + 1);
        self.block(&bytes[..whole], sink);
        self.keep(&bytes[whole..], sink);
    }

    /// Ends the log; an unterminated line is parsed as well.
    pub fn finish(&mut self, sink: &mut dyn FnMut(Found)) {
        let line = std::mem::take(&mut self.carry);
        if std::mem::take(&mut self.is_skipping) {
            self.lines += 1;
            return;
        }
        if let Some(part) = self.parts.iter().find(|part| !part.is_empty()) {
            sink(Found::fault(self.lines(), Fault::Cut, part));
        }
        if line.is_empty() {
            return;
        }
        self.lines += 1;
        let is_whole = ends_whole(&line);
        let cut = Found::fault(self.lines, Fault::Cut, &line);
        if Head::of(&line).is_cut(&line) {
            return sink(cut);
        }
        self.any_line(&line, &mut |found| {
            // A number at the end may have lost digits.
            sink(if found.event.is_ok() && is_whole { found } else { cut.clone() });
        });
    }

    /// Buffers the beginning of a line, within bounds.
    fn keep(&mut self, bytes: &[u8], sink: &mut dyn FnMut(Found)) {
        if self.is_skipping || bytes.is_empty() {
            return;
        }
        if self.carry.len() + bytes.len() > LINE_BYTES_MAX {
            self.is_skipping = true;
            let room = EXCERPT_BYTES_MAX.saturating_sub(self.carry.len()).min(bytes.len());
            self.carry.extend_from_slice(&bytes[..room]);
            sink(Found::fault(self.lines + 1, Fault::TooLong, &self.carry));
            self.carry.clear();
        } else {
            self.carry.extend_from_slice(bytes);
        }
    }

    /// Parses complete lines.
    fn block(&mut self, block: &[u8], sink: &mut dyn FnMut(Found)) {
        let find = |mark: &Finder<'_>, from: usize| mark.find(&block[from..]).map(|at| from + at);
        // Searches Bitcoin Core's tips in all lines at once, the others line by line.
        let mut next = find(&self.mark, 0).unwrap_or(usize::MAX);
        let is_coloured = memchr::memchr(0x1b, block).is_some();
        let mut begin = 0;
        for end in memchr::memchr_iter(b'\n', block) {
            self.lines += 1;
            let line = &block[begin..end];
            let at = (next < end).then(|| next - begin);
            if at.is_some() {
                next = find(&self.mark, end).unwrap_or(usize::MAX);
            }
            if line.len() > LINE_BYTES_MAX {
                sink(Found::fault(self.lines, Fault::TooLong, line));
            } else if is_coloured || line.first() == Some(&b'{') {
                self.any_line(line, sink);
            } else {
                self.line(line, at, sink);
            }
            begin = end + 1;
        }
    }

    /// Parses one raw line without its newline.
    fn any_line(&mut self, line: &[u8], sink: &mut dyn FnMut(Found)) {
        let mut opened = std::mem::take(&mut self.opened);
        let is_opened = envelope::open(line.strip_suffix(b"\r").unwrap_or(line), &mut opened);
        if !is_opened && line.starts_with(b"{\"log\":") {
            let fault = Fault::Field { format: "JSON record", field: "its end, or a field," };
            sink(Found::fault(self.lines, fault, line));
        }
        let line = if is_opened { &opened[..] } else { line };
        self.line(line, self.mark.find(line), sink);
        self.opened = opened;
    }

    /// Parses one line without its newline; `at` is the offset of [`core::MARK`] in it.
    #[inline]
    fn line(&mut self, line: &[u8], at: Option<usize>, sink: &mut dyn FnMut(Found)) {
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        let head = Head::of(line);
        if let Some(record) = head.record
            && (record.is_partial || !self.parts[record.stream].is_empty())
        {
            return self.part(line, record, sink);
        }
        self.message(line, &head, at, sink);
    }

    /// Handles a record that holds a part of a line.
    fn part(&mut self, line: &[u8], record: Record, sink: &mut dyn FnMut(Found)) {
        let mut whole = std::mem::take(&mut self.parts[record.stream]);
        // The stamp of the first record is the line's.
        whole.extend_from_slice(if whole.is_empty() { line } else { &line[record.text..] });
        if whole.len() > LINE_BYTES_MAX {
            return sink(Found::fault(self.lines, Fault::TooLong, &whole));
        }
        if record.is_partial {
            self.parts[record.stream] = whole;
            return;
        }
        self.message(&whole, &Head::of(&whole), self.mark.find(&whole), sink);
    }

    #[inline]
    fn message(
        &mut self,
        line: &[u8],
        head: &Head,
        at: Option<usize>,
        sink: &mut dyn FnMut(Found),
    ) {
        match self.state.event(line, head, at) {
            None => {}
            Some(Err(fault)) => sink(Found::fault(self.lines, fault, line)),
            Some(event) => {
                sink(Found { line: self.lines, event, excerpt: String::new() });
                if head.stamp.is_none()
                    && let Some(format) =
                        at.and_then(|at| core::behind_unknown(line.get(head.body..at)?))
                {
                    sink(Found::fault(self.lines, Fault::Prefix { format }, line));
                }
            }
        }
    }
}

impl State {
    #[inline]
    fn event(
        &mut self,
        line: &[u8],
        head: &Head,
        at: Option<usize>,
    ) -> Option<Result<Event, Fault>> {
        if let Some(at) = at {
            let tip = core::tip(line, head, at);
            if let Ok(progress) = &tip {
                self.height = Some(progress.height);
                self.steps.height = Some(progress.height);
            }
            return Some(tip.map(Event::Progress));
        }
        let body = &line[head.body..];
        if body.first() == Some(&b'-') {
            return match self.steps.take(body) {
                Ok(steps) => steps.map(|steps| Ok(Event::Steps(steps))),
                Err(fault) => Some(Err(fault)),
            };
        }
        let event = others::event(line, head, self.height);
        match &event {
            Some(Ok(Event::Progress(progress))) => self.height = Some(progress.height),
            // State of a killed program must not affect the next one.
            Some(Ok(Event::Start(_))) => *self = Self::default(),
            _ => {}
        }
        event
    }
}

/// True if an unterminated line can only lack its newline.
fn ends_whole(line: &[u8]) -> bool {
    let line = line.trim_ascii_end();
    let digits = line.iter().rev().take_while(|byte| byte.is_ascii_digit()).count();
    if digits == 0 {
        return !line.ends_with(b".");
    }
    // `progress=%f` always has six digits.
    digits == 6
        && line[..line.len() - digits]
            .rsplit(|byte| *byte == b' ')
            .next()
            .is_some_and(|word| word.starts_with(b"progress=") && word.ends_with(b"."))
}
