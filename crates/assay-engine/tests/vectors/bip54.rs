//! BIP-0054: header chains, coinbases, transactions of about 64 bytes, and legacy signature operations.
//!
//! Every case is checked with the proposal active from the first block on, and again under current rules, which all cases satisfy
//! except those listed in the files. `sigops.json` has 5 MB and is missing from some copies of the repository.

use assay_consensus::block::{BlockRules, check_block, contextual_check_block};
use assay_consensus::chain::HeaderFacts;
use assay_consensus::header::{HeaderError, check_header, contextual_check_header};
use assay_consensus::params::ChainParams;
use assay_consensus::script::Flags;
use assay_consensus::sigops::{MAX_TX_LEGACY_SIGOPS, tx_legacy_sigops};
use assay_consensus::tx::{TxError, check_transaction};
use assay_wire::{Block, Header, TxOut};
use serde_json::Value;

use crate::data::{self, array, bytes, text};
use crate::outcome::{Outcome, Report, Run};
use crate::taproot::read_output;
use crate::verify::verify_all;

pub(crate) fn run(report: &mut Report) {
    let files: [(&str, Run); 4] = [
        ("timestamps.json", timestamps),
        ("coinbases.json", coinbases),
        ("txsize.json", sizes),
        ("sigops.json", sigops),
    ];
    for (file, run) in files {
        let json = || data::bips_json(&format!("bip-0054/test_vectors/{file}"));
        report.file(&format!("BIP54 {file}"), json, run);
    }
}

/// The main network, with the proposal from the first block on, or without it.
fn main_chain(proposed: bool) -> ChainParams {
    let params = ChainParams::by_name("main").expect("main is known");
    let height = if proposed { 0 } else { u32::MAX };
    params.with_activation_height("bip54", height).expect("bip54 can be moved")
}

/// Consecutive headers, and the first error under each set of rules.
#[derive(Clone)]
struct Headers {
    facts: Vec<HeaderFacts>,
    today: Result<(), HeaderError>,
    proposed: Result<(), HeaderError>,
}

impl Headers {
    fn push(&mut self, params: [&ChainParams; 2], header: &Header) {
        let hash = header.hash();
        if !self.facts.is_empty() {
            // No header of the files is too far in the future: each is checked with its own time as the clock.
            let check = |params: &ChainParams| {
                check_header(params, header, &hash)?;
                contextual_check_header(params, self.facts.as_slice(), header, header.time.into())
            };
            self.today = self.today.clone().and_then(|()| check(params[0]));
            self.proposed = self.proposed.clone().and_then(|()| check(params[1]));
        }
        self.facts.push(HeaderFacts { hash, time: header.time, bits: header.bits });
    }
}

/// A tree of header chains from the genesis block on: inner nodes have headers and extensions, leaves headers and a verdict.
fn timestamps(json: &Value, outcome: &mut Outcome) {
    let (today, proposed) = (main_chain(false), main_chain(true));
    let root = Headers { facts: Vec::new(), today: Ok(()), proposed: Ok(()) };
    visit(json, root, [&today, &proposed], outcome);
}

fn visit(node: &Value, mut chain: Headers, params: [&ChainParams; 2], outcome: &mut Outcome) {
    for header in array(&node["block_headers"]) {
        let header = Header::parse(&bytes(header).try_into().expect("80 bytes"));
        chain.push(params, &header);
    }
    for child in array(&node["extensions"]) {
        visit(child, chain.clone(), params, outcome);
    }
    let Some(valid) = node["valid"].as_bool() else { return };
    outcome.case(text(&node["comment"]), |log| {
        log.check(chain.today.is_ok(), || format!("today {:?}", chain.today));
        log.check(chain.proposed.is_ok() == valid, || format!("proposed {:?}", chain.proposed));
    });
}

