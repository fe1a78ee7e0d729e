//! A block full of identical inputs.

use anyhow::Result;
use assay_consensus::script::RuleSet;
use assay_consensus::sigops::count_sigops;
use assay_engine::{Block, BlockVerifier};
use assay_wire::{Encoding, Transaction, TxBuilder, TxOut, encode};

pub(crate) use super::preparation::{BLOCK_WEIGHT, SIGOP_COST_MAX};
use super::preparation::{Preparation, VALUE, alone};
use crate::spend::Spend;
use crate::{chain, rejected};

/// Weight of everything but inputs: header, coinbase, and the rest of a transaction, rounded up.
pub(crate) const OVERHEAD: f64 = 1_600.0;

/// Weight of a transaction without its inputs, rounded up.
const TX_OVERHEAD: u64 = 100;

/// Height of the block; on regtest all rules are active from the first.
pub(crate) const HEIGHT: u32 = 200;

/// Distribution of the inputs over transactions.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Split {
    /// Maximum number of inputs of a transaction.
    pub(crate) inputs_max: usize,
    /// True for a single transaction padded with an output, which makes its messages long.
    pub(crate) is_padded: bool,
}

impl Split {
    /// All inputs in one transaction.
    pub(crate) const NONE: Self = Self { inputs_max: usize::MAX, is_padded: false };
}

/// A block, and the outputs that its inputs spend.
#[derive(Debug)]
pub(crate) struct FullBlock {
    pub(crate) raw: Vec<u8>,
    /// Output script of every input.
    pub(crate) script_pubkey: Vec<u8>,
    pub(crate) inputs: usize,
    pub(crate) weight: u64,
    /// All but the coinbase.
    txs: Vec<Transaction>,
}

/// A block of as many of these inputs as fit into `weight`.
pub(crate) fn of_inputs(spend: &Spend, weight: u32, split: Split) -> FullBlock {
    let view = spend.tx.view();
    let witness: Vec<&[u8]> =
        if view.has_witness() { view.witness(0).iter().collect() } else { Vec::new() };
    let room = (f64::from(weight) - OVERHEAD).max(0.0) as u64;
    let each = spend.input_weight();
    let mut inputs = (room / each).max(1) as usize;
    let mut pad = 0;
    if split.is_padded {
        inputs = inputs.min(split.inputs_max);
        // Four weight units per byte; the length of an output script has no limit of its own.
        pad = ((room - (inputs as u64 * each).min(room)) / 4) as usize;
    } else if inputs > split.inputs_max {
        let of_one = TX_OVERHEAD + each * split.inputs_max as u64;
        inputs = (room / of_one).max(1) as usize * split.inputs_max;
    }
    let mut txs = Vec::new();
    let mut outputs = Preparation::new(&spend.script_pubkey);
    let mut first = 0;
    while first < inputs {
        let last = inputs.min(first.saturating_add(split.inputs_max));
        let mut tx = unsigned(&mut outputs, spend, first..last, pad);
        if !witness.is_empty() {
            tx = (first..last).fold(tx, |tx, _| tx.witness(&witness));
        }
        txs.push(tx.build());
        first = last;
    }
    of_transactions(txs, spend.script_pubkey.clone(), inputs)
}

pub(crate) fn of_transactions(
    txs: Vec<Transaction>,
    script_pubkey: Vec<u8>,
    inputs: usize,
) -> FullBlock {
    let raw = alone(&txs, HEIGHT);
    let block = Block::parse(raw.clone(), Encoding::Segwit).expect("written as blocks are");
    FullBlock { raw, script_pubkey, inputs, weight: block.weight() as u64, txs }
}

/// Transaction without witnesses. Every input spends a distinct output with the same script and two satoshi.
pub(super) fn unsigned(
    outputs: &mut Preparation<'_>,
    spend: &Spend,
    inputs: std::ops::Range<usize>,
    pad: usize,
) -> TxBuilder {
    let view = spend.tx.view();
    let script_sig = view.input(0).script_sig;
    let tx = TxBuilder::new(2).output(1, &vec![0x51; pad.max(1)]);
    inputs.fold(tx, |tx, number| tx.spend(outputs.outpoint(number), script_sig, u32::MAX))
}

