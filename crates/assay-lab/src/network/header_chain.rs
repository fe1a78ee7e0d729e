//! A chain served by a peer.

use std::io;
use std::sync::Arc;

use anyhow::Context as _;
use assay_wire::{BlockHash, Header};

use super::Node;
use crate::chain::Chain;
use crate::p2p::synthetic::coinbase_block;

/// Headers and blocks from height 1.
#[derive(Clone)]
pub(crate) struct HeaderChain {
    headers: Vec<Header>,
    /// Its first blocks.
    chain: Arc<Chain>,
    /// The blocks above them.
    made: Vec<Vec<u8>>,
}

impl HeaderChain {
    /// The chain of a node that was filled with `chain`; later blocks are left out.
    pub(crate) fn of(node: &Node, chain: &Chain) -> anyhow::Result<Self> {
        let mut headers = Vec::with_capacity(chain.blocks.len());
        for block in &chain.blocks {
            let hex: String =
                node.call("getblockheader", &format!(r#"["{}",false]"#, block.hash))?;
            let mut header = [0; Header::SIZE];
            faster_hex::hex_decode(hex.as_bytes(), &mut header)
                .with_context(|| format!("the node's header at height {}", block.height))?;
            headers.push(Header::parse(&header));
        }
        Ok(Self { headers, chain: Arc::new(chain.clone()), made: Vec::new() })
    }

    /// A branch with more work: the blocks up to `height`, then one whose coinbase pays too much, then blocks on top of it up to
    /// `tip_height`, the last of them at the time `now`.
    pub(crate) fn lie(&self, height: usize, tip_height: usize, now: u32) -> Self {
        let (headers, chain) = (self.headers[..height].to_vec(), Arc::clone(&self.chain));
        let mut lie = Self { headers, chain, made: Vec::new() };
        for made in height + 1..=tip_height {
            let prev = lie.headers[made - 2];
            let amount = if made == height + 1 { TOO_MUCH } else { 0 };
            let time = if made == tip_height { now } else { prev.time + 1 };
            let block = coinbase_block(prev.hash(), made as u32, time, amount);
            let header = block.first_chunk().expect("a block begins with its header");
            lie.headers.push(Header::parse(header));
            lie.made.push(block);
        }
        lie
    }

    /// All headers from height 1.
    pub(crate) fn headers(&self) -> &[Header] {
        &self.headers
    }

    /// The block with this hash; `None` if unknown.
    pub(crate) fn block(&self, hash: BlockHash) -> Option<io::Result<Vec<u8>>> {
        let at = self.headers.iter().position(|header| header.hash() == hash)?;
        if let Some(at) = at.checked_sub(self.headers.len() - self.made.len()) {
            return Some(Ok(self.made[at].clone()));
        }
        let mut block = Vec::new();
        let read = |piece: &[u8]| block.extend_from_slice(piece);
        let outcome = self.chain.read_block(&self.chain.blocks[at], read);
        Some(outcome.map(|()| block).map_err(io::Error::other))
    }
}

/// Satoshi: a hundred times the first subsidy.
const TOO_MUCH: i64 = 5_000 * 100_000_000;
