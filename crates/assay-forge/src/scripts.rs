//! The script ledger: the history of every script of a forged chain, in terms of the Electrum protocol.
//!
//! A slow and simple oracle for an index. It reads the block files once, in order, with maps in memory and nothing on disk,
//! independently of any index or node. Of a large chain it keeps a sample: the scripts with the smallest keyed hashes. The sample
//! is known only at the end, but each script of the final sample was among the smallest at all times. Dropped scripts are
//! therefore never needed again, and one pass with bounded memory suffices.

use std::{
    collections::HashMap,
    fs::File,
    io::{self, Read, Seek, SeekFrom, Write},
    path::{Path, PathBuf},
};

use assay_hash::{SipHash13, sha256};
use assay_wire::{Block, BlockHash, Encoding, OutPoint, ParseError, Txid};
use faster_hex::hex_string;
use thiserror::Error;

use crate::ledger::scripts::{CoinLine, ScriptLine, ScriptsLine};
use crate::ledger::{BlockLine, Ledger, LedgerError};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ScriptChoice {
    pub scripts_max: usize,
    /// Maximum history entries and outputs of all scripts, about 50 bytes each: bounds memory if few scripts have most outputs.
    pub entries_max: usize,
    /// Seed of the keyed hash that selects the sample.
    pub seed: u64,
}

impl Default for ScriptChoice {
    fn default() -> Self {
        Self { scripts_max: 100_000, entries_max: 8_000_000, seed: 1 }
    }
}

#[derive(Debug, Error)]
pub enum ScriptLedgerError {
    #[error(transparent)]
    Ledger(#[from] LedgerError),
    #[error("cannot read block {height} in {}", path.display())]
    Read { path: PathBuf, height: u32, source: io::Error },
    #[error("block {height} does not parse")]
    Parse { height: u32, source: ParseError },
    #[error("block {height} is {found}, the ledger says {expected}")]
    OtherBlock { height: u32, expected: String, found: BlockHash },
    #[error("interrupted at block {height}")]
    Interrupted { height: u32 },
}

/// Histories of the scripts of a chain; see the module.
pub struct ScriptLedger {
    pub tip_height: u32,
    /// Hash of the tip in display order.
    pub tip_hash: String,
    pub tip_header: [u8; 80],
    /// Number of scripts of the chain: exact without sampling, else estimated from the sample.
    pub scripts_total: u64,
    pub is_sample: bool,
    choice: ScriptChoice,
    txs: Vec<ScriptTx>,
    slots: Vec<Slot>,
}

/// A confirmed transaction that touches a script in the sample.
#[derive(Clone, Copy, Debug)]
struct ScriptTx {
    height: u32,
    txid: Txid,
}

/// A script in the sample.
struct Slot {
    script_hash: [u8; 32],
    key: u64,
    history: Vec<u32>,
    coins: Vec<SlotCoin>,
}

/// An output; its transaction is an index into the list of transactions.
#[derive(Clone, Copy, Debug)]
struct SlotCoin {
    tx: u32,
    vout: u32,
    value: u64,
    /// Height of the spending block; zero while unspent, since genesis spends nothing.
    spent: u32,
}

impl ScriptLedger {
    /// Reads a forged chain. `progress` is called with the blocks done and the total, and returns false to cancel.
    ///
    /// Unspendable outputs (`OP_RETURN`, scripts of more than 10,000 bytes) are in no history, as in all Electrum servers. The
    /// genesis block is not in the block files, so its output is missing.
    ///
    /// # Errors
    /// If the chain is incomplete, unreadable, or its blocks differ from the ledger.
    pub fn read(
        dir: &Path,
        choice: ScriptChoice,
        progress: &mut dyn FnMut(u32, u32) -> bool,
    ) -> Result<Self, ScriptLedgerError> {
        let ledger = Ledger::read(dir)?;
        let encoding =
            if ledger.chain.chain == "regtest" { Encoding::Segwit } else { Encoding::Legacy };
        let mut pass = Pass::new(choice);
        let mut tip_header = [0; 80];
        let of = ledger.blocks.len() as u32;
        for line in &ledger.blocks {
            if !progress(line.height - 1, of) {
                return Err(ScriptLedgerError::Interrupted { height: line.height });
            }
            let block = read_block(dir, line, encoding)?;
            tip_header = block.header().to_bytes();
            pass.block(&block, line.height);
        }
        pass.cut(choice.scripts_max);
        progress(of, of);
        let scripts_total = pass.estimate();
        Ok(Self {
            tip_height: ledger.tip.height,
            tip_hash: ledger.tip.hash,
            tip_header,
            scripts_total,
            is_sample: pass.threshold < u64::MAX,
            choice,
            txs: pass.txs,
            slots: pass.slots,
        })
    }

    pub fn len(&self) -> usize {
        self.slots.len()
    }

    pub fn is_empty(&self) -> bool {
        self.slots.is_empty()
    }

    pub fn history_len(&self) -> u64 {
        self.slots.iter().map(|slot| slot.history.len() as u64).sum()
    }

