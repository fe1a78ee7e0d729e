//! Fallback to other branches when blocks of the best one are invalid, and to other copies when one is damaged.
//!
//! The oracle is an engine that receives the same blocks one by one and switches branches itself.

use std::path::Path;
use std::sync::OnceLock;
use std::sync::atomic::Ordering;

use assay_engine::{BlockHash, Engine, SubmitOutcome, ValidateConfig, Validation, validate};
use assay_testkit::random::Random;
use assay_wire::{Block, Encoding};
use proptest::prelude::*;

use super::files::{Part, write};
use super::{End, Watch, config_of, muhash, run};
use crate::forged::chain::{hash, printed, repair};
use crate::forged::mint::{Mint, open, params};

/// The branches start above blocks that create coins.
const BASE: u32 = 112;

fn base() -> &'static (Mint, Vec<Vec<u8>>) {
    static BASE_CHAIN: OnceLock<(Mint, Vec<Vec<u8>>)> = OnceLock::new();
    BASE_CHAIN.get_or_init(|| {
        let mut mint = Mint::new();
        let blocks = mint.branch(BASE, 0);
        (mint, blocks)
    })
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Wrong {
    Script,
    Amount,
    Input,
}

impl Wrong {
    fn reason(self) -> &'static str {
        match self {
            Self::Script => "block-script-verify-flag-failed (",
            Self::Amount => "bad-cb-amount",
            Self::Input => "bad-txns-inputs-missingorspent",
        }
    }
}

/// A block on top of a mint's, with a salt to make it distinct.
fn block_on(mint: &mut Mint, salt: u8, wrong: Option<Wrong>) -> Vec<u8> {
    mint.salt = salt;
    let mut raw = mint.block(2);
    if let Some(wrong) = wrong {
        let block = Block::parse(raw.clone(), Encoding::Segwit).unwrap();
        let start = block.bytes().as_ptr() as usize;
        assert!(block.tx_count() > 1, "there is a coin to spend");
        let input = block.tx(block.tx_count() - 1).input(0);
        let script = input.script_sig.as_ptr() as usize - start;
        let value = block.tx(0).output(0).script_pubkey.as_ptr() as usize - start - 9;
        match wrong {
            // A redeem script with another hash.
            Wrong::Script => raw[script + 1] ^= 3,
            Wrong::Amount => raw[value + 5] = 0x7f,
            // Length of the script, index, and the last byte of the txid.
            Wrong::Input => raw[script - 6] ^= 1,
        }
        repair(&mut raw, &params());
        mint.tip = hash(&raw);
    }
    raw
}

/// One of the blocks above the base.
struct Node {
    raw: Vec<u8>,
    hash: BlockHash,
    /// `None` for a child of the base.
    parent: Option<usize>,
    height: u32,
    mint: Mint,
    /// True if it breaks a rule itself.
    is_wrong: bool,
    /// True if the files have an undamaged copy.
    is_there: bool,
}

#[derive(Default)]
struct Tree {
    nodes: Vec<Node>,
}

impl Tree {
    fn add(&mut self, parent: Option<usize>, wrong: Option<Wrong>) -> usize {
        let mut mint = parent.map_or_else(|| base().0.clone(), |at| self.nodes[at].mint.clone());
        let raw = block_on(&mut mint, self.nodes.len() as u8 + 1, wrong);
        let (hash, height, is_wrong) = (hash(&raw), mint.height, wrong.is_some());
        self.nodes.push(Node { raw, hash, parent, height, mint, is_wrong, is_there: true });
        self.nodes.len() - 1
    }

    /// Consecutive blocks; number `wrong`, counted from 0, is faulty.
    fn branch(
        &mut self,
        parent: Option<usize>,
        count: usize,
        wrong: Option<(usize, Wrong)>,
    ) -> Vec<usize> {
        let mut parent = parent;
        (0..count)
            .map(|index| {
                let wrong = wrong.filter(|(at, _)| *at == index).map(|(_, wrong)| wrong);
                let node = self.add(parent, wrong);
                parent = Some(node);
                node
            })
            .collect()
    }

    fn parts(&self) -> Vec<Part> {
        self.nodes.iter().map(|node| Part::Block(node.raw.clone())).collect()
    }

