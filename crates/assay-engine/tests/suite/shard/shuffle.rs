//! The shuffle gives what one pass writes, in however little memory, and finds what a block spends that is not there.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use assay_consensus::params::ChainParams;
use assay_engine::{
    BlockHash, Joined, MissingCoin, ShardError, Shuffle, ShuffleConfig, gather_left, gather_range,
    has_gathered_left, has_gathered_range, join_partition, prepare_shuffle, scatter_range,
};
use assay_store::SpentFiles;
use assay_wire::{Block, OutPoint, Transaction, Txid};

use super::attacks::base;
use super::{Chain, KEYS, Watch, merge, run_all};
use crate::forged::mint::{params, tx};
use crate::validate::files::{Part, write};

fn prepare(
    (blocks, params): (&Path, Arc<ChainParams>),
    work: &Path,
    (ranges, partitions): (usize, Option<u32>),
) -> Shuffle {
    let config = ShuffleConfig {
        blocks: blocks.to_path_buf(),
        params: Arc::clone(&params),
        stop_height: None,
        ranges,
        partitions,
        unit_bytes: 1 << 20,
        key: [ranges as u8; 16],
        threads: 1,
    };
    prepare_shuffle(&config, work, &Watch).unwrap();
    Shuffle::open(work, &|_, _| Ok((*params).clone())).unwrap()
}

fn idle() -> AtomicBool {
    AtomicBool::new(false)
}

/// All steps; the first coin that is missing ends them.
fn run(shuffle: &Shuffle, out: &Path, unit_bytes: u64) -> Result<(u64, u32), MissingCoin> {
    let (mut spills, mut most) = (0, 0);
    for range in 0..shuffle.ranges().len() {
        assert!(!shuffle.is_scattered(range));
        spills += scatter_range(shuffle, range, None, unit_bytes, &idle()).unwrap().spills;
        assert!(shuffle.is_scattered(range));
    }
    for partition in 0..shuffle.partitions() {
        match join_partition(shuffle, partition, unit_bytes, &idle()).unwrap() {
            Joined::Matched { passes, .. } => most = most.max(passes),
            Joined::Missing(missing) => {
                assert!(!shuffle.is_joined(partition));
                return Err(missing);
            }
        }
        assert!(shuffle.is_joined(partition));
    }
    for range in 0..shuffle.ranges().len() {
        assert!(!has_gathered_range(out, range));
        gather_range(shuffle, range, out, MANY, &idle()).unwrap();
        assert!(has_gathered_range(out, range));
    }
    assert!(!has_gathered_left(out));
    gather_left(shuffle, out, KEYS, MANY, &idle()).unwrap();
    assert!(has_gathered_left(out));
    Ok((spills, most))
}

/// Memory that everything of a small chain fits into.
const MANY: u64 = 64 << 20;

fn records(dir: &Path, params: &ChainParams) -> BTreeMap<BlockHash, Vec<u8>> {
    let files = SpentFiles::open(dir, params.disk_magic).unwrap();
    let mut found = BTreeMap::new();
    files
        .for_each(|entry| {
            let undo = files.read(&entry.place, &entry.block).unwrap();
            assert!(found.insert(entry.block, undo).is_none(), "one record for each block");
        })
        .unwrap();
    found
}

#[test]
fn files_are_those_of_one_pass_whatever_the_cut_and_the_memory() {
    for (recipe, seed) in [("bitcoin-scaling", 30), ("bch-scaling", 31)] {
        let chain = Chain::new(recipe, seed);
        let params = chain.forged.params();
        let expected = records(&chain.spent(), &params);
        let left = fs::read(chain.spent().join("utxo.dat")).unwrap();
        let (mut most_spills, mut most_passes) = (0, 0);
        for (ranges, partitions, unit_bytes) in [
            (1, Some(1), MANY),
            (1, Some(1), 60 << 10),
            (3, Some(5), MANY),
            (7, Some(4), 60 << 10),
            (1000, None, 600 << 10),
        ] {
            let dir = tempfile::tempdir().unwrap();
            let (work, out) = (dir.path().join("work"), dir.path().join("out"));
            let shuffle =
                prepare((chain.forged.path(), chain.forged.params()), &work, (ranges, partitions));
            let (spills, passes) = run(&shuffle, &out, unit_bytes).unwrap();
            most_spills = most_spills.max(spills);
            most_passes = most_passes.max(passes);
            assert_eq!(records(&out, &params), expected, "{recipe} {ranges} {partitions:?}");
            assert!(fs::read(out.join("utxo.dat")).unwrap() == left, "{recipe} {ranges}");
            if ranges == 1 {
                let file = |dir: &Path| fs::read(dir.join("spent-00000.dat")).unwrap();
                assert!(file(&out) == file(&chain.spent()), "the very bytes of one pass");
            }
        }
        // Little memory was too little, several times.
        assert!(most_spills > 10 && most_passes > 1, "{most_spills} {most_passes}");
    }
}

#[test]
fn a_chain_that_nobody_has_validated_is_validated_in_parts() {
    let chain = Chain::new("bitcoin-scaling", 32);
    let dir = tempfile::tempdir().unwrap();
    let spent = chain.spent();
    fs::remove_dir_all(&spent).unwrap();
    let shuffle = prepare((chain.forged.path(), chain.forged.params()), dir.path(), (4, Some(3)));
    run(&shuffle, &spent, 200 << 10).unwrap();
    let plan = chain.plan(5);
    chain.check(&merge(&plan, &run_all(&plan, 1)));
}

