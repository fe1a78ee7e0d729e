//! `script_tests.json` with the semantics of Core's `script_tests.cpp`: the exact error, and then
//! random changes of the flags that must not change the verdict.

use assay_consensus::script::asm::assemble;
use assay_consensus::script::{Flags, RuleSet, ScriptError, tap_leaf_hash, tap_tweak_hash};
use assay_testkit::hex::try_decode;
use assay_testkit::random::Random;
use assay_wire::OutPoint;
use serde_json::Value;

use crate::data::{self, array, text};
use crate::flags::{self, fill, roll, trim};
use crate::outcome::{Outcome, Report};
use crate::verify::{transaction, verify_all_under};

pub(crate) fn run(report: &mut Report) {
    let file = "vectors/script_tests.json";
    report.file("script_tests.json", || data::shared_json(file), script_tests);
}

pub(crate) struct ScriptCase {
    pub(crate) witness: Vec<Vec<u8>>,
    pub(crate) value: i64,
    pub(crate) script_sig: Vec<u8>,
    pub(crate) script_pubkey: Vec<u8>,
    pub(crate) flags: Flags,
    pub(crate) expected: String,
}

impl ScriptCase {
    /// The verdict, by its name in Core, under these rules and flags.
    pub(crate) fn verdict(&self, rules: &RuleSet, flags: Flags) -> &'static str {
        let credit = transaction(OutPoint::NULL, &[0, 0], &[], self.value, &self.script_pubkey);
        let prevout = OutPoint { txid: credit.view().txid(), vout: 0 };
        let spend = transaction(prevout, &self.script_sig, &self.witness, self.value, &[]);
        let spent = [credit.view().output(0)];
        let verdict = verify_all_under(rules, &spend, &spent, flags);
        verdict.map_or_else(ScriptError::name, |()| "OK")
    }
}

/// The internal key of generated Taproot outputs is that of secret key 1: the generator.
const INTERNAL_KEY: [u8; 32] = secp256k1::constants::GENERATOR_X;

/// Control block and output key for a single leaf.
pub(crate) fn single_leaf(script: &[u8]) -> (Vec<u8>, [u8; 32]) {
    let tweak = tap_tweak_hash(&INTERNAL_KEY, Some(&tap_leaf_hash(0xc0, script)));
    let (output, parity) = secp256k1::XOnlyPublicKey::from_byte_array(INTERNAL_KEY)
        .and_then(|key| key.add_tweak(&secp256k1::Scalar::from_be_bytes(tweak).expect("a scalar")))
        .expect("an output key");
    let mut control = vec![0xc0 | parity.to_u8()];
    control.extend(INTERNAL_KEY);
    (control, output.to_byte_array())
}

/// Parses a case; flags of that name are replaced first.
pub(crate) fn parse_script_case(
    case: &[Value],
    replace: impl Fn(&str) -> String,
) -> Option<ScriptCase> {
    let (mut witness, mut value, mut output_key) = (Vec::new(), 0, None);
    let mut fields = case;
    if let Some((amount, items)) = case[0].as_array().and_then(|stack| stack.split_last()) {
        for item in items.iter().map(text) {
            if let Some(script) = item.strip_prefix("#SCRIPT#") {
                witness.push(assemble(script).ok()?);
            } else if item == "#CONTROLBLOCK#" {
                let (control, key) = single_leaf(witness.last()?);
                witness.push(control);
                output_key = Some(key);
            } else {
                witness.push(try_decode(item)?);
            }
        }
        value = (amount.as_f64()? * 1e8).round() as i64;
        fields = &case[1..];
    }
    let script_pubkey = if text(&fields[1]) == "0x51 0x20 #TAPROOTOUTPUT#" {
        [&[0x51, 0x20][..], &output_key?].concat()
    } else {
        assemble(text(&fields[1])).ok()?
    };
    let flags = flags::parse(&replace(text(&fields[2])));
    Some(ScriptCase {
        witness,
        value,
        script_sig: assemble(text(&fields[0])).ok()?,
        script_pubkey,
        flags: if flags.contains(Flags::CLEANSTACK) { fill(flags) } else { flags },
        expected: text(&fields[3]).to_owned(),
    })
}

fn script_tests(json: &Value, outcome: &mut Outcome) {
    let mut random = Random(0x5eed);
    for case in array(json).iter().map(array).filter(|case| case.len() > 1) {
        let name = Value::from(case).to_string();
        outcome.case(&name, |log| {
            let Some(case) = parse_script_case(case, str::to_owned) else {
                return log.wrong("cannot be read");
            };
            let given = case.verdict(&RuleSet::TODAY, case.flags);
            log.check(given == case.expected, || format!("gave {given}"));
            // Removing rules keeps a valid script valid, adding rules an invalid one invalid.
            let expect_ok = case.expected == "OK";
            for _ in 0..256 {
                let extra = roll(&mut random);
                let flags = if expect_ok { case.flags.without(extra) } else { case.flags | extra };
                if flags != trim(flags) {
                    continue;
                }
                let is_ok = case.verdict(&RuleSet::TODAY, flags) == "OK";
                log.check(is_ok == expect_ok, || format!("turns with {flags:?}"));
            }
        });
    }
}
