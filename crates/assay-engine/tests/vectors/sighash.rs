//! `sighash.json` (Core `sighash_tests.cpp`): messages of pre-segwit signatures.

use assay_consensus::script::TxContext;
use assay_wire::{Encoding, Transaction, TxOut};
use serde_json::Value;

use crate::data::{self, array, bytes, bytes32, text};
use crate::outcome::{Outcome, Report};

pub(crate) fn run(report: &mut Report) {
    report.file("sighash.json", || data::shared_json("vectors/sighash.json"), sighashes);
    let copy = || data::txscript_json("sighash.json");
    report.file("btcd txscript: sighash.json", copy, sighashes);
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
