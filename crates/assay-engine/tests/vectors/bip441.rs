//! BIP-0440 and BIP-0441: leaves of version 0xc2, under the rule sets `bip441` and `bip441-gsr`.
//!
//! The drafts have no vectors; these are of their authors' branch of Bitcoin Core (`src/test/data` of jmoik/bitcoin). What
//! scripts leave and why they fail is the same in all of its versions. What they cost is not: `gsr_tests.json` (1a3b3af7)
//! has the costs of the rule set `bip441-gsr`, `tapleaf_0xc2.json` (407238f6) those of a schedule that has left the text, and
//! `varops_tests.json` (7086e92c) those of one that came before it; of these two, costs are not compared.

use assay_consensus::script::{
    Evaluation, Flags, Interpreter, ScriptError, TapscriptPosition, TxContext, annex_hash, asm,
    tap_leaf_hash,
};
use assay_engine::ImmediateChecker;
use assay_testkit::hex;
use assay_wire::{Encoding, OutPoint, Transaction, TxOut};
use serde_json::Value;

use crate::data::{self, array, bytes, text};
use crate::outcome::{Case, Outcome, Report};
use crate::taproot::read_output;
use crate::verify::{Verifier, rules, transaction};

const LEAF: u8 = 0xc2;
/// Two cases of `gsr_tests.json` cost just more than this and are to fail; all others cost far less.
const GSR_BUDGET: u64 = 250_000_000;

pub(crate) fn run(report: &mut Report) {
    let file = |name: &'static str| move || data::shared_json(&format!("vectors/varops/{name}"));
    report.file("BIP441 gsr_tests.json", file("gsr_tests.json"), |json: &Value, outcome| {
        single_scripts(json, outcome, true);
    });
    report.file("BIP441 varops_tests.json", file("varops_tests.json"), |json: &Value, outcome| {
        single_scripts(json, outcome, false);
    });
    report.file("BIP441 tapleaf_0xc2.json", file("tapleaf_0xc2.json"), tapleaf);
}

/// Bytes in hexadecimal, where `ab{3}` stands for `ababab`.
fn expand(written: &str) -> Vec<u8> {
    let written = written.strip_prefix("0x").unwrap_or(written);
    let mut out = Vec::new();
    for part in written.split('}') {
        let (digits, count) =
            part.split_once('{').map_or((part, "1"), |(digits, count)| (digits, count));
        let mut plain = hex::decode(digits);
        if let Some(last) = plain.pop() {
            out.append(&mut plain);
            let count: usize = count.parse().expect("a count");
            out.resize(out.len() + count, last);
        }
    }
    out
}

/// Elements as a list of texts, or of texts and how often each occurs.
fn elements(list: &Value) -> Vec<Vec<u8>> {
    let each = |element: &Value| {
        if let Some(written) = element.as_str() {
            return vec![expand(written)];
        }
        let count = element["count"].as_u64().expect("a count") as usize;
        vec![expand(text(&element["element"])); count]
    };
    array(list).iter().flat_map(each).collect()
}

/// A script as a list of opcodes by name or in hexadecimal.
fn script(list: &Value) -> Vec<u8> {
    let each = |word: &Value| {
        let word = text(word);
        if word.starts_with("OP_") {
            let mut script = Vec::new();
            asm::word(&mut script, word).unwrap_or_else(|| panic!("{word} is no opcode"));
            return script;
        }
        expand(word)
    };
    array(list).iter().flat_map(each).collect()
}

/// What a script leaves and costs in this context, or why it fails.
struct Spend<'a> {
    rules: &'a str,
    script: &'a [u8],
    stack: &'a [Vec<u8>],
    annex: Option<&'a [u8]>,
    budget: u64,
    keeps_result: bool,
}

impl Spend<'_> {
    fn evaluate(
        &self,
        context: &TxContext<'_>,
        input: usize,
    ) -> Result<(Vec<Vec<u8>>, u64), ScriptError> {
        let elements: Vec<&[u8]> = self.stack.iter().map(Vec::as_slice).collect();
        let leaf = Evaluation {
            version: LEAF,
            script: self.script,
            elements: &elements,
            annex: self.annex,
            budget: self.budget,
            keeps_result: self.keeps_result,
        };
        let mut interpreter = Interpreter::with_rules(rules(self.rules));
        let flags = Flags::BITCOIN_BLOCK;
        let found = interpreter.evaluate(context, input, flags, &mut ImmediateChecker, &leaf);
        found.map(|found| (found.elements, found.varops))
    }
}

/// Opcodes on a stack, of which the files say what is left and, in one of them, what that costs.
fn single_scripts(json: &Value, outcome: &mut Outcome, with_costs: bool) {
    let tx = transaction(OutPoint::NULL, &[], &[], 0, &[]);
    let spent = [TxOut { value: 0, script_pubkey: &[] }];
    let context = TxContext::new(tx.view(), &spent);
    for case in array(json).iter().flat_map(|category| array(&category["tests"])) {
        outcome.case(text(&case["name"]), |log| {
            let stack = elements(&case["initial stack"]);
            let script = script(&case["opcodes"]);
            let expected = (case["success"] == true).then(|| elements(&case["final stack"]));
            for rules in ["bip441", "bip441-gsr"] {
                let spend = Spend {
                    rules,
                    script: &script,
                    stack: &stack,
                    annex: None,
                    budget: GSR_BUDGET,
                    keeps_result: true,
                };
                let given = spend.evaluate(&context, 0);
                let left = given.as_ref().ok().map(|(left, _)| left);
                log.check(left == expected.as_ref(), || format!("{rules} gave {}", short(&given)));
                if let Ok((_, varops)) = given
                    && with_costs
                    && rules == "bip441-gsr"
                {
                    log.check(case["varops cost"] == varops, || format!("cost {varops}"));
                }
            }
        });
    }
}

