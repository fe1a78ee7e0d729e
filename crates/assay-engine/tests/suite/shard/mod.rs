//! Validation in parts: any cut gives the result of one pass, and wrong coins are found.

mod attacks;
mod broken;
mod hints;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use assay_engine::{
    ChainParams, Inputs, KeyForms, Merged, Part, PartConfig, PartResult, Plan, PlanConfig, Salt,
    ShardError, ShardVerdict, Unspent, ValidateConfig, Validation, WriteSpent, merge, plan_shards,
    run_part, validate,
};
use assay_testkit::random::Random;
use tempfile::TempDir;

use crate::forged::chain::Forged;
use crate::validate::{Watch, config_of};

const KEYS: KeyForms = KeyForms { is_point: |_| false, expand: |_| None };
const SALT: Salt = [7; 32];

/// A chain, validated in one pass, with the coins that were written meanwhile.
struct Chain {
    forged: Forged,
    dir: TempDir,
    whole: Validation,
}

impl Chain {
    fn new(recipe: &str, seed: u64) -> Self {
        let forged = Forged::new(recipe, seed, None);
        let dir = tempfile::tempdir().unwrap();
        let write_spent = Some(WriteSpent { dir: dir.path().join("spent"), keys: KEYS });
        let write_hints = Some(dir.path().join("hints.dat"));
        let coins = dir.path().join("coins");
        let config = ValidateConfig {
            write_hints,
            ..validation(forged.path(), forged.params(), &coins, write_spent)
        };
        let whole = validate(&config, &AtomicBool::new(false), &Watch::default()).unwrap();
        Self { forged, dir, whole }
    }

    fn spent(&self) -> PathBuf {
        self.dir.path().join("spent")
    }

    fn hints(&self) -> PathBuf {
        self.dir.path().join("hints.dat")
    }

    fn unspent(&self) -> Unspent {
        Unspent::Coins { path: self.spent().join("utxo.dat"), bytes: 0 }
    }

    fn plan_into(&self, parts: usize, unspent: Unspent, out: &Path) -> Result<Plan, ShardError> {
        let config = PlanConfig {
            blocks: self.forged.path().to_path_buf(),
            params: self.forged.params(),
            activation: Vec::new(),
            spent: self.spent(),
            is_core_undo: false,
            unspent,
            stop_height: None,
            parts,
            threads: 2,
            keys: KEYS,
        };
        plan_shards(&config, out, &Watch::default())?;
        self.open(out)
    }

    /// A plan as another machine reads it.
    fn open(&self, dir: &Path) -> Result<Plan, ShardError> {
        let params = self.forged.params();
        Plan::open(dir, &|name, heights| {
            assert!(name == params.name && heights.is_empty());
            Ok((*params).clone())
        })
    }

    fn plan(&self, parts: usize) -> Plan {
        let out = tempfile::tempdir().unwrap();
        self.plan_into(parts, self.unspent(), out.path()).unwrap()
    }

    /// Checks that the parts give the result of one pass.
    fn check(&self, merged: &Merged) {
        assert_eq!(merged.verdict, ShardVerdict::Valid);
        let (found, whole) = (merged.totals, self.whole.totals);
        assert_eq!(
            (found.blocks, found.txs, found.inputs, found.outputs, found.bytes),
            (whole.blocks, whole.txs, whole.inputs, whole.outputs, whole.bytes)
        );
        let (coins, whole) = (merged.coins.as_ref().unwrap(), self.whole.coins.as_ref().unwrap());
        self.forged.check_coins(coins);
        assert_eq!((coins.height, coins.hash), (whole.height, whole.hash));
    }
}

fn validation(
    blocks: &Path,
    params: Arc<ChainParams>,
    datadir: &Path,
    write_spent: Option<WriteSpent>,
) -> ValidateConfig {
    ValidateConfig {
        is_lasting: false,
        sample_signatures: 0,
        write_spent,
        ..config_of(params, blocks, datadir)
    }
}

fn config(threads: usize) -> PartConfig {
    PartConfig {
        inputs: Inputs::default(),
        threads,
        script_batch: Some(256),
        keys: KEYS,
        clock: Arc::default(),
    }
}