    /// True if `node` is `other` or a descendant.
    fn builds_on(&self, node: usize, other: &BlockHash) -> bool {
        std::iter::successors(Some(node), |at| self.nodes[*at].parent)
            .any(|at| self.nodes[at].hash == *other)
    }
}

fn base_parts() -> Vec<Part> {
    base().1.iter().cloned().map(Part::Block).collect()
}

fn config(blocks: &Path, datadir: &Path) -> ValidateConfig {
    ValidateConfig { script_batch: Some(16), ..config_of(params(), blocks, datadir) }
}

/// Tip and coins of an engine with the blocks in this order.
struct Oracle {
    engine: Engine,
    _datadir: tempfile::TempDir,
}

impl Oracle {
    fn new() -> Self {
        let datadir = tempfile::tempdir().unwrap();
        let engine = open(datadir.path(), 64 << 20);
        for raw in &base().1 {
            assert!(matches!(engine.blocks().submit(raw.clone()), SubmitOutcome::Accepted));
        }
        Self { engine, _datadir: datadir }
    }

    /// Submits all headers, so that no order of the blocks matters, and then the blocks.
    fn feed(&self, tree: &Tree, order: impl Iterator<Item = usize>) {
        for node in &tree.nodes {
            let block = Block::parse(node.raw.clone(), Encoding::Segwit).unwrap();
            self.engine.blocks().submit_header(block.header());
        }
        for index in order {
            self.engine.blocks().submit(tree.nodes[index].raw.clone());
        }
    }

    /// True if the engine found it invalid, or never tried it: if a block of equal work was first, and the child of this one is
    /// damaged, only a validation that knows the header above tries it.
    fn has_failed(&self, node: &Node) -> bool {
        let known = self.engine.blocks().submit(node.raw.clone());
        matches!(known, SubmitOutcome::DuplicateInvalid | SubmitOutcome::DuplicateInconclusive)
    }

    /// Compares tip, coins and invalid blocks.
    fn check(&self, tree: &Tree, validation: &Validation) {
        let tip = self.engine.chain().tip();
        assert_eq!((validation.height, validation.hash), (tip.height, tip.hash), "{validation:?}");
        let stats = self.engine.chain().utxo_stats(true).unwrap();
        assert_eq!(printed(stats.muhash.unwrap()), muhash(validation));
        assert_eq!(validation.totals.blocks, u64::from(tip.height));
        for block in &validation.invalid {
            let node = tree.nodes.iter().find(|node| node.hash == block.hash).expect("a node");
            assert_eq!((block.height, block.is_damaged), (node.height, !node.is_there));
            assert!(!node.is_there || node.is_wrong && self.has_failed(node), "{block}");
        }
        // Everything with more work than the tip is invalid or has an invalid ancestor.
        for (index, node) in tree.nodes.iter().enumerate() {
            let is_known =
                validation.invalid.iter().any(|block| tree.builds_on(index, &block.hash));
            assert!(node.height <= tip.height || is_known, "{node_hash}", node_hash = node.hash);
        }
        let above = validation.invalid.iter().find(|block| {
            let node = tree.nodes.iter().find(|node| node.hash == block.hash).expect("a node");
            node.parent.map_or(base().0.tip, |at| tree.nodes[at].hash) == tip.hash
        });
        let expected = above.map_or(End::Complete, |block| End::Invalid(Box::new(block.clone())));
        assert_eq!(validation.end, expected);
    }
}

/// Validates a tree with its blocks in creation order.
fn check_tree(tree: &Tree) -> Validation {
    let dir = tempfile::tempdir().unwrap();
    write(dir.path(), params().disk_magic, None, &[base_parts(), tree.parts()]);
    let oracle = Oracle::new();
    oracle.feed(tree, 0..tree.nodes.len());
    let mut validations = Vec::new();
    for (is_lasting, threads, cache_bytes_max) in [(true, 2, 64 << 20), (false, 1, 1 << 18)] {
        let datadir = tempfile::tempdir().unwrap();
        let config = ValidateConfig {
            is_lasting,
            threads,
            cache_bytes_max,
            ..config(dir.path(), datadir.path())
        };
        let validation = run(&config);
        oracle.check(tree, &validation);
        if is_lasting {
            // Nothing new, so the way there and back again has the same result.
            let again = run(&config);
            assert_eq!((again.start_height, again.height), (validation.height, validation.height));
            assert_eq!(again.invalid, validation.invalid);
            oracle.check(tree, &again);
        }
        validations.push(validation);
    }
    assert_eq!(validations[0].invalid, validations[1].invalid);
    validations.swap_remove(0)
}

