//! `assay verify-data`.

use std::fs;
use std::sync::atomic::Ordering;

use anyhow::{Context, ensure};
use assay_engine::{DataReport, Engine, MarkFinding, VerifyDataError};
use assay_lab::machine::new_record;
use assay_report::record::{Outcome as Checked, Record, count};

use super::bench::software;
use super::{node_with_blocks, stop_flag};
use crate::Outcome;
use crate::bar::Bar;
use crate::cli::VerifyDataArguments;
use crate::invocation::rerun;
use crate::output;

const REPAIR: &str = "run `assay bitcoind -reindex-chainstate` over this data directory";

pub(crate) fn run(arguments: &VerifyDataArguments) -> anyhow::Result<Outcome> {
    let node = node_with_blocks(&arguments.chain, &arguments.datadir)?;
    let dir = node.chain_dir();
    // The engine would rebuild the coins from the blocks, which hides damage to them.
    ensure!(
        fs::read_dir(dir.join("chainstate/keyspaces"))
            .is_ok_and(|mut entries| entries.next().is_some()),
        "{} holds no coins: {REPAIR}",
        dir.join("chainstate").display()
    );
    let stop = stop_flag();
    let opened = Engine::open(node.engine_config());
    let engine = opened.with_context(|| format!("cannot open the chain in {}", dir.display()))?;
    let total = u64::from(engine.chain().tip().height);
    let bar = Bar::new("verifying [{bar:25}] {pos}/{len} blocks  {per_sec}  ETA {eta}");
    let report = engine.chain().verify_data(&|height| {
        bar.set(u64::from(height), total);
        !stop.load(Ordering::Relaxed)
    });
    drop(bar);
    let report = match report {
        Err(VerifyDataError::Interrupted) => return Ok(Outcome::Interrupted),
        other => other?,
    };
    let mut record = new_record("verify-data", &software(), &rerun(), &dir);
    describe(&report, &mut record);
    output::print_as(arguments.json, &record, || record.text())?;
    Ok(if record.has_passed() { Outcome::Good } else { Outcome::Negative })
}

fn describe(report: &DataReport, record: &mut Record) {
    let DataReport { tip, coins, wrong_heights, marks } = report;
    record.set("tip", format!("height {}, {}", tip.height, tip.hash));
    record.set("coins", coins);
    let wrong = wrong_heights.first().zip(wrong_heights.last()).map(|(first, last)| {
        format!("wrong in {} blocks of heights {first} to {last}", wrong_heights.len())
    });
    record.check("coins follow from the blocks", Checked::of(u64::from(tip.height) + 1, wrong));
    let heights = wrong_heights.iter().map(|height| [count("height", u64::from(*height))]);
    record.add_series(("wrong coins", "", None), &heights.collect::<Vec<_>>());
    if !wrong_heights.is_empty() {
        let shown: Vec<String> = wrong_heights.iter().take(20).map(u32::to_string).collect();
        let more = if wrong_heights.len() > shown.len() { ", …" } else { "" };
        record.notes.push(format!("heights with wrong coins: {}{more}", shown.join(", ")));
    }
    let (mut judged, mut unsupported) = (0, 0_u64);
    for mark in marks {
        judged += u64::from(mark.finding != MarkFinding::NotChecked);
        unsupported += u64::from(mark.finding == MarkFinding::Unsupported);
        let finding = match &mark.finding {
            MarkFinding::Broken(reason) => format!("invalid ({reason})"),
            MarkFinding::Unsupported => {
                "no rule supports this: a defect or invalidateblock has marked it".to_owned()
            }
            MarkFinding::NotChecked => {
                "not checked: data are missing, or its branch forks more than 100 blocks below the tip"
                    .to_owned()
            }
        };
        record
            .notes
            .push(format!("marked invalid: height {}, {}: {finding}", mark.height, mark.hash));
    }
    if judged > 0 {
        let failure = (unsupported > 0).then(|| format!("{unsupported} are not"));
        record.check("marks of invalidity are supported", Checked::of(judged, failure));
    }
    record.headline = if record.has_passed() {
        "OK: coins follow from the blocks.".to_owned()
    } else {
        format!("DAMAGED: {REPAIR}.")
    };
}
