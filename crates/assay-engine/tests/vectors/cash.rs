//! Vectors of Bitcoin Cash Node: its `script_tests.json`, `tx_valid.json` and `tx_invalid.json`; and libauth's tests for the rules
//! of May 2022, as distributed with BCHN.
//!
//! If BCHN has no switch because an upgrade is always active, the cases run with it.

use assay_consensus::block::BlockRules;
use assay_consensus::chain::HeaderFacts;
use assay_consensus::params::ChainParams;
use assay_consensus::script::asm::assemble_cash;
use assay_consensus::script::{Flags, RuleSet, TxContext};
use assay_consensus::tx::{SpentCoin, check_transaction};
use assay_testkit::hex::try_decode;
use assay_wire::{BlockHash, Encoding, Transaction, TxOut};
use serde_json::Value;

use crate::data::{self, array, text};
use crate::outcome::{Outcome, Report};
use crate::scripts::ScriptCase;
use crate::transactions::{prevouts, spent};
use crate::verify::{Verifier, spent_outputs, verify_all};

pub(crate) fn run(report: &mut Report) {
    let json = |name: &str| data::shared_json(&format!("vectors/bchn/{name}"));
    report.file("BCHN script_tests.json", || json("script_tests.json"), script_tests);
    report.file(
        "BCHN tx_valid.json",
        || json("tx_valid.json"),
        |json, outcome| transactions(json, true, outcome),
    );
    report.file(
        "BCHN tx_invalid.json",
        || json("tx_invalid.json"),
        |json, outcome| transactions(json, false, outcome),
    );
    for (kind, verdicts) in
        [("standard", [true, true]), ("nonstandard", [false, true]), ("invalid", [false, false])]
    {
        let file = format!("vmb_2022_{kind}.json");
        report.file(
            &format!("BCHN {file}"),
            || json(&file),
            |json, outcome| machines(json, verdicts, outcome),
        );
    }
}

/// Rules of BCHN that apply with any flags.
fn always_active() -> Flags {
    Flags::BCH
        | Flags::MONOLITH_OPCODES
        | Flags::CHECKDATASIG
        | Flags::SCHNORR
        | Flags::REVERSEBYTES
}

/// Reads BCHN's names of flags.
fn parse_flags(names: &str) -> Flags {
    let flags = names.split(',').filter(|name| !matches!(*name, "" | "NONE")).map(|name| {
        let name = if name == "64_BIT_INTEGERS" { "INTEGERS_64_BIT" } else { name };
        Flags::from_name(name).unwrap_or_else(|| panic!("unknown flag {name}"))
    });
    flags.fold(always_active(), |all, flag| all | flag)
}

/// BCHN's opcode names; those of pushes and of reserved opcodes denote the opcode alone.
fn assemble(words: &str) -> Option<Vec<u8>> {
    let known = words.split_ascii_whitespace().map(|word| match word.trim_start_matches("OP_") {
        "PUSHDATA1" => "0x4c",
        "PUSHDATA2" => "0x4d",
        "PUSHDATA4" => "0x4e",
        "RESERVED3" => "0xd4",
        "RESERVED4" => "0xd5",
        _ => word,
    });
    assemble_cash(&known.collect::<Vec<_>>().join(" ")).ok()
}

fn script_tests(json: &Value, outcome: &mut Outcome) {
    for case in array(json).iter().map(array).filter(|case| case.len() > 1) {
        let name = Value::from(case).to_string();
        outcome.case(&name, |log| {
            let amount = case[0].as_array().and_then(|amount| amount.first());
            let value =
                amount.and_then(Value::as_f64).map_or(0, |coins| (coins * 1e8).round() as i64);
            let fields = if amount.is_some() { &case[1..] } else { case };
            let scripts = [&fields[0], &fields[1]].map(|words| assemble(text(words)));
            let [Some(script_sig), Some(script_pubkey)] = scripts else {
                return log.wrong("cannot be read");
            };
            let flags = parse_flags(text(&fields[2]));
            let expected = text(&fields[3]).to_owned();
            let case =
                ScriptCase { witness: vec![], value, script_sig, script_pubkey, flags, expected };
            let given = case.verdict(&RuleSet::TODAY, flags);
            log.check(given == case.expected, || format!("gave {given}"));
        });
    }
}

