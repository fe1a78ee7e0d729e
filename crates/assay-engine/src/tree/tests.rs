//! Compares the tree with a model that recomputes everything.

use assay_consensus::chain::Ancestors;
use proptest::prelude::*;

use super::*;

/// Regression-test difficulty, and twice the work.
const BITS: [u32; 2] = [0x207f_ffff, 0x203f_ffff];

fn header(prev_block: BlockHash, nonce: u32, bits: u32) -> Header {
    Header { version: 1, prev_block, merkle_root: [0; 32], time: 1000 + nonce, bits, nonce }
}

fn new_tree() -> BlockTree {
    BlockTree::new(header(BlockHash::ZERO, 0, BITS[0]))
}

fn add(tree: &mut BlockTree, parent: NodeId, nonce: u32) -> NodeId {
    tree.insert(parent, header(tree.get(parent).hash, nonce, BITS[0]))
}

fn pos() -> BlockPos {
    BlockPos { file: 0, offset: 8, size: 1, crc: 0 }
}

fn undo() -> UndoPos {
    UndoPos { file: 0, offset: 8, size: 1 }
}

/// Moves the active branch as the engine does, with every block valid.
fn activate(tree: &mut BlockTree) {
    let best = tree.best_candidate();
    let fork = tree.fork_with_active(best);
    while tree.tip() != fork {
        tree.shrink_active();
    }
    for id in tree.path(fork, best).into_iter().rev() {
        tree.set_valid(id, undo(), false);
        tree.extend_active(id);
    }
}

#[test]
fn of_equal_branches_the_first_with_data_wins_and_more_work_beats_it() {
    let mut tree = new_tree();
    let genesis = tree.tip();
    let a = add(&mut tree, genesis, 1);
    let b = add(&mut tree, genesis, 2);
    tree.set_block(b, pos(), 1);
    assert_eq!(tree.best_candidate(), b, "a has no data yet");
    tree.set_block(a, pos(), 1);
    assert_eq!(tree.best_candidate(), b);
    activate(&mut tree);
    let a2 = add(&mut tree, a, 3);
    assert_eq!((tree.best_candidate(), tree.best_header()), (b, a2));
    tree.set_block(a2, pos(), 1);
    assert_eq!(tree.best_candidate(), a2);
    assert_eq!(tree.path(genesis, a2), vec![a2, a]);
    assert_eq!(tree.ancestors(a2).header_at(1).hash, tree.get(a).hash);
    assert_eq!(tree.ancestors(a2).header_at(0).hash, tree.get(genesis).hash);
    assert_eq!(tree.set_failed(a), vec![a, a2]);
    assert!(tree.get(a2).is_failed());
    assert_eq!((tree.best_candidate(), tree.best_header()), (b, b));
    assert_eq!(tree.clear_failed(a2), vec![a, a2]);
    tree.set_active(a2);
    assert!(tree.is_active(a) && !tree.is_active(b) && tree.tip() == a2);
}

#[test]
fn a_later_snapshot_does_not_confirm_blocks_of_a_rejected_one() {
    let mut tree = new_tree();
    let genesis = tree.tip();
    let [checked, assumed, later] = [1, 2, 3].map(|nonce| add(&mut tree, genesis, nonce));
    tree.set_valid(checked, undo(), false);
    tree.set_valid(assumed, undo(), true);
    let tree = &mut restart(&tree);
    assert_eq!(tree.drop_assumed(), [assumed]);
    assert!(!tree.get(assumed).was_connected() && tree.get(checked).is_valid());
    tree.set_valid(later, undo(), true);
    assert_eq!(tree.confirm_assumed(), [later]);
    assert!(tree.get(later).is_valid() && !tree.get(assumed).is_valid());
}

#[test]
fn data_may_come_in_any_order() {
    let mut tree = new_tree();
    let genesis = tree.tip();
    let a = add(&mut tree, genesis, 1);
    let b = add(&mut tree, a, 2);
    let c = add(&mut tree, b, 3);
    let b2 = add(&mut tree, a, 4);
    let c2 = add(&mut tree, b2, 5);
    for id in [c2, b2, c, b] {
        assert_eq!(tree.set_block(id, pos(), 2), vec![id], "nothing connects to the genesis block");
        assert_eq!(tree.best_candidate(), genesis);
    }
    assert_eq!(tree.set_block(a, pos(), 2), vec![a, b2, b, c2, c], "by height, then by arrival");
    assert_eq!(tree.best_candidate(), c2);
    assert_eq!(tree.get(c).chain_tx_count, 7);
}

