//! UTXO snapshots: loading them, and validating the blocks below.

use std::fs;
use std::io::Write;
use std::path::Path;
use std::sync::Arc;

use assay_consensus::params::{AssumeUtxo, ChainParams};
use assay_engine::{
    Config, Engine, EngineError, KeyForms, LoadError, Pruning, SnapshotError, SnapshotReader,
    SubmitOutcome, digest_snapshot,
};
use assay_store::{CoinRef, SnapshotHeader, SnapshotWriter};
use assay_wire::{Block, BlockHash, Encoding, Header, OutPoint, Txid};
use tempfile::TempDir;

use super::chain::accept;
use super::mint::{Mint, params, tx};

const BASE: u32 = 120;
const KEYS: KeyForms = KeyForms { is_point: |_| false, expand: |_| None };

/// A chain of a few blocks above and below a base with known coins.
struct Case {
    blocks: Vec<Vec<u8>>,
    file: Vec<u8>,
    known: AssumeUtxo,
    mint: Mint,
}

impl Case {
    fn new() -> Self {
        let mut mint = Mint::new();
        let blocks = mint.branch(BASE + 30, 3);
        let (file, known) = Self::snapshot_of(&blocks[..BASE as usize]);
        Self { blocks, file, known, mint }
    }

    fn snapshot_of(blocks: &[Vec<u8>]) -> (Vec<u8>, AssumeUtxo) {
        let dir = tempfile::tempdir().unwrap();
        let engine = Engine::open(Config::new(dir.path(), params())).unwrap();
        for raw in blocks {
            accept(&engine, raw.clone());
        }
        let tip = engine.chain().tip();
        let coins = engine.chain().coins_at(&tip.hash, &|| true).unwrap();
        let file = coins.write(Vec::new(), KEYS, &|| true).unwrap();
        let known = AssumeUtxo {
            height: tip.height,
            block: tip.hash,
            hash_serialized: BlockHash(coins.hash),
            chain_txs: tip.chain_txs,
        };
        (file, known)
    }

    fn params(&self) -> Arc<ChainParams> {
        let mut params = ChainParams::clone(&params());
        params.assume_utxo = vec![self.known.clone()];
        Arc::new(params)
    }

    fn open(&self, dir: &Path) -> Engine {
        self.open_with(dir, |_| ())
    }

    fn open_with(&self, dir: &Path, change: impl FnOnce(&mut Config)) -> Engine {
        let mut config = Config::new(dir, self.params());
        config.threads = 2;
        change(&mut config);
        Engine::open(config).unwrap()
    }

    /// A new engine that knows the headers.
    fn with_headers(&self) -> (TempDir, Engine) {
        let dir = tempfile::tempdir().unwrap();
        let engine = self.open(dir.path());
        self.headers(&engine);
        (dir, engine)
    }

    fn headers(&self, engine: &Engine) {
        let headers: Vec<Header> = self.blocks.iter().map(|raw| header(raw)).collect();
        engine.blocks().take_headers(&headers).unwrap();
    }

    fn load(&self, engine: &Engine) -> Result<u32, LoadError> {
        let reader = SnapshotReader::new(&self.file[..], KEYS).unwrap();
        engine.chain().load_snapshot(reader, &|| true).map(|base| base.height)
    }

    /// Submits the blocks of these heights, in this order.
    fn give(&self, engine: &Engine, heights: impl IntoIterator<Item = u32>) {
        for height in heights {
            let outcome = engine.blocks().submit(self.blocks[height as usize - 1].clone());
            let is_kept = matches!(outcome, SubmitOutcome::Accepted | SubmitOutcome::Inconclusive);
            assert!(is_kept, "{height}: {outcome:?}");
        }
    }

    /// The coins of the tip equal those of a node without a snapshot.
    fn check_tip(&self, engine: &Engine, height: u32) {
        let dir = tempfile::tempdir().unwrap();
        let plain = Engine::open(Config::new(dir.path(), params())).unwrap();
        self.give(&plain, 1..=height);
        let facts = |engine: &Engine| {
            let stats = engine.chain().utxo_stats(true).unwrap();
            (stats.height, stats.hash, stats.txouts, stats.muhash)
        };
        assert_eq!(facts(engine), facts(&plain));
    }
}

