//! Parsers of all lines except Bitcoin Core's tips.

use super::cursor::{Cursor, hash_like};
use super::head::Head;
use super::stamp::Stamp;
use super::{Event, Fault, Format, Progress, Start, Txs, electrum};

const MIB: u64 = 1 << 20;

/// Classifies a message; `None` for unknown ones. `height` is that of the previous line.
#[inline]
pub(super) fn event(line: &[u8], head: &Head, height: Option<u32>) -> Option<Result<Event, Fault>> {
    let body = &line[head.body..];
    // The first letter decides for nearly every line.
    let found = match *body.first()? {
        b'P' => processed(body, height),
        b'I' => interval(body.strip_prefix(b"Indexed ")?, Format::BtcdIndex),
        b'B' => block(body).or_else(|| banner(body, head)),
        b'S' => words_with_s(body, head),
        b's' => electrs_start(body.strip_prefix(b"starting electrs")?, head),
        b'b' => words_with_b(body),
        b'h' => left(body),
        b'c' => {
            let rest = body.strip_prefix(b"chain updated: tip=")?;
            Some(electrum::electrs_tip(rest))
        }
        b'i' => electrum::electrs_batch(body.strip_prefix(b"indexing ")?),
        b'o' => Some(electrum::electrumx_height(body.strip_prefix(b"our height: ")?)),
        b'f' => Some(electrum::electrumx_flush(body.strip_prefix(b"flush #")?)),
        b'A' => {
            let version = words(body.strip_prefix(b"Assay version ")?);
            start(true, &format!("Assay {version}"), head)
        }
        b'E' => start(body.starts_with(b"ElectrumX server starting"), "ElectrumX", head),
        b'F' => fulcrum_start(body, head),
        b'V' => {
            let is_btcd = line[..head.body].trim_ascii_end().ends_with(b"BTCD:")
                && body.starts_with(b"Version ");
            is_btcd.then_some(())?;
            start(true, &format!("btcd {}", words(&body[8..])), head)
        }
        b'=' => {
            let is_start = body.starts_with(b"================= startup");
            start(is_start, "libbitcoin", head)
        }
        b'T' => {
            let is_task = body.starts_with(b"Task.");
            let is_timeout =
                is_task && memchr::memmem::find(body, b"bitcoind request timed out").is_some();
            is_timeout.then_some(Ok(Event::Timeout))
        }
        _ => None,
    }?;
    Some(found.map(|event| stamped(event, head)))
}

/// Adds the stamp of the line to an event.
fn stamped(mut event: Event, head: &Head) -> Event {
    match &mut event {
        Event::Progress(progress) => {
            if progress.stamp.is_none() {
                progress.stamp = head.stamp;
            }
        }
        Event::Headers { stamp, .. } => *stamp = head.stamp,
        Event::Start(_) | Event::Steps(_) | Event::Timeout => {}
    }
    event
}

type Taken = Option<Result<Event, Fault>>;

fn fault(format: Format) -> Fault {
    Fault::Field { format: format.name(), field: "a field" }
}

/// A name and version as text, truncated.
fn words(text: &[u8]) -> String {
    const BYTES_MAX: usize = 80;
    let text = String::from_utf8_lossy(&text[..text.len().min(BYTES_MAX)]).into_owned();
    text.trim().chars().filter(|c| !c.is_control()).collect()
}

fn start(is_start: bool, version: &str, head: &Head) -> Taken {
    let event = || Event::Start(Start { version: version.to_owned(), stamp: head.stamp });
    is_start.then(|| Ok(event()))
}

/// `Bitcoin Core version v29.0.0 (release build)` and similar.
fn banner(body: &[u8], head: &Head) -> Taken {
    body.strip_prefix(b"Bitcoin ")?;
    let window = &body[..body.len().min(60)];
    let at = memchr::memmem::find(window, b"version v")?;
    let end = memchr::memmem::find(&body[at..], b" (").map_or(body.len(), |length| at + length);
    let version = words(&body[..end]).replacen("version ", "", 1);
    start(true, &version, head)
}

fn electrs_start(rest: &[u8], head: &Head) -> Taken {
    let end = memchr::memmem::find(rest, b" on ").unwrap_or(rest.len());
    start(true, &format!("electrs {}", words(&rest[..end])), head)
}

/// `Fulcrum 1.9.1 (Release 713d2d7) - … - starting up ...`.
fn fulcrum_start(body: &[u8], head: &Head) -> Taken {
    let rest = body.strip_prefix(b"Fulcrum ")?;
    memchr::memmem::find(rest, b"starting up")?;
    let end = memchr::memmem::find(rest, b" (").unwrap_or(rest.len());
    start(true, &format!("Fulcrum {}", words(&rest[..end])), head)
}

fn words_with_s(body: &[u8], head: &Head) -> Taken {
    if let Some(rest) = body.strip_prefix(b"Saved ") {
        let mut cursor = Cursor::new(rest);
        // Newer versions insert a version of the undo data.
        let what = cursor.until("undo for block ")?;
        return (what.len() <= 4).then(|| electrum::fulcrum_undo(cursor.rest));
    }
    if let Some(rest) = body.strip_prefix(b"Starting electrs") {
        return electrs_start(rest, head);
    }
    if let Some(rest) = body.strip_prefix(b"Status: time=") {
        return Some(bcoin_status(rest).ok_or(fault(Format::BcoinStatus)));
    }
    let rest = body.strip_prefix(b"Synchronizing blockheaders, height: ")?;
    let height = Cursor::new(rest).height();
    let fault = Fault::Field { format: "headers", field: "height" };
    Some(height.map(|height| Event::Headers { height, stamp: None }).ok_or(fault))
}

