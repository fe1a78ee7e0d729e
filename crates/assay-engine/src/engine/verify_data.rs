//! Verifies the coins on disk against the blocks, and invalidity marks against the rules.
//!
//! For every height two keyed sums over coins are built: of those created by its block, and of those that are unspent or, per
//! undo data, spent by later blocks. One pass over blocks and one over coins find the height of every missing, changed or extra
//! coin, with 64 bytes of memory per block.

use std::path::PathBuf;

use assay_consensus::tx::is_unspendable;
use assay_hash::{KeyedHash, Sum256};
use assay_store::CoinRef;
use assay_wire::{BlockHash, OutPoint};

use super::Chain;
use super::check::OVERWRITTEN;
use crate::apply::ChainCoins;
use crate::error::EngineError;
use crate::prepared::Prepared;
use crate::stats::serialise;
use crate::tree::{Node, NodeId};
use crate::types::Tip;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DataReport {
    /// The block of the coins.
    pub tip: Tip,
    /// Number of coins compared.
    pub coins: u64,
    /// Heights of the blocks with wrong coins, ascending.
    pub wrong_heights: Vec<u32>,
    /// Blocks marked as invalid without a marked ancestor.
    pub marks: Vec<MarkReport>,
}

/// A block marked as invalid.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MarkReport {
    pub hash: BlockHash,
    pub height: u32,
    /// Result of its repeated validation.
    pub finding: MarkFinding,
}

/// Result of the repeated validation of a marked block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MarkFinding {
    /// The block breaks this rule (reject reason).
    Broken(String),
    /// No rule: the block is valid, or was marked by `invalidateblock`.
    Unsupported,
    /// Not checked: its branch leaves the active one more than 100 blocks below the tip, or data are missing.
    NotChecked,
}

/// Maximum depth of a checked branch's fork point below the tip: coins are disconnected down to it, in memory.
const MARK_DEPTH_MAX: u32 = 100;

/// A data directory cannot be verified.
#[derive(Debug, thiserror::Error)]
pub enum VerifyDataError {
    /// A block or its undo data are missing or cannot be read.
    #[error("block {hash} at height {height} or its undo data cannot be read{hint}")]
    Missing {
        hash: BlockHash,
        height: u32,
        /// Advice for the user, appended to the message.
        hint: &'static str,
    },
    /// The blocks below a snapshot are not validated yet.
    #[error(
        "blocks below the UTXO snapshot are still to be validated: let the node finish that first"
    )]
    Unvalidated,
    /// A block of the coin database fails its checksum.
    #[error(
        "the coins on disk are damaged: {} at offset {offset}; run `assay bitcoind -reindex-chainstate` over this data directory",
        path.display()
    )]
    Damaged {
        path: PathBuf,
        /// Offset in the file, bytes.
        offset: u64,
    },
    #[error("interrupted")]
    Interrupted,
    #[error(transparent)]
    Engine(#[from] EngineError),
}

