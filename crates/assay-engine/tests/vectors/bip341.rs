//! `bip341_wallet_vectors.json`: script trees, tweaks, control blocks, messages and signed spends.

use assay_consensus::script::{
    Flags, ScriptError, SignatureChecker, TxContext, tap_branch_hash, tap_leaf_hash, tap_tweak_hash,
};
use assay_engine::ImmediateChecker;
use assay_wire::{OutPoint, TxOut};
use serde_json::Value;

use crate::data::{self, array, bytes, bytes32};
use crate::outcome::{Case, Outcome, Report};
use crate::verify::{spent_outputs, transaction, verify_all};

pub(crate) fn run(report: &mut Report) {
    let file = "bip341_wallet_vectors.json";
    report.file(file, || data::shared_json(&format!("vectors/{file}")), bip341);
}

/// Leaves of a script tree in order, and the hash of the tree.
fn tree_hash(tree: &Value, leaves: &mut Vec<(u8, Vec<u8>)>) -> [u8; 32] {
    if let Some(children) = tree.as_array() {
        let left = tree_hash(&children[0], leaves);
        return tap_branch_hash(&left, &tree_hash(&children[1], leaves));
    }
    let script = bytes(&tree["script"]);
    let version = tree["leafVersion"].as_u64().expect("a leaf version") as u8;
    let hash = tap_leaf_hash(version, &script);
    leaves.push((version, script));
    hash
}

/// Output keys, trees and control blocks.
fn wallet_script_pubkey(vector: &Value, log: &mut Case) {
    let internal = bytes32(&vector["given"]["internalPubkey"]);
    let output = bytes32(&vector["intermediary"]["tweakedPubkey"]);
    let mut leaves = Vec::new();
    let tree = &vector["given"]["scriptTree"];
    let root = (!tree.is_null()).then(|| tree_hash(tree, &mut leaves));
    if root.is_some_and(|root| root != bytes32(&vector["intermediary"]["merkleRoot"])) {
        log.wrong("merkle root");
    }
    for (leaf, hash) in leaves.iter().zip(array(&vector["intermediary"]["leafHashes"])) {
        if tap_leaf_hash(leaf.0, &leaf.1) != bytes32(hash) {
            log.wrong("leaf hash");
        }
    }
    let tweak = tap_tweak_hash(&internal, root.as_ref());
    if tweak != bytes32(&vector["intermediary"]["tweak"]) {
        log.wrong("tweak");
    }
    let parities =
        [false, true].map(|odd| ImmediateChecker.taproot_tweak(&internal, &tweak, &output, odd));
    log.check(parities[0] != parities[1], || "output key".into());
    // Control blocks prove their scripts, but not with a flipped bit.
    let script_pubkey = bytes(&vector["expected"]["scriptPubKey"]);
    let spent = [TxOut { value: 0, script_pubkey: &script_pubkey }];
    let controls = array(&vector["expected"]["scriptPathControlBlocks"]);
    for ((_, script), control) in leaves.iter().zip(controls) {
        let mut control = bytes(control);
        for proves in [true, false] {
            let witness = [script.clone(), control.clone()];
            let tx = transaction(OutPoint::NULL, &[], &witness, 0, &[]);
            let verdict = verify_all(&tx, &spent, Flags::BITCOIN_BLOCK);
            let proven = verdict != Err(ScriptError::WitnessProgramMismatch);
            log.check(proven == proves, || format!("script path gave {verdict:?}"));
            control[0] ^= 1;
        }
    }
}

/// Messages and signatures of key path spends, and the whole signed transaction.
fn wallet_key_path(vector: &Value, log: &mut Case) {
    let outputs: Vec<_> = array(&vector["given"]["utxosSpent"]).iter().map(data::output).collect();
    let spent = spent_outputs(&outputs);
    let unsigned = data::transaction(&vector["given"]["rawUnsignedTx"]);
    let ctx = TxContext::new(unsigned.view(), &spent);
    for case in array(&vector["inputSpending"]) {
        let input = case["given"]["txinIndex"].as_u64().expect("an index") as usize;
        let hash_type = case["given"]["hashType"].as_u64().expect("a hash type") as u8;
        let message = ctx.sighash_taproot(input, hash_type, None, None);
        let right = message == Some(bytes32(&case["intermediary"]["sigHash"]));
        log.check(right, || format!("message of input {input}"));
    }
    let signed = data::transaction(&vector["auxiliary"]["fullySignedTx"]);
    let verdict = verify_all(&signed, &spent, Flags::BITCOIN_STANDARD);
    log.check(verdict.is_ok(), || format!("signed transaction: {verdict:?}"));
}

fn bip341(json: &Value, outcome: &mut Outcome) {
    for vector in array(&json["scriptPubKey"]) {
        outcome.case(&vector["given"].to_string(), |log| {
            wallet_script_pubkey(vector, log);
        });
    }
    for vector in array(&json["keyPathSpending"]) {
        outcome.case("keyPathSpending", |log| wallet_key_path(vector, log));
    }
}
