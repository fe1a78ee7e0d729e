//! Files of coins that lie. The blocks are valid in all of these, so one pass accepts them: what has to be found out is that the
//! coins are not theirs; and blocks that are not valid, which no files of coins may hide.

use std::collections::HashMap;
use std::fs;

use assay_engine::{ShardVerdict, SnapshotHeader, SnapshotReader};
use assay_store::{
    CoinRef, SnapshotWriter, SpentEntry, SpentFiles, SpentWriter, UndoWriter, decode_undo,
};
use assay_wire::{Block, Coin, OutPoint, Script, Txid};

use super::{Chain, KEYS, merge, run_all};

/// All coins that a chain's files speak of, to be changed.
struct Coins {
    /// What blocks spend, by height from 1 on.
    spent: Vec<Vec<Coin>>,
    left: Vec<(OutPoint, Coin)>,
}

impl Coins {
    fn read(chain: &Chain) -> Self {
        let params = chain.forged.params();
        let files = SpentFiles::open(&chain.spent(), params.disk_magic).unwrap();
        let mut entries: HashMap<_, SpentEntry> = HashMap::new();
        files
            .for_each(|entry| {
                entries.insert(entry.block, entry);
            })
            .unwrap();
        let spent = (1..=chain.forged.height()).map(|height| {
            let block = chain.block(height).hash();
            decode_undo(&files.read(&entries[&block].place, &block).unwrap()).unwrap()
        });
        let spent = spent.collect();
        let file = fs::File::open(chain.spent().join("utxo.dat")).unwrap();
        let mut reader = SnapshotReader::new(std::io::BufReader::new(file), KEYS).unwrap();
        let left = std::iter::from_fn(|| reader.next_coin().unwrap()).collect();
        Self { spent, left }
    }

    fn write(&self, chain: &Chain) {
        let params = chain.forged.params();
        fs::remove_dir_all(chain.spent()).unwrap();
        let mut writer = SpentWriter::open(&chain.spent(), params.disk_magic).unwrap();
        for (coins, height) in self.spent.iter().zip(1..) {
            let mut undo = UndoWriter::new();
            coins.iter().for_each(|coin| undo.push(coin.into()));
            writer.push(&chain.block(height).hash(), &undo.finish()).unwrap();
        }
        writer.sync().unwrap();
        let base = chain.block(chain.forged.height()).hash();
        let header = SnapshotHeader { magic: params.magic, base, coins: self.left.len() as u64 };
        let file = fs::File::create(chain.spent().join("utxo.dat")).unwrap();
        let mut writer = SnapshotWriter::new(file, &header, KEYS).unwrap();
        self.left.iter().for_each(|(outpoint, coin)| {
            writer.push(outpoint, CoinRef::from(coin)).unwrap();
        });
        writer.finish().unwrap();
    }
}

impl Chain {
    fn block(&self, height: u32) -> Block {
        Block::parse(self.forged.block(height), self.forged.params().encoding).unwrap()
    }
}

/// Where a coin of an earlier block is spent: height, and index among the coins of that block.
fn old_spends(chain: &Chain, coins: &Coins) -> Vec<(usize, usize)> {
    let mut found = Vec::new();
    for (at, spent) in coins.spent.iter().enumerate() {
        let own: Vec<Txid> = chain.block(at as u32 + 1).txs().map(|tx| tx.txid()).collect();
        let prevouts = prevouts(chain, at as u32 + 1);
        for (index, prevout) in prevouts.iter().enumerate() {
            if !own.contains(&prevout.txid) {
                found.push((at, index));
            }
        }
        assert_eq!(prevouts.len(), spent.len());
    }
    found
}

fn prevouts(chain: &Chain, height: u32) -> Vec<OutPoint> {
    let block = chain.block(height);
    block
        .txs()
        .skip(1)
        .flat_map(|tx| tx.inputs().map(|input| input.prevout).collect::<Vec<_>>())
        .collect()
}

