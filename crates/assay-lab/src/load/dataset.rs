//! Data set of the clients, selected once from the seed.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fs::File;
use std::hash::{DefaultHasher, Hasher};
use std::io::{self, Read, Seek, SeekFrom};

use assay_report::stats::random::SplitMix64;

use super::timeline::{Expected, ExpectedTx, Timeline};
use crate::chain::{Chain, ChainError, OrderEntry};

/// Maximum number of queried scripts with a history.
const USED_MAX: usize = 20_000;
/// Scripts of a heavy client.
const HEAVY_MAX: usize = 20;
/// Scripts without payments; wallets query many of them.
const UNUSED: usize = 20_000;
/// Queried transactions per script.
const TXS_PER_SCRIPT: usize = 4;
/// Maximum number of queried transactions.
const TXS_MAX: usize = 20_000;
pub(crate) const HEADER_BYTES: usize = 80;

#[derive(Debug)]
pub(crate) struct Script {
    /// SHA-256, unreversed.
    pub(crate) hash: [u8; 32],
    /// Expected state; `None` if unknown.
    pub(crate) timeline: Option<Timeline>,
    /// Its queried transactions.
    pub(crate) txs: Vec<u32>,
}

/// A queried transaction.
#[derive(Debug)]
pub(crate) struct KnownTx {
    pub(crate) tx: ExpectedTx,
    /// Position in its block; the coinbase is 0.
    pub(crate) position: u32,
    /// Hash of the correct response.
    pub(crate) hex_hash: u64,
}

/// Everything that clients may query.
#[derive(Debug, Default)]
pub(crate) struct Dataset {
    pub(crate) scripts: Vec<Script>,
    /// Sorted by height.
    pub(crate) txs: Vec<KnownTx>,
    /// Headers from height 1.
    pub(crate) headers: Vec<[u8; HEADER_BYTES]>,
    /// Scripts with a history.
    pub(crate) used: Vec<u32>,
    /// Scripts with the longest histories.
    pub(crate) heavy: Vec<u32>,
    /// Scripts without a history.
    pub(crate) unused: Vec<u32>,
    pub(crate) by_hash: HashMap<[u8; 32], u32>,
}

impl Dataset {
    /// Selects from a chain with known scripts; without one all scripts are unused.
    pub(crate) fn new(
        expected: Option<&dyn Expected>,
        chain: Option<&Chain>,
        strangers: &[[u8; 32]],
        seed: u64,
    ) -> Result<Self, ChainError> {
        let mut rng = SplitMix64::new(seed);
        let mut dataset = Self::default();
        if let Some(chain) = chain {
            dataset.headers = read_headers(chain)?;
            if let Some(expected) = expected {
                dataset.choose_scripts(expected, &mut rng);
                dataset.choose_txs(chain, &mut rng)?;
            }
        }
        for hash in strangers {
            let script = dataset.add(*hash, None);
            dataset.used.push(script);
            dataset.heavy.push(script);
        }
        for _ in 0..UNUSED {
            let mut hash = [0; 32];
            for word in hash.chunks_exact_mut(8) {
                word.copy_from_slice(&rng.next().to_le_bytes());
            }
            let script = dataset.add(hash, Some(Timeline::default()));
            dataset.unused.push(script);
        }
        Ok(dataset)
    }

    /// Index of the script with this hash, if selected.
    pub(crate) fn script(&self, hash: &[u8; 32]) -> Option<u32> {
        self.by_hash.get(hash).copied()
    }

    /// Number of the transactions in blocks up to `height`.
    pub(crate) fn txs_at(&self, height: u32) -> usize {
        self.txs.partition_point(|known| known.tx.height <= height)
    }

    fn add(&mut self, hash: [u8; 32], timeline: Option<Timeline>) -> u32 {
        let number = self.scripts.len() as u32;
        self.scripts.push(Script { hash, timeline, txs: Vec::new() });
        self.by_hash.insert(hash, number);
        number
    }

    fn choose_scripts(&mut self, expected: &dyn Expected, rng: &mut SplitMix64) {
        let lengths: Vec<usize> = expected.scripts().map(|script| script.history.len()).collect();
        let mut numbers: Vec<usize> = (0..lengths.len()).collect();
        numbers.sort_by_key(|number| std::cmp::Reverse(lengths[*number]));
        let heavy = numbers[..HEAVY_MAX.min(numbers.len())].to_vec();
        shuffle(&mut numbers, USED_MAX, rng);
        numbers.truncate(USED_MAX);
        let chosen: HashSet<usize> = numbers.iter().chain(&heavy).copied().collect();
        let mut kept = HashMap::new();
        for (number, script) in expected.scripts().enumerate() {
            if chosen.contains(&number) {
                kept.insert(number, self.add(script.hash, Some(Timeline::new(script))));
            }
        }
        self.used = kept.values().copied().collect();
        self.used.sort_unstable();
        self.heavy = heavy.iter().filter_map(|number| kept.get(number).copied()).collect();
    }

