//! Compares a server's history, balance and unspent outputs of every listed script with the ledger.
//!
//! Requests are pipelined, at most `WINDOW` scripts in flight, so that server and client work in parallel. Responses must be
//! complete; history and unspent outputs must be in chain order. A response with the right entries in another order is counted
//! separately, since the protocol leaves part of the order open.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::time::Instant;

use anyhow::ensure;
use assay_ledger::scripts::{CoinLine, ScriptLine};
use serde::{Deserialize, Serialize};
use serde_json::json;
use serde_json::value::RawValue;

use super::{Client, ElectrumError, Reply};

/// Maximum number of scripts in flight.
const WINDOW: usize = 64;
const TOLD_MAX: usize = 5;

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct LedgerCheck {
    pub scripts: u64,
    /// Scripts of the chain; an estimate for a sample.
    pub scripts_total: u64,
    /// Seed of the sample; `None` if all scripts were queried.
    pub sample_seed: Option<u64>,
    pub history: u64,
    pub unspent: u64,
    /// Responses that differ from the ledger.
    pub differences: u64,
    /// Error responses.
    pub refused: u64,
    /// Responses with the right entries in another order.
    pub other_order: u64,
    /// First differences and errors: script, expected and received value.
    pub told: Vec<String>,
    pub seconds: f64,
}

impl LedgerCheck {
    /// True if there were responses, and all of them right.
    pub fn is_good(&self) -> bool {
        self.scripts > 0 && self.differences == 0 && self.refused == 0
    }

    pub fn summary(&self) -> String {
        let sample = match self.sample_seed {
            Some(seed) => format!(" of about {} (sample, seed {seed})", self.scripts_total),
            None => String::new(),
        };
        let mut text = format!(
            "ledger check: {} scripts{sample}, {} history entries, {} unspent, {} differences",
            self.scripts, self.history, self.unspent, self.differences
        );
        // Writing to a string cannot fail.
        if self.refused > 0 {
            let _ = write!(text, ", {} rejected", self.refused);
        }
        if self.other_order > 0 {
            let _ = write!(text, ", {} in another order", self.other_order);
        }
        text
    }
}

#[derive(Debug, Deserialize, Serialize, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct HistoryItem<'a> {
    pub(crate) height: i64,
    pub(crate) tx_hash: &'a str,
}

#[derive(Debug, Deserialize, Serialize, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct UnspentItem<'a> {
    pub(crate) height: i64,
    tx_hash: &'a str,
    tx_pos: u32,
    value: u64,
}

/// The response's entry for an unspent output.
pub(crate) fn item(coin: &CoinLine) -> UnspentItem<'_> {
    let CoinLine { height, txid, vout, value, .. } = coin;
    UnspentItem { height: i64::from(*height), tx_hash: txid, tx_pos: *vout, value: *value }
}

#[derive(Debug, Deserialize, PartialEq, Eq)]
pub(crate) struct Balance {
    pub(crate) confirmed: i64,
    unconfirmed: i64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Question {
    History,
    Balance,
    Unspent,
}

const QUESTIONS: [(Question, &str); 3] = [
    (Question::History, "blockchain.scripthash.get_history"),
    (Question::Balance, "blockchain.scripthash.get_balance"),
    (Question::Unspent, "blockchain.scripthash.listunspent"),
];

struct Comparison<'a> {
    client: &'a mut Client,
    height: u32,
    asked: HashMap<u64, (usize, Question)>,
    // A slot is reused after all responses for its script.
    scripts: Vec<Option<(ScriptLine, usize)>>,
    free: Vec<usize>,
    result: LedgerCheck,
}

