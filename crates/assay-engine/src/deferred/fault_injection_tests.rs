//! Vector code that accepts invalid signatures, and a core that miscomputes: the process must end, with evidence.
//!
//! A process that ends cannot report to a test, so the test runs its own program again for one test, [`child`], which does
//! nothing without instructions.

use std::path::Path;
use std::process::{Command, Output};
use std::sync::Arc;

use assay_consensus::commitment::height_prefix;
use assay_consensus::params::ChainParams;
use assay_secp::Backend;
use assay_testkit::chain::{TxBuilder, header_on, mined_block_bytes};
use assay_wire::{BlockHash, Header, OutPoint, Transaction, Txid};

use crate::{Config, Engine, SubmitOutcome};

const SIGNATURES: usize = 100;
/// Blocks with invalid signatures.
const BLOCKS: u32 = 40;
const MATURITY: u32 = 100;
const VALUE: i64 = 5_000_000_000;

/// The generator of the curve.
const KEY: [u8; 33] = [
    0x02, 0x79, 0xbe, 0x66, 0x7e, 0xf9, 0xdc, 0xbb, 0xac, 0x55, 0xa0, 0x62, 0x95, 0xce, 0x87, 0x0b,
    0x07, 0x02, 0x9b, 0xfc, 0xdb, 0x2d, 0xce, 0x28, 0xd9, 0x59, 0xf2, 0x81, 0x5b, 0x16, 0xf8, 0x17,
    0x98,
];

/// A push of a well-formed signature with `SIGHASH_ALL` that is invalid for every message.
const SIGNATURE: [u8; 10] = [9, 0x30, 6, 2, 1, 9, 2, 1, 9, 1];

fn key_script() -> Vec<u8> {
    [&[33][..], &KEY, &[0xac]].concat()
}

fn transaction(inputs: &[(OutPoint, &[u8])], outputs: &[(i64, &[u8])]) -> Transaction {
    let mut tx = TxBuilder::new(2);
    for (prevout, script_sig) in inputs {
        tx = tx.spend(*prevout, script_sig, u32::MAX);
    }
    for (value, script) in outputs {
        tx = tx.output(*value, script);
    }
    tx.build()
}

/// A chain on regtest: coinbases that anyone can spend, then blocks that spend outputs to [`KEY`] with [`SIGNATURE`].
struct Chain {
    params: Arc<ChainParams>,
    tip: BlockHash,
    height: u32,
    time: u32,
    coinbases: Vec<Txid>,
}

impl Chain {
    fn new(time: Option<u32>) -> Self {
        let params = Arc::new(ChainParams::by_name("regtest").unwrap());
        let (tip, time) = (params.genesis_hash, time.unwrap_or(params.genesis.time));
        Self { params, tip, height: 0, time, coinbases: Vec::new() }
    }

    fn block(&mut self, txs: &[Transaction]) -> Vec<u8> {
        self.height += 1;
        self.time += 60;
        let mut script_sig = height_prefix(self.height);
        script_sig.extend([1, 1]);
        let coinbase = transaction(&[(OutPoint::NULL, &script_sig)], &[(VALUE, &[0x51])]);
        let all: Vec<&Transaction> = [&coinbase].into_iter().chain(txs).collect();
        let header = header_on(self.tip, self.time);
        let raw = mined_block_bytes(header, all);
        self.tip = Header::parse(raw.first_chunk().unwrap()).hash();
        self.coinbases.push(coinbase.view().txid());
        raw
    }

    /// A block that pays the oldest coinbases to the key and spends the outputs with invalid signatures.
    fn wrong_block(&mut self) -> Vec<u8> {
        let txid = self.coinbases[(self.height - MATURITY) as usize];
        let script = key_script();
        let outputs = vec![(VALUE / SIGNATURES as i64, &script[..]); SIGNATURES];
        let pays = transaction(&[(OutPoint { txid, vout: 0 }, &[])], &outputs);
        let txid = pays.view().txid();
        let inputs: Vec<(OutPoint, &[u8])> =
            (0..SIGNATURES as u32).map(|vout| (OutPoint { txid, vout }, &SIGNATURE[..])).collect();
        let spends = transaction(&inputs, &[(VALUE, &[0x51])]);
        self.block(&[pays, spends])
    }
}

/// Submits blocks with wrong signatures; returns the number accepted before the first rejection.
fn accepted(datadir: &Path, sample_signatures: u32, is_recent: bool) -> u32 {
    // One block each, with recent or with old times.
    let now_s = crate::clock::unix_time_s() as u32;
    let mut chain = Chain::new(is_recent.then(|| now_s - 60 * (MATURITY + BLOCKS)));
    let mut config = Config::new(datadir, Arc::clone(&chain.params));
    config.threads = 2;
    config.cache_bytes_max = 16 << 20;
    config.script_batch = Some(2048);
    config.sample_signatures = sample_signatures;
    let engine = Engine::open(config).unwrap();
    for _ in 0..=MATURITY {
        let outcome = engine.blocks().submit(chain.block(&[]));
        assert!(matches!(outcome, SubmitOutcome::Accepted), "{outcome:?}");
    }
    for count in 0..BLOCKS {
        match engine.blocks().submit(chain.wrong_block()) {
            SubmitOutcome::Accepted => println!("accepted wrong block {}", count + 1),
            SubmitOutcome::Rejected { reason, .. } => {
                assert!(reason.contains("script"), "{reason}");
                return count;
            }
            other => panic!("{other:?}"),
        }
    }
    BLOCKS
}

