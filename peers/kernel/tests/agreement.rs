//! Small runs of everything: both sides agree, and every class has its expected result. Coins that are read out of the kernel's
//! database are those that the engine has.

use std::sync::Arc;

use assay_consensus::params::ChainParams;
use assay_engine::{BlockHash, Config, Engine, SubmitOutcome};
use assay_peer_kernel::kernel::{self, Chain, Kernel, Settings};
use assay_peer_kernel::verdict::Verdict;
use assay_peer_kernel::world::World;
use assay_peer_kernel::{coins, compare, flips, scripts};
use bitcoinkernel::ChainType;

#[test]
fn blocks_of_every_class() {
    let _tap = kernel::listen().unwrap();
    let out = tempfile::tempdir().unwrap();
    let options = compare::Options {
        seed: 7,
        blocks: 3000,
        round_blocks: 1000,
        first_round: 0,
        class: None,
        jobs: 2,
        out: out.path().to_path_buf(),
    };
    let summary = compare::run(&options, &|_| {}).unwrap();
    let table = summary.table();
    assert_eq!(summary.disagreements(), 0, "{table}");
    let not_meant: u64 = summary.classes.values().map(|tally| tally.not_meant).sum();
    assert_eq!(not_meant, 0, "{table}");
    for reason in ["bad-cb-amount", "bad-txns-BIP30", "high-hash", "unexpected-witness"] {
        assert!(summary.reasons.contains_key(reason), "{reason} is missing\n{table}");
    }
}

#[test]
fn random_scripts() {
    let summary = scripts::run(7, 20_000, 2);
    assert!(summary.disagreements.is_empty(), "{:#?}", summary.disagreements);
    assert!(summary.errors.len() > 25, "{:?}", summary.errors);
}

#[test]
fn flips_in_real_blocks() {
    let shared = std::env::var_os("ASSAY_TEST_DATA").map(std::path::PathBuf::from);
    let Some(shared) = shared.filter(|folder| folder.join("blocks").exists()) else {
        println!("skipped: no real blocks in ASSAY_TEST_DATA");
        return;
    };
    let summary = flips::run(&shared, 200, 7).unwrap();
    assert!(summary.disagreements.is_empty(), "{:#?}", summary.disagreements);
    assert_eq!(summary.flips, 200);
}

/// The base chain of a comparison has coins of every kind: keys in full and compressed, hashes, witness programs, scripts
/// that are nothing of this.
#[test]
fn coins_of_the_database_are_those_of_the_engine() {
    let _tap = kernel::listen().unwrap();
    let dir = tempfile::tempdir().unwrap();
    let params = Arc::new(ChainParams::by_name("regtest").unwrap());
    let engine = Engine::open(Config::new(dir.path().join("engine"), params)).unwrap();
    let datadir = dir.path().join("kernel");
    let settings = Settings { workers: 0, in_memory: false };
    let kernel = Kernel::open(&Chain::Known(ChainType::Regtest), &datadir, &settings).unwrap();
    let mut world = World::new(7, 0).unwrap();
    while let Some(raw) = world.base_block() {
        assert!(matches!(engine.blocks().submit(raw.clone()), SubmitOutcome::Accepted));
        let verdict = kernel.submit(&raw);
        assert_eq!(verdict, Verdict::Accepted);
        world.note(&raw, &verdict, kernel.tip().1).unwrap();
    }
    // The kernel writes its coins when it ends.
    drop(kernel);
    let ours = engine.chain().utxo_stats(true).unwrap();
    let theirs = coins::read(&datadir).unwrap();
    assert!(theirs.coins > 100, "{theirs:?}");
    assert_eq!(theirs.best_block, engine.chain().tip().hash.to_string());
    assert_eq!((theirs.coins, theirs.amount_sat), (ours.txouts, ours.total_amount_sat));
    assert_eq!(Some(theirs.muhash), ours.muhash.map(|digest| BlockHash(digest).to_string()));
}
