//! Expected state of the engine when no thread is running.

use std::collections::HashSet;
use std::sync::{Mutex, MutexGuard, PoisonError};

use assay_engine::Engine;

use crate::universe::{BASE, Universe};

/// Difference between engine and model.
pub(crate) type Difference = String;

/// Operations that affect the expected state. Threads record the engine's results.
#[derive(Default)]
pub(crate) struct Model {
    known: Mutex<Known>,
}

#[derive(Clone, Default)]
pub(crate) struct Known {
    pub(crate) data: HashSet<usize>,
    /// Blocks whose headers are known.
    pub(crate) headers: HashSet<usize>,
    pub(crate) vetoes: HashSet<usize>,
    /// True if any is invalidated, or was since the last check: its descendants may be rejected.
    pub(crate) had_vetoes: bool,
    /// True if the coins of a snapshot are loaded.
    pub(crate) is_loaded: bool,
    /// The tip at the last check, unless a later operation allows another one of equal work.
    pub(crate) tip: Option<usize>,
    /// Greatest height up to which blocks may be pruned.
    pub(crate) pruned_to: u32,
}

impl Known {
    fn is_vetoed(&self, universe: &Universe, index: usize) -> bool {
        !self.vetoes.is_empty() && universe.branch(index).any(|at| self.vetoes.contains(&at))
    }

    fn is_valid(&self, universe: &Universe, index: usize) -> bool {
        universe.blocks[index].is_sound && !self.is_vetoed(universe, index)
    }

    /// For each block, true if it and all below it are archived.
    fn linked(&self, universe: &Universe) -> Vec<bool> {
        let mut linked = vec![true];
        for (index, block) in universe.blocks.iter().enumerate().skip(1) {
            let is_base = self.is_loaded && index == BASE as usize;
            linked.push(is_base || self.data.contains(&index) && linked[block.parent]);
        }
        linked
    }
}

impl Model {
    pub(crate) fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lets the engine finish its work, and compares it with the model.
    ///
    /// # Errors
    /// The first difference.
    pub(crate) fn check(&self, engine: &Engine, universe: &Universe) -> Result<(), Difference> {
        settle(engine)?;
        let mut known = self.known();
        known.had_vetoes = !known.vetoes.is_empty();
        if let Some(failure) = engine.failure() {
            return Err(format!("the engine has stopped: {failure}"));
        }
        let tip = check_tip(engine, universe, &known)?;
        known.tip = Some(tip);
        check_marks(engine, universe, &known, tip)?;
        check_history(engine, universe, &known)?;
        let stats = engine.chain().utxo_stats(true).map_err(|error| error.to_string())?;
        let block = &universe.blocks[tip];
        if (stats.hash, stats.muhash) != (block.hash, Some(block.muhash())) {
            return Err(format!("the coins at height {} are others", block.height));
        }
        Ok(())
    }
}

/// Connects all pending blocks of both chains.
fn settle(engine: &Engine) -> Result<(), Difference> {
    loop {
        let report =
            engine.blocks().connect(|| false).map_err(|error| format!("connect: {error}"))?;
        let history = |error| format!("history: {error}");
        let mut has_moved = !report.is_done;
        while engine.chain().advance_historical().map_err(history)? {
            has_moved = true;
        }
        if !has_moved {
            return Ok(());
        }
    }
}

/// The tip is one of the best valid linked blocks.
fn check_tip(engine: &Engine, universe: &Universe, known: &Known) -> Result<usize, Difference> {
    let tip = engine.chain().tip();
    let linked = known.linked(universe);
    let may_be = |index: &usize| linked[*index] && known.is_valid(universe, *index);
    let best = (0..universe.blocks.len()).filter(may_be);
    let best = best.max_by_key(|index| universe.blocks[*index].height).unwrap_or(0);
    let name = |index: usize| {
        let block = &universe.blocks[index];
        format!("block {index} at {} ({:?})", block.height, block.fault)
    };
    let index = universe.find(&tip.hash).ok_or_else(|| format!("an unknown tip: {}", tip.hash))?;
    if !may_be(&index) || tip.height != universe.blocks[best].height {
        return Err(format!("the tip is {}, should be {}", name(index), name(best)));
    }
    let first = known.tip.filter(|first| universe.blocks[*first].height == tip.height);
    if let Some(first) = first.filter(|first| *first != index && may_be(first)) {
        return Err(format!("the tip is {}, and {} came first", name(index), name(first)));
    }
    Ok(index)
}

/// All marks are correct, and none is missing.
fn check_marks(
    engine: &Engine,
    universe: &Universe,
    known: &Known,
    tip: usize,
) -> Result<(), Difference> {
    let tip_height = universe.blocks[tip].height;
    let is_validated = engine.chain().historical().is_none();
    let active: HashSet<usize> = universe.branch(tip).collect();
    for (index, block) in universe.blocks.iter().enumerate().skip(1) {
        let differ = |text: &str| {
            let Universe { blocks, .. } = universe;
            let (height, fault) = (block.height, block.fault);
            let above = block.parent;
            let parent = blocks[above].fault;
            Err(format!("block {index} at {height} ({fault:?}, on {above}: {parent:?}) {text}"))
        };
        let Some(entry) = engine.chain().entry(&block.hash) else {
            if known.headers.contains(&index) {
                return differ("is forgotten");
            }
            continue;
        };
        let status = engine.mining().block_status(&block.hash).unwrap_or("unknown");
        let (is_sound, is_valid) = (block.is_sound, known.is_valid(universe, index));
        if entry.in_active_chain != active.contains(&index) {
            return differ("is on the other side of a fork");
        }
        let may_be_gone = block.height <= known.pruned_to;
        if is_sound && entry.has_data != known.data.contains(&index) && !may_be_gone {
            return differ(if entry.has_data { "has data" } else { "has no data" });
        }
        if status == "duplicate-invalid" && is_valid {
            return differ("is valid, and marked invalid");
        }
        if status == "duplicate" && !is_sound {
            return differ("is invalid, and marked valid");
        }
        let was_tried = active.contains(&index) && (is_validated || block.height > BASE);
        if status != "duplicate" && was_tried {
            return differ("is active, and not marked valid");
        }
        // It would be the tip if it were not marked.
        let must_fail = entry.has_data && entry.chain_txs > 0 && block.height > tip_height;
        if status != "duplicate-invalid" && (must_fail || known.is_vetoed(universe, index)) {
            return differ("is invalid, and not marked so");
        }
    }
    Ok(())
}

/// All available blocks below a snapshot are validated.
fn check_history(engine: &Engine, universe: &Universe, known: &Known) -> Result<(), Difference> {
    let Some(history) = engine.chain().historical() else { return Ok(()) };
    if !known.is_loaded {
        return Err("there is a historical chain without a snapshot".to_owned());
    }
    let mut below: Vec<usize> = universe.branch(BASE as usize).collect();
    below.reverse();
    let there = below.iter().take_while(|index| known.data.contains(index)).count() as u32;
    let at = universe.find(&history.tip.hash).ok_or("the historical tip is unknown")?;
    let is_on_way = universe.is_on_branch(at, BASE as usize);
    if there == BASE || is_on_way && there != history.tip.height {
        let height = history.tip.height;
        return Err(format!("blocks up to {there} are there, and those up to {height} validated"));
    }
    Ok(())
}

/// Blocks below the tip that pruning keeps.
pub(crate) const PRUNE_KEEPS: u32 = 24;