/// Chains of blocks from the genesis block on.
fn coinbases(json: &Value, outcome: &mut Outcome) {
    for case in array(json) {
        outcome.case(text(&case["comment"]), |log| {
            let valid = case["valid"].as_bool().expect("a verdict");
            let chain = array(&case["block_chain"]);
            let reason = |proposed| connect(&main_chain(proposed), chain);
            let (today, proposed) = (reason(false), reason(true));
            log.check(proposed.is_empty() == valid, || format!("gave {proposed:?}"));
            // One case has a lock time that current rules reject as well.
            let known = today.is_empty() || today == "bad-txns-nonfinal";
            log.check(known, || format!("today {today:?}"));
        });
    }
}

/// The reject reason of a chain of blocks, empty if valid: every rule that needs no coins.
fn connect(params: &ChainParams, chain: &[Value]) -> String {
    let mut facts: Vec<HeaderFacts> = Vec::new();
    for raw in chain {
        let block = Block::parse(bytes(raw), params.encoding).expect("a block");
        let (header, hash) = (block.header(), block.hash());
        let txids: Vec<_> = block.txs().map(|tx| tx.txid()).collect();
        let wtxids: Vec<_> = block.txs().map(|tx| tx.wtxid()).collect();
        let verdict = check_header(params, header, &hash)
            .map_err(Into::into)
            .and_then(|()| check_block(params, &block, &txids));
        let verdict = verdict.and_then(|()| {
            if facts.is_empty() {
                return Ok(());
            }
            contextual_check_header(params, facts.as_slice(), header, header.time.into())?;
            let rules = BlockRules::new(params, facts.as_slice(), header, &hash);
            contextual_check_block(&rules, &block, &txids, &wtxids)
        });
        if let Err(error) = verdict {
            return error.reject_reason().into_owned();
        }
        facts.push(HeaderFacts { hash, time: header.time, bits: header.bits });
    }
    String::new()
}

/// Rules under which all lock times have passed.
fn late_rules(proposed: bool) -> BlockRules {
    let params = main_chain(proposed);
    let genesis = HeaderFacts { hash: params.genesis_hash, time: 1_231_006_505, bits: 0x1d00_ffff };
    let rules = BlockRules::next(&params, [genesis].as_slice());
    BlockRules { height: 500_000_000, lock_time_cutoff_s: i64::MAX, ..rules }
}

fn sizes(json: &Value, outcome: &mut Outcome) {
    for case in array(json) {
        outcome.case(text(&case["comment"]), |log| {
            let valid = case["valid"].as_bool().expect("a verdict");
            let tx = data::transaction(&case["tx"]);
            log.check(check_transaction(tx.view()).is_ok(), || "invalid by itself".into());
            let verdict = |proposed| late_rules(proposed).check_tx(tx.view());
            log.check(verdict(false).is_ok(), || "invalid today".into());
            let expected = if valid { Ok(()) } else { Err(TxError::MerkleNodeSize { bytes: 64 }) };
            let given = verdict(true);
            log.check(given == expected, || format!("gave {given:?}"));
        });
    }
}

/// Transactions with their spent outputs. Invalid ones are rejected by the proposal's rule, or by a script.
fn sigops(json: &Value, outcome: &mut Outcome) {
    outcome.cases_in_parallel(
        array(json),
        |case| text(&case["comment"]).to_owned(),
        |case, log| {
            let valid = case["valid"].as_bool().expect("a verdict");
            let tx = data::transaction(&case["tx"]);
            let outputs: Vec<Vec<u8>> = array(&case["spent_outputs"]).iter().map(bytes).collect();
            let spent: Vec<TxOut<'_>> = outputs.iter().map(|raw| read_output(raw)).collect();
            let sigops = tx_legacy_sigops(tx.view(), spent.iter().map(|out| out.script_pubkey));
            let scripts = || verify_all(&tx, &spent, Flags::BITCOIN_BLOCK).is_ok();
            let given = sigops <= MAX_TX_LEGACY_SIGOPS && (valid || scripts());
            log.check(given == valid, || format!("{sigops} operations"));
        },
    );
}
