//! Transactions with few to many inputs: one phase per kind of input and width.
//!
//! All outputs are created first, thousands per transaction, and spent in order of creation. Phases of the same kind differ only
//! in the number of inputs per transaction; their blocks spend the same number of outputs.

use crate::{
    coins::CoinRef,
    forge_state::ForgeState,
    kind::{Bound, Kind},
    ledger::{Phase, Series},
    options::{ForgeOptions, OptionsError, Params, check_stop},
    plan::Plan,
    random::{BLOCK_STREAM, Stream},
    recipe::{WidthsFile, bound},
    signing_threads::Signed,
    summary::{Estimate, ForgeError},
};

/// Recipe and options as concrete numbers.
#[derive(Clone, Debug)]
pub(crate) struct WidthShape {
    pub(crate) params: Params,
    recipe: WidthsFile,
    stop_height: u32,
    /// Blocks per phase, with its width.
    blocks: u32,
    fan_out: u32,
}

impl WidthShape {
    pub(crate) fn new(file: &WidthsFile, options: &ForgeOptions) -> Result<Self, OptionsError> {
        let network = file.chain;
        let per_block = u64::from(file.widths.inputs_per_block);
        let phases = (file.widths.series.len() * file.widths.inputs.len()) as u64;
        // Each fan-out block spends a coinbase from before the first halving.
        let outputs_max = u64::from(network.params().subsidy_halving_interval - 1)
            * u64::from(file.fan_out.outputs);
        let full = f64::from(file.widths.blocks);
        let min = 1.0 / full;
        let max = (outputs_max / (per_block * phases)) as f64 / full;
        let scale = options.scale;
        if !(min..=max).contains(&scale) {
            return Err(OptionsError::Scale { scale, chain: network.name(), min, max });
        }
        let blocks = ((full * scale).floor() as u32).max(1);
        let inputs = u64::from(blocks) * phases * per_block;
        let fan_out = inputs.div_ceil(file.fan_out.outputs.into()) as u32;
        let last_height = file.maturity.blocks + fan_out + blocks * phases as u32;
        let params = Params::new(options, network, (file.end_time, file.block_interval_s))?;
        Ok(Self {
            stop_height: check_stop(options.stop_height, last_height)?,
            params: params.ending_at(last_height)?,
            recipe: file.clone(),
            blocks,
            fan_out,
        })
    }

    /// The phases in order, with their numbers of blocks.
    fn phases(&self) -> Vec<(Phase, u32)> {
        let widths = &self.recipe.widths;
        let mut phases =
            vec![(Phase::Maturity, self.recipe.maturity.blocks), (Phase::FanOut, self.fan_out)];
        for series in &widths.series {
            for inputs in &widths.inputs {
                phases.push((Phase::Width { series: *series, inputs: *inputs }, self.blocks));
            }
        }
        phases
    }

    /// The same up to the stop height.
    fn phases_made(&self) -> Vec<(Phase, u32)> {
        let mut left = self.stop_height;
        let mut made = self.phases();
        for (_, blocks) in &mut made {
            *blocks = (*blocks).min(left);
            left -= *blocks;
        }
        made.retain(|(_, blocks)| *blocks > 0);
        made
    }

    /// Size of the chain: signatures exact, bytes as an upper bound.
    pub(crate) fn estimate(&self) -> Estimate {
        let per_block = u64::from(self.recipe.widths.inputs_per_block);
        let (mut signatures, mut bytes) = (0, 0);
        for (phase, blocks) in self.phases_made() {
            let blocks = u64::from(blocks);
            match phase {
                Phase::Width { series, inputs } => {
                    signatures += blocks * per_block;
                    let kind = Kind::from(series);
                    let witness = if kind.has_witness() { kind.witness_bytes_max() } else { 0 };
                    let per_input = kind.input_bytes_max() + witness;
                    let tx = 12 + u64::from(inputs) * per_input + kind.output_bytes();
                    bytes += blocks * (per_block / u64::from(inputs) * tx + 300);
                }
                Phase::FanOut => {
                    signatures += blocks;
                    bytes += blocks * (u64::from(self.recipe.fan_out.outputs) * 38 + 400);
                }
                _ => bytes += blocks * 300,
            }
        }
        Estimate { blocks: self.stop_height, signatures, bytes }
    }

