//! Bitcoin Core's published script vectors, with its own readers' semantics
//! (`src/test/script_tests.cpp`, `transaction_tests.cpp`, `sighash_tests.cpp`).
//!
//! Every file is run whole. Where Core's reader also runs a case under more or fewer flags than
//! written, so does this one, with combinations from a fixed seed.

#[path = "script_vectors/asm.rs"]
mod asm;

use std::collections::HashMap;
use std::fmt::Write;
use std::path::PathBuf;

use assay_consensus::script::{
    Flags, Interpreter, ScriptError, SignatureChecker, TxContext, tap_branch_hash, tap_leaf_hash,
    tap_tweak_hash,
};
use assay_consensus::tx::check_transaction;
use assay_wire::encode::{compact_size, var_bytes};
use assay_wire::{Block, Encoding, OutPoint, Transaction, TxOut};
use serde_json::Value;

use asm::{assemble, hex};

/// Answers at once.
struct Immediate;

impl SignatureChecker for Immediate {
    fn ecdsa(&mut self, pubkey: &[u8], der_sig: &[u8], msg: &[u8; 32]) -> bool {
        assay_secp::verify_ecdsa(pubkey, der_sig, msg)
    }
    fn schnorr(&mut self, xonly: &[u8; 32], sig: &[u8; 64], msg: &[u8; 32]) -> bool {
        assay_secp::verify_schnorr(xonly, sig, msg)
    }
    fn schnorr_bch(&mut self, pubkey: &[u8], sig: &[u8; 64], msg: &[u8; 32]) -> bool {
        assay_secp::verify_schnorr_bch(pubkey, sig, msg)
    }
    fn taproot_tweak(
        &mut self,
        internal: &[u8; 32],
        tweak: &[u8; 32],
        output: &[u8; 32],
        output_parity: bool,
    ) -> bool {
        assay_secp::taproot_tweak_ok(internal, tweak, output, output_parity)
    }
}

/// All flags that Core has: its lowest 21 bits.
fn core_flags() -> Vec<Flags> {
    Flags::NAMED.iter().map(|&(_, flag)| flag).filter(|flag| flag.bits() >> 21 == 0).collect()
}

fn all_core_flags() -> Flags {
    core_flags().into_iter().fold(Flags::NONE, |all, flag| all | flag)
}

fn parse_flags(text: &str) -> Flags {
    text.split(',').filter(|name| !matches!(*name, "" | "NONE")).fold(Flags::NONE, |flags, name| {
        flags | Flags::from_name(name).unwrap_or_else(|| panic!("unknown flag {name}"))
    })
}

/// WITNESS needs P2SH and CLEANSTACK needs both; drops what lacks its base.
fn trim(flags: Flags) -> Flags {
    let flags = if flags.contains(Flags::P2SH) { flags } else { flags.without(Flags::WITNESS) };
    if flags.contains(Flags::WITNESS) { flags } else { flags.without(Flags::CLEANSTACK) }
}

/// The same, adding the base.
fn fill(flags: Flags) -> Flags {
    let flags = if flags.contains(Flags::CLEANSTACK) { flags | Flags::WITNESS } else { flags };
    if flags.contains(Flags::WITNESS) { flags | Flags::P2SH } else { flags }
}

/// Random subsets of Core's flags.
struct FlagDice(u64);

impl FlagDice {
    fn roll(&mut self) -> Flags {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        let bits = self.0 >> 20;
        core_flags()
            .into_iter()
            .filter(|flag| bits & flag.bits() != 0)
            .fold(Flags::NONE, |all, flag| all | flag)
    }
}

/// What running a file came to.
struct Outcome {
    file: &'static str,
    cases: usize,
    /// Evaluations, counting each combination of flags.
    runs: usize,
    failures: Vec<String>,
    failed_cases: usize,
}

impl Outcome {
    fn new(file: &'static str) -> Self {
        Self { file, cases: 0, runs: 0, failures: Vec::new(), failed_cases: 0 }
    }