    /// Selects a few transactions of each script, without coinbases, which the chain directory does not list.
    fn choose_txs(&mut self, chain: &Chain, rng: &mut SplitMix64) -> Result<(), ChainError> {
        let mut wanted: BTreeMap<ExpectedTx, Vec<u32>> = BTreeMap::new();
        let mut order = self.used.clone();
        shuffle(&mut order, usize::MAX, rng);
        for script in order {
            let Some(timeline) = &self.scripts[script as usize].timeline else { continue };
            let history = timeline.history();
            for _ in 0..TXS_PER_SCRIPT.min(history.len()) {
                let tx = history[rng.below(history.len() as u64) as usize];
                if wanted.len() < TXS_MAX || wanted.contains_key(&tx) {
                    wanted.entry(tx).or_default().push(script);
                }
            }
        }
        let mut reader = TxReader { chain, block: Vec::new(), height: 0, hex: Vec::new() };
        for (tx, scripts) in wanted {
            let Some(known) = reader.find(tx)? else { continue };
            let number = self.txs.len() as u32;
            self.txs.push(known);
            for script in scripts {
                let txs = &mut self.scripts[script as usize].txs;
                if !txs.contains(&number) {
                    txs.push(number);
                }
            }
        }
        Ok(())
    }
}

/// Moves a random choice of `count` to the front.
fn shuffle<T>(items: &mut [T], count: usize, rng: &mut SplitMix64) {
    for index in 0..items.len().min(count) {
        let other = index + rng.below((items.len() - index) as u64) as usize;
        items.swap(index, other);
    }
}

/// Hash of a response text; stable within one process.
pub(crate) fn text_hash(text: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    hasher.write(text);
    hasher.finish()
}

/// Reads transactions from a chain directory by rising height.
struct TxReader<'a> {
    chain: &'a Chain,
    /// Transactions of the block with their positions, sorted by txid.
    block: Vec<(OrderEntry, u32)>,
    height: u32,
    hex: Vec<u8>,
}

impl TxReader<'_> {
    /// The transaction with its response; `None` for a coinbase.
    fn find(&mut self, tx: ExpectedTx) -> Result<Option<KnownTx>, ChainError> {
        let Some(index) = (tx.height as usize).checked_sub(1) else { return Ok(None) };
        let Some(block) = self.chain.blocks.get(index) else { return Ok(None) };
        if self.height != tx.height {
            let mut order = Vec::new();
            if block.txs > 1 {
                self.chain.read_order(block, &mut order)?;
            }
            order.sort_unstable_by_key(|entry| entry.offset);
            self.block = order.into_iter().zip(1..).collect();
            self.block.sort_unstable_by_key(|(entry, _)| entry.txid);
            self.height = tx.height;
        }
        let found = self.block.binary_search_by_key(&tx.txid, |(entry, _)| entry.txid);
        let Ok(found) = found else { return Ok(None) };
        let (entry, position) = self.block[found];
        let mut raw = vec![0; entry.length as usize];
        read_at(self.chain, index, u64::from(entry.offset), &mut raw)?;
        self.hex.resize(raw.len() * 2, 0);
        faster_hex::hex_encode(&raw, &mut self.hex)
            .expect("the output is twice as long as the input");
        Ok(Some(KnownTx { tx, position, hex_hash: text_hash(&self.hex) }))
    }
}

fn read_headers(chain: &Chain) -> Result<Vec<[u8; HEADER_BYTES]>, ChainError> {
    let read = |index| {
        let mut header = [0; HEADER_BYTES];
        read_at(chain, index, 0, &mut header).map(|()| header)
    };
    (0..chain.blocks.len()).map(read).collect()
}

/// Reads a part of a block.
fn read_at(chain: &Chain, index: usize, offset: u64, out: &mut [u8]) -> Result<(), ChainError> {
    let block = &chain.blocks[index];
    let path = chain.path_of(block);
    let mut read = |path| -> io::Result<()> {
        let mut file = File::open(path)?;
        file.seek(SeekFrom::Start(block.offset + offset))?;
        file.read_exact(out)
    };
    read(&path).map_err(|source| ChainError::Read { path, source })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_a_chain_all_is_unused() {
        let dataset = Dataset::new(None, None, &[[7; 32]], 1).expect("nothing is read");
        assert_eq!((dataset.used.len(), dataset.unused.len(), dataset.txs.len()), (1, UNUSED, 0));
        assert_eq!(dataset.script(&[7; 32]), Some(dataset.used[0]));
        assert_eq!(dataset.script(&[8; 32]), None);
        let again = Dataset::new(None, None, &[], 1).expect("nothing is read");
        assert_eq!(again.scripts[0].hash, dataset.scripts[1].hash, "the seed decides");
    }

    #[test]
    fn shuffling_keeps_everything() {
        let mut items: Vec<u32> = (0..100).collect();
        shuffle(&mut items, 10, &mut SplitMix64::new(3));
        assert_ne!(items[..10], [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
        items.sort_unstable();
        assert_eq!(items, (0..100).collect::<Vec<_>>());
    }
}
