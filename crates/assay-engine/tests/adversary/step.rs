//! Random operations of the threads of a step, and their allowed results.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use assay_engine::{
    BlockFault, BlockOffer, ChainCheck, Checked, ControlError, Engine, LoadError, Selection,
    SnapshotReader, SubmitOutcome, Taken, TemplateError, TemplateOptions, TrialChecks, TrialError,
};
use assay_testkit::random::Random;
use assay_wire::{Encoding, Header};

use crate::model::{Difference, Model, PRUNE_KEEPS};
use crate::snapshot::{KEYS, Snapshot};
use crate::universe::{BASE, Block, Fault, Universe};

/// State shared by the threads of a step.
pub(crate) struct Step<'a> {
    pub(crate) engine: &'a Engine,
    pub(crate) universe: &'a Universe,
    pub(crate) model: &'a Model,
    /// A snapshot that may be loaded.
    pub(crate) snapshot: Option<&'a Snapshot>,
    pub(crate) may_prune: bool,
    pub(crate) weights: [usize; OPS.len()],
    /// True if no other thread runs.
    pub(crate) is_alone: bool,
    /// Blocks not archived at the start of the step, lowest first.
    pub(crate) open: Vec<usize>,
    /// The engine is shutting down: errors with that reason are allowed.
    pub(crate) is_closing: AtomicBool,
    /// Held by operations whose order matters to the model.
    pub(crate) control: Mutex<()>,
    pub(crate) ops: AtomicU64,
    pub(crate) log: Mutex<Vec<String>>,
    pub(crate) difference: Mutex<Option<Difference>>,
}

