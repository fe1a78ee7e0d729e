//! btcd's block tests (package `blockchain/fullblocktests`): whole blocks, valid or with one fault each, with branches and
//! reorgs, as written by its generator.
//!
//! The generator is `peers/btcd`; it runs if there is a Go compiler and its modules have been fetched. Its blocks have the
//! current time, so they are not stored as a file.
//!
//! A block that btcd rejects must be rejected for the same fault: [`reasons`] maps btcd's codes to Bitcoin Core's reasons. Two
//! differences are by design:
//!
//! - btcd stores blocks without parents and checks them with the parent. Here the caller must do that, so this module keeps them:
//!   the verdict of a step covers the block and all blocks that waited for it.
//! - Core, and so this engine, reports a block as inconclusive if an earlier block of its branch is invalid, and if it is on a
//!   shorter branch and only its coins could show that it is invalid. btcd rejects both. So an inconclusive block is preferred to
//!   the tip, which makes the engine try it, and then must be known as invalid.

use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use assay_consensus::params::ChainParams;
use assay_engine::{ChainTipStatus, Config, Engine, SubmitOutcome};
use assay_wire::{BlockHash, OutPoint};
use serde_json::Value;

use crate::data::{bytes, text};
use crate::outcome::{Case, Outcome, Report};

pub(crate) fn run(report: &mut Report) {
    report.file("btcd: fullblocktests", generate, |steps, outcome| replay(steps, outcome));
}

/// Output of the generator; nothing is fetched.
fn generate() -> Option<Vec<Value>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../peers/btcd");
    let output = Command::new("go")
        .args(["run", "."])
        .current_dir(folder)
        .env("GOPROXY", "off")
        .env("GOFLAGS", "-mod=readonly")
        .output()
        .ok()?;
    if !output.status.success() {
        return None;
    }
    let lines = String::from_utf8(output.stdout).expect("text");
    Some(lines.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect())
}

/// Its chain: regtest, without the soft forks activated by signals.
fn params() -> ChainParams {
    let regtest = ChainParams::by_name("regtest").expect("a known chain");
    ["csv", "segwit"].into_iter().fold(regtest, |params, fork| {
        params.with_activation_height(fork, u32::MAX).expect("the fork can be moved")
    })
}

/// Bitcoin Core's reject reasons for a fault of btcd.
fn reasons(code: &str) -> &'static [&'static str] {
    match code {
        "ErrBadCoinbaseHeight" => &["bad-cb-height"],
        "ErrBadCoinbaseScriptLen" => &["bad-cb-length"],
        "ErrBadCoinbaseValue" => &["bad-cb-amount"],
        "ErrBadMerkleRoot" => &["bad-txnmrklroot"],
        "ErrBlockTooBig" | "ErrNoTransactions" => &["bad-blk-length"],
        // Core detects a repeated transaction in the merkle tree or by its spent inputs.
        "ErrDuplicateTx" => &["bad-txns-duplicate", "bad-txns-inputs-missingorspent"],
        "ErrFirstTxNotCoinbase" => &["bad-cb-missing"],
        "ErrHighHash" => &["high-hash"],
        "ErrImmatureSpend" => &["bad-txns-premature-spend-of-coinbase"],
        "ErrMissingTxOut" => &["bad-txns-inputs-missingorspent"],
        "ErrMultipleCoinbases" => &["bad-cb-multiple"],
        "ErrOverwriteTx" => &["bad-txns-BIP30"],
        "ErrScriptValidation" => &["block-script-verify-flag-failed"],
        "ErrSpendTooHigh" => &["bad-txns-in-belowout"],
        "ErrTimeTooNew" => &["time-too-new"],
        "ErrTimeTooOld" => &["time-too-old"],
        "ErrTooManySigOps" => &["bad-blk-sigops"],
        // Core first checks the work against the header's own target.
        "ErrUnexpectedDifficulty" => &["bad-diffbits", "high-hash"],
        "ErrUnfinalizedTx" => &["bad-txns-nonfinal"],
        _ => &[],
    }
}

/// An engine, and blocks with unknown parents.
struct Node {
    engine: Engine,
    waiting: Vec<Vec<u8>>,
}

impl Node {
    /// Submits a block and then all that waited for it; returns every result.
    fn submit(&mut self, raw: Vec<u8>) -> Vec<SubmitOutcome> {
        let mut answers = vec![self.engine.blocks().submit(raw.clone())];
        if is_orphan(&answers[0]) {
            self.waiting.push(raw);
            return answers;
        }
        for raw in std::mem::take(&mut self.waiting) {
            let answer = self.engine.blocks().submit(raw.clone());
            if is_orphan(&answer) {
                self.waiting.push(raw);
            } else {
                answers.push(answer);
            }
        }
        answers
    }

