//! Log parsers for Fulcrum, electrs and `ElectrumX`.

use super::cursor::{Cursor, hash_like};
use super::{Event, Fault, Format, Progress, Txs};

type Taken = Result<Event, Fault>;

const MB: u64 = 1_000_000;

fn progress(format: Format, height: u32) -> Event {
    Event::Progress(Progress::new(format, height))
}

/// Calls `read`; names the format if that fails.
fn read(format: Format, read: impl FnOnce() -> Option<Event>) -> Taken {
    read().ok_or(Fault::Field { format: format.name(), field: "a field" })
}

/// `height: 597000, 67.8%, 18.1 blocks/sec, 39260.4 txs/sec, 132972.5 addrs/sec`, units of minutes and hours too.
pub(super) fn fulcrum_height(rest: &[u8]) -> Taken {
    read(Format::Fulcrum, || {
        let mut cursor = Cursor::new(rest);
        let mut progress = Progress::new(Format::Fulcrum, cursor.height()?);
        cursor.eat(", ")?;
        progress.share = Some(cursor.decimal()? / 100.0);
        cursor.eat("%, ")?;
        let blocks_per_s = rate(&mut cursor, "block")?;
        cursor.eat(", ")?;
        let txs_per_s = rate(&mut cursor, "tx")?;
        cursor.eat(", ")?;
        rate(&mut cursor, "addr")?;
        if blocks_per_s > 0.0 {
            progress.txs = Txs::PerBlock(txs_per_s / blocks_per_s);
        }
        Some(Event::Progress(progress))
    })
}

/// `18.1 blocks/sec` per second.
fn rate(cursor: &mut Cursor<'_>, what: &str) -> Option<f64> {
    let value = cursor.decimal()?;
    cursor.eat(" ")?;
    cursor.eat(what)?;
    cursor.eat("s");
    for (unit, seconds) in [("/sec", 1.0), ("/min", 60.0), ("/hour", 3600.0)] {
        if cursor.eat(unit).is_some() {
            return Some(value / seconds);
        }
    }
    None
}

/// `1 new block with 2345 txs (5000 inputs, 6000 outputs, 7000 addresses), verified ok.`: the line has no height, so it is one
/// above the previous line's.
pub(super) fn fulcrum_tip(mut cursor: Cursor<'_>, height: Option<u32>) -> Option<Taken> {
    let blocks = cursor.height();
    if cursor.eat(" new block").is_none() && cursor.eat(" new headers").is_none() {
        return None;
    }
    let tip = || {
        let blocks = blocks?;
        cursor.eat("s");
        cursor.eat(" with ")?;
        let txs = cursor.number()?;
        cursor.eat(" tx")?;
        cursor.eat("s");
        cursor.eat(" (")?;
        let inputs = cursor.number()?;
        cursor.until("), verified ok")?;
        let mut progress = Progress::new(Format::FulcrumTip, height?.checked_add(blocks)?);
        progress.blocks = Some(blocks);
        progress.txs = Txs::Since(txs);
        progress.inputs = (blocks == 1).then_some(inputs);
        Some(Event::Progress(progress))
    };
    // Without an earlier height in the log there is no base.
    (height.is_some()).then(|| read(Format::FulcrumTip, tip))
}

/// ` undo for block 750000, 2345 transactions involving 7000 scripthashes, in 55.5 msec.`
pub(super) fn fulcrum_undo(rest: &[u8]) -> Taken {
    read(Format::FulcrumBlock, || {
        let mut cursor = Cursor::new(rest);
        let mut progress = Progress::new(Format::FulcrumBlock, cursor.height()?);
        cursor.eat(", ")?;
        progress.txs = Txs::Since(cursor.number()?);
        cursor.eat(" transaction")?;
        cursor.until("msec")?;
        progress.blocks = Some(1);
        Some(Event::Progress(progress))
    })
}

/// `tip=00000000000000000331b7…, height=358890`.
pub(super) fn electrs_tip(rest: &[u8]) -> Taken {
    read(Format::Electrs0_9, || {
        let mut cursor = Cursor::new(rest);
        let hash = hash_like(cursor.until(", ")?)?;
        cursor.eat("height=")?;
        let mut progress = Progress::new(Format::Electrs0_9, cursor.height()?);
        matches!(cursor.rest.first(), None | Some(b' ')).then_some(())?;
        progress.hash = hash;
        Some(Event::Progress(progress))
    })
}

