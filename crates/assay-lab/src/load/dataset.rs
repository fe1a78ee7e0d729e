//! Data set of the clients, selected once from the seed.

use std::collections::{BTreeMap, HashMap};
use std::hash::{DefaultHasher, Hasher};

use assay_ledger::scripts::ScriptLine;
use assay_report::stats::random::SplitMix64;
use assay_wire::Header;

use super::Scripts;
use crate::chain::{Chain, ChainError, OrderEntry};
use crate::p2p::hash_from_hex;

/// Maximum number of queried scripts with a history.
const USED_MAX: usize = 20_000;
/// Scripts of a heavy client.
const HEAVY_MAX: usize = 20;
/// Scripts without payments; wallets query many of them.
const UNUSED: usize = 20_000;
const TXS_PER_SCRIPT: usize = 4;
/// Maximum number of queried transactions.
const TXS_MAX: usize = 20_000;

#[derive(Debug)]
pub(crate) struct Script {
    /// Script hash as in the protocol.
    pub(crate) hash: String,
    /// Expected state; `None` if unknown.
    pub(crate) expected: Option<ScriptLine>,
    pub(crate) txs: Vec<u32>,
}

#[derive(Debug)]
pub(crate) struct KnownTx {
    pub(crate) height: u32,
    pub(crate) txid: String,
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
    pub(crate) headers: Vec<[u8; Header::SIZE]>,
    /// Scripts with a history.
    pub(crate) used: Vec<u32>,
    /// Scripts with the longest histories.
    pub(crate) heavy: Vec<u32>,
    /// Scripts without a history.
    pub(crate) unused: Vec<u32>,
    pub(crate) by_hash: HashMap<String, u32>,
}

impl Dataset {
    /// Selects from a chain with known scripts; without one all scripts are unused.
    pub(crate) fn new(
        expected: Option<Scripts<'_>>,
        chain: Option<&Chain>,
        strangers: &[String],
        seed: u64,
    ) -> Result<Self, ChainError> {
        let mut rng = SplitMix64::new(seed);
        let mut dataset = Self::default();
        if let Some(chain) = chain {
            let headers = chain.blocks.iter().map(|block| chain.read_header(block));
            dataset.headers = headers.collect::<Result<_, _>>()?;
            if let Some(expected) = expected {
                dataset.choose_scripts(expected, &mut rng);
                dataset.choose_txs(chain, &mut rng)?;
            }
        }
        for hash in strangers {
            let script = dataset.add(hash.clone(), None);
            dataset.used.push(script);
            dataset.heavy.push(script);
        }
        for _ in 0..UNUSED {
            let hash = faster_hex::hex_string(&rng.bytes::<32>());
            let script = dataset.add(hash, Some(ScriptLine::default()));
            dataset.unused.push(script);
        }
        Ok(dataset)
    }

    /// Index of the script with this hash, if selected.
    pub(crate) fn script(&self, hash: &str) -> Option<u32> {
        self.by_hash.get(hash).copied()
    }

    /// Number of the transactions in blocks up to `height`.
    pub(crate) fn txs_at(&self, height: u32) -> usize {
        self.txs.partition_point(|known| known.height <= height)
    }

    fn add(&mut self, hash: String, expected: Option<ScriptLine>) -> u32 {
        let number = self.scripts.len() as u32;
        self.by_hash.insert(hash.clone(), number);
        self.scripts.push(Script { hash, expected, txs: Vec::new() });
        number
    }

    /// Selects a uniform sample (reservoir sampling), and the scripts with the longest histories.
    fn choose_scripts(&mut self, expected: Scripts<'_>, rng: &mut SplitMix64) {
        let (mut sample, mut heavy) = (Vec::new(), Vec::new());
        for (number, script) in (1..).zip(expected) {
            let length = script.history.len();
            let is_longer = |other: &ScriptLine| other.history.len() >= length;
            let place = heavy.partition_point(is_longer);
            if place < HEAVY_MAX {
                heavy.insert(place, script.clone());
                heavy.truncate(HEAVY_MAX);
            }
            if sample.len() < USED_MAX {
                sample.push(script);
            } else if let Some(place) = sample.get_mut(rng.below(number) as usize) {
                *place = script;
            }
        }
        for script in sample {
            let number = self.add(script.script_hash.clone(), Some(script));
            self.used.push(number);
        }
        for script in heavy {
            let number = self.script(&script.script_hash).unwrap_or_else(|| {
                let number = self.add(script.script_hash.clone(), Some(script));
                self.used.push(number);
                number
            });
            self.heavy.push(number);
        }
    }

