//! Trial blocks leave nothing behind: their failures do not affect other blocks.

use std::time::Duration;

use assay_engine::{
    Config, Engine, Selection, SubmitOutcome, TemplateOptions, TrialChecks, TrialError,
};
use assay_testkit::chain::TxBuilder;
use assay_wire::{Block, Encoding, OutPoint, Transaction};
use tempfile::TempDir;

use super::chain::accept;
use super::mint::{Mint, params};

/// Outputs whose scripts make 50 failing checks and drop the results. A transaction that spends them all is verified in parts
/// on every thread, so that a block behind it waits; their signature operations nearly fill a block.
const SIGNED_OUTPUTS: u32 = 390;

/// A push each of a DER signature of r = s = 1, and of the base point as key.
const SIGNATURE_AND_KEY: &str =
    "09300602010102010101210279be667ef9dcbbac55a06295ce870b07029bfcdb2dce28d959f2815b16f81798";

/// A chain whose tip has outputs with many signature checks, and two unspendable ones.
struct Case {
    _dir: TempDir,
    engine: Engine,
    mint: Mint,
    source: OutPoint,
}

impl Case {
    fn new(script_batch: Option<usize>) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let mut config = Config::new(dir.path(), params());
        (config.script_batch, config.threads, config.exact_near_tip) = (script_batch, 2, 0);
        let engine = Engine::open(config).unwrap();
        let mut mint = Mint::new();
        for raw in mint.branch(110, 0) {
            accept(&engine, raw);
        }
        let (coin, value) = mint.take_coin();
        let mut checks = [0x6e, 0xac, 0x75, 0xab].repeat(50);
        checks.extend([0x6d, 0x51]);
        let mut tx =
            TxBuilder::new(2).spend(coin, &assay_testkit::chain::SPEND_P2SH_TRUE, u32::MAX);
        for _ in 0..SIGNED_OUTPUTS {
            tx = tx.output(1000, &checks);
        }
        let tx =
            tx.output(1000, &[0]).output(1000, &[0]).output(value - 1_000_000, &[0x51]).build();
        let source = OutPoint { txid: tx.view().txid(), vout: 0 };
        accept(&engine, mint.block_of(&[tx]));
        Self { _dir: dir, engine, mint, source }
    }

    fn output(&self, vout: u32) -> OutPoint {
        OutPoint { vout, ..self.source }
    }

    /// Spends all outputs with signature checks: valid, and slow.
    fn slow(&self) -> Transaction {
        let script_sig = assay_testkit::hex::decode(SIGNATURE_AND_KEY);
        let inputs = (0..SIGNED_OUTPUTS).map(|vout| self.output(vout));
        inputs
            .fold(TxBuilder::new(2), |tx, prevout| tx.spend(prevout, &script_sig, u32::MAX))
            .output(0, &[0x6a])
            .build()
    }

    /// Spends an output whose script fails.
    fn failing(&self, vout: u32) -> Transaction {
        TxBuilder::new(2).spend(self.output(vout), &[], u32::MAX).output(0, &[0x6a]).build()
    }

    /// Proposes a block with a failing script and a coinbase that claims too much: the latter is checked before scripts.
    fn propose_bad(&self) {
        let mut mint = self.mint.clone();
        mint.salt = 1;
        let raw = mint.block_claiming(100 * 100_000_000, &[self.failing(SIGNED_OUTPUTS)]);
        let block = Block::parse(raw, Encoding::Segwit).unwrap();
        let checks = TrialChecks { work: true, merkle_root: true };
        let verdict = self.engine.mining().test_block(block, checks).unwrap();
        let Err(TrialError::Rule(error)) = verdict else { panic!("{verdict:?}") };
        assert_eq!(error.reject_reason(), "bad-cb-amount");
    }
}

/// Two blocks are connected in one pass after a proposal at the height of the first: the second has a failing script.
#[test]
fn scripts_of_real_blocks_are_verified_after_a_rejected_proposal() {
    for script_batch in [None, Some(8), Some(64), Some(4096)] {
        let mut case = Case::new(script_batch);
        let height = case.engine.chain().tip().height;
        let (slow, failing) = (case.slow(), case.failing(SIGNED_OUTPUTS + 1));
        case.propose_bad();
        let first = case.mint.block_of(&[slow]);
        let second = case.mint.block_of(&[failing]);
        let header = *Block::parse(first.clone(), Encoding::Segwit).unwrap().header();
        assert!(matches!(case.engine.blocks().submit_header(&header), SubmitOutcome::Inconclusive));
        let second_hash = Block::parse(second.clone(), Encoding::Segwit).unwrap().hash();
        assert!(matches!(case.engine.blocks().submit(second), SubmitOutcome::Inconclusive));
        assert!(matches!(case.engine.blocks().submit(first), SubmitOutcome::Accepted));
        let tip = case.engine.chain().wait_for(Some(Duration::ZERO), |tip| tip.height > height);
        assert_eq!(tip.height, height + 1, "batches of {script_batch:?}");
        let status = case.engine.mining().block_status(&second_hash);
        assert_eq!(status, Some("duplicate-invalid"), "batches of {script_batch:?}");
    }
}

/// A valid block after a failing proposal is valid, and so is one after a template.
#[test]
fn valid_blocks_are_accepted_after_rejected_proposals() {
    for script_batch in [None, Some(8), Some(4096)] {
        let mut case = Case::new(script_batch);
        for _ in 0..3 {
            case.propose_bad();
            let options =
                TemplateOptions { coinbase_script: vec![0x51], selection: Selection::Mempool };
            case.engine.mining().template(&options).unwrap();
            let raw = case.mint.block_of(&[]);
            accept(&case.engine, raw);
        }
        let slow = case.slow();
        case.propose_bad();
        let raw = case.mint.block_of(&[slow]);
        accept(&case.engine, raw);
    }
}
