//! `assay verify-data`.

use std::fmt::Write as _;
use std::fs;
use std::sync::atomic::Ordering;

use anyhow::{Context, ensure};
use assay_engine::{DataReport, Engine, MarkFinding, VerifyDataError};
use serde_json::json;

use super::{node_with_blocks, stop_flag};
use crate::Outcome;
use crate::bar::Bar;
use crate::cli::VerifyDataArguments;
use crate::output;

/// Number of heights listed in the text.
const HEIGHTS_SHOWN: usize = 20;

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
    let total = u64::from(engine.tip().height);
    let bar = Bar::new("verifying [{bar:25}] {pos}/{len} blocks  {per_sec}  ETA {eta}");
    let report = engine.verify_data(&|height| {
        bar.set(u64::from(height), total);
        !stop.load(Ordering::Relaxed)
    });
    drop(bar);
    let report = match report {
        Err(VerifyDataError::Interrupted) => return Ok(Outcome::Interrupted),
        other => other?,
    };
    output::print_as(arguments.json, &as_json(&report), || text(&report))?;
    let is_sound = report.wrong_heights.is_empty() && unsupported(&report) == 0;
    Ok(if is_sound { Outcome::Good } else { Outcome::Negative })
}

fn unsupported(report: &DataReport) -> usize {
    report.marks.iter().filter(|mark| mark.finding == MarkFinding::Unsupported).count()
}

fn finding(finding: &MarkFinding) -> String {
    match finding {
        MarkFinding::Broken(reason) => format!("invalid ({reason})"),
        MarkFinding::Unsupported => {
            "no rule supports this: a defect or invalidateblock has marked it".to_owned()
        }
        MarkFinding::NotChecked => {
            "not checked: data are missing, or its branch forks more than 100 blocks below the tip"
                .to_owned()
        }
    }
}

fn text(report: &DataReport) -> String {
    let DataReport { tip, coins, wrong_heights, marks } = report;
    let wrong = wrong_heights.len();
    let headline = match (wrong, unsupported(report)) {
        (0, 0) => "OK: coins follow from the blocks".to_owned(),
        (wrong, marks) => format!(
            "DAMAGED: coins of {wrong} blocks are wrong, {marks} marks of invalidity are unsupported; {REPAIR}"
        ),
    };
    let mut text = format!("{headline}\ntip: height {}, {}; {coins} coins\n", tip.height, tip.hash);
    // Writing to a string cannot fail.
    if wrong > 0 {
        let shown: Vec<String> =
            wrong_heights.iter().take(HEIGHTS_SHOWN).map(u32::to_string).collect();
        let more = if wrong > HEIGHTS_SHOWN { ", …" } else { "" };
        let _ = writeln!(text, "heights with wrong coins: {}{more}", shown.join(", "));
    }
    for mark in marks {
        let found = finding(&mark.finding);
        let _ = writeln!(text, "marked invalid: height {}, {}: {found}", mark.height, mark.hash);
    }
    text
}

fn as_json(report: &DataReport) -> serde_json::Value {
    let marks = report.marks.iter().map(|mark| {
        let finding = match &mark.finding {
            MarkFinding::Broken(_) => "broken",
            MarkFinding::Unsupported => "unsupported",
            MarkFinding::NotChecked => "not-checked",
        };
        let reason = match &mark.finding {
            MarkFinding::Broken(reason) => Some(reason),
            _ => None,
        };
        json!({
            "hash": mark.hash.to_string(), "height": mark.height, "finding": finding, "reason": reason,
        })
    });
    json!({
        "schema": "assay-verify-data/1",
        "tip": { "height": report.tip.height, "hash": report.tip.hash.to_string() },
        "coins": report.coins,
        "wrong_heights": report.wrong_heights,
        "marks": marks.collect::<Vec<_>>(),
    })
}
