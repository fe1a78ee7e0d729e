//! Published vectors about scripts: `script_tests.json`, `tx_valid.json`, `tx_invalid.json` of Bitcoin Core, and the Taproot
//! cases that its `feature_taproot.py` makes.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use assay_consensus::script::asm::assemble;
use assay_consensus::script::{Flags, Interpreter, RuleSet, ScriptError, TxContext};
use assay_engine::ImmediateChecker;
use assay_wire::encode::{compact_size, var_bytes};
use assay_wire::{Encoding, OutPoint, Transaction, Tx, TxOut};
use serde_json::Value;

use crate::spend::{Spend, single_leaf};

/// Inputs to verify, and what is said about them.
#[derive(Clone, Debug)]
pub(super) struct Vector {
    pub(super) comment: String,
    tx: Transaction,
    spent: Vec<(i64, Vec<u8>)>,
    /// Only this one, or all.
    input: Option<usize>,
    flags: Flags,
}

/// A file, or folder of files, of vectors.
pub(super) struct Suite {
    pub(super) name: &'static str,
    pub(super) vectors: Vec<Vector>,
    /// Cases that could not be read; none in the files as published.
    pub(super) unreadable: usize,
}

impl Vector {
    /// With this comment, if it has none of its own.
    fn about(mut self, comment: &str) -> Self {
        if self.comment.is_empty() {
            comment.clone_into(&mut self.comment);
        }
        self
    }

    /// The flags that it names.
    pub(super) const fn flags(&self) -> Flags {
        self.flags
    }

    /// The input that it is about; all, if none.
    pub(super) const fn input(&self) -> Option<usize> {
        self.input
    }

    pub(super) fn tx(&self) -> Tx<'_> {
        self.tx.view()
    }

    /// What the inputs spend, in order.
    pub(super) fn spent(&self) -> Vec<TxOut<'_>> {
        self.spent
            .iter()
            .map(|(value, script)| TxOut { value: *value, script_pubkey: script })
            .collect()
    }

    /// The first error of its inputs.
    pub(super) fn verdict(&self, rules: &RuleSet) -> Result<(), ScriptError> {
        self.verdict_with(rules, self.flags)
    }

    /// The same with other flags than its own.
    pub(super) fn verdict_with(&self, rules: &RuleSet, flags: Flags) -> Result<(), ScriptError> {
        let spent = self.spent();
        let context = TxContext::new(self.tx.view(), &spent);
        let mut interpreter = Interpreter::with_rules(*rules);
        let inputs = self.input.map_or(0..spent.len(), |input| input..input + 1);
        for input in inputs {
            interpreter.verify_input(&context, input, flags, &mut ImmediateChecker)?;
        }
        Ok(())
    }

    /// The longest pushes and witness elements, in words.
    pub(super) fn largest(&self, above: usize) -> String {
        let tx = self.tx.view();
        let inputs = self.input.map_or(0..self.spent.len(), |input| input..input + 1);
        let mut found: Vec<String> = Vec::new();
        for input in inputs {
            let witness: Vec<&[u8]> = tx.witness(input).iter().collect();
            let scripts = [
                ("output script", &self.spent[input].1[..]),
                ("input script", tx.input(input).script_sig),
            ];
            for (place, script) in scripts {
                found.extend(
                    pushes(script, above).map(|bytes| format!("{place} pushes {bytes} bytes")),
                );
            }
            for item in witness {
                if item.len() > above {
                    found.push(format!("witness element of {} bytes", item.len()));
                }
                let pushed = pushes(item, above);
                found.extend(pushed.map(|bytes| format!("witness script pushes {bytes} bytes")));
            }
        }
        found.dedup();
        found.truncate(3);
        if found.is_empty() {
            "nothing larger: the size of a result".to_owned()
        } else {
            found.join(", ")
        }
    }
}

/// Lengths of pushes above a size.
fn pushes(script: &[u8], above: usize) -> impl Iterator<Item = usize> {
    assay_consensus::script::opcode::Instructions::new(script)
        .flatten()
        .map(|read| read.data.len())
        .filter(move |&length| length > above)
}

/// Reads a case.
type Read = fn(&[Value]) -> Option<Vector>;

