//! Compares responses with the chain.
//!
//! Blocks arrive while requests are in flight, so a response may refer to any height from the server's last announced one at the
//! time of the request to the last submitted one. A correct response is remembered by its text: the next one with the same text
//! costs one hash.

use std::collections::HashMap;

use serde::Deserialize;
use sha2::{Digest, Sha256};

use super::dataset::{Dataset, HEADER_BYTES, text_hash};
use super::protocol::Ask;
use super::timeline::{Timeline, Unspent, parse_display, parse_hex};

/// Maximum number of kept descriptions of wrong responses.
const EXAMPLES_MAX: usize = 8;
/// Characters of a response quoted in such a description.
const QUOTE_MAX: usize = 200;

/// Verdict on a response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    Right,
    /// Correct at a height before the last announced one.
    Stale,
    Wrong,
    Unknown,
}

/// Heights that a response may refer to, inclusive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Heights {
    pub(crate) low: u32,
    pub(crate) high: u32,
}

impl Heights {
    fn judge(self, (from, to): (u32, u32)) -> Verdict {
        match (from <= self.high, to >= self.low) {
            (true, true) => Verdict::Right,
            (true, false) => Verdict::Stale,
            // Refers to a block that was not submitted yet.
            (false, _) => Verdict::Wrong,
        }
    }
}

/// Checks and counts responses.
#[derive(Debug)]
pub(crate) struct Checker<'a> {
    dataset: &'a Dataset,
    /// Correct responses by request: hash of the text, and the heights at which it is correct.
    known: HashMap<Ask, (u64, (u32, u32))>,
    statuses: HashMap<(u32, usize), Option<[u8; 32]>>,
    pub(crate) right: u64,
    pub(crate) stale: u64,
    pub(crate) wrong: u64,
    pub(crate) unknown: u64,
    pub(crate) examples: Vec<String>,
}

#[derive(Deserialize)]
struct HistoryItem<'a> {
    tx_hash: &'a str,
    height: i64,
}

#[derive(Deserialize)]
struct UnspentItem<'a> {
    tx_hash: &'a str,
    tx_pos: u32,
    height: i64,
    value: u64,
}

#[derive(Deserialize)]
struct BalanceItem {
    confirmed: i64,
}

#[derive(Deserialize)]
struct MerkleItem<'a> {
    block_height: u32,
    pos: u32,
    #[serde(borrow)]
    merkle: Vec<&'a str>,
}

#[derive(Deserialize)]
struct TipItem<'a> {
    height: u32,
    hex: &'a str,
}

#[derive(Deserialize)]
struct HeadersItem<'a> {
    count: usize,
    #[serde(borrow)]
    hex: Option<&'a str>,
    #[serde(borrow)]
    headers: Option<Vec<&'a str>>,
}

impl<'a> Checker<'a> {
    pub(crate) fn new(dataset: &'a Dataset) -> Self {
        Self {
            dataset,
            known: HashMap::new(),
            statuses: HashMap::new(),
            right: 0,
            stale: 0,
            wrong: 0,
            unknown: 0,
            examples: Vec::new(),
        }
    }

    /// Checks and counts a response, given as JSON text.
    pub(crate) fn check(&mut self, ask: Ask, answer: &str, heights: Heights) -> Verdict {
        let verdict = self.judge(ask, answer, heights);
        self.count(verdict, || {
            let quote: String = answer.chars().take(QUOTE_MAX).collect();
            format!("{ask} at heights {} to {}: {quote}", heights.low, heights.high)
        });
        verdict
    }

    /// Checks and counts a status of a subscription or a notification.
    pub(crate) fn check_status(&mut self, script: u32, answer: &str, heights: Heights) -> Verdict {
        let verdict = self.judge_status(script, answer, heights);
        self.count(verdict, || {
            format!(
                "status {answer} of script {script} at heights {} to {}",
                heights.low, heights.high
            )
        });
        verdict
    }

    fn count(&mut self, verdict: Verdict, describe: impl FnOnce() -> String) {
        match verdict {
            Verdict::Right => self.right += 1,
            Verdict::Unknown => self.unknown += 1,
            Verdict::Stale => self.stale += 1,
            Verdict::Wrong => self.wrong += 1,
        }
        if matches!(verdict, Verdict::Stale | Verdict::Wrong) && self.examples.len() < EXAMPLES_MAX
        {
            let name = if verdict == Verdict::Stale { "stale" } else { "wrong" };
            self.examples.push(format!("{name}: {}", describe()));
        }
    }

