//! Plans with hints: false hints are found.

use std::fs;
use std::path::Path;
use std::sync::atomic::AtomicBool;

use assay_consensus::tx::is_unspendable;
use assay_engine::{
    Inputs, PartConfig, PartResult, Plan, ShardError, ShardVerdict, SnapshotReader, Unspent, merge,
    run_part,
};
use assay_store::{HintsReader, HintsWriter};
use assay_wire::OutPoint;

use super::{Chain, KEYS, SALT, config, run_all};

/// The unspent outputs of each block, from the genesis block on.
type Lists = Vec<Vec<u32>>;

/// A change to the lists.
type Change<'a> = &'a dyn Fn(&mut Lists);

fn read(path: &Path) -> Lists {
    let bytes = fs::read(path).unwrap();
    let mut reader = HintsReader::new(&bytes[..]).unwrap();
    let hints = std::iter::from_fn(|| reader.next_block().unwrap());
    hints.map(|hints| hints.iter().collect()).collect()
}

fn write(path: &Path, lists: &[Vec<u32>]) {
    let mut writer = HintsWriter::new(Vec::new(), lists.len() as u32 - 1).unwrap();
    for list in lists {
        writer.push(list).unwrap();
    }
    fs::write(path, writer.finish().unwrap()).unwrap();
}

impl Chain {
    fn hinted(&self) -> Unspent {
        Unspent::Hints { path: self.hints(), bytes: 0 }
    }

    pub(super) fn plan_hinted(&self, parts: usize) -> Result<Plan, ShardError> {
        let out = tempfile::tempdir().unwrap();
        self.plan_into(parts, self.hinted(), out.path())
    }

    /// Outputs of a block that can be spent, in the order in which hints count them.
    fn outputs(&self, height: u32) -> Vec<OutPoint> {
        let mut found = Vec::new();
        for tx in self.block(height).txs() {
            let txid = tx.txid();
            let outputs = tx.outputs().zip(0..);
            let outputs = outputs.filter(|(output, _)| !is_unspendable(output.script_pubkey));
            found.extend(outputs.map(|(_, vout)| OutPoint { txid, vout }));
        }
        found
    }
}

/// The file that one pass wrote names the outpoints of the snapshot that it wrote, and no others.
#[test]
fn hints_are_the_set() {
    for (recipe, seed) in [("bitcoin-scaling", 52), ("bch-scaling", 53)] {
        let chain = Chain::new(recipe, seed);
        let lists = read(&chain.hints());
        assert_eq!(lists.len() as u32, chain.forged.height() + 1);
        assert!(lists[0].is_empty());
        let mut hinted: Vec<OutPoint> = Vec::new();
        for (list, height) in lists[1..].iter().zip(1..) {
            let outputs = chain.outputs(height);
            hinted.extend(list.iter().map(|index| outputs[*index as usize]));
        }
        let file = fs::File::open(chain.spent().join("utxo.dat")).unwrap();
        let mut reader = SnapshotReader::new(std::io::BufReader::new(file), KEYS).unwrap();
        let coins = std::iter::from_fn(|| reader.next_coin().unwrap());
        let mut left: Vec<OutPoint> = coins.map(|(outpoint, _)| outpoint).collect();
        hinted.sort_unstable();
        left.sort_unstable();
        assert!(!left.is_empty());
        assert!(hinted == left, "{} hinted, {} left over", hinted.len(), left.len());
    }
}

