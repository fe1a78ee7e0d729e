//! Transactions that no block can include any more.

use std::collections::{HashMap, HashSet};

use serde::Deserialize;

use crate::network::Node;
use crate::p2p::each_input;
use crate::process::rpc::RpcError;

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
    pub(super) fn read(node: &Node, base_height: u32) -> Result<Self, RpcError> {
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
            each_input(raw, |input| {
                let parent = input.prevout.txid.to_string();
                is_lost |= outdated.get(&parent) == Some(&Outdated::DoubleSpent)
                    || self.spent.contains(&(parent, input.prevout.vout));
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
    use assay_wire::TxBuilder;

    use super::*;

    fn name(byte: u8) -> String {
        faster_hex::hex_string(&[byte; 32])
    }

    #[test]
    fn conflicts_include_descendants() {
        let chain = Chain { txids: [name(1)].into(), spent: [(name(9), 0), (name(9), 1)].into() };
        // Confirmed; a double spend, its child and grandchild; another output; a child of a confirmed one.
        let txs = [(1, 9, 0), (2, 9, 1), (3, 2, 0), (4, 3, 7), (5, 9, 2), (6, 1, 0)].map(
            |(txid, parent, output)| {
                let tx = TxBuilder::new(1).input(parent, output, &[], u32::MAX);
                (name(txid), tx.bytes())
            },
        );
        let found = chain.outdated(txs.iter().map(|(txid, raw)| (txid, &raw[..])));
        let all = [(1, Outdated::Confirmed)].into_iter();
        let all = all.chain([2, 3, 4].map(|byte| (byte, Outdated::DoubleSpent)));
        assert_eq!(found, all.map(|(byte, why)| (name(byte), why)).collect());
    }
}
