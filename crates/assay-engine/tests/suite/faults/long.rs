//! A block large enough for its own write thread while its coins move.

use assay_engine::SubmitOutcome;
use assay_store::io::{Fault, Loss};

use super::chain::{BASE, Story, muhash};
use super::disk::Setup;

/// More than `chainstate/archive.rs` writes at once.
const BYTES: usize = 600_000;

#[test]
fn a_long_block_is_complete_or_absent_after_any_fault() {
    let story = Story::get();
    let whole = story.base.killed();
    let engine = whole.open(&story.params, Setup::Calm).unwrap();
    let before = (engine.chain().tip().hash, muhash(&engine));
    let raw = story.long_block(before.0, BYTES);
    let opened = whole.io.steps();
    assert!(matches!(engine.blocks().submit(raw.clone()), SubmitOutcome::Accepted));
    let steps = whole.io.steps() - opened;
    let after = (engine.chain().tip().hash, muhash(&engine));
    assert!(steps >= 4, "frame, block, undo data and records");
    drop(engine);
    let mut kept = 0;
    for fault in [Fault::Crash, Fault::Error, Fault::Broken] {
        for step in 0..steps {
            let case = format!("{fault:?} at step {step} of {steps}");
            let disk = story.base.killed();
            let engine = disk.open(&story.params, Setup::Calm).unwrap();
            disk.io.fail_at(opened + step, fault);
            let outcome = engine.blocks().submit(raw.clone());
            let was_accepted = matches!(outcome, SubmitOutcome::Accepted);
            assert!(
                was_accepted || matches!(outcome, SubmitOutcome::Failed(_)),
                "{case}: {outcome:?}"
            );
            if !was_accepted {
                // Memory has a block that the disk may lack.
                assert!(
                    matches!(engine.blocks().submit(raw.clone()), SubmitOutcome::Failed(_)),
                    "{case}"
                );
            }
            drop(engine);
            let engine = disk.after(Loss::Nothing).open(&story.params, Setup::Calm).unwrap();
            let tip = engine.chain().tip();
            let expected = if tip.height == BASE { before } else { after };
            assert_eq!((tip.hash, muhash(&engine)), expected, "{case}");
            assert!(tip.hash == after.0 || !was_accepted, "{case}: it was acknowledged");
            if tip.hash == after.0 {
                assert!(engine.blocks().read(&tip.hash).unwrap() == Some(raw.clone()), "{case}");
                kept += 1;
            } else {
                assert!(
                    matches!(engine.blocks().submit(raw.clone()), SubmitOutcome::Accepted),
                    "{case}"
                );
            }
        }
    }
    assert!(kept > 0, "after the last step that counts it is there");
}