#[test]
fn a_shorter_branch_is_taken_when_the_best_is_invalid() {
    for wrong in [Wrong::Script, Wrong::Amount, Wrong::Input] {
        let mut tree = Tree::default();
        let stem = tree.branch(None, 2, None);
        // Scripts of many later blocks are pending when the bad one is found.
        let best = tree.branch(Some(stem[1]), 30, Some((3, wrong)));
        let other = tree.branch(Some(stem[0]), 20, None);
        let validation = check_tree(&tree);
        assert_eq!(validation.hash, tree.nodes[other[19]].hash);
        let [invalid] = &validation.invalid[..] else { panic!("{:?}", validation.invalid) };
        assert_eq!(invalid.hash, tree.nodes[best[3]].hash);
        assert!(invalid.reason.starts_with(wrong.reason()), "{invalid}");
        assert_eq!(validation.end, End::Complete);
        assert_eq!(validation.scan.hash, tree.nodes[best[29]].hash);
    }
}

#[test]
fn without_a_better_branch_the_tip_is_below_the_invalid_block() {
    let mut tree = Tree::default();
    let best = tree.branch(None, 9, Some((6, Wrong::Script)));
    // As much work as the valid branch, but later.
    tree.branch(Some(best[1]), 4, None);
    let validation = check_tree(&tree);
    assert_eq!(validation.hash, tree.nodes[best[5]].hash);
    assert!(matches!(validation.end, End::Invalid(_)));
}

#[test]
fn of_equal_work_the_branch_that_came_first_is_taken() {
    let mut tree = Tree::default();
    let first = tree.branch(None, 3, None);
    let best = tree.branch(None, 9, Some((3, Wrong::Amount)));
    let validation = check_tree(&tree);
    assert_eq!(validation.hash, tree.nodes[first[2]].hash);
    assert_eq!(
        (validation.invalid[0].hash, &validation.end),
        (tree.nodes[best[3]].hash, &End::Complete)
    );
}

#[test]
fn back_on_the_first_branch_after_a_second_invalid_one() {
    let mut tree = Tree::default();
    let best = tree.branch(None, 12, Some((8, Wrong::Script)));
    // More work than the eight valid blocks, but invalid early on.
    let second = tree.branch(Some(best[2]), 7, Some((1, Wrong::Input)));
    let validation = check_tree(&tree);
    assert_eq!(validation.hash, tree.nodes[best[7]].hash);
    let invalid: Vec<_> = validation.invalid.iter().map(|block| block.hash).collect();
    assert_eq!(invalid, [tree.nodes[best[8]].hash, tree.nodes[second[1]].hash]);
}

#[test]
fn forks_upon_forks() {
    let mut tree = Tree::default();
    let a = tree.branch(None, 20, Some((15, Wrong::Amount)));
    let b = tree.branch(Some(a[10]), 8, Some((6, Wrong::Script)));
    let c = tree.branch(Some(b[3]), 4, Some((2, Wrong::Script)));
    tree.branch(Some(a[4]), 9, Some((0, Wrong::Input)));
    let e = tree.branch(None, 18, Some((17, Wrong::Script)));
    let validation = check_tree(&tree);
    let invalid: Vec<_> = validation.invalid.iter().map(|block| block.hash).collect();
    // The branch with a low fork point has less work than the valid one, so it is not tried.
    let expected = [a[15], b[6], c[2], e[17]].map(|at| tree.nodes[at].hash);
    assert_eq!((validation.hash, &invalid[..]), (tree.nodes[b[5]].hash, &expected[..]));
}