#[test]
fn a_preferred_block_wins_until_another_is_preferred_or_the_chain_grows() {
    let mut tree = new_tree();
    let genesis = tree.tip();
    let ids: Vec<_> = (1..=3).map(|nonce| add(&mut tree, genesis, nonce)).collect();
    for id in &ids {
        tree.set_block(*id, pos(), 1);
    }
    activate(&mut tree);
    assert_eq!(tree.tip(), ids[0]);
    for want in [ids[2], ids[1], ids[0], ids[2]] {
        tree.prefer(want);
        activate(&mut tree);
        assert_eq!(tree.tip(), want);
    }
    let next = add(&mut tree, ids[1], 9);
    tree.set_block(next, pos(), 1);
    activate(&mut tree);
    tree.prefer(ids[0]);
    activate(&mut tree);
    assert_eq!(tree.tip(), next, "less work is never preferred");
}

#[test]
fn the_tip_at_the_last_flush_stays_the_tip_after_a_restart() {
    let mut tree = new_tree();
    let genesis = tree.tip();
    let a = add(&mut tree, genesis, 1);
    let b = add(&mut tree, genesis, 2);
    tree.set_block(a, pos(), 1);
    tree.set_block(b, pos(), 1);
    let records: Vec<_> = [a, b].map(|id| tree.get(id).to_record()).into();
    for (marker, expected) in [(a, a), (b, b)] {
        let mut again = new_tree();
        assert!(records.iter().all(|record| again.restore(record)));
        assert_eq!(again.best_candidate(), a);
        again.set_active(marker);
        assert_eq!(again.best_candidate(), expected);
    }
}

#[test]
fn records_come_back() {
    let mut tree = new_tree();
    let genesis = tree.tip();
    let a = add(&mut tree, genesis, 1);
    tree.set_block(a, pos(), 7);
    let record = tree.get(a).to_record();
    let mut again = new_tree();
    assert!(again.restore(&record));
    let found = again.find(&record.header.hash()).unwrap();
    assert_eq!(again.get(found).chain_tx_count, 8);
    assert_eq!(again.get(found).block, Some(pos()));
    // The mark of a block covers its descendants, even if theirs were not written.
    tree.set_failed(a);
    let mut again = new_tree();
    assert!(again.restore(&tree.get(a).to_record()));
    let child = again.find(&record.header.hash()).map(|a| add(&mut again, a, 5)).unwrap();
    assert!(again.get(child).is_failed());
    let orphan = BlockRecord { header: header(BlockHash([9; 32]), 5, BITS[0]), ..record };
    assert!(!again.restore(&orphan));
}

#[test]
fn walks_to_any_height_take_few_steps() {
    let mut tree = new_tree();
    let mut at = tree.tip();
    let mut all = vec![at];
    for nonce in 1..3000 {
        at = add(&mut tree, at, nonce);
        all.push(at);
    }
    for height in [0, 1, 2, 3, 1000, 1499, 2047, 2048, 2998, 2999] {
        assert_eq!(tree.ancestor_at(at, height), all[height as usize]);
        let steps = std::cell::Cell::new(0);
        tree.descend(at, |id| {
            steps.set(steps.get() + 1);
            tree.get(id).height <= height
        });
        assert!(steps.get() <= 80, "{} steps to height {height}", steps.get());
    }
    assert_eq!(tree.fork_with_active(at), NodeId::GENESIS);
}

/// An event of a tree; numbers select among the existing blocks.
#[derive(Clone, Debug)]
enum Event {
    Header { parent: usize, bits: usize },
    Data(usize),
    Fail(usize),
    Clear(usize),
    Prefer(usize),
    Activate,
    Restart,
}

fn event() -> impl Strategy<Value = Event> {
    let any = 0usize..1000;
    prop_oneof![
        6 => (any.clone(), 0..BITS.len()).prop_map(|(parent, bits)| Event::Header { parent, bits }),
        6 => any.clone().prop_map(Event::Data),
        1 => any.clone().prop_map(Event::Fail),
        1 => any.clone().prop_map(Event::Clear),
        1 => any.prop_map(Event::Prefer),
        3 => Just(Event::Activate),
        1 => Just(Event::Restart),
    ]
}

/// The model's data of one block.
#[derive(Default)]
struct Facts {
    parent: usize,
    has_data: bool,
    is_failed: bool,
}

