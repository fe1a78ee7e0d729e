//! The scaling chains: fan-out, steady state, fan-in.

use std::time::Instant;

use crate::{
    forge_state::{CHUNK_INPUTS, ForgeState},
    kind::{Bound, Kind},
    ledger::Phase,
    network::BLOCK_OVERHEAD_WEIGHT,
    phases::{
        View,
        fan_out::{self, FanOutPlan},
        placement::Pools,
        steady::{self, Pool, Steady2, Steady3},
    },
    plan::Plan,
    random::{BLOCK_STREAM, Stream},
    shape::{PHASES, Shape},
    sign::Spend,
    signing_threads::{Signed, SigningContext, TxChain, sign_tx_chains},
    summary::ForgeError,
};

pub(crate) struct Scaling<'a, 'p> {
    pub(crate) shape: &'a Shape,
    pub(crate) state: &'a mut ForgeState<'p>,
}

impl Scaling<'_, '_> {
    pub(crate) fn phases(&mut self) -> Result<(), ForgeError> {
        let mut short = None;
        for phase in PHASES {
            let blocks = self.shape.blocks_made(phase);
            if blocks == 0 {
                continue;
            }
            self.state.phase(phase, blocks);
            match phase {
                Phase::Maturity => short = self.maturity(blocks)?,
                Phase::Baseline => {
                    let shape = self.shape;
                    let plan = |block| fan_out::plan_chains(shape, phase, block);
                    self.fan_out_group(phase, (0..blocks).map(plan).collect())?;
                }
                Phase::FanOut => self.fan_out(blocks, short.take())?,
                Phase::Placement => {
                    let mut pools = Pools::new(self.view());
                    for block in 0..blocks {
                        let (phase, mut source) = pools.block(block);
                        self.fill(phase, |view, plan, kinds| source.next(view, plan, kinds))?;
                    }
                }
                Phase::Steady3 => {
                    let mut pool = Pool::new(self.view(), &self.state.threads);
                    for block in 0..blocks {
                        let mut source = Steady3::new(self.view(), block, &mut pool);
                        self.fill(phase, |view, plan, kinds| source.next(view, plan, kinds))?;
                    }
                }
                _ => {
                    for block in 0..blocks {
                        self.steady(phase, block)?;
                    }
                }
            }
        }
        Ok(())
    }

    fn steady(&mut self, phase: Phase, block: u32) -> Result<(), ForgeError> {
        match phase {
            Phase::Steady1 => {
                let mut walk = steady::steady_1_sources(self.view(), block);
                self.fill(phase, |view, plan, kinds| {
                    steady::steady_1_next(&mut walk, view, plan, kinds)
                })
            }
            Phase::FanIn => {
                let mut coins = steady::fan_in_sources(self.view(), block);
                self.fill(phase, |view, plan, kinds| {
                    steady::fan_in_next(&mut coins, view, plan, kinds)
                })
            }
            _ => {
                let mut source = Steady2::new(self.view(), block);
                self.fill(phase, |view, plan, kinds| source.next(view, plan, kinds))
            }
        }
    }

    /// Makes blocks without transactions. If chains are short, the last block confirms the first split; then this returns the
    /// plans of the fan-out blocks, which determine the split.
    fn maturity(&mut self, blocks: u32) -> Result<Option<Vec<FanOutPlan>>, ForgeError> {
        let mut short = None;
        for height in 1..=blocks {
            let is_last = height == self.shape.blocks(Phase::Maturity);
            if is_last && fan_out::short_chains(self.shape.network()) {
                let mut plans = fan_out::plan_short_chains(self.shape);
                let rest = plans.split_off(1);
                let first = plans.pop().expect("the block before fan-out is planned too");
                self.fan_out_group(Phase::Maturity, vec![first])?;
                short = Some(rest);
            } else {
                self.state.empty_block(Phase::Maturity)?;
            }
        }
        Ok(short)
    }

    fn fan_out(&mut self, blocks: u32, short: Option<Vec<FanOutPlan>>) -> Result<(), ForgeError> {
        // Transaction chains are sequential, so grouping more blocks keeps more threads busy; memory limits the group.
        let in_memory = (GROUP_BYTES_MAX / (self.shape.weight_max / 4).max(1)).max(1) as usize;
        let group = self.shape.params.threads.min(in_memory);
        let mut short = short.map(Vec::into_iter);
        let mut made = 0;
        while made < blocks {
            let now = group.min((blocks - made) as usize) as u32;
            let plans = match &mut short {
                Some(plans) => plans.by_ref().take(now as usize).collect(),
                None => (made..made + now)
                    .map(|block| fan_out::plan_chains(self.shape, Phase::FanOut, block))
                    .collect(),
            };
            self.fan_out_group(Phase::FanOut, plans)?;
            made += now;
        }
        Ok(())
    }

