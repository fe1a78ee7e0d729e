//! Tapscript opcodes of proposals: BIP-0347 (`OP_CAT`), BIP-0348 (`OP_CHECKSIGFROMSTACK`), BIP-0446 (`OP_TEMPLATEHASH`). BIP-0349
//! has no vectors; the unit tests of `assay-consensus` cover it.

use assay_consensus::script::{Flags, ScriptError, TxContext, asm};
use assay_wire::{OutPoint, Transaction, TxOut};
use serde_json::Value;

use crate::data::{self, array, bytes, text};
use crate::outcome::{Outcome, Report};
use crate::scripts::{parse_script_case, single_leaf};
use crate::taproot::{Proposal, consensus_combinations, read_output, reference_case};
use crate::verify::{Verifier, rules, transaction, verify_all_under};
use crate::wycheproof::{Bip340Row, bip340_table};

pub(crate) fn run(report: &mut Report) {
    let inquisition = || data::shared_json("vectors/bitcoin-inquisition/script_tests.json");
    report.file("BIP347 script_tests.json (Inquisition)", inquisition, cat);
    let csfs = |csv: &String, outcome: &mut Outcome| check_sig_from_stack(csv, outcome);
    report.file("BIP348 over BIP340 test-vectors.csv", bip340_table, csfs);
    let basics = || data::bips_json("bip-0446/basics.json");
    report.file("BIP446 basics.json", basics, template_hash);
    let assets = || data::bips_json("bip-0446/script_assets_test.json");
    report.file("BIP446 script_assets_test.json", assets, template_hash_assets);
}

/// The cases of Bitcoin Inquisition's file with `OP_CAT`'s flags, which Core's file lacks. Its flag `DISCOURAGE_OP_CAT`, a rule
/// of its mempool until activation, corresponds to `DISCOURAGE_OP_SUCCESS` under the current rule set.
fn cat(json: &Value, outcome: &mut Outcome) {
    let (today, proposed) = (rules("today"), rules("cat"));
    let of_cat = |case: &&[Value]| case.iter().any(|field| field.to_string().contains("CAT"));
    let with_flags =
        |case: &&[Value]| case.iter().any(|field| field.to_string().contains("TAPROOT"));
    for case in array(json).iter().map(array).filter(of_cat).filter(with_flags) {
        outcome.case(&Value::from(case).to_string(), |log| {
            let names: Vec<&str> = case.iter().filter_map(Value::as_str).collect();
            let asks = |flag: &str| names.iter().any(|text| text.split(',').any(|it| it == flag));
            let (active, discouraged) = (asks("OP_CAT"), asks("DISCOURAGE_OP_CAT"));
            let replace = |flags: &str| {
                let kept = flags.split(',').filter(|name| !name.ends_with("OP_CAT"));
                kept.chain(discouraged.then_some("DISCOURAGE_OP_SUCCESS"))
                    .collect::<Vec<_>>()
                    .join(",")
            };
            let parsed = parse_script_case(case, replace).expect("a case");
            let rules = if active && !discouraged { &proposed } else { &today };
            let given = parsed.verdict(rules, parsed.flags);
            let expected = match parsed.expected.as_str() {
                "DISCOURAGE_OP_CAT" => "DISCOURAGE_OP_SUCCESS",
                other => other,
            };
            log.check(given == expected, || format!("gave {given}"));
        });
    }
}

/// Every row of BIP-0340's table, four of which have messages of other lengths than 32 bytes, as `sig msg key` of one script:
/// once with all three in the witness, once with message and key in the script.
fn check_sig_from_stack(csv: &str, outcome: &mut Outcome) {
    let proposed = rules("csfs");
    for row in csv.lines().skip(1) {
        outcome.case(row, |log| {
            let Bip340Row { key, message, sig, valid } = Bip340Row::read(row);
            let expected = if valid { Ok(()) } else { Err(ScriptError::SchnorrSig) };
            let opcode = asm::assemble("0xcc").expect("one byte");
            let mut pushing = Vec::new();
            asm::push(&mut pushing, &message);
            asm::push(&mut pushing, &key);
            pushing.extend(&opcode);
            for (script, arguments) in
                [(opcode.clone(), vec![sig.clone(), message, key]), (pushing, vec![sig])]
            {
                let given = spend(&script, arguments, |tx, spent| {
                    verify_all_under(&proposed, tx, spent, Flags::BITCOIN_BLOCK)
                });
                log.check(given == expected, || format!("gave {given:?}"));
            }
        });
    }
}

/// The result of `verify` for a spend of a single tapscript.
fn spend<V>(
    script: &[u8],
    mut witness: Vec<Vec<u8>>,
    verify: impl FnOnce(&Transaction, &[TxOut<'_>]) -> V,
) -> V {
    let (control, output_key) = single_leaf(script);
    witness.extend([script.to_vec(), control]);
    let script_pubkey = [&[0x51, 32][..], &output_key].concat();
    let tx = transaction(OutPoint::NULL, &[], &witness, 0, &[]);
    verify(&tx, &[TxOut { value: 0, script_pubkey: &script_pubkey }])
}

/// One input each, valid or not; under current rules every one of them is valid.
fn template_hash(json: &Value, outcome: &mut Outcome) {
    for case in array(json) {
        outcome.case(text(&case["comment"]), |log| {
            let tx = data::transaction(&case["spending_tx"]);
            let outputs: Vec<Vec<u8>> = array(&case["spent_outputs"]).iter().map(bytes).collect();
            let spent: Vec<TxOut<'_>> = outputs.iter().map(|raw| read_output(raw)).collect();
            let input = case["input_index"].as_u64().expect("an index") as usize;
            let context = TxContext::new(tx.view(), &spent);
            let valid = case["valid"].as_bool().expect("a verdict");
            for (rules, valid) in [(rules("templatehash"), valid), (rules("today"), true)] {
                let verdict =
                    Verifier::with_rules(rules).verify_input(&context, input, Flags::BITCOIN_BLOCK);
                log.check(verdict.is_ok() == valid, || format!("gave {verdict:?}"));
            }
        });
    }
}

fn template_hash_assets(json: &Value, outcome: &mut Outcome) {
    let combinations = consensus_combinations();
    let proposal = Proposal { flag: "TEMPLATEHASH", rules: rules("templatehash") };
    outcome.cases_in_parallel(
        array(json),
        |case| case["comment"].to_string(),
        |case, log| reference_case(case, &combinations, Some(&proposal), log),
    );
}