#[test]
fn the_digest_of_a_file_is_the_hash_of_the_set() {
    let case = Case::new();
    let reader = |file| SnapshotReader::new(file, KEYS).unwrap();
    let digest = digest_snapshot(reader(&case.file[..]), BASE, &|_| ()).unwrap();
    assert_eq!((digest.hash, digest.unsorted), (case.known.hash_serialized, None));
    assert_eq!(digest.coins, reader(&case.file[..]).header().coins);
    // A coin of a height above the block.
    let error = digest_snapshot(reader(&case.file[..]), 1, &|_| ()).unwrap_err();
    assert!(matches!(error, SnapshotError::Value { .. }) && error.offset().is_some(), "{error}");
    let mut flipped = case.file.clone();
    let last = flipped.len() - 1;
    flipped[last] ^= 1;
    let other = digest_snapshot(reader(&flipped[..]), BASE, &|_| ()).unwrap();
    assert_ne!(other.hash, digest.hash);
}

/// Position of the damage of the case's file.
fn place(case: &Case, engine: &Engine) -> String {
    case.load(engine).unwrap_err().place().unwrap()
}

fn header(raw: &[u8]) -> Header {
    *Block::parse(raw.to_vec(), Encoding::Segwit).unwrap().header()
}

/// Works until nothing is left.
fn advance(engine: &Engine) {
    while engine.chain().advance_historical().unwrap() {}
}

/// Works until the coins of the snapshot are found to be wrong.
fn failure(engine: &Engine) -> EngineError {
    loop {
        match engine.chain().advance_historical() {
            Ok(more) => assert!(more, "it is found"),
            Err(error) => return error,
        }
    }
}

fn heights(engine: &Engine) -> Vec<(u32, bool)> {
    engine.chain().states().iter().map(|state| (state.tip.height, state.is_validated)).collect()
}

#[test]
fn continues_from_a_snapshot_and_validates_the_blocks_below() {
    let case = Case::new();
    let (dir, engine) = case.with_headers();
    case.give(&engine, 1..=50);
    // Archived before, and connected as soon as the coins are loaded.
    case.give(&engine, BASE + 1..=BASE + 2);
    assert_eq!(case.load(&engine).unwrap(), BASE);
    assert_eq!(heights(&engine), [(50, true), (BASE + 2, false)]);
    assert!(matches!(case.load(&engine), Err(LoadError::Again)));
    assert_eq!(engine.chain().validated_tip().height, 50);
    assert_eq!(engine.chain().validated_hash_at(51), None);
    case.give(&engine, BASE + 3..=BASE + 10);
    case.check_tip(&engine, BASE + 10);
    advance(&engine);
    assert_eq!(heights(&engine), [(50, true), (BASE + 10, false)]);
    // In any order, the base among the first.
    case.give(&engine, (51..=BASE).rev());
    advance(&engine);
    assert_eq!(heights(&engine), [(BASE + 10, true)]);
    assert_eq!(engine.chain().states()[0].snapshot, Some(case.known.block));
    assert!(engine.chain().historical().is_none());
    assert!(matches!(case.load(&engine), Err(LoadError::Again)));
    case.give(&engine, BASE + 11..=BASE + 15);
    case.check_tip(&engine, BASE + 15);
    // Now the active chain can be disconnected below the base.
    let below = engine.chain().hash_at(BASE - 5).unwrap();
    engine.chain().invalidate_block(&below).unwrap();
    assert_eq!(engine.chain().tip().height, BASE - 6);
    engine.chain().reconsider_block(&below).unwrap();
    engine.shutdown().unwrap();
    drop(engine);
    assert!(dir.path().join("chainstate_snapshot").exists());

    let engine = case.open(dir.path());
    assert!(!dir.path().join("chainstate_snapshot").exists());
    assert_eq!(heights(&engine), [(BASE + 15, true)]);
    case.check_tip(&engine, BASE + 15);
}

