//! Compares responses with the chain.
//!
//! Blocks arrive while requests are in flight, so a response may refer to any height from the server's last announced one at the
//! time of the request to the last submitted one. A correct response is remembered by its text: the next one with the same text
//! costs one hash.

use std::collections::HashMap;

use assay_ledger::scripts::ScriptLine;
use assay_wire::Header;
use serde::Deserialize;
use sha2::{Digest as _, Sha256};

use super::dataset::{Dataset, text_hash};
use super::protocol::Ask;
use crate::electrum::HeaderTip;
use crate::electrum::check::{Balance, HistoryItem, UnspentItem, item};
use crate::electrum::expected::status_of;
use crate::p2p::hash_from_hex;

/// Maximum number of kept descriptions of wrong responses.
const EXAMPLES_MAX: usize = 8;
/// Characters of a response quoted in such a description.
const QUOTE_MAX: usize = 200;

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

/// Counts of responses, and of the last statuses of subscriptions.
#[derive(Debug, Clone, Default)]
pub(crate) struct Counts {
    pub(crate) right: u64,
    /// Correct at an earlier height.
    pub(crate) stale: u64,
    pub(crate) wrong: u64,
    pub(crate) unknown: u64,
    /// Descriptions of the first stale and wrong ones.
    pub(crate) examples: Vec<String>,
}

#[derive(Debug)]
pub(crate) struct Checker<'a> {
    dataset: &'a Dataset,
    /// Correct responses by request: hash of the text, and the heights at which it is correct.
    known: HashMap<Ask, (u64, (u32, u32))>,
    statuses: HashMap<(u32, usize), Option<String>>,
    pub(crate) counts: Counts,
}

#[derive(Deserialize)]
struct MerkleItem<'a> {
    block_height: u32,
    pos: u32,
    #[serde(borrow)]
    merkle: Vec<&'a str>,
}

#[derive(Deserialize)]
struct HeadersItem<'a> {
    count: usize,
    #[serde(borrow)]
    hex: Option<&'a str>,
    #[serde(borrow)]
    headers: Option<Vec<&'a str>>,
}

impl Counts {
    pub(crate) const fn compared(&self) -> u64 {
        self.right + self.stale + self.wrong
    }

    /// Adds those of another pass.
    pub(crate) fn add(&mut self, other: Self) {
        self.right += other.right;
        self.stale += other.stale;
        self.wrong += other.wrong;
        self.unknown += other.unknown;
        self.examples.extend(other.examples);
    }

    fn count(&mut self, verdict: Verdict, describe: impl FnOnce() -> String) {
        let (count, name) = match verdict {
            Verdict::Right => (&mut self.right, None),
            Verdict::Unknown => (&mut self.unknown, None),
            Verdict::Stale => (&mut self.stale, Some("stale")),
            Verdict::Wrong => (&mut self.wrong, Some("wrong")),
        };
        *count += 1;
        if let Some(name) = name.filter(|_| self.examples.len() < EXAMPLES_MAX) {
            self.examples.push(format!("{name}: {}", describe()));
        }
    }
}

impl<'a> Checker<'a> {
    pub(crate) fn new(dataset: &'a Dataset) -> Self {
        let (known, statuses) = (HashMap::new(), HashMap::new());
        Self { dataset, known, statuses, counts: Counts::default() }
    }

    /// Checks and counts a response, given as JSON text.
    pub(crate) fn check(&mut self, ask: Ask, answer: &str, heights: Heights) -> Verdict {
        let verdict = self.judge(ask, answer, heights);
        self.counts.count(verdict, || {
            let mut request = Vec::new();
            ask.write(0, self.dataset, &mut request);
            let request = String::from_utf8_lossy(&request);
            let quote: String = answer.chars().take(QUOTE_MAX).collect();
            format!("{request} at heights {} to {}: {quote}", heights.low, heights.high)
        });
        verdict
    }

