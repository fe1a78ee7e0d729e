//! State of a round: coins with their locks, headers, and construction of valid blocks on top.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::rc::Rc;

use anyhow::{Context as _, Result};
use assay_consensus::commitment::height_prefix;
use assay_consensus::params::{COINBASE_MATURITY, ChainParams};
use assay_consensus::subsidy::block_subsidy;
use assay_consensus::tx::is_unspendable;
use assay_wire::{BlockHash, Encoding, Header, OutPoint};

use crate::build::{Block, Input, Lock, Output, Rng, Tx, random_lock, unlock};
use crate::verdict::Verdict;

#[derive(Clone, Debug)]
pub struct Coin {
    pub outpoint: OutPoint,
    pub output: Output,
    pub height: u32,
    /// True for an output of a coinbase.
    pub coinbase: bool,
    /// Lock that spends the coin, if known.
    pub lock: Option<Rc<Lock>>,
}

/// State of the chain up to one block.
#[derive(Clone, Debug)]
pub struct State {
    /// Hash and time of every block from genesis on.
    pub headers: Vec<(BlockHash, u32)>,
    pub coins: BTreeMap<OutPoint, Rc<Coin>>,
}

impl State {
    pub fn height(&self) -> u32 {
        self.headers.len() as u32 - 1
    }

    pub fn hash(&self) -> BlockHash {
        self.headers[self.headers.len() - 1].0
    }

    /// Median time past of the block at `height` (BIP113).
    pub fn median_time_at(&self, height: u32) -> u32 {
        let end = height as usize + 1;
        let mut times: Vec<u32> =
            self.headers[end.saturating_sub(11)..end].iter().map(|(_, time)| *time).collect();
        times.sort_unstable();
        times[times.len() / 2]
    }

    /// Median time past of the last block.
    pub fn median_time(&self) -> u32 {
        self.median_time_at(self.height())
    }

    /// True if the next block may spend a coin by its lock.
    pub fn may_spend(&self, coin: &Coin) -> bool {
        let next = self.height() + 1;
        let Some(lock) = &coin.lock else { return false };
        if coin.coinbase && coin.height + COINBASE_MATURITY > next {
            return false;
        }
        match lock.sequence {
            Some(sequence) if sequence & (1 << 31) == 0 => {
                let value = sequence & 0xffff;
                if sequence & (1 << 22) == 0 {
                    coin.height + value <= next
                } else {
                    let since = self.median_time_at(coin.height.saturating_sub(1).min(next - 1));
                    since + (value << 9) <= self.median_time()
                }
            }
            _ => true,
        }
    }
}

/// Chain and random generator of a round.
pub struct World {
    pub rng: Rng,
    pub params: ChainParams,
    pub state: Rc<State>,
    /// Recently accepted blocks, oldest first.
    pub accepted: Vec<Vec<u8>>,
    /// Recently rejected blocks.
    pub rejected: Vec<Vec<u8>>,
    states: HashMap<BlockHash, Rc<State>>,
    locks: HashMap<Vec<u8>, Rc<Lock>>,
    extra_nonce: u64,
}

/// Number of blocks kept for classes that submit them again.
const KEPT_BLOCKS: usize = 32;
/// Length of the base chain; its first mature coinbases pay for everything.
const BASE_BLOCKS: u32 = 108;
/// Number of its blocks whose coinbases are split into many outputs.
const RICH_BLOCKS: u32 = 6;
/// Outputs of such a coinbase.
const RICH_OUTPUTS: usize = 24;
/// Number of the following blocks, which create ordinary coins.
const SPREAD_BLOCKS: u32 = 6;

impl World {
    /// A round at genesis.
    pub fn new(seed: u64, round: u64) -> Result<Self> {
        let params = ChainParams::by_name("regtest").context("regtest is a known chain")?;
        let state = Rc::new(State {
            headers: vec![(params.genesis_hash, params.genesis.time)],
            coins: BTreeMap::new(),
        });
        Ok(Self {
            rng: Rng::new("assay peer kernel compare", seed, round),
            states: HashMap::from([(state.hash(), Rc::clone(&state))]),
            state,
            accepted: Vec::new(),
            rejected: Vec::new(),
            locks: HashMap::new(),
            extra_nonce: 0,
            params,
        })
    }

