//! Published vectors whose verdict depends on the rules.

use std::collections::BTreeMap;
use std::path::PathBuf;

use anyhow::Result;
use assay_bench::Progress;
use assay_bench::plan::Wrap;
use assay_bench::suite::{Study, StudyTable};
use assay_consensus::script::asm;
use assay_consensus::script::opcode::op;
use assay_consensus::script::{Flags, RuleSet, ScriptError};
use assay_hash::hash160;

use super::StackSuite;
use super::vectors::{Suite, suites};
use crate::rules::name;
use crate::spend::Spend;

/// Count of changes by file, comment, verdict before, verdict after, and reason.
type Flips = BTreeMap<[String; 5], usize>;

impl StackSuite {
    /// Every vector under today's limit and under each other limit.
    pub(super) fn flips(&self, progress: &dyn Progress) -> Result<Study> {
        let suites = suites(self.vectors_folder().as_deref());
        let mut study = Study {
            id: "vectors-that-flip".to_owned(),
            title: "Which consensus tests change".to_owned(),
            ..Study::default()
        };
        let today = RuleSet::TODAY;
        let others: Vec<RuleSet> =
            self.rules()?.into_iter().filter(|rules| *rules != today).collect();
        progress.begin("published vectors under other rules", others.len() as u64);
        for rules in others {
            progress.step();
            let flips = flips(&suites, &today, &rules);
            let caption = format!("Vectors that change from {} to {}", name(&today), name(&rules));
            let head = ["file", "case", "before", "after", "because", "cases"];
            let rows = flips
                .into_iter()
                .map(|(words, count)| words.into_iter().chain([count.to_string()]).collect());
            study.tables.push(StudyTable::of(&caption, &head, 5, rows));
        }
        let read: Vec<String> = suites
            .iter()
            .map(|suite| format!("{} ({} cases)", suite.name, suite.vectors.len()))
            .collect();
        study.prose.push(if read.is_empty() {
            "skipped: the folder of `script_tests.json`, `tx_valid.json` and `tx_invalid.json` is not known; name it with `vectors` in the plan \
             or `ASSAY_TEST_DATA`."
                .to_owned()
        } else {
            format!(
                "Run under both rule sets, with the flags that each case names: {}. A case is listed when its verdict or its error is another; a \
                 case that pushes too much and would fail in any case changes its error only.",
                read.join(", ")
            )
        });
        let unreadable: usize = suites.iter().map(|suite| suite.unreadable).sum();
        if unreadable > 0 {
            study.prose.push(format!("{unreadable} cases could not be read."));
        }
        study.tables.push(counterparts(&suites, &self.rules()?));
        Ok(study)
    }

    pub(super) fn vectors_folder(&self) -> Option<PathBuf> {
        let given = self.settings.vectors.clone();
        given.or_else(|| Some(PathBuf::from(std::env::var_os("ASSAY_TEST_DATA")?).join("vectors")))
    }
}

pub(super) fn verdict(outcome: Result<(), ScriptError>) -> String {
    outcome.map_or_else(ScriptError::name, |()| "OK").to_owned()
}

fn flips(suites: &[Suite], before: &RuleSet, after: &RuleSet) -> Flips {
    let mut flips = Flips::new();
    for suite in suites {
        for vector in &suite.vectors {
            let (old, new) = (vector.verdict(before), vector.verdict(after));
            if old == new {
                continue;
            }
            let reason = vector.largest(before.element_bytes_max());
            let words =
                [suite.name.to_owned(), vector.comment.clone(), verdict(old), verdict(new), reason];
            *flips.entry(words).or_default() += 1;
        }
    }
    flips
}

