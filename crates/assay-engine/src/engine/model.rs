//! Model check of the engine's threads under shuttle, which runs one at a time and chooses the next one at every lock, atomic and
//! thread start: `cargo test -p assay-engine --features model --lib model`.
//!
//! The engine, its pipelines and verifiers are real; files and coins are in memory. One thread adds blocks below the base of a
//! snapshot; others validate them, extend the tip with a valid and an invalid block, test a block with a wrong script and a wrong
//! coinbase, flush, prune, and shut down. Then the disk is opened again: tip, coins under both markers and marks must match the
//! blocks. `ASSAY_MODEL_RUNS` is the number of interleavings per scheduler, `ASSAY_MODEL_SEED` the seed, which is printed.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{SystemTime, UNIX_EPOCH};

use assay_consensus::commitment::height_prefix;
use assay_consensus::params::{AssumeUtxo, ChainParams};
use assay_store::io::{Io, Loss, SimIo};
use assay_store::{CoinRef, CoinStore, MemTier, SimTier, Store};
use assay_testkit::chain::{TxBuilder, coinbase_with, header_on, mined_block_bytes};
use assay_wire::{Block, BlockHash, Encoding, Header, OutPoint, Transaction, Txid};
use shuttle::scheduler::{PctScheduler, RandomScheduler, Scheduler};

use super::{Engine, store_config};
use crate::chainstate::{TrialChecks, TrialError};
use crate::config::{Config, Pruning};
use crate::types::SubmitOutcome;

/// Height of the snapshot's base.
const BASE: u32 = 4;
const COINS: u32 = 24;
/// The output with an unsatisfiable script.
const UNSPENDABLE: u32 = COINS - 1;
const FOLDER: &str = "/model";

/// A push each of a DER signature of r = s = 1, and of the base point as key.
const SIGNATURE_AND_KEY: &str =
    "09300602010102010101210279be667ef9dcbbac55a06295ce870b07029bfcdb2dce28d959f2815b16f81798";

fn coin(vout: u32) -> OutPoint {
    OutPoint { txid: Txid([7; 32]), vout }
}

/// Two checks of an invalid signature, with dropped results: the verdict waits for a batch of signatures.
fn script(vout: u32) -> Vec<u8> {
    if vout == UNSPENDABLE {
        return vec![0];
    }
    let mut script = [0x6e, 0xac, 0x75, 0xab].repeat(2);
    script.extend([0x6d, 0x51]);
    script
}

fn spend(vouts: impl IntoIterator<Item = u32>) -> Transaction {
    let script_sig = assay_testkit::hex::decode(SIGNATURE_AND_KEY);
    let tx = vouts.into_iter().fold(TxBuilder::new(2), |tx, vout| {
        let script_sig = if vout == UNSPENDABLE { &[][..] } else { &script_sig };
        tx.spend(coin(vout), script_sig, u32::MAX)
    });
    tx.output(1, &[0x51]).build()
}

struct Branch {
    tip: BlockHash,
    height: u32,
    time: u32,
}

impl Branch {
    fn block(&self, txs: &[Transaction], claim: i64) -> Vec<u8> {
        let mut script_sig = height_prefix(self.height + 1);
        script_sig.extend([1, 0]);
        let coinbase = coinbase_with(&script_sig).output(claim, &[0x51]).build();
        let header = header_on(self.tip, self.time + 60);
        mined_block_bytes(header, std::iter::once(&coinbase).chain(txs).collect::<Vec<_>>())
    }

    fn extend(&mut self, txs: &[Transaction]) -> Vec<u8> {
        let raw = self.block(txs, 0);
        let header = header(&raw);
        (self.tip, self.height, self.time) = (header.hash(), self.height + 1, header.time);
        raw
    }
}

fn header(raw: &[u8]) -> Header {
    *Block::parse(raw.to_vec(), Encoding::Segwit).expect("a block of ours").header()
}

type Entries = BTreeMap<Vec<u8>, Vec<u8>>;

/// Initial state of every run, and the states that may remain on disk.
struct Case {
    params: Arc<ChainParams>,
    io: SimIo,
    /// Coins at the base.
    active: MemTier,
    /// Coins at the genesis block.
    below: MemTier,
    /// Blocks 1 to the base, a valid one on top, and one on top of that with a failing script.
    blocks: Vec<Vec<u8>>,
    /// A block with an invalid coinbase and a failing script.
    proposal: Vec<u8>,
    /// Coins and marker at each height.
    expected: Vec<Entries>,
}

