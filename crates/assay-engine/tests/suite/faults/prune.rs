//! Random blocks, forks, pruning and restarts against a model: all expected blocks exist.

use std::collections::HashMap;
use std::sync::Arc;

use assay_consensus::params::ChainParams;
use assay_engine::{Config, Engine, Pruning, SubmitOutcome};
use assay_store::io::{Io, Loss};
use assay_wire::{Block, BlockHash, Encoding};
use proptest::prelude::*;

use super::chain::plain_block;
use super::disk::{DIR, Disk, KEPT};

/// An event of the archive.
#[derive(Clone, Debug)]
enum Event {
    /// Extends the tip by this number of blocks.
    Extend(u8),
    /// A fork: the depth below the tip, and the number of blocks.
    Fork(u8, u8),
    /// Prunes up to this depth below the tip.
    Prune(u8),
    /// Submits a pruned block again, chosen by this number.
    Again(u8),
    Restart,
    /// A kill and a restart.
    Kill,
    /// A power cut after a flush.
    PowerCut,
}

fn event() -> impl Strategy<Value = Event> {
    prop_oneof![
        4 => (1..12_u8).prop_map(Event::Extend),
        2 => (1..KEPT as u8, 1..8_u8).prop_map(|(depth, count)| Event::Fork(depth, count)),
        3 => (0..20_u8).prop_map(Event::Prune),
        1 => any::<u8>().prop_map(Event::Again),
        1 => Just(Event::Restart),
        1 => Just(Event::Kill),
        1 => Just(Event::PowerCut),
    ]
}

/// One block of the model.
struct Known {
    raw: Vec<u8>,
    height: u32,
    /// True if it may be missing: its height was pruned, and it was not submitted again.
    may_be_missing: bool,
    /// True if it was submitted again, so that it has no undo data.
    came_again: bool,
}

struct Run {
    params: Arc<ChainParams>,
    disk: Disk,
    engine: Engine,
    blocks: HashMap<BlockHash, Known>,
    /// The active branch, genesis first.
    active: Vec<BlockHash>,
    /// Makes every block different.
    next_branch: u8,
}

fn open(disk: &Disk, params: &Arc<ChainParams>) -> Engine {
    let mut config = Config::new(DIR, Arc::clone(params));
    config.threads = 1;
    config.block_file_bytes_max = 1200;
    config.prune = Some(Pruning::Manual);
    (config.prune_after_height, config.prune_keeps) = (0, KEPT);
    let io: Arc<dyn Io> = Arc::new(disk.io.clone());
    Engine::open_with(config, &io, Box::new(disk.tier.clone())).expect("the store opens")
}

impl Run {
    fn new() -> Self {
        let params = Arc::new(ChainParams::by_name("regtest").expect("it is known"));
        let disk = Disk::new();
        let engine = open(&disk, &params);
        let active = vec![params.genesis_hash];
        Self { params, disk, engine, blocks: HashMap::new(), active, next_branch: 0 }
    }

    fn tip_height(&self) -> u32 {
        self.active.len() as u32 - 1
    }

    /// Submits `count` blocks on top of the active block at `height`; the branch becomes active once it is longer.
    fn grow(&mut self, height: u32, count: u8) {
        self.next_branch = self.next_branch.wrapping_add(1);
        let mut branch = self.active[..=height as usize].to_vec();
        for _ in 0..count {
            let parent = branch[branch.len() - 1];
            let height = branch.len() as u32;
            let raw = plain_block(parent, height, self.next_branch);
            let hash = Block::parse(raw.clone(), Encoding::Segwit).expect("it parses").hash();
            branch.push(hash);
            let is_best = branch.len() > self.active.len();
            match self.engine.blocks().submit(raw.clone()) {
                SubmitOutcome::Accepted if is_best => self.active.clone_from(&branch),
                SubmitOutcome::Inconclusive if !is_best => {}
                other => panic!("block {hash} at height {height}: {other:?}"),
            }
            let known = Known { raw, height, may_be_missing: false, came_again: false };
            self.blocks.insert(hash, known);
        }
    }

    fn prune(&mut self, height: u32) {
        self.engine.chain().prune_to(height).expect("there is room");
        let limit = height.min(self.tip_height().saturating_sub(KEPT));
        for known in self.blocks.values_mut().filter(|known| known.height <= limit) {
            known.may_be_missing = true;
        }
    }

    /// Submits a pruned block of the active branch.
    fn again(&mut self, choice: u8) {
        let is_missing = |hash: &&BlockHash| {
            self.engine.chain().entry(hash).is_some_and(|entry| entry.is_pruned)
        };
        let missing: Vec<BlockHash> = self.active.iter().filter(is_missing).copied().collect();
        let Some(hash) = missing.get(usize::from(choice) % missing.len().max(1)) else { return };
        let known = self.blocks.get_mut(hash).expect("the model has all blocks");
        let outcome = self.engine.blocks().submit(known.raw.clone());
        assert!(matches!(outcome, SubmitOutcome::Inconclusive), "{outcome:?}");
        (known.may_be_missing, known.came_again) = (false, true);
    }

    fn reopen(&mut self, loss: Loss) {
        self.disk = self.disk.after(loss);
        self.engine = open(&self.disk, &self.params);
    }

    fn perform(&mut self, event: &Event) {
        let tip = self.tip_height();
        match *event {
            Event::Extend(count) => self.grow(tip, count),
            Event::Fork(depth, count) => self.grow(tip.saturating_sub(depth.into()), count),
            Event::Prune(depth) => self.prune(tip.saturating_sub(depth.into())),
            Event::Again(choice) => self.again(choice),
            Event::Restart => {
                self.engine.shutdown().expect("there is room");
                self.reopen(Loss::Nothing);
            }
            Event::Kill => self.reopen(Loss::Nothing),
            Event::PowerCut => {
                self.engine.flush().expect("there is room");
                self.reopen(Loss::Unsynced);
            }
        }
    }

    fn check(&self) {
        let engine = &self.engine;
        assert_eq!(engine.chain().tip().hash, self.active[self.active.len() - 1]);
        for (hash, known) in &self.blocks {
            let entry = engine.chain().entry(hash).expect("headers are never removed");
            let raw = engine.blocks().read(hash).expect("it can be read");
            assert_eq!(entry.is_pruned, raw.is_none(), "{hash}");
            assert!(raw.is_some() || known.may_be_missing, "block {hash} at {}", known.height);
            assert!(raw.is_none_or(|raw| raw == known.raw), "{hash}");
            let has_undo = engine.blocks().read_spent(hash).expect("it can be read").is_some();
            let wants_undo = entry.has_data && entry.in_active_chain && !known.came_again;
            assert!(has_undo || !wants_undo, "undo data of {hash} at {}", known.height);
        }
        let is_whole = |hash: &BlockHash| matches!(engine.blocks().read_spent(hash), Ok(Some(_)));
        let lowest = self.active[1..].iter().rposition(|hash| !is_whole(hash));
        assert_eq!(engine.chain().prune_height(), lowest.map(|index| index as u32 + 1));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn the_archive_matches_the_model(events in prop::collection::vec(event(), 1..24)) {
        let mut run = Run::new();
        run.grow(0, 30);
        for event in &events {
            run.perform(event);
            run.check();
        }
        // The chain can always continue.
        run.grow(run.tip_height(), 3);
        run.prune(run.tip_height());
        run.check();
    }
}
