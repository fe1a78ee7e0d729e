//! `assay emit`.

use std::sync::atomic::Ordering;

use anyhow::bail;
use assay_lab::emit::{EmitOptions, run as send};
use assay_lab::plan::FeedPlan;
use assay_lab::progress::Terminal;

use super::bench::software;
use super::stop_flag;
use crate::cli::EmitArguments;
use crate::invocation::rerun;
use crate::{Outcome, output};

pub(crate) fn run(arguments: &EmitArguments) -> anyhow::Result<Outcome> {
    let options = EmitOptions {
        chain: arguments.chain.clone(),
        targets: arguments.to.clone(),
        feed: feed(arguments)?,
        resume: arguments.resume,
        until: arguments.until,
        out_dir: arguments.out.clone(),
        software: software(),
        rerun: rerun(),
    };
    let stop = stop_flag();
    let record = send(&options, &Terminal::stopped_by(stop.clone()))?;
    match output::print_record(&record, arguments.json)? {
        Outcome::Negative if stop.load(Ordering::Relaxed) => Ok(Outcome::Interrupted),
        Outcome::Negative => bail!(
            "not every node was given everything; the reason stands above, and --resume sends the rest"
        ),
        outcome => Ok(outcome),
    }
}

fn feed(arguments: &EmitArguments) -> anyhow::Result<FeedPlan> {
    let feed = FeedPlan {
        seen: vec![arguments.seen],
        seen_mode: arguments.seen_mode,
        orphans: arguments.orphans,
        pace: arguments.pace,
        rate: arguments.rate,
        burst: arguments.burst,
        connections: arguments.connections,
        compact: arguments.compact,
        prefill: arguments.prefill,
        mock_time: arguments.mock_time,
        block_timeout_s: arguments.timeout,
        ..FeedPlan::default()
    };
    if let Err((flag, value, rule)) = feed.check_values() {
        bail!("--{} {value}: {rule}", flag.trim_start_matches("feed.").replace('_', "-"));
    }
    Ok(feed)
}