fn entries(tier: &MemTier) -> Entries {
    tier.entries().into_iter().collect()
}

fn config(params: &Arc<ChainParams>) -> Config {
    let mut config = Config::new(FOLDER, Arc::clone(params));
    (config.threads, config.script_batch, config.exact_near_tip) = (1, Some(3), 0);
    (config.persist_mempool, config.block_file_bytes_max) = (false, 700);
    (config.prune, config.prune_after_height, config.prune_keeps) = (Some(Pruning::Manual), 0, 1);
    config
}

/// Opens an engine on these parts; with coins of a base it has two chains.
fn open(
    params: &Arc<ChainParams>,
    io: &SimIo,
    active: &SimTier,
    below: Option<&SimTier>,
) -> Engine {
    let config = config(params);
    let files: Arc<dyn Io> = Arc::new(io.clone());
    let mut store = Store::open_with(&store_config(&config), &files, Box::new(active.clone()))
        .expect("the store opens");
    if let Some(below) = below {
        let coins = CoinStore::open(Box::new(below.clone()), config.cache_bytes_max);
        store.historical = Some(coins.expect("there are coins"));
        store.base = Some(params.assume_utxo[0].block);
    }
    Engine::over(config, store, files).expect("the engine opens")
}

impl Case {
    fn new() -> Self {
        let mut params = ChainParams::by_name("regtest").expect("it is known");
        let genesis = params.genesis_hash;
        let mut branch = Branch { tip: genesis, height: 0, time: params.genesis.time };
        let mut blocks: Vec<_> =
            (0..BASE).map(|at| branch.extend(&[spend(3 * at..3 * at + 3)])).collect();
        let base = branch.tip;
        let proposal = branch.block(&[spend([UNSPENDABLE])], 100_000_000_000);
        blocks.push(branch.extend(&[spend(12..18)]));
        blocks.push(branch.extend(&[spend([18, UNSPENDABLE])]));
        let plain = Arc::new(params.clone());
        let io = SimIo::new();
        let sim = SimTier::new(&io);
        fill(sim.disk(), genesis);
        let below = sim.disk().fork();
        // Coins at every height, from an engine that connects one block after the other.
        let engine = open(&plain, &io, &sim, None);
        let mut expected = vec![entries(&below)];
        for raw in &blocks[..=BASE as usize] {
            assert!(matches!(engine.blocks().submit(raw.clone()), SubmitOutcome::Accepted));
            engine.flush().expect("the disk works");
            expected.push(entries(sim.disk()));
        }
        let chain_txs = 1 + 2 * u64::from(BASE);
        params.assume_utxo = vec![AssumeUtxo {
            height: BASE,
            block: base,
            hash_serialized: BlockHash::ZERO,
            chain_txs,
        }];
        let active = MemTier::new();
        for (key, value) in &expected[BASE as usize] {
            active.set(key, Some(value));
        }
        // A folder with only headers.
        let io = SimIo::new();
        let headers = SimTier::new(&io);
        fill(headers.disk(), genesis);
        let engine = open(&plain, &io, &headers, None);
        for raw in &blocks[..BASE as usize] {
            engine.blocks().submit_header(&header(raw));
        }
        engine.shutdown().expect("the disk works");
        Self { params: Arc::new(params), io, active, below, blocks, proposal, expected }
    }

    /// One run: the threads of an engine, then a check of the disk.
    fn run(&'static self) {
        let io = self.io.restart(Loss::Nothing);
        let tier = |from: &MemTier| {
            let tier = SimTier::new(&io);
            from.entries().into_iter().for_each(|(key, value)| tier.disk().set(&key, Some(&value)));
            tier
        };
        let (active, below) = (tier(&self.active), tier(&self.below));
        let engine = Arc::new(open(&self.params, &io, &active, Some(&below)));
        let mut threads = Vec::new();
        let mut start = |work: fn(&Self, &Engine)| {
            let engine = Arc::clone(&engine);
            threads.push(shuttle::thread::spawn(move || work(self, &engine)));
        };
        // The base itself never arrives, so there is nothing to compare.
        start(|case, engine| {
            for raw in &case.blocks[..BASE as usize - 1] {
                engine.blocks().submit(raw.clone());
            }
        });
        start(|_, engine| {
            for _ in 0..3 * BASE {
                if engine.chain().advance_historical().is_err() {
                    break;
                }
            }
        });
        start(|case, engine| {
            for raw in &case.blocks[BASE as usize..] {
                engine.blocks().submit(raw.clone());
            }
        });
        start(|case, engine| {
            let block = Block::parse(case.proposal.clone(), Encoding::Segwit).expect("it parses");
            let checks = TrialChecks { work: true, merkle_root: true };
            match engine.mining().test_block(block, checks) {
                Ok(Err(TrialError::Rule(error))) => {
                    assert_eq!(error.reject_reason(), "bad-cb-amount");
                }
                Ok(Err(TrialError::NotOnTip)) | Err(_) => {}
                Ok(Ok(())) => panic!("the proposal is valid"),
            }
        });
        start(|_, engine| {
            let _ = engine.flush();
            let _ = engine.chain().prune_to(2);
        });
        start(|_, engine| engine.shutdown().expect("the disk works"));
        for thread in threads {
            thread.join().expect("a panic ends the model");
        }
        drop(engine);
        self.check(&io, &active, &below);
    }