/// A copy of a block in a file.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Copy {
    Good,
    /// With other bytes after the block.
    Long,
    /// The transactions are not those of the header.
    Altered,
    /// The second half is missing, and the length of the record is adjusted.
    Undecodable,
    /// A witness that the header does not commit to.
    Malleated,
}

impl Copy {
    fn is_whole(self) -> bool {
        matches!(self, Self::Good | Self::Long)
    }

    fn of(self, raw: &[u8]) -> Part {
        let mut raw = raw.to_vec();
        match self {
            Self::Good => {}
            Self::Long => raw.extend([0xf9, 0xbe, 7, 7, 7]),
            // The value of the coinbase's output.
            Self::Altered => {
                let block = Block::parse(raw.clone(), Encoding::Segwit).unwrap();
                let script = block.tx(0).output(0).script_pubkey.as_ptr() as usize;
                raw[script - block.bytes().as_ptr() as usize - 9] ^= 1;
            }
            Self::Undecodable => raw.truncate(raw.len() / 2),
            Self::Malleated => {
                // Marker and flag after the version, and a witness before the lock time of the coinbase.
                let block = Block::parse(raw.clone(), Encoding::Segwit).unwrap();
                let end = block.tx(0).raw().as_ptr() as usize - block.bytes().as_ptr() as usize
                    + block.tx(0).total_size();
                raw.splice(end - 4..end - 4, [1, 1, 7]);
                raw.splice(85..85, [0, 1]);
            }
        }
        Part::Block(raw)
    }
}

const COPIES: [Copy; 5] =
    [Copy::Good, Copy::Long, Copy::Altered, Copy::Undecodable, Copy::Malleated];

#[test]
fn the_first_whole_copy_is_taken_in_every_order() {
    let mut tree = Tree::default();
    let nodes = tree.branch(None, 6, None);
    let twice = tree.nodes[nodes[2]].raw.clone();
    let whole = {
        let dir = tempfile::tempdir().unwrap();
        write(dir.path(), params().disk_magic, None, &[base_parts(), tree.parts()]);
        muhash(&run(&config(dir.path(), tempfile::tempdir().unwrap().path())))
    };
    let kinds = COPIES.len();
    // One, two and three copies, of each kind in each place.
    for number in 0..kinds + kinds.pow(2) + kinds.pow(3) {
        let (count, code) = match number {
            _ if number < kinds => (1, number),
            _ if number < kinds + kinds.pow(2) => (2, number - kinds),
            _ => (3, number - kinds - kinds.pow(2)),
        };
        let copies: Vec<Copy> =
            (0..count).map(|place| COPIES[code / kinds.pow(place) % kinds]).collect();
        let mut parts = tree.parts();
        parts.splice(2..3, copies.iter().map(|copy| copy.of(&twice)));
        let dir = tempfile::tempdir().unwrap();
        let places = write(dir.path(), params().disk_magic, None, &[base_parts(), parts]);
        let datadir = tempfile::tempdir().unwrap();
        let mut config = config(dir.path(), datadir.path());
        config.is_lasting = false;
        let validation = run(&config);
        assert_eq!(validation.scan.duplicates, count as usize - 1);
        if copies.iter().any(|copy| copy.is_whole()) {
            assert_eq!((&validation.end, validation.height), (&End::Complete, BASE + 6));
            assert_eq!(muhash(&validation), whole, "{copies:?}");
            continue;
        }
        let End::Invalid(invalid) = &validation.end else { panic!("{copies:?} {validation:?}") };
        assert_eq!((invalid.height, invalid.is_damaged), (BASE + 3, true));
        let reason = match copies[0] {
            Copy::Undecodable => "unreadable-block",
            Copy::Malleated => "unexpected-witness",
            _ => "bad-txnmrklroot",
        };
        assert_eq!(invalid.reason, reason, "{copies:?}");
        assert_eq!(invalid.place.offset as usize, places[BASE as usize + 2].1);
        let others = format!("{} other copies are damaged too", count - 1);
        assert_eq!(invalid.debug.contains(&others), count > 1, "{invalid}");
    }
}

