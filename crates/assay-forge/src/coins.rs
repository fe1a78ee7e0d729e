//! Outputs of the chain so far: identifiers, amounts and script kinds. Derivable data is not stored.

use crate::{outputs::Outputs, sign::Spend};

/// Position of an output: block, transaction in generation order (coinbase: 0) and index.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct CoinRef {
    pub(crate) height: u32,
    pub(crate) tx: u32,
    pub(crate) vout: u32,
}

/// Outputs of a finished block, with spent flags.
pub(crate) struct BlockCoins {
    pub(crate) outputs: Outputs,
    pub(crate) txids: Vec<[u8; 32]>,
    /// Transactions in block order.
    pub(crate) order: Vec<u32>,
    /// The first transaction that is neither coinbase nor split.
    pub(crate) first_ordinary: u32,
    spent: Vec<u64>,
}

impl BlockCoins {
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
    pub(crate) fn block(&self, height: u32) -> &BlockCoins {
        &self.blocks[height as usize - 1]
    }

    pub(crate) fn blocks(&self) -> &[BlockCoins] {
        &self.blocks
    }

    pub(crate) fn next_height(&self) -> u32 {
        self.blocks.len() as u32 + 1
    }

    pub(crate) fn push(&mut self, block: BlockCoins) {
        assert_eq!(block.outputs.height, self.next_height(), "blocks are made in order");
        self.blocks.push(block);
    }

    /// Marks an output as spent. A double spend is a bug and panics.
    pub(crate) fn spend(&mut self, coin: CoinRef) {
        let block = &mut self.blocks[coin.height as usize - 1];
        let at = block.outputs.at(coin.tx, coin.vout);
        let (word, bit) = (&mut block.spent[at / 64], 1 << (at % 64));
        assert_eq!(*word & bit, 0, "{coin:?} is spent twice");
        *word |= bit;
    }

    /// All data for an input that spends `coin`.
    pub(crate) fn spend_of(&self, distinct: bool, coin: CoinRef) -> Spend {
        let block = self.block(coin.height);
        block.outputs.spend(distinct, block.txids[coin.tx as usize], coin.tx, coin.vout)
    }
}