/// The slow oracle: walks from every block to the genesis block.
#[derive(Default)]
struct Model(Vec<Facts>);

impl Model {
    fn branch(&self, block: usize) -> Vec<usize> {
        let mut out = vec![block];
        while out[out.len() - 1] != 0 {
            out.push(self.0[out[out.len() - 1]].parent);
        }
        out
    }

    fn fail(&mut self, block: usize) {
        for other in 0..self.0.len() {
            self.0[other].is_failed |= self.branch(other).contains(&block);
        }
    }

    fn clear(&mut self, block: usize) {
        let below = self.branch(block);
        for other in 0..self.0.len() {
            let is_related = below.contains(&other) || self.branch(other).contains(&block);
            self.0[other].is_failed &= !is_related;
        }
    }

    fn is_linked(&self, block: usize) -> bool {
        self.branch(block).iter().all(|at| self.0[*at].has_data)
    }

    fn check(&self, tree: &BlockTree) {
        let ids: Vec<NodeId> = tree.ids().collect();
        for (block, id) in ids.iter().enumerate() {
            let node = tree.get(*id);
            assert_eq!(node.is_failed(), self.0[block].is_failed, "block {block}");
            assert_eq!(node.is_linked(), self.is_linked(block), "block {block}");
            let branch = self.branch(block);
            for (from_top, below) in branch.iter().enumerate() {
                let height = node.height - from_top as u32;
                assert_eq!(tree.ancestor_at(*id, height), ids[*below]);
            }
            let fork = branch.iter().find(|at| tree.is_active(ids[**at]));
            assert_eq!(tree.fork_with_active(*id), ids[*fork.unwrap()]);
        }
        let sound = |block: &usize| !self.0[*block].is_failed;
        let linked = (0..ids.len()).filter(sound).filter(|block| self.is_linked(*block));
        let best = linked.max_by_key(|block| tree.score(ids[*block])).unwrap();
        assert_eq!(tree.best_candidate(), ids[best]);
        let most_work =
            (0..ids.len()).filter(sound).map(|block| tree.get(ids[block]).chain_work).max();
        assert_eq!(Some(tree.get(tree.best_header()).chain_work), most_work);
        let is_leaf = |id: &NodeId| {
            !tree.is_active(*id) && ids.iter().all(|other| tree.get(*other).parent != Some(*id))
        };
        let mut leaves: Vec<_> = ids.iter().copied().filter(is_leaf).chain([tree.tip()]).collect();
        leaves.sort_by_key(|id| (Reverse(tree.get(*id).height), *id));
        assert_eq!(tree.leaves(), leaves);
    }
}

/// The tree that the next process builds from the records.
fn restart(tree: &BlockTree) -> BlockTree {
    let mut again = new_tree();
    for id in tree.ids().skip(1) {
        assert!(again.restore(&tree.get(id).to_record()));
    }
    again.set_active(tree.tip());
    again
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn chain_selection_equals_a_scan_of_everything(events in prop::collection::vec(event(), 1..60)) {
        let mut tree = new_tree();
        let mut model = Model(vec![Facts { has_data: true, ..Facts::default() }]);
        for (nonce, event) in events.into_iter().enumerate() {
            let count = model.0.len();
            let id_of = |number: usize| NodeId((number % count) as u32);
            match event {
                Event::Header { parent, bits } => {
                    let parent = parent % count;
                    // As in the engine: nothing is added to a failed block.
                    if !model.0[parent].is_failed {
                        let hash = tree.get(id_of(parent)).hash;
                        tree.insert(id_of(parent), header(hash, nonce as u32 + 1, BITS[bits]));
                        model.0.push(Facts { parent, ..Facts::default() });
                    }
                }
                Event::Data(number) if !tree.get(id_of(number)).has_data() => {
                    tree.set_block(id_of(number), pos(), 1);
                    model.0[number % count].has_data = true;
                }
                Event::Fail(number) if number % count != 0 => {
                    tree.set_failed(id_of(number));
                    model.fail(number % count);
                }
                Event::Clear(number) => {
                    tree.clear_failed(id_of(number));
                    model.clear(number % count);
                }
                Event::Prefer(number) => tree.prefer(id_of(number)),
                Event::Activate => activate(&mut tree),
                Event::Restart => tree = restart(&tree),
                Event::Data(_) | Event::Fail(_) => {}
            }
            model.check(&tree);
        }
    }
}