    /// Runs one case; what it reports as wrong makes it fail.
    fn case(&mut self, name: &str, run: impl FnOnce(&mut usize, &mut Vec<String>)) {
        let mut wrong = Vec::new();
        self.cases += 1;
        run(&mut self.runs, &mut wrong);
        if !wrong.is_empty() {
            self.failed_cases += 1;
            let short: String = name.chars().take(300).collect();
            self.failures.extend(wrong.into_iter().map(|what| format!("{what}: {short}")));
        }
    }
}

fn data_file(name: &str) -> Option<Vec<u8>> {
    let root = std::env::var_os("ASSAY_TEST_DATA").map_or_else(
        || PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data"),
        PathBuf::from,
    );
    std::fs::read(root.join(name)).ok()
}

fn array(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_else(|| panic!("not a string: {value}"))
}

fn bytes32(value: &Value) -> [u8; 32] {
    hex(text(value)).and_then(|bytes| bytes.try_into().ok()).expect("32 bytes of hex")
}

fn verify_all(tx: &Transaction, spent: &[TxOut<'_>], flags: Flags) -> Result<(), ScriptError> {
    let ctx = TxContext::new(tx.view(), spent);
    let mut interpreter = Interpreter::new();
    for input in 0..spent.len() {
        interpreter.verify_input(&ctx, input, flags, &mut Immediate)?;
    }
    Ok(())
}

// ---- script_tests.json

/// A transaction as `src/test/util/transaction_utils.cpp` builds them.
fn transaction(
    prevout: OutPoint,
    script_sig: &[u8],
    witness: &[Vec<u8>],
    value: i64,
    script_pubkey: &[u8],
) -> Transaction {
    let mut raw = vec![1, 0, 0, 0];
    if !witness.is_empty() {
        raw.extend([0, 1]);
    }
    raw.push(1);
    raw.extend(prevout.to_bytes());
    var_bytes(&mut raw, script_sig);
    raw.extend([0xff; 4]);
    raw.push(1);
    raw.extend(value.to_le_bytes());
    var_bytes(&mut raw, script_pubkey);
    if !witness.is_empty() {
        compact_size(&mut raw, witness.len() as u64);
        for item in witness {
            var_bytes(&mut raw, item);
        }
    }
    raw.extend([0; 4]);
    Transaction::parse(raw, Encoding::Segwit).expect("a transaction")
}

struct ScriptCase {
    witness: Vec<Vec<u8>>,
    value: i64,
    script_sig: Vec<u8>,
    script_pubkey: Vec<u8>,
    flags: Flags,
    expected: String,
}

/// The internal key of generated Taproot outputs is that of secret key 1: the generator.
const INTERNAL_KEY: [u8; 32] = secp256k1::constants::GENERATOR_X;

/// Control block and output key for a single leaf.
fn single_leaf(script: &[u8]) -> (Vec<u8>, [u8; 32]) {
    let tweak = tap_tweak_hash(&INTERNAL_KEY, Some(&tap_leaf_hash(0xc0, script)));
    let (output, parity) = secp256k1::XOnlyPublicKey::from_byte_array(INTERNAL_KEY)
        .and_then(|key| key.add_tweak(&secp256k1::Scalar::from_be_bytes(tweak).expect("a scalar")))
        .expect("an output key");
    let mut control = vec![0xc0 | parity.to_u8()];
    control.extend(INTERNAL_KEY);
    (control, output.to_byte_array())
}

fn parse_script_case(case: &[Value]) -> Option<ScriptCase> {
    let (mut witness, mut value, mut output_key) = (Vec::new(), 0, None);
    let mut fields = case;
    if let Some((amount, items)) = case[0].as_array().and_then(|stack| stack.split_last()) {
        for item in items.iter().map(text) {
            if let Some(script) = item.strip_prefix("#SCRIPT#") {
                witness.push(assemble(script)?);
            } else if item == "#CONTROLBLOCK#" {
                let (control, key) = single_leaf(witness.last()?);
                witness.push(control);
                output_key = Some(key);
            } else {
                witness.push(hex(item)?);
            }
        }
        value = (amount.as_f64()? * 1e8).round() as i64;
        fields = &case[1..];
    }
    let script_pubkey = if text(&fields[1]) == "0x51 0x20 #TAPROOTOUTPUT#" {
        [&[0x51, 0x20][..], &output_key?].concat()
    } else {
        assemble(text(&fields[1]))?
    };
    let flags = parse_flags(text(&fields[2]));
    Some(ScriptCase {
        witness,
        value,
        script_sig: assemble(text(&fields[0]))?,
        script_pubkey,
        flags: if flags.contains(Flags::CLEANSTACK) { fill(flags) } else { flags },
        expected: text(&fields[3]).to_owned(),
    })
}

fn script_tests(json: &Value) -> Outcome {
    let mut outcome = Outcome::new("script_tests.json");
    let mut dice = FlagDice(0x5eed);
    for case in array(json).iter().map(array).filter(|case| case.len() > 1) {
        let name = Value::from(case).to_string();
        outcome.case(&name, |runs, wrong| {
            let Some(case) = parse_script_case(case) else {
                return wrong.push("cannot be read".into());
            };
            let credit = transaction(OutPoint::NULL, &[0, 0], &[], case.value, &case.script_pubkey);
            let prevout = OutPoint { txid: credit.view().txid(), vout: 0 };
            let spend = transaction(prevout, &case.script_sig, &case.witness, case.value, &[]);
            let spent = [credit.view().output(0)];
            let verdict = verify_all(&spend, &spent, case.flags);
            let given = verdict.map_or_else(ScriptError::name, |()| "OK");
            *runs += 1;
            if given != case.expected {
                wrong.push(format!("gave {given}"));
            }
            // Removing rules keeps a valid script valid, adding rules an invalid one invalid.
            let expect_ok = case.expected == "OK";
            for _ in 0..256 {
                let extra = dice.roll();
                let flags = if expect_ok { case.flags.without(extra) } else { case.flags | extra };
                if flags != trim(flags) {
                    continue;
                }
                *runs += 1;
                if verify_all(&spend, &spent, flags).is_ok() != expect_ok {
                    wrong.push(format!("turns with {flags:?}"));
                }
            }
        });
    }
    outcome
}

// ---- sighash.json

fn sighashes(json: &Value) -> Outcome {
    let mut outcome = Outcome::new("sighash.json");
    for case in array(json).iter().map(array).filter(|case| case.len() > 1) {
        outcome.case(text(&case[0]), |runs, wrong| {
            let raw = hex(text(&case[0])).expect("hex");
            let tx = Transaction::parse(raw, Encoding::Segwit).expect("a transaction");
            let script = hex(text(&case[1])).expect("hex");
            let input = case[2].as_u64().expect("an index") as usize;
            let hash_type = case[3].as_i64().expect("a hash type") as i32 as u32;
            let spent = vec![TxOut { value: 0, script_pubkey: &[] }; tx.view().input_count()];
            let ctx = TxContext::new(tx.view(), &spent);
            // Other inputs first: the shared prefix must not change any answer.
            for order in [vec![input], (0..=input).collect(), (input..spent.len()).rev().collect()]
            {
                let mut hash = [0; 32];
                for other in order {
                    hash = ctx.sighash_legacy(other, &script, hash_type);
                }
                hash.reverse();
                *runs += 1;
                if hash != bytes32(&case[4]) {
                    wrong.push("wrong hash".into());
                }
            }
        });
    }
    outcome
}

// ---- tx_valid.json, tx_invalid.json

struct TxCase {
    tx: Transaction,
    prevouts: HashMap<OutPoint, (i64, Vec<u8>)>,
    flags: String,
}

impl TxCase {
    fn parse(case: &[Value]) -> Option<Self> {
        let mut prevouts = HashMap::new();
        for prevout in array(&case[0]).iter().map(array) {
            let txid = text(&prevout[0]).parse().ok()?;
            let vout = prevout[1].as_i64()? as u32;
            let value = prevout.get(3).map_or(Some(0), Value::as_i64)?;
            let script = assemble(text(&prevout[2]))?;
            prevouts.insert(OutPoint { txid, vout }, (value, script));
        }
        let tx = Transaction::parse(hex(text(&case[1]))?, Encoding::Segwit).ok()?;
        Some(Self { tx, prevouts, flags: text(&case[2]).to_owned() })
    }

    fn spent(&self) -> Option<Vec<TxOut<'_>>> {
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

/// Combinations that leave out one flag each.
fn without_each(flags: Flags) -> Vec<Flags> {
    let mut out: Vec<Flags> = core_flags()
        .into_iter()
        .map(|flag| trim(flags.without(flag)))
        .filter(|&fewer| fewer != flags)
        .collect();
    out.sort_by_key(|flags| flags.bits());
    out.dedup();
    out
}

fn tx_valid(json: &Value) -> Outcome {
    let mut outcome = Outcome::new("tx_valid.json");
    let mut dice = FlagDice(0xcafe);
    let all = all_core_flags();
    for case in array(json).iter().map(array).filter(|case| case[0].is_array()) {
        let name = Value::from(case).to_string();
        outcome.case(&name, |runs, wrong| {
            let Some(case) = TxCase::parse(case) else {
                return wrong.push("cannot be read".into());
            };
            if let Err(error) = check_transaction(case.tx.view()) {
                wrong.push(error.reject_reason().to_owned());
            }
            let Some(spent) = case.spent() else { return wrong.push("lacks a prevout".into()) };
            let mut check = |flags: Flags, valid: bool| {
                *runs += 1;
                let verdict = verify_all(&case.tx, &spent, flags);
                if verdict.is_ok() != valid {
                    wrong.push(format!("{verdict:?} with {flags:?}"));
                }
            };
            // The file lists the rules the transaction breaks.
            let broken = parse_flags(&case.flags);
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
    outcome
}

fn tx_invalid(json: &Value) -> Outcome {
    let mut outcome = Outcome::new("tx_invalid.json");
    let mut dice = FlagDice(0xbeef);
    for case in array(json).iter().map(array).filter(|case| case[0].is_array()) {
        let name = Value::from(case).to_string();
        outcome.case(&name, |runs, wrong| {
            let Some(case) = TxCase::parse(case) else {
                return wrong.push("cannot be read".into());
            };
            if check_transaction(case.tx.view()).is_err() || case.flags == "BADTX" {
                *runs += 1;
                if check_transaction(case.tx.view()).is_ok() != (case.flags != "BADTX") {
                    wrong.push("wrong about the transaction itself".into());
                }
                return;
            }
            let Some(spent) = case.spent() else { return wrong.push("lacks a prevout".into()) };
            let mut check = |flags: Flags, valid: bool| {
                *runs += 1;
                let verdict = verify_all(&case.tx, &spent, flags);
                if verdict.is_ok() != valid {
                    wrong.push(format!("{verdict:?} with {flags:?}"));
                }
            };
            let flags = parse_flags(&case.flags);
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
    outcome
}

// ---- bip341_wallet_vectors.json

/// Leaves of a script tree in order, and the hash of the tree.
fn tree_hash(tree: &Value, leaves: &mut Vec<(u8, Vec<u8>)>) -> [u8; 32] {
    if let Some(children) = tree.as_array() {
        let left = tree_hash(&children[0], leaves);
        return tap_branch_hash(&left, &tree_hash(&children[1], leaves));
    }
    let script = hex(text(&tree["script"])).expect("hex");
    let version = tree["leafVersion"].as_u64().expect("a leaf version") as u8;
    let hash = tap_leaf_hash(version, &script);
    leaves.push((version, script));
    hash
}

/// Output keys, trees and control blocks.
fn wallet_script_pubkey(vector: &Value, runs: &mut usize, wrong: &mut Vec<String>) {
    let internal = bytes32(&vector["given"]["internalPubkey"]);
    let output = bytes32(&vector["intermediary"]["tweakedPubkey"]);
    let mut leaves = Vec::new();
    let tree = &vector["given"]["scriptTree"];
    let root = (!tree.is_null()).then(|| tree_hash(tree, &mut leaves));
    if root.is_some_and(|root| root != bytes32(&vector["intermediary"]["merkleRoot"])) {
        wrong.push("merkle root".into());
    }
    for (leaf, hash) in leaves.iter().zip(array(&vector["intermediary"]["leafHashes"])) {
        if tap_leaf_hash(leaf.0, &leaf.1) != bytes32(hash) {
            wrong.push("leaf hash".into());
        }
    }
    let tweak = tap_tweak_hash(&internal, root.as_ref());
    if tweak != bytes32(&vector["intermediary"]["tweak"]) {
        wrong.push("tweak".into());
    }
    let parities =
        [false, true].map(|odd| Immediate.taproot_tweak(&internal, &tweak, &output, odd));
    if parities[0] == parities[1] {
        wrong.push("output key".into());
    }
    *runs += 1;
    // Control blocks prove their scripts, and with one bit turned they do not.
    let script_pubkey = hex(text(&vector["expected"]["scriptPubKey"])).expect("hex");
    let spent = [TxOut { value: 0, script_pubkey: &script_pubkey }];
    let controls = array(&vector["expected"]["scriptPathControlBlocks"]);
    for ((_, script), control) in leaves.iter().zip(controls) {
        let mut control = hex(text(control)).expect("hex");
        for proves in [true, false] {
            let witness = [script.clone(), control.clone()];
            let tx = transaction(OutPoint::NULL, &[], &witness, 0, &[]);
            let verdict = verify_all(&tx, &spent, Flags::BITCOIN_BLOCK);
            *runs += 1;
            if (verdict != Err(ScriptError::WitnessProgramMismatch)) != proves {
                wrong.push(format!("script path gave {verdict:?}"));
            }
            control[0] ^= 1;
        }
    }
}

/// Messages and signatures of key path spends, and the whole signed transaction.
fn wallet_key_path(vector: &Value, runs: &mut usize, wrong: &mut Vec<String>) {
    let outputs: Vec<(i64, Vec<u8>)> = array(&vector["given"]["utxosSpent"])
        .iter()
        .map(|output| {
            let script = hex(text(&output["scriptPubKey"])).expect("hex");
            (output["amountSats"].as_i64().expect("an amount"), script)
        })
        .collect();
    let spent: Vec<TxOut<'_>> = outputs
        .iter()
        .map(|(value, script)| TxOut { value: *value, script_pubkey: script })
        .collect();
    let parse = |value: &Value| {
        let raw = hex(text(value)).expect("hex");
        Transaction::parse(raw, Encoding::Segwit).expect("a transaction")
    };
    let unsigned = parse(&vector["given"]["rawUnsignedTx"]);
    let ctx = TxContext::new(unsigned.view(), &spent);
    for case in array(&vector["inputSpending"]) {
        let input = case["given"]["txinIndex"].as_u64().expect("an index") as usize;
        let hash_type = case["given"]["hashType"].as_u64().expect("a hash type") as u8;
        let message = ctx.sighash_taproot(input, hash_type, None, None);
        *runs += 1;
        if message != Some(bytes32(&case["intermediary"]["sigHash"])) {
            wrong.push(format!("message of input {input}"));
        }
    }
    let signed = parse(&vector["auxiliary"]["fullySignedTx"]);
    *runs += 1;
    if let Err(error) = verify_all(&signed, &spent, Flags::BITCOIN_STANDARD) {
        wrong.push(format!("signed transaction: {error}"));
    }
}

fn bip341(json: &Value) -> Outcome {
    let mut outcome = Outcome::new("bip341_wallet_vectors.json");
    for vector in array(&json["scriptPubKey"]) {
        outcome.case(&vector["given"].to_string(), |runs, wrong| {
            wallet_script_pubkey(vector, runs, wrong);
        });
    }
    for vector in array(&json["keyPathSpending"]) {
        outcome.case("keyPathSpending", |runs, wrong| wallet_key_path(vector, runs, wrong));
    }
    outcome
}

#[test]
fn published_vectors() {
    type Runner = fn(&Value) -> Outcome;
    let files: [(&str, Runner); 5] = [
        ("script_tests.json", script_tests),
        ("sighash.json", sighashes),
        ("tx_valid.json", tx_valid),
        ("tx_invalid.json", tx_invalid),
        ("bip341_wallet_vectors.json", bip341),
    ];
    let mut table = format!("{:<28}{:>7}{:>8}{:>9}\n", "file", "cases", "passed", "runs");
    let mut failures = Vec::new();
    for (name, run) in files {
        let Some(json) = data_file(&format!("vectors/{name}")) else {
            println!("skipped: {name} is not here");
            continue;
        };
        let outcome = run(&serde_json::from_slice(&json).expect("JSON"));
        let passed = outcome.cases - outcome.failed_cases;
        writeln!(table, "{:<28}{:>7}{:>8}{:>9}", outcome.file, outcome.cases, passed, outcome.runs)
            .expect("a string takes everything");
        assert!(outcome.cases > 0, "{name} holds no case");
        failures.extend(outcome.failures);
    }
    println!("{table}");
    assert!(failures.is_empty(), "{} failures:\n{}", failures.len(), failures.join("\n"));
}

/// Outputs in the format of the `.prevouts` files: value, length of the script, script.
fn read_prevouts(mut bytes: &[u8]) -> Vec<TxOut<'_>> {
    let mut outputs = Vec::new();
    while let Some((head, rest)) = bytes.split_first_chunk::<12>() {
        let [value @ .., a, b, c, d] = *head;
        let (script_pubkey, rest) = rest.split_at(u32::from_le_bytes([a, b, c, d]) as usize);
        outputs.push(TxOut { value: i64::from_le_bytes(value), script_pubkey });
        bytes = rest;
    }
    assert!(bytes.is_empty(), "a prevouts file ends in the middle of an output");
    outputs
}

#[test]
fn every_input_of_real_blocks_is_valid() {
    let in_2016 = Flags::P2SH
        | Flags::DERSIG
        | Flags::CHECKLOCKTIMEVERIFY
        | Flags::CHECKSEQUENCEVERIFY
        | Flags::WITNESS
        | Flags::NULLDUMMY;
    for (name, flags) in [
        ("mainnet-300025", Flags::P2SH),
        ("testnet3-928816", in_2016),
        ("testnet3-928828", in_2016),
        ("testnet3-928831", in_2016),
        ("testnet3-928849", in_2016),
        ("testnet3-1087400", in_2016),
    ] {
        let file = |kind: &str| data_file(&format!("blocks/{name}.{kind}"));
        let (Some(raw), Some(prevouts)) = (file("blk"), file("prevouts")) else {
            println!("skipped: {name} is not here");
            continue;
        };
        let block = Block::parse(raw, Encoding::Segwit).expect("a block");
        let prevouts = read_prevouts(&prevouts);
        let mut interpreter = Interpreter::new();
        let (mut done, mut checks) = (0, 0);
        for tx in block.txs().skip(1) {
            let spent = &prevouts[done..][..tx.input_count()];
            let ctx = TxContext::new(tx, spent);
            for input in 0..spent.len() {
                let stats = interpreter
                    .verify_input(&ctx, input, flags, &mut Immediate)
                    .unwrap_or_else(|error| panic!("{name} {} input {input}: {error}", tx.txid()));
                checks += stats.sig_checks;
            }
            done += spent.len();
        }
        assert_eq!(done, prevouts.len());
        println!("{name}: {done} inputs, {checks} signature checks");
    }
}