#[test]
fn both_chains_survive_kills() {
    let case = Case::new();
    let dir = tempfile::tempdir().unwrap();
    let mut engine = case.open(dir.path());
    case.headers(&engine);
    case.load(&engine).unwrap();
    // Dropped without a shutdown, as after a kill.
    let reopen = |engine: Engine| {
        drop(engine);
        case.open(dir.path())
    };
    let mut above = BASE;
    for height in 1..=BASE {
        case.give(&engine, [height]);
        advance(&engine);
        if height % 7 == 0 && above < BASE + 30 {
            above += 1;
            case.give(&engine, [above]);
        }
        if height % 10 == 3 {
            engine.flush().unwrap();
        }
        if height % 10 == 7 {
            engine = reopen(engine);
            // The chain continues from its last flush, without further input.
            advance(&engine);
            assert_eq!(heights(&engine), [(height, true), (above, false)], "{height}");
        }
    }
    assert_eq!(heights(&engine), [(above, true)]);
    engine = reopen(engine);
    assert_eq!(heights(&engine), [(above, true)]);
    case.check_tip(&engine, above);
}

#[test]
fn blocks_below_the_base_are_validated_on_a_separate_thread() {
    let case = Case::new();
    let dir = tempfile::tempdir().unwrap();
    let engine = case.open_with(dir.path(), |config| config.cache_bytes_max = 512 << 10);
    std::thread::scope(|scope| {
        let thread = scope.spawn(|| engine.chain().validate_historical());
        case.headers(&engine);
        case.load(&engine).unwrap();
        case.give(&engine, BASE + 1..=BASE + 30);
        case.give(&engine, 1..=BASE);
        let seen = engine.chain().validated_tip().hash;
        engine.chain().wait_for_validated(&seen, std::time::Duration::from_mins(1));
        while engine.chain().historical().is_some() {
            let seen = engine.chain().validated_tip().hash;
            engine.chain().wait_for_validated(&seen, std::time::Duration::from_millis(50));
        }
        case.check_tip(&engine, BASE + 30);
        engine.shutdown().unwrap();
        thread.join().unwrap().unwrap();
    });
}

#[test]
fn a_tip_on_another_branch_is_left_first() {
    let case = Case::new();
    let dir = tempfile::tempdir().unwrap();
    let engine = case.open(dir.path());
    case.give(&engine, 1..=50);
    let mut other = Mint::new();
    other.branch(50, 3);
    other.salt = 9;
    for raw in other.branch(20, 2) {
        accept(&engine, raw);
    }
    case.headers(&engine);
    case.load(&engine).unwrap();
    advance(&engine);
    assert_eq!(heights(&engine), [(70, true), (BASE, false)], "until there is something better");
    case.give(&engine, [51]);
    advance(&engine);
    assert_eq!(heights(&engine), [(51, true), (BASE, false)]);
    case.give(&engine, 52..=BASE);
    advance(&engine);
    assert_eq!(heights(&engine), [(BASE, true)]);
    case.check_tip(&engine, BASE);
}

/// A snapshot with an extra coin that the program accepts.
fn forge(case: &mut Case) {
    let mut reader = SnapshotReader::new(&case.file[..], KEYS).unwrap();
    let header = SnapshotHeader { coins: reader.header().coins + 1, ..*reader.header() };
    let mut writer = SnapshotWriter::new(Vec::new(), &header, KEYS).unwrap();
    while let Some((outpoint, coin)) = reader.next_coin().unwrap() {
        writer.push(&outpoint, CoinRef::from(&coin)).unwrap();
    }
    let outpoint = OutPoint { txid: Txid([0xff; 32]), vout: 0 };
    let script_pubkey = &assay_testkit::chain::P2SH_TRUE;
    let coin = CoinRef { value: 7_000_000, height: 2, coinbase: false, script_pubkey };
    writer.push(&outpoint, coin).unwrap();
    case.file = writer.finish().unwrap().1;
    let (_dir, engine) = case.with_headers();
    let Err(LoadError::Hash { actual, .. }) = case.load(&engine) else {
        panic!("the coins are others")
    };
    case.known.hash_serialized = actual;
}