/// Every suite that is there.
pub(super) fn suites(folder: Option<&Path>) -> Vec<Suite> {
    let mut suites = Vec::new();
    let json = |file: &str| -> Option<Value> {
        serde_json::from_slice(&std::fs::read(folder?.join(file)).ok()?).ok()
    };
    let files: [(&'static str, Read); 3] = [
        ("script_tests.json", script_test),
        ("tx_valid.json", |case| tx_case(case, true)),
        ("tx_invalid.json", |case| tx_case(case, false)),
    ];
    for (name, read) in files {
        let Some(json) = json(name) else { continue };
        // What stands between the cases says what the next ones are about.
        let mut about = "";
        let mut cases = Vec::new();
        for case in array(&json).iter().map(array) {
            match case {
                [] => {}
                [Value::String(comment)] => about = comment,
                [.., Value::String(flags)] if flags == "BADTX" => {}
                _ => cases.push(read(case).map(|vector| vector.about(about))),
            }
        }
        suites.push(Suite::of(name, cases.into_iter()));
    }
    if let Some(cases) = taproot_reference() {
        suites.push(Suite::of("feature_taproot.py (script_assets_test)", cases.into_iter()));
    }
    suites
}

impl Suite {
    fn of(name: &'static str, cases: impl Iterator<Item = Option<Vector>>) -> Self {
        let mut suite = Self { name, vectors: Vec::new(), unreadable: 0 };
        for case in cases {
            match case {
                Some(vector) => suite.vectors.push(vector),
                None => suite.unreadable += 1,
            }
        }
        suite
    }
}

fn array(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn flags(text: &str) -> Option<Flags> {
    text.split(',')
        .filter(|name| !matches!(*name, "" | "NONE"))
        .try_fold(Flags::NONE, |flags, name| Some(flags | Flags::from_name(name)?))
}

/// `[[witness…, amount]?, input script, output script, flags, expected, comment]`.
fn script_test(case: &[Value]) -> Option<Vector> {
    let (mut witness, mut value, mut output_key) = (Vec::new(), 0, None);
    let mut fields = case;
    if let Some((amount, items)) = case[0].as_array().and_then(|stack| stack.split_last()) {
        for item in items {
            let item = item.as_str()?;
            if let Some(script) = item.strip_prefix("#SCRIPT#") {
                witness.push(assemble(script).ok()?);
            } else if item == "#CONTROLBLOCK#" {
                let (control, key) = single_leaf(witness.last()?);
                witness.push(control);
                output_key = Some(key);
            } else {
                witness.push(from_hex(item)?);
            }
        }
        value = (amount.as_f64()? * 1e8).round() as i64;
        fields = &case[1..];
    }
    let text = |index: usize| fields.get(index).and_then(Value::as_str);
    let script_pubkey = match text(1)? {
        "0x51 0x20 #TAPROOTOUTPUT#" => [&[0x51, 0x20][..], &output_key?].concat(),
        script => assemble(script).ok()?,
    };
    let script_sig = assemble(text(0)?).ok()?;
    let mut flags = flags(text(2)?)?;
    if flags.contains(Flags::CLEANSTACK) {
        flags = flags | Flags::WITNESS | Flags::P2SH;
    }
    let comment = text(4).filter(|comment| !comment.is_empty()).or(text(1))?.to_owned();
    let spend = Spend::raw(&script_sig, script_pubkey.clone(), &witness, value, flags);
    let spent = vec![(value, script_pubkey)];
    Some(Vector { comment, tx: spend.tx, spent, input: None, flags })
}

/// `[[[txid, index, output script, amount?]…], transaction, flags]`; valid cases name the flags that are left out.
fn tx_case(case: &[Value], valid: bool) -> Option<Vector> {
    let [prevouts, tx, names] = case else { return None };
    let names = names.as_str()?;
    let mut outputs = HashMap::new();
    for prevout in array(prevouts).iter().map(array) {
        let txid = prevout.first()?.as_str()?.parse().ok()?;
        let vout = prevout.get(1)?.as_i64()? as u32;
        let value = prevout.get(3).map_or(Some(0), Value::as_i64)?;
        let script = assemble(prevout.get(2)?.as_str()?).ok()?;
        outputs.insert(OutPoint { txid, vout }, (value, script));
    }
    let tx = Transaction::parse(from_hex(tx.as_str()?)?, Encoding::Segwit).ok()?;
    let spent: Option<Vec<_>> =
        tx.view().inputs().map(|input| outputs.get(&input.prevout).cloned()).collect();
    let named = flags(names)?;
    let all = Flags::NAMED
        .iter()
        .filter(|(_, flag)| flag.bits() >> 21 == 0)
        .fold(Flags::NONE, |all, &(_, flag)| all | flag);
    let flags = if valid { all.without(named) } else { named };
    let comment = String::new();
    Some(Vector { comment, spent: spent?, tx, input: None, flags })
}

/// The cases of `feature_taproot.py`, where the Go module that carries them has been fetched.
fn taproot_reference() -> Option<Vec<Option<Vector>>> {
    let modules = std::env::var_os("GOMODCACHE").map(PathBuf::from).or_else(|| {
        let path = std::env::var_os("GOPATH").map(PathBuf::from);
        Some(path.or_else(|| Some(std::env::home_dir()?.join("go")))?.join("pkg/mod"))
    })?;
    let folder =
        modules.join("github.com/btcsuite/btcd/txscript/v2@v2.0.0").join("data/taproot-ref");
    let mut paths: Vec<PathBuf> =
        std::fs::read_dir(folder).ok()?.filter_map(|entry| Some(entry.ok()?.path())).collect();
    paths.sort();
    let cases = paths.iter().flat_map(|path| match reference_case(path) {
        Some(sides) => sides.into_iter().map(Some).collect(),
        None => vec![None],
    });
    Some(cases.collect())
}

/// Both sides of a case: the one that passes and the one that fails.
fn reference_case(path: &Path) -> Option<Vec<Vector>> {
    let text = std::fs::read_to_string(path).ok()?;
    // Each file ends in a comma: it was cut out of one long list.
    let json: Value = serde_json::from_str(text.trim().trim_end_matches(',')).ok()?;
    let hex = |value: &Value| from_hex(value.as_str()?);
    let tx = Transaction::parse(hex(&json["tx"])?, Encoding::Legacy).ok()?;
    let spent: Option<Vec<(i64, Vec<u8>)>> =
        array(&json["prevouts"]).iter().map(|raw| read_output(&hex(raw)?)).collect();
    let spent = spent?;
    let index = json["index"].as_u64()? as usize;
    let flags = flags(json["flags"].as_str()?)?;
    let comment = json["comment"].as_str()?;
    let mut sides = Vec::new();
    for side in ["success", "failure"] {
        let Some(spend) = json.get(side) else { continue };
        let witness: Option<Vec<Vec<u8>>> = array(&spend["witness"]).iter().map(hex).collect();
        let tx = with_input(tx.view(), index, &hex(&spend["scriptSig"])?, &witness?)?;
        let comment = format!("{comment}, {side}");
        sides.push(Vector { comment, tx, spent: spent.clone(), input: Some(index), flags });
    }
    Some(sides)
}

/// A serialised output; its script is shorter than 2^16 bytes.
fn read_output(raw: &[u8]) -> Option<(i64, Vec<u8>)> {
    let (value, rest) = raw.split_first_chunk()?;
    let ([0xfd, _, _, script @ ..] | [_, script @ ..]) = rest else { return None };
    Some((i64::from_le_bytes(*value), script.to_vec()))
}

/// The transaction with input script and witness of one input replaced.
fn with_input(
    tx: Tx<'_>,
    index: usize,
    script_sig: &[u8],
    witness: &[Vec<u8>],
) -> Option<Transaction> {
    let mut raw = tx.version().to_le_bytes().to_vec();
    if !witness.is_empty() {
        raw.extend([0, 1]);
    }
    compact_size(&mut raw, tx.input_count() as u64);
    for (at, input) in tx.inputs().enumerate() {
        raw.extend(input.prevout.to_bytes());
        var_bytes(&mut raw, if at == index { script_sig } else { input.script_sig });
        raw.extend(input.sequence.to_le_bytes());
    }
    compact_size(&mut raw, tx.output_count() as u64);
    raw.extend(tx.outputs_raw());
    if !witness.is_empty() {
        for at in 0..tx.input_count() {
            let items = if at == index { witness } else { &[] };
            compact_size(&mut raw, items.len() as u64);
            for item in items {
                var_bytes(&mut raw, item);
            }
        }
    }
    raw.extend(tx.lock_time().to_le_bytes());
    Transaction::parse(raw, Encoding::Segwit).ok()
}

/// Decodes an even number of hexadecimal digits.
fn from_hex(text: &str) -> Option<Vec<u8>> {
    let mut bytes = vec![0; text.len() / 2];
    faster_hex::hex_decode(text.as_bytes(), &mut bytes).ok()?;
    Some(bytes)
}