fn part(plan: &Plan, number: usize, salt: &Salt) -> PartResult {
    run_part(plan, number, salt, &config(1), &AtomicBool::new(false), &|_| {}).unwrap()
}

/// All parts, in an order of the seed's.
fn run_all(plan: &Plan, seed: u64) -> Vec<Option<PartResult>> {
    let mut order: Vec<usize> = (0..plan.parts().len()).collect();
    Random(seed).shuffle(&mut order);
    let mut results: Vec<Option<PartResult>> = order.iter().map(|_| None).collect();
    for number in order {
        results[number] = Some(part(plan, number, &SALT));
    }
    results
}

#[test]
fn any_cut_equals_one_pass() {
    for (recipe, seed) in [("bitcoin-scaling", 5), ("bch-scaling", 6)] {
        let chain = Chain::new(recipe, seed);
        for parts in [1, 2, 3, 7, 64] {
            let (by_coins, hinted) = (chain.plan(parts), chain.plan_hinted(parts).unwrap());
            let is_blocks = |part: &&Part| matches!(part, Part::Blocks { .. });
            let count = parts.min(chain.forged.height() as usize);
            assert_eq!(by_coins.parts().iter().filter(is_blocks).count(), count);
            assert_eq!(hinted.parts().len(), count);
            for plan in [by_coins, hinted] {
                let merged = merge(&plan, &run_all(&plan, seed));
                chain.check(&merged);
                let (coins, whole) = (merged.coins.unwrap(), chain.whole.coins.as_ref().unwrap());
                let figures = (coins.transactions, coins.bogosize);
                assert_eq!(figures, (whole.transactions, whole.bogosize));
            }
        }
    }
}

#[test]
fn a_muhash_stands_for_the_coins_left_over() {
    let chain = Chain::new("bitcoin-scaling", 8);
    let digest = chain.whole.coins.as_ref().unwrap().muhash.unwrap();
    let out = tempfile::tempdir().unwrap();
    let plan = chain.plan_into(5, Unspent::MuHash(digest), out.path()).unwrap();
    chain.check(&merge(&plan, &run_all(&plan, 1)));
    let mut other = digest;
    other[3] ^= 1;
    let plan = chain.plan_into(5, Unspent::MuHash(other), out.path()).unwrap();
    let verdict = merge(&plan, &run_all(&plan, 1)).verdict;
    assert!(matches!(verdict, ShardVerdict::Unequal { .. }), "{verdict:?}");
}

#[test]
fn results_are_the_same_bytes_and_only_their_own_run_takes_them() {
    let chain = Chain::new("bitcoin-scaling", 9);
    let plan = chain.plan(4);
    let out = tempfile::tempdir().unwrap();
    let many = run_part(&plan, 1, &SALT, &config(3), &AtomicBool::new(false), &|_| {}).unwrap();
    many.write(out.path()).unwrap();
    part(&plan, 1, &SALT).write(out.path()).unwrap();
    let read = PartResult::read(out.path(), &plan, 1, Some(&SALT)).unwrap().unwrap();
    read.write(out.path()).unwrap();
    assert!(PartResult::read(out.path(), &plan, 0, Some(&SALT)).unwrap().is_none());
    // Another salt, another plan.
    let other: Salt = [8; 32];
    let error = part(&plan, 1, &other).write(out.path()).unwrap_err().to_string();
    assert!(error.contains("another result of the same part"), "{error}");
    let error = PartResult::read(out.path(), &plan, 1, Some(&other)).unwrap_err().to_string();
    assert!(error.contains("another salt"), "{error}");
    let finer = chain.plan(5);
    let error = PartResult::read(out.path(), &finer, 1, Some(&SALT)).unwrap_err().to_string();
    assert!(error.contains("another plan"), "{error}");
    // Under another name, cut off, and with every byte changed.
    let file = out.path().join("part-00001.txt");
    let bytes = std::fs::read(&file).unwrap();
    std::fs::write(out.path().join("part-00002.txt"), &bytes).unwrap();
    let error = PartResult::read(out.path(), &plan, 2, Some(&SALT)).unwrap_err().to_string();
    assert!(error.contains("another part"), "{error}");
    for at in 0..bytes.len() {
        let mut changed = bytes.clone();
        changed[at] ^= 1;
        std::fs::write(&file, &changed).unwrap();
        assert!(PartResult::read(out.path(), &plan, 1, Some(&SALT)).is_err(), "byte {at}");
        std::fs::write(&file, &bytes[..at]).unwrap();
        assert!(PartResult::read(out.path(), &plan, 1, Some(&SALT)).is_err(), "cut at {at}");
    }
    // A coinbase less, with the right checksum.
    let text = String::from_utf8(bytes).unwrap();
    let body = &text[..text.rfind("coinbase ").unwrap()];
    let end = assay_engine::BlockHash(assay_hash::sha256(body.as_bytes()));
    std::fs::write(&file, format!("{body}end {end}\n")).unwrap();
    let error = PartResult::read(out.path(), &plan, 1, Some(&SALT)).unwrap_err().to_string();
    assert!(error.contains("another kind of part"), "{error}");
    // One part alone proves nothing.
    let verdict = merge(&plan, &[Some(read)]).verdict;
    assert!(matches!(verdict, ShardVerdict::Missing(_)), "{verdict:?}");
}

