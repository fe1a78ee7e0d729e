//! Compares verdicts of Assay's engine and Bitcoin Cash Node on random transactions and blocks.
//!
//! Each case is a transaction that spends outputs locked by random programs (`program.rs`): arithmetic at the ends of the range,
//! introspection, strings, lock times, signatures of both kinds, and mutations of scripts and transactions. Both nodes judge it
//! as an offered transaction, where the reason names the script error, and in a block, where policy does not apply.

mod chain;
mod keys;
mod program;
mod report;
mod spend;

use std::path::Path;
use std::sync::Arc;

use anyhow::{Context as _, Result, bail};
use assay_consensus::params::ChainParams;
use assay_engine::{Config, Engine, SubmitOutcome, TestAccept, TxRejectCode};
use assay_lab::plan::TargetSpec;
use assay_lab::reference::{Answer, Reference};
use assay_wire::{Block, Encoding, OutPoint, Txid};

use self::chain::{BASE, Chain};
use self::report::{BLOCK, TIP, TRANSACTION, Tally};
use self::spend::Case;
use crate::{cannot_use, open_engine, temporary_folder};
use assay_bench::Progress;
use assay_bench::options::AgreementOptions;
use assay_report::record::Record;
use assay_report::stats::random::SplitMix64;

/// Cases per round: their coins are created in one block, and requests form one batch.
const ROUND: u64 = 250;
/// One in this many blocks is mutated as a whole.
const CHANGED_BLOCKS: u64 = 25;

struct DifferentialRun {
    engine: Engine,
    reference: Reference,
    chain: Chain,
    random: SplitMix64,
    tally: Tally,
}

/// Compares in a temporary folder; the record notes disagreements.
pub(crate) fn run(options: &AgreementOptions, progress: &dyn Progress) -> Result<Record> {
    let target: TargetSpec = options.target.parse()?;
    let dir = temporary_folder()?;
    let params = crate::chain("bch-regtest");
    let engine = open(&dir.path().join("ours"), &params)?;
    let folder = dir.path().join("theirs");
    std::fs::create_dir(&folder).with_context(|| cannot_use(&folder))?;
    let log = dir.path().join("theirs.log");
    let reference = Reference::start_bchn(&target, params.block_bytes_max(), &folder, &log)?;
    let (version, command) = (reference.version().to_owned(), reference.command().join(" "));
    let (chain, random) = (Chain::new(&params), SplitMix64::new(options.seed));
    let mut run = DifferentialRun { engine, reference, chain, random, tally: Tally::default() };
    progress.begin("base chain", 1);
    run.base()?;
    let mut left = options.cases.get();
    progress.begin("cases", left.div_ceil(ROUND));
    while left > 0 {
        let cases = left.min(ROUND);
        run.round(cases as usize)?;
        left -= cases;
        progress.step();
    }
    run.reference.stop()?;
    let mut record = run.tally.record();
    record.set("reference", version);
    record.set("command of the reference", command);
    record.set("seed", options.seed);
    Ok(record)
}

fn open(dir: &Path, params: &ChainParams) -> Result<Engine> {
    let mut config = Config::new(dir, Arc::new(params.clone()));
    config.threads = 1;
    config.persist_mempool = false;
    config.min_relay_fee_sat_per_kvb = 1;
    config.policy.require_standard = false;
    open_engine(config)
}

impl DifferentialRun {
    fn base(&mut self) -> Result<()> {
        let mut blocks = Vec::new();
        for _ in 0..BASE {
            let block = self.chain.base_block();
            self.chain.connect(&block);
            blocks.push(block);
        }
        self.accept(&blocks)
    }

    fn accept(&self, blocks: &[Vec<u8>]) -> Result<()> {
        let ours: Vec<String> = blocks.iter().map(|block| self.our_block(block)).collect();
        let theirs = self.their_blocks(blocks)?;
        let first = self.chain.tip.height + 1 - blocks.len() as u32;
        for (height, (ours, theirs)) in (first..).zip(ours.into_iter().zip(theirs)) {
            if ours != ACCEPTED || theirs != ACCEPTED {
                bail!(
                    "block {height} of the comparison's own chain: ours {ours}, the other {theirs}"
                );
            }
        }
        Ok(())
    }

    fn round(&mut self, count: usize) -> Result<()> {
        let cases: Vec<Case> = (0..count).map(|_| Case::random(&mut self.random)).collect();
        let locks: Vec<_> = cases.iter().flat_map(Case::locks).collect();
        let (block, txid) = self.chain.funding(&locks);
        self.chain.connect(&block);
        self.accept(&[block])?;
        let txs = self.spends(&cases, txid);
        self.offer(&txs)?;
        self.confirm(&txs)
    }

    fn spends(&mut self, cases: &[Case], txid: Txid) -> Vec<Vec<u8>> {
        let mut vout = 0;
        cases
            .iter()
            .map(|case| {
                let next = vout + case.programs.len() as u32;
                let prevouts: Vec<OutPoint> =
                    (vout..next).map(|vout| OutPoint { txid, vout }).collect();
                vout = next;
                case.spend(&mut self.random, &prevouts)
            })
            .collect()
    }

