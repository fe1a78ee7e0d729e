//! Signs planned transactions on all threads; the result does not depend on their number.

use std::ops::Range;

use rayon::{ThreadPool, prelude::*};

use crate::{
    kind::Bound,
    lock::ScriptCache,
    network::Network,
    options::Params,
    plan::Plan,
    sign::{Pay, Spend, TxWriter, Written},
    summary::Progress,
};

#[derive(Clone, Copy)]
pub(crate) struct SigningContext<'a> {
    pub(crate) threads: &'a ThreadPool,
    pub(crate) network: Network,
    pub(crate) distinct: bool,
    pub(crate) locks: &'a ScriptCache,
    /// Inputs per unit of work: enough for low overhead, few enough to occupy all threads.
    pub(crate) chunk_inputs: usize,
}

impl<'a> SigningContext<'a> {
    pub(crate) fn new(
        params: &Params,
        threads: &'a ThreadPool,
        locks: &'a ScriptCache,
        chunk_inputs: usize,
    ) -> Self {
        let Params { network, distinct, .. } = *params;
        Self { threads, network, distinct, locks, chunk_inputs }
    }
}

/// Position of a transaction among the chunks of its block.
#[derive(Clone, Copy, Default)]
pub(crate) struct Place {
    pub(crate) chunk: u32,
    pub(crate) offset: u32,
    pub(crate) bytes: u32,
}

/// The signed transactions of a block by their index in the plan; index 0, the coinbase, is empty.
pub(crate) struct Signed {
    pub(crate) chunks: Vec<Vec<u8>>,
    pub(crate) places: Vec<Place>,
    pub(crate) txids: Vec<[u8; 32]>,
    pub(crate) wtxids: Vec<[u8; 32]>,
    pub(crate) weight: u64,
    pub(crate) signatures: u64,
    pub(crate) schnorr: u64,
}

impl Signed {
    pub(crate) fn new() -> Self {
        Self {
            chunks: Vec::new(),
            places: vec![Place::default()],
            txids: vec![[0; 32]],
            wtxids: vec![[0; 32]],
            weight: 0,
            signatures: 0,
            schnorr: 0,
        }
    }

    pub(crate) fn tx(&self, tx: u32) -> &[u8] {
        let place = self.places[tx as usize];
        &self.chunks[place.chunk as usize][place.offset as usize..][..place.bytes as usize]
    }

    /// Takes over the contents of a chunk.
    pub(crate) fn absorb(&mut self, chunk: Chunk) {
        let number = self.chunks.len() as u32;
        let len = chunk.written.iter().map(|(tx, _)| *tx as usize + 1).max().unwrap_or(0);
        if self.places.len() < len {
            self.places.resize(len, Place::default());
            self.txids.resize(len, [0; 32]);
            self.wtxids.resize(len, [0; 32]);
        }
        let mut offset = 0;
        for (tx, written) in chunk.written {
            let tx = tx as usize;
            self.places[tx] = Place { chunk: number, offset, bytes: written.bytes };
            self.txids[tx] = written.txid;
            self.wtxids[tx] = written.wtxid;
            self.weight += u64::from(written.weight);
            self.signatures += u64::from(written.signatures);
            self.schnorr += u64::from(written.schnorr);
            offset += written.bytes;
        }
        self.chunks.push(chunk.bytes);
    }
}

/// Transactions in the order in which one thread wrote them.
#[derive(Default)]
pub(crate) struct Chunk {
    bytes: Vec<u8>,
    written: Vec<(u32, Written)>,
}

