//! Coins read from the kernel's database equal those of the engine.

use std::sync::Arc;

use assay_consensus::params::ChainParams;
use assay_engine::{BlockHash, Config, Engine, SubmitOutcome};
use assay_peer_kernel::coins;
use assay_peer_kernel::kernel::{self, Chain, Kernel, Settings};
use assay_peer_kernel::verdict::Verdict;
use assay_peer_kernel::world::World;
use bitcoinkernel::ChainType;

/// The base chain of a comparison has coins of every kind: full and compressed keys, hashes,
/// witness programs, and other scripts.
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
        assert!(matches!(engine.submit_block(raw.clone()), SubmitOutcome::Accepted));
        let verdict = kernel.submit(&raw);
        assert_eq!(verdict, Verdict::Accepted);
        world.note(&raw, &verdict, kernel.tip().1).unwrap();
    }
    // The kernel flushes its coins when it is dropped.
    drop(kernel);
    let ours = engine.utxo_stats(true).unwrap();
    let theirs = coins::read(&datadir).unwrap();
    assert!(theirs.coins > 100, "{theirs:?}");
    assert_eq!(theirs.best_block, engine.tip().hash.to_string());
    assert_eq!((theirs.coins, theirs.amount_sat), (ours.txouts, ours.total_amount_sat));
    assert_eq!(Some(theirs.muhash), ours.muhash.map(|digest| BlockHash(digest).to_string()));
}