impl Chain<'_> {
    /// Compares all coins with the blocks of the active chain, and invalidity marks near the tip with the rules. Changes nothing.
    /// `progress` receives each height after its block was read; false stops.
    ///
    /// # Errors
    /// A block or its undo data are missing, the disk fails, or the caller stopped.
    pub fn verify_data(
        self,
        progress: &dyn Fn(u32) -> bool,
    ) -> Result<DataReport, VerifyDataError> {
        if self.historical().is_some() {
            return Err(VerifyDataError::Unvalidated);
        }
        // Also in parts that a scan does not read, such as filters.
        if let Some((path, offset)) = self.0.lock_tree().coins.store.find_damage() {
            return Err(VerifyDataError::Damaged { path, offset });
        }
        let (snapshot, tip) = self.snapshot()?;
        let mut sums = Sums::new(tip.height);
        let mut coins = 0;
        let visited = snapshot.for_each(|outpoint, coin| {
            coins += 1;
            sums.found(outpoint, coin);
        });
        visited.map_err(EngineError::from)?;
        let ids: Vec<NodeId> = {
            let state = self.0.lock_tree();
            let top = state.tree.find(&tip.hash).expect("the tip is in the tree");
            state.tree.path(NodeId::GENESIS, top)
        };
        // Highest first.
        for id in ids.into_iter().rev() {
            let node = self.0.lock_tree().tree.get(id).clone();
            self.add_block(&node, &mut sums)?;
            if !progress(node.height) {
                return Err(VerifyDataError::Interrupted);
            }
        }
        let marks = self.check_marks(&|| progress(tip.height))?;
        Ok(DataReport { tip, coins, wrong_heights: sums.wrong(), marks })
    }

    fn add_block(self, node: &Node, sums: &mut Sums) -> Result<(), VerifyDataError> {
        let missing = || VerifyDataError::Missing {
            hash: node.hash,
            height: node.height,
            hint: if self.0.config().prune.is_some() {
                ": a pruned node has not all blocks, so its coins cannot be verified"
            } else {
                ": run with -reindex"
            },
        };
        let Prepared { block, txids, .. } = self.read_prepared(node).ok_or_else(missing)?;
        let mut spent = self.spent_by(node).ok_or_else(missing)?.into_iter();
        let is_overwritten = self.0.params().name == "main" && OVERWRITTEN.contains(&node.height);
        for (index, (tx, txid)) in block.txs().zip(txids).enumerate() {
            for (vout, output) in (0..).zip(tx.outputs()) {
                if is_unspendable(output.script_pubkey) || index == 0 && is_overwritten {
                    continue;
                }
                let coin = CoinRef {
                    value: output.value,
                    height: node.height,
                    coinbase: index == 0,
                    script_pubkey: output.script_pubkey,
                };
                sums.created(&OutPoint { txid, vout }, coin);
            }
            for input in tx.inputs().filter(|_| index > 0) {
                let coin = spent.next().ok_or_else(missing)?;
                sums.found(&input.prevout, CoinRef::from(&coin));
            }
        }
        if spent.next().is_some() { Err(missing()) } else { Ok(()) }
    }

    fn check_marks(self, goes_on: &dyn Fn() -> bool) -> Result<Vec<MarkReport>, VerifyDataError> {
        let roots: Vec<Node> = {
            let state = self.0.lock_tree();
            let roots = state.tree.failed_roots();
            roots.into_iter().map(|id| state.tree.get(id).clone()).collect()
        };
        let mut marks = Vec::new();
        for node in roots {
            if !goes_on() {
                return Err(VerifyDataError::Interrupted);
            }
            let finding = self.check_mark(&node)?;
            marks.push(MarkReport { hash: node.hash, height: node.height, finding });
        }
        Ok(marks)
    }

    /// Validates a marked block over the coins of its parent, in memory: from the tip down to the fork point of its branch, and
    /// up again.
    fn check_mark(self, node: &Node) -> Result<MarkFinding, EngineError> {
        if !node.has_data() {
            return Ok(MarkFinding::NotChecked);
        }
        let (snapshot, tip) = self.snapshot()?;
        let (down, up) = {
            let state = self.0.lock_tree();
            let tree = &state.tree;
            let (Some(parent), Some(top)) = (node.parent, tree.find(&tip.hash)) else {
                return Ok(MarkFinding::NotChecked);
            };
            let fork = tree.common(parent, top);
            if tip.height - tree.get(fork).height > MARK_DEPTH_MAX {
                return Ok(MarkFinding::NotChecked);
            }
            let nodes = |from, to| -> Vec<Node> {
                tree.path(from, to).into_iter().map(|id| tree.get(id).clone()).collect()
            };
            (nodes(fork, top), nodes(fork, parent))
        };
        let coins = snapshot.into_scratch(self.0.config().cache_bytes_max)?;
        let mut coins = ChainCoins::with_unknown_coinbases(coins);
        for active in &down {
            if self.take_back(active, &mut coins).is_err() {
                return Ok(MarkFinding::NotChecked);
            }
        }
        // Paths have the highest block first.
        for below in up.iter().rev() {
            if self.find_rule(below, &mut coins)? != MarkFinding::Unsupported {
                return Ok(MarkFinding::NotChecked);
            }
        }
        self.find_rule(node, &mut coins)
    }

    fn find_rule(self, node: &Node, coins: &mut ChainCoins) -> Result<MarkFinding, EngineError> {
        let Some(prepared) = self.read_prepared(node) else { return Ok(MarkFinding::NotChecked) };
        Ok(match self.connect_over(node, prepared, coins)? {
            Ok(()) => MarkFinding::Unsupported,
            Err(error) => MarkFinding::Broken(error.reject_reason().into_owned()),
        })
    }
}

/// Sums over the coins of each height.
struct Sums {
    hash: KeyedHash,
    created: Vec<Sum256>,
    found: Vec<Sum256>,
    /// Coins of heights above the tip.
    above: Vec<u32>,
    record: Vec<u8>,
}

impl Sums {
    fn new(tip_height: u32) -> Self {
        let count = tip_height as usize + 1;
        let seed = std::hash::BuildHasher::hash_one(&std::hash::RandomState::new(), tip_height);
        let mut key = [0; 32];
        key[..8].copy_from_slice(&seed.to_le_bytes());
        Self {
            hash: KeyedHash::new(&key),
            created: vec![Sum256::default(); count],
            found: vec![Sum256::default(); count],
            above: Vec::new(),
            record: Vec::new(),
        }
    }

    fn created(&mut self, outpoint: &OutPoint, coin: CoinRef<'_>) {
        let height = coin.height as usize;
        let hash = self.hash_of(outpoint, coin);
        self.created[height].add(&hash);
    }

    /// Adds a coin that is unspent, or in the undo data.
    fn found(&mut self, outpoint: &OutPoint, coin: CoinRef<'_>) {
        let height = coin.height;
        let hash = self.hash_of(outpoint, coin);
        match self.found.get_mut(height as usize) {
            Some(sum) => sum.add(&hash),
            None => self.above.push(height),
        }
    }

    fn hash_of(&mut self, outpoint: &OutPoint, coin: CoinRef<'_>) -> [u8; 32] {
        self.record.clear();
        serialise(outpoint, coin, &mut self.record);
        self.hash.hash(&self.record)
    }

    fn wrong(mut self) -> Vec<u32> {
        let differs = |height: &u32| {
            let height = *height as usize;
            self.created[height].to_bytes() != self.found[height].to_bytes()
        };
        let mut wrong: Vec<u32> = (0..self.created.len() as u32).filter(differs).collect();
        self.above.sort_unstable();
        self.above.dedup();
        wrong.append(&mut self.above);
        wrong
    }
}