    /// Selects a few transactions of each script, without coinbases, which the chain directory does not list.
    fn choose_txs(&mut self, chain: &Chain, rng: &mut SplitMix64) -> Result<(), ChainError> {
        let mut wanted: BTreeMap<(u32, &str), Vec<u32>> = BTreeMap::new();
        let mut order = self.used.clone();
        rng.shuffle(&mut order);
        for script in order {
            let Some(expected) = &self.scripts[script as usize].expected else { continue };
            let history = &expected.history;
            for _ in 0..TXS_PER_SCRIPT.min(history.len()) {
                let (height, txid) = &history[rng.below(history.len() as u64) as usize];
                let tx = (*height, txid.as_str());
                if wanted.len() < TXS_MAX || wanted.contains_key(&tx) {
                    wanted.entry(tx).or_default().push(script);
                }
            }
        }
        let mut reader = TxReader { chain, block: Vec::new(), height: 0 };
        let mut of_scripts = Vec::new();
        for ((height, txid), mut scripts) in wanted {
            let Some(known) = reader.find(height, txid)? else { continue };
            scripts.dedup();
            of_scripts.extend(scripts.into_iter().map(|script| (script, self.txs.len() as u32)));
            self.txs.push(known);
        }
        for (script, tx) in of_scripts {
            self.scripts[script as usize].txs.push(tx);
        }
        Ok(())
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
}

impl TxReader<'_> {
    /// The transaction with its response; `None` for a coinbase.
    fn find(&mut self, height: u32, txid: &str) -> Result<Option<KnownTx>, ChainError> {
        let block = (height as usize).checked_sub(1).and_then(|index| self.chain.blocks.get(index));
        let (Some(block), Some(hash)) = (block, hash_from_hex(txid)) else { return Ok(None) };
        if self.height != height {
            let mut order = Vec::new();
            if block.txs > 1 {
                self.chain.read_order(block, &mut order)?;
            }
            order.sort_unstable_by_key(|entry| entry.offset);
            self.block = order.into_iter().zip(1..).collect();
            self.block.sort_unstable_by_key(|(entry, _)| entry.txid);
            self.height = height;
        }
        let found = self.block.binary_search_by_key(&hash, |(entry, _)| entry.txid);
        let Ok(found) = found else { return Ok(None) };
        let (entry, position) = self.block[found];
        let mut raw = vec![0; entry.length as usize];
        self.chain.read_at(block, entry.offset.into(), &mut raw)?;
        let hex_hash = text_hash(faster_hex::hex_string(&raw).as_bytes());
        Ok(Some(KnownTx { height, txid: txid.to_owned(), position, hex_hash }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_a_chain_all_is_unused() {
        let stranger = "07".repeat(32);
        let new =
            |strangers: &[String]| Dataset::new(None, None, strangers, 1).expect("nothing is read");
        let dataset = new(std::slice::from_ref(&stranger));
        assert_eq!((dataset.used.len(), dataset.unused.len(), dataset.txs.len()), (1, UNUSED, 0));
        assert_eq!(dataset.script(&stranger), Some(dataset.used[0]));
        assert_eq!(dataset.script(&"08".repeat(32)), None);
        assert_eq!(new(&[]).scripts[0].hash, dataset.scripts[1].hash, "the seed decides");
    }

    #[test]
    fn a_sample_and_the_longest_histories_are_chosen() {
        let count = USED_MAX + 1000;
        let script = |number: usize| ScriptLine {
            script_hash: format!("{number:064x}"),
            history: vec![(1, String::new()); number % 100],
            ..ScriptLine::default()
        };
        let mut dataset = Dataset::default();
        dataset.choose_scripts(Box::new((0..count).map(script)), &mut SplitMix64::new(3));
        assert_eq!((dataset.heavy.len(), dataset.by_hash.len()), (HEAVY_MAX, dataset.used.len()));
        assert!(dataset.used.len() >= USED_MAX);
        let length = |number: &u32| {
            let expected = &dataset.scripts[*number as usize].expected;
            expected.as_ref().map_or(0, |script| script.history.len())
        };
        assert!(dataset.heavy.iter().all(|number| length(number) == 99));
    }
}
