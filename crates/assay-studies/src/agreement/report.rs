//! Counts of verdicts, and disagreements.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde::Serialize;

use assay_bench::options::AgreementOptions;

/// Maximum number of stored disagreements; the rest is only counted.
const KEPT: usize = 100;

#[derive(Clone, Debug, Serialize)]
pub(crate) struct Report {
    schema: u32,
    kind: &'static str,
    /// Version string of the reference node.
    pub(crate) reference: String,
    /// Command line of the reference node.
    pub(crate) command: Vec<String>,
    pub(crate) seed: u64,
    pub(crate) transactions: u64,
    pub(crate) blocks: u64,
    /// Counts per verdict on transactions; Assay's verdict for a disagreement.
    pub(crate) transaction_verdicts: BTreeMap<String, u64>,
    pub(crate) block_verdicts: BTreeMap<String, u64>,
    pub(crate) disagreement_count: u64,
    pub(crate) disagreements: Vec<Disagreement>,
}

/// Two verdicts on the same bytes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Disagreement {
    /// `transaction`, `block` or `tip`.
    pub(crate) of: &'static str,
    pub(crate) ours: String,
    pub(crate) theirs: String,
    /// Bytes in hex; the height of a tip.
    pub(crate) what: String,
}

impl Report {
    pub(super) fn new(options: &AgreementOptions, reference: &str, command: &[String]) -> Self {
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

    /// True if all verdicts are equal.
    pub(crate) fn agrees(&self) -> bool {
        self.disagreement_count == 0
    }

    pub(crate) fn text(&self) -> String {
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