    /// Checks and counts a status of a subscription or a notification.
    pub(crate) fn check_status(&mut self, script: u32, answer: &str, heights: Heights) -> Verdict {
        let verdict = self.judge_status(script, answer, heights);
        self.counts.count(verdict, || {
            let hash = &self.dataset.scripts[script as usize].hash;
            format!(
                "status {answer} of script {hash} at heights {} to {}",
                heights.low, heights.high
            )
        });
        verdict
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
                let Some(expected) = &dataset.scripts[script as usize].expected else {
                    return Verdict::Unknown;
                };
                let hash = text_hash(answer.as_bytes());
                if let Some((known, span)) = self.known.get(&ask)
                    && *known == hash
                {
                    return heights.judge(*span);
                }
                let span = match ask {
                    Ask::History(_) => history_span(expected, answer),
                    Ask::Balance(_) => balance_span(expected, answer, heights),
                    _ => unspent_span(expected, answer, heights),
                };
                if let Some(span) = span {
                    self.known.insert(ask, (hash, span));
                }
                span
            }
            Ask::Transaction(tx) => {
                let known = &self.dataset.txs[tx as usize];
                let text = answer.trim_matches('"');
                (text_hash(text.as_bytes()) == known.hex_hash).then_some((known.height, u32::MAX))
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
        let Ok(tip) = serde_json::from_str::<HeaderTip>(answer) else { return Verdict::Wrong };
        match self.header_span(tip.height, &tip.hex) {
            Some(_) => heights.judge((tip.height, tip.height)),
            None => Verdict::Wrong,
        }
    }

    /// Genesis is in no block file, so its header is accepted.
    fn header_span(&self, height: u32, hex: &str) -> Option<(u32, u32)> {
        let mut header = [0; Header::SIZE];
        if hex.len() != 2 * Header::SIZE {
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
        if joined.len() != item.count * 2 * Header::SIZE || !joined.is_ascii() {
            return None;
        }
        let mut span = (0, u32::MAX);
        for index in 0..item.count {
            let hex = joined.get(index * 2 * Header::SIZE..(index + 1) * 2 * Header::SIZE)?;
            span = self.header_span(start + index as u32, hex)?;
        }
        Some(span)
    }

    /// The proof must lead from the txid to the merkle root in the header of its block.
    fn merkle_span(&self, tx: u32, answer: &str) -> Option<(u32, u32)> {
        let known = &self.dataset.txs[tx as usize];
        let height = known.height;
        let item: MerkleItem<'_> = serde_json::from_str(answer).ok()?;
        if item.block_height != height || item.pos != known.position {
            return None;
        }
        let mut node = hash_from_hex(&known.txid)?;
        let mut position = item.pos;
        for text in item.merkle {
            let sibling = hash_from_hex(text)?;
            let (left, right) =
                if position.is_multiple_of(2) { (node, sibling) } else { (sibling, node) };
            node = double_sha256(&[left, right].concat());
            position /= 2;
        }
        let header = self.dataset.headers.get(height as usize - 1)?;
        (position == 0 && header[36..68] == node).then_some((height, u32::MAX))
    }

    fn judge_status(&mut self, number: u32, answer: &str, heights: Heights) -> Verdict {
        let Some(script) = &self.dataset.scripts[number as usize].expected else {
            return Verdict::Unknown;
        };
        let status = Some(answer.trim_matches('"')).filter(|status| *status != "null");
        let mut spans = script.spans(heights.low, heights.high);
        let statuses = &mut self.statuses;
        let mut is_at = |height: u32| {
            let count = script.history_at(height).len();
            let known = statuses.entry((number, count)).or_insert_with(|| status_of(script, count));
            known.as_deref() == status
        };
        if spans.any(|(from, _)| is_at(from)) {
            return Verdict::Right;
        }
        let low = script.spans(heights.low, heights.low).next().map_or(0, |(from, _)| from);
        if low > 0 && is_at(low - 1) { Verdict::Stale } else { Verdict::Wrong }
    }
}

fn double_sha256(bytes: &[u8]) -> [u8; 32] {
    Sha256::digest(Sha256::digest(bytes)).into()
}

/// Unconfirmed transactions are ignored: the chain does not determine them.
fn history_span(script: &ScriptLine, answer: &str) -> Option<(u32, u32)> {
    let items: Vec<HistoryItem<'_>> = serde_json::from_str(answer).ok()?;
    let mut count = 0;
    for item in items.iter().filter(|item| item.height > 0) {
        let (height, txid) = script.history.get(count)?;
        if i64::from(*height) != item.height || txid != item.tx_hash {
            return None;
        }
        count += 1;
    }
    script.span(count)
}

/// Spans of the window, then the one before it, which distinguishes a late response from a wrong one. Returns the first at whose
/// start `is_right` holds.
fn find_span(
    script: &ScriptLine,
    heights: Heights,
    is_right: impl Fn(u32) -> bool,
) -> Option<(u32, u32)> {
    let inside: Vec<(u32, u32)> = script.spans(heights.low, heights.high).collect();
    let before = inside.last().and_then(|(from, _)| from.checked_sub(1));
    let before = before.into_iter().flat_map(|height| script.spans(height, height));
    inside.iter().copied().chain(before).find(|(from, _)| is_right(*from))
}

fn balance_span(script: &ScriptLine, answer: &str, heights: Heights) -> Option<(u32, u32)> {
    let Balance { confirmed, .. } = serde_json::from_str(answer).ok()?;
    let balance = |height| script.unspent_at(height).map(|coin| coin.value).sum::<u64>();
    find_span(script, heights, |height| u64::try_from(confirmed) == Ok(balance(height)))
}

fn unspent_span(script: &ScriptLine, answer: &str, heights: Heights) -> Option<(u32, u32)> {
    let answered: Vec<UnspentItem<'_>> = serde_json::from_str(answer).ok()?;
    let answered = sorted(answered.into_iter().filter(|item| item.height > 0));
    let unspent = |height| sorted(script.unspent_at(height).map(item));
    find_span(script, heights, |height| unspent(height) == answered)
}

fn sorted<T: Ord>(items: impl Iterator<Item = T>) -> Vec<T> {
    let mut items: Vec<T> = items.collect();
    items.sort_unstable();
    items
}

#[cfg(test)]
mod tests {
    use assay_ledger::scripts::CoinLine;

