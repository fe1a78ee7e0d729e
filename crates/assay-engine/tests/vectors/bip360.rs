//! BIP-0360 (P2MR): trees, control blocks and addresses; spends under the rule set `p2mr`.
//!
//! `p2mr_spending.json` is from pull request 2232 of `bitcoin/bips` (commit 3f59fd35). The test builds P2MR outputs from the text
//! of the BIP, so that the interpreter is not its own oracle.

use assay_consensus::script::{Flags, ScriptError, TapscriptPosition, TxContext, annex_hash};
use assay_hash::sha256;
use assay_wire::{OutPoint, Transaction, TxOut};
use serde_json::Value;

use crate::data::{self, array, bytes, bytes32, text};
use crate::outcome::{Case, Outcome, Report, Run};
use crate::verify::{Verifier, rules, spent_outputs, transaction, verify_all_under};

pub(crate) fn run(report: &mut Report) {
    let files: [(&str, Run); 3] = [
        ("p2mr_construction.json", construction),
        ("p2mr_pqc_construction.json", construction),
        ("p2mr_spending.json", spending),
    ];
    for (file, run) in files {
        let json = || data::bips_json(&format!("bip-0360/ref-impl/common/tests/data/{file}"));
        report.file(&format!("BIP360 {file}"), json, run);
    }
}

/// SHA-256 after two hashes of a tag (BIP-0340), in one piece.
fn tagged(tag: &str, message: &[u8]) -> [u8; 32] {
    let tag = sha256(tag.as_bytes());
    sha256(&[&tag[..], &tag, message].concat())
}

/// A leaf of a tree and its path.
struct Leaf {
    version: u8,
    script: Vec<u8>,
    hash: [u8; 32],
    path: Vec<[u8; 32]>,
}

impl Leaf {
    fn control(&self) -> Vec<u8> {
        let mut control = vec![self.version | 1];
        control.extend(self.path.iter().flatten());
        control
    }
}

/// The root of a tree; appends its leaves to `leaves`. `None` for an invalid tree.
fn build(tree: &Value, leaves: &mut Vec<Leaf>) -> Option<[u8; 32]> {
    let first = leaves.len();
    if let [left, right] = array(tree) {
        let left_hash = build(left, leaves)?;
        let middle = leaves.len();
        let right_hash = build(right, leaves)?;
        let (below_left, below_right) = leaves[first..].split_at_mut(middle - first);
        for leaf in below_left {
            leaf.path.push(right_hash);
        }
        for leaf in below_right {
            leaf.path.push(left_hash);
        }
        let mut children = [left_hash, right_hash];
        children.sort_unstable();
        return Some(tagged("TapBranch", &children.concat()));
    }
    let script = bytes(tree.get("script")?);
    let version = u8::try_from(tree["leafVersion"].as_u64()?).ok()?;
    // All scripts of the files have a length of one byte.
    let length = u8::try_from(script.len()).ok().filter(|length| *length < 253)?;
    let hash = tagged("TapLeaf", &[&[version, length][..], &script].concat());
    leaves.push(Leaf { version, script, hash, path: Vec::new() });
    Some(hash)
}

fn construction(json: &Value, outcome: &mut Outcome) {
    for vector in array(&json["test_vectors"]) {
        outcome.case(text(&vector["id"]), |log| {
            let (given, expected) = (&vector["given"], &vector["expected"]);
            let mut leaves = Vec::new();
            let root = build(&given["scriptTree"], &mut leaves);
            if expected.get("error").is_some() {
                return log.check(root.is_none(), || "there is a tree".into());
            }
            let root = root.expect("a tree");
            construct(vector, root, &leaves, log);
        });
    }
}

fn construct(vector: &Value, root: [u8; 32], leaves: &[Leaf], log: &mut Case) {
    let (intermediary, expected) = (&vector["intermediary"], &vector["expected"]);
    log.check(root == bytes32(&intermediary["merkleRoot"]), || "merkle root".into());
    let script_pubkey = [&[0x52, 32][..], &root].concat();
    log.check(script_pubkey == bytes(&expected["scriptPubKey"]), || "output script".into());
    let address = decode_bech32m(text(&expected["bip350Address"]));
    log.check(address == Some((2, root.to_vec())), || "address".into());
    let hashes: Vec<_> = array(&intermediary["leafHashes"]).iter().map(bytes32).collect();
    log.check(leaves.iter().map(|leaf| leaf.hash).eq(hashes), || "leaf hashes".into());
    let controls: Vec<_> = array(&expected["scriptPathControlBlocks"]).iter().map(bytes).collect();
    log.check(leaves.iter().map(Leaf::control).eq(controls), || "control blocks".into());
    // Each control block proves its script, but not with any bit flipped.
    let spent = [TxOut { value: 0, script_pubkey: &script_pubkey }];
    for leaf in leaves {
        let control = leaf.control();
        for bit in 0..=control.len() * 8 {
            let mut turned = control.clone();
            if let Some(byte) = turned.get_mut(bit / 8) {
                *byte ^= 1 << (bit % 8);
            }
            let witness = [leaf.script.clone(), turned.clone()];
            let tx = transaction(OutPoint::NULL, &[], &witness, 0, &[]);
            let verdict = verify_all_under(&rules("p2mr"), &tx, &spent, Flags::BITCOIN_BLOCK);
            let refused = matches!(
                verdict,
                Err(ScriptError::WitnessProgramMismatch
                    | ScriptError::TaprootWrongControlSize
                    | ScriptError::WitnessProgramWitnessEmpty)
            );
            log.check(refused == (turned != control), || format!("bit {bit} gave {verdict:?}"));
        }
    }
}