    /// Next block of the base chain; `None` when it is complete.
    pub fn base_block(&mut self) -> Option<Vec<u8>> {
        let next = self.state.height() + 1;
        let mut block = match next {
            height if height <= RICH_BLOCKS => {
                let mut block = self.block(0);
                let value = block.txs[0].outputs[0].value / RICH_OUTPUTS as i64;
                block.txs[0].outputs =
                    (0..RICH_OUTPUTS).map(|_| self.random_output(value)).collect();
                block
            }
            height if height <= BASE_BLOCKS => self.block(0),
            height if height <= BASE_BLOCKS + SPREAD_BLOCKS => self.block(8),
            _ => return None,
        };
        block.seal(&self.params);
        Some(block.bytes())
    }

    /// Records the verdict on a block.
    pub fn note(&mut self, raw: &[u8], verdict: &Verdict, tip: BlockHash) -> Result<()> {
        match verdict {
            _ if raw.len() == Header::SIZE => {}
            Verdict::Accepted | Verdict::Inconclusive => {
                if let Ok(block) = assay_wire::Block::parse_prefix(raw.to_vec(), Encoding::Segwit) {
                    self.learn(&Block::from_wire(&block));
                }
                remember(&mut self.accepted, raw);
            }
            Verdict::Rejected { .. } => remember(&mut self.rejected, raw),
            _ => {}
        }
        if tip != self.state.hash() {
            let state = self.states.get(&tip).with_context(|| format!("unknown tip {tip}"))?;
            self.state = Rc::clone(state);
        }
        Ok(())
    }

    fn learn(&mut self, block: &Block) {
        let Some(parent) = self.states.get(&block.header.prev_block) else { return };
        let mut state = State::clone(parent);
        state.headers.push((block.hash(), block.header.time));
        let height = state.height();
        for (index, tx) in block.txs.iter().enumerate() {
            for input in &tx.inputs {
                state.coins.remove(&input.prevout);
            }
            for coin in self.coins_of(tx, height, index == 0) {
                state.coins.insert(coin.outpoint, Rc::new(coin));
            }
        }
        self.states.insert(block.hash(), Rc::new(state));
    }

    /// Coins created by a transaction.
    fn coins_of(&self, tx: &Tx, height: u32, coinbase: bool) -> Vec<Coin> {
        let txid = tx.txid();
        let coin = |(vout, output): (usize, &Output)| Coin {
            outpoint: OutPoint { txid, vout: vout as u32 },
            output: output.clone(),
            height,
            coinbase,
            lock: self.locks.get(&output.script_pubkey).cloned(),
        };
        tx.outputs
            .iter()
            .enumerate()
            .filter(|(_, output)| !is_unspendable(&output.script_pubkey))
            .map(coin)
            .collect()
    }

    /// State after a known block.
    pub fn state_of(&self, hash: &BlockHash) -> Option<Rc<State>> {
        self.states.get(hash).cloned()
    }

    /// Sets the state that blocks are built on, until the next verdict is recorded; returns the previous one.
    pub fn build_on(&mut self, state: Rc<State>) -> Rc<State> {
        std::mem::replace(&mut self.state, state)
    }

    /// Assumes `block` valid and builds on it, as in [`World::build_on`].
    pub fn assume(&mut self, block: &Block) {
        self.learn(block);
        if let Some(state) = self.states.get(&block.hash()) {
            self.state = Rc::clone(state);
        }
    }

    /// Stores a lock, so that its coins can be spent later.
    pub fn register(&mut self, lock: Lock) -> Vec<u8> {
        let script_pubkey = lock.script_pubkey();
        self.locks.entry(script_pubkey.clone()).or_insert_with(|| Rc::new(lock));
        script_pubkey
    }

    /// An output to a random lock, sometimes an unspendable one.
    pub fn random_output(&mut self, value: i64) -> Output {
        if self.rng.chance(1, 40) {
            let len = self.rng.below(60);
            let mut script_pubkey = vec![0x6a];
            script_pubkey.extend(self.rng.bytes(len));
            return Output { value, script_pubkey };
        }
        let lock = random_lock(&mut self.rng);
        Output { value, script_pubkey: self.register(lock) }
    }