    /// Signs and writes consecutive fan-out blocks as a group.
    fn fan_out_group(&mut self, phase: Phase, group: Vec<FanOutPlan>) -> Result<(), ForgeError> {
        let begun = Instant::now();
        let (plans, tx_chains): (Vec<_>, Vec<_>) =
            group.into_iter().map(|planned| (planned.plan, planned.tx_chains)).unzip();
        for plan in &plans {
            self.state.prepare_locks(plan, 0..plan.len());
        }
        let mut signed: Vec<_> = plans.iter().map(|_| Signed::new()).collect();
        for (plan, signed) in plans.iter().zip(&mut signed) {
            self.state.sign_range(plan, 1..plan.first_ordinary, signed);
        }
        let mut ready = Vec::new();
        for (number, tx_chains) in tx_chains.into_iter().enumerate() {
            for txs in tx_chains {
                let start = self.tx_chain_start(&plans, &signed, number, txs[0]);
                let outputs = fan_out::chain_outputs(self.shape, phase);
                ready.push(TxChain::new(number, txs, start, outputs));
            }
        }
        let ForgeState { params, threads, locks, progress, .. } = &mut *self.state;
        let context = SigningContext::new(params, threads, locks, CHUNK_INPUTS);
        sign_tx_chains(context, &plans, ready, &mut signed, *progress);
        self.state.signing_seconds += begun.elapsed().as_secs_f64();
        for (plan, signed) in plans.into_iter().zip(signed) {
            self.state.finish_block(phase, plan, signed)?;
        }
        Ok(())
    }

    /// The coin that starts a transaction chain: an output of a split, in this group of plans or in a finished block.
    fn tx_chain_start(
        &self,
        plans: &[Plan],
        signed: &[Signed],
        number: usize,
        first: u32,
    ) -> Spend {
        let coin = plans[number].inputs_of(first)[0];
        let distinct = self.shape.params.distinct;
        match plans.iter().position(|plan| plan.outputs.height == coin.height) {
            None => self.state.coins.spend_of(distinct, coin),
            Some(at) => {
                let txid = signed[at].txids[coin.tx as usize];
                plans[at].outputs.spend(distinct, txid, coin.tx, coin.vout)
            }
        }
    }

    /// Makes a block with as many transactions as fit. `next` appends one to a plan, with kinds of outputs drawn from the stream;
    /// false if nothing is left to spend.
    ///
    /// Before signing, sizes are known only as upper bounds. The block is therefore filled in rounds: each plans as many
    /// transactions as certainly fit into the room left by the signed ones.
    fn fill(
        &mut self,
        phase: Phase,
        mut next: impl FnMut(View<'_>, &mut Plan, &mut Stream) -> bool,
    ) -> Result<(), ForgeError> {
        let mut plan = self.state.new_plan();
        let mut kinds = self.shape.stream(plan.outputs.height, BLOCK_STREAM);
        let mut signed = Signed::new();
        let room = self.shape.weight_max - BLOCK_OVERHEAD_WEIGHT;
        let mut sigops = self.shape.sigops_max - Kind::P2pkh.output_sigops_cost();
        let (mut from, mut exhausted) = (plan.len(), false);
        while !exhausted {
            let mut left = room - signed.weight;
            let mut end = from;
            loop {
                // One that did not fit in the round before is planned already.
                if end == plan.len() && !next(self.view(), &mut plan, &mut kinds) {
                    exhausted = true;
                    break;
                }
                let bound: Bound = plan.bound(&self.state.coins, end);
                if bound.weight() > left || bound.sigops_cost() > sigops {
                    break;
                }
                left -= bound.weight();
                sigops -= bound.sigops_cost();
                end += 1;
            }
            if end == from {
                break;
            }
            self.state.sign(&plan, from..end, &mut signed);
            from = end;
        }
        if plan.len() > from {
            plan.drop_last();
        }
        self.state.finish_block(phase, plan, signed)
    }

    fn view(&self) -> View<'_> {
        View { shape: self.shape, coins: &self.state.coins }
    }
}

/// Maximum bytes of fan-out blocks signed together.
const GROUP_BYTES_MAX: u64 = 1 << 30;