#[test]
fn a_wrong_snapshot_stops_the_engine_and_is_not_used_again() {
    let mut case = Case::new();
    forge(&mut case);
    let (dir, engine) = case.with_headers();
    case.give(&engine, 1..=30);
    case.load(&engine).unwrap();
    // A block that spends the extra coin: valid only with the snapshot.
    let mut mint = Mint::new();
    let tip = mint.branch(BASE, 3);
    assert_eq!(tip, case.blocks[..BASE as usize]);
    let stolen = OutPoint { txid: Txid([0xff; 32]), vout: 0 };
    let bad = mint.block_of(&[tx(&[(stolen, u32::MAX)], &[6_000_000], 0)]);
    accept(&engine, bad.clone());
    case.give(&engine, 31..=BASE);
    let error = failure(&engine);
    let EngineError::SnapshotInvalid { tip, validated, kept } = error else { panic!("{error}") };
    assert_eq!((tip, validated), (BASE + 1, BASE));
    assert!(Path::new(&kept).join("base_blockhash").exists());
    assert!(engine.failure().is_some());
    assert!(matches!(engine.blocks().submit(bad), SubmitOutcome::Failed(_)));
    assert!(engine.shutdown().is_err());
    drop(engine);

    let engine = case.open(dir.path());
    // The block was connected once, but with worthless coins.
    assert_eq!(heights(&engine), [(BASE, true)]);
    case.check_tip(&engine, BASE);
    case.give(&engine, [BASE + 1, BASE + 2]);
    assert_eq!(engine.chain().tip().height, BASE + 2);
}

#[test]
fn an_invalid_block_below_the_base_stops_the_engine() {
    let mut mint = Mint::new();
    let mut blocks = mint.branch(BASE, 3);
    // The tenth last block spends a missing coin; headers alone do not show it.
    let mut bad = Mint::new();
    bad.branch(BASE - 10, 3);
    let missing = OutPoint { txid: Txid([0xff; 32]), vout: 0 };
    let block = bad.block_of(&[tx(&[(missing, u32::MAX)], &[1000], 0)]);
    blocks.truncate(BASE as usize - 10);
    blocks.push(block);
    blocks.extend(bad.branch(10, 0));
    let good = Case::new();
    let base = header(blocks.last().unwrap()).hash();
    let height = blocks.len() as u32;
    let file = [&good.file[..11], &base.0[..], &good.file[43..]].concat();
    let known = AssumeUtxo { height, block: base, ..good.known.clone() };
    let case = Case { blocks, file, known, mint };
    let (dir, engine) = case.with_headers();
    case.load(&engine).unwrap();
    assert_eq!(engine.chain().tip().height, height);
    case.give(&engine, 1..=height);
    let error = failure(&engine);
    assert!(matches!(error, EngineError::SnapshotInvalid { .. }), "{error}");
    drop(engine);
    let engine = case.open(dir.path());
    assert_eq!(heights(&engine), [(BASE - 10, true)]);
}