#[test]
fn a_damaged_block_leads_to_another_branch_and_a_repaired_one_back() {
    let mut tree = Tree::default();
    let best = tree.branch(None, 8, None);
    let other = tree.branch(Some(best[0]), 5, None);
    let mut parts = tree.parts();
    parts[best[3]] = Copy::Altered.of(&tree.nodes[best[3]].raw);
    let dir = tempfile::tempdir().unwrap();
    let datadir = tempfile::tempdir().unwrap();
    write(dir.path(), params().disk_magic, None, &[base_parts(), parts]);
    let validation = run(&config(dir.path(), datadir.path()));
    assert_eq!(validation.hash, tree.nodes[other[4]].hash);
    assert!(validation.invalid[0].is_damaged);
    // A damaged copy is no verdict: with a good one the same folder continues, over the fork.
    write(dir.path(), params().disk_magic, None, &[base_parts(), tree.parts()]);
    let validation = run(&config(dir.path(), datadir.path()));
    assert_eq!(validation.start_height, BASE + 6);
    assert_eq!((validation.hash, &validation.end), (tree.nodes[best[7]].hash, &End::Complete));
    let oracle = Oracle::new();
    oracle.feed(&tree, 0..tree.nodes.len());
    oracle.check(&tree, &validation);
}

#[test]
fn a_stale_tip_of_an_earlier_run_is_left_for_a_better_branch() {
    let mut tree = Tree::default();
    let first = tree.branch(None, 3, None);
    let dir = tempfile::tempdir().unwrap();
    let datadir = tempfile::tempdir().unwrap();
    write(dir.path(), params().disk_magic, None, &[base_parts(), tree.parts()]);
    assert_eq!(run(&config(dir.path(), datadir.path())).hash, tree.nodes[first[2]].hash);
    let second = tree.branch(Some(first[0]), 3, None);
    write(dir.path(), params().disk_magic, None, &[base_parts(), tree.parts()]);
    let validation = run(&config(dir.path(), datadir.path()));
    assert_eq!(validation.hash, tree.nodes[second[2]].hash);
    let oracle = Oracle::new();
    oracle.feed(&tree, 0..tree.nodes.len());
    oracle.check(&tree, &validation);

    // Without undo data there is no way back, and nothing is changed.
    let undo = datadir.path().join("regtest/validate/undo.log");
    assert!(std::fs::metadata(&undo).unwrap().len() > 0);
    std::fs::write(&undo, b"").unwrap();
    tree.branch(Some(first[1]), 3, None);
    write(dir.path(), params().disk_magic, None, &[base_parts(), tree.parts()]);
    let config = config(dir.path(), datadir.path());
    let watch = Watch::default();
    let error = validate(&config, &watch.stop, &watch).unwrap_err().to_string();
    assert!(error.contains("undo data of height 114 are not there"), "{error}");
}

#[test]
fn scripts_assumed_valid_are_those_below_the_block_on_each_branch() {
    let mut tree = Tree::default();
    let stem = tree.branch(None, 2, None);
    let best = tree.branch(Some(stem[1]), 6, Some((3, Wrong::Amount)));
    tree.branch(Some(stem[1]), 4, None);
    let dir = tempfile::tempdir().unwrap();
    let datadir = tempfile::tempdir().unwrap();
    write(dir.path(), params().disk_magic, None, &[base_parts(), tree.parts()]);
    let mut config = config(dir.path(), datadir.path());
    config.assume_valid = Some(tree.nodes[best[1]].hash);
    let validation = run(&config);
    assert_eq!(validation.height, BASE + 6);
    assert_eq!(validation.totals.assumed_blocks, u64::from(BASE + 2));
}

#[test]
fn interruptions_in_the_middle_of_a_fallback_change_nothing() {
    let mut tree = Tree::default();
    let best = tree.branch(None, 20, Some((15, Wrong::Script)));
    tree.branch(Some(best[3]), 14, None);
    let dir = tempfile::tempdir().unwrap();
    write(dir.path(), params().disk_magic, None, &[base_parts(), tree.parts()]);
    let oracle = Oracle::new();
    oracle.feed(&tree, 0..tree.nodes.len());
    let datadir = tempfile::tempdir().unwrap();
    let config = config(dir.path(), datadir.path());
    for height in [BASE / 2, BASE + 2, BASE + 8, BASE + 12, BASE + 15, BASE + 17] {
        let watch = Watch { stop_at: Some(height), ..Watch::default() };
        let validation = validate(&config, &watch.stop, &watch).unwrap();
        assert_eq!(validation.totals.blocks, u64::from(validation.height));
        assert!(!watch.stop.load(Ordering::Relaxed) || validation.height > 0);
    }
    oracle.check(&tree, &run(&config));
}

