//! Counts of verdicts, and disagreements.

use std::collections::BTreeMap;

use assay_bench::experiment;
use assay_report::record::{Outcome, Record, count};

/// Maximum number of stored disagreements; the rest is only counted.
const KEPT: usize = 100;

// Compared things.
pub(super) const TRANSACTION: &str = "transaction";
pub(super) const BLOCK: &str = "block";
pub(super) const TIP: &str = "tip";

#[derive(Debug, Default)]
pub(super) struct Tally {
    /// By kind and verdict; Assay's verdict for a disagreement.
    verdicts: BTreeMap<(&'static str, String), u64>,
    compared: BTreeMap<&'static str, u64>,
    disagreement_count: u64,
    disagreements: Vec<(&'static str, String)>,
}

impl Tally {
    /// Compares two verdicts on the same `bytes` in hex, or on the height of a tip.
    pub(super) fn compare(
        &mut self,
        kind: &'static str,
        ours: &str,
        theirs: &str,
        bytes: impl Fn() -> String,
    ) {
        *self.compared.entry(kind).or_default() += 1;
        if kind != TIP {
            *self.verdicts.entry((kind, ours.to_owned())).or_default() += 1;
        }
        if ours == theirs {
            return;
        }
        self.disagreement_count += 1;
        let is_first = self.disagreements.iter().all(|(of, _)| *of != kind);
        if is_first || self.disagreements.len() < KEPT {
            let text = format!("{kind}: ours {ours}, theirs {theirs}: {}", bytes());
            self.disagreements.push((kind, text));
        }
    }

    /// The record without the reference's name and the seed.
    pub(super) fn record(&self) -> Record {
        let mut record = experiment::record("agreement");
        let compared = |kind: &str| self.compared.get(kind).copied().unwrap_or_default();
        record.headline = format!(
            "{} transactions and {} blocks compared, {} disagreements.",
            compared(TRANSACTION),
            compared(BLOCK),
            self.disagreement_count
        );
        for ((kind, verdict), verdicts) in &self.verdicts {
            record.add((&format!("{kind}s"), verdict, None), &[count("verdicts", *verdicts)]);
        }
        for kind in [TRANSACTION, BLOCK, TIP] {
            let first = self.disagreements.iter().find(|(of, _)| *of == kind);
            let failure = first.map(|(_, text)| text.clone());
            record.check(&format!("{kind}s"), Outcome::of(compared(kind), failure));
        }
        record.notes.extend(self.disagreements.iter().map(|(_, text)| text.clone()));
        record
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_compared_and_equal_verdicts_pass() {
        let mut tally = Tally::default();
        assert!(!tally.record().has_passed(), "nothing was compared");
        for kind in [TRANSACTION, BLOCK, TIP] {
            tally.compare(kind, "accepted", "accepted", String::new);
        }
        assert!(tally.record().has_passed());
        tally.compare(BLOCK, "accepted", "bad-txns", || "00".to_owned());
        let record = tally.record();
        let text = "block: ours accepted, theirs bad-txns: 00";
        assert_eq!(record.outcome(), Outcome::Failed(text.to_owned()));
        assert!(record.notes.iter().any(|note| note == text), "{:?}", record.notes);
    }
}