fn words_with_b(body: &[u8]) -> Taken {
    if let Some(rest) = body.strip_prefix(b"block=") {
        return Some(electrum::electrs_bindex(rest));
    }
    // Dots pad the name to its column.
    if let Some(rest) = body.strip_prefix(b"block_organized") {
        let dots = rest.iter().take_while(|byte| **byte == b'.').count();
        return Some(libbitcoin4(&rest[dots..]).ok_or(fault(Format::Libbitcoin4)));
    }
    left(body)
}

fn left(body: &[u8]) -> Taken {
    let at = memchr::memmem::find(body, b"height=")?;
    memchr::memmem::find(&body[at..], b" left to index")?;
    Some(electrum::electrs_left(body, at))
}

fn processed(body: &[u8], height: Option<u32>) -> Taken {
    let rest = body.strip_prefix(b"Processed ")?;
    if let Some(rest) = rest.strip_prefix(b"height: ") {
        return Some(electrum::fulcrum_height(rest));
    }
    electrum::fulcrum_tip(Cursor::new(rest), height).or_else(|| interval(rest, Format::Btcd))
}

/// btcd: `2 blocks in the last 11.4s (4197 transactions, height 830421, 2024-02-14 22:15:23 +0900 KST, ~112 MiB cache)`.
fn interval(rest: &[u8], format: Format) -> Taken {
    let mut cursor = Cursor::new(rest);
    let blocks = cursor.height();
    cursor.eat(" block")?;
    let read = || {
        cursor.eat("s");
        cursor.eat(" in the last ")?;
        let seconds = duration(cursor.until(" (")?)?;
        let txs = cursor.number()?;
        cursor.eat(" transaction")?;
        cursor.eat("s");
        cursor.eat(", height ")?;
        let mut progress = Progress::new(format, cursor.height()?);
        progress.blocks = Some(blocks?);
        progress.txs = Txs::Since(txs);
        progress.seconds = Some(seconds);
        // The block's date may have any zone, and bchd inserts more text before it.
        let tail = cursor.until(")")?;
        let at = tail.iter().position(|byte| *byte == b'~');
        if let Some(at) = at {
            let mut cache = Cursor::new(&tail[at + 1..]);
            let mib = cache.number()?;
            cache.eat(" MiB")?;
            progress.cache_bytes = Some(mib.checked_mul(MIB)?);
        }
        Some(Event::Progress(progress))
    };
    Some({ read }().ok_or(fault(format)))
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

fn block(body: &[u8]) -> Taken {
    let rest = body.strip_prefix(b"Block ")?;
    if let Some(rest) = rest.strip_prefix(b"[") {
        return Some(libbitcoin3(rest).ok_or(fault(Format::Libbitcoin3)));
    }
    memchr::memmem::find(rest, b" added to chain")?;
    Some(bcoin(rest).ok_or(fault(Format::Bcoin)))
}

/// bcoin: `4c6f53e2…df37 (101) added to chain (size=280 txs=1 time=6.685683).`
fn bcoin(rest: &[u8]) -> Option<Event> {
    let mut cursor = Cursor::new(rest);
    let hash = hash_like(cursor.until(" (")?)?;
    let mut progress = Progress::new(Format::Bcoin, cursor.height()?);
    cursor.eat(") added to chain (size=")?;
    cursor.number()?;
    cursor.eat(" txs=")?;
    progress.txs = Txs::OfBlock(cursor.number()?);
    cursor.eat(" time=")?;
    progress.seconds = Some(cursor.decimal()? / 1000.0);
    cursor.eat(")")?;
    progress.hash = hash;
    progress.blocks = Some(1);
    Some(Event::Progress(progress))
}

/// bcoin: `2010-01-01T00:00:00Z height=20 progress=0.01% orphans=0 …`.
fn bcoin_status(rest: &[u8]) -> Option<Event> {
    let mut cursor = Cursor::new(rest);
    cursor.until("height=")?;
    let mut progress = Progress::new(Format::BcoinStatus, cursor.height()?);
    cursor.eat(" progress=")?;
    progress.share = Some(cursor.decimal()? / 100.0);
    cursor.eat("%");
    matches!(cursor.rest.first(), None | Some(b' ')).then_some(())?;
    Some(Event::Progress(progress))
}

/// libbitcoin 3: `834632]    1 txs    1 ins    0 wms    0 vms   46 vµs …`.
fn libbitcoin3(rest: &[u8]) -> Option<Event> {
    let mut cursor = Cursor::new(rest);
    let mut progress = Progress::new(Format::Libbitcoin3, cursor.height()?);
    cursor.eat("]")?;
    cursor.blanks();
    progress.txs = Txs::OfBlock(cursor.number()?);
    cursor.eat(" txs")?;
    cursor.blanks();
    progress.inputs = Some(cursor.number()?);
    cursor.eat(" ins")?;
    progress.blocks = Some(1);
    Some(Event::Progress(progress))
}

/// libbitcoin 4: ` 834632 5230`, height and seconds since the start.
fn libbitcoin4(rest: &[u8]) -> Option<Event> {
    let mut cursor = Cursor::new(rest);
    cursor.eat(" ")?;
    let mut progress = Progress::new(Format::Libbitcoin4, cursor.height()?);
    cursor.eat(" ")?;
    let seconds = i64::try_from(cursor.number()?).ok()?;
    cursor.blanks();
    cursor.rest.is_empty().then_some(())?;
    let us = seconds.checked_mul(1_000_000)?;
    progress.stamp = Some(Stamp { us, is_dated: false });
    Some(Event::Progress(progress))
}
