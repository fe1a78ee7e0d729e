//! `tx_valid.json` and `tx_invalid.json` with the semantics of Core's `transaction_tests.cpp`.
//!
//! Besides the verdict under the given flags, every case must satisfy two laws: fewer rules never make a valid transaction
//! invalid, more rules never make an invalid one valid. The given flags must also be the tightest: with one rule less the verdict
//! changes.

use std::collections::HashMap;

use assay_consensus::script::asm::assemble;
use assay_consensus::script::{Flags, TxContext};
use assay_consensus::tx::check_transaction;
use assay_testkit::hex::try_decode;
use assay_wire::{Encoding, OutPoint, Transaction, TxOut};
use serde_json::Value;

use crate::data::{self, array, bytes, bytes32, text};
use crate::flags::{self, FlagDice, all_core_flags, core_flags, fill, trim, without_each};
use crate::outcome::{Outcome, Report};
use crate::verify::verify_all;

pub(crate) fn run(report: &mut Report) {
    report.file("tx_valid.json", || data::shared_json("vectors/tx_valid.json"), tx_valid);
    report.file("tx_invalid.json", || data::shared_json("vectors/tx_invalid.json"), tx_invalid);
}

pub(crate) struct TxCase {
    pub(crate) tx: Transaction,
    prevouts: HashMap<OutPoint, (i64, Vec<u8>)>,
    pub(crate) flags: String,
}

impl TxCase {
    pub(crate) fn parse(case: &[Value]) -> Option<Self> {
        let mut prevouts = HashMap::new();
        for prevout in array(&case[0]).iter().map(array) {
            let txid = text(&prevout[0]).parse().ok()?;
            let vout = prevout[1].as_i64()? as u32;
            let value = prevout.get(3).map_or(Some(0), Value::as_i64)?;
            let script = assemble(text(&prevout[2])).ok()?;
            prevouts.insert(OutPoint { txid, vout }, (value, script));
        }
        let tx = Transaction::parse(try_decode(text(&case[1]))?, Encoding::Segwit).ok()?;
        Some(Self { tx, prevouts, flags: text(&case[2]).to_owned() })
    }

    pub(crate) fn spent(&self) -> Option<Vec<TxOut<'_>>> {
        self.tx
            .view()
            .inputs()
            .map(|input| {
                let (value, script) = self.prevouts.get(&input.prevout)?;
                Some(TxOut { value: *value, script_pubkey: script })
            })
            .collect()
    }
}

fn tx_valid(json: &Value, outcome: &mut Outcome) {
    let mut dice = FlagDice(0xcafe);
    let all = all_core_flags();
    for case in array(json).iter().map(array).filter(|case| case[0].is_array()) {
        let name = Value::from(case).to_string();
        outcome.case(&name, |log| {
            let Some(case) = TxCase::parse(case) else {
                return log.wrong("cannot be read");
            };
            if let Err(error) = check_transaction(case.tx.view()) {
                log.wrong(error.reject_reason());
            }
            let Some(spent) = case.spent() else { return log.wrong("lacks a prevout") };
            // The file lists the broken rules.
            let broken = flags::parse(&case.flags);
            let rules = all.without(broken);
            log.check(rules == fill(rules), || "the flags contradict each other".into());
            let mut check = |flags: Flags, valid: bool| {
                let verdict = verify_all(&case.tx, &spent, flags);
                log.check(verdict.is_ok() == valid, || format!("{verdict:?} with {flags:?}"));
            };
            check(all.without(broken), true);
            for flag in core_flags() {
                check(trim(all.without(broken | flag)), true);
                check(trim(all.without(broken | dice.roll())), true);
            }
            for fewer in without_each(broken) {
                check(all.without(fewer), false);
            }
        });
    }
}

fn tx_invalid(json: &Value, outcome: &mut Outcome) {
    let mut dice = FlagDice(0xbeef);
    for case in array(json).iter().map(array).filter(|case| case[0].is_array()) {
        let name = Value::from(case).to_string();
        outcome.case(&name, |log| {
            let Some(case) = TxCase::parse(case) else {
                return log.wrong("cannot be read");
            };
            let refused = check_transaction(case.tx.view()).is_err();
            if refused || case.flags == "BADTX" {
                let right = refused == (case.flags == "BADTX");
                return log.check(right, || "wrong about the transaction itself".into());
            }
            let Some(spent) = case.spent() else { return log.wrong("lacks a prevout") };
            let flags = flags::parse(&case.flags);
            log.check(flags == fill(flags), || "the flags contradict each other".into());
            let mut check = |flags: Flags, valid: bool| {
                let verdict = verify_all(&case.tx, &spent, flags);
                log.check(verdict.is_ok() == valid, || format!("{verdict:?} with {flags:?}"));
            };
            check(flags, false);
            for flag in core_flags() {
                check(fill(flags | flag), false);
                check(fill(flags | dice.roll()), false);
            }
            for fewer in without_each(flags) {
                check(fewer, true);
            }
        });
    }
}

/// `sighash.json` (Core `sighash_tests.cpp`): messages of pre-segwit signatures.
pub(crate) fn run_sighash(report: &mut Report) {
    report.file("sighash.json", || data::shared_json("vectors/sighash.json"), sighashes);
}

fn sighashes(json: &Value, outcome: &mut Outcome) {
    for case in array(json).iter().map(array).filter(|case| case.len() > 1) {
        outcome.case(text(&case[0]), |log| {
            let tx = Transaction::parse(bytes(&case[0]), Encoding::Segwit).expect("a transaction");
            let script = bytes(&case[1]);
            let input = case[2].as_u64().expect("an index") as usize;
            let hash_type = case[3].as_i64().expect("a hash type") as i32 as u32;
            let spent = vec![TxOut { value: 0, script_pubkey: &[] }; tx.view().input_count()];
            let ctx = TxContext::new(tx.view(), &spent);
            // Other inputs first: the shared prefix must not change any result.
            for order in [vec![input], (0..=input).collect(), (input..spent.len()).rev().collect()]
            {
                let mut hash = [0; 32];
                for other in order {
                    hash = ctx.sighash_legacy(other, &script, hash_type);
                }
                hash.reverse();
                log.check(hash == bytes32(&case[4]), || "wrong hash".into());
            }
        });
    }
}
