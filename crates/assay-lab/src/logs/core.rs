//! Log parser for Bitcoin Core and its forks: `SetBestChain` and `UpdateTip`.

use super::cursor::{Cursor, hash_like};
use super::head::Head;
use super::{Fault, Format, Progress, Txs, stamp};

/// Text that all of these lines contain, and no others.
pub(super) const MARK: &str = "new best=";

const MIB: f64 = 1_048_576.0;

/// Fields seen so far; they identify the version.
#[derive(Default)]
#[expect(clippy::struct_excessive_bools, reason = "each is a field that a line has or lacks")]
struct Fields {
    height: Option<u32>,
    has_version: bool,
    has_work: bool,
    has_log_work: bool,
    has_iso_date: bool,
    txs: Option<u64>,
    block_time: Option<i64>,
    share: Option<f64>,
    cache: Cache,
}

#[derive(Default, Clone, Copy, PartialEq)]
enum Cache {
    #[default]
    Absent,
    Coins(u64),
    /// MiB, coins, and true if they are called `txo`.
    Size(f64, u64, bool),
}

/// Parses a line with [`MARK`] at `at`.
pub(super) fn tip(line: &[u8], head: &Head, at: usize) -> Result<Progress, Fault> {
    let before = &line[..at];
    let (before, is_update) = match before.strip_suffix(b"UpdateTip: ") {
        Some(before) => (before, true),
        None => match before.strip_suffix(b"SetBestChain: ") {
            Some(before) => (before, false),
            None => return Err(Fault::Field { format: "new best", field: "the name before it" }),
        },
    };
    let format = if is_update { "UpdateTip" } else { "SetBestChain" };
    let fault = |field| Fault::Field { format, field };
    let mut cursor = Cursor::new(&line[at + MARK.len()..]);
    let end = memchr::memchr(b' ', cursor.rest).ok_or(fault("best"))?;
    let hash = hash_like(&cursor.rest[..end]).ok_or(fault("best"))?;
    cursor.rest = &cursor.rest[end..];
    let mut fields = Fields::default();
    loop {
        cursor.blanks();
        match fields.take(&mut cursor) {
            Ok(true) => {}
            Ok(false) => break,
            Err(field) => return Err(fault(field)),
        }
    }
    let height = fields.height.ok_or(fault("height"))?;
    let block_time = fields.block_time.ok_or(fault("date"))?;
    if !fields.has_work && !fields.has_log_work {
        return Err(fault("work"));
    }
    // 0.8.2 introduced both together.
    if fields.has_log_work && fields.share.is_none() {
        return Err(fault("progress"));
    }
    if fields.has_log_work && fields.txs.is_none() {
        return Err(fault("tx"));
    }
    let mut progress = Progress::new(fields.version(is_update), height);
    progress.hash = hash;
    progress.stamp = head.stamp;
    progress.txs = fields.txs.map_or(Txs::Unknown, Txs::Total);
    progress.block_time = Some(block_time);
    progress.share = fields.share;
    (progress.cache_bytes, progress.cache_coins) = match fields.cache {
        Cache::Absent => (None, None),
        Cache::Coins(coins) => (None, Some(coins)),
        Cache::Size(mib, coins, _) => (Some((mib * MIB) as u64), Some(coins)),
    };
    progress.background = before.ends_with(b"[background validation] ");
    Ok(progress)
}

/// Name of a tip line with more text in front than its head allows.
pub(super) fn behind_unknown(before: &[u8]) -> Option<&'static str> {
    ["UpdateTip", "SetBestChain"].into_iter().find(|name| {
        before
            .strip_suffix(b": ")
            .and_then(|rest| rest.strip_suffix(name.as_bytes()))
            .is_some_and(|rest| !rest.is_empty())
    })
}