/// Signs the transactions `range` of a plan and adds them to `signed`; `spends_of` appends the inputs of a transaction.
pub(crate) fn sign_range<I: Sync>(
    context: SigningContext<'_>,
    plan: &Plan<I>,
    range: Range<u32>,
    spends_of: impl Fn(u32, &mut Vec<Spend>) + Sync,
    signed: &mut Signed,
    progress: &mut dyn Progress,
) {
    let sign_chunk = |txs: &Range<u32>| {
        let mut writer = TxWriter::new(context.network, context.locks);
        let (mut spends, mut pays): (Vec<Spend>, Vec<Pay>) = (Vec::new(), Vec::new());
        let mut chunk = Chunk::default();
        for tx in txs.clone() {
            spends.clear();
            spends_of(tx, &mut spends);
            plan.outputs.pays(context.distinct, tx, &mut pays);
            let written = writer.write(&spends, &pays, &mut chunk.bytes);
            debug_assert!(u64::from(written.weight) <= bound(&spends, &pays).weight());
            chunk.written.push((tx, written));
        }
        chunk.bytes.shrink_to_fit();
        chunk
    };
    for step in cut_at(context.chunk_inputs, plan, range).chunks(CHUNKS_PER_STEP) {
        let chunks: Vec<Chunk> =
            context.threads.install(|| step.par_iter().map(sign_chunk).collect());
        let before = signed.signatures;
        for chunk in chunks {
            signed.absorb(chunk);
        }
        progress.signed(signed.signatures - before);
    }
}

/// Splits a range of transactions into pieces of about `inputs_max` inputs.
fn cut_at<I>(inputs_max: usize, plan: &Plan<I>, range: Range<u32>) -> Vec<Range<u32>> {
    let mut cuts = Vec::new();
    let (mut start, mut inputs) = (range.start, 0);
    for tx in range.clone() {
        inputs += plan.inputs_of(tx).len();
        if inputs >= inputs_max {
            cuts.push(start..tx + 1);
            (start, inputs) = (tx + 1, 0);
        }
    }
    if start < range.end {
        cuts.push(start..range.end);
    }
    cuts
}

fn bound(spends: &[Spend], pays: &[Pay]) -> Bound {
    let mut bound = Bound::default();
    for spend in spends {
        bound.input(spend.kind);
    }
    for pay in pays {
        bound.output(pay.kind);
    }
    bound
}

/// A chain of transactions within one block: each spends an output of its predecessor, so one thread must write them in order.
pub(crate) struct TxChain {
    pub(crate) plan: usize,
    pub(crate) txs: Vec<u32>,
    /// Input of the first one.
    pub(crate) start: Spend,
    /// Index of the output that the next one spends.
    pub(crate) link: u32,
    next: usize,
    chunk: Chunk,
}

impl TxChain {
    pub(crate) fn new(plan: usize, txs: Vec<u32>, start: Spend, link: u32) -> Self {
        Self { plan, txs, start, link, next: 0, chunk: Chunk::default() }
    }

    fn advance(&mut self, context: SigningContext<'_>, plan: &Plan) -> u64 {
        let mut writer = TxWriter::new(context.network, context.locks);
        let mut pays = Vec::new();
        let mut signatures = 0;
        let end = self.txs.len().min(self.next + TX_CHAIN_STEP);
        for at in self.next..end {
            let tx = self.txs[at];
            let spend = match self.chunk.written.last() {
                None => self.start,
                Some((parent, written)) => {
                    plan.outputs.spend(context.distinct, written.txid, *parent, self.link)
                }
            };
            plan.outputs.pays(context.distinct, tx, &mut pays);
            let written = writer.write(&[spend], &pays, &mut self.chunk.bytes);
            signatures += u64::from(written.signatures);
            self.chunk.written.push((tx, written));
        }
        self.next = end;
        signatures
    }
}

/// Signs transaction chains in parallel, some transactions of each at a time, and adds them to the blocks of their plans.
pub(crate) fn sign_tx_chains(
    context: SigningContext<'_>,
    plans: &[Plan],
    mut tx_chains: Vec<TxChain>,
    signed: &mut [Signed],
    progress: &mut dyn Progress,
) {
    while tx_chains.iter().any(|tx_chain| tx_chain.next < tx_chain.txs.len()) {
        let made: u64 = context.threads.install(|| {
            tx_chains
                .par_iter_mut()
                .map(|tx_chain| tx_chain.advance(context, &plans[tx_chain.plan]))
                .sum()
        });
        progress.signed(made);
    }
    for tx_chain in tx_chains {
        signed[tx_chain.plan].absorb(tx_chain.chunk);
    }
}

/// Units between progress reports.
const CHUNKS_PER_STEP: usize = 512;
/// Transactions per chain between progress reports.
const TX_CHAIN_STEP: usize = 2048;