#[test]
fn an_invalid_snapshot_is_rejected_without_changes() {
    let mut case = Case::new();
    let dir = tempfile::tempdir().unwrap();
    let engine = case.open(dir.path());
    let check = |case: &Case, expected: &str| {
        let error = case.load(&engine).unwrap_err().to_string();
        assert_eq!(error, expected);
        assert!(!dir.path().join("chainstate_snapshot").exists());
        assert_eq!(heights(&engine).len(), 1);
    };
    let base = case.known.block;
    check(
        &case,
        &format!(
            "The base block header ({base}) must appear in the headers chain. Make sure all headers are syncing, and call \
             loadtxoutset again"
        ),
    );
    case.headers(&engine);
    let whole = case.file.clone();
    let count = u64::from_le_bytes(whole[43..51].try_into().unwrap());
    let with = |at: usize, bytes: &[u8]| {
        let mut file = whole.clone();
        file[at..at + bytes.len()].copy_from_slice(bytes);
        file
    };
    let population = |text: &str| format!("Population failed: {text}");
    case.file = with(11, &[1; 32]);
    let one = BlockHash([1; 32]);
    check(
        &case,
        &format!(
            "assumeutxo block hash in snapshot metadata not recognized (hash: {one}). The following snapshot heights are \
             available: {BASE}"
        ),
    );
    case.file = with(43, &(count - 1).to_le_bytes());
    let text = format!("Bad snapshot - coins left over after deserializing {} coins", count - 1);
    check(&case, &population(&text));
    case.file = with(43, &(count + 1).to_le_bytes());
    let text =
        format!("Bad snapshot format or truncated snapshot after deserializing {count} coins");
    check(&case, &population(&text));
    case.file = whole[..whole.len() - 1].to_vec();
    let text = format!(
        "Bad snapshot format or truncated snapshot after deserializing {} coins",
        count - 1
    );
    check(&case, &population(&text));
    // The number of coins of the first transaction, and the height of its first.
    case.file = with(51 + 32, &[0xfd, 0xff, 0xff]);
    check(
        &case,
        &population("Mismatch in coins count in snapshot metadata and actual snapshot data"),
    );
    assert_eq!(place(&case, &engine), "byte offset 83");
    let code = 51 + 34;
    let code_bytes = if whole[code] & 0x80 == 0 { 1 } else { 2 };
    case.file = [&whole[..code], &[0x84, 0x58], &whole[code + code_bytes..]].concat();
    check(&case, &population("Bad snapshot data after deserializing 0 coins"));
    assert_eq!(place(&case, &engine), format!("byte offset {code}"));
    // The first txid above all others, and a byte of the last script, which only the hash detects.
    case.file = with(51, &[0xff; 32]);
    let error = case.load(&engine).unwrap_err();
    assert!(matches!(error, LoadError::Hash { unsorted: Some(_), .. }), "{error}");
    let last = whole.len() - 1;
    case.file = with(last, &[whole[last] ^ 1]);
    let error = case.load(&engine).unwrap_err();
    assert!(matches!(error, LoadError::Hash { unsorted: None, .. }), "{error}");
    assert!(place(&case, &engine).starts_with("after byte offset 51"));
    case.file.clone_from(&whole);
    let reader = SnapshotReader::new(&whole[..], KEYS).unwrap();
    let stopped = engine.chain().load_snapshot(reader, &|| false);
    assert!(matches!(stopped, Err(LoadError::Interrupted)));
    // Other headers with more work, an invalid base, and a tip with as much work.
    engine.chain().invalidate_block(&base).unwrap();
    check(&case, &format!("The base block header ({base}) is part of an invalid chain"));
    engine.chain().reconsider_block(&base).unwrap();
    let mut other = Mint::new();
    other.branch(BASE - 1, 3);
    other.salt = 9;
    let headers: Vec<Header> = other.branch(40, 0).iter().map(|raw| header(raw)).collect();
    engine.blocks().take_headers(&headers).unwrap();
    check(
        &case,
        "A forked headers-chain with more work than the chain with the snapshot base block header exists. Please proceed to sync \
         without AssumeUtxo.",
    );
    let more = case.mint.branch(20, 0);
    case.blocks.extend(more);
    case.headers(&engine);
    case.give(&engine, 1..=BASE);
    check(&case, "Population failed: Work does not exceed active chainstate");
}

/// The engine is shut down while coins are read: an error means that the next start knows of no snapshot.
#[test]
fn a_shutdown_during_a_load_leaves_no_snapshot() {
    let case = Case::new();
    let (dir, engine) = case.with_headers();
    case.give(&engine, 1..=5);
    let reader = SnapshotReader::new(&case.file[..], KEYS).unwrap();
    let is_open = std::cell::Cell::new(true);
    let loaded = engine.chain().load_snapshot(reader, &|| {
        if is_open.replace(false) {
            engine.shutdown().unwrap();
        }
        true
    });
    assert!(matches!(loaded, Err(LoadError::Engine(_))), "{loaded:?}");
    drop(engine);
    let engine = case.open(dir.path());
    assert_eq!(engine.chain().tip().height, 5);
    assert_eq!(case.load(&engine).unwrap(), BASE);
}

