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
use assay_testkit::random::Random;
use assay_wire::{Encoding, OutPoint, Transaction, TxOut};
use serde_json::Value;

use crate::data::{self, array, bytes, bytes32, text};
use crate::flags::{self, all_core_flags, around_broken, around_needed, fill};
use crate::outcome::{Case, Outcome, Report};
use crate::verify::verify_all;

pub(crate) fn run(report: &mut Report) {
    report.file("tx_valid.json", || data::shared_json("vectors/tx_valid.json"), tx_valid);
    report.file("tx_invalid.json", || data::shared_json("vectors/tx_invalid.json"), tx_invalid);
}

pub(crate) struct TxCase {
    pub(crate) tx: Transaction,
    prevouts: Prevouts,
    pub(crate) flags: String,
}

pub(crate) type Prevouts = HashMap<OutPoint, (i64, Vec<u8>)>;

/// Reads a list of `[txid, index, script, value]`; the value may be missing.
pub(crate) fn prevouts(
    list: &Value,
    assemble: impl Fn(&str) -> Option<Vec<u8>>,
) -> Option<Prevouts> {
    let prevouts = array(list).iter().map(array).map(|prevout| {
        let txid = text(&prevout[0]).parse().ok()?;
        let vout = prevout[1].as_i64()? as u32;
        let value = prevout.get(3).map_or(Some(0), Value::as_i64)?;
        Some((OutPoint { txid, vout }, (value, assemble(text(&prevout[2]))?)))
    });
    prevouts.collect()
}

pub(crate) fn spent<'a>(tx: &Transaction, prevouts: &'a Prevouts) -> Option<Vec<TxOut<'a>>> {
    let spent = tx.view().inputs().map(|input| {
        let (value, script) = prevouts.get(&input.prevout)?;
        Some(TxOut { value: *value, script_pubkey: script })
    });
    spent.collect()
}

impl TxCase {
    pub(crate) fn parse(case: &[Value]) -> Option<Self> {
        let prevouts = prevouts(&case[0], |words| assemble(words).ok())?;
        let tx = Transaction::parse(try_decode(text(&case[1]))?, Encoding::Segwit).ok()?;
        Some(Self { tx, prevouts, flags: text(&case[2]).to_owned() })
    }

    pub(crate) fn spent(&self) -> Option<Vec<TxOut<'_>>> {
        spent(&self.tx, &self.prevouts)
    }
}

fn tx_valid(json: &Value, outcome: &mut Outcome) {
    let mut random = Random(0xcafe);
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
            let rules = all_core_flags().without(broken);
            log.check(rules == fill(rules), || "the flags contradict each other".into());
            let combinations = around_broken(broken, Flags::NONE, &mut random);
            check_each(&case.tx, &spent, combinations, log);
        });
    }
}

fn tx_invalid(json: &Value, outcome: &mut Outcome) {
    let mut random = Random(0xbeef);
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
            check_each(&case.tx, &spent, around_needed(flags, &mut random), log);
        });
    }
}

fn check_each(
    tx: &Transaction,
    spent: &[TxOut<'_>],
    combinations: Vec<(Flags, bool)>,
    log: &mut Case,
) {
    for (flags, valid) in combinations {
        let verdict = verify_all(tx, spent, flags);
        log.check(verdict.is_ok() == valid, || format!("{verdict:?} with {flags:?}"));
    }
}

/// `sighash.json` (Core `sighash_tests.cpp`): messages of pre-segwit signatures.
pub(crate) fn run_sighash(report: &mut Report) {
    report.file("sighash.json", || data::shared_json("vectors/sighash.json"), sighashes);
}

fn sighashes(json: &Value, outcome: &mut Outcome) {
    for case in array(json).iter().map(array).filter(|case| case.len() > 1) {
        outcome.case(text(&case[0]), |log| {
            let tx = data::transaction(&case[0]);
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
