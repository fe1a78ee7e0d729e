//! Spendable coins, 16 bytes each: their txids are on disk.

use std::collections::{BTreeSet, VecDeque};

use assay_consensus::params::COINBASE_MATURITY;

use crate::{kind::Kind, random::Stream};

/// An unspent output, stored under the height of its block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Coin {
    pub(crate) amount: u64,
    /// Transaction index in its block; 0 is the coinbase.
    pub(crate) tx: u32,
    pub(crate) vout: u16,
    pub(crate) kind: Kind,
}

/// Selection rule among several coins of a block.
#[derive(Clone, Copy, Debug)]
pub(crate) enum CoinChoice {
    /// A large one, to be split.
    Rich,
    /// A small one, to be merged.
    Poor,
    /// One of this kind, as wallets spend.
    Like(Kind),
}

#[derive(Default)]
pub(crate) struct Wallet {
    blocks: Vec<Vec<Coin>>,
    /// Heights of blocks with coins.
    filled: BTreeSet<u32>,
    /// Immature coinbases, with their heights.
    immature: VecDeque<(u32, Coin)>,
    spendable: u64,
}

impl Wallet {
    /// Number of coins that the next block may spend.
    pub(crate) fn spendable(&self) -> u64 {
        self.spendable
    }

    pub(crate) fn total(&self) -> u64 {
        self.spendable + self.immature.len() as u64
    }

    /// Adds the outputs of block `height`. The coinbase can be spent from the hundredth block after it.
    pub(crate) fn add(&mut self, height: u32, coinbase: Coin, coins: Vec<Coin>) {
        assert_eq!(self.blocks.len() + 1, height as usize, "blocks are made in order");
        self.spendable += coins.len() as u64;
        if !coins.is_empty() {
            self.filled.insert(height);
        }
        self.blocks.push(coins);
        self.immature.push_back((height, coinbase));
        while let Some((made, coin)) = self.immature.front().copied()
            && height + 1 >= made + COINBASE_MATURITY
        {
            self.blocks[made as usize - 1].push(coin);
            self.filled.insert(made);
            self.spendable += 1;
            self.immature.pop_front();
        }
    }

    /// Takes a coin of the block at `height`, else of the nearest block above with coins, else below; `None` if there are no coins.
    pub(crate) fn take(
        &mut self,
        height: u32,
        choice: CoinChoice,
        stream: &mut Stream,
    ) -> Option<(u32, Coin)> {
        let above = self.filled.range(height..).next();
        let height = *above.or_else(|| self.filled.range(..height).next_back())?;
        let coins = &mut self.blocks[height as usize - 1];
        let coin = take_from(coins, choice, stream).expect("it is not empty");
        if coins.is_empty() {
            self.filled.remove(&height);
        }
        self.spendable -= 1;
        Some((height, coin))
    }

    /// All coins by block, immature ones included.
    pub(crate) fn blocks(&self) -> impl Iterator<Item = (u32, Vec<Coin>)> + '_ {
        let immature = |height: u32| {
            let found = self.immature.iter().find(|(made, _)| *made == height);
            found.map(|(_, coin)| *coin)
        };
        let young = self.immature.front().map_or(u32::MAX, |(made, _)| *made);
        (1u32..).zip(&self.blocks).map(move |(height, coins)| {
            let mut coins = coins.clone();
            coins.extend((height >= young).then(|| immature(height)).flatten());
            (height, coins)
        })
    }
}

/// Removes a coin from a list, chosen among a few random ones.
pub(crate) fn take_from(
    coins: &mut Vec<Coin>,
    choice: CoinChoice,
    stream: &mut Stream,
) -> Option<Coin> {
    if coins.is_empty() {
        return None;
    }
    let len = coins.len() as u32;
    let mut best = stream.below(len) as usize;
    for _ in 1..DRAWN {
        let other = stream.below(len) as usize;
        let (now, next) = (coins[best], coins[other]);
        let better = match choice {
            CoinChoice::Rich => next.amount > now.amount,
            CoinChoice::Poor => next.amount < now.amount,
            CoinChoice::Like(kind) => next.kind == kind && now.kind != kind,
        };
        if better {
            best = other;
        }
    }
    let coin = coins.swap_remove(best);
    if coins.capacity() > 32 && coins.len() * 4 < coins.capacity() {
        coins.shrink_to(coins.len() * 2);
    }
    Some(coin)
}

/// Random candidates per choice.
const DRAWN: usize = 4;

#[cfg(test)]
mod tests {
    use super::*;

    fn coin(amount: u64) -> Coin {
        Coin { amount, tx: 1, vout: 0, kind: Kind::P2pkh }
    }

    #[test]
    fn a_coin_is_sixteen_bytes() {
        assert_eq!(size_of::<Coin>(), 16);
    }

    /// Against a plain list: always the nearest block with a coin, and no coin twice.
    #[test]
    fn finds_the_nearest_block_until_empty() {
        let mut wallet = Wallet::default();
        let mut stream = Stream::plain(3, 1, 1);
        let mut plain: Vec<Vec<u64>> = vec![Vec::new()];
        let mut amount = 0;
        for height in 1..=900u32 {
            let made: Vec<_> = (0..stream.below(4))
                .map(|_| {
                    amount += 1;
                    coin(amount)
                })
                .collect();
            amount += 1;
            plain.push(made.iter().map(|coin| coin.amount).collect());
            wallet.add(height, Coin { tx: 0, ..coin(amount) }, made);
            if height > 99 {
                // Coins matured by `add`.
                plain[height as usize - 99].push(coinbase_of(&wallet, height - 99));
            }
            let spends = if height > 700 { 8 } else { 1 };
            for _ in 0..spends {
                let wanted = 1 + stream.below(height);
                let expected = (wanted..=height)
                    .chain((1..wanted).rev())
                    .find(|height| !plain[*height as usize].is_empty());
                let got = wallet.take(wanted, CoinChoice::Rich, &mut stream);
                assert_eq!(got.map(|(height, _)| height), expected, "from {wanted} at {height}");
                if let Some((height, coin)) = got {
                    let list = &mut plain[height as usize];
                    let at = list.iter().position(|amount| *amount == coin.amount);
                    list.swap_remove(at.expect("it was there"));
                }
            }
        }
        let left: usize = plain.iter().map(Vec::len).sum();
        assert_eq!(wallet.spendable(), left as u64);
        assert_eq!(
            wallet.blocks().map(|(_, coins)| coins.len() as u64).sum::<u64>(),
            wallet.total()
        );
    }

    fn coinbase_of(wallet: &Wallet, height: u32) -> u64 {
        wallet.blocks[height as usize - 1].last().expect("it has matured").amount
    }
}
