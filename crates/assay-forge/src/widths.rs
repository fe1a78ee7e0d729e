//! Transactions of few to many inputs: one phase for each kind of input and each width.
//!
//! All outputs are made first, thousands in one transaction, and spent in the order in which they were made. A phase differs from another
//! of its kind only in how many inputs a transaction has; a block of either spends the same number.

use std::time::Instant;

use serde::Deserialize;

use crate::{
    coins::CoinRef,
    forge::{ForgeError, PhaseTime},
    kind::{Bound, Kind},
    ledger::{Phase, Series},
    network::{
        BLOCK_SIGOPS_COST_MAX, BLOCK_WEIGHT_MAX, COINBASE_MATURITY, DUST, HALVING_INTERVAL, Network,
    },
    options::{ForgeOptions, OptionsError, check_end, check_stop, threads},
    phases::fan_out::BLOCK_OVERHEAD_WEIGHT,
    plan::Plan,
    progress::Estimate,
    random::{BLOCK_STREAM, Stream},
    recipe::{Blocks, RecipeError, check_head, range},
    sign::{Signed, sign_range},
    works::{Frame, Works, desk, want},
};

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct WidthsFile {
    format: u64,
    pub(crate) name: String,
    pub(crate) chain: Network,
    end_time: u32,
    block_interval_s: u32,
    fee_sat_per_kb: u64,
    maturity: Blocks,
    fan_out: FanOut,
    widths: Widths,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct FanOut {
    outputs: u32,
    amount_min: u64,
    amount_span: u32,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Widths {
    series: Vec<Series>,
    inputs: Vec<u32>,
    inputs_per_block: u32,
    blocks: u32,
}

impl WidthsFile {
    pub(crate) fn check(&self) -> Result<(), RecipeError> {
        check_head(self.format, &self.name, self.block_interval_s, self.fee_sat_per_kb)?;
        if self.chain != Network::Regtest {
            return Err(RecipeError::NotForChain {
                key: "widths",
                chain: self.chain.name(),
                reason: "its inputs share what they have in common, whatever they spend",
            });
        }
        range(
            "maturity.blocks",
            self.maturity.blocks.into(),
            u64::from(COINBASE_MATURITY)..=140,
            "a coinbase can be spent after 100 blocks, and those spent are from before the first halving",
        )?;
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
        range("widths.blocks", widths.blocks.into(), 1..=1_000, "each phase has blocks")?;
        range(
            "widths.inputs_per_block",
            widths.inputs_per_block.into(),
            1..=16_000,
            "more do not fit into a block",
        )?;
        let per_block = widths.inputs_per_block;
        let is_width = |width: &u32| *width > 0 && per_block.is_multiple_of(*width);
        if widths.inputs.is_empty()
            || !widths.inputs.iter().all(is_width)
            || !widths.inputs.windows(2).all(|pair| pair[0] < pair[1])
        {
            let rule = "give divisors of widths.inputs_per_block, each larger than the one before";
            return list("widths.inputs", format!("{:?}", widths.inputs), rule);
        }
        for series in &widths.series {
            for width in &widths.inputs {
                let bound = bound(*series, *width);
                let txs = u64::from(per_block / width);
                let need = BLOCK_OVERHEAD_WEIGHT + txs * bound.weight();
                let keys = "widths.inputs_per_block and widths.inputs";
                let reason = "for a block of one phase; lower the inputs of a block or leave out the smallest widths";
                if need > BLOCK_WEIGHT_MAX {
                    let (have, unit) = (BLOCK_WEIGHT_MAX, "weight units");
                    return Err(RecipeError::Together { keys, have, need, unit, reason });
                }
                let need = txs * bound.sigops_cost() + Kind::P2pkh.output_sigops_cost();
                if need > BLOCK_SIGOPS_COST_MAX {
                    let (have, unit) = (BLOCK_SIGOPS_COST_MAX, "units of signature-operation cost");
                    return Err(RecipeError::Together { keys, have, need, unit, reason });
                }
            }
        }
        Ok(())
    }

    fn check_fan_out(&self) -> Result<(), RecipeError> {
        let fan_out = &self.fan_out;
        range(
            "fan_out.outputs",
            fan_out.outputs.into(),
            1..=19_000,
            "one transaction makes them, within the weight and the signature operations of a block",
        )?;
        range("fan_out.amount_min", fan_out.amount_min, DUST..=1_000_000, "less is dust")?;
        range(
            "fan_out.amount_span",
            fan_out.amount_span.into(),
            1..=1_000_000,
            "the span of amounts starts at one value",
        )?;
        // The narrowest transaction has the least to pay its fee from.
        let width = self.widths.inputs.first().copied().unwrap_or(1);
        let dearest = bound(Series::Legacy, width);
        let (have, need) = (u64::from(width) * fan_out.amount_min, self.fee(&dearest) + DUST);
        if have < need {
            return Err(RecipeError::Together {
                keys: "fan_out.amount_min and fee_sat_per_kb",
                have,
                need,
                unit: "satoshi",
                reason: "for the output and the fee of the smallest transaction; raise the amounts",
            });
        }
        let outputs = u64::from(fan_out.outputs);
        let most = fan_out.amount_min + u64::from(fan_out.amount_span);
        let fee = ((43 * (outputs + 1) + 300) * self.fee_sat_per_kb).div_ceil(1_000);
        let (have, need) = (self.chain.subsidy(1), outputs * most + fee + DUST);
        if have < need {
            return Err(RecipeError::Together {
                keys: "fan_out.outputs, fan_out.amount_min and fan_out.amount_span",
                have,
                need,
                unit: "satoshi",
                reason: "for the outputs of one fan-out block, which one coinbase pays; lower the amounts",
            });
        }
        Ok(())
    }

    fn fee(&self, bound: &Bound) -> u64 {
        (bound.vsize() * self.fee_sat_per_kb).div_ceil(1_000)
    }
}

/// A transaction of one phase.
fn bound(series: Series, width: u32) -> Bound {
    let mut bound = Bound::default();
    (0..width).for_each(|_| bound.input(series.kind()));
    bound.output(series.kind());
    bound
}

/// Recipe and options in concrete numbers.
#[derive(Clone, Debug)]
pub(crate) struct WidthShape {
    pub(crate) frame: Frame,
    recipe: WidthsFile,
    stop_height: u32,
    /// Blocks of each phase with its own width.
    blocks: u32,
    fan_out: u32,
}

impl WidthShape {
    pub(crate) fn new(file: &WidthsFile, options: &ForgeOptions) -> Result<Self, OptionsError> {
        let network = file.chain;
        let per_block = u64::from(file.widths.inputs_per_block);
        let phases = (file.widths.series.len() * file.widths.inputs.len()) as u64;
        // Each fan-out block spends a coinbase of before the first halving.
        let outputs_max = u64::from(HALVING_INTERVAL - 1) * u64::from(file.fan_out.outputs);
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
        let end_time = options.end_time.unwrap_or(file.end_time);
        check_end(end_time, network, last_height, file.block_interval_s)?;
        Ok(Self {
            stop_height: check_stop(options.stop_height, last_height)?,
            frame: Frame {
                network,
                seed: options.seed,
                scale,
                distinct: options.distinct_keys,
                threads: threads(options.threads)?,
                last_height,
                end_time,
                block_interval_s: file.block_interval_s,
            },
            recipe: file.clone(),
            blocks,
            fan_out,
        })
    }

    /// The phases in order, with their blocks.
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

    /// What will be made: signatures exact, bytes by their upper bound.
    pub(crate) fn estimate(&self) -> Estimate {
        let per_block = u64::from(self.recipe.widths.inputs_per_block);
        let (mut signatures, mut bytes) = (0, 0);
        for (phase, blocks) in self.phases_made() {
            let blocks = u64::from(blocks);
            match phase {
                Phase::Width { series, inputs } => {
                    signatures += blocks * per_block;
                    let kind = series.kind();
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

    /// What output `at` of all that the phases spend is locked with: phases take them in order.
    fn kind(&self, at: u64) -> Option<Kind> {
        let widths = &self.recipe.widths;
        let of_series = u64::from(self.blocks)
            * u64::from(widths.inputs_per_block)
            * widths.inputs.len() as u64;
        widths.series.get((at / of_series) as usize).map(|series| series.kind())
    }

    /// Where output `at` of all that the phases spend is.
    fn coin(&self, at: u64) -> CoinRef {
        let outputs = u64::from(self.recipe.fan_out.outputs);
        let height = self.recipe.maturity.blocks + 1 + (at / outputs) as u32;
        CoinRef { height, tx: 1, vout: (at % outputs) as u32 }
    }
}

/// A chain of such phases in the making.
pub(crate) struct WidthWorks<'a, 'p> {
    pub(crate) shape: &'a WidthShape,
    pub(crate) works: &'a mut Works<'p>,
}

impl WidthWorks<'_, '_> {
    /// Makes all blocks.
    pub(crate) fn phases(&mut self) -> Result<Vec<PhaseTime>, ForgeError> {
        let mut times = Vec::new();
        let mut spent = 0;
        for (phase, blocks) in self.shape.phases_made() {
            let begun = Instant::now();
            let before = self.works.blocks.len();
            self.works.progress.phase(phase, blocks);
            for block in 0..blocks {
                match phase {
                    Phase::FanOut => {
                        let plan = self.fan_out(block);
                        self.sign(phase, plan)?;
                    }
                    Phase::Width { series, inputs } => {
                        let plan = self.block(series, inputs, &mut spent);
                        self.sign(phase, plan)?;
                    }
                    _ => self.works.empty_block(phase)?,
                }
            }
            times.push(PhaseTime {
                phase,
                blocks,
                signatures: self.works.blocks[before..].iter().map(|line| line.signatures).sum(),
                seconds: begun.elapsed().as_secs_f64(),
            });
        }
        Ok(times)
    }

    /// Turns a coinbase into outputs; what they do not need is change.
    fn fan_out(&self, block: u32) -> Plan {
        let fan_out = &self.shape.recipe.fan_out;
        let mut plan = self.works.new_plan();
        let mut amounts = Stream::plain(self.shape.frame.seed, plan.height, BLOCK_STREAM);
        let coinbase = block + 1;
        plan.input(CoinRef { height: coinbase, tx: 0, vout: 0 });
        let mut bound = Bound::default();
        bound.input(Kind::P2pkh);
        let first = u64::from(block) * u64::from(fan_out.outputs);
        let mut left = self.works.frame.network.subsidy(coinbase);
        for at in first..first + u64::from(fan_out.outputs) {
            let Some(kind) = self.shape.kind(at) else { break };
            let amount = fan_out.amount_min + u64::from(amounts.below(fan_out.amount_span));
            plan.output(amount, kind);
            bound.output(kind);
            left -= amount;
        }
        bound.output(Kind::P2wpkh);
        plan.output(left - self.shape.recipe.fee(&bound), Kind::P2wpkh);
        plan.end_tx();
        plan
    }

    /// A block of transactions of one width, from output `spent` on.
    fn block(&self, series: Series, width: u32, spent: &mut u64) -> Plan {
        let mut plan = self.works.new_plan();
        let fee = self.shape.recipe.fee(&bound(series, width));
        for _ in 0..self.shape.recipe.widths.inputs_per_block / width {
            let mut total = 0;
            for at in *spent..*spent + u64::from(width) {
                let coin = self.shape.coin(at);
                total += self.works.coins.block(coin.height).amount(coin.tx, coin.vout);
                plan.input(coin);
            }
            *spent += u64::from(width);
            plan.output(total - fee, series.kind());
            plan.end_tx();
        }
        plan
    }

    fn sign(&mut self, phase: Phase, plan: Plan) -> Result<(), ForgeError> {
        let begun = Instant::now();
        let works = &mut *self.works;
        want(&mut works.locks, works.frame.distinct, &plan, 1);
        works.locks.prepare(&works.threads);
        let mut signed = Signed::new();
        let desk = desk(&works.frame, &works.threads, &works.locks, &works.coins);
        sign_range(desk, &plan, 1..plan.len(), &mut signed, works.progress);
        works.signing_seconds += begun.elapsed().as_secs_f64();
        works.finish_block(phase, plan, signed)
    }
}
