//! `assay emit`.

use std::sync::atomic::Ordering;

use anyhow::bail;
use assay_lab::emit::{EmitOptions, run as send};
use assay_lab::plan::{Compact, Delivery, FeedPlan, Prefill, SeenMode};

use super::bench::software;
use super::{command_line, stop_flag};
use crate::cli::{CompactArgument, EmitArguments, PrefillArgument, SeenModeArgument};
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
        rerun: command_line(),
    };
    let stop = stop_flag();
    let record = send(&options, &stop)?;
    match output::print_record(&record, arguments.json)? {
        Outcome::Negative if stop.load(Ordering::Relaxed) => Ok(Outcome::Interrupted),
        Outcome::Negative => bail!(
            "not every node was given everything; the reason stands above, and --resume sends the rest"
        ),
        outcome => Ok(outcome),
    }
}

fn feed(arguments: &EmitArguments) -> anyhow::Result<FeedPlan> {
    let mut feed = FeedPlan::of(Delivery::Rpc);
    feed.seen = vec![arguments.seen];
    feed.seen_mode = match arguments.seen_mode {
        SeenModeArgument::Prefix => SeenMode::Prefix,
        SeenModeArgument::Random => SeenMode::Random,
    };
    feed.orphans = arguments.orphans;
    feed.pace = arguments.pace;
    feed.rate = arguments.rate;
    feed.burst = arguments.burst;
    feed.connections = arguments.connections;
    feed.compact = match arguments.compact {
        CompactArgument::High => Compact::High,
        CompactArgument::Low => Compact::Low,
    };
    feed.prefill = match arguments.prefill {
        PrefillArgument::Coinbase => Prefill::Coinbase,
        PrefillArgument::Unseen => Prefill::Unseen,
    };
    feed.mock_time = arguments.mock_time;
    feed.block_timeout_s = arguments.timeout;
    if let Err((flag, value, rule)) = feed.check_values() {
        bail!("--{} {value}: {rule}", flag.trim_start_matches("feed.").replace('_', "-"));
    }
    Ok(feed)
}
