//! Decodes wrapped lines: JSON of container runtimes and journals, and terminal colours.

use std::borrow::Cow;

use serde::Deserialize;

/// Maximum text length of a Docker record.
const DOCKER_BYTES_MAX: usize = 1 << 14;

/// A line in the format of Docker's `json-file` or `journalctl -o json`.
#[derive(Deserialize)]
struct Record<'a> {
    #[serde(borrow, alias = "MESSAGE")]
    log: Text<'a>,
    #[serde(borrow, default)]
    stream: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    time: Option<Cow<'a, str>>,
    /// Microseconds since 1970.
    #[serde(borrow, default, rename = "__REALTIME_TIMESTAMP")]
    realtime: Option<Cow<'a, str>>,
}

/// Journals encode text with control characters, such as colours, as a list of bytes.
#[derive(Deserialize)]
#[serde(untagged)]
enum Text<'a> {
    Text(#[serde(borrow)] Cow<'a, str>),
    Bytes(Vec<u8>),
}

/// Writes the decoded `line` to `out`: container records as plain text (CRI), without colours. False if not encoded or incomplete.
pub(super) fn open(line: &[u8], out: &mut Vec<u8>) -> bool {
    out.clear();
    if line.first() != Some(&b'{') {
        return without_colours(line, out);
    }
    let Ok(record) = serde_json::from_slice::<Record<'_>>(line) else { return false };
    let text = match &record.log {
        Text::Text(text) => text.as_bytes(),
        Text::Bytes(bytes) => bytes,
    };
    match (record.time, record.realtime) {
        (Some(time), _) => {
            // Docker splits long lines; the last record of a line contains its newline.
            let is_partial = text.len() >= DOCKER_BYTES_MAX && !text.ends_with(b"\n");
            let flag = if is_partial { 'P' } else { 'F' };
            let text = text.strip_suffix(b"\n").unwrap_or(text);
            let stream = record.stream.as_deref().unwrap_or("stdout");
            out.extend_from_slice(format!("{time} {stream} {flag} ").as_bytes());
            without_colours(text, out);
        }
        (None, Some(us)) => {
            let point = us.len().saturating_sub(6);
            let (seconds, us) = us.split_at_checked(point).unwrap_or_default();
            out.extend_from_slice(format!("{seconds}.{us} ").as_bytes());
            without_colours(text, out);
        }
        (None, None) => {
            without_colours(text, out);
        }
    }
    true
}

/// Appends text without terminal escape sequences; true if there were any.
fn without_colours(mut text: &[u8], out: &mut Vec<u8>) -> bool {
    let mut found = false;
    while let Some(at) = memchr::memchr(0x1b, text) {
        found = true;
        out.extend_from_slice(&text[..at]);
        text = &text[at + 1..];
        let Some(sequence) = text.strip_prefix(b"[") else { continue };
        let end = sequence.iter().position(|byte| matches!(byte, 0x40..=0x7e));
        text = end.map_or(&[][..], |end| &sequence[end + 1..]);
    }
    out.extend_from_slice(text);
    found
}