    /// An unsealed block on the tip with a number of random payments; its coinbase claims all or some of the fees.
    pub fn block(&mut self, payments: usize) -> Block {
        let state = Rc::clone(&self.state);
        let height = state.height() + 1;
        self.extra_nonce += 1;
        let mut script_sig = height_prefix(height);
        script_sig.push(8);
        script_sig.extend_from_slice(&self.extra_nonce.to_le_bytes());
        let input = Input { script_sig, ..Input::new(OutPoint::NULL, u32::MAX) };
        let value = block_subsidy(&self.params, height);
        let output = self.random_output(value);
        let coinbase = Tx { version: 2, inputs: vec![input], outputs: vec![output], lock_time: 0 };
        let last_time = state.headers[state.headers.len() - 1].1;
        let earliest = state.median_time() + 1;
        let header = Header {
            version: *self.rng.pick(&[0x2000_0000, 4, 0x7fff_ffff, 0x3fff_e000]),
            prev_block: state.hash(),
            merkle_root: [0; 32],
            time: earliest.max(last_time + self.rng.within(1, 1200) as u32),
            bits: 0x207f_ffff,
            nonce: 0,
        };
        let mut block = Block { header, txs: vec![coinbase] };
        for _ in 0..payments {
            let Some(tx) = self.payment(&block.txs) else { break };
            block.txs.push(tx);
        }
        if self.rng.chance(1, 2) {
            block.txs[0].outputs[0].value += self.fees(&block.txs);
        }
        block
    }

    /// Fees of all transactions but the coinbase, whose spent coins must be known.
    pub fn fees(&self, txs: &[Tx]) -> i64 {
        let paid: i64 = txs.iter().skip(1).map(Tx::output_total).sum();
        let taken: i64 = txs
            .iter()
            .skip(1)
            .flat_map(|tx| &tx.inputs)
            .filter_map(|input| self.coin(txs, &input.prevout))
            .map(|coin| coin.output.value)
            .sum();
        taken - paid
    }

    /// A coin of the tip or of the preceding transactions.
    pub fn coin(&self, txs: &[Tx], outpoint: &OutPoint) -> Option<Rc<Coin>> {
        if let Some(coin) = self.state.coins.get(outpoint) {
            return Some(Rc::clone(coin));
        }
        let index = txs.iter().position(|tx| tx.txid() == outpoint.txid)?;
        self.coins_of(&txs[index], self.state.height() + 1, index == 0)
            .into_iter()
            .find(|coin| coin.outpoint == *outpoint)
            .map(Rc::new)
    }

    /// Coins that the transaction after `txs` may spend.
    pub fn available(&mut self, txs: &[Tx]) -> Vec<Rc<Coin>> {
        let used: BTreeSet<OutPoint> =
            txs.iter().flat_map(|tx| tx.inputs.iter().map(|input| input.prevout)).collect();
        let height = self.state.height() + 1;
        let fresh = txs.iter().skip(1).flat_map(|tx| self.coins_of(tx, height, false));
        let mut coins: Vec<Rc<Coin>> = fresh
            .filter(|coin| !used.contains(&coin.outpoint) && self.state.may_spend(coin))
            .map(Rc::new)
            .collect();
        // Prefers chains of transactions within one block.
        if coins.is_empty() || !self.rng.chance(1, 3) {
            coins.extend(
                self.state
                    .coins
                    .values()
                    .filter(|coin| !used.contains(&coin.outpoint) && self.state.may_spend(coin))
                    .cloned(),
            );
        }
        coins
    }

    /// A random valid transaction after `txs`.
    pub fn payment(&mut self, txs: &[Tx]) -> Option<Tx> {
        let mut coins = self.available(txs);
        let wanted = self.rng.within(1, 3);
        let mut taken: Vec<(Rc<Coin>, Rc<Lock>)> = Vec::new();
        while taken.len() < wanted && !coins.is_empty() {
            let at = self.rng.below(coins.len());
            let coin = coins.swap_remove(at);
            let Some(lock) = coin.lock.clone() else { continue };
            if taken.iter().all(|(_, other)| are_compatible(other, &lock)) {
                taken.push((coin, lock));
            }
        }
        let total: i64 = taken.iter().map(|(coin, _)| coin.output.value).sum();
        if taken.is_empty() {
            return None;
        }
        let count = self.rng.within(1, 4);
        let fee = self.rng.below((total / 1000).max(1) as usize) as i64;
        let mut outputs = Vec::with_capacity(count);
        let mut left = total - fee;
        for index in (0..count).rev() {
            let value = if index == 0 { left } else { left / (index as i64 + 1) };
            left -= value;
            outputs.push(self.random_output(value));
        }
        Some(self.spend(&taken, outputs))
    }