/// Body of the child processes.
#[test]
fn child() {
    let Ok(kind) = std::env::var("ASSAY_PLANTED_CHILD") else { return };
    let datadir = std::env::var("ASSAY_PLANTED_DATADIR").unwrap();
    let (one_of, is_recent) = match &*kind {
        "sample" => (256, false),
        "no sample" => (0, false),
        "near the tip" => (256, true),
        other => panic!("{other}"),
    };
    println!("{} accepted in all", accepted(Path::new(&datadir), one_of, is_recent));
}

struct Ended {
    output: Output,
    text: String,
    datadir: tempfile::TempDir,
}

fn run(kind: &str, plant: &str) -> Ended {
    let datadir = tempfile::tempdir().unwrap();
    let mut command = Command::new(std::env::current_exe().unwrap());
    command
        .args([
            "--exact",
            "deferred::fault_injection_tests::child",
            "--nocapture",
            "--test-threads=1",
        ])
        .env("ASSAY_PLANTED_CHILD", kind)
        .env("ASSAY_PLANTED_DATADIR", datadir.path())
        .env("ASSAY_PLANT", plant);
    // The child must not choose: on a busy machine it may select the library, which has no planted defect.
    let backend = match Backend::detect() {
        Backend::Libsecp => Backend::Portable,
        vectors => vectors,
    };
    command.env("ASSAY_BACKEND", backend.name());
    let output = command.output().unwrap();
    let text = [&output.stdout[..], &output.stderr].concat();
    let text = String::from_utf8_lossy(&text).into_owned();
    Ended { output, text, datadir }
}

/// The only evidence file in a datadir.
fn evidence(datadir: &Path) -> serde_json::Value {
    let names: Vec<_> = std::fs::read_dir(datadir)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.file_name().unwrap().to_str().unwrap().starts_with("defect-"))
        .collect();
    assert_eq!(names.len(), 1, "{names:?}");
    serde_json::from_slice(&std::fs::read(&names[0]).unwrap()).unwrap()
}

#[test]
fn a_planted_wrong_lane_stops_the_engine() {
    let ended = run("sample", "wrong-proof:1");
    assert_eq!(ended.output.status.code(), Some(70), "{}", ended.text);
    assert!(ended.text.contains("libsecp256k1 finds false"), "{}", ended.text);
    // Of 100 wrong signatures a block, one of 256 is checked again: 2.6 blocks on average, and 40 pass once in 10^8.
    let count = ended.text.matches("accepted wrong block").count();
    println!("ended in wrong block {}", count + 1);
    assert!(count < BLOCKS as usize);
    let evidence = evidence(ended.datadir.path());
    assert_eq!((&evidence["check"], &evidence["proof"]), (&"ecdsa".into(), &"lane".into()));
    assert_eq!(evidence["pubkey"], faster_hex::hex_string(&KEY));
    assert_eq!(evidence["signature"], faster_hex::hex_string(&SIGNATURE[1..9]));
    assert_eq!(evidence["message"].as_str().unwrap().len(), 64);
    assert_eq!(evidence["library_again"], "false");
    assert!(evidence["thread"].as_str().unwrap().starts_with("verify-"));
}

/// Without spot checks: all wrong blocks are accepted, so no other check finds them.
#[test]
fn without_spot_checks_wrong_blocks_are_accepted() {
    let ended = run("no sample", "wrong-proof:1");
    assert!(ended.output.status.success(), "{}", ended.text);
    assert!(ended.text.contains(&format!("{BLOCKS} accepted in all")), "{}", ended.text);
}

/// Near the tip the library verifies, so a planted defect has no effect.
#[test]
fn near_the_tip_the_library_decides() {
    let ended = run("near the tip", "wrong-proof:1");
    assert!(ended.output.status.success(), "{}", ended.text);
    assert!(ended.text.contains("0 accepted in all"), "{}", ended.text);
}

#[test]
fn without_fault_injection_the_first_wrong_block_is_rejected() {
    let datadir = tempfile::tempdir().unwrap();
    assert_eq!(accepted(datadir.path(), 256, false), 0);
}

#[test]
fn a_failing_self_test_stops_the_engine() {
    let ended = run("sample", "self-test");
    assert_eq!(ended.output.status.code(), Some(70), "{}", ended.text);
    assert!(ended.text.contains("fails its self-test"), "{}", ended.text);
    assert!(!ended.text.contains("accepted wrong block"), "{}", ended.text);
    assert!(evidence(ended.datadir.path())["processor"].is_string());
}
