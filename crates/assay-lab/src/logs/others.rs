//! Parsers of all lines except Bitcoin Core's tips.

use super::cursor::{Cursor, hash_like};
use super::head::Head;
use super::stamp::Stamp;
use super::{Event, Fault, Format, Progress, Start, Txs};

const MIB: u64 = 1 << 20;
const MB: u64 = 1_000_000;

/// Lines of progress: the beginning of the message, and the pattern of the rest. A pattern is text with values in braces, which
/// [`Values::take`] reads. A line that differs behind the mark `|` is a fault, before it another line.
const LINES: [(Format, &str, &str); 17] = [
    (
        Format::Fulcrum,
        "Processed height: ",
        "|{height}, {percent}%, {rate} block{s}{per}, {rate} tx{s}{per}, {rate} addr{s}{per}",
    ),
    // It has no height, so it is above that of the previous line.
    (
        Format::FulcrumTip,
        "Processed ",
        "{blocks} new block|{s} with {since} tx{s} ({inputs}{...}), verified ok",
    ),
    (
        Format::FulcrumTip,
        "Processed ",
        "{blocks} new headers| with {since} tx{s} ({inputs}{...}), verified ok",
    ),
    (Format::Btcd, "Processed ", INTERVAL),
    (Format::BtcdIndex, "Indexed ", INTERVAL),
    // Newer versions insert a version of the undo data.
    (Format::FulcrumBlock, "Saved ", "{..}undo for block |{height}, {since} transaction{...}msec"),
    (Format::Libbitcoin3, "Block [", "|{height}]{_}{txs} txs{_}{inputs} ins"),
    (
        Format::Bcoin,
        "Block ",
        "{? added to chain}|{hash} ({height}) added to chain (size={count} txs={txs} time={ms})",
    ),
    (Format::BcoinStatus, "Status: time=", "|{...}height={height} progress={percent}{%}{$}"),
    // Dots pad the name to its column; seconds since the start follow.
    (Format::Libbitcoin4, "block_organized", "|{.} {height} {count}{_}{$}"),
    (Format::Electrs0_9, "chain updated: tip=", "|{hash}, height={height}{$}"),
    // All lower heights are done.
    (Format::Electrs0_9Batch, "indexing ", "{count} blocks: |[{count}..{count}]"),
    (
        Format::Electrs0_12,
        "block=",
        "|{hash} height={height}: indexed {blocks} blocks, {...}, dt = {seconds}[s]",
    ),
    (Format::Electrs0_8, "best=", LEFT),
    (Format::Electrs0_8, "hash=", LEFT),
    (
        Format::ElectrumX,
        "our height: ",
        "|{height,} daemon: {count,} UTXOs {count,}MB hist {count,}MB",
    ),
    (
        Format::ElectrumXFlush,
        "flush #",
        "|{count,} took {rate}s.{_}Height {height,} txs: {total,} (+{count,})",
    ),
];
/// btcd: `2 blocks in the last 11.4s (4197 transactions, height 830421, 2024-02-14 22:15:23 +0900 KST, ~112 MiB cache)`.
const INTERVAL: &str =
    "{blocks} block|{s} in the last {go} ({since} transaction{s}, height {height}{cache}";
/// electrs 0.8 (`best=`) and its forks (`hash=`): `000… height=1000 @ … (5 left to index)`.
const LEFT: &str = "{? left to index}|{hash} height={height}{...}({count} left to index)";