    /// A transaction that spends coins by locks, which may be wrong ones.
    pub fn spend(&mut self, coins: &[(Rc<Coin>, Rc<Lock>)], outputs: Vec<Output>) -> Tx {
        let lock_time = coins.iter().filter_map(|(_, lock)| lock.lock_time).max().unwrap_or(0);
        let needs_two = coins
            .iter()
            .any(|(_, lock)| lock.sequence.is_some_and(|sequence| sequence & (1 << 31) == 0));
        let version = if needs_two { 2 } else { *self.rng.pick(&[1, 2, 2, 3, 0, -1]) };
        let inputs = coins
            .iter()
            .map(|(coin, lock)| {
                let sequence = lock.sequence.unwrap_or_else(|| {
                    *self.rng.pick(&[u32::MAX, 0xffff_fffe, 0xffff_fffd, 0x8000_0001, 0])
                });
                Input::new(coin.outpoint, sequence)
            })
            .collect();
        let mut tx = Tx { version, inputs, outputs, lock_time };
        sign(&mut tx, coins);
        tx
    }

    /// Appends a transaction that pays to `lock`, and returns the coin, which stays unknown to the round.
    pub fn fund(&mut self, txs: &mut Vec<Tx>, lock: &Lock) -> Option<Rc<Coin>> {
        let coins = self.available(txs);
        let rich: Vec<_> = coins.into_iter().filter(|coin| coin.output.value >= 20_000).collect();
        if rich.is_empty() {
            return None;
        }
        let coin = Rc::clone(self.rng.pick(&rich));
        let spent_by = coin.lock.clone()?;
        let value = coin.output.value;
        let script_pubkey = lock.script_pubkey();
        let part = value / 2;
        let change = self.random_output(value - part - 500);
        let tx = self.spend(
            &[(coin, spent_by)],
            vec![Output { value: part, script_pubkey: script_pubkey.clone() }, change],
        );
        let funded = self.made(&tx, 0, Some(Rc::new(lock.clone())));
        txs.push(tx);
        Some(funded)
    }

    /// The coin of an output of a transaction in the next block.
    pub fn made(&self, tx: &Tx, vout: usize, lock: Option<Rc<Lock>>) -> Rc<Coin> {
        let (outpoint, output) = (tx.outpoint(vout), tx.outputs[vout].clone());
        let height = self.state.height() + 1;
        Rc::new(Coin { outpoint, output, height, coinbase: false, lock })
    }

    /// Appends a transaction that pays to `lock`, and one that spends this.
    pub fn pass_through(&mut self, txs: &mut Vec<Tx>, lock: &Lock) -> Option<()> {
        let coin = self.fund(txs, lock)?;
        txs.push(self.sweep(&coin, lock));
        Some(())
    }

    /// A transaction that spends one coin by a lock, with its whole value to an anyone-can-spend output.
    pub fn sweep(&mut self, coin: &Rc<Coin>, lock: &Lock) -> Tx {
        let script_pubkey = self.register(Lock::open(crate::build::Place::Wsh));
        let value = coin.output.value - 300;
        let pair = (Rc::clone(coin), Rc::new(lock.clone()));
        self.spend(&[pair], vec![Output { value, script_pubkey }])
    }
}

/// Signs all inputs by the given locks.
pub fn sign(tx: &mut Tx, coins: &[(Rc<Coin>, Rc<Lock>)]) {
    let locks: Vec<&Lock> = coins.iter().map(|(_, lock)| lock.as_ref()).collect();
    let spent: Vec<Output> = coins.iter().map(|(coin, _)| coin.output.clone()).collect();
    unlock(tx, &locks, &spent);
}

/// True if one transaction can satisfy the lock times of both.
fn are_compatible(a: &Lock, b: &Lock) -> bool {
    const THRESHOLD: u32 = 500_000_000;
    match (a.lock_time, b.lock_time) {
        (Some(a), Some(b)) => (a < THRESHOLD) == (b < THRESHOLD),
        _ => true,
    }
}

fn remember(blocks: &mut Vec<Vec<u8>>, raw: &[u8]) {
    if raw.len() > 100_000 {
        return;
    }
    if blocks.len() >= KEPT_BLOCKS {
        blocks.remove(0);
    }
    blocks.push(raw.to_vec());
}
