//! The forge itself: goes through the phases, signs, writes, and closes the ledger.

use std::{path::Path, time::Instant};

use assay_wire::BlockHash;
use rayon::ThreadPool;
use thiserror::Error;

use crate::{
    block::{self, Coinbase, CoinbaseParts},
    coins::{BlockCoins, Coins},
    keys::KeyId,
    kind::{Bound, Kind},
    ledger::{BlockLine, ChainLine, Ledger, Line, Phase, TipLine},
    lock::LockBook,
    options::{ForgeOptions, OptionsError, PHASES, Shape},
    output::{Output, OutputError},
    phases::{
        Source, View,
        fan_in::FanIn,
        fan_out::{self, BLOCK_OVERHEAD_WEIGHT, FanOutPlan},
        steady_1::Steady1,
        steady_2::Steady2,
        steady_3::{Pool, Steady3},
    },
    plan::Plan,
    progress::{Estimate, Progress},
    recipe::Recipe,
    sign::{Desk, Signed, Strand, sign_range, sign_strands},
    utxo,
    writer::Spend,
    yardstick::Rates,
};

/// Why a chain could not be forged.
#[derive(Debug, Error)]
pub enum ForgeError {
    /// The options do not suit the recipe.
    #[error(transparent)]
    Options(#[from] OptionsError),
    /// The chain directory could not be written.
    #[error(transparent)]
    Output(#[from] OutputError),
    /// The threads could not be started.
    #[error("cannot start {threads} threads")]
    Threads {
        /// How many.
        threads: usize,
        /// Why.
        source: rayon::ThreadPoolBuildError,
    },
}

/// What was forged, and how fast.
#[derive(Clone, Debug)]
pub struct Summary {
    /// The ledger as written.
    pub ledger: Ledger,
    /// Threads that worked.
    pub threads: usize,
    /// Signatures made.
    pub signatures: u64,
    /// Those of them that are Schnorr signatures.
    pub schnorr_signatures: u64,
    /// Wall time of making blocks: planning, deriving keys, signing, ordering, writing. Only hashing the final UTXO set is left out.
    pub making_seconds: f64,
    /// Part of it in which signatures were made (with the hashes they cover).
    pub signing_seconds: f64,
    /// Wall time of hashing the final UTXO set.
    pub utxo_seconds: f64,
    /// Wall time of everything.
    pub wall_seconds: f64,
    /// Wall time and signatures of each phase.
    pub phases: Vec<PhaseTime>,
}

impl Summary {
    /// Signatures per second over the whole making of blocks.
    pub fn signatures_per_second(&self) -> f64 {
        self.signatures as f64 / self.making_seconds.max(f64::MIN_POSITIVE)
    }

    /// The time that libsecp256k1 alone would take for these signatures on all threads, at the given rates of one thread
    /// ([`yardstick::sign_rate`](crate::yardstick::sign_rate)), over the time of making the blocks. 1 is perfect.
    pub fn efficiency(&self, one_thread: &Rates) -> f64 {
        let ecdsa = (self.signatures - self.schnorr_signatures) as f64 / one_thread.ecdsa_per_s;
        let schnorr = self.schnorr_signatures as f64 / one_thread.schnorr_per_s;
        (ecdsa + schnorr) / self.threads as f64 / self.making_seconds.max(f64::MIN_POSITIVE)
    }
}

/// The cost of one phase.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PhaseTime {
    /// Which.
    pub phase: Phase,
    /// Its blocks.
    pub blocks: u32,
    /// Its signatures.
    pub signatures: u64,
    /// Its wall time.
    pub seconds: f64,
}

/// What [`forge`] would make, roughly.
///
/// # Errors
///
/// If the options do not suit the recipe.
pub fn estimate(recipe: &Recipe, options: &ForgeOptions) -> Result<Estimate, OptionsError> {
    Shape::new(recipe, options).map(|shape| shape.estimate())
}

/// Forges a chain into `dir`, which must be new, empty, or left by an interrupted forge.
///
/// The same recipe, seed, scale, variant and key rule give the same files for any number of threads. The ledger gets its final name last:
/// a directory without it is incomplete.
///
/// # Errors
///
/// If the options do not suit the recipe, or the directory cannot be written.
pub fn forge(
    recipe: &Recipe,
    options: &ForgeOptions,
    dir: &Path,
    progress: &mut dyn Progress,
) -> Result<Summary, ForgeError> {
    let begun = Instant::now();
    let shape = Shape::new(recipe, options)?;
    let threads = rayon::ThreadPoolBuilder::new()
        .num_threads(shape.threads)
        .thread_name(|number| format!("forge-{number}"))
        .build()
        .map_err(|source| ForgeError::Threads { threads: shape.threads, source })?;
    let mut output = Output::create(dir, shape.network().magic())?;
    let chain = chain_line(recipe, &shape, options);
    output.line(&Line::Chain(chain.clone()))?;
    progress.start(&shape.estimate());
    let locks = LockBook::new(shape.last_height(), shape.distinct);
    let previous = shape.network().genesis_hash();
    let mut works = Works {
        shape,
        threads,
        locks,
        coins: Coins::default(),
        output,
        previous,
        blocks: Vec::new(),
        schnorr: 0,
        signing_seconds: 0.0,
        progress,
    };
    let phases = works.phases()?;
    let making_seconds = begun.elapsed().as_secs_f64();
    let hashing = Instant::now();
    let tip = works.tip();
    let utxo_seconds = hashing.elapsed().as_secs_f64();
    works.output.line(&Line::Tip(tip.clone()))?;
    works.output.finish()?;
    Ok(Summary {
        threads: works.shape.threads,
        signatures: tip.signatures,
        schnorr_signatures: works.schnorr,
        making_seconds,
        signing_seconds: works.signing_seconds,
        utxo_seconds,
        wall_seconds: begun.elapsed().as_secs_f64(),
        phases,
        ledger: Ledger { chain, blocks: works.blocks, tip },
    })
}

fn chain_line(recipe: &Recipe, shape: &Shape, options: &ForgeOptions) -> ChainLine {
    ChainLine {
        format: 1,
        recipe: recipe.name().to_owned(),
        chain: shape.network().name().to_owned(),
        seed: shape.seed,
        scale: shape.scale,
        variant: shape.variant.name().to_owned(),
        distinct_keys: shape.distinct,
        stop_height: options.stop_height,
        end_time: shape.end_time,
        magic: hex(&shape.network().magic()),
        assay_version: env!("CARGO_PKG_VERSION").to_owned(),
        recipe_sha256: hex(&recipe.sha256()),
    }
}

/// Everything at hand while forging.
struct Works<'p> {
    shape: Shape,
    threads: ThreadPool,
    locks: LockBook,
    coins: Coins,
    output: Output,
    previous: [u8; 32],
    blocks: Vec<BlockLine>,
    schnorr: u64,
    signing_seconds: f64,
    progress: &'p mut dyn Progress,
}