    fn check(&self, io: &SimIo, active: &SimTier, below: &SimTier) {
        let at = |tier: &SimTier| {
            let found = entries(tier.disk());
            let height = self.expected.iter().position(|expected| *expected == found);
            height.expect("the coins on disk are those of no block") as u32
        };
        assert!(at(active) >= BASE && at(below) < BASE);
        let io = io.restart(Loss::Nothing);
        let engine = open(&self.params, &io, &active.restart(&io), Some(&below.restart(&io)));
        let state = engine.lock();
        assert!(state.tree.tip_node().height <= BASE + 1, "an invalid block is the tip");
        for (index, raw) in self.blocks.iter().enumerate() {
            let Some(id) = state.tree.find(&header(raw).hash()) else { continue };
            let (node, is_good) = (state.tree.get(id), index <= BASE as usize);
            assert!(!(is_good && node.is_failed()), "valid block {} is marked", index + 1);
            assert!(is_good || !node.is_valid(), "invalid block {} counts as valid", index + 1);
        }
    }
}

/// Adds the initial coins at the genesis block.
fn fill(tier: &MemTier, genesis: BlockHash) {
    let io = SimIo::new();
    let filled = SimTier::new(&io);
    let mut coins = CoinStore::open(Box::new(filled.clone()), 1 << 20).expect("it is empty");
    for vout in 0..COINS {
        let script_pubkey = script(vout);
        let value =
            CoinRef { value: 10, height: 0, coinbase: false, script_pubkey: &script_pubkey };
        coins.add(coin(vout), value, false).expect("it is new");
    }
    coins.flush(0, &genesis).expect("memory works");
    for (key, value) in filled.disk().entries() {
        tier.set(&key, Some(&value));
    }
}

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|text| text.parse().expect("a number"))
}

fn explore(scheduler: impl Scheduler + 'static) -> usize {
    static CASE: OnceLock<Case> = OnceLock::new();
    static MAKING: Mutex<()> = Mutex::new(());
    let mut config = shuttle::Config::new();
    config.stack_size = 1 << 20;
    shuttle::Runner::new(scheduler, config).run(|| {
        // The first run creates it, since an engine must run inside a model.
        let making = MAKING.lock().expect("nothing panicked");
        let case = CASE.get_or_init(Case::new);
        drop(making);
        case.run();
    })
}

/// Two former defects (`src/fault_injection.rs`), which the exploration must find: each in a separate process, which it ends.
#[test]
fn planted_defects_are_found() {
    for defect in ["shared-failures", "uncounted-drain"] {
        let program = std::env::current_exe().expect("this program");
        let explored = std::process::Command::new(program)
            .args(["--exact", "engine::model::interleaved_threads_reach_the_state_of_the_blocks"])
            .env("ASSAY_PLANT", defect)
            .env("ASSAY_MODEL_RUNS", "2000")
            .output()
            .expect("it starts");
        assert!(!explored.status.success(), "{defect} is not found");
    }
}

#[test]
fn interleaved_threads_reach_the_state_of_the_blocks() {
    let seed = number("ASSAY_MODEL_SEED").unwrap_or_else(|| {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("it is after 1970");
        now.as_nanos() as u64
    });
    let runs = number("ASSAY_MODEL_RUNS").unwrap_or(300) as usize;
    println!("ASSAY_MODEL_SEED={seed} ASSAY_MODEL_RUNS={runs}");
    let random = explore(RandomScheduler::new_from_seed(seed, runs));
    let few_switches = explore(PctScheduler::new_from_seed(seed, 4, runs));
    println!("{} interleavings explored", random + few_switches);
}