    /// Offers each transaction to both without admitting it.
    fn offer(&mut self, txs: &[Vec<u8>]) -> Result<()> {
        let questions: Vec<String> =
            txs.iter().map(|tx| format!(r#"[["{}"],true]"#, faster_hex::hex_string(tx))).collect();
        let theirs = self.reference.ask("testmempoolaccept", &questions)?;
        for (tx, theirs) in txs.iter().zip(theirs) {
            let ours = self.engine.mempool().test_accept(vec![tx.clone()], None);
            let ours = ours.first().map_or_else(String::new, our_transaction);
            let bytes = || faster_hex::hex_string(tx);
            self.tally.compare(TRANSACTION, &ours, &their_transaction(theirs), bytes);
        }
        Ok(())
    }

    /// Submits each transaction in a block on the tip; a valid block becomes the tip.
    fn confirm(&mut self, txs: &[Vec<u8>]) -> Result<()> {
        let mut blocks = Vec::with_capacity(txs.len());
        let mut ours = Vec::with_capacity(txs.len());
        for tx in txs {
            let mut block = self.chain.candidate(tx);
            if self.random.below(CHANGED_BLOCKS) == 0 {
                program::mutate(&mut self.random, &mut block);
            }
            let verdict = self.our_block(&block);
            if verdict == ACCEPTED {
                self.chain.connect(&block);
            }
            ours.push(verdict);
            blocks.push(block);
        }
        for ((block, ours), theirs) in blocks.iter().zip(ours).zip(self.their_blocks(&blocks)?) {
            self.tally.compare(BLOCK, &ours, &theirs, || faster_hex::hex_string(block));
        }
        let tips = self.reference.ask("getbestblockhash", &["[]".to_owned()])?;
        let theirs = tips.into_iter().next().and_then(Result::ok);
        let theirs = theirs.and_then(|tip| tip.as_str().map(str::to_owned)).unwrap_or_default();
        let height = || self.chain.tip.height.to_string();
        self.tally.compare(TIP, &self.chain.tip.hash.to_string(), &theirs, height);
        Ok(())
    }

    fn our_block(&self, block: &[u8]) -> String {
        match self.engine.blocks().submit(block.to_vec()) {
            SubmitOutcome::Accepted => ACCEPTED.to_owned(),
            SubmitOutcome::Duplicate => "duplicate".to_owned(),
            SubmitOutcome::DuplicateInvalid => "duplicate-invalid".to_owned(),
            SubmitOutcome::DuplicateInconclusive => "duplicate-inconclusive".to_owned(),
            SubmitOutcome::Inconclusive => "inconclusive".to_owned(),
            // BCHN's RPC checks the first transaction before validation.
            SubmitOutcome::Rejected { .. } if lacks_coinbase(block) => NO_COINBASE.to_owned(),
            SubmitOutcome::Rejected { reason, .. } => reason,
            SubmitOutcome::Undecodable(_) => UNDECODABLE.to_owned(),
            SubmitOutcome::Failed(error) => format!("failed: {error}"),
        }
    }

    fn their_blocks(&self, blocks: &[Vec<u8>]) -> Result<Vec<String>> {
        let questions: Vec<String> = blocks
            .iter()
            .map(|block| format!(r#"["{}"]"#, faster_hex::hex_string(block)))
            .collect();
        let answers = self.reference.ask("submitblock", &questions)?;
        let verdict = |answer: Answer| match answer {
            Ok(verdict) => verdict.as_str().unwrap_or(ACCEPTED).to_owned(),
            Err((DESERIALIZATION_ERROR, message)) if message == NO_COINBASE => message,
            Err((DESERIALIZATION_ERROR, _)) => UNDECODABLE.to_owned(),
            Err((code, message)) => format!("error {code}: {message}"),
        };
        Ok(answers.into_iter().map(verdict).collect())
    }
}

const ACCEPTED: &str = "accepted";
const UNDECODABLE: &str = "undecodable";
/// JSON-RPC error of bytes that are no block or transaction.
const DESERIALIZATION_ERROR: i64 = -22;
const MISSING_INPUTS: &str = "missing-inputs";
/// Error of BCHN's `submitblock` for such a block.
const NO_COINBASE: &str = "Block does not start with a coinbase";

fn lacks_coinbase(raw: &[u8]) -> bool {
    Block::parse_prefix(raw.to_vec(), Encoding::Legacy)
        .is_ok_and(|block| block.tx_count() == 0 || !block.tx(0).is_coinbase())
}

fn our_transaction(verdict: &TestAccept) -> String {
    match &verdict.reject {
        None => ACCEPTED.to_owned(),
        Some(reject) => match reject.code {
            TxRejectCode::Decode => UNDECODABLE.to_owned(),
            TxRejectCode::MissingInputs => MISSING_INPUTS.to_owned(),
            _ => reject.reason.clone(),
        },
    }
}

/// BCHN prefixes the reason with a code.
fn their_transaction(answer: Answer) -> String {
    let result = match answer {
        Ok(result) => result,
        Err((DESERIALIZATION_ERROR, _)) => return UNDECODABLE.to_owned(),
        Err((code, message)) => return format!("error {code}: {message}"),
    };
    let verdict = &result[0];
    if verdict["allowed"] == true {
        return ACCEPTED.to_owned();
    }
    let reason = verdict["reject-reason"].as_str().unwrap_or_default();
    match reason.split_once(": ") {
        Some((code, reason)) if code.parse::<u32>().is_ok() => reason.to_owned(),
        _ => reason.to_owned(),
    }
}