    pub fn unspent_len(&self) -> u64 {
        let unspent = |slot: &Slot| slot.coins.iter().filter(|coin| coin.spent == 0).count();
        self.slots.iter().map(|slot| unspent(slot) as u64).sum()
    }

    /// Seed of the sample; `None` without sampling.
    pub fn sample_seed(&self) -> Option<u64> {
        self.is_sample.then_some(self.choice.seed)
    }

    /// The scripts in the order of their keyed hashes, with all their outputs.
    pub fn scripts(&self) -> impl ExactSizeIterator<Item = ScriptLine> + '_ {
        self.slots.iter().map(|slot| self.line(slot))
    }

    fn line(&self, slot: &Slot) -> ScriptLine {
        let coin = |coin: &SlotCoin| {
            let ScriptTx { height, txid } = self.txs[coin.tx as usize];
            let (txid, vout, value) = (txid.to_string(), coin.vout, coin.value);
            CoinLine { height, txid, vout, value, spent: (coin.spent > 0).then_some(coin.spent) }
        };
        let history = slot.history.iter().map(|tx| self.txs[*tx as usize]);
        let history: Vec<_> = history.map(|tx| (tx.height, tx.txid.to_string())).collect();
        // Status of the Electrum protocol: SHA-256 of `txid:height:` over the history, in hash output order.
        let text: Vec<_> =
            history.iter().map(|(height, txid)| format!("{txid}:{height}:")).collect();
        ScriptLine {
            // In the byte order of the Electrum protocol.
            script_hash: Txid(slot.script_hash).to_string(),
            status: Some(hex_string(&sha256(text.concat().as_bytes()))),
            history,
            coins: slot.coins.iter().map(coin).collect(),
        }
    }

    /// Writes the ledger as JSON lines (docs/formats.md); with the spent outputs it has the results of an index at any height.
    ///
    /// # Errors
    /// Errors of `out`.
    pub fn write(&self, with_spent: bool, out: &mut dyn Write) -> io::Result<()> {
        let first = ScriptsLine {
            format: FORMAT,
            tip_height: self.tip_height,
            tip_hash: self.tip_hash.clone(),
            tip_header: hex_string(&self.tip_header),
            scripts: self.len() as u64,
            scripts_total: self.scripts_total,
            sample_seed: self.sample_seed(),
            history: self.history_len(),
            unspent: self.unspent_len(),
        };
        serde_json::to_writer(&mut *out, &first)?;
        out.write_all(b"\n")?;
        for mut script in self.scripts() {
            script.coins.retain(|coin| with_spent || coin.spent.is_none());
            serde_json::to_writer(&mut *out, &script)?;
            out.write_all(b"\n")?;
        }
        Ok(())
    }
}

fn read_block(
    dir: &Path,
    line: &BlockLine,
    encoding: Encoding,
) -> Result<Block, ScriptLedgerError> {
    let (path, height) = (dir.join(&line.file), line.height);
    let read = || -> io::Result<Vec<u8>> {
        let mut file = File::open(&path)?;
        file.seek(SeekFrom::Start(line.offset))?;
        let mut bytes = Vec::new();
        file.take(line.bytes).read_to_end(&mut bytes)?;
        Ok(bytes)
    };
    let bytes =
        read().map_err(|source| ScriptLedgerError::Read { path: path.clone(), height, source })?;
    let block = Block::parse(bytes, encoding)
        .map_err(|source| ScriptLedgerError::Parse { height, source })?;
    let found = block.hash();
    if found.to_string() != line.hash {
        let expected = line.hash.clone();
        return Err(ScriptLedgerError::OtherBlock { height, expected, found });
    }
    Ok(block)
}

struct Pass {
    choice: ScriptChoice,
    chooser: SipHash13,
    /// Only scripts with a key up to this are kept; it only decreases.
    threshold: u64,
    txs: Vec<ScriptTx>,
    slots: Vec<Slot>,
    slot_of: HashMap<[u8; 32], u32>,
    /// Unspent outputs of kept scripts: slot, and index among its coins.
    unspent: HashMap<OutPoint, (u32, u32)>,
    entries: usize,
}

impl Pass {
    fn new(choice: ScriptChoice) -> Self {
        Self {
            choice,
            chooser: SipHash13::new(choice.seed, 0x7363_7269_7074_7321),
            threshold: u64::MAX,
            txs: Vec::new(),
            slots: Vec::new(),
            slot_of: HashMap::new(),
            unspent: HashMap::new(),
            entries: 0,
        }
    }

