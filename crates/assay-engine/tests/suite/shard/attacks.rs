//! Files of false coins. The blocks are valid in all of these, so one pass accepts them: the parts have to find that the
//! coins are not theirs. Also blocks that are not valid, which no files of coins may hide.

use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::path::Path;
use std::sync::Arc;

use assay_consensus::params::ChainParams;
use assay_engine::{
    BlockHash, End, PlanConfig, ShardVerdict, SnapshotHeader, SnapshotReader, Unspent,
    ValidateConfig, plan_shards, validate,
};
use assay_store::{
    CoinRef, SnapshotWriter, SpentEntry, SpentFiles, SpentWriter, UndoWriter, decode_undo,
};
use assay_wire::{Block, Coin, OutPoint, Script, Transaction, Txid};

use super::{Chain, KEYS, Watch, merge, run_all, validation};
use crate::forged::mint::{Mint, params, tx};
use crate::validate::files::{Part, write};

/// All coins in a chain's files, to be changed.
struct Coins {
    /// Coins that blocks spend, by height from 1 on.
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

    fn write(&self, dir: &Path, params: &ChainParams, blocks: &[BlockHash]) {
        let _ = fs::remove_dir_all(dir);
        let mut writer = SpentWriter::open(dir, params.disk_magic).unwrap();
        for (coins, block) in self.spent.iter().zip(blocks) {
            let mut undo = UndoWriter::new();
            for coin in coins {
                undo.push(coin.into());
            }
            writer.push(block, &undo.finish()).unwrap();
        }
        writer.sync().unwrap();
        let base = *blocks.last().unwrap();
        let header = SnapshotHeader { magic: params.magic, base, coins: self.left.len() as u64 };
        let file = fs::File::create(dir.join("utxo.dat")).unwrap();
        let mut writer = SnapshotWriter::new(file, &header, KEYS).unwrap();
        for (outpoint, coin) in &self.left {
            writer.push(outpoint, CoinRef::from(coin)).unwrap();
        }
        writer.finish().unwrap();
    }
}

impl Chain {
    pub(super) fn block(&self, height: u32) -> Block {
        Block::parse(self.forged.block(height), self.forged.params().encoding).unwrap()
    }
}

/// The places at which a coin of an earlier block is spent: height, and index among the coins of that block.
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
    let blocks: Vec<BlockHash> =
        (1..=chain.forged.height()).map(|height| chain.block(height).hash()).collect();
    coins.write(&chain.spent(), &chain.forged.params(), &blocks);
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
        let is_rejected =
            matches!(verdict, ShardVerdict::Rejected(_) | ShardVerdict::Unequal { .. });
        assert!(is_rejected, "{name}: {verdict:?}");
    }
}

/// The claims of somebody who knows all blocks: every coin as it was created, regardless of when. If coins are spent
/// more often than they are created, they cannot be made to balance.
fn claims(blocks: &[Vec<u8>], params: &ChainParams) -> Coins {
    let parsed: Vec<Block> =
        blocks.iter().map(|raw| Block::parse(raw.clone(), params.encoding).unwrap()).collect();
    let mut known: BTreeMap<([u8; 32], u32), Coin> = BTreeMap::new();
    for (block, height) in parsed.iter().zip(1..) {
        for (at, tx) in block.txs().enumerate() {
            for (output, vout) in tx.outputs().zip(0..) {
                let script_pubkey = Script::from(output.script_pubkey);
                let coin = Coin { value: output.value, height, coinbase: at == 0, script_pubkey };
                if !assay_consensus::tx::is_unspendable(output.script_pubkey) {
                    // If a transaction comes again, the first one is used.
                    known.entry((tx.txid().0, vout)).or_insert(coin);
                }
            }
        }
    }
    let invented = Coin {
        value: 10_000_000,
        height: 1,
        coinbase: false,
        script_pubkey: Script::from(&[0x51][..]),
    };
    let mut left = known.clone();
    let mut spent = Vec::new();
    for block in &parsed {
        let inputs = block.txs().skip(1).flat_map(|tx| {
            tx.inputs().map(|input| (input.prevout.txid.0, input.prevout.vout)).collect::<Vec<_>>()
        });
        spent.push(
            inputs
                .map(|prevout| {
                    left.remove(&prevout);
                    known.get(&prevout).unwrap_or(&invented).clone()
                })
                .collect(),
        );
    }
    let left =
        left.into_iter().map(|((txid, vout), coin)| (OutPoint { txid: Txid(txid), vout }, coin));
    Coins { spent, left: left.collect() }
}

/// Returns `true` if one pass accepts these blocks, and the verdict of parts, each block its own part if there are as many.
pub(super) fn judge(
    blocks: &[Vec<u8>],
    params: &Arc<ChainParams>,
    parts: usize,
) -> (bool, ShardVerdict) {
    let (dir, params) = (tempfile::tempdir().unwrap(), Arc::clone(params));
    let (files, spent) = (dir.path().join("blocks"), dir.path().join("spent"));
    fs::create_dir(&files).unwrap();
    let records = blocks.iter().cloned().map(Part::Block).collect();
    write(&files, params.disk_magic, None, &[records]);
    let config: ValidateConfig =
        validation(&files, params.clone(), &dir.path().join("coins"), None);
    let whole = validate(&config, &false.into(), &Watch::default()).unwrap();
    let hashes: Vec<BlockHash> = blocks
        .iter()
        .map(|raw| Block::parse(raw.clone(), params.encoding).unwrap().hash())
        .collect();
    claims(blocks, &params).write(&spent, &params, &hashes);
    let config = PlanConfig {
        blocks: files,
        params,
        activation: Vec::new(),
        unspent: Unspent::Coins { path: spent.join("utxo.dat"), bytes: 0 },
        spent,
        is_core_undo: false,
        stop_height: None,
        parts,
        threads: 1,
        keys: KEYS,
    };
    let plan = plan_shards(&config, &dir.path().join("plan"), &Watch::default()).unwrap();
    (whole.end == End::Complete, merge(&plan, &run_all(&plan, 9)).verdict)
}