impl FullBlock {
    pub(crate) fn spent(&self) -> Vec<TxOut<'_>> {
        vec![TxOut { value: VALUE, script_pubkey: &self.script_pubkey }; self.inputs]
    }

    /// Number of blocks needed to create the spent outputs, by weight or by sigops, which count in the creating transactions.
    pub(crate) fn preparation(&self) -> f64 {
        let script = self.script_pubkey.len();
        let each = 8 + encode::compact_size_len(script as u64) + script;
        let weight = 4 * each as u64;
        let sigop_cost = 4 * count_sigops(&self.script_pubkey, false);
        let by_weight = weight as f64 / f64::from(BLOCK_WEIGHT);
        let by_sigops = sigop_cost as f64 / f64::from(SIGOP_COST_MAX);
        by_weight.max(by_sigops) * self.inputs as f64
    }

    /// The block as the engine parses it.
    pub(crate) fn parsed(&self) -> Result<Block> {
        Block::parse(self.raw.clone(), Encoding::Segwit).map_err(|error| rejected(HEIGHT, error))
    }

    /// Passes `submit` the blocks that create the spent outputs, then this block, and returns the result of the last call.
    pub(super) fn give(&self, mut submit: impl FnMut(&[u8]) -> Result<f64>) -> Result<f64> {
        let mut last = 0.0;
        for raw in Preparation::new(&self.script_pubkey).chain(self.inputs, &self.txs) {
            last = submit(&raw)?;
        }
        Ok(last)
    }

    /// Verifies the block by every rule that needs no further context.
    pub(crate) fn verify(&self, rules: &RuleSet) -> Result<()> {
        verify(&self.parsed()?, &self.spent(), rules)
    }
}

pub(crate) fn verify(block: &Block, spent: &[TxOut<'_>], rules: &RuleSet) -> Result<()> {
    let params = chain("regtest");
    let verifier = BlockVerifier::new(&params, block, HEIGHT, None).with_rules(*rules);
    verifier.verify(spent).map(drop).map_err(|error| rejected(HEIGHT, error))
}

/// A block with the amount of work in its verification.
#[derive(Debug)]
pub(crate) struct Made {
    pub(crate) block: FullBlock,
    pub(crate) shape: String,
    pub(crate) checks: u64,
    /// Bytes of signature messages and of operands of hashing opcodes.
    pub(crate) hashed_bytes: u64,
    /// Bytes of elements copied by opcodes, in an implementation without sharing.
    pub(crate) copied_bytes: u64,
    /// True if another limit than weight bounds the class.
    pub(crate) is_all: bool,
}

pub(super) fn plain(block: FullBlock, shape: &str) -> Made {
    let shape = shape.to_owned();
    Made { block, shape, checks: 0, hashed_bytes: 0, copied_bytes: 0, is_all: false }
}

#[cfg(test)]
mod tests {
    use super::*;
    use assay_bench::plan::Wrap;

    #[test]
    fn blocks_are_valid_and_have_the_requested_weight() {
        for wrap in [Wrap::P2wsh, Wrap::Tapscript] {
            let spend = Spend::new(wrap, &[0xa8, 0x75, 0x51], vec![vec![1; 600]]);
            let block = of_inputs(&spend, 40_000, Split::NONE);
            assert!(
                block.inputs > 20 && (38_000..40_000).contains(&block.weight),
                "{}",
                block.weight
            );
            let parsed = Block::parse(block.raw.clone(), Encoding::Segwit).expect("a block");
            assert_eq!(parsed.weight() as u64, block.weight);
            let rules = RuleSet::by_name("report-8000").expect("a name");
            block.verify(&rules).expect("valid");
            let error = block.verify(&RuleSet::TODAY).expect_err("too large an element");
            assert!(error.to_string().contains("Push value size"), "{error}");
        }
    }
}
