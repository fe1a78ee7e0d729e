//! Transactions that no block can include any more.

use std::collections::{HashMap, HashSet};

use serde::Deserialize;

use crate::network::{NetworkError, Node};
use crate::wire::hash_to_hex;
use crate::wire::tx::each_spent;

/// Reason why no block can include a transaction any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Outdated {
    Confirmed,
    /// A confirmed transaction spends the same output as it or one of its ancestors.
    DoubleSpent,
}

/// The common chain above the initial blocks.
#[derive(Default)]
pub(super) struct Chain {
    txids: HashSet<String>,
    /// Outputs that its transactions spend.
    spent: HashSet<(String, u32)>,
}

impl Chain {
    /// Reads the blocks above a height from a node.
    pub(super) fn read(node: &Node, base_height: u32) -> Result<Self, NetworkError> {
        #[derive(Deserialize)]
        struct Block {
            tx: Vec<Tx>,
        }
        #[derive(Deserialize)]
        struct Tx {
            txid: String,
            vin: Vec<Input>,
        }
        /// A coinbase input has neither.
        #[derive(Deserialize)]
        struct Input {
            txid: Option<String>,
            vout: Option<u32>,
        }
        let mut chain = Self::default();
        let tip: u32 = node.call("getblockcount", "[]")?;
        for height in base_height + 1..=tip {
            let hash: String = node.call("getblockhash", &format!("[{height}]"))?;
            let block: Block = node.call("getblock", &format!(r#"["{hash}",2]"#))?;
            for tx in block.tx {
                chain.txids.insert(tx.txid);
                chain.spent.extend(tx.vin.into_iter().filter_map(|i| i.txid.zip(i.vout)));
            }
        }
        Ok(chain)
    }

    /// Its transactions, and those of `txs` (parents before children) that conflict with it.
    pub(super) fn outdated<'a>(
        &self,
        txs: impl Iterator<Item = (&'a String, &'a [u8])>,
    ) -> HashMap<String, Outdated> {
        let confirmed = self.txids.iter().map(|txid| (txid.clone(), Outdated::Confirmed));
        let mut outdated: HashMap<_, _> = confirmed.collect();
        for (txid, raw) in txs.filter(|(txid, _)| !self.txids.contains(*txid)) {
            let mut is_lost = false;
            each_spent(raw, |parent, output| {
                let parent = hash_to_hex(parent);
                is_lost |= outdated.get(&parent) == Some(&Outdated::DoubleSpent)
                    || self.spent.contains(&(parent, output));
            });
            if is_lost {
                outdated.insert(txid.clone(), Outdated::DoubleSpent);
            }
        }
        outdated
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One input, no output.
    fn tx(parent: u8, output: u8) -> Vec<u8> {
        let mut raw = vec![1, 0, 0, 0, 1];
        raw.extend([parent; 32]);
        raw.extend([output, 0, 0, 0, 0, 255, 255, 255, 255, 0, 0, 0, 0, 0]);
        raw
    }

    fn name(byte: u8) -> String {
        hash_to_hex(&[byte; 32])
    }

    #[test]
    fn conflicts_include_descendants() {
        let chain = Chain { txids: [name(1)].into(), spent: [(name(9), 0), (name(9), 1)].into() };
        // Confirmed; a double spend, its child and grandchild; another output; a child of a confirmed one.
        let txs = [(1, 9, 0), (2, 9, 1), (3, 2, 0), (4, 3, 7), (5, 9, 2), (6, 1, 0)]
            .map(|(txid, parent, output)| (name(txid), tx(parent, output)));
        let found = chain.outdated(txs.iter().map(|(txid, raw)| (txid, &raw[..])));
        let all = [(1, Outdated::Confirmed)].into_iter();
        let all = all.chain([2, 3, 4].map(|byte| (byte, Outdated::DoubleSpent)));
        assert_eq!(found, all.map(|(byte, why)| (name(byte), why)).collect());
    }
}
