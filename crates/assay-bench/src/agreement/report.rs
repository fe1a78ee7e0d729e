//! How often each verdict came, and where the two differ.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde::Serialize;

use super::Options;

/// Disagreements that are kept whole; more are only counted.
const KEPT: usize = 100;

/// What a comparison came to.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    schema: u32,
    kind: &'static str,
    /// What the other node calls itself.
    pub reference: String,
    /// Its command line.
    pub command: Vec<String>,
    pub seed: u64,
    /// Transactions that were offered to both.
    pub transactions: u64,
    /// Blocks that were submitted to both.
    pub blocks: u64,
    /// How often each verdict on a transaction came, ours where they differ.
    pub transaction_verdicts: BTreeMap<String, u64>,
    /// The same of blocks.
    pub block_verdicts: BTreeMap<String, u64>,
    pub disagreement_count: u64,
    pub disagreements: Vec<Disagreement>,
}

/// Two verdicts on the same bytes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Disagreement {
    /// `transaction`, `block` or `tip`.
    pub of: &'static str,
    /// Our verdict.
    pub ours: String,
    /// The other node's.
    pub theirs: String,
    /// The bytes in hex; of a tip its height.
    pub what: String,
}

impl Report {
    pub(super) fn new(options: &Options, reference: &str, command: &[String]) -> Self {
        Self {
            schema: 1,
            kind: "agreement",
            reference: reference.to_owned(),
            command: command.to_vec(),
            seed: options.seed,
            transactions: 0,
            blocks: 0,
            transaction_verdicts: BTreeMap::new(),
            block_verdicts: BTreeMap::new(),
            disagreement_count: 0,
            disagreements: Vec::new(),
        }
    }

    pub(super) fn transaction(&mut self, raw: &[u8], ours: String, theirs: String) {
        self.transactions += 1;
        *self.transaction_verdicts.entry(ours.clone()).or_default() += 1;
        self.compare("transaction", ours, theirs, || faster_hex::hex_string(raw));
    }

    pub(super) fn block(&mut self, raw: &[u8], ours: String, theirs: String) {
        self.blocks += 1;
        *self.block_verdicts.entry(ours.clone()).or_default() += 1;
        self.compare("block", ours, theirs, || faster_hex::hex_string(raw));
    }

    pub(super) fn tip(&mut self, height: u32, ours: &str, theirs: &str) {
        self.compare("tip", ours.to_owned(), theirs.to_owned(), || height.to_string());
    }

    fn compare(
        &mut self,
        of: &'static str,
        ours: String,
        theirs: String,
        what: impl Fn() -> String,
    ) {
        if ours == theirs {
            return;
        }
        self.disagreement_count += 1;
        if self.disagreements.len() < KEPT {
            self.disagreements.push(Disagreement { of, ours, theirs, what: what() });
        }
    }

    /// Whether all verdicts are the same.
    pub fn agrees(&self) -> bool {
        self.disagreement_count == 0
    }

    /// For a terminal.
    pub fn text(&self) -> String {
        let mut text = format!("reference: {}, seed {}\n", self.reference, self.seed);
        for (what, count, verdicts) in [
            ("transactions", self.transactions, &self.transaction_verdicts),
            ("blocks", self.blocks, &self.block_verdicts),
        ] {
            let _ = writeln!(text, "{count} {what}");
            let mut sorted: Vec<_> = verdicts.iter().collect();
            sorted.sort_by_key(|(_, count)| std::cmp::Reverse(**count));
            for (verdict, count) in sorted {
                let _ = writeln!(text, "{count:>9}  {verdict}");
            }
        }
        let _ = writeln!(text, "{} disagreements", self.disagreement_count);
        for Disagreement { of, ours, theirs, what } in &self.disagreements {
            let _ = writeln!(text, "{of}: ours {ours}, theirs {theirs}: {what}");
        }
        text
    }
}