/// One pass, one part, and a part per block have the same verdict.
pub(super) fn check_verdict(
    name: &str,
    is_valid: bool,
    blocks: &[Vec<u8>],
    params: &Arc<ChainParams>,
) {
    for parts in [1, blocks.len()] {
        let (accepted, verdict) = judge(blocks, params, parts);
        assert_eq!(accepted, is_valid, "{name}: one pass");
        let is_found = verdict == ShardVerdict::Valid;
        assert_eq!(is_found, is_valid, "{name}, {parts} parts: {verdict:?}");
    }
}

/// A branch of 130 blocks, the coins of its first blocks still unspent, and what comes next.
fn base() -> (Mint, Vec<Vec<u8>>, Vec<OutPoint>) {
    let mut mint = Mint::new();
    let blocks: Vec<Vec<u8>> = (0..130).map(|_| mint.block_of(&[])).collect();
    let coinbases = blocks.iter().map(|raw| {
        let block = Block::parse(raw.clone(), params().encoding).unwrap();
        OutPoint { txid: block.tx(0).txid(), vout: 0 }
    });
    let coinbases = coinbases.collect();
    (mint, blocks, coinbases)
}

/// The name of a case, `true` if its blocks are valid, and the blocks.
type Case<'a> = (&'a str, bool, Vec<Vec<u8>>);

const FINAL: u32 = u32::MAX;
const VALUE: i64 = 100_000_000;

#[test]
fn no_file_of_coins_hides_a_broken_rule() {
    let (mint, blocks, coinbases) = base();
    // Each case adds blocks.
    let with = |lists: &[&[&Transaction]]| -> Vec<Vec<u8>> {
        let mut mint = mint.clone();
        let own = |txs: &&[&Transaction]| txs.iter().map(|tx| (*tx).clone()).collect::<Vec<_>>();
        lists.iter().map(|txs| mint.block_of(&own(txs))).collect()
    };
    let pay = |outpoint: OutPoint, sequence| tx(&[(outpoint, sequence)], &[VALUE - 1000], 0);
    let of = |tx: &Transaction| OutPoint { txid: tx.view().txid(), vout: 0 };
    let child = |parent: &Transaction, sequence, value| tx(&[(of(parent), sequence)], &[value], 0);
    let first = pay(coinbases[0], FINAL);
    let other = tx(&[(coinbases[0], FINAL)], &[VALUE - 5000], 0);
    let second = child(&first, FINAL, VALUE - 2000);
    let third = child(&second, FINAL, VALUE - 3000);
    let unknown = pay(OutPoint { txid: Txid([0xab; 32]), vout: 0 }, FINAL);
    let greedy = child(&first, FINAL, VALUE);
    let no_output = tx(&[(OutPoint { vout: 5, ..of(&first) }, FINAL)], &[1], 0);
    let bad_script = assay_testkit::chain::TxBuilder::new(2)
        .spend(coinbases[1], &[0x51], FINAL)
        .output(VALUE - 1000, &[0x51])
        .build();
    // Relative locks: three blocks; 512 seconds, of which blocks here take 60 each.
    let (by_height, by_time) =
        (child(&first, 3, VALUE - 2000), child(&first, 1 << 22 | 1, VALUE - 2000));
    let cases: Vec<Case<'_>> = vec![
        ("nothing wrong", true, with(&[&[&first], &[&second], &[&third]])),
        ("a chain in one block", true, with(&[&[&first, &second, &third]])),
        ("spent twice in one block", false, with(&[&[&first, &other]])),
        ("spent again in a later block", false, with(&[&[&first], &[], &[&other]])),
        ("spent before it is created", false, with(&[&[&second], &[], &[&first]])),
        ("spent before it is created, next block", false, with(&[&[&second], &[&first]])),
        ("spent before it is created, same block", false, with(&[&[&second, &first]])),
        ("a coin that never was", false, with(&[&[&unknown]])),
        ("an output that is not there", false, with(&[&[&first], &[&no_output]])),
        ("more out than in", false, with(&[&[&first], &[&greedy]])),
        ("a script that fails", false, with(&[&[&bad_script]])),
        ("coinbase at age 99", false, with(&[&[&pay(coinbases[31], FINAL)]])),
        ("coinbase at age 100", true, with(&[&[&pay(coinbases[30], FINAL)]])),
        ("BIP68 by height, early", false, with(&[&[&first], &[], &[&by_height]])),
        ("BIP68 by height, in time", true, with(&[&[&first], &[], &[], &[&by_height]])),
        ("BIP68 by time, early", false, with(&[&[&first], &[], &[&by_time]])),
        (
            "BIP68 by time, in time",
            true,
            with(&[&[&first], &[], &[], &[], &[], &[], &[], &[], &[], &[], &[], &[], &[&by_time]]),
        ),
    ];
    for (name, is_valid, more) in cases {
        let all: Vec<Vec<u8>> = blocks.iter().cloned().chain(more).collect();
        check_verdict(name, is_valid, &all, &params());
    }
}