/// `2000 blocks: [1..2000]`: all lower heights are done. `None` for other lines.
pub(super) fn electrs_batch(rest: &[u8]) -> Option<Taken> {
    let mut cursor = Cursor::new(rest);
    let blocks = cursor.height()?;
    cursor.eat(" blocks: ")?;
    Some(read(Format::Electrs0_9Batch, || {
        cursor.eat("[")?;
        let first = cursor.height()?;
        cursor.eat("..")?;
        let last = cursor.height()?;
        cursor.eat("]")?;
        (last.checked_sub(first)?.checked_add(1)? == blocks).then_some(())?;
        Some(progress(Format::Electrs0_9Batch, first.saturating_sub(1)))
    }))
}

/// `000… height=1000: indexed 1000 blocks, 0.215[MB], dt = 0.040[s]: 0.040 [ms/block], …`.
pub(super) fn electrs_bindex(rest: &[u8]) -> Taken {
    read(Format::Electrs0_12, || {
        let mut cursor = Cursor::new(rest);
        let hash = hash_like(cursor.until(" ")?)?;
        cursor.eat("height=")?;
        let mut progress = Progress::new(Format::Electrs0_12, cursor.height()?);
        cursor.eat(": indexed ")?;
        progress.blocks = Some(cursor.height()?);
        cursor.eat(" blocks, ")?;
        cursor.until(", dt = ")?;
        progress.seconds = Some(cursor.decimal()?);
        cursor.eat("[s]")?;
        progress.hash = hash;
        Some(Event::Progress(progress))
    })
}

/// `… height=1000 @ … (5 left to index)`; `at` is the offset of the height.
pub(super) fn electrs_left(body: &[u8], at: usize) -> Taken {
    read(Format::Electrs0_8, || {
        let mut cursor = Cursor::new(&body[at + b"height=".len()..]);
        let mut progress = Progress::new(Format::Electrs0_8, cursor.height()?);
        let words = &body[..at];
        let word = |word: &[u8]| hash_like(word.split(|byte| *byte == b'=').next_back()?)?;
        progress.hash = words.split(|byte| *byte == b' ').find_map(word);
        cursor.until("(")?;
        cursor.number()?;
        cursor.eat(" left to index)")?;
        Some(Event::Progress(progress))
    })
}

/// `384,447 daemon: 606,171 UTXOs 1,712MB hist 342MB`.
pub(super) fn electrumx_height(rest: &[u8]) -> Taken {
    read(Format::ElectrumX, || {
        let mut cursor = Cursor::new(rest);
        let height = cursor.grouped()?.try_into().ok()?;
        let mut progress = Progress::new(Format::ElectrumX, height);
        cursor.eat(" daemon: ")?;
        let all = cursor.grouped()?;
        progress.share = (all > 0).then(|| f64::from(height) / all as f64);
        cursor.eat(" UTXOs ")?;
        let coins = cursor.grouped()?;
        cursor.eat("MB hist ")?;
        let histories = cursor.grouped()?;
        cursor.eat("MB")?;
        progress.cache_bytes = Some(coins.checked_add(histories)?.checked_mul(MB)?);
        Some(Event::Progress(progress))
    })
}

/// `#62 took 64.6s.  Height 384,447 txs: 93,438,029 (+890,541)`.
pub(super) fn electrumx_flush(rest: &[u8]) -> Taken {
    read(Format::ElectrumXFlush, || {
        let mut cursor = Cursor::new(rest);
        cursor.grouped()?;
        cursor.eat(" took ")?;
        cursor.decimal()?;
        cursor.eat("s.")?;
        cursor.blanks();
        cursor.eat("Height ")?;
        let height = cursor.grouped()?.try_into().ok()?;
        cursor.eat(" txs: ")?;
        let mut progress = Progress::new(Format::ElectrumXFlush, height);
        progress.txs = Txs::Total(cursor.grouped()?);
        cursor.eat(" (+")?;
        cursor.grouped()?;
        cursor.eat(")")?;
        Some(Event::Progress(progress))
    })
}