    fn judge(&mut self, ask: Ask, answer: &str, heights: Heights) -> Verdict {
        let span = match ask {
            Ask::Subscribe(script) => return self.judge_status(script, answer, heights),
            Ask::Tip => return self.judge_tip(answer, heights),
            Ask::Version
            | Ask::Features
            | Ask::Ping
            | Ask::EstimateFee(_)
            | Ask::FeeHistogram
            | Ask::Unsubscribe(_) => return Verdict::Unknown,
            Ask::History(script) | Ask::Balance(script) | Ask::Unspent(script) => {
                let dataset = self.dataset;
                let Some(timeline) = &dataset.scripts[script as usize].timeline else {
                    return Verdict::Unknown;
                };
                let hash = text_hash(answer.as_bytes());
                if let Some((known, span)) = self.known.get(&ask)
                    && *known == hash
                {
                    return heights.judge(*span);
                }
                let span = match ask {
                    Ask::History(_) => history_span(timeline, answer),
                    Ask::Balance(_) => balance_span(timeline, answer, heights),
                    _ => unspent_span(timeline, answer, heights),
                };
                if let Some(span) = span {
                    self.known.insert(ask, (hash, span));
                }
                span
            }
            Ask::Transaction(tx) => {
                let known = &self.dataset.txs[tx as usize];
                let text = answer.trim_matches('"');
                (text_hash(text.as_bytes()) == known.hex_hash)
                    .then_some((known.tx.height, u32::MAX))
            }
            Ask::Merkle(tx) => self.merkle_span(tx, answer),
            Ask::Header(_) | Ask::Headers { .. } if self.dataset.headers.is_empty() => {
                return Verdict::Unknown;
            }
            Ask::Header(height) => self.header_span(height, answer.trim_matches('"')),
            Ask::Headers { start, .. } => self.headers_span(start, answer),
        };
        span.map_or(Verdict::Wrong, |span| heights.judge(span))
    }

    fn judge_tip(&self, answer: &str, heights: Heights) -> Verdict {
        if self.dataset.headers.is_empty() {
            return Verdict::Unknown;
        }
        let Ok(tip) = serde_json::from_str::<TipItem<'_>>(answer) else { return Verdict::Wrong };
        match self.header_span(tip.height, tip.hex) {
            Some(_) => heights.judge((tip.height, tip.height)),
            None => Verdict::Wrong,
        }
    }

    /// Genesis is in no block file, so its header is accepted.
    fn header_span(&self, height: u32, hex: &str) -> Option<(u32, u32)> {
        let mut header = [0; HEADER_BYTES];
        if hex.len() != 2 * HEADER_BYTES {
            return None;
        }
        faster_hex::hex_decode(hex.as_bytes(), &mut header).ok()?;
        let right = match height.checked_sub(1) {
            None => return Some((0, u32::MAX)),
            Some(index) => self.dataset.headers.get(index as usize)?,
        };
        (header == *right).then_some((height, u32::MAX))
    }

    fn headers_span(&self, start: u32, answer: &str) -> Option<(u32, u32)> {
        let item: HeadersItem<'_> = serde_json::from_str(answer).ok()?;
        let joined = match (item.hex, item.headers) {
            (Some(hex), None) => hex.to_owned(),
            (None, Some(headers)) => headers.concat(),
            _ => return None,
        };
        if joined.len() != item.count * 2 * HEADER_BYTES || !joined.is_ascii() {
            return None;
        }
        let mut span = (0, u32::MAX);
        for index in 0..item.count {
            let hex = joined.get(index * 2 * HEADER_BYTES..(index + 1) * 2 * HEADER_BYTES)?;
            span = self.header_span(start + index as u32, hex)?;
        }
        Some(span)
    }

    /// The proof must lead from the txid to the merkle root in the header of its block.
    fn merkle_span(&self, tx: u32, answer: &str) -> Option<(u32, u32)> {
        let known = &self.dataset.txs[tx as usize];
        let height = known.tx.height;
        let item: MerkleItem<'_> = serde_json::from_str(answer).ok()?;
        if item.block_height != height || item.pos != known.position {
            return None;
        }
        let mut node = known.tx.txid;
        let mut position = item.pos;
        for text in item.merkle {
            let sibling = parse_display(text)?;
            let (left, right) =
                if position.is_multiple_of(2) { (node, sibling) } else { (sibling, node) };
            let once = Sha256::new().chain_update(left).chain_update(right).finalize();
            node = Sha256::digest(once).into();
            position /= 2;
        }
        let header = self.dataset.headers.get(height as usize - 1)?;
        (position == 0 && header[36..68] == node).then_some((height, u32::MAX))
    }

