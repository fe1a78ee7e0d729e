//! Concrete parameters of a history: the blocks of each era and their contents.

use std::collections::BTreeMap;

use assay_consensus::params::{COINBASE_MATURITY, MAX_BLOCK_WEIGHT};

use crate::{
    kind::{Bound, Kind},
    ledger::Phase,
    options::{ForgeOptions, OptionsError, Params, check_stop},
    recipe::{HistoryFile, Shapes, outputs_of_tx},
    summary::Estimate,
};

/// Recipe and options as concrete numbers.
#[derive(Clone, Debug)]
pub(crate) struct HistoryShape {
    pub(crate) eras: Vec<Era>,
    pub(crate) shapes: Shapes,
    pub(crate) ages: Vec<Age>,
    pub(crate) fee_sat_per_kb: u64,
    pub(crate) ranges: u32,
    pub(crate) byte_scale: f64,
    pub(crate) stop_height: u32,
    pub(crate) params: Params,
}

#[derive(Clone, Debug)]
pub(crate) struct Era {
    pub(crate) number: u8,
    /// First and last block.
    pub(crate) first: u32,
    pub(crate) last: u32,
    /// Transactions per block, without the coinbase.
    pub(crate) txs: f64,
    /// Mean inputs per transaction.
    pub(crate) inputs: f64,
    /// Mean outputs per transaction.
    pub(crate) outputs: f64,
    /// Shares of consolidations, many-input transactions and batches among the transactions.
    pub(crate) special: [f64; 3],
    /// Shares of the outputs in the order of [`Kind::ALL`].
    pub(crate) mix: [f64; Kind::ALL.len()],
    pub(crate) coinbase: Kind,
    /// Soft fork activated by its first block.
    pub(crate) fork: Option<&'static str>,
}

/// Share of spends with an age, in blocks, from `first` to `last`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Age {
    pub(crate) share: f64,
    /// Ages in heights of the main chain: above `above`, up to `until`; 0 and 0 for the same block.
    pub(crate) above: u32,
    pub(crate) until: u32,
    /// Blocks per main-chain height.
    pub(crate) factor: f64,
}

impl Age {
    /// Converts an age in heights to blocks.
    pub(crate) fn blocks(&self, heights: f64) -> u32 {
        if heights < 1.0 { 0 } else { ((heights * self.factor + 0.5) as u32).max(1) }
    }
}

impl HistoryShape {
    pub(crate) fn new(file: &HistoryFile, options: &ForgeOptions) -> Result<Self, OptionsError> {
        let heights = file.era.last().map_or(1, |era| era.until);
        let (scale, byte_scale) = (options.scale, options.byte_scale);
        let max = f64::from(BLOCKS_MAX) / f64::from(file.history.blocks);
        let min = scale_min(file, heights);
        if !(min..=max).contains(&scale) {
            return Err(OptionsError::Scale { scale, chain: "history", min, max });
        }
        let blocks = (f64::from(file.history.blocks) * scale).round() as u32;
        let factor = f64::from(blocks) / f64::from(heights);
        let bytes = file.history.bytes * byte_scale;
        let eras = eras(file, factor, bytes);
        let fullest = eras.iter().map(|era| era.txs * era.tx_weight()).fold(0.0, f64::max);
        let max = byte_scale * FULL * MAX_BLOCK_WEIGHT as f64 / fullest;
        if !(byte_scale > 0.0 && byte_scale <= max && byte_scale.is_finite()) {
            let max = if max.is_finite() { (max * 100.0).floor() / 100.0 } else { 1.0 };
            let recipe = file.name.clone();
            return Err(OptionsError::ByteScale { byte_scale, recipe, max });
        }
        let times = (file.end_time, file.block_interval_s);
        let params = Params::new(options, file.chain, times)?.ending_at(blocks)?;
        // Keys derived from height and amount alone would be cached, which exceeds the memory.
        let params = Params { distinct: true, ..params };
        let above = [0].into_iter().chain(file.age.iter().map(|band| band.until));
        let ages = file.age.iter().zip(above).map(|(band, above)| Age {
            share: band.share,
            above,
            until: band.until,
            factor,
        });
        Ok(Self {
            eras,
            shapes: file.shapes,
            ages: ages.collect(),
            fee_sat_per_kb: file.fee_sat_per_kb,
            ranges: file.history.ranges.min(blocks),
            byte_scale,
            stop_height: check_stop(options.stop_height, blocks)?,
            params,
        })
    }

    pub(crate) fn era(&self, height: u32) -> &Era {
        &self.eras[self.eras.partition_point(|era| era.last < height)]
    }

    pub(crate) fn activation(&self) -> BTreeMap<String, u32> {
        self.eras.iter().filter_map(|era| Some((era.fork?.to_owned(), era.first))).collect()
    }

    /// First height with segwit active; `None` if no era activates it.
    pub(crate) fn segwit(&self) -> Option<u32> {
        self.eras.iter().find(|era| era.fork == Some("segwit")).map(|era| era.first)
    }