/// Compares the responses of a server at tip `height` with `expected`. `progress` receives the completed scripts; false stops.
///
/// # Errors
/// When the connection fails, the ledger cannot be read, or `progress` stops it. Differences are a result, not an error.
pub fn compare(
    client: &mut Client,
    expected: impl Iterator<Item = anyhow::Result<ScriptLine>>,
    height: u32,
    progress: &mut dyn FnMut(u64) -> bool,
) -> anyhow::Result<LedgerCheck> {
    let start = Instant::now();
    let mut comparison = Comparison {
        client,
        height,
        asked: HashMap::new(),
        scripts: (0..WINDOW).map(|_| None).collect(),
        free: (0..WINDOW).collect(),
        result: LedgerCheck::default(),
    };
    for script in expected {
        let slot = loop {
            match comparison.free.pop() {
                Some(slot) => break slot,
                None => comparison.take_answer()?,
            }
        };
        comparison.ask(slot, script?);
        if comparison.free.is_empty() {
            comparison.client.flush()?;
        }
        ensure!(progress(comparison.result.scripts), "interrupted while answers were compared");
    }
    comparison.client.flush()?;
    while !comparison.asked.is_empty() {
        comparison.take_answer()?;
    }
    progress(comparison.result.scripts);
    let mut result = comparison.result;
    result.scripts_total = result.scripts;
    result.seconds = start.elapsed().as_secs_f64();
    Ok(result)
}

impl Comparison<'_> {
    fn ask(&mut self, slot: usize, script: ScriptLine) {
        let params = format!(r#"["{}"]"#, script.script_hash);
        for (question, method) in QUESTIONS {
            let id = self.client.send(method, &params);
            self.asked.insert(id, (slot, question));
        }
        self.scripts[slot] = Some((script, QUESTIONS.len()));
    }

    /// Processes one response; the last one for a script frees its slot.
    fn take_answer(&mut self) -> Result<(), ElectrumError> {
        let reply = self.client.receive()?;
        let unasked = || ElectrumError::Unasked { id: reply.id };
        let (slot, question) = self.asked.remove(&reply.id).ok_or_else(unasked)?;
        let (script, left) = self.scripts[slot].take().ok_or_else(unasked)?;
        self.judge(&script, question, reply);
        if left > 1 {
            self.scripts[slot] = Some((script, left - 1));
        } else {
            self.result.scripts += 1;
            self.free.push(slot);
        }
        Ok(())
    }

    fn judge(&mut self, script: &ScriptLine, question: Question, reply: Reply) {
        let method =
            QUESTIONS.iter().find(|(q, _)| *q == question).map_or("", |(_, method)| method);
        let answer = match reply.result {
            Ok(answer) => answer,
            Err((code, message)) => {
                self.result.refused += 1;
                self.tell(format!("{} of {}: error {code}: {message}", method, script.script_hash));
                return;
            }
        };
        let verdict = match question {
            Question::History => {
                self.result.history += script.history_at(self.height).len() as u64;
                judge_history(script.history_at(self.height), &answer)
            }
            Question::Balance => {
                let confirmed = script.unspent_at(self.height).map(|coin| coin.value).sum::<u64>();
                judge_balance(confirmed, &answer)
            }
            Question::Unspent => {
                let expected: Vec<_> = script.unspent_at(self.height).map(item).collect();
                self.result.unspent += expected.len() as u64;
                judge_unspent(expected, &answer)
            }
        };
        match verdict {
            Verdict::Equal => {}
            Verdict::OtherOrder => self.result.other_order += 1,
            Verdict::Different(how) => {
                self.result.differences += 1;
                self.tell(format!("{method} of {}: {how}", script.script_hash));
            }
        }
    }

    fn tell(&mut self, what: String) {
        if self.result.told.len() < TOLD_MAX {
            self.result.told.push(what);
        }
    }
}

enum Verdict {
    Equal,
    OtherOrder,
    Different(String),
}

fn judge_history(expected: &[(u32, String)], answer: &RawValue) -> Verdict {
    let found: Vec<HistoryItem<'_>> = match serde_json::from_str(answer.get()) {
        Ok(found) => found,
        Err(error) => return unreadable(answer, &error),
    };
    let expected: Vec<HistoryItem<'_>> = expected
        .iter()
        .map(|(height, txid)| HistoryItem { height: i64::from(*height), tx_hash: txid })
        .collect();
    judge_lists(expected, found)
}