/// Blocks of transactions, and where the chain breaks with which coin.
type Case<'a> = (&'a [&'a [&'a Transaction]], Option<(u32, OutPoint)>);

#[test]
fn a_coin_that_is_not_there_is_named() {
    let (mint, blocks, coinbases) = base();
    let pay = |outpoint, value| tx(&[(outpoint, u32::MAX)], &[value], 0);
    let of = |tx: &Transaction| OutPoint { txid: tx.view().txid(), vout: 0 };
    let first = pay(coinbases[0], 1_000_000);
    let again = pay(coinbases[0], 900_000);
    let child = pay(of(&first), 800_000);
    let unknown = OutPoint { txid: Txid([0xab; 32]), vout: 3 };
    let cases: [Case<'_>; 6] = [
        (&[&[&first], &[&child]], None),
        (&[&[&first, &child]], None),
        (&[&[&first], &[], &[&again]], Some((133, coinbases[0]))),
        (&[&[&first, &again]], Some((131, coinbases[0]))),
        (&[&[&child], &[&first]], Some((131, of(&first)))),
        (&[&[], &[&pay(unknown, 1)]], Some((132, unknown))),
    ];
    for (lists, expected) in cases {
        let mut mint = mint.clone();
        let more = lists
            .iter()
            .map(|txs| mint.block_of(&txs.iter().map(|tx| (*tx).clone()).collect::<Vec<_>>()));
        let all: Vec<Vec<u8>> = blocks.iter().cloned().chain(more).collect();
        for (ranges, partitions, unit_bytes) in
            [(1, 1, MANY), (1, 1, 1000), (all.len(), 7, MANY), (all.len(), 2, 1000)]
        {
            let (dir, params) = (tempfile::tempdir().unwrap(), params());
            let files = dir.path().join("blocks");
            fs::create_dir(&files).unwrap();
            write(
                &files,
                params.disk_magic,
                None,
                &[all.iter().cloned().map(Part::Block).collect()],
            );
            let shuffle = prepare(
                (&files, Arc::clone(&params)),
                &dir.path().join("work"),
                (ranges, Some(partitions)),
            );
            let found = run(&shuffle, &dir.path().join("out"), unit_bytes).err();
            let place = found.map(|missing| (missing.height, missing.outpoint));
            assert_eq!(place, expected, "{ranges} ranges");
            if let Some(missing) = found {
                let raw = all[missing.height as usize - 1].clone();
                assert_eq!(missing.hash, Block::parse(raw, params.encoding).unwrap().hash());
            }
        }
    }
}

#[test]
fn files_that_do_not_fit_are_named() {
    let chain = Chain::new("bitcoin-scaling", 33);
    let dir = tempfile::tempdir().unwrap();
    let (work, out) = (dir.path().join("work"), dir.path().join("out"));
    let prepare =
        |seed: usize| prepare((chain.forged.path(), chain.forged.params()), &work, (seed, Some(2)));
    let shuffle = prepare(3);
    let says = |error: ShardError, words: &str| {
        let text = error.to_string();
        assert!(text.contains(words), "{text}");
    };
    let scatter = |shuffle: &Shuffle, range| scatter_range(shuffle, range, None, MANY, &idle());
    let join = |shuffle: &Shuffle| join_partition(shuffle, 0, MANY, &idle());
    says(scatter(&shuffle, 3).unwrap_err(), "no part 3");
    says(join(&shuffle).unwrap_err(), "scatter all ranges before");
    says(gather_left(&shuffle, &out, KEYS, MANY, &idle()).unwrap_err(), "join all partitions");
    let stopped = scatter_range(&shuffle, 0, None, MANY, &AtomicBool::new(true));
    assert!(matches!(stopped, Err(ShardError::Interrupted)));
    for range in 0..3 {
        scatter(&shuffle, range).unwrap();
    }
    // A byte of a file changed, its end cut off, another shuffle's.
    let file = work.join("scatter-00001.bin");
    let right = fs::read(&file).unwrap();
    for at in (0..right.len()).step_by(right.len() / 200) {
        let mut bytes = right.clone();
        bytes[at] ^= 4;
        fs::write(&file, bytes).unwrap();
        let other = || join_partition(&shuffle, 1, MANY, &idle());
        let gather = || gather_range(&shuffle, 1, &out, MANY, &idle());
        // Each step reads some of the file.
        let error = join(&shuffle).and(other()).and_then(|_| gather()).unwrap_err();
        says(error, "scatter-00001.bin: ");
        for partition in [0, 1] {
            let _ = fs::remove_file(work.join(format!("join-{partition:05}.bin")));
        }
    }
    fs::write(&file, &right[..right.len() - 7]).unwrap();
    says(join(&shuffle).unwrap_err(), "its end is damaged");
    fs::write(&file, &right).unwrap();
    let other = prepare(2);
    says(join(&other).unwrap_err(), "another shuffle");
    says(scatter_range(&other, 0, Some(&out), MANY, &idle()).unwrap_err(), "block files: ");
    // Nothing is prepared where a line is wrong, or the table.
    for name in ["shuffle.txt", "blocks.bin"] {
        let path = work.join(name);
        let bytes = fs::read(&path).unwrap();
        fs::write(&path, &bytes[..bytes.len() - 9]).unwrap();
        let params = chain.forged.params();
        assert!(Shuffle::open(&work, &|_, _| Ok((*params).clone())).is_err(), "{name}");
        fs::write(&path, bytes).unwrap();
    }
}