    /// Number and last block of the range that contains a block.
    pub(crate) fn range(&self, height: u32) -> (u32, u32) {
        let (ranges, blocks) = (u64::from(self.ranges), u64::from(self.params.last_height));
        let number = (u64::from(height - 1) * ranges / blocks) as u32;
        let last = (u64::from(number + 1) * blocks).div_ceil(ranges) as u32;
        (number, last.min(self.stop_height))
    }

    pub(crate) fn fee(&self, bound: &Bound) -> u64 {
        (bound.vsize() * self.fee_sat_per_kb).div_ceil(1_000)
    }

    /// The eras up to the stop height, with their numbers of blocks.
    pub(crate) fn phases_made(&self) -> impl Iterator<Item = (Phase, u32)> + '_ {
        self.eras.iter().take_while(|era| era.first <= self.stop_height).map(|era| {
            let last = era.last.min(self.stop_height);
            (Phase::Era { number: era.number }, last + 1 - era.first)
        })
    }

    pub(crate) fn estimate(&self) -> Estimate {
        let (mut signatures, mut bytes) = (0.0, 0.0);
        for era in &self.eras {
            let first = era.first.max(COINBASE_MATURITY + 1);
            let made = era.last.min(self.stop_height);
            let blocks = f64::from((made + 1).saturating_sub(era.first));
            let filled = f64::from((made + 1).saturating_sub(first));
            let signed = era.mean_spent(|kind| kind.signatures() as f64);
            signatures += filled * era.txs * era.inputs * signed;
            bytes += 250.0 * blocks + filled * era.txs * era.tx_bytes();
        }
        Estimate { blocks: self.stop_height, signatures: signatures as u64, bytes: bytes as u64 }
    }
}

impl Era {
    /// Mean over the spent outputs, assuming the same distribution as for created ones.
    fn mean_spent(&self, of: impl Fn(Kind) -> f64) -> f64 {
        let spent = 1.0 - self.mix[Kind::OpReturn as usize];
        let share = |kind: Kind| self.mix[kind as usize] / spent;
        let kinds = Kind::ALL.into_iter().filter(|kind| *kind != Kind::OpReturn);
        kinds.map(|kind| share(kind) * of(kind)).sum()
    }

    /// Mean bytes of a transaction: without its witness, and of the witness.
    fn tx_parts(&self) -> (f64, f64) {
        // Signatures are a byte or two shorter than their bound.
        let input = self.mean_spent(|kind| kind.input_bytes_max() as f64 - 1.2);
        let witness = self.mean_spent(|kind| {
            if kind.has_witness() { kind.witness_bytes_max() as f64 - 1.2 } else { 0.0 }
        });
        let made = |kind: Kind| self.mix[kind as usize] * kind.output_bytes() as f64;
        let output: f64 = Kind::ALL.into_iter().map(made).sum();
        (10.0 + self.inputs * input + self.outputs * output, self.inputs * witness)
    }

    fn tx_bytes(&self) -> f64 {
        let (base, witness) = self.tx_parts();
        base + witness
    }

    fn tx_weight(&self) -> f64 {
        let (base, witness) = self.tx_parts();
        4.0 * base + witness
    }
}

/// The block that corresponds to a main-chain height.
fn block(height: u32, factor: f64) -> u32 {
    (f64::from(height) * factor).round() as u32
}

fn eras(file: &HistoryFile, factor: f64, bytes: f64) -> Vec<Era> {
    let (mut until, mut coins) = (0, 0);
    let mut made = Vec::with_capacity(file.era.len());
    for (number, era) in (1..).zip(&file.era) {
        made.push(Era {
            number,
            first: block(until, factor) + 1,
            last: block(era.until, factor),
            txs: era.txs * bytes,
            inputs: era.inputs,
            outputs: outputs_of_tx(era, era.until - until, coins),
            special: [era.consolidations, era.many_input, era.batches],
            mix: era.mix(),
            coinbase: era.coinbase(),
            fork: era.fork.map(crate::recipe::Fork::name),
        });
        (until, coins) = (era.until, era.coins);
    }
    made
}

/// The smallest scale at which every era has a block and the first era lasts until coins can be spent.
fn scale_min(file: &HistoryFile, heights: u32) -> f64 {
    let before = [0].into_iter().chain(file.era.iter().map(|era| era.until));
    let lengths = file.era.iter().zip(before).map(|(era, before)| era.until - before);
    let shortest = f64::from(lengths.min().unwrap_or(1));
    let least = (f64::from(heights) / shortest).max(f64::from(2 * COINBASE_MATURITY));
    (least / f64::from(file.history.blocks) * SCALE_STEPS).ceil() / SCALE_STEPS
}

/// The smallest scale is rounded up to a multiple of one thousandth.
const SCALE_STEPS: f64 = 1_000.0;
/// Beyond this the table of keys by height would be too large.
const BLOCKS_MAX: u32 = 1_000_000;
/// Maximum mean block size of an era, relative to the block limit: block sizes vary.
const FULL: f64 = 0.7;
