//! What the forge remembers of the chain it has made: identifiers, amounts and script kinds, nothing that can be derived again.

use crate::{outputs::Outputs, writer::Spend};

/// An output by its place: block, transaction in generation order (coinbase: 0) and index.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct CoinRef {
    pub(crate) height: u32,
    pub(crate) tx: u32,
    pub(crate) vout: u32,
}

/// A block that was made: its outputs, and which of them are spent.
pub(crate) struct BlockCoins {
    pub(crate) outputs: Outputs,
    pub(crate) txids: Vec<[u8; 32]>,
    /// Transactions in the order of the block.
    pub(crate) order: Vec<u32>,
    /// The first transaction that is neither coinbase nor split.
    pub(crate) first_ordinary: u32,
    spent: Vec<u64>,
}

impl BlockCoins {
    /// Nothing is spent yet.
    pub(crate) fn new(
        outputs: Outputs,
        first_ordinary: u32,
        txids: Vec<[u8; 32]>,
        order: Vec<u32>,
    ) -> Self {
        let spent = vec![0; outputs.len().div_ceil(64)];
        Self { outputs, txids, order, first_ordinary, spent }
    }

    pub(crate) fn tx_count(&self) -> u32 {
        self.txids.len() as u32
    }

    pub(crate) fn unspent_count(&self) -> u64 {
        let spent: u64 = self.spent.iter().map(|word| u64::from(word.count_ones())).sum();
        self.outputs.len() as u64 - spent
    }

    pub(crate) fn is_spent(&self, tx: u32, vout: u32) -> bool {
        let at = self.outputs.at(tx, vout);
        self.spent[at / 64] >> (at % 64) & 1 == 1
    }
}

/// All blocks made so far, from height 1.
#[derive(Default)]
pub(crate) struct Coins {
    blocks: Vec<BlockCoins>,
}

impl Coins {
    /// The block at `height`, which must have been made.
    pub(crate) fn block(&self, height: u32) -> &BlockCoins {
        &self.blocks[height as usize - 1]
    }

    pub(crate) fn blocks(&self) -> &[BlockCoins] {
        &self.blocks
    }

    /// Height of the next block.
    pub(crate) fn next_height(&self) -> u32 {
        self.blocks.len() as u32 + 1
    }

    pub(crate) fn push(&mut self, block: BlockCoins) {
        assert_eq!(block.outputs.height, self.next_height(), "blocks are made in order");
        self.blocks.push(block);
    }

    /// Marks an output spent; spending twice would be the forge's own mistake.
    pub(crate) fn spend(&mut self, coin: CoinRef) {
        let block = &mut self.blocks[coin.height as usize - 1];
        let at = block.outputs.at(coin.tx, coin.vout);
        let (word, bit) = (&mut block.spent[at / 64], 1 << (at % 64));
        assert_eq!(*word & bit, 0, "{coin:?} is spent twice");
        *word |= bit;
    }

    /// Everything that an input needs.
    pub(crate) fn spend_of(&self, distinct: bool, coin: CoinRef) -> Spend {
        let block = self.block(coin.height);
        block.outputs.spend(distinct, block.txids[coin.tx as usize], coin.tx, coin.vout)
    }
}
