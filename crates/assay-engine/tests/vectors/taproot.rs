//! Core's Taproot reference cases (`script_assets_test.json`, made by its `feature_taproot.py`), with
//! the semantics of `script_assets_tests.cpp`.
//!
//! The Go module `github.com/btcsuite/btcd/txscript/v2` has them, one case per file.

use assay_consensus::script::{Flags, RuleSet, TxContext};
use assay_testkit::chain::TxBuilder;
use assay_wire::{Encoding, Transaction, Tx, TxOut};
use serde_json::Value;

use crate::data::{self, array, bytes, text};
use crate::flags;
use crate::outcome::{Case, Outcome, Report};
use crate::verify::Verifier;

/// A rule set that cases select by a name among their flags.
pub(crate) struct Proposal {
    pub(crate) flag: &'static str,
    pub(crate) rules: RuleSet,
}

pub(crate) fn run(report: &mut Report) {
    let file = "script_assets_test (btcd taproot-ref)";
    report.file(file, reference_files, |files, outcome| reference_cases(files, outcome));
}

fn reference_files() -> Option<Vec<(String, String)>> {
    let folder = data::go_module("github.com/btcsuite/btcd/txscript/v2@v2.0.0")?;
    let mut files: Vec<(String, String)> = std::fs::read_dir(folder.join("data/taproot-ref"))
        .ok()?
        .filter_map(|entry| {
            let path = entry.ok()?.path();
            let name = path.file_name()?.to_str()?.to_owned();
            Some((name, std::fs::read_to_string(path).ok()?))
        })
        .collect();
    files.sort();
    Some(files)
}

fn reference_cases(files: &[(String, String)], outcome: &mut Outcome) {
    let combinations = consensus_combinations();
    outcome.cases_in_parallel(
        files,
        |(name, _)| name.clone(),
        |(_, text), log| {
            // Each file ends in a comma: it was cut out of one long list.
            let json = text.trim().trim_end_matches(',');
            reference_case(&serde_json::from_str(json).expect("JSON"), &combinations, None, log);
        },
    );
}

/// Every combination of consensus flags with all their dependencies.
pub(crate) fn consensus_combinations() -> Vec<Flags> {
    let single = [
        Flags::P2SH,
        Flags::DERSIG,
        Flags::NULLDUMMY,
        Flags::CHECKLOCKTIMEVERIFY,
        Flags::CHECKSEQUENCEVERIFY,
        Flags::WITNESS,
        Flags::TAPROOT,
    ];
    (0..1u32 << single.len())
        .map(|bits| {
            let chosen = single.iter().enumerate().filter(|(index, _)| bits >> index & 1 == 1);
            chosen.fold(Flags::NONE, |all, (_, &flag)| all | flag)
        })
        .filter(|flags| flags.contains(Flags::P2SH) || !flags.contains(Flags::WITNESS))
        .filter(|flags| flags.contains(Flags::WITNESS) || !flags.contains(Flags::TAPROOT))
        .collect()
}

/// Runs a case under every combination of flags, each with and without the proposal.
pub(crate) fn reference_case(
    json: &Value,
    combinations: &[Flags],
    proposal: Option<&Proposal>,
    log: &mut Case,
) {
    let tx = Transaction::parse(bytes(&json["tx"]), Encoding::Legacy).expect("a transaction");
    let outputs: Vec<Vec<u8>> = array(&json["prevouts"]).iter().map(bytes).collect();
    let spent: Vec<TxOut<'_>> = outputs.iter().map(|raw| read_output(raw)).collect();
    let index = json["index"].as_u64().expect("an index") as usize;
    let names = text(&json["flags"]).split(',');
    let (proposed, names): (Vec<&str>, Vec<&str>) =
        names.partition(|name| proposal.is_some_and(|proposal| proposal.flag == *name));
    let (written, asks) = (flags::parse(&names.join(",")), !proposed.is_empty());
    let mut ways = vec![(false, Verifier::default())];
    ways.extend(proposal.map(|proposal| (true, Verifier::with_rules(proposal.rules))));
    let always = json["final"].as_bool().unwrap_or(false);
    for (side, valid) in [("success", true), ("failure", false)] {
        let Some(spend) = json.get(side) else { continue };
        let witness: Vec<Vec<u8>> = array(&spend["witness"]).iter().map(bytes).collect();
        let tx = with_input(tx.view(), index, &bytes(&spend["scriptSig"]), &witness);
        let ctx = TxContext::new(tx.view(), &spent);
        for (is_proposed, verifier) in &mut ways {
            for &flags in combinations {
                // A valid spend stays valid under fewer rules, an invalid one invalid under more.
                let fewer = written | flags == written && (asks || !*is_proposed);
                let more = flags.contains(written) && (*is_proposed || !asks);
                if if valid { always || fewer } else { more } {
                    let verdict = verifier.verify_input(&ctx, index, flags);
                    log.check(verdict.is_ok() == valid, || {
                        format!("{side}: {verdict:?} {flags:?}, proposed {is_proposed}")
                    });
                }
            }
        }
    }
}

/// Reads a serialised output; its script is shorter than 2^16 bytes.
pub(crate) fn read_output(raw: &[u8]) -> TxOut<'_> {
    let (value, rest) = raw.split_first_chunk().expect("a value");
    let ([0xfd, _, _, script_pubkey @ ..] | [_, script_pubkey @ ..]) = rest else {
        panic!("an output without a script");
    };
    TxOut { value: i64::from_le_bytes(*value), script_pubkey }
}

/// The transaction with input script and witness of one input replaced.
fn with_input(tx: Tx<'_>, index: usize, script_sig: &[u8], witness: &[Vec<u8>]) -> Transaction {
    let mut out = TxBuilder::new(tx.version()).lock_time(tx.lock_time());
    for (at, input) in tx.inputs().enumerate() {
        let (script_sig, items) =
            if at == index { (script_sig, witness) } else { (input.script_sig, &[][..]) };
        out = out.spend(input.prevout, script_sig, input.sequence);
        if !witness.is_empty() {
            out = out.witness(&items.iter().map(Vec::as_slice).collect::<Vec<_>>());
        }
    }
    tx.outputs().fold(out, |out, output| out.output(output.value, output.script_pubkey)).build()
}
