//! Recipe of a chain of transactions with few to many inputs.

use assay_consensus::params::{COINBASE_MATURITY, MAX_BLOCK_SIGOPS_COST, MAX_BLOCK_WEIGHT};
use serde::Deserialize;

use super::{Blocks, MATURITY, RecipeError, amount_rules, check_head, enough, range, ranges};
use crate::{
    kind::{Bound, Kind},
    ledger::Series,
    network::{BLOCK_OVERHEAD_WEIGHT, DUST, Network},
};

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct WidthsFile {
    format: u64,
    pub(crate) name: String,
    pub(crate) chain: Network,
    pub(crate) end_time: u32,
    pub(crate) block_interval_s: u32,
    fee_sat_per_kb: u64,
    pub(crate) maturity: Blocks,
    pub(crate) fan_out: FanOut,
    pub(crate) widths: Widths,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct FanOut {
    pub(crate) outputs: u32,
    pub(crate) amount_min: u64,
    pub(crate) amount_span: u32,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Widths {
    pub(crate) series: Vec<Series>,
    pub(crate) inputs: Vec<u32>,
    pub(crate) inputs_per_block: u32,
    pub(crate) blocks: u32,
}

impl WidthsFile {
    pub(super) fn check(&self) -> Result<(), RecipeError> {
        check_head(self.format, &self.name, self.block_interval_s, self.fee_sat_per_kb)?;
        if self.chain != Network::Regtest {
            return Err(RecipeError::NotForChain {
                key: "widths",
                chain: self.chain.name(),
                reason: "its inputs share what they have in common, whatever they spend",
            });
        }
        let mature = u64::from(COINBASE_MATURITY);
        range(("maturity.blocks", self.maturity.blocks.into(), mature..=140, MATURITY))?;
        self.check_widths()?;
        self.check_fan_out()
    }

    fn check_widths(&self) -> Result<(), RecipeError> {
        let widths = &self.widths;
        let list = |key, value: String, rule| Err(RecipeError::List { key, value, rule });
        let repeats = |at: usize| widths.series[..at].contains(&widths.series[at]);
        if widths.series.is_empty() || (0..widths.series.len()).any(repeats) {
            let names: Vec<_> = widths.series.iter().map(|series| series.name()).collect();
            let rule = "name one or more of legacy, segwit and taproot, each once";
            return list("widths.series", format!("{names:?}"), rule);
        }
        let per_block = widths.inputs_per_block;
        ranges([
            ("widths.blocks", widths.blocks.into(), 1..=1_000, "each phase has blocks"),
            (
                "widths.inputs_per_block",
                per_block.into(),
                1..=16_000,
                "more do not fit into a block",
            ),
        ])?;
        let is_width = |width: &u32| *width > 0 && per_block.is_multiple_of(*width);
        if widths.inputs.is_empty()
            || !widths.inputs.iter().all(is_width)
            || !widths.inputs.windows(2).all(|pair| pair[0] < pair[1])
        {
            let rule = "give divisors of widths.inputs_per_block, each larger than the one before";
            return list("widths.inputs", format!("{inputs:?}", inputs = widths.inputs), rule);
        }
        for series in &widths.series {
            for width in &widths.inputs {
                let bound = bound(*series, *width);
                let txs = u64::from(per_block / width);
                let need = BLOCK_OVERHEAD_WEIGHT + txs * bound.weight();
                let keys = "widths.inputs_per_block and widths.inputs";
                let reason = "for a block of one phase; lower the inputs of a block or leave out the smallest widths";
                enough(keys, (MAX_BLOCK_WEIGHT, need), "weight units", reason)?;
                let need = txs * bound.sigops_cost() + Kind::P2pkh.output_sigops_cost();
                let unit = "units of signature-operation cost";
                enough(keys, (MAX_BLOCK_SIGOPS_COST, need), unit, reason)?;
            }
        }
        Ok(())
    }

    fn check_fan_out(&self) -> Result<(), RecipeError> {
        let fan_out = &self.fan_out;
        let outputs = u64::from(fan_out.outputs);
        let outputs_rule =
            "one transaction makes them, within the weight and the signature operations of a block";
        range(("fan_out.outputs", outputs, 1..=19_000, outputs_rule))?;
        ranges(amount_rules(fan_out.amount_min, fan_out.amount_span))?;
        // The transaction with the fewest inputs has the smallest amount for its fee.
        let width = self.widths.inputs.first().copied().unwrap_or(1);
        let dearest = bound(Series::Legacy, width);
        let (have, need) = (u64::from(width) * fan_out.amount_min, self.fee(&dearest) + DUST);
        enough(
            "fan_out.amount_min and fee_sat_per_kb",
            (have, need),
            "satoshi",
            "for the output and the fee of the smallest transaction; raise the amounts",
        )?;
        let most = fan_out.amount_min + u64::from(fan_out.amount_span);
        let fee = ((43 * (outputs + 1) + 300) * self.fee_sat_per_kb).div_ceil(1_000);
        enough(
            "fan_out.outputs, fan_out.amount_min and fan_out.amount_span",
            (self.chain.subsidy(1), outputs * most + fee + DUST),
            "satoshi",
            "for the outputs of one fan-out block, which one coinbase pays; lower the amounts",
        )
    }

    pub(crate) fn fee(&self, bound: &Bound) -> u64 {
        (bound.vsize() * self.fee_sat_per_kb).div_ceil(1_000)
    }
}

/// A transaction of one phase.
pub(crate) fn bound(series: Series, width: u32) -> Bound {
    let mut bound = Bound::default();
    (0..width).for_each(|_| bound.input(Kind::from(series)));
    bound.output(Kind::from(series));
    bound
}