impl Fields {
    /// Parses one field; false at the end of the known fields, the name of a malformed field as error.
    fn take(&mut self, cursor: &mut Cursor<'_>) -> Result<bool, &'static str> {
        let Some(first) = cursor.rest.first() else { return Ok(false) };
        // The first letter selects the candidates.
        let (name, taken) = match first {
            b'h' if cursor.eat("height=").is_some() => {
                self.height = cursor.height();
                ("height", self.height.is_some())
            }
            b'v' if cursor.eat("version=").is_some() => {
                self.has_version = true;
                ("version", hexadecimal(cursor).is_some())
            }
            b'l' if cursor.eat("log2_work=").is_some() => {
                self.has_log_work = true;
                ("log2_work", work(cursor).is_some())
            }
            b'w' if cursor.eat("work=").is_some() => {
                self.has_work = true;
                ("work", work(cursor).is_some())
            }
            b't' if cursor.eat("tx=").is_some() => {
                self.txs = cursor.number();
                ("tx", self.txs.is_some())
            }
            b'd' if cursor.eat("date=").is_some() => {
                self.block_time = self.date(cursor);
                ("date", self.block_time.is_some())
            }
            b'p' if cursor.eat("progress=").is_some() => {
                self.share = cursor.decimal();
                ("progress", self.share.is_some())
            }
            b'c' if cursor.eat("cache=").is_some() => {
                let cache = cache(cursor);
                self.cache = cache.unwrap_or_default();
                ("cache", cache.is_some())
            }
            // Free text to the end of the line.
            b'w' if cursor.eat("warning=").is_some() => return Ok(false),
            _ => return Ok(unknown(cursor).is_some()),
        };
        let is_whole = matches!(cursor.rest.first(), None | Some(b' '));
        if taken && is_whole { Ok(true) } else { Err(name) }
    }

    fn date(&mut self, cursor: &mut Cursor<'_>) -> Option<i64> {
        let is_quoted = cursor.eat("'").is_some();
        let text = cursor.rest;
        let length = if text.get(2) == Some(&b'/') { 17 } else { 19 };
        let value = stamp::date(text.get(..length)?)?;
        cursor.rest = &text[length..];
        self.has_iso_date = text.get(10) == Some(&b'T');
        if self.has_iso_date {
            cursor.eat("Z")?;
        }
        if is_quoted {
            cursor.eat("'")?;
        }
        Some(value)
    }

    fn version(&self, is_update: bool) -> Format {
        match (is_update, self.cache) {
            (false, _) if self.has_log_work => Format::Core0_8_2,
            (false, _) if self.txs.is_some() => Format::Core0_8_0,
            (false, _) => Format::Core0_7,
            (true, _) if self.has_iso_date => Format::Core0_17,
            (true, Cache::Size(_, _, true)) => Format::Core0_15,
            (true, _) if self.has_version => Format::Core0_13,
            (true, Cache::Size(..)) => Format::Core0_11,
            (true, Cache::Coins(_)) => Format::Core0_10,
            (true, Cache::Absent) => Format::Core0_9,
        }
    }
}

fn unknown(cursor: &mut Cursor<'_>) -> Option<()> {
    let is_name = |byte: &&u8| byte.is_ascii_alphanumeric() || **byte == b'_';
    let name = cursor.rest.iter().take_while(is_name).count();
    (name > 0 && cursor.rest.get(name) == Some(&b'=')).then_some(())?;
    let value = &cursor.rest[name + 1..];
    let end = match value.first() {
        Some(quote @ (b'\'' | b'"')) => 2 + memchr::memchr(*quote, &value[1..])?,
        _ => memchr::memchr(b' ', value).unwrap_or(value.len()),
    };
    cursor.rest = &value[end..];
    Some(())
}

fn hexadecimal(cursor: &mut Cursor<'_>) -> Option<()> {
    cursor.eat("0x")?;
    // A ninth digit is no blank, which the caller checks.
    let (digits, rest) = cursor.rest.split_first_chunk::<8>()?;
    cursor.rest = rest;
    digits.iter().all(u8::is_ascii_hexdigit).then_some(())
}

/// Skips digits, point and exponent; the number is unused and may exceed every integer type.
fn work(cursor: &mut Cursor<'_>) -> Option<()> {
    let is_number = |byte: &&u8| matches!(byte, b'0'..=b'9' | b'.' | b'e' | b'+' | b'-');
    let length = cursor.rest.iter().take_while(is_number).count();
    cursor.rest = &cursor.rest[length..];
    (length > 0).then_some(())
}

/// `1234`, `25.5MiB(7394tx)`, `32.0MiB(283796txo)`.
fn cache(cursor: &mut Cursor<'_>) -> Option<Cache> {
    let before = *cursor;
    let size = cursor.decimal()?;
    if cursor.eat("MiB(").is_none() {
        *cursor = before;
        return cursor.number().map(Cache::Coins);
    }
    let coins = cursor.number()?;
    cursor.eat("tx")?;
    let is_txo = cursor.eat("o").is_some();
    cursor.eat(")")?;
    Some(Cache::Size(size, coins, is_txo))
}
