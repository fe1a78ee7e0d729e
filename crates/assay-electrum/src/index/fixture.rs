//! Test chains with a plain map as oracle.

use std::collections::HashMap;
use std::sync::Arc;

use assay_store::{CoinRef, UndoWriter};
use assay_testkit::chain::{block_bytes, header_on};
pub(crate) use assay_testkit::random::Random;
use assay_wire::{Block, BlockHash, Encoding, OutPoint, Transaction, Txid};

use super::*;
use crate::testing::{out, tx};

pub(crate) const ENTRIES_MAX: usize = 100_000;

/// A block, its spent coins, and the oracle's state after it.
#[derive(Clone)]
pub(crate) struct TestBlock {
    pub(crate) raw: Vec<u8>,
    pub(crate) undo: Vec<u8>,
    pub(crate) after: Arc<Model>,
}

impl TestBlock {
    pub(crate) fn block(&self) -> Block {
        Block::parse(self.raw.clone(), Encoding::Legacy).unwrap()
    }
}

/// The oracle: lists in chain order.
#[derive(Clone, Default)]
pub(crate) struct Model {
    blocks: Vec<(BlockHash, Vec<Txid>)>,
    headers: Vec<[u8; 80]>,
    pub(crate) history: HashMap<ScriptHash, Vec<HistoryEntry>>,
    unspent: HashMap<OutPoint, (Vec<u8>, Unspent)>,
    spenders: HashMap<OutPoint, Spender>,
    positions: HashMap<Txid, TxPosition>,
}

/// Few scripts, so that some have long histories.
fn script(random: &mut Random) -> Vec<u8> {
    let choice = random.below(12);
    match choice {
        0 => vec![0x6a, 1, 2],
        1..=5 => vec![0x51, choice as u8],
        _ => vec![0x52, random.below(200) as u8, choice as u8],
    }
}

impl Model {
    /// Builds a block of random transactions on top. With `ctor` they are ordered by txid.
    pub(crate) fn grow(&self, random: &mut Random, ctor: bool) -> TestBlock {
        let mut after = self.clone();
        let height = self.blocks.len() as u32;
        let mut coins: Vec<OutPoint> = self.unspent.keys().copied().collect();
        coins.sort_unstable();
        let outputs: Vec<_> = (0..=random.below(3)).map(|_| (50, script(random))).collect();
        let mut txs = vec![pay(&[OutPoint::NULL], &outputs, height ^ random.below(1 << 30) as u32)];
        for _ in 0..random.below(6) {
            let inputs: Vec<OutPoint> = (0..=random.below(2))
                .map_while(|_| {
                    (!coins.is_empty()).then(|| coins.swap_remove(random.below(coins.len())))
                })
                .collect();
            if inputs.is_empty() {
                break;
            }
            let outputs: Vec<_> = (0..random.below(5))
                .map(|_| (random.below(3) as i64 * 7, script(random)))
                .collect();
            let tx = pay(&inputs, &outputs, height);
            for (vout, (_, script)) in (0..).zip(outputs) {
                if script[0] != 0x6a {
                    coins.push(out(&tx, vout));
                }
            }
            txs.push(tx);
        }
        if ctor {
            txs[1..].sort_unstable_by_key(|tx| tx.view().txid());
        }
        let prev_block = self.blocks.last().map_or(BlockHash::ZERO, |block| block.0);
        let raw = block_bytes(header_on(prev_block, random.below(1 << 31) as u32), &txs);
        let block = Block::parse(raw.clone(), Encoding::Legacy).unwrap();
        let undo = after.connect(&block, height);
        TestBlock { raw, undo, after: Arc::new(after) }
    }

    /// Reference: adds all outputs, then spends all inputs, as in Bitcoin Cash's order; histories follow block order.
    fn connect(&mut self, block: &Block, height: u32) -> Vec<u8> {
        let txids = block.txids(0..block.tx_count());
        let hash = block.hash();
        for (index, (tx, &txid)) in block.txs().zip(&txids).enumerate() {
            let position = TxPosition {
                height,
                block: hash,
                index: index as u32,
                offset: tx.offset() as u32,
                length: tx.raw().len() as u32,
            };
            self.positions.insert(txid, position);
            for (vout, output) in (0..).zip(tx.outputs()) {
                if output.script_pubkey[0] != 0x6a {
                    let unspent = Unspent { height, txid, vout, value: output.value as u64 };
                    self.unspent
                        .insert(OutPoint { txid, vout }, (output.script_pubkey.to_vec(), unspent));
                }
            }
        }
        let mut undo = UndoWriter::new();
        for (index, (tx, &txid)) in block.txs().zip(&txids).enumerate() {
            let mut touched = Vec::new();
            if index > 0 {
                for (vin, input) in (0..).zip(tx.inputs()) {
                    let (script, coin) = self.unspent.remove(&input.prevout).unwrap();
                    undo.push(CoinRef {
                        value: coin.value as i64,
                        height: coin.height,
                        coinbase: false,
                        script_pubkey: &script,
                    });
                    self.spenders.insert(input.prevout, Spender { height, txid, vin });
                    touched.push(script);
                }
            }
            let outputs = tx.outputs().map(|output| output.script_pubkey.to_vec());
            touched.extend(outputs.filter(|script| script[0] != 0x6a));
            touched.sort_unstable();
            touched.dedup();
            for script in touched {
                let entries = self.history.entry(ScriptHash::of(&script)).or_default();
                entries.push(HistoryEntry { height, txid });
            }
        }
        self.blocks.push((hash, txids));
        self.headers.push(block.header().to_bytes());
        undo.finish()
    }

