//! What the forge remembers of the chain it has made: identifiers, amounts and script kinds, nothing that can be derived again.

use crate::{
    keys::KeyId,
    kind::{FUNDING, Kind},
    plan::Plan,
    writer::Spend,
};

/// An output by its place: block, transaction in generation order (coinbase: 0) and index.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct CoinRef {
    pub(crate) height: u32,
    pub(crate) tx: u32,
    pub(crate) vout: u32,
}

/// The outputs of one block.
pub(crate) struct BlockCoins {
    pub(crate) height: u32,
    pub(crate) txids: Vec<[u8; 32]>,
    /// Transactions in the order of the block.
    pub(crate) order: Vec<u32>,
    /// The first transaction that is neither coinbase nor split.
    pub(crate) first_ordinary: u32,
    funding: KeyId,
    first_output: Vec<u32>,
    amounts: Vec<u64>,
    kinds: Vec<u8>,
    spent: Vec<u64>,
}

impl BlockCoins {
    /// Keeps what matters of a plan whose transactions have been signed.
    pub(crate) fn new(plan: Plan, txids: Vec<[u8; 32]>, order: Vec<u32>) -> Self {
        let spent = vec![0; plan.amounts.len().div_ceil(64)];
        Self {
            height: plan.height,
            txids,
            order,
            first_ordinary: plan.first_ordinary,
            funding: plan.funding,
            first_output: plan.first_output,
            amounts: plan.amounts,
            kinds: plan.kinds,
            spent,
        }
    }

    pub(crate) fn tx_count(&self) -> u32 {
        self.txids.len() as u32
    }

    pub(crate) fn output_count(&self, tx: u32) -> u32 {
        self.first_output[tx as usize + 1] - self.first_output[tx as usize]
    }

    pub(crate) fn amount(&self, tx: u32, vout: u32) -> u64 {
        self.amounts[self.at(tx, vout)]
    }

    pub(crate) fn kind(&self, tx: u32, vout: u32) -> Kind {
        Kind::from_stored(self.kinds[self.at(tx, vout)])
    }

    /// True where the output pays the key of the coinbase that funded the block.
    pub(crate) fn is_funding(&self, tx: u32, vout: u32) -> bool {
        self.kinds[self.at(tx, vout)] & FUNDING != 0
    }

    pub(crate) fn unspent_count(&self) -> u64 {
        let spent: u64 = self.spent.iter().map(|word| u64::from(word.count_ones())).sum();
        self.amounts.len() as u64 - spent
    }

    pub(crate) fn is_spent(&self, tx: u32, vout: u32) -> bool {
        let at = self.at(tx, vout);
        self.spent[at / 64] >> (at % 64) & 1 == 1
    }

    pub(crate) fn key(&self, distinct: bool, tx: u32, vout: u32) -> KeyId {
        let at = self.at(tx, vout);
        key_id(distinct, self.height, self.funding, self.kinds[at], self.amounts[at], tx, vout)
    }

    fn at(&self, tx: u32, vout: u32) -> usize {
        debug_assert!(vout < self.output_count(tx));
        (self.first_output[tx as usize] + vout) as usize
    }
}

/// The rule of who an output pays, shared by plans and kept blocks.
pub(crate) fn key_id(
    distinct: bool,
    height: u32,
    funding: KeyId,
    stored_kind: u8,
    amount: u64,
    tx: u32,
    vout: u32,
) -> KeyId {
    if distinct {
        KeyId { height, amount, index: tx, vout }
    } else if stored_kind & FUNDING != 0 {
        funding
    } else {
        KeyId::published(height, amount)
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
        assert_eq!(block.height, self.next_height(), "blocks are made in order");
        self.blocks.push(block);
    }

    /// Marks an output spent; spending twice would be the forge's own mistake.
    pub(crate) fn spend(&mut self, coin: CoinRef) {
        let block = &mut self.blocks[coin.height as usize - 1];
        let at = block.at(coin.tx, coin.vout);
        let (word, bit) = (&mut block.spent[at / 64], 1 << (at % 64));
        assert_eq!(*word & bit, 0, "{coin:?} is spent twice");
        *word |= bit;
    }

    /// Everything that an input needs.
    pub(crate) fn spend_of(&self, distinct: bool, coin: CoinRef) -> Spend {
        let block = self.block(coin.height);
        Spend {
            txid: block.txids[coin.tx as usize],
            vout: coin.vout,
            amount: block.amount(coin.tx, coin.vout),
            kind: block.kind(coin.tx, coin.vout),
            key: block.key(distinct, coin.tx, coin.vout),
        }
    }
}