/// Classifies a message; `None` for unknown ones. `height` is that of the previous line.
#[inline]
pub(super) fn event(line: &[u8], head: &Head, height: Option<u32>) -> Option<Result<Event, Fault>> {
    let body = &line[head.body..];
    let first = *body.first()?;
    // Nearly all lines end here.
    if !b"PISBbchiofsAEFVT=".contains(&first) {
        return None;
    }
    let mut of_first = LINES.iter().filter(|(_, begin, _)| begin.as_bytes()[0] == first);
    let progress = |(format, begin, pattern): &(Format, &str, &str)| {
        let rest = body.strip_prefix(begin.as_bytes())?;
        let has_base = *format != Format::FulcrumTip || height.is_some();
        let values = Values::read(*format, rest, pattern).filter(|_| has_base)?;
        let fault = Fault::Field { format: format.name(), field: "a field" };
        let settled = values.and_then(|values| values.settled(head.stamp, height));
        Some(settled.map(Event::Progress).ok_or(fault))
    };
    if let Some(found) = of_first.find_map(progress) {
        return Some(found);
    }
    let version = match first {
        b'A' => format!("Assay {}", words(body.strip_prefix(b"Assay version ")?)),
        b'B' => banner(body)?,
        b'E' if body.starts_with(b"ElectrumX server starting") => "ElectrumX".to_owned(),
        // `Fulcrum 1.9.1 (Release 713d2d7) - … - starting up ...`
        b'F' => {
            let rest = body.strip_prefix(b"Fulcrum ")?;
            memchr::memmem::find(rest, b"starting up")?;
            format!("Fulcrum {}", words(before(rest, b" (")))
        }
        b'S' | b's' if body[1..].starts_with(b"tarting electrs") => {
            format!("electrs {}", words(before(&body[16..], b" on ")))
        }
        b'V' if line[..head.body].trim_ascii_end().ends_with(b"BTCD:") => {
            format!("btcd {}", words(body.strip_prefix(b"Version ")?))
        }
        b'=' if body.starts_with(b"================= startup") => "libbitcoin".to_owned(),
        b'S' => {
            let rest = body.strip_prefix(b"Synchronizing blockheaders, height: ")?;
            let fault = Fault::Field { format: "headers", field: "height" };
            let height = Cursor::new(rest).height();
            let event = height.map(|height| Event::Headers { height, stamp: head.stamp });
            return Some(event.ok_or(fault));
        }
        b'T' if body.starts_with(b"Task.") => {
            memchr::memmem::find(body, b"bitcoind request timed out")?;
            return Some(Ok(Event::Timeout));
        }
        _ => return None,
    };
    Some(Ok(Event::Start(Start { version, stamp: head.stamp })))
}

/// A name and version as text, truncated.
fn words(text: &[u8]) -> String {
    const BYTES_MAX: usize = 80;
    let text = String::from_utf8_lossy(&text[..text.len().min(BYTES_MAX)]).into_owned();
    text.trim().chars().filter(|c| !c.is_control()).collect()
}

/// The part before `end`, or all.
fn before<'a>(text: &'a [u8], end: &[u8]) -> &'a [u8] {
    &text[..memchr::memmem::find(text, end).unwrap_or(text.len())]
}

/// `Bitcoin Core version v29.0.0 (release build)` and similar.
fn banner(body: &[u8]) -> Option<String> {
    body.strip_prefix(b"Bitcoin ")?;
    let at = memchr::memmem::find(&body[..body.len().min(60)], b"version v")?;
    let end = at + before(&body[at..], b" (").len();
    Some(words(&body[..end]).replacen("version ", "", 1))
}

/// Values of a line.
struct Values {
    progress: Progress,
    /// Fields outside the progress, by kind.
    counts: Vec<u64>,
    rates: Vec<f64>,
}

impl Values {
    /// Reads a message by its pattern. The outer `None` is another line, the inner one a damaged line.
    #[expect(clippy::option_option, reason = "another line, a damaged one, and a whole one")]
    fn read(format: Format, body: &[u8], pattern: &str) -> Option<Option<Self>> {
        let progress = Progress::new(format, 0);
        let mut values = Self { progress, counts: Vec::new(), rates: Vec::new() };
        let mut cursor = Cursor::new(body);
        let (known, rest) = pattern.split_once('|')?;
        values.take(&mut cursor, known)?;
        Some(values.take(&mut cursor, rest).map(|()| values))
    }

    /// Reads text and values alternately.
    fn take(&mut self, cursor: &mut Cursor<'_>, pattern: &str) -> Option<()> {
        let mut parts = pattern.split(['{', '}']);
        cursor.eat(parts.next()?)?;
        while let (Some(value), Some(text)) = (parts.next(), parts.next()) {
            match value {
                "..." => {
                    cursor.until(text)?;
                }
                ".." => (cursor.until(text)?.len() <= 4).then_some(())?,
                _ => {
                    self.value(cursor, value)?;
                    cursor.eat(text)?;
                }
            }
        }
        Some(())
    }