fn judge_unspent(expected: Vec<UnspentItem<'_>>, answer: &RawValue) -> Verdict {
    match serde_json::from_str(answer.get()) {
        Ok(found) => judge_lists(expected, found),
        Err(error) => unreadable(answer, &error),
    }
}

fn judge_balance(confirmed: u64, answer: &RawValue) -> Verdict {
    match serde_json::from_str::<Balance>(answer.get()) {
        Ok(Balance { confirmed: found, unconfirmed: 0 })
            if u64::try_from(found) == Ok(confirmed) =>
        {
            Verdict::Equal
        }
        Ok(found) => Verdict::Different(format!(
            "expected {confirmed} confirmed and nothing unconfirmed, got {} and {}",
            found.confirmed, found.unconfirmed
        )),
        Err(error) => unreadable(answer, &error),
    }
}

fn unreadable(answer: &RawValue, error: &serde_json::Error) -> Verdict {
    let excerpt: String = answer.get().chars().take(80).collect();
    Verdict::Different(format!("unexpected result ({error}): {excerpt}"))
}

/// Compares two lists: equal, same entries in another order, or the first difference.
fn judge_lists<T: Ord + Serialize>(mut expected: Vec<T>, mut found: Vec<T>) -> Verdict {
    if expected == found {
        return Verdict::Equal;
    }
    let (counts, at) = (
        (expected.len(), found.len()),
        expected.iter().zip(&found).take_while(|(left, right)| left == right).count(),
    );
    let show =
        |list: &[T]| list.get(at).map_or_else(|| "nothing".to_owned(), |e| json!(e).to_string());
    let how = format!(
        "expected {} entries, got {}; entry {at}: expected {}, got {}",
        counts.0,
        counts.1,
        show(&expected),
        show(&found)
    );
    expected.sort();
    found.sort();
    if expected == found { Verdict::OtherOrder } else { Verdict::Different(how) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raw(text: &str) -> Box<RawValue> {
        RawValue::from_string(text.to_owned()).expect("JSON")
    }

    fn reason(verdict: Verdict) -> String {
        match verdict {
            Verdict::Equal => "equal".to_owned(),
            Verdict::OtherOrder => "other order".to_owned(),
            Verdict::Different(how) => how,
        }
    }

    #[test]
    fn histories() {
        let expected = [(1, "aa".to_owned()), (2, "bb".to_owned())];
        let judge = |text: &str| reason(judge_history(&expected, &raw(text)));
        let (a, b) = (r#"{"height":1,"tx_hash":"aa"}"#, r#"{"tx_hash":"bb","height":2,"fee":1}"#);
        assert_eq!(judge(&format!("[{a},{b}]")), "equal");
        assert_eq!(judge(&format!("[{b},{a}]")), "other order");
        let missing = judge(&format!("[{a}]"));
        assert!(missing.contains("expected 2 entries, got 1; entry 1") && missing.contains("bb"));
        assert!(missing.ends_with("got nothing"), "{missing}");
        assert!(judge(&format!("[{a},{a},{b}]")).contains("got 3"));
        assert!(judge("null").starts_with("unexpected result"));
    }

    #[test]
    fn balances_and_unspent_outputs() {
        let judge = |text: &str| reason(judge_balance(7, &raw(text)));
        assert_eq!(judge(r#"{"confirmed":7,"unconfirmed":0}"#), "equal");
        assert!(judge(r#"{"confirmed":7,"unconfirmed":-7}"#).ends_with("got 7 and -7"));
        assert!(judge(r#"{"confirmed":6,"unconfirmed":0}"#).contains("expected 7"));
        let coin = CoinLine { height: 3, txid: "cc".to_owned(), vout: 1, value: 9, spent: None };
        let judge = |text: &str| reason(judge_unspent(vec![item(&coin)], &raw(text)));
        let right = r#"[{"tx_hash":"cc","tx_pos":1,"height":3,"value":9}]"#;
        assert_eq!(judge(right), "equal");
        assert!(judge(&right.replace("\"tx_pos\":1", "\"tx_pos\":2")).contains("entry 0"));
        assert!(judge("[]").contains("got nothing"));
    }
}
