//! Faults and crashes at every step of a run.

use std::collections::HashSet;
use std::path::Path;
use std::time::Instant;

use assay_engine::{Engine, SubmitOutcome};
use assay_store::io::{Fault, Io, Loss};
use assay_wire::{BlockHash, Txid};

use super::chain::{Act, BASE, Story, muhash};
use super::disk::{DIR, Disk, KEPT, Setup};

#[derive(Debug, Default)]
struct Progress {
    /// Blocks acknowledged to the caller.
    acknowledged: HashSet<BlockHash>,
    /// Acknowledged blocks that a later flush protects from a power cut.
    flushed: HashSet<BlockHash>,
    /// The last acknowledged tip, and the last flushed one.
    tip: Option<BlockHash>,
    flushed_tip: Option<BlockHash>,
    /// Unconfirmed transactions: offered, saved, and possibly saved.
    offered: HashSet<Txid>,
    saved: HashSet<Txid>,
    saving: HashSet<Txid>,
    has_failed: bool,
}

/// Plays the test data until a failure. Retries a failed step once, as after a full disk.
fn run(story: &Story, disk: &Disk, setup: Setup) -> Progress {
    let mut progress = Progress::default();
    let Ok(engine) = disk.open(&story.params, setup) else {
        progress.has_failed = true;
        return progress;
    };
    for act in &story.acts {
        let is_done = perform(&engine, act, &mut progress) || perform(&engine, act, &mut progress);
        progress.has_failed |= !is_done;
    }
    progress
}

fn perform(engine: &Engine, act: &Act, progress: &mut Progress) -> bool {
    match act {
        Act::Flush => {
            if engine.flush().is_err() {
                progress.has_failed = true;
                return false;
            }
            progress.flushed.clone_from(&progress.acknowledged);
            progress.flushed_tip = progress.tip;
            true
        }
        Act::Offer { raw, txid } => {
            let admitted = engine.mempool().submit(raw.clone(), None);
            if admitted.is_ok() {
                progress.offered.insert(*txid);
            }
            progress.has_failed |= admitted.is_err();
            admitted.is_ok()
        }
        Act::SaveMempool => {
            progress.saving.clone_from(&progress.offered);
            let is_saved = engine.mempool().save().is_ok();
            if is_saved {
                progress.saved.clone_from(&progress.offered);
            }
            progress.has_failed |= !is_saved;
            is_saved
        }
        Act::Submit { raw, hash, is_valid } => match engine.blocks().submit(raw.clone()) {
            SubmitOutcome::Accepted => {
                progress.acknowledged.insert(*hash);
                progress.tip = Some(*hash);
                assert!(is_valid);
                true
            }
            SubmitOutcome::Inconclusive
            | SubmitOutcome::Duplicate
            | SubmitOutcome::DuplicateInconclusive => {
                progress.acknowledged.insert(*hash);
                true
            }
            SubmitOutcome::Rejected { reason, .. } if !is_valid => reason == "bad-cb-amount",
            SubmitOutcome::DuplicateInvalid if !is_valid => true,
            // A parent may be missing, because it was not stored.
            SubmitOutcome::Rejected { .. } | SubmitOutcome::Failed(_) => {
                progress.has_failed = true;
                false
            }
            other => panic!("{other:?}"),
        },
    }
}

/// Checks the guarantees of every restart, and that it can reach the same final state.
fn check(story: &Story, disk: &Disk, setup: Setup, progress: &Progress, loss: Loss, case: &str) {
    let engine = disk.open(&story.params, setup).unwrap_or_else(|e| panic!("{case}: {e}"));
    let (safe, safe_tip) = match loss {
        Loss::Nothing => (&progress.acknowledged, progress.tip),
        _ => (&progress.flushed, progress.flushed_tip),
    };
    for hash in safe {
        let entry = engine.chain().entry(hash).unwrap_or_else(|| panic!("{case}: {hash} is lost"));
        assert!(entry.has_data, "{case}: the data of {hash} are lost");
        assert!(engine.blocks().read(hash).is_ok_and(|raw| raw.is_some()), "{case}: {hash}");
    }
    let tip = engine.chain().tip();
    let work_of = |hash: &BlockHash| engine.chain().entry(hash).map(|entry| entry.chain_work);
    assert!(
        safe_tip.is_none_or(|hash| work_of(&hash) <= Some(tip.chain_work)),
        "{case}: fell back"
    );
    // For any tip, the coins equal those of a node that went straight there.
    let expected =
        story.muhash.get(&tip.hash).unwrap_or_else(|| panic!("{case}: tip {}", tip.hash));
    assert_eq!(muhash(&engine), *expected, "{case}: coins at {}", tip.height);
    for height in BASE + 1..=tip.height {
        let hash = engine.chain().hash_at(height).expect("it is below the tip");
        let spent = engine.blocks().read_spent(&hash);
        assert!(spent.is_ok_and(|spent| spent.is_some()), "{case}: undo data");
    }
    // The mempool file is an old or a new one, never torn.
    let load = engine.mempool().load().unwrap_or_else(|e| panic!("{case}: {e}"));
    let found: HashSet<Txid> = engine.mempool().txids().into_iter().collect();
    assert!(load.damage.is_none() && progress.saved.is_subset(&found), "{case}: {load:?}");
    let unsaved = progress.offered.difference(&progress.saving);
    assert!(unsaved.into_iter().all(|txid| !found.contains(txid)), "{case}: {found:?}");
    // Everything again, as from peers.
    let mut again = Progress::default();
    for act in &story.acts {
        assert!(perform(&engine, act, &mut again), "{case}: {again:?}");
    }
    if setup == Setup::Pruning {
        check_removals(&engine, disk, case);
    }
    assert_eq!(engine.chain().tip().hash, story.end, "{case}");
    assert_eq!(muhash(&engine), story.muhash[&story.end], "{case}: the end");
}