fn tapleaf(json: &Value, outcome: &mut Outcome) {
    let vectors = |part: &str| -> Vec<Value> {
        let categories = array(&json[part]);
        categories.iter().flat_map(|category| array(&category["vectors"]).to_vec()).collect()
    };
    let name = |case: &Value| text(&case["comment"]).to_owned();
    outcome.cases_in_parallel(&vectors("scripts"), name, script_vector);
    for case in vectors("transactions") {
        outcome.case(&name(&case), |log| spend_vector(&case, log));
    }
    for case in vectors("signing") {
        outcome.case(&name(&case), |log| signing_vector(&case, log));
    }
}

/// A transaction, what it spends, and the input in question.
struct Context {
    tx: Transaction,
    spent: Vec<Vec<u8>>,
    input: usize,
}

impl Context {
    fn of(json: &Value) -> Self {
        let raw = json.get("tx").map(bytes);
        let tx = match raw {
            Some(raw) => Transaction::parse(raw, Encoding::Segwit).expect("a transaction"),
            None => transaction(OutPoint::NULL, &[], &[], 0, &[]),
        };
        let given = json.get("spent_outputs").map(array).unwrap_or_default();
        let mut spent: Vec<Vec<u8>> = given.iter().map(|it| expand(text(it))).collect();
        if spent.is_empty() {
            spent.push(vec![0; 9]);
        }
        Self { tx, spent, input: json["input_index"].as_u64().unwrap_or_default() as usize }
    }

    fn with<R>(&self, run: impl FnOnce(&TxContext<'_>) -> R) -> R {
        let spent: Vec<TxOut<'_>> = self.spent.iter().map(|raw| read_output(raw)).collect();
        run(&TxContext::new(self.tx.view(), &spent))
    }
}

fn script_vector(case: &Value, log: &mut Case) {
    let context = Context::of(&case["context"]);
    let annex = case["context"].get("annex").map(bytes);
    let (stack, script) = (elements(&case["stack"]), script(&case["script"]));
    let spend = Spend {
        rules: "bip441",
        script: &script,
        stack: &stack,
        annex: annex.as_deref(),
        budget: u64::MAX,
        keeps_result: case["final"] != true,
    };
    let given = context.with(|of| spend.evaluate(of, context.input));
    let right = match (&given, case["error"].as_str()) {
        (Ok((left, _)), None) => {
            case.get("final_stack").is_none_or(|expected| *left == elements(expected))
        }
        (Err(error), Some(expected)) => error.name() == expected,
        _ => false,
    };
    log.check(right, || format!("gave {}", short(&given)));
}

/// Whole inputs, with signatures at once and later.
fn spend_vector(case: &Value, log: &mut Case) {
    let context = Context::of(case);
    let verdict = context
        .with(|of| Verifier::with_rules(rules("bip441")).verify_input(of, 0, Flags::BITCOIN_BLOCK));
    let given = verdict.map_or_else(ScriptError::name, |_| "OK");
    log.check(given == case["error"].as_str().unwrap_or("OK"), || format!("gave {given}"));
}

/// Messages that signatures of leaves sign.
fn signing_vector(case: &Value, log: &mut Case) {
    let context = Context::of(&case["context"]);
    let leaf = &case["leaves"][case["spend_leaf"].as_u64().expect("an index") as usize];
    let version = u8::from_str_radix(text(&leaf["version"]), 16).expect("a version");
    let leaf_hash = tap_leaf_hash(version, &script(&leaf["script"]));
    log.check(leaf_hash[..] == bytes(&case["leaf_hash"]), || "another leaf hash".to_owned());
    let annex = case["context"].get("annex").map(bytes);
    let annex_hash = annex.map(|annex| annex_hash(&annex));
    let code_separator = case["codesep_pos"].as_u64().map_or(u32::MAX, |at| at as u32);
    let position = TapscriptPosition { leaf_hash, code_separator };
    let hash_type = case["hash_type"].as_u64().expect("a hash type") as u8;
    let message = context.with(|of| {
        of.sighash_taproot(context.input, hash_type, annex_hash.as_ref(), Some(&position))
    });
    let right = message.is_some_and(|message| message[..] == bytes(&case["sighash"]));
    log.check(right, || format!("gave {message:?}"));
}

/// The outcome without elements of a million bytes.
fn short(given: &Result<(Vec<Vec<u8>>, u64), ScriptError>) -> String {
    match given {
        Err(error) => error.name().to_owned(),
        Ok((left, _)) => {
            let shown = left.iter().map(|element| hex::encode(&element[..element.len().min(20)]));
            format!("{:?}", shown.collect::<Vec<_>>())
        }
    }
}