    fn judge_status(&mut self, script: u32, answer: &str, heights: Heights) -> Verdict {
        let Some(timeline) = &self.dataset.scripts[script as usize].timeline else {
            return Verdict::Unknown;
        };
        let status = match answer.trim_matches('"') {
            "null" => None,
            hex => match parse_hex(hex) {
                Some(status) => Some(status),
                None => return Verdict::Wrong,
            },
        };
        let mut spans = timeline.spans(heights.low, heights.high);
        let statuses = &mut self.statuses;
        let mut is_at = |height: u32| {
            let count = timeline.count_at(height);
            *statuses.entry((script, count)).or_insert_with(|| timeline.status(count)) == status
        };
        if spans.any(|(from, _)| is_at(from)) {
            return Verdict::Right;
        }
        let low = timeline.spans(heights.low, heights.low).next().map_or(0, |(from, _)| from);
        if low > 0 && is_at(low - 1) { Verdict::Stale } else { Verdict::Wrong }
    }
}

/// Unconfirmed transactions are ignored: the chain does not determine them.
fn history_span(timeline: &Timeline, answer: &str) -> Option<(u32, u32)> {
    let items: Vec<HistoryItem<'_>> = serde_json::from_str(answer).ok()?;
    let confirmed = items.iter().filter(|item| item.height > 0);
    let mut count = 0;
    for item in confirmed {
        let tx = timeline.history().get(count)?;
        if i64::from(tx.height) != item.height || parse_display(item.tx_hash)? != tx.txid {
            return None;
        }
        count += 1;
    }
    timeline.span(count)
}

/// Heights of the window, then earlier ones, which distinguish a late response from a wrong one.
fn candidates(timeline: &Timeline, heights: Heights) -> impl Iterator<Item = (u32, u32)> + '_ {
    let inside: Vec<(u32, u32)> = timeline.spans(heights.low, heights.high).collect();
    let earliest = inside.last().map_or(0, |(from, _)| *from);
    let before = earliest.checked_sub(1);
    inside.into_iter().chain(before.into_iter().flat_map(|height| timeline.spans(height, height)))
}

fn balance_span(timeline: &Timeline, answer: &str, heights: Heights) -> Option<(u32, u32)> {
    let item: BalanceItem = serde_json::from_str(answer).ok()?;
    candidates(timeline, heights)
        .find(|(from, _)| i128::from(timeline.balance_at(*from)) == i128::from(item.confirmed))
}

fn unspent_span(timeline: &Timeline, answer: &str, heights: Heights) -> Option<(u32, u32)> {
    let items: Vec<UnspentItem<'_>> = serde_json::from_str(answer).ok()?;
    let mut answered = Vec::with_capacity(items.len());
    for item in items.iter().filter(|item| item.height > 0) {
        let (height, txid) = (u32::try_from(item.height).ok()?, parse_display(item.tx_hash)?);
        answered.push(Unspent { height, txid, vout: item.tx_pos, value: item.value });
    }
    answered.sort_unstable();
    candidates(timeline, heights).find(|(from, _)| timeline.unspent_at(*from) == answered)
}

#[cfg(test)]
mod tests {
    use super::super::dataset::{KnownTx, Script};
    use super::super::timeline::display_hex;
    use super::super::timeline::{ExpectedCoin, ExpectedScript, ExpectedTx};
    use super::*;

    fn tx(height: u32, position: u32) -> ExpectedTx {
        ExpectedTx { height, txid: [height as u8 * 16 + position as u8; 32] }
    }

    /// A script that is paid at 2 and pays at 3, and a transaction with one neighbour in block 3.
    fn dataset() -> Dataset {
        let script = ExpectedScript {
            hash: [9; 32],
            history: vec![tx(2, 0), tx(3, 1)],
            coins: vec![ExpectedCoin { tx: tx(2, 0), vout: 1, value: 7, spent: Some(3) }],
        };
        let once = Sha256::new().chain_update([1; 32]).chain_update(tx(3, 1).txid).finalize();
        let root = Sha256::digest(once);
        let mut headers = vec![[0; HEADER_BYTES]; 3];
        headers[2][36..68].copy_from_slice(&root);
        Dataset {
            scripts: vec![Script {
                hash: [9; 32],
                timeline: Some(Timeline::new(script)),
                txs: vec![0],
            }],
            txs: vec![KnownTx { tx: tx(3, 1), position: 1, hex_hash: text_hash(b"0102") }],
            headers,
            ..Dataset::default()
        }
    }