    /// Processes a block: all outputs, then all inputs (a block in canonical order may spend first). Histories follow block order.
    fn block(&mut self, block: &Block, height: u32) {
        let txids = block.txids(0..block.tx_count());
        let mut touched: Vec<(u32, u32)> = Vec::new();
        for (index, tx) in block.txs().enumerate() {
            for (vout, output) in tx.outputs().enumerate() {
                let Some(slot) = self.slot(output.script_pubkey) else { continue };
                touched.push((index as u32, slot));
                let coins = &mut self.slots[slot as usize].coins;
                let place = (slot, coins.len() as u32);
                // Until the transaction's index in the list is known, it is its index in the block.
                let value = output.value as u64;
                coins.push(SlotCoin { tx: index as u32, vout: vout as u32, value, spent: 0 });
                let outpoint = OutPoint { txid: txids[index], vout: vout as u32 };
                self.unspent.insert(outpoint, place);
            }
        }
        let mut new_coins: HashMap<u32, usize> = HashMap::new();
        for (_, slot) in &touched {
            *new_coins.entry(*slot).or_default() += 1;
        }
        for (index, tx) in block.txs().enumerate().skip(1) {
            for input in tx.inputs() {
                let Some((slot, coin)) = self.unspent.remove(&input.prevout) else { continue };
                self.slots[slot as usize].coins[coin as usize].spent = height;
                touched.push((index as u32, slot));
            }
        }
        self.note(&mut touched, &txids, height, &new_coins);
        if self.slots.len() > 2 * self.choice.scripts_max {
            self.cut(self.choice.scripts_max);
        }
        while self.entries > self.choice.entries_max && self.slots.len() > 1 {
            self.cut(self.slots.len() / 2);
        }
    }

    /// Appends transactions to the histories of the touched scripts.
    fn note(
        &mut self,
        touched: &mut Vec<(u32, u32)>,
        txids: &[Txid],
        height: u32,
        new_coins: &HashMap<u32, usize>,
    ) {
        touched.sort_unstable();
        touched.dedup();
        let mut place_of: HashMap<u32, u32> = HashMap::new();
        for (index, slot) in touched.iter() {
            let place = *place_of.entry(*index).or_insert_with(|| {
                self.txs.push(ScriptTx { height, txid: txids[*index as usize] });
                self.txs.len() as u32 - 1
            });
            self.slots[*slot as usize].history.push(place);
        }
        self.entries += touched.len();
        for (slot, count) in new_coins {
            let coins = &mut self.slots[*slot as usize].coins;
            let first = coins.len() - count;
            for coin in &mut coins[first..] {
                coin.tx = place_of[&coin.tx];
            }
            self.entries += count;
        }
    }

    /// The slot of a script; `None` if it is not kept.
    fn slot(&mut self, script: &[u8]) -> Option<u32> {
        if script.first() == Some(&OP_RETURN) || script.len() > SCRIPT_BYTES_MAX {
            return None;
        }
        let script_hash = sha256(script);
        let key = self.chooser.hash(&script_hash);
        if key > self.threshold {
            return None;
        }
        let slots = &mut self.slots;
        Some(*self.slot_of.entry(script_hash).or_insert_with(|| {
            slots.push(Slot { script_hash, key, history: Vec::new(), coins: Vec::new() });
            slots.len() as u32 - 1
        }))
    }

    /// Keeps the `count` scripts with the smallest keys, and only the data that they need.
    fn cut(&mut self, count: usize) {
        let mut slots = std::mem::take(&mut self.slots);
        slots.sort_unstable_by_key(|slot| (slot.key, slot.script_hash));
        if slots.len() > count {
            slots.truncate(count);
            self.threshold = slots.last().map_or(0, |slot| slot.key);
        }
        let mut place_of: HashMap<u32, u32> = HashMap::new();
        let old = std::mem::take(&mut self.txs);
        let mut keep = |tx: &mut u32| {
            *tx = *place_of.entry(*tx).or_insert_with(|| {
                self.txs.push(old[*tx as usize]);
                self.txs.len() as u32 - 1
            });
        };
        for slot in &mut slots {
            slot.history.iter_mut().for_each(&mut keep);
            slot.coins.iter_mut().for_each(|coin| keep(&mut coin.tx));
        }
        self.slots = slots;
        self.slot_of.clear();
        self.unspent.clear();
        self.entries = 0;
        for (index, slot) in self.slots.iter().enumerate() {
            self.slot_of.insert(slot.script_hash, index as u32);
            self.entries += slot.history.len() + slot.coins.len();
            for (place, coin) in slot.coins.iter().enumerate().filter(|(_, coin)| coin.spent == 0) {
                let outpoint = OutPoint { txid: self.txs[coin.tx as usize].txid, vout: coin.vout };
                self.unspent.insert(outpoint, (index as u32, place as u32));
            }
        }
    }

    /// Estimated number of scripts: the smallest keys are as dense as all of them.
    fn estimate(&self) -> u64 {
        if self.threshold == u64::MAX {
            return self.slots.len() as u64;
        }
        let others = self.slots.len().saturating_sub(1) as u128;
        let all = (others << 64) / (u128::from(self.threshold) + 1);
        u64::try_from(all).unwrap_or(u64::MAX)
    }
}

const FORMAT: u32 = 1;
const OP_RETURN: u8 = 0x6a;
/// Longer scripts cannot be spent (`MAX_SCRIPT_SIZE` of Bitcoin Core's script.h).
const SCRIPT_BYTES_MAX: usize = 10_000;