/// With pruning, each block is complete or absent, and no file without blocks remains.
fn check_removals(engine: &Engine, disk: &Disk, case: &str) {
    engine.flush().unwrap_or_else(|e| panic!("{case}: {e}"));
    let mut lowest = None;
    let (chain, blocks) = (engine.chain(), engine.blocks());
    for height in 1..=chain.tip().height {
        let hash = chain.hash_at(height).expect("it is below the tip");
        let raw = blocks.read(&hash).unwrap_or_else(|e| panic!("{case}: {height}: {e}"));
        let spent = blocks.read_spent(&hash).unwrap_or_else(|e| panic!("{case}: {height}: {e}"));
        assert_eq!(raw.is_some(), spent.is_some(), "{case}: {height}");
        if raw.is_some() {
            lowest.get_or_insert(height);
        }
    }
    let pruned = chain.prune_height().unwrap_or_else(|| panic!("{case}: nothing was removed"));
    assert_eq!(lowest, Some(pruned + 1), "{case}");
    assert!(engine.chain().tip().height - pruned >= KEPT, "{case}: {pruned}");
    let names = disk.io.list(&Path::new(DIR).join("blocks")).expect("the folder is there");
    assert!(!names.contains(&"blk00000.dat".to_owned()), "{case}: {names:?}");
    assert!(!names.contains(&"rev00000.dat".to_owned()), "{case}: {names:?}");
}

/// The losses to test after a run with `fault` at `step`: a kill, and power cuts.
fn losses(fault: Fault, step: u64, seeds: u64) -> Vec<Loss> {
    let mut losses = vec![Loss::Nothing];
    if fault == Fault::Crash {
        losses.extend([Loss::Unsynced, Loss::Zeroed]);
    }
    // Sectors, pages, and less, because these blocks are smaller than a page.
    let units = [512, 64, 4096];
    losses.extend(
        (step..step + seeds)
            .map(|n| Loss::Torn { seed: step << 32 | n, unit: units[n as usize % units.len()] }),
    );
    losses
}

/// Returns a summary.
fn sweep(setup: Setup) -> String {
    // Random power cuts per step; more find rarer write orders.
    let seeds = std::env::var("ASSAY_FAULT_SEEDS").ok().and_then(|n| n.parse().ok()).unwrap_or(1);
    let story = Story::get();
    let start = Instant::now();
    let whole = story.base.killed();
    let progress = run(story, &whole, setup);
    assert!(!progress.has_failed && progress.acknowledged.len() == 11, "{progress:?}");
    let steps = whole.io.steps();
    let (mut runs, mut restarts, mut recoveries) = (0u64, 0u64, 0u64);
    // Without ASSAY_TEST_LONG every fourth, and others for each fault.
    let stride: u64 = if assay_testkit::is_long() { 1 } else { 4 };
    for (offset, fault) in [Fault::Crash, Fault::Error, Fault::Broken].into_iter().enumerate() {
        for step in (offset as u64 % stride..steps).step_by(stride as usize) {
            let disk = story.base.killed();
            disk.io.fail_at(step, fault);
            let progress = run(story, &disk, setup);
            assert!(progress.has_failed || fault != Fault::Crash);
            runs += 1;
            for loss in losses(fault, step, seeds) {
                let case = format!("{fault:?} at step {step} of {steps}, {loss:?}");
                let left = disk.after(loss);
                check(story, &left, setup, &progress, loss, &case);
                restarts += 1;
                // Occasionally the restart dies too, and the next one continues.
                if fault == Fault::Crash && loss != Loss::Zeroed {
                    recoveries += u64::from(die_again(story, &disk, setup, &progress, loss, step));
                }
            }
        }
    }
    format!(
        "{steps} steps, {runs} runs with a fault, {restarts} restarts, {recoveries} that died again, {:.1} s",
        start.elapsed().as_secs_f64()
    )
}

/// Lets the restart after a crash die at one of its steps; returns true if it did.
fn die_again(
    story: &Story,
    disk: &Disk,
    setup: Setup,
    progress: &Progress,
    loss: Loss,
    step: u64,
) -> bool {
    let left = disk.after(loss);
    left.io.fail_at(step % 23, Fault::Crash);
    if left.open(&story.params, setup).is_ok() {
        return false;
    }
    let case =
        format!("crash at step {step}, {loss:?}, crash at step {} of the restart", step % 23);
    check(story, &left.after(loss), setup, progress, loss, &case);
    true
}

#[test]
fn recovers_from_a_fault_at_every_step() {
    println!("{}", sweep(Setup::Calm));
}

#[test]
fn recovers_from_a_fault_at_every_step_while_pruning() {
    println!("{}", sweep(Setup::Pruning));
}

#[test]
fn recovers_from_a_fault_at_every_step_with_a_flush_after_every_block() {
    println!("{}", sweep(Setup::Hasty));
}