/// Version and program of a main network address (BIP-0350), if it is valid.
fn decode_bech32m(address: &str) -> Option<(u8, Vec<u8>)> {
    const DIGITS: &[u8] = b"qpzry9x8gf2tvdw0s3jn54khce6mua7l";
    const GENERATOR: [u32; 5] = [0x3b6a_57b2, 0x2650_8e6d, 0x1ea1_19fa, 0x3d42_33dd, 0x2a14_62b3];
    let data: Option<Vec<u8>> = address
        .strip_prefix("bc1")?
        .bytes()
        .map(|byte| Some(DIGITS.iter().position(|digit| *digit == byte)? as u8))
        .collect();
    let data = data?;
    // The prefix "bc", expanded.
    let mut checksum = 1u32;
    for value in [3, 3, 0, 2, 3].iter().chain(&data) {
        let top = checksum >> 25;
        checksum = (checksum & 0x01ff_ffff) << 5 ^ u32::from(*value);
        for (bit, generator) in GENERATOR.iter().enumerate() {
            checksum ^= if top >> bit & 1 == 1 { *generator } else { 0 };
        }
    }
    let (version, rest) = data.split_first()?;
    let digits = rest.get(..rest.len().checked_sub(6)?)?;
    let (mut bits, mut count, mut program) = (0u32, 0, Vec::new());
    for digit in digits {
        bits = bits << 5 | u32::from(*digit);
        count += 5;
        if count >= 8 {
            count -= 8;
            program.push((bits >> count) as u8);
        }
    }
    (checksum == 0x2bc8_30a3).then_some((*version, program))
}

fn spending(json: &Value, outcome: &mut Outcome) {
    for vector in array(&json["scriptPathSpending"]) {
        let outputs: Vec<_> =
            array(&vector["given"]["utxosSpent"]).iter().map(data::output).collect();
        let unsigned = data::transaction(&vector["given"]["rawUnsignedTx"]);
        let signed = data::transaction(&vector["auxiliary"]["fullySignedTx"]);
        for input in array(&vector["inputSpending"]) {
            let index = input["given"]["txinIndex"].as_u64().expect("an index") as usize;
            outcome.case(&format!("input {index}"), |log| {
                valid_input(input, index, (&unsigned, &signed), &outputs, log);
            });
        }
    }
    for vector in array(&json["invalidSpending"]) {
        outcome.case(text(&vector["id"]), |log| {
            let (value, script) = data::output(&vector["given"]["utxoSpent"]);
            let spent = [TxOut { value, script_pubkey: &script }];
            let tx = data::transaction(&vector["given"]["rawTx"]);
            let verdict = |name| verify_all_under(&rules(name), &tx, &spent, Flags::BITCOIN_BLOCK);
            let expected = match text(&vector["expected"]["error"]) {
                "invalid signature" => ScriptError::SchnorrSig,
                "witness program mismatch" => ScriptError::WitnessProgramMismatch,
                "invalid control byte" | "invalid control block size" => {
                    ScriptError::TaprootWrongControlSize
                }
                _ => ScriptError::WitnessProgramWitnessEmpty,
            };
            let given = verdict("p2mr");
            log.check(given == Err(expected), || format!("gave {given:?}"));
            log.check(verdict("today").is_ok(), || "not free to spend today".into());
        });
    }
}

fn valid_input(
    vector: &Value,
    index: usize,
    (unsigned, signed): (&Transaction, &Transaction),
    outputs: &[(i64, Vec<u8>)],
    log: &mut Case,
) {
    let (given, intermediary) = (&vector["given"], &vector["intermediary"]);
    let spent = spent_outputs(outputs);
    let witness: Vec<Vec<u8>> = array(&vector["expected"]["witness"]).iter().map(bytes).collect();
    log.check(signed.view().witness(index).iter().eq(witness.iter()), || "witness".into());
    let mut leaves = Vec::new();
    if let Some(root) = build(&given["scriptTree"], &mut leaves) {
        log.check(root == bytes32(&intermediary["merkleRoot"]), || "merkle root".into());
        let leaf = &leaves[given["leafId"].as_u64().expect("a leaf") as usize];
        log.check(leaf.hash == bytes32(&intermediary["leafHash"]), || "leaf hash".into());
        log.check(leaf.control() == bytes(&intermediary["controlBlock"]), || "control".into());
    }
    if let Some(hash_type) = given["hashType"].as_u64() {
        let annex = given["annex"].is_string().then(|| annex_hash(&bytes(&given["annex"])));
        let leaf_hash = bytes32(&intermediary["leafHash"]);
        let position = TapscriptPosition { leaf_hash, code_separator: u32::MAX };
        let context = TxContext::new(unsigned.view(), &spent);
        let message =
            context.sighash_taproot(index, hash_type as u8, annex.as_ref(), Some(&position));
        log.check(message == Some(bytes32(&intermediary["sigHash"])), || "message".into());
        let written = tagged("TapSighash", &bytes(&intermediary["sigMsg"]));
        log.check(message == Some(written), || "message by its bytes".into());
    }
    let context = TxContext::new(signed.view(), &spent);
    for name in ["p2mr", "today"] {
        let verdict =
            Verifier::with_rules(rules(name)).verify_input(&context, index, Flags::BITCOIN_BLOCK);
        log.check(verdict.is_ok(), || format!("gave {verdict:?} under {name}"));
    }
}