/// The four regression tests that failed in the report, and their counterparts here.
fn counterparts(suites: &[Suite], all: &[RuleSet]) -> StudyTable {
    let mut head = vec!["regression test of the report".to_owned(), "here".to_owned()];
    head.extend(all.iter().map(name));
    let of_taproot = |rules: &RuleSet| {
        let vectors = suites.iter().filter(|suite| suite.name.starts_with("feature_taproot"));
        let failing = |wanted: ScriptError| {
            let all = vectors.clone().flat_map(|suite| &suite.vectors);
            all.filter(|vector| vector.verdict(rules) == Err(wanted)).count()
        };
        format!("{} x PUSH_SIZE", failing(ScriptError::PushSize))
    };
    let spend = |spend: Spend| move |rules: &RuleSet| verdict(spend.verify(rules).map(|_| ()));
    let too_long = Spend::new(Wrap::P2wsh, &[op::DROP, op::PUSH1], vec![vec![0; 521]]);
    let (witness, redeem) = (spend(too_long), spend(redeem_script_of_684_bytes()));
    let row = |test: &str, here: &str, verdict: &dyn Fn(&RuleSet) -> String| {
        let mut row = vec![test.to_owned(), here.to_owned()];
        row.extend(all.iter().map(verdict));
        row
    };
    let not_a_script = |_: &RuleSet| "-".to_owned();
    let rows = vec![
        row(
            "feature_taproot.py, pushes and elements of 521 bytes",
            "its own cases, above (`script_assets_test`)",
            &of_taproot,
        ),
        row(
            "p2p_segwit.py, witness element of 521 bytes",
            "P2WSH `OP_DROP OP_1` with such an element",
            &witness,
        ),
        row(
            "rpc_createmultisig.py, redeem script of 684 bytes",
            "P2SH of 0 of 20 keys, as long; the RPC rejects it, scripts to spend it",
            &redeem,
        ),
        row(
            "p2p_filter.py, `filteradd` of 521 bytes",
            "a rule about messages of BIP-0037, not about scripts: no vector covers it",
            &not_a_script,
        ),
    ];
    let caption = "Counterparts of the four regression tests that the report saw fail".to_owned();
    StudyTable { caption, head, word_columns: 2 + all.len(), rows }
}

/// A 0-of-20 multisig, so that only the size can fail.
fn redeem_script_of_684_bytes() -> Spend {
    let mut redeem_script = vec![0];
    for _ in 0..20 {
        asm::push(&mut redeem_script, &[2; 33]);
    }
    redeem_script.extend([1, 20, op::CHECKMULTISIG]);
    let script_pubkey = [&[op::HASH160, 20], &hash160(&redeem_script)[..], &[op::EQUAL]].concat();
    let mut script_sig = vec![0];
    asm::push(&mut script_sig, &redeem_script);
    Spend::raw(&script_sig, script_pubkey, &[], 1, Flags::P2SH | Flags::WITNESS)
}

#[cfg(test)]
mod tests {
    use super::*;
    use assay_bench::plan::StackSettings;

    #[test]
    fn counterparts_flip() {
        let all = ["today", "report-8000"].map(|name| RuleSet::by_name(name).expect("a name"));
        let table = counterparts(&[], &all);
        assert_eq!(table.rows[1][2..], ["PUSH_SIZE", "OK"]);
        assert_eq!(table.rows[2][2..], ["PUSH_SIZE", "OK"]);
    }

    /// The list of Bitcoin Core's vectors that change from 520 to 8,000 bytes is complete.
    #[test]
    fn flips_are_those_known() {
        let data = std::env::var_os("ASSAY_TEST_DATA").map(PathBuf::from);
        let vectors = data.map(|data| data.join("vectors"));
        let suite = StackSuite::new(StackSettings { vectors, ..StackSettings::default() });
        let read = suites(suite.vectors_folder().as_deref());
        for known in &read {
            assert_eq!(known.unreadable, 0, "{}", known.name);
        }
        let flips =
            flips(&read, &RuleSet::TODAY, &RuleSet::by_name("report-8000").expect("a name"));
        let of = |file: &str| -> Vec<(&str, &str, &str, usize)> {
            flips
                .iter()
                .filter(|(words, _)| words[0] == file)
                .map(|(words, &count)| (&words[1][..], &words[2][..], &words[3][..], count))
                .collect()
        };
        let is_there = |file: &str| read.iter().any(|suite| suite.name.starts_with(file));
        if is_there("script_tests.json") {
            let expected = [
                (">520 byte push", "PUSH_SIZE", "OK", 1),
                (">520 byte push in non-executed IF branch", "PUSH_SIZE", "OK", 1),
            ];
            assert_eq!(of("script_tests.json"), expected);
            assert_eq!(of("tx_valid.json"), []);
            let tx = "Witness with a push of 521 bytes";
            assert_eq!(of("tx_invalid.json"), [(tx, "PUSH_SIZE", "OK", 1)]);
        } else {
            println!("skipped: script_tests.json is not among the test data");
        }
        if is_there("feature_taproot") {
            let expected = [
                ("opsuccess/bigpush, failure", "PUSH_SIZE", "CLEANSTACK", 87),
                ("tapscript/inputmaxlimit, failure", "PUSH_SIZE", "OK", 1),
                ("tapscript/pushmaxlimit, failure", "PUSH_SIZE", "OK", 1),
                ("unkver/bigpush, failure", "PUSH_SIZE", "CLEANSTACK", 126),
            ];
            assert_eq!(of("feature_taproot.py (script_assets_test)"), expected);
        } else {
            println!("skipped: the module btcd/txscript is not in the module cache");
        }
    }
}