    /// Script kind of output `at` of all outputs that the phases spend, in order.
    fn kind(&self, at: u64) -> Option<Kind> {
        let widths = &self.recipe.widths;
        let of_series = u64::from(self.blocks)
            * u64::from(widths.inputs_per_block)
            * widths.inputs.len() as u64;
        widths.series.get((at / of_series) as usize).map(|series| Kind::from(*series))
    }

    /// Position of output `at` of all outputs that the phases spend.
    fn coin(&self, at: u64) -> CoinRef {
        let outputs = u64::from(self.recipe.fan_out.outputs);
        let height = self.recipe.maturity.blocks + 1 + (at / outputs) as u32;
        CoinRef { height, tx: 1, vout: (at % outputs) as u32 }
    }
}

pub(crate) struct WidthForge<'a, 'p> {
    pub(crate) shape: &'a WidthShape,
    pub(crate) state: &'a mut ForgeState<'p>,
}

impl WidthForge<'_, '_> {
    pub(crate) fn phases(&mut self) -> Result<(), ForgeError> {
        let mut spent = 0;
        for (phase, blocks) in self.shape.phases_made() {
            self.state.phase(phase, blocks);
            for block in 0..blocks {
                let plan = match phase {
                    Phase::FanOut => self.fan_out(block),
                    Phase::Width { series, inputs } => self.block(series, inputs, &mut spent),
                    _ => self.state.new_plan(),
                };
                let mut signed = Signed::new();
                self.state.sign(&plan, 1..plan.len(), &mut signed);
                self.state.finish_block(phase, plan, signed)?;
            }
        }
        Ok(())
    }

    /// Splits a coinbase into outputs and change.
    fn fan_out(&self, block: u32) -> Plan {
        let fan_out = &self.shape.recipe.fan_out;
        let mut plan = self.state.new_plan();
        let mut amounts = Stream::plain(self.shape.params.seed, plan.outputs.height, BLOCK_STREAM);
        let coinbase = block + 1;
        plan.input(CoinRef { height: coinbase, tx: 0, vout: 0 });
        let mut bound = Bound::default();
        bound.input(Kind::P2pkh);
        let first = u64::from(block) * u64::from(fan_out.outputs);
        let mut left = self.state.params.network.subsidy(coinbase);
        for at in first..first + u64::from(fan_out.outputs) {
            let Some(kind) = self.shape.kind(at) else { break };
            let amount = fan_out.amount_min + u64::from(amounts.below(fan_out.amount_span));
            plan.outputs.push(amount, kind);
            bound.output(kind);
            left -= amount;
        }
        bound.output(Kind::P2wpkh);
        plan.outputs.push(left - self.shape.recipe.fee(&bound), Kind::P2wpkh);
        plan.end_tx();
        plan
    }

    /// A block of transactions of one width, from output `spent` on.
    fn block(&self, series: Series, width: u32, spent: &mut u64) -> Plan {
        let mut plan = self.state.new_plan();
        let fee = self.shape.recipe.fee(&bound(series, width));
        for _ in 0..self.shape.recipe.widths.inputs_per_block / width {
            let mut total = 0;
            for at in *spent..*spent + u64::from(width) {
                let coin = self.shape.coin(at);
                total += self.state.coins.block(coin.height).outputs.amount(coin.tx, coin.vout);
                plan.input(coin);
            }
            *spent += u64::from(width);
            plan.outputs.push(total - fee, Kind::from(series));
            plan.end_tx();
        }
        plan
    }
}