#[test]
fn files_that_do_not_fit_are_named() {
    let chain = Chain::new("bitcoin-scaling", 10);
    let out = tempfile::tempdir().unwrap();
    let plan = chain.plan_into(3, chain.unspent(), out.path()).unwrap();
    let error = run_part(&plan, 99, &SALT, &config(1), &AtomicBool::new(false), &|_| {});
    assert!(error.unwrap_err().to_string().contains("no part 99"));
    let stopped = run_part(&plan, 0, &SALT, &config(1), &AtomicBool::new(true), &|_| {});
    assert!(matches!(stopped, Err(ShardError::Interrupted)));
    // Blocks and coins of another chain.
    let other = Chain::new("bitcoin-scaling", 11);
    let run = |inputs| {
        let config = PartConfig { inputs, ..config(1) };
        run_part(&plan, 0, &SALT, &config, &AtomicBool::new(false), &|_| {})
            .unwrap_err()
            .to_string()
    };
    let blocks = Some(other.forged.path().to_path_buf());
    let error = run(Inputs { blocks, ..Inputs::default() });
    assert!(error.contains("other block files") || error.contains("damaged block"), "{error}");
    let error = run(Inputs { spent: Some(other.spent()), ..Inputs::default() });
    assert!(error.contains("other spent coins") || error.contains("is damaged"), "{error}");
    let error = other.plan_into(3, chain.unspent(), out.path()).unwrap_err().to_string();
    assert!(error.contains("holds the coins of block"), "{error}");
    // A plan whose lines or table were changed.
    chain.plan_into(3, chain.unspent(), out.path()).unwrap();
    for name in ["plan.txt", "blocks.bin"] {
        let path = out.path().join(name);
        let bytes = std::fs::read(&path).unwrap();
        std::fs::write(&path, &bytes[..bytes.len() - 9]).unwrap();
        assert!(chain.open(out.path()).is_err(), "{name}");
        std::fs::write(&path, &bytes).unwrap();
    }
    // Spent coins that were cut off lack a block.
    let spent = chain.spent().join("spent-00000.dat");
    let bytes = std::fs::read(&spent).unwrap();
    std::fs::write(&spent, &bytes[..bytes.len() - 1]).unwrap();
    let error = chain.plan_into(3, chain.unspent(), out.path()).unwrap_err().to_string();
    let height = chain.forged.height();
    assert!(error.contains(&format!("at height {height}")), "{error}");
}

/// The set that `validate` wrote equals that of the ledger's prototype.
#[test]
fn the_written_coins_are_the_set() {
    let chain = Chain::new("bitcoin-scaling", 12);
    chain.forged.check_coins(chain.whole.coins.as_ref().unwrap());
    let file = std::fs::File::open(chain.spent().join("utxo.dat")).unwrap();
    let reader = assay_engine::SnapshotReader::new(std::io::BufReader::new(file), KEYS).unwrap();
    assert_eq!(reader.header().coins, chain.forged.ledger.tip.utxo_count);
    let digest = assay_engine::digest_snapshot(reader, chain.forged.height(), &|_| {}).unwrap();
    assert_eq!(digest.coins, chain.forged.ledger.tip.utxo_count);
}