    use super::super::dataset::{KnownTx, Script};
    use super::*;

    fn txid(height: u32, position: u32) -> String {
        faster_hex::hex_string(&[height as u8 * 16 + position as u8; 32])
    }

    /// A script that is paid at 2 and pays at 3, and a transaction with one neighbour in block 3.
    fn dataset() -> Dataset {
        let (made, spent) = (txid(2, 0), txid(3, 1));
        let coin = CoinLine { height: 2, txid: made.clone(), vout: 1, value: 7, spent: Some(3) };
        let expected = ScriptLine {
            history: vec![(2, made), (3, spent.clone())],
            coins: vec![coin],
            ..ScriptLine::default()
        };
        let mut headers = vec![[0; Header::SIZE]; 3];
        headers[2][36..68].copy_from_slice(&double_sha256(&[[1; 32], [0x31; 32]].concat()));
        Dataset {
            scripts: vec![Script { hash: "09".repeat(32), expected: Some(expected), txs: vec![0] }],
            txs: vec![KnownTx {
                height: 3,
                txid: spent,
                position: 1,
                hex_hash: text_hash(b"0102"),
            }],
            headers,
            ..Dataset::default()
        }
    }

    #[test]
    fn answers() {
        use Verdict::{Right, Stale, Unknown, Wrong};
        let dataset = dataset();
        let mut checker = Checker::new(&dataset);
        let (made, spent) = (txid(2, 0), txid(3, 1));
        let first = format!(r#"[{{"tx_hash":"{made}","height":2}}]"#);
        let both = format!(
            r#"[{{"tx_hash":"{made}","height":2}},{{"height":3,"tx_hash":"{spent}"}},{{"tx_hash":"00","height":0,"fee":1}}]"#
        );
        let coin = format!(r#"[{{"tx_hash":"{made}","tx_pos":1,"height":2,"value":7}}]"#);
        let sibling = "01".repeat(32);
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
        let counts = checker.counts;
        assert_eq!((counts.stale, counts.unknown, counts.compared()), (3, 1, 19));
        assert!(counts.examples[0].contains("blockchain.scripthash.get_history"), "{counts:?}");
    }

    #[test]
    fn statuses() {
        let dataset = dataset();
        let mut checker = Checker::new(&dataset);
        let script = dataset.scripts[0].expected.as_ref().expect("it has one");
        let mut check = |count, low, high| {
            let status = status_of(script, count).unwrap_or_else(|| "null".to_owned());
            checker.check_status(0, &status, Heights { low, high })
        };
        assert_eq!(check(0, 0, 1), Verdict::Right);
        assert_eq!(check(1, 2, 2), Verdict::Right);
        assert_eq!(check(2, 2, 3), Verdict::Right);
        assert_eq!(check(1, 2, 3), Verdict::Right);
        assert_eq!(check(1, 3, 3), Verdict::Stale);
        assert_eq!(check(0, 3, 3), Verdict::Wrong);
        assert_eq!(check(2, 2, 2), Verdict::Wrong);
        let Counts { right, stale, wrong, .. } = checker.counts;
        assert_eq!((right, stale, wrong), (4, 1, 2));
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