    /// True if the block is invalid, at the latest when it is preferred.
    fn fails_when_tried(&self, raw: &[u8]) -> bool {
        let hash = BlockHash(assay_hash::sha256d(&raw[..80]));
        self.engine.chain().precious_block(&hash).expect("the block is known");
        let tips = self.engine.chain().tips();
        tips.iter().any(|tip| tip.hash == hash && tip.status == ChainTipStatus::Invalid)
    }
}

fn is_orphan(answer: &SubmitOutcome) -> bool {
    matches!(answer, SubmitOutcome::Rejected { reason, .. } if reason == "prev-blk-not-found")
}

fn replay(steps: &[Value], outcome: &mut Outcome) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let mut config = Config::new(folder.path(), Arc::new(params()));
    config.script_batch = Some(100);
    let engine = Engine::open(config).expect("an engine");
    let mut node = Node { engine, waiting: Vec::new() };
    for step in steps {
        let (kind, name) = (text(&step["kind"]), text(&step["name"]));
        outcome.case(&format!("{name} {kind}"), |log| {
            let block = || bytes(&step["block"]);
            match kind {
                "accepted" => accepted(&node.submit(block()), step, log),
                "rejected" => {
                    let answers = node.submit(block());
                    let code = text(&step["code"]);
                    let right = answers.iter().any(|answer| is_rejected(answer, code))
                        || matches!(answers[..], [SubmitOutcome::Inconclusive])
                            && node.fails_when_tried(&block());
                    log.check(right, || format!("{code}: {answers:?}"));
                }
                "orphan_or_rejected" => {
                    let answer = node.engine.blocks().submit(block());
                    let right = matches!(answer, SubmitOutcome::Rejected { .. });
                    log.check(right, || format!("{answer:?}"));
                }
                "undecodable" => {
                    let answer = node.engine.blocks().submit(block());
                    let right = matches!(answer, SubmitOutcome::Undecodable(_));
                    log.check(right, || format!("{answer:?}"));
                }
                "tip" => {
                    let tip = node.engine.chain().tip();
                    let expected: BlockHash = text(&step["hash"]).parse().expect("a hash");
                    log.check(tip.hash == expected, || format!("{tip:?}"));
                }
                "output" => output(&node.engine, step, log),
                other => panic!("{other} is no kind of step"),
            }
        });
    }
}

fn accepted(answers: &[SubmitOutcome], step: &Value, log: &mut Case) {
    let right = match answers {
        [orphan] if is_orphan(orphan) => step["orphan"] == true,
        [SubmitOutcome::Inconclusive] => step["main_chain"] != true && step["orphan"] != true,
        all => {
            let accepted = |answer: &SubmitOutcome| matches!(answer, SubmitOutcome::Accepted);
            step["main_chain"] == true && all.iter().all(accepted)
        }
    };
    log.check(right, || format!("{answers:?}"));
}

fn is_rejected(answer: &SubmitOutcome, code: &str) -> bool {
    match answer {
        SubmitOutcome::Rejected { reason, .. } => {
            reasons(code).iter().any(|expected| reason.starts_with(expected))
        }
        _ => false,
    }
}

/// An output just after a block was disconnected. Other branches are invalidated, so that none takes its place.
fn output(engine: &Engine, step: &Value, log: &mut Case) {
    let hash: BlockHash = text(&step["hash"]).parse().expect("a hash");
    let (txid, vout) = text(&step["output"]).split_once(':').expect("txid:index");
    let outpoint =
        OutPoint { txid: txid.parse().expect("a txid"), vout: vout.parse().expect("an index") };
    let parent_of =
        |hash: &BlockHash| engine.chain().entry(hash).expect("a known block").header.prev_block;
    let mut put_aside = Vec::new();
    for tip in engine.chain().tips() {
        if matches!(tip.status, ChainTipStatus::ValidFork | ChainTipStatus::ValidHeaders) {
            let first = (1..tip.branch_length).fold(tip.hash, |block, _| parent_of(&block));
            put_aside.push(first);
        }
    }
    put_aside.push(hash);
    for block in &put_aside {
        engine.chain().invalidate_block(block).expect("the block is taken off");
    }
    let below = engine.chain().tip().hash == parent_of(&hash);
    let coin = engine.chain().coin(&outpoint, false).expect("coins can be read");
    let unspent = step["unspent"] == true;
    log.check(below && coin.is_some() == unspent, || {
        format!("{:?} {coin:?}", engine.chain().tip())
    });
    // Back in the same order: of branches with equal work the active one was seen first.
    for block in put_aside.iter().rev() {
        engine.chain().reconsider_block(block).expect("the block is put back");
    }
}