fn verdict(chain: &Chain, coins: &Coins) -> ShardVerdict {
    coins.write(chain);
    let plan = chain.plan(6);
    merge(&plan, &run_all(&plan, 3)).verdict
}

#[test]
fn coins_that_lie_are_found_out() {
    let chain = Chain::new("bitcoin-scaling", 20);
    let right = || Coins::read(&chain);
    let truth = right();
    assert_eq!(verdict(&chain, &truth), ShardVerdict::Valid, "written again as they were");
    let old = old_spends(&chain, &truth);
    let (at, index) = old[old.len() / 2];
    let mut attacks: Vec<(&str, Coins)> = Vec::new();
    let mut attack = |name, change: &dyn Fn(&mut Coins)| {
        let mut coins = Coins { spent: truth.spent.clone(), left: truth.left.clone() };
        change(&mut coins);
        attacks.push((name, coins));
    };
    attack("amount", &|coins| coins.spent[at][index].value += 1);
    attack("less", &|coins| coins.spent[at][index].value -= 1);
    attack("script that anyone can satisfy", &|coins| {
        coins.spent[at][index].script_pubkey = Script::from(&[0x51][..]);
    });
    attack("lower height", &|coins| coins.spent[at][index].height -= 1);
    attack("the height of the block that spends it", &|coins| {
        coins.spent[at][index].height = at as u32 + 1;
    });
    attack("a height that is to come", &|coins| coins.spent[at][index].height = 1 << 30);
    attack("flag of a coinbase", &|coins| {
        let coin = &mut coins.spent[at][index];
        coin.coinbase = !coin.coinbase;
    });
    attack("two coins swapped", &|coins| {
        let (other_at, other) = old[old.len() / 2 + 1];
        let (a, b) = (coins.spent[at][index].clone(), coins.spent[other_at][other].clone());
        coins.spent[at][index] = b;
        coins.spent[other_at][other] = a;
    });
    attack("one too few", &|coins| drop(coins.spent[at].pop()));
    attack("one too many", &|coins| {
        let again = coins.spent[at][index].clone();
        coins.spent[at].push(again);
    });
    attack("another block's", &|coins| {
        let other = old.iter().find(|(other, _)| *other != at).unwrap().0;
        coins.spent.swap(at, other);
    });
    attack("a coin left over is missing", &|coins| drop(coins.left.pop()));
    attack("a coin left over twice", &|coins| {
        let again = coins.left[0].clone();
        coins.left.insert(0, again);
    });
    attack("a coin left over three times", &|coins| {
        let again = coins.left[0].clone();
        coins.left.splice(0..0, [again.clone(), again]);
    });
    attack("a coin that was spent is left over", &|coins| {
        let outpoint = prevouts(&chain, at as u32 + 1)[index];
        coins.left.push((outpoint, coins.spent[at][index].clone()));
    });
    attack("an invented coin is left over", &|coins| {
        let outpoint = OutPoint { txid: Txid([0xee; 32]), vout: 0 };
        coins.left.push((outpoint, coins.left[0].1.clone()));
    });
    attack("one left over for another", &|coins| coins.left[0].0.vout += 7);
    attack("the amount of one left over", &|coins| coins.left[0].1.value += 1);
    attack("two amounts that balance", &|coins| {
        coins.left[0].1.value += 1;
        coins.left[1].1.value -= 1;
    });
    attack("the script of one left over", &|coins| {
        coins.left[0].1.script_pubkey = Script::from(&[0x51][..]);
    });
    attack("nothing left over", &|coins| coins.left.clear());
    attack("both sides changed alike, the creator not", &|coins| {
        coins.spent[at][index].value += 1;
        coins.left[0].1.value -= 1;
    });
    assert!(attacks.len() >= 20);
    for (name, coins) in attacks {
        let verdict = verdict(&chain, &coins);
        let is_refused = matches!(verdict, ShardVerdict::Refused(_) | ShardVerdict::Unequal { .. });
        assert!(is_refused, "{name}: {verdict:?}");
    }
}