#[test]
fn reports_a_tip_below_the_minimum_chain_work() {
    let dir = tempfile::tempdir().unwrap();
    write(dir.path(), params().disk_magic, None, &[base_parts()]);
    let datadir = tempfile::tempdir().unwrap();
    // Genesis and every block count two.
    for (minimum, is_below) in [(2 * (BASE + 1), false), (2 * (BASE + 1) + 1, true)] {
        let mut config = config(dir.path(), datadir.path());
        let mut params = (*config.params).clone();
        params.minimum_chain_work = u64::from(minimum).into();
        config.params = std::sync::Arc::new(params);
        assert_eq!(run(&config).is_below_minimum_chain_work(), is_below);
    }
}

/// Parameters of a random block.
#[derive(Clone, Debug)]
struct Plan {
    /// Index of its parent among earlier blocks; 0 is the base.
    parent: prop::sample::Index,
    wrong: Option<Wrong>,
    copies: Vec<usize>,
}

fn plan() -> impl Strategy<Value = Plan> {
    let wrong = prop_oneof![
        4 => Just(None),
        1 => prop_oneof![Just(Wrong::Script), Just(Wrong::Amount), Just(Wrong::Input)].prop_map(Some),
    ];
    let copies = prop_oneof![
        5 => Just(vec![0]),
        2 => prop::collection::vec(0..COPIES.len(), 1..4),
    ];
    (any::<prop::sample::Index>(), wrong, copies).prop_map(|(parent, wrong, copies)| Plan {
        parent,
        wrong,
        copies,
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn random_trees_end_as_in_an_engine(
        plans in prop::collection::vec(plan(), 1..16),
        seed in any::<u64>(),
        stop in 1u32..130,
        obfuscated in any::<bool>(),
    ) {
        let mut tree = Tree::default();
        for plan in &plans {
            // High rather than low, for branches of some length.
            let parent = plan.parent.index(tree.nodes.len() + 1).max(plan.parent.index(tree.nodes.len() / 2 + 1));
            let node = tree.add(parent.checked_sub(1), plan.wrong);
            tree.nodes[node].is_there = plan.copies.iter().any(|copy| COPIES[*copy].is_whole());
        }
        let mut random = Random(seed);
        let mut order: Vec<usize> = (0..plans.len()).collect();
        random.shuffle(&mut order);
        let key = obfuscated.then_some(super::KEY);
        // Copies are adjacent, so that undamaged blocks are in header order.
        let mut parts = base_parts();
        for index in &order {
            for copy in &plans[*index].copies {
                parts.push(COPIES[*copy].of(&tree.nodes[*index].raw));
                if random.below(4) == 0 {
                    parts.push(Part::Bytes(vec![random.next() as u8; random.below(40)]));
                }
            }
        }
        let dir = tempfile::tempdir().unwrap();
        let cut = parts.len() - random.below(plans.len());
        let later = parts.split_off(cut);
        write(dir.path(), params().disk_magic, key, &[parts, later]);
        let oracle = Oracle::new();
        oracle.feed(&tree, order.into_iter().filter(|index| tree.nodes[*index].is_there));

        let datadir = tempfile::tempdir().unwrap();
        let mut config = config(dir.path(), datadir.path());
        config.is_lasting = seed % 2 == 0;
        config.threads = 1 + (seed % 3) as usize;
        oracle.check(&tree, &run(&config));
        // Interrupted and continued.
        let datadir = tempfile::tempdir().unwrap();
        config.datadir = datadir.path().to_path_buf();
        config.is_lasting = true;
        let watch = Watch { stop_at: Some(stop), ..Watch::default() };
        validate(&config, &watch.stop, &watch).unwrap();
        oracle.check(&tree, &run(&config));
    }
}