impl Works<'_> {
    fn phases(&mut self) -> Result<Vec<PhaseTime>, ForgeError> {
        let mut times = Vec::new();
        let mut short = None;
        for phase in PHASES {
            let blocks = self.shape.blocks_made(phase);
            if blocks == 0 {
                continue;
            }
            let begun = Instant::now();
            let before = self.blocks.len();
            self.progress.phase(phase, blocks);
            match phase {
                Phase::Maturity => short = self.maturity(blocks)?,
                Phase::FanOut => self.fan_out(blocks, short.take())?,
                Phase::Steady3 => {
                    let mut pool = Pool::new(self.view(), &self.threads);
                    for block in 0..blocks {
                        let source = Steady3::new(self.view(), block, &mut pool);
                        self.fill(phase, source)?;
                    }
                }
                _ => {
                    for block in 0..blocks {
                        match phase {
                            Phase::Steady1 => self.fill(phase, Steady1::new(self.view(), block))?,
                            Phase::FanIn => self.fill(phase, FanIn::new(self.view(), block))?,
                            _ => self.fill(phase, Steady2::new(self.view(), block))?,
                        }
                    }
                }
            }
            times.push(PhaseTime {
                phase,
                blocks,
                signatures: self.blocks[before..].iter().map(|line| line.signatures).sum(),
                seconds: begun.elapsed().as_secs_f64(),
            });
        }
        Ok(times)
    }

    /// Makes blocks without transactions. Where chains are short, the last of them confirms the first split; the plans of the fan-out
    /// blocks, which the split follows from, are returned.
    fn maturity(&mut self, blocks: u32) -> Result<Option<Vec<FanOutPlan>>, ForgeError> {
        let mut short = None;
        for height in 1..=blocks {
            if height == self.shape.maturity && fan_out::short_chains(self.shape.network()) {
                let mut plans = fan_out::plan_short_chains(&self.shape);
                let rest = plans.split_off(1);
                let first = plans.pop().expect("the block before fan-out is planned too");
                self.fan_out_group(Phase::Maturity, vec![first])?;
                short = Some(rest);
            } else {
                let subsidy = self.shape.network().subsidy(height);
                let plan = Plan::new(height, subsidy, KeyId::published(height, subsidy));
                self.finish_block(Phase::Maturity, plan, Signed::new())?;
            }
        }
        Ok(short)
    }

    fn fan_out(&mut self, blocks: u32, short: Option<Vec<FanOutPlan>>) -> Result<(), ForgeError> {
        // Strands are sequential, so more blocks at once keep more threads busy; memory bounds how many.
        let in_memory = (GROUP_BYTES_MAX / (self.shape.weight_max / 4).max(1)).max(1) as usize;
        let group = self.shape.threads.min(in_memory);
        let mut short = short.map(Vec::into_iter);
        let mut made = 0;
        while made < blocks {
            let now = group.min((blocks - made) as usize) as u32;
            let plans = match &mut short {
                Some(plans) => plans.by_ref().take(now as usize).collect(),
                None => (made..made + now)
                    .map(|block| fan_out::plan_long_chains(&self.shape, block))
                    .collect(),
            };
            self.fan_out_group(Phase::FanOut, plans)?;
            made += now;
        }
        Ok(())
    }

    /// Signs consecutive fan-out blocks together and writes them.
    fn fan_out_group(&mut self, phase: Phase, group: Vec<FanOutPlan>) -> Result<(), ForgeError> {
        let begun = Instant::now();
        let (plans, strands): (Vec<_>, Vec<_>) =
            group.into_iter().map(|planned| (planned.plan, planned.strands)).unzip();
        for plan in &plans {
            want(&mut self.locks, self.shape.distinct, plan, 0);
        }
        self.locks.prepare(&self.threads);
        let mut signed: Vec<_> = plans.iter().map(|_| Signed::new()).collect();
        let desk = desk(&self.shape, &self.threads, &self.locks, &self.coins);
        for (plan, signed) in plans.iter().zip(&mut signed) {
            sign_range(desk, plan, 1..plan.first_ordinary, signed, self.progress);
        }
        let mut ready = Vec::new();
        for (number, strands) in strands.into_iter().enumerate() {
            for txs in strands {
                let start = self.strand_start(&plans, &signed, number, txs[0]);
                ready.push(Strand::new(number, txs, start, self.shape.recipe.fan_out.outputs));
            }
        }
        sign_strands(desk, &plans, ready, &mut signed, self.progress);
        self.signing_seconds += begun.elapsed().as_secs_f64();
        for (plan, signed) in plans.into_iter().zip(signed) {
            self.finish_block(phase, plan, signed)?;
        }
        Ok(())
    }

    /// What the first transaction of a strand spends: an output of a split, in this group of plans or in a finished block.
    fn strand_start(&self, plans: &[Plan], signed: &[Signed], number: usize, first: u32) -> Spend {
        let coin = plans[number].inputs(first)[0];
        let distinct = self.shape.distinct;
        match plans.iter().position(|plan| plan.height == coin.height) {
            None => self.coins.spend_of(distinct, coin),
            Some(at) => {
                let paid = plans[at].pay(distinct, coin.tx, coin.vout);
                Spend {
                    txid: signed[at].txids[coin.tx as usize],
                    vout: coin.vout,
                    amount: paid.amount,
                    kind: paid.kind,
                    key: paid.key,
                }
            }
        }
    }

    /// Makes a block of as many transactions of `source` as fit.
    ///
    /// Sizes are known only up to a bound before signing, so the block is filled in rounds: each plans what is sure to fit in the room
    /// that the signed transactions left.
    fn fill(&mut self, phase: Phase, mut source: impl Source) -> Result<(), ForgeError> {
        let height = self.coins.next_height();
        let subsidy = self.shape.network().subsidy(height);
        let mut plan = Plan::new(height, subsidy, KeyId::published(height, subsidy));
        let mut signed = Signed::new();
        let room = self.shape.weight_max - BLOCK_OVERHEAD_WEIGHT;
        let mut sigops = self.shape.sigops_max - Kind::P2pkh.output_sigops_cost();
        let mut held = None;
        let mut exhausted = false;
        while !exhausted {
            let from = plan.len();
            let mut left = room - signed.weight;
            loop {
                match held.take() {
                    Some(tx) => plan.put_back(tx),
                    None if !source.next(self.view(), &mut plan) => {
                        exhausted = true;
                        break;
                    }
                    None => {}
                }
                let bound: Bound = plan.bound(&self.coins, plan.len() - 1);
                if bound.weight() > left || bound.sigops_cost() > sigops {
                    held = Some(plan.take_last());
                    break;
                }
                left -= bound.weight();
                sigops -= bound.sigops_cost();
            }
            if plan.len() == from {
                break;
            }
            let begun = Instant::now();
            want(&mut self.locks, self.shape.distinct, &plan, from);
            self.locks.prepare(&self.threads);
            let desk = desk(&self.shape, &self.threads, &self.locks, &self.coins);
            sign_range(desk, &plan, from..plan.len(), &mut signed, self.progress);
            self.signing_seconds += begun.elapsed().as_secs_f64();
        }
        self.finish_block(phase, plan, signed)
    }

    /// Completes a signed block and writes it, its order and its ledger line.
    fn finish_block(
        &mut self,
        phase: Phase,
        plan: Plan,
        mut signed: Signed,
    ) -> Result<(), ForgeError> {
        assert_eq!(signed.txids.len(), plan.len() as usize, "every planned transaction is signed");
        let network = self.shape.network();
        let height = plan.height;
        let order = block::block_order(network, &signed.txids, &self.threads);
        let coinbase = self.coinbase(&plan, &signed, &order);
        signed.txids[0] = coinbase.txid;
        let root = block::root(&signed.txids, &order);
        let time = self.shape.time(height);
        let mined = block::mine(network, &self.previous, &root, time);
        let count = block::count_bytes(order.len() as u64);

        let mut offsets = vec![0u32; order.len()];
        let mut bytes = (mined.bytes.len() + count.len() + coinbase.bytes.len()) as u64;
        for tx in &order[1..] {
            offsets[*tx as usize] = bytes as u32;
            bytes += u64::from(signed.places[*tx as usize].bytes);
        }
        let head = [&mined.bytes[..], &count, &coinbase.bytes];
        let body = order[1..].iter().map(|tx| signed.tx(*tx));
        let place = self.output.block(bytes, head.into_iter().chain(body))?;
        self.output.order(height, &order_records(&signed, &offsets))?;

        let line = BlockLine {
            height,
            hash: BlockHash(mined.hash).to_string(),
            phase,
            file: place.file,
            offset: place.offset,
            bytes,
            weight: 4 * (80 + count.len() as u64) + coinbase.weight + signed.weight,
            txs: order.len() as u64,
            inputs: plan.all_inputs().len() as u64,
            outputs: plan.amounts.len() as u64 + u64::from(network.segwit()),
            signatures: signed.signatures,
            time,
        };
        self.output.line(&Line::Block(line.clone()))?;
        self.progress.block(&line);
        self.blocks.push(line);
        self.previous = mined.hash;
        self.schnorr += signed.schnorr;
        self.remember(plan, signed.txids, order);
        Ok(())
    }

    fn coinbase(&mut self, plan: &Plan, signed: &Signed, order: &[u32]) -> Coinbase {
        let network = self.shape.network();
        let pay = plan.pay(self.shape.distinct, 0, 0);
        self.locks.want(pay.kind, &pay.key);
        self.locks.prepare(&self.threads);
        // BIP141 takes the coinbase's own identifier as zero, as it is in `signed`.
        let witness_root =
            if network.segwit() { block::root(&signed.wtxids, order) } else { [0; 32] };
        self.locks.with(pay.kind, &pay.key, |lock| {
            Coinbase::new(&CoinbaseParts {
                network,
                height: plan.height,
                seed: self.shape.seed,
                amount: pay.amount,
                script: lock.script(),
                witness_root,
            })
        })
    }

    /// Keeps the block's outputs and marks what it spent.
    fn remember(&mut self, mut plan: Plan, txids: Vec<[u8; 32]>, order: Vec<u32>) {
        let inputs = plan.take_inputs();
        self.coins.push(BlockCoins::new(plan, txids, order));
        for coin in inputs {
            self.coins.spend(coin);
        }
    }

    fn tip(&mut self) -> TipLine {
        let set = utxo::summarise(
            &self.coins,
            &self.locks,
            self.shape.distinct,
            &self.threads,
            self.progress,
        );
        let last = self.blocks.last().expect("there is at least one block");
        let sum = |count: fn(&BlockLine) -> u64| self.blocks.iter().map(count).sum();
        TipLine {
            height: last.height,
            hash: last.hash.clone(),
            utxo_count: set.count,
            utxo_amount: set.amount,
            utxo_muhash: hex(&set.muhash),
            txs: sum(|line| line.txs),
            inputs: sum(|line| line.inputs),
            outputs: sum(|line| line.outputs),
            bytes: sum(|line| line.bytes),
            signatures: sum(|line| line.signatures),
        }
    }

    fn view(&self) -> View<'_> {
        View { shape: &self.shape, coins: &self.coins }
    }
}