    pub(crate) fn check(&self, view: &View) {
        let tip = view.tip().unwrap();
        assert_eq!(tip.height as usize + 1, self.blocks.len());
        for (height, (hash, txids)) in (0..).zip(&self.blocks) {
            let expected = BlockTxs { hash: *hash, txids: txids.clone() };
            assert_eq!(view.block_txs(height).unwrap(), Some(expected));
        }
        self.check_queries(view, true);
    }

    /// Checks results of a non-blocking view; with `must_answer` it must return one.
    pub(crate) fn check_at_once(&self, view: &View, must_answer: bool) {
        self.check_queries(&view.at_once(), must_answer);
    }

    fn check_queries(&self, view: &View, must_answer: bool) {
        for (height, (hash, txids)) in (0..).zip(&self.blocks) {
            compare(view.block_hash(height), &Some(*hash), must_answer);
            let header = self.headers[height as usize];
            compare(view.header(height), &Some(header), must_answer);
            compare(view.headers(height, 1), &header.to_vec(), must_answer);
            for (index, txid) in (0..).zip(txids) {
                compare(view.txid_at(height, index), &Some(*txid), must_answer);
                compare(view.position(txid), &self.positions.get(txid).copied(), must_answer);
            }
            compare(view.txid_at(height, txids.len() as u32), &None, must_answer);
        }
        let mut unspent: HashMap<ScriptHash, Vec<Unspent>> = HashMap::new();
        for (script, output) in self.unspent.values() {
            unspent.entry(ScriptHash::of(script)).or_default().push(*output);
        }
        for (script, history) in &self.history {
            compare(view.history(script, 0, ENTRIES_MAX), history, must_answer);
            let upper = self.blocks.len() as u32 / 2;
            let expected: Vec<_> =
                history.iter().filter(|entry| entry.height >= upper).copied().collect();
            compare(view.history(script, upper, ENTRIES_MAX), &expected, must_answer);
            let mut expected = unspent.remove(script).unwrap_or_default();
            let place = |output: &Unspent| {
                let position = &self.positions[&output.txid];
                (position.height, position.index, output.vout)
            };
            expected.sort_unstable_by_key(place);
            let balance: u64 = expected.iter().map(|output| output.value).sum();
            compare(view.unspent(script, ENTRIES_MAX), &expected, must_answer);
            compare(view.balance(script), &balance, must_answer);
        }
        for (outpoint, spender) in &self.spenders {
            compare(view.spender(outpoint), &Some(*spender), must_answer);
        }
        for outpoint in self.unspent.keys() {
            compare(view.spender(outpoint), &None, must_answer);
        }
    }
}

fn compare<T: PartialEq + std::fmt::Debug>(
    answer: Result<T, QueryError>,
    expected: &T,
    must_answer: bool,
) {
    match answer {
        Ok(answer) => assert_eq!(answer, *expected),
        Err(QueryError::NotAtOnce) => assert!(!must_answer, "everything is in memory"),
        Err(error) => panic!("{error}"),
    }
}

fn pay(inputs: &[OutPoint], outputs: &[(i64, Vec<u8>)], tag: u32) -> Transaction {
    let outputs: Vec<_> = outputs.iter().map(|(value, script)| (*value, &script[..])).collect();
    tx(inputs, &outputs, tag)
}

pub(crate) fn genesis(random: &mut Random) -> TestBlock {
    Model::default().grow(random, false)
}

/// A chain of a genesis block and `blocks` more.
pub(crate) fn chain(random: &mut Random, blocks: usize) -> Vec<TestBlock> {
    let mut chain = vec![genesis(random)];
    for _ in 0..blocks {
        chain.push(chain[chain.len() - 1].after.grow(random, false));
    }
    chain
}

/// A chain and its branches: blocks are added, or some of the last are replaced.
pub(crate) fn branches(random: &mut Random, steps: usize, ctor: bool) -> Vec<Vec<TestBlock>> {
    let mut chain = vec![genesis(random)];
    let mut all = vec![chain.clone()];
    for _ in 0..steps {
        if random.below(4) == 0 {
            let kept = chain.len().saturating_sub(random.below(9)).max(1);
            chain.truncate(kept);
        }
        for _ in 0..random.below(6) {
            let next = chain.last().unwrap().after.grow(random, ctor);
            chain.push(next);
        }
        all.push(chain.clone());
    }
    all
}

pub(crate) fn add(index: &Index, made: &TestBlock) -> Result<(), UpdateError> {
    let block = made.block();
    let txids = block.txids(0..block.tx_count());
    let rows = index.prepare(&block, &txids, Some(&made.undo), &mut |_| {})?;
    index.connect(rows)
}

/// The block of `chain` after the tip of an index, which first goes back to the fork, as by a follower.
pub(crate) fn next<'a>(
    index: &Index,
    chain: &'a [TestBlock],
) -> Result<Option<&'a TestBlock>, UpdateError> {
    let Some(tip) = index.tip() else { return Ok(chain.first()) };
    let is_on_chain = |height: u32| {
        let ours = index.view().block_hash(height).ok().flatten();
        chain.get(height as usize).is_some_and(|made| Some(made.block().hash()) == ours)
    };
    if is_on_chain(tip.height) {
        return Ok(chain.get(tip.height as usize + 1));
    }
    let fork = (0..tip.height).rev().find(|&height| is_on_chain(height)).unwrap();
    index.rewind(fork)?;
    Ok(chain.get(fork as usize + 1))
}
