//! BIP-0119: the hash of `OP_CHECKTEMPLATEVERIFY`, and whole transactions under the rule set `ctv`.
//!
//! The two files of transactions are in the format of Core's `tx_valid.json` and `tx_invalid.json`. The proposal's rule has the
//! flag name `DEFAULT_CHECK_TEMPLATE_VERIFY_HASH` there. Cases have an additional field: the flags that are part of every
//! combination, or the flags that depend on the proposal's.

use assay_consensus::script::{Flags, RuleSet, TxContext};
use assay_consensus::tx::check_transaction;
use assay_testkit::random::Random;
use assay_wire::TxOut;
use serde_json::Value;

use crate::data::{self, array, bytes32, text};
use crate::flags::{self, all_core_flags, around_broken, around_needed};
use crate::outcome::{Outcome, Report, Run};
use crate::transactions::TxCase;
use crate::verify::{rules, verify_all_under};

const FLAG: &str = "DEFAULT_CHECK_TEMPLATE_VERIFY_HASH";

pub(crate) fn run(report: &mut Report) {
    let files: [(&str, Run); 3] =
        [("ctvhash.json", hashes), ("tx_valid.json", tx_valid), ("tx_invalid.json", tx_invalid)];
    for (file, run) in files {
        let json = || data::bips_json(&format!("bip-0119/vectors/{file}"));
        report.file(&format!("BIP119 {file}"), json, run);
    }
}

fn hashes(json: &Value, outcome: &mut Outcome) {
    for case in array(json).iter().filter(|case| case.is_object()) {
        outcome.case(&case["desc"].to_string(), |log| {
            let tx = data::transaction(&case["hex_tx"]);
            let spent = vec![TxOut { value: 0, script_pubkey: &[] }; tx.view().input_count()];
            let context = TxContext::new(tx.view(), &spent);
            let indices = array(&case["spend_index"]);
            log.check(indices.len() == array(&case["result"]).len(), || "results".into());
            for (index, expected) in indices.iter().zip(array(&case["result"])) {
                let input = index.as_u64().expect("an index") as usize;
                let right = context.check_template_hash(input) == bytes32(expected);
                log.check(right, || format!("input {input}"));
            }
        });
    }
}

/// A case as Core reads it: the opcode has a name that the current assembler lacks, and a short txid is padded with zeros at the
/// front.
fn read_case(fields: &[Value]) -> TxCase {
    let mut fields = fields.to_vec();
    for prevout in fields[0].as_array_mut().expect("prevouts") {
        prevout[0] = format!("{:0>64}", text(&prevout[0])).into();
        prevout[2] = text(&prevout[2]).replace("OP_CHECKTEMPLATEVERIFY", "OP_NOP4").into();
    }
    TxCase::parse(&fields).expect("a case")
}

/// Flags by name, and true if the proposal's is among them.
fn split(names: &str) -> (Flags, bool) {
    let (proposed, others): (Vec<&str>, Vec<&str>) =
        names.split(',').partition(|name| *name == FLAG);
    (flags::parse(&others.join(",")), !proposed.is_empty())
}

struct Rules {
    today: RuleSet,
    proposed: RuleSet,
}

impl Rules {
    fn new() -> Self {
        Self { today: RuleSet::TODAY, proposed: rules("ctv") }
    }

    fn are_kept(&self, case: &TxCase, spent: &[TxOut<'_>], flags: Flags, proposed: bool) -> bool {
        let rules = if proposed { &self.proposed } else { &self.today };
        verify_all_under(rules, &case.tx, spent, flags).is_ok()
    }
}

/// `[prevouts, transaction, flags left out, flags always there, true if the flags left out are not minimal]`.
fn tx_valid(json: &Value, outcome: &mut Outcome) {
    let (rules, mut random) = (Rules::new(), Random(0xc719));
    for fields in array(json).iter().map(array).filter(|case| case[0].is_array()) {
        outcome.case(&Value::from(fields).to_string(), |log| {
            let case = read_case(fields);
            let spent = case.spent().expect("every prevout");
            if let Err(error) = check_transaction(case.tx.view()) {
                log.wrong(error.reject_reason());
            }
            let (broken, breaks_proposed) = split(&case.flags);
            let (always, needs_proposed) = split(fields.get(3).map_or("NONE", text));
            let is_loose = fields.get(4).is_some_and(|it| it == &Value::Bool(true));
            let mut check = |flags: Flags, proposed: bool, valid: bool| {
                let kept = rules.are_kept(&case, &spent, flags, proposed);
                log.check(kept == valid, || format!("{kept} with {flags:?}, CTV {proposed}"));
            };
            if !needs_proposed {
                check(all_core_flags().without(broken), false, true);
            }
            for (flags, valid) in around_broken(broken, always, &mut random) {
                if valid || !is_loose {
                    check(flags, !breaks_proposed, valid);
                }
            }
        });
    }
}

/// `[prevouts, transaction, flags, dependent flags]`.
fn tx_invalid(json: &Value, outcome: &mut Outcome) {
    let (rules, mut random) = (Rules::new(), Random(0xc71a));
    for fields in array(json).iter().map(array).filter(|case| case[0].is_array()) {
        outcome.case(&Value::from(fields).to_string(), |log| {
            let case = read_case(fields);
            let spent = case.spent().expect("every prevout");
            let (written, proposed) = split(&case.flags);
            let mut check = |flags: Flags, proposed: bool, valid: bool| {
                let kept = rules.are_kept(&case, &spent, flags, proposed);
                log.check(kept == valid, || format!("{kept} with {flags:?}, CTV {proposed}"));
            };
            for (flags, valid) in around_needed(written, &mut random) {
                check(flags, proposed, valid);
            }
            if proposed {
                let mut without = written;
                for rule in fields.get(3).map_or(&[][..], |rules| array(rules)) {
                    let asked = array(&rule["if_unset"]).iter().map(text).any(|name| name == FLAG);
                    for name in array(&rule["then_unset"]).iter().map(text).filter(|_| asked) {
                        without = without.without(flags::parse(name));
                    }
                }
                check(without, false, true);
            }
        });
    }
}