    fn value(&mut self, cursor: &mut Cursor<'_>, name: &str) -> Option<()> {
        let progress = &mut self.progress;
        match name {
            "height" => progress.height = cursor.height()?,
            "height," => progress.height = cursor.grouped()?.try_into().ok()?,
            "blocks" => progress.blocks = Some(cursor.height()?),
            "since" => progress.txs = Txs::Since(cursor.number()?),
            "txs" => progress.txs = Txs::OfBlock(cursor.number()?),
            "total," => progress.txs = Txs::Total(cursor.grouped()?),
            "inputs" => progress.inputs = Some(cursor.number()?),
            "seconds" => progress.seconds = Some(cursor.decimal()?),
            "ms" => progress.seconds = Some(cursor.decimal()? / 1000.0),
            "percent" => progress.share = Some(cursor.decimal()? / 100.0),
            "count" => self.counts.push(cursor.number()?),
            "count," => self.counts.push(cursor.grouped()?),
            "rate" => self.rates.push(cursor.decimal()?),
            "per" => {
                let units = [("/sec", 1.0), ("/min", 60.0), ("/hour", 3600.0)];
                let (_, seconds) =
                    units.into_iter().find(|(unit, _)| cursor.eat(unit).is_some())?;
                *self.rates.last_mut()? /= seconds;
            }
            "hash" => {
                let is_part = |byte: &u8| byte.is_ascii_hexdigit() || *byte == b'.';
                let length = cursor.rest.iter().take_while(|byte| is_part(byte)).count();
                let (text, rest) = cursor.rest.split_at(length);
                (progress.hash, cursor.rest) = (hash_like(text)?, rest);
            }
            "go" => {
                let (text, rest) = cursor.rest.split_at(before(cursor.rest, b" ").len());
                (progress.seconds, cursor.rest) = (Some(duration(text)?), rest);
            }
            // The block's date may have any zone, and bchd inserts more text before it.
            "cache" => {
                let tail = cursor.until(")")?;
                if let Some(at) = memchr::memchr(b'~', tail) {
                    let mut cache = Cursor::new(&tail[at + 1..]);
                    progress.cache_bytes = Some(cache.number()?.checked_mul(MIB)?);
                    cache.eat(" MiB")?;
                }
            }
            "_" => cursor.blanks(),
            "." => while cursor.eat(".").is_some() {},
            "$" => matches!(cursor.rest.first(), None | Some(b' ')).then_some(())?,
            "s" | "%" => {
                cursor.eat(name);
            }
            _ => {
                memchr::memmem::find(cursor.rest, name.strip_prefix('?')?.as_bytes())?;
            }
        }
        Some(())
    }

    /// Progress with what follows from several values. `height` is that of the previous line.
    fn settled(self, stamp: Option<Stamp>, height: Option<u32>) -> Option<Progress> {
        let Self { mut progress, counts, rates } = self;
        progress.stamp = stamp;
        match (progress.format, &counts[..], &rates[..]) {
            (Format::Fulcrum, _, [blocks, txs, _]) if *blocks > 0.0 => {
                progress.txs = Txs::PerBlock(txs / blocks);
            }
            (Format::FulcrumTip, ..) => {
                let blocks = progress.blocks?;
                progress.height = height?.checked_add(blocks)?;
                progress.inputs = progress.inputs.filter(|_| blocks == 1);
            }
            (Format::FulcrumBlock | Format::Bcoin | Format::Libbitcoin3, ..) => {
                progress.blocks = Some(1);
            }
            (Format::Libbitcoin4, [seconds], _) => {
                let us = i64::try_from(*seconds).ok()?.checked_mul(1_000_000)?;
                progress.stamp = Some(Stamp { us, is_dated: false });
            }
            (Format::Electrs0_9Batch, [blocks, first, last], _) => {
                (last.checked_sub(*first)?.checked_add(1)? == *blocks).then_some(())?;
                progress.height = first.saturating_sub(1).try_into().ok()?;
            }
            (Format::ElectrumX, [all, coins, histories], _) => {
                let height = f64::from(progress.height);
                progress.share = (*all > 0).then(|| height / *all as f64);
                progress.cache_bytes = Some(coins.checked_add(*histories)?.checked_mul(MB)?);
            }
            _ => {}
        }
        Some(progress)
    }
}

/// A duration as Go prints it: `1h2m3.4s`, `11.59s`, `350ms`.
fn duration(text: &[u8]) -> Option<f64> {
    let mut cursor = Cursor::new(text);
    let mut seconds = 0.0;
    while !cursor.rest.is_empty() {
        let value = cursor.decimal()?;
        let units = [("ms", 1e-3), ("µs", 1e-6), ("us", 1e-6), ("ns", 1e-9)];
        let long = [("h", 3600.0), ("m", 60.0), ("s", 1.0)];
        let all = units.into_iter().chain(long);
        let (_, worth) = all.into_iter().find(|(unit, _)| cursor.eat(unit).is_some())?;
        seconds += value * worth;
    }
    Some(seconds)
}