fn transactions(json: &Value, valid: bool, outcome: &mut Outcome) {
    for case in array(json).iter().map(array).filter(|case| case[0].is_array()) {
        let name = Value::from(case).to_string();
        outcome.case(&name, |log| {
            let Some(prevouts) = prevouts(&case[0], assemble) else {
                return log.wrong("cannot be read");
            };
            let tx = try_decode(text(&case[1]))
                .and_then(|raw| Transaction::parse(raw, Encoding::Legacy).ok());
            let Some(tx) = tx else {
                // A transaction with a witness is invalid there.
                return log.check(!valid, || "cannot be read".to_owned());
            };
            let alone = check_transaction(tx.view());
            let verdict = match (&alone, &spent(&tx, &prevouts)) {
                (Err(error), _) => Err(error.reject_reason().to_owned()),
                (Ok(()), None) => Err("lacks a prevout".to_owned()),
                (Ok(()), Some(spent)) => verify_all(&tx, spent, parse_flags(text(&case[2])))
                    .map_err(|error| error.name().to_owned()),
            };
            log.check(verdict.is_ok() == valid, || format!("gave {verdict:?}"));
        });
    }
}

/// Transactions with their spent outputs: the verdicts of a mempool and of a block.
fn machines(json: &Value, [standard, in_block]: [bool; 2], outcome: &mut Outcome) {
    let params = ChainParams::by_name("bch-regtest").expect("a known chain");
    let tip = HeaderFacts { hash: BlockHash::ZERO, time: 1_600_000_000, bits: 0x207f_ffff };
    let rules = BlockRules::next(&params, vec![tip; 2000].as_slice());
    for case in array(json).iter().map(array) {
        outcome.case(&format!("{} {}", text(&case[0]), text(&case[1])), |log| {
            let Some((tx, outputs)) = machine(case) else { return log.wrong("cannot be read") };
            let spent = spent_outputs(&outputs);
            let block = judge(&rules, &tx, &spent, rules.flags);
            log.check(block.is_ok() == in_block, || format!("in a block gave {block:?}"));
            let mempool = judge(&rules, &tx, &spent, rules.flags | Flags::BCH_STANDARD);
            if standard {
                log.check(mempool.is_ok(), || format!("in the mempool gave {mempool:?}"));
            }
            log.check(mempool.is_err() || block.is_ok(), || "policy permits more".to_owned());
        });
    }
}

type Outputs = Vec<(i64, Vec<u8>)>;

/// The transaction of a case and its spent outputs, which are serialised as a list in a transaction.
fn machine(case: &[Value]) -> Option<(Transaction, Outputs)> {
    let tx = Transaction::parse(try_decode(text(&case[4]))?, Encoding::Legacy).ok()?;
    // Parsed as the outputs of a transaction that spends one coin.
    let mut raw = vec![1, 0, 0, 0, 1];
    raw.extend([0; 41]);
    raw.extend(try_decode(text(&case[5]))?);
    raw.extend([0; 4]);
    let holder = Transaction::parse(raw, Encoding::Legacy).ok()?;
    let outputs =
        holder.view().outputs().map(|out| (out.value, out.script_pubkey.to_vec())).collect();
    Some((tx, outputs))
}

fn judge(
    rules: &BlockRules,
    tx: &Transaction,
    spent: &[TxOut<'_>],
    flags: Flags,
) -> Result<(), String> {
    let view = tx.view();
    check_transaction(view).map_err(|error| error.reject_reason().to_owned())?;
    rules.check_tx(view).map_err(|error| error.reject_reason().to_owned())?;
    let coins = spent.iter().map(|output| SpentCoin {
        value: output.value,
        height: 1,
        coinbase: false,
        script_pubkey: output.script_pubkey,
    });
    rules
        .check_spends(view, coins, |_| 1_000_000_000)
        .map_err(|error| error.reject_reason().to_owned())?;
    let context = TxContext::new(view, spent);
    let mut verifier = Verifier::default();
    let mut sigchecks = 0;
    for input in 0..spent.len() {
        let stats = verifier.verify_input(&context, input, flags);
        sigchecks += u64::from(stats.map_err(|error| error.name().to_owned())?.sig_checks);
    }
    rules.check_tx_sigchecks(sigchecks).map_err(|error| error.reject_reason().to_owned())
}