fn desk<'a>(
    shape: &Shape,
    threads: &'a ThreadPool,
    locks: &'a LockBook,
    coins: &'a Coins,
) -> Desk<'a> {
    Desk { threads, network: shape.network(), distinct: shape.distinct, locks, coins }
}

/// Announces the locks of all outputs from transaction `from` on.
fn want(locks: &mut LockBook, distinct: bool, plan: &Plan, from: u32) {
    let mut pays = Vec::new();
    for tx in from..plan.len() {
        plan.pays(distinct, tx, &mut pays);
        for pay in &pays {
            locks.want(pay.kind, &pay.key);
        }
    }
}

/// The generation order as the laboratory reads it: txid, offset in the raw block, length.
fn order_records(signed: &Signed, offsets: &[u32]) -> Vec<u8> {
    let mut records = Vec::with_capacity(40 * (offsets.len() - 1));
    for ((txid, offset), place) in signed.txids.iter().zip(offsets).zip(&signed.places).skip(1) {
        records.extend_from_slice(txid);
        records.extend_from_slice(&offset.to_le_bytes());
        records.extend_from_slice(&place.bytes.to_le_bytes());
    }
    records
}

fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    bytes.iter().fold(String::with_capacity(2 * bytes.len()), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// Most bytes of fan-out blocks signed together.
const GROUP_BYTES_MAX: u64 = 1 << 30;