    #[test]
    fn answers() {
        use Verdict::{Right, Stale, Unknown, Wrong};
        let dataset = dataset();
        let mut checker = Checker::new(&dataset);
        let made = display_hex(&tx(2, 0).txid);
        let spent = display_hex(&tx(3, 1).txid);
        let first = format!(r#"[{{"tx_hash":"{made}","height":2}}]"#);
        let both = format!(
            r#"[{{"tx_hash":"{made}","height":2}},{{"height":3,"tx_hash":"{spent}"}},{{"tx_hash":"00","height":0,"fee":1}}]"#
        );
        let coin = format!(r#"[{{"tx_hash":"{made}","tx_pos":1,"height":2,"value":7}}]"#);
        let sibling = display_hex(&[1; 32]);
        let proof = format!(r#"{{"block_height":3,"pos":1,"merkle":["{sibling}"]}}"#);
        let other = format!(r#"{{"block_height":3,"pos":1,"merkle":["{spent}"]}}"#);
        let table: Vec<(Ask, &str, (u32, u32), Verdict)> = vec![
            (Ask::History(0), &first, (2, 2), Right),
            (Ask::History(0), &first, (2, 3), Right),
            (Ask::History(0), &first, (3, 3), Stale),
            (Ask::History(0), &first, (1, 1), Wrong),
            (Ask::History(0), &both, (3, 3), Right),
            (Ask::History(0), &both, (2, 2), Wrong),
            (Ask::History(0), "[]", (1, 1), Right),
            (Ask::History(0), "{}", (1, 1), Wrong),
            (Ask::Balance(0), r#"{"confirmed":7,"unconfirmed":0}"#, (2, 2), Right),
            (Ask::Balance(0), r#"{"confirmed":0,"unconfirmed":0}"#, (3, 3), Right),
            (Ask::Balance(0), r#"{"confirmed":7,"unconfirmed":0}"#, (3, 3), Stale),
            (Ask::Balance(0), r#"{"confirmed":8,"unconfirmed":0}"#, (3, 3), Wrong),
            (Ask::Unspent(0), &coin, (2, 3), Right),
            (Ask::Unspent(0), &coin, (3, 3), Stale),
            (Ask::Unspent(0), "[]", (3, 3), Right),
            (Ask::Transaction(0), "\"0102\"", (3, 3), Right),
            (Ask::Transaction(0), "\"0103\"", (3, 3), Wrong),
            (Ask::Merkle(0), &proof, (3, 3), Right),
            (Ask::Merkle(0), &other, (3, 3), Wrong),
            (Ask::Ping, "null", (3, 3), Unknown),
        ];
        for (ask, answer, (low, high), verdict) in table {
            let heights = Heights { low, high };
            assert_eq!(
                checker.check(ask, answer, heights),
                verdict,
                "{ask:?} {answer} {heights:?}"
            );
        }
        assert_eq!((checker.stale, checker.unknown), (3, 1));
        assert!(!checker.examples.is_empty());
    }

    #[test]
    fn statuses() {
        let dataset = dataset();
        let mut checker = Checker::new(&dataset);
        let timeline = dataset.scripts[0].timeline.as_ref().expect("it has one");
        let status = |count| {
            timeline.status(count).map_or("null".to_owned(), |s| faster_hex::hex_string(&s))
        };
        let mut check =
            |count, low, high| checker.check_status(0, &status(count), Heights { low, high });
        assert_eq!(check(0, 0, 1), Verdict::Right);
        assert_eq!(check(1, 2, 2), Verdict::Right);
        assert_eq!(check(2, 2, 3), Verdict::Right);
        assert_eq!(check(1, 2, 3), Verdict::Right);
        assert_eq!(check(1, 3, 3), Verdict::Stale);
        assert_eq!(check(0, 3, 3), Verdict::Wrong);
        assert_eq!(check(2, 2, 2), Verdict::Wrong);
    }

    #[test]
    fn headers() {
        let dataset = dataset();
        let mut checker = Checker::new(&dataset);
        let hex: Vec<String> = dataset.headers.iter().map(|h| faster_hex::hex_string(h)).collect();
        let heights = Heights { low: 3, high: 3 };
        let joined = format!(r#"{{"count":2,"hex":"{}","max":2016}}"#, hex[1..].concat());
        let listed = format!(r#"{{"count":2,"headers":["{}","{}"],"max":2016}}"#, hex[1], hex[2]);
        let ask = Ask::Headers { start: 2, count: 2 };
        assert_eq!(checker.check(ask, &joined, heights), Verdict::Right);
        assert_eq!(checker.check(ask, &listed, heights), Verdict::Right);
        let ask = Ask::Headers { start: 1, count: 2 };
        assert_eq!(checker.check(ask, &listed, heights), Verdict::Wrong);
        let tip = format!(r#"{{"height":3,"hex":"{}"}}"#, hex[2]);
        assert_eq!(checker.check(Ask::Tip, &tip, heights), Verdict::Right);
        assert_eq!(checker.check(Ask::Tip, &tip, Heights { low: 2, high: 2 }), Verdict::Wrong);
        assert_eq!(
            checker.check(Ask::Header(3), &format!("\"{}\"", hex[2]), heights),
            Verdict::Right
        );
    }
}
