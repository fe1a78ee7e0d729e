//! Every fuzz target, in one program: it is linked, and its dependencies are instrumented, once.
//!
//! `fuzz --target=NAME` is a program of libFuzzer, whose arguments follow; libFuzzer itself ignores arguments with two hyphens.
//! `fuzz --list` prints the names, and `fuzz --seeds=FOLDER` writes the first inputs of every target.

#![no_main]

mod block;
mod block_files;
mod curves;
mod hashes;
mod input;
mod lab;
mod messages;
mod numbers;
mod peer;
mod private;
mod script;
mod seeds;
mod signature;
mod slh_dsa;
mod store;
mod transport;

use std::process::exit;
use std::sync::OnceLock;

type Target = fn(&[u8]);

const TARGETS: [(&str, Target); 37] = [
    ("block", block::block),
    ("bloom", private::bloom),
    ("compact", numbers::compact),
    ("core_files", block_files::core_files),
    ("curves", curves::curves),
    ("electrum", private::electrum),
    ("filter", block::filter),
    ("hashes", hashes::hashes),
    ("hints_file", store::hints_file),
    ("ids", block::ids),
    ("index", private::index),
    ("jsonrpc", private::jsonrpc),
    ("ledger", lab::ledger),
    ("logs", lab::logs),
    ("mempool_file", private::mempool_file),
    ("message", messages::message),
    ("muhash", hashes::muhash),
    ("numbers", numbers::numbers),
    ("p2p", messages::p2p),
    ("peer", peer::peer),
    ("peer_files", private::peer_files),
    ("plan", lab::plan),
    ("prevouts", store::prevouts),
    ("psbt", private::psbt),
    ("recipe", lab::recipe),
    ("script", script::script),
    ("script_text", private::script_text),
    ("shard", store::shard),
    ("signature", signature::signature),
    ("slh_dsa", slh_dsa::slh_dsa),
    ("spent_files", store::spent_files),
    ("stats", block_files::stats),
    ("store", store::store),
    ("transaction", block::transaction),
    ("transport", transport::transport),
    ("undo", store::undo),
    ("utxo_snapshot", store::utxo_snapshot),
];

static CHOSEN: OnceLock<Target> = OnceLock::new();

libfuzzer_sys::fuzz_target!(
    init: choose(),
    |data: &[u8]| (CHOSEN.get().expect("chosen before the first input"))(data)
);

/// Chooses the target, or handles another argument and ends the process.
fn choose() {
    for argument in std::env::args().skip(1) {
        if argument == "--list" {
            TARGETS.iter().for_each(|(name, _)| println!("{name}"));
            exit(0);
        }
        if let Some(folder) = argument.strip_prefix("--seeds=") {
            seeds::write(folder.into());
            exit(0);
        }
        if let Some(wanted) = argument.strip_prefix("--target=") {
            let Some((_, target)) = TARGETS.iter().find(|(name, _)| *name == wanted) else {
                fail(&format!("there is no target `{wanted}`"));
            };
            CHOSEN.get_or_init(|| *target);
        }
    }
    if CHOSEN.get().is_none() {
        fail("no target is given");
    }
}

fn fail(error: &str) -> ! {
    let names: Vec<&str> = TARGETS.iter().map(|(name, _)| *name).collect();
    eprintln!("fuzz: {error}: --target=NAME, of {}", names.join(", "));
    exit(2)
}
