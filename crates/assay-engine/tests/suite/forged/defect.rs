//! A panic below the engine while coins are ahead of the tip: the process must end even if the panic is caught.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::process::Command;
use std::sync::{Arc, Mutex};

use assay_engine::{ChainTipStatus, Config, Engine, SubmitOutcome};
use assay_store::defect::EXIT_STATUS;
use assay_store::io::{Io, RealIo};
use assay_store::{CoinTier, FjallTier, TierBatch, TierError, TierSnapshot};
use assay_wire::{Block, Encoding, Header, Txid};

use super::mint::{Mint, params};

/// Passes the folder to the process that is to end.
const FOLDER: &str = "ASSAY_TEST_DEFECT_DIR";
const TEST: &str = "forged::defect::a_panic_below_the_engine_ends_the_process";

/// The usual tier, with a defect.
struct Tier {
    inner: FjallTier,
    panic_at: Arc<Mutex<Option<Txid>>>,
}

impl CoinTier for Tier {
    fn get(&self, key: &[u8], found: &mut dyn FnMut(&[u8])) -> Result<bool, TierError> {
        let at = *self.panic_at.lock().unwrap();
        assert!(at.is_none_or(|txid| !key.starts_with(&txid.0)), "a defect in the storage engine");
        self.inner.get(key, found)
    }

    fn batch(&self, changes: usize) -> Result<Box<dyn TierBatch + '_>, TierError> {
        self.inner.batch(changes)
    }

    fn snapshot(&self) -> Result<Box<dyn TierSnapshot>, TierError> {
        self.inner.snapshot()
    }

    fn disk_bytes(&self) -> u64 {
        self.inner.disk_bytes()
    }

    fn coins_estimate(&self) -> u64 {
        self.inner.coins_estimate()
    }
}

fn open(dir: &Path) -> (Engine, Arc<Mutex<Option<Txid>>>) {
    let panic_at = Arc::<Mutex<Option<Txid>>>::default();
    let inner = FjallTier::open(&dir.join("tier"), 1 << 20).unwrap();
    let tier = Tier { inner, panic_at: Arc::clone(&panic_at) };
    let mut config = Config::new(dir, params());
    config.threads = 2;
    let io: Arc<dyn Io> = Arc::new(RealIo);
    (Engine::open_with(config, &io, Box::new(tier)).unwrap(), panic_at)
}

/// 105 blocks, and three more with transactions.
fn blocks() -> (Vec<Vec<u8>>, Vec<Vec<u8>>) {
    let mut mint = Mint::new();
    let base = mint.branch(105, 0);
    (base, mint.branch(3, 2))
}

/// Blocks 106 and 107 connect in one pass, and the tier panics when 107 looks up its coinbase's output, so coins are two blocks
/// ahead of the tip.
fn fail(dir: &Path) {
    let (_, next) = blocks();
    let (engine, panic_at) = open(dir);
    let header = Header::parse(next[0].first_chunk().unwrap());
    assert!(matches!(engine.blocks().submit_header(&header), SubmitOutcome::Inconclusive));
    assert!(matches!(engine.blocks().submit(next[1].clone()), SubmitOutcome::Inconclusive));
    let coinbase = Block::parse(next[1].clone(), Encoding::Segwit).unwrap().tx(0).txid();
    *panic_at.lock().unwrap() = Some(coinbase);
    // Like a server that turns a panic into an error.
    let _ = catch_unwind(AssertUnwindSafe(|| engine.blocks().submit(next[0].clone())));
}

#[test]
fn a_panic_below_the_engine_ends_the_process() {
    if let Some(dir) = std::env::var_os(FOLDER) {
        return fail(Path::new(&dir));
    }
    let dir = tempfile::tempdir().unwrap();
    let (base, next) = blocks();
    let (engine, _) = open(dir.path());
    for raw in &base {
        assert!(matches!(engine.blocks().submit(raw.clone()), SubmitOutcome::Accepted));
    }
    let at_105 = engine.chain().utxo_stats(true).unwrap().muhash;
    engine.shutdown().unwrap();
    drop(engine);

    let failed = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", TEST, "--nocapture"])
        .env(FOLDER, dir.path())
        .output()
        .unwrap();
    let errors = String::from_utf8_lossy(&failed.stderr);
    assert_eq!(failed.status.code(), Some(EXIT_STATUS), "{errors}");
    assert!(errors.contains("a defect in the storage engine"), "{errors}");
    assert!(errors.contains("a panic interrupted a change of the chain's state"), "{errors}");

    // The start connects the archived blocks, as after a SIGKILL, and nothing is marked invalid.
    let (engine, _) = open(dir.path());
    assert_eq!(engine.chain().tip().height, 107);
    assert!(engine.chain().tips().iter().all(|tip| tip.status != ChainTipStatus::Invalid));
    let hash = engine.chain().hash_at(105).unwrap();
    assert!(matches!(engine.blocks().submit(next[2].clone()), SubmitOutcome::Accepted));
    let failing = engine.chain().utxo_stats(true).unwrap().muhash;
    let below = engine.chain().hash_at(106).unwrap();
    engine.chain().invalidate_block(&below).unwrap();
    let muhash = engine.chain().utxo_stats(true).unwrap().muhash;
    assert_eq!((engine.chain().tip().hash, muhash), (hash, at_105));

    // The coins equal those of an engine without the failure.
    let other = tempfile::tempdir().unwrap();
    let (engine, _) = open(other.path());
    for raw in base.iter().chain(&next) {
        assert!(matches!(engine.blocks().submit(raw.clone()), SubmitOutcome::Accepted));
    }
    assert_eq!(engine.chain().utxo_stats(true).unwrap().muhash, failing);
}