/// One operation of a thread.
pub(crate) type Op = fn(&Step<'_>, &mut Random) -> Result<(), Difference>;

/// Weight of each operation; every run has its own, since some faults need few operations repeatedly.
pub(crate) fn weights(rng: &mut Random) -> [usize; OPS.len()] {
    OPS.map(|(weight, _)| weight * [0, 1, 1, 4][rng.below(4)])
}

/// Raises the weights of operations on the chain below a snapshot, which exists only briefly.
pub(crate) fn favour_history(
    weights: &mut [usize; OPS.len()],
    is_loaded: bool,
    is_being_validated: bool,
) {
    const HISTORY: usize = 2;
    const FLUSH: usize = 6;
    const LOAD: usize = 14;
    if !is_loaded {
        (weights[HISTORY], weights[LOAD]) = (0, weights[LOAD] + 60);
    } else if is_being_validated {
        (weights[HISTORY], weights[FLUSH]) = (weights[HISTORY] + 30, weights[FLUSH] + 60);
    }
}

/// Mean weights.
pub(crate) const OPS: [(usize, Op); 15] = [
    (24, |step, rng| step.bring_branch(rng)),
    (12, |step, rng| step.bring_any(rng)),
    (8, |step, rng| step.bring_history(rng)),
    (20, |step, rng| step.propose(rng)),
    (4, |step, rng| step.make_template(rng)),
    (4, |step, _| step.connect()),
    (12, |step, _| step.flush()),
    (4, |step, rng| step.prune(rng)),
    (4, |step, rng| step.declare(rng)),
    (3, |step, rng| step.reconsider(rng)),
    (2, |step, rng| step.prefer(rng)),
    (3, |step, rng| step.verify_chain(rng)),
    (5, |step, rng| step.read(rng)),
    (4, |step, rng| {
        step.offer_txs(rng);
        Ok(())
    }),
    (5, |step, _| step.load()),
];

impl Step<'_> {
    pub(crate) fn work(&self, thread: usize, count: usize, rng: &mut Random) {
        for _ in 0..count {
            if self.differs() {
                return;
            }
            let mut at = rng.below(self.weights.iter().sum::<usize>() + 1);
            let chosen = self.weights.iter().position(|weight| {
                let is_it = at < *weight;
                at = at.wrapping_sub(*weight);
                is_it
            });
            let (_, op) = OPS[chosen.unwrap_or(0)];
            self.ops.fetch_add(1, Ordering::Relaxed);
            if let Err(difference) = op(self, rng) {
                self.differ(format!("thread {thread}: {difference}"));
            }
        }
    }

    /// Validates blocks below a snapshot until the other threads have finished.
    pub(crate) fn follow_history(&self, is_over: &AtomicBool) {
        while !is_over.load(Ordering::Relaxed) && !self.differs() {
            match self.engine.chain().advance_historical() {
                Ok(true) => {}
                Ok(false) => std::thread::yield_now(),
                Err(error) => {
                    if let Err(difference) = self.failed("history", &error) {
                        self.differ(difference);
                    }
                    return;
                }
            }
        }
    }

    fn differs(&self) -> bool {
        self.difference.lock().unwrap_or_else(PoisonError::into_inner).is_some()
    }

    pub(crate) fn differ(&self, difference: Difference) {
        let mut first = self.difference.lock().unwrap_or_else(PoisonError::into_inner);
        first.get_or_insert(difference);
    }

    fn note(&self, text: String) {
        self.log.lock().unwrap_or_else(PoisonError::into_inner).push(text);
    }

    /// Errors are allowed only during a shutdown.
    fn failed(&self, what: &str, error: &dyn std::error::Error) -> Result<(), Difference> {
        let error = error.to_string();
        let is_end = error.contains("it is shut down") && self.is_closing.load(Ordering::SeqCst);
        if is_end { Ok(()) } else { Err(format!("{what}: {error}")) }
    }

    fn block(&self, index: usize) -> &Block {
        &self.universe.blocks[index]
    }

    /// Checks that a block may be rejected for this reason.
    fn check_reason(
        &self,
        index: usize,
        reason: &str,
        knew_parent: bool,
    ) -> Result<(), Difference> {
        let block = self.block(index);
        let is_right = match reason {
            "prev-blk-not-found" => !knew_parent,
            "bad-prevblk" | "duplicate-invalid" => !block.is_sound || self.model.known().had_vetoes,
            reason => block.fault.is_some_and(|fault| fault.has_reason(reason)),
        };
        let (height, fault) = (block.height, block.fault);
        let differ = || format!("block {index} at {height} ({fault:?}) is rejected: {reason}");
        if is_right { Ok(()) } else { Err(differ()) }
    }

    fn check_faults(&self, faults: &[BlockFault]) -> Result<(), Difference> {
        for fault in faults {
            let index = self.universe.find(&fault.hash);
            let index = index.ok_or_else(|| format!("a block on trial is marked: {fault:?}"))?;
            self.check_reason(index, &fault.reason, true)?;
        }
        Ok(())
    }

    fn knows_parent(&self, index: usize) -> bool {
        let parent = self.block(index).parent;
        parent == 0 || self.model.known().headers.contains(&parent)
    }

    fn has(&self, index: usize) {
        let mut known = self.model.known();
        known.data.insert(index);
        known.headers.insert(index);
    }

    fn submit(&self, index: usize) -> Result<(), Difference> {
        let (block, knew_parent) = (self.block(index), self.knows_parent(index));
        let outcome = self.engine.blocks().submit(block.raw.clone());
        self.note(format!("submit {index}: {outcome:?}"));
        match outcome {
            SubmitOutcome::Accepted | SubmitOutcome::Duplicate if !block.is_sound => {
                Err(format!("block {index} ({:?}) is invalid: {outcome:?}", block.fault))
            }
            SubmitOutcome::Accepted
            | SubmitOutcome::Duplicate
            | SubmitOutcome::DuplicateInconclusive
            | SubmitOutcome::Inconclusive => {
                self.has(index);
                Ok(())
            }
            SubmitOutcome::DuplicateInvalid => {
                self.check_reason(index, "duplicate-invalid", knew_parent)
            }
            SubmitOutcome::Rejected { reason, .. } => {
                self.check_reason(index, &reason, knew_parent)
            }
            SubmitOutcome::Undecodable(error) => Err(error.to_string()),
            SubmitOutcome::Failed(error) => self.failed("submit", &error),
        }
    }

    fn take(&self, index: usize, was_requested: bool) -> Result<(), Difference> {
        let (block, knew_parent) = (self.block(index), self.knows_parent(index));
        let offer = BlockOffer { was_requested, ..BlockOffer::requested(block.raw.clone()) };
        let taken = self.engine.blocks().take(offer);
        self.note(format!("take {index}, {was_requested}: {taken:?}"));
        match taken {
            Taken::Kept(_) => self.has(index),
            Taken::Passed(_) if was_requested => self.has(index),
            Taken::Passed(_) => {
                self.model.known().headers.insert(index);
            }
            Taken::Refused(fault) => {
                return self.check_reason(index, &fault.reason, knew_parent);
            }
            Taken::Undecodable(error) => return Err(error.to_string()),
            Taken::Failed(error) => return self.failed("take", &error),
        }
        Ok(())
    }

    fn bring(&self, index: usize, rng: &mut Random) -> Result<(), Difference> {
        match rng.below(8) {
            0 => {
                self.bring_mutated(index)?;
                self.take(index, true)
            }
            1..4 => self.take(index, true),
            4 => self.take(index, false),
            _ => self.submit(index),
        }
    }

    /// Submits other bytes under the same header.
    fn bring_mutated(&self, index: usize) -> Result<(), Difference> {
        let mut raw = self.block(index).raw.clone();
        let last = raw.len() - 1;
        raw[last] ^= 1;
        match self.engine.blocks().submit(raw) {
            SubmitOutcome::Rejected { reason, .. } if reason == "bad-txnmrklroot" => Ok(()),
            SubmitOutcome::Failed(error) => self.failed("mutated", &error),
            other => Err(format!("block {index} with other bytes: {other:?}")),
        }
    }

    /// Submits the headers of a branch, then its blocks in another order, as from peers or by RPC.
    fn bring_branch(&self, rng: &mut Random) -> Result<(), Difference> {
        if self.open.is_empty() {
            return Ok(());
        }
        let recent = self.open.len().min(12);
        let leaf = self.open[self.open.len() - 1 - rng.below(recent)];
        let branch: Vec<usize> = self.universe.branch(leaf).collect();
        let mut missing: Vec<usize> = {
            let known = self.model.known();
            let is_missing = |index: &&usize| !known.data.contains(*index);
            branch.iter().take(16).filter(is_missing).copied().collect()
        };
        if rng.below(4) > 0 {
            let from = self.block(*missing.last().unwrap_or(&leaf)).height;
            let way = branch.iter().rev().filter(|index| self.block(**index).height >= from);
            self.headers(&way.copied().collect::<Vec<_>>())?;
        }
        if rng.below(4) > 0 {
            self.propose_with(Some(Fault::AmountAndScript), rng)?;
        }
        match rng.below(4) {
            0 | 3 => missing.reverse(),
            1 => rng.shuffle(&mut missing),
            _ => {}
        }
        for index in missing {
            self.bring(index, rng)?;
        }
        if rng.below(2) == 0 { self.connect() } else { Ok(()) }
    }

    fn headers(&self, branch: &[usize]) -> Result<(), Difference> {
        let headers: Vec<Header> = branch.iter().map(|index| self.block(*index).header).collect();
        let knew_first = self.knows_parent(branch[0]);
        let taken = self.engine.blocks().take_headers(&headers);
        self.note(format!("headers {branch:?}: {taken:?}"));
        match taken {
            Ok(()) => self.model.known().headers.extend(branch),
            Err(assay_engine::HeadersError::Refused(fault)) => {
                let index = self.universe.find(&fault.hash).ok_or("an unknown header")?;
                let knew_parent = index != branch[0] || knew_first;
                return self.check_reason(index, &fault.reason, knew_parent);
            }
            Err(error) => return self.failed("headers", &error),
        }
        Ok(())
    }

    fn bring_any(&self, rng: &mut Random) -> Result<(), Difference> {
        let index = if self.open.is_empty() || rng.below(4) == 0 {
            1 + rng.below(self.universe.blocks.len() - 1)
        } else {
            self.open[rng.below(self.open.len())]
        };
        self.bring(index, rng)
    }

    /// Submits the lowest missing blocks, as in a download.
    fn bring_history(&self, rng: &mut Random) -> Result<(), Difference> {
        let count = 1 + rng.below(8);
        let mut low: Vec<usize> = self.open.iter().take(count).copied().collect();
        if rng.below(2) == 0 {
            rng.shuffle(&mut low);
        }
        low.into_iter().try_for_each(|index| self.bring(index, rng))
    }

    fn connect(&self) -> Result<(), Difference> {
        match self.engine.blocks().connect(|| false) {
            Ok(report) => self.check_faults(&report.faults),
            Err(error) => self.failed("connect", &error),
        }
    }

    /// A trial block, valid or not.
    fn propose(&self, rng: &mut Random) -> Result<(), Difference> {
        let faults = [
            None,
            Some(Fault::AmountAndScript),
            Some(Fault::AmountAndScript),
            Some(Fault::Script),
            Some(Fault::Signature),
            Some(Fault::Amount),
            Some(Fault::Missing),
        ];
        self.propose_with(faults[rng.below(faults.len())], rng)
    }

    fn propose_with(&self, fault: Option<Fault>, rng: &mut Random) -> Result<(), Difference> {
        let tip = self.engine.chain().tip().hash;
        let parent = self.universe.find(&tip).ok_or("an unknown tip")?;
        let trial = self.universe.build(parent, fault, rng.below(3), rng);
        let block = assay_wire::Block::parse(trial.raw, Encoding::Segwit).expect("it was parsed");
        let checks = TrialChecks { work: rng.below(2) == 0, merkle_root: true };
        let verdict = self.engine.mining().test_block(block, checks);
        self.note(format!("propose {:?} on {parent}: {verdict:?}", trial.fault));
        match verdict {
            Ok(Ok(())) if trial.fault.is_none() => Ok(()),
            Ok(Err(TrialError::NotOnTip)) if !self.is_alone => Ok(()),
            Ok(Err(TrialError::Rule(error)))
                if trial.fault.is_some_and(|fault| fault.has_reason(&error.reject_reason())) =>
            {
                Ok(())
            }
            Ok(verdict) => Err(format!("a proposal ({:?}): {verdict:?}", trial.fault)),
            Err(error) => self.failed("proposal", &error),
        }
    }

    /// From the mempool, or from given transactions as for `generateblock`.
    fn make_template(&self, rng: &mut Random) -> Result<(), Difference> {
        let tip = self.engine.chain().tip().hash;
        let parent = self.universe.find(&tip).ok_or("an unknown tip")?;
        let (fault, selection) = match rng.below(3) {
            0 => (None, Selection::Mempool),
            1 => (None, Selection::These(Vec::new())),
            _ => {
                let bad = self.universe.build(parent, Some(Fault::Script), 2, rng);
                let txs = bad.txs.into_iter().map(Arc::new).collect();
                (bad.fault.filter(|fault| *fault == Fault::Script), Selection::These(txs))
            }
        };
        let options = TemplateOptions { coinbase_script: vec![0x51], selection };
        match self.engine.mining().template(&options) {
            Ok(_) if fault.is_none() => Ok(()),
            Ok(_) => Err("a template with a failing script".to_owned()),
            Err(TemplateError::Invalid(_)) if fault.is_some() => Ok(()),
            // The coins of its transactions may be on another branch now.
            Err(TemplateError::Invalid(_)) if matches!(&options.selection, Selection::These(txs) if !txs.is_empty()) => {
                Ok(())
            }
            Err(TemplateError::Invalid(error)) => Err(format!("a template: {error}")),
            Err(TemplateError::Engine(error)) => self.failed("template", &error),
        }
    }

    fn flush(&self) -> Result<(), Difference> {
        self.engine.flush().or_else(|error| self.failed("flush", &error))
    }

    fn prune(&self, rng: &mut Random) -> Result<(), Difference> {
        if !self.may_prune {
            return Ok(());
        }
        let tip_height = self.engine.chain().tip().height;
        let height = rng.below(tip_height as usize + 1) as u32;
        // Other threads may raise the tip before the engine prunes, and lower it afterwards.
        let highest = self.universe.blocks.iter().map(|block| block.height).max().unwrap_or(0);
        let tip_height = if self.is_alone { tip_height } else { highest };
        let pruned_to = height.min(tip_height.saturating_sub(PRUNE_KEEPS));
        {
            let mut known = self.model.known();
            known.pruned_to = known.pruned_to.max(pruned_to);
        }
        let pruned = self.engine.chain().prune_to(height);
        pruned.map(|_| ()).or_else(|error| self.failed("prune", &error))
    }

    fn declare(&self, rng: &mut Random) -> Result<(), Difference> {
        let _control = self.control.lock().unwrap_or_else(PoisonError::into_inner);
        let tip = self.universe.find(&self.engine.chain().tip().hash).ok_or("an unknown tip")?;
        let recent = self.universe.branch(tip).nth(rng.below(4));
        let Some(index) = recent.filter(|index| self.block(*index).height > BASE) else {
            return Ok(());
        };
        if self.model.known().vetoes.len() >= 2 {
            return Ok(());
        }
        {
            let mut known = self.model.known();
            known.vetoes.insert(index);
            (known.had_vetoes, known.tip) = (true, None);
        }
        let declared = self.engine.chain().invalidate_block(&self.block(index).hash);
        self.note(format!("invalidate {index}: {declared:?}"));
        declared.or_else(|error| {
            self.model.known().vetoes.remove(&index);
            match error {
                ControlError::Pruned { .. } if self.may_prune => Ok(()),
                error => self.failed("invalidate", &error),
            }
        })
    }

    /// Reconsiders the lowest invalidated block.
    pub(crate) fn reconsider(&self, _: &mut Random) -> Result<(), Difference> {
        let _control = self.control.lock().unwrap_or_else(PoisonError::into_inner);
        let vetoes = self.model.known().vetoes.clone();
        let Some(index) = vetoes.into_iter().min_by_key(|index| self.block(*index).height) else {
            return Ok(());
        };
        self.model.known().tip = None;
        let done = self.engine.chain().reconsider_block(&self.block(index).hash);
        self.note(format!("reconsider {index}: {done:?}"));
        if let Err(error) = done {
            return self.failed("reconsider", &error);
        }
        let is_above = |veto: &usize| self.universe.is_on_branch(index, *veto);
        self.model.known().vetoes.retain(|veto| !is_above(veto));
        Ok(())
    }

    fn prefer(&self, rng: &mut Random) -> Result<(), Difference> {
        let index = self.universe.blocks.len() - 1 - rng.below(8);
        self.model.known().tip = None;
        match self.engine.chain().precious_block(&self.block(index).hash) {
            Ok(()) | Err(ControlError::UnknownBlock { .. }) => Ok(()),
            Err(error) => self.failed("precious", &error),
        }
    }

    fn verify_chain(&self, rng: &mut Random) -> Result<(), Difference> {
        let (level, blocks) = (rng.below(5) as u32, 1 + rng.below(6) as u32);
        let check = ChainCheck { level, blocks, must_be_whole: false };
        match self.engine.chain().check(check, &|| true) {
            Ok(Checked::Sound | Checked::Pruned | Checked::Shallow) => Ok(()),
            Ok(other) => Err(format!("verifychain {level} {blocks}: {other:?}")),
            Err(error) => self.failed("verifychain", &error),
        }
    }

    /// Coins are always those of the tip.
    fn read(&self, rng: &mut Random) -> Result<(), Difference> {
        if rng.below(2) == 0 {
            let near = self.universe.blocks.len() - 1 - rng.below(16);
            let Some(outpoint) = self.block(near).coins.any(rng) else { return Ok(()) };
            let coin =
                self.engine.chain().coin(&outpoint, false).map_err(|error| error.to_string())?;
            // A missing coin is returned without its tip.
            let tip = match &coin {
                Some((_, tip)) => *tip,
                None if self.is_alone => self.engine.chain().tip(),
                None => return Ok(()),
            };
            let at = self.universe.find(&tip.hash).ok_or("an unknown tip")?;
            let is_right = self.block(at).coins.has(&outpoint) == coin.is_some();
            return if is_right { Ok(()) } else { Err(format!("coin {outpoint} at block {at}")) };
        }
        let stats = match self.engine.chain().utxo_stats(true) {
            Ok(stats) => stats,
            Err(error) => return self.failed("coins", &error),
        };
        let at = self.universe.find(&stats.hash).ok_or("an unknown tip")?;
        let block = self.block(at);
        if block.is_sound && stats.muhash == Some(block.muhash()) {
            return Ok(());
        }
        Err(format!("the coins of block {at} at {} ({:?})", block.height, block.fault))
    }

    /// Submits transactions of a future block.
    fn offer_txs(&self, rng: &mut Random) {
        let awaits_snapshot = self.snapshot.is_some() && !self.model.known().is_loaded;
        if self.open.is_empty() || awaits_snapshot {
            return;
        }
        let index = self.open[self.open.len() - 1 - rng.below(self.open.len().min(8))];
        for tx in &self.block(index).txs {
            // It may break policy, or be premature.
            let _ = self.engine.mempool().submit(tx.bytes().to_vec(), None);
        }
    }

    fn load(&self) -> Result<(), Difference> {
        let Some(snapshot) = self.snapshot else { return Ok(()) };
        let _control = self.control.lock().unwrap_or_else(PoisonError::into_inner);
        if self.model.known().is_loaded {
            return Ok(());
        }
        let mut way: Vec<usize> = self.universe.branch(BASE as usize).collect();
        way.reverse();
        self.headers(&way)?;
        let reader = SnapshotReader::new(&snapshot.file[..], KEYS).expect("it was written");
        let loaded = self.engine.chain().load_snapshot(reader, &|| true);
        self.note(format!("load: {loaded:?}"));
        match loaded {
            Ok(_) => {
                self.model.known().is_loaded = true;
                Ok(())
            }
            Err(LoadError::LittleWork | LoadError::Mempool) => Ok(()),
            Err(LoadError::Engine(error)) => self.failed("load", &error),
            Err(error) => Err(format!("load: {error}")),
        }
    }
}