#[test]
fn hints_that_lie_are_found_out() {
    let chain = Chain::new("bitcoin-scaling", 54);
    let truth = read(&chain.hints());
    let last = truth.len() - 1;
    // A block with outputs of both kinds.
    let outputs = |height: usize| chain.outputs(height as u32).len() as u32;
    let spent_in =
        |height: usize| (0..outputs(height)).find(|index| !truth[height].contains(index));
    let mixed = |height: &usize| truth[*height].len() > 1 && spent_in(*height).is_some();
    let height = (1..=last).rfind(mixed).unwrap();
    let spent = spent_in(height).unwrap();
    let add = |list: &mut Vec<u32>, index| {
        list.push(index);
        list.sort_unstable();
    };
    let other_height = (1..height).rfind(mixed).unwrap();
    let attacks: [(&str, Change<'_>); 9] = [
        ("one missing", &|lists| {
            lists[height].pop();
        }),
        ("one of a spent output", &|lists| add(&mut lists[height], spent)),
        ("one in place of another", &|lists| {
            lists[height].pop();
            add(&mut lists[height], spent);
        }),
        ("as many, in another block", &|lists| {
            lists[height].pop();
            add(&mut lists[other_height], spent_in(other_height).unwrap());
        }),
        ("an output that is not there", &|lists| add(&mut lists[height], outputs(height))),
        ("far behind the last output", &|lists| add(&mut lists[height], 1 << 20)),
        ("the hints of two blocks swapped", &|lists| lists.swap(height, other_height)),
        ("none", &|lists| lists.iter_mut().for_each(Vec::clear)),
        ("all outputs", &|lists| {
            for (list, height) in lists.iter_mut().zip(0..).skip(1) {
                *list = (0..outputs(height)).collect();
            }
        }),
    ];
    for (name, change) in attacks {
        let mut lists = truth.clone();
        change(&mut lists);
        assert_ne!(lists, truth, "{name}");
        write(&chain.hints(), &lists);
        for parts in [1, 6] {
            let plan = chain.plan_hinted(parts).unwrap();
            let verdict = merge(&plan, &run_all(&plan, 2)).verdict;
            let is_right = match &verdict {
                ShardVerdict::Unequal { .. } => true,
                ShardVerdict::Rejected(rejection) => rejection.reason == "hints",
                _ => false,
            };
            assert!(is_right, "{name}: {verdict:?}");
        }
    }
    write(&chain.hints(), &truth);
    let plan = chain.plan_hinted(6).unwrap();
    chain.check(&merge(&plan, &run_all(&plan, 2)));
}

/// Hints that also count unspendable outputs name other outputs.
#[test]
fn hints_of_unspendable_outputs_are_found_out() {
    let chain = Chain::new("bitcoin-scaling", 55);
    let mut lists = read(&chain.hints());
    let mut shifted = 0;
    for height in 1..=chain.forged.height() {
        let (mut counted, mut all) = (0, Vec::new());
        for tx in chain.block(height).txs() {
            for output in tx.outputs() {
                let is_spendable = !is_unspendable(output.script_pubkey);
                // The hinted outputs, by their place among all outputs, and all unspendable ones.
                all.push(!is_spendable || lists[height as usize].contains(&counted));
                counted += u32::from(is_spendable);
            }
        }
        let list: Vec<u32> = (0..).zip(&all).filter(|(_, is)| **is).map(|(at, _)| at).collect();
        shifted += usize::from(list != lists[height as usize]);
        lists[height as usize] = list;
    }
    assert!(shifted > 0, "the chain has outputs that cannot be spent");
    write(&chain.hints(), &lists);
    let plan = chain.plan_hinted(5).unwrap();
    let verdict = merge(&plan, &run_all(&plan, 2)).verdict;
    let is_right = matches!(verdict, ShardVerdict::Unequal { .. })
        || matches!(&verdict, ShardVerdict::Rejected(rejection) if rejection.reason == "hints");
    assert!(is_right, "{verdict:?}");
}

#[test]
fn hints_that_do_not_fit_are_named() {
    let chain = Chain::new("bitcoin-scaling", 56);
    let (path, truth) = (chain.hints(), fs::read(chain.hints()).unwrap());
    let says = |error: ShardError, words: &str| {
        let text = error.to_string();
        assert!(text.contains(words) && text.contains("hints.dat"), "{text}");
    };
    // Cut off anywhere, something behind, another format.
    for cut in (0..truth.len()).step_by(truth.len().div_ceil(50)) {
        fs::write(&path, &truth[..cut]).unwrap();
        says(chain.plan_hinted(3).unwrap_err(), if cut < 4 { "`UTXO`" } else { "ends at offset" });
    }
    fs::write(&path, [&truth[..], &[0]].concat()).unwrap();
    says(chain.plan_hinted(3).unwrap_err(), "bytes follow");
    fs::remove_file(&path).unwrap();
    says(chain.plan_hinted(3).unwrap_err(), "");
    // Of another height, and of the genesis block.
    let lists = {
        fs::write(&path, &truth).unwrap();
        read(&path)
    };
    write(&path, &lists[..lists.len() - 1]);
    says(chain.plan_hinted(3).unwrap_err(), "plan with --stop-height");
    let mut changed = lists;
    changed[0] = vec![0];
    write(&path, &changed);
    says(chain.plan_hinted(3).unwrap_err(), "genesis");
    // Of another chain: found when the plan is made, by a part, or by the sums.
    let other = Chain::new("bitcoin-scaling", 57);
    fs::copy(other.hints(), &path).unwrap();
    match chain.plan_hinted(3) {
        Err(error) => says(error, ""),
        Ok(plan) => {
            let verdict = merge(&plan, &run_all(&plan, 1)).verdict;
            assert_ne!(verdict, ShardVerdict::Valid);
        }
    }
    // A file that changes under a plan, whatever the bit.
    fs::write(&path, &truth).unwrap();
    let plan = chain.plan_hinted(3).unwrap();
    let run = |number, hints| {
        let inputs = Inputs { hints, ..Inputs::default() };
        let config = PartConfig { inputs, ..config(1) };
        run_part(&plan, number, &SALT, &config, &AtomicBool::new(false), &|_| {})
    };
    let moved = chain.dir.path().join("moved-hints.dat");
    fs::rename(&path, &moved).unwrap();
    says(run(0, None).unwrap_err(), "");
    assert!(run(0, Some(moved.clone())).unwrap().rejection().is_none());
    for at in (HEAD_BYTES + 1..truth.len()).step_by((truth.len() / 40).max(1)) {
        let mut bytes = truth.clone();
        bytes[at] ^= 1 << (at % 8);
        fs::write(&moved, &bytes).unwrap();
        let errors = (0..3).filter_map(|number| run(number, Some(moved.clone())).err());
        let errors: Vec<ShardError> = errors.collect();
        assert_eq!(errors.len(), 1, "byte {at} belongs to one part");
        for error in errors {
            says(error, "other hints than those of the plan");
        }
    }
}

#[test]
fn bits_turned_before_the_plan_are_found_out() {
    let chain = Chain::new("bitcoin-scaling", 58);
    let (path, truth) = (chain.hints(), fs::read(chain.hints()).unwrap());
    let mut planned = 0;
    for round in 0..60 {
        let mut bytes = truth.clone();
        let bit = HEAD_BYTES * 8 + (truth.len() - HEAD_BYTES) * 8 * round / 60 + round % 8;
        bytes[bit / 8] ^= 1 << (bit % 8);
        fs::write(&path, &bytes).unwrap();
        // Most are no hints any more.
        let Ok(plan) = chain.plan_hinted(2) else { continue };
        planned += 1;
        let verdict = merge(&plan, &run_all(&plan, 1)).verdict;
        assert_ne!(verdict, ShardVerdict::Valid, "bit {bit}");
    }
    assert!(planned < 60);
}

#[test]
fn results_with_hints_are_the_same_bytes_and_come_back() {
    let chain = Chain::new("bitcoin-scaling", 59);
    let plan = chain.plan_hinted(3).unwrap();
    let out = tempfile::tempdir().unwrap();
    for threads in [1, 3] {
        for number in 0..plan.parts().len() {
            let stop = AtomicBool::new(false);
            let result = run_part(&plan, number, &SALT, &config(threads), &stop, &|_| {});
            result.unwrap().write(out.path()).unwrap();
        }
    }
    let read = |number| PartResult::read(out.path(), &plan, number, Some(&SALT)).unwrap();
    let results: Vec<_> = (0..plan.parts().len()).map(read).collect();
    chain.check(&merge(&plan, &results));
    // A result of an older program.
    let file = out.path().join("part-00001.txt");
    let text = fs::read_to_string(&file).unwrap().replace("result 2", "result 1");
    let body = &text[..text.rfind("end ").unwrap()];
    let end = assay_engine::BlockHash(assay_hash::sha256(body.as_bytes()));
    fs::write(&file, format!("{body}end {end}\n")).unwrap();
    let error = PartResult::read(out.path(), &plan, 1, Some(&SALT)).unwrap_err().to_string();
    assert!(error.contains("another version of the program"), "{error}");
}

/// Magic, version, height.
const HEAD_BYTES: usize = 9;