#[test]
fn transactions_in_the_mempool_are_in_the_way() {
    let mut case = Case::new();
    let (_dir, engine) = case.with_headers();
    case.give(&engine, 1..=BASE - 5);
    let mut mint = Mint::new();
    mint.branch(BASE - 5, 3);
    let spend = mint.spend().unwrap();
    engine.mempool().submit(spend.bytes().to_vec(), None).unwrap();
    assert_eq!(
        case.load(&engine).unwrap_err().to_string(),
        "Can't activate a snapshot when mempool not empty"
    );
    case.blocks.clear();
}

#[test]
fn old_blocks_are_removed_only_once_they_are_validated() {
    let case = Case::new();
    let dir = tempfile::tempdir().unwrap();
    let prune = |config: &mut Config| {
        config.prune = Some(Pruning::Manual);
        (config.prune_keeps, config.block_file_bytes_max) = (5, 4 << 10);
    };
    let engine = case.open_with(dir.path(), prune);
    let is_there = |engine: &Engine, height: u32| {
        let hash = engine.chain().hash_at(height).unwrap();
        engine.blocks().read(&hash).unwrap().is_some()
    };
    case.headers(&engine);
    case.give(&engine, 1..=20);
    case.load(&engine).unwrap();
    case.give(&engine, BASE + 1..=BASE + 30);
    // Just below the base, long before they can be connected.
    case.give(&engine, BASE - 20..=BASE);
    case.give(&engine, 21..=50);
    advance(&engine);
    engine.chain().prune_to(BASE + 20).unwrap();
    let height = heights(&engine)[0].0;
    assert_eq!(height, 50);
    assert!((height - 4..=height).chain(BASE - 20..=BASE).all(|height| is_there(&engine, height)));
    assert!(!is_there(&engine, 20) && !is_there(&engine, BASE + 10));
    drop(engine);
    let engine = case.open_with(dir.path(), prune);
    assert_eq!(heights(&engine), [(50, true), (BASE + 30, false)]);
    case.give(&engine, 51..=BASE - 21);
    advance(&engine);
    assert_eq!(heights(&engine), [(BASE + 30, true)]);
    engine.chain().prune_to(BASE + 20).unwrap();
    assert!(!is_there(&engine, BASE - 10));
    case.check_tip(&engine, BASE + 30);
    engine.shutdown().unwrap();
    drop(engine);
    case.check_tip(&case.open_with(dir.path(), prune), BASE + 30);
}

#[test]
fn coins_of_unknown_blocks_are_not_opened_and_a_rebuild_drops_them() {
    let mut case = Case::new();
    let (dir, engine) = case.with_headers();
    case.give(&engine, 1..=40);
    case.load(&engine).unwrap();
    case.give(&engine, [BASE + 1]);
    engine.shutdown().unwrap();
    drop(engine);
    let known = std::mem::replace(&mut case.known.block, BlockHash([9; 32]));
    let error = Engine::open(Config::new(dir.path(), case.params())).err().unwrap();
    assert!(error.to_string().contains("Assumeutxo data not found for the given blockhash"));
    case.known.block = known;
    for reindex in [false, true] {
        let engine = case.open_with(dir.path(), |config| {
            config.reindex = reindex;
            config.rebuild_coins = !reindex;
        });
        if reindex {
            engine.blocks().reindex(&|| true).unwrap();
        }
        assert_eq!(heights(&engine), [(40, true)]);
        engine.shutdown().unwrap();
        drop(engine);
        let engine = case.open(dir.path());
        case.headers(&engine);
        case.load(&engine).unwrap();
        // Without the header below it a block in the files is unknown.
        let tip = if reindex { BASE } else { BASE + 1 };
        assert_eq!(heights(&engine), [(40, true), (tip, false)]);
        drop(engine);
    }
    // Remains of a killed load.
    let half = dir.path().join("chainstate_snapshot");
    fs::remove_file(half.join("base_blockhash")).unwrap();
    fs::File::create(half.join("more")).unwrap().write_all(b"x").unwrap();
    assert_eq!(heights(&case.open(dir.path())), [(40, true)]);
    assert!(!half.exists());
}
