//! Blocks delivered by peers: missing transactions of compact blocks, and times until the node had the block and relayed it.

use assay_report::Table;
use assay_report::number::{in_percent, ratio, whole_percent};
use assay_report::stats::median;
use assay_report::stats::ratio::Ratio;

use super::NONE;
use crate::results::{BlockRecord, BlockRelay, Results, Run, TargetResults};

/// A time of a block delivered by a peer, seconds from its announcement.
#[derive(Clone, Copy)]
enum Time {
    /// The node has requested the missing transactions.
    Request,
    Tip,
    /// The node has announced it to another peer.
    Relay,
}

impl Time {
    const ALL: [Self; 3] = [Self::Request, Self::Tip, Self::Relay];

    const fn name(self) -> &'static str {
        match self {
            Self::Request => "requests what it lacks",
            Self::Tip => "tip",
            Self::Relay => "passes it on",
        }
    }

    fn of(self, block: &BlockRecord, relay: &BlockRelay) -> Option<f64> {
        let at_s = match self {
            Self::Request => relay.missing_asked_at_s?,
            Self::Tip => block.tip_at_s,
            Self::Relay => relay.seen_at_s?,
        };
        Some(at_s - relay.announced_at_s)
    }
}

/// True if peers delivered the blocks.
pub(super) fn is_there(results: &Results) -> bool {
    results.plan.feed.by.is_relay()
}

/// Measured blocks delivered by peers in runs of one share.
fn blocks<'a>(
    results: &'a Results,
    target: &'a TargetResults,
    seen: f64,
) -> Vec<(&'a BlockRecord, &'a BlockRelay)> {
    let of_run = |run: &&'a Run| run.blocks.iter();
    let runs = target.valid_runs(seen);
    let all = runs.iter().copied().flat_map(|run| of_run(&run));
    all.filter(|block| block.txs > 1 && results.plan.is_measured(&block.phase))
        .filter_map(|block| Some((block, block.relay.as_ref()?)))
        .collect()
}

pub(super) fn tables(results: &Results) -> Vec<Table> {
    let mut tables = vec![times(results)];
    tables.extend(between_targets(results));
    tables
}

fn times(results: &Results) -> Table {
    let head = [
        "Target",
        "Seen",
        "Blocks",
        "Compact, nothing requested",
        "Compact, some requested",
        "Whole block requested",
        "Requested / block",
        "KiB / block",
        "To the request",
        "To the tip",
        "Until it passes it on",
    ];
    let mut table =
        Table::new("Blocks from a peer: medians, milliseconds from the announcement", &head, 1);
    for target in &results.targets {
        for seen in target.seen_shares() {
            let blocks = blocks(results, target, seen);
            let count = |is_it: fn(&BlockRelay) -> bool| {
                blocks.iter().filter(|(_, relay)| is_it(relay)).count().to_string()
            };
            let middle = |value: &dyn Fn(&BlockRelay) -> f64| {
                let values: Vec<f64> = blocks.iter().map(|(_, relay)| value(relay)).collect();
                if values.is_empty() { NONE.to_owned() } else { format!("{:.1}", median(&values)) }
            };
            let [request, tip, relayed] = Time::ALL.map(|time| {
                let of_block = |(block, relay): &(&BlockRecord, &BlockRelay)| time.of(block, relay);
                let values: Vec<f64> = blocks.iter().filter_map(of_block).collect();
                if values.is_empty() { NONE.to_owned() } else { milliseconds(median(&values)) }
            });
            table.push([
                target.name.clone(),
                whole_percent(seen),
                blocks.len().to_string(),
                count(|relay| relay.block_at_s.is_none() && relay.missing == 0),
                count(|relay| relay.block_at_s.is_none() && relay.missing > 0),
                count(|relay| relay.block_at_s.is_some()),
                middle(&|relay| relay.missing as f64),
                middle(&|relay| relay.missing_bytes as f64 / 1024.0),
                request,
                tip,
                relayed,
            ]);
        }
    }
    table
}

/// The first target against each other one, paired by block, share and repeat.
fn between_targets(results: &Results) -> Option<Table> {
    let (first, others) = results.targets.split_first()?;
    // Another chain is other work.
    let on_first = |other: &&TargetResults| other.distinct_keys == first.distinct_keys;
    let others: Vec<&TargetResults> = others.iter().filter(on_first).collect();
    if others.is_empty() {
        return None;
    }
    let head = ["Other target", "Seen", "Until", "Pairs", "Other / first", "Interval", "Coverage"];
    let caption = format!("How many times as long as {} others take, block by block", first.name);
    let mut table = Table::new(&caption, &head, 3);
    for other in others {
        for seen in first.seen_shares() {
            for time in Time::ALL {
                let pairs = pairs(results, (first, other), seen, time);
                let (ours, theirs): (Vec<f64>, Vec<f64>) = pairs.into_iter().unzip();
                let Some(found) = Ratio::of_pairs(&theirs, &ours) else { continue };
                table.push([
                    other.name.clone(),
                    whole_percent(seen),
                    time.name().to_owned(),
                    found.pairs.to_string(),
                    ratio(found.median),
                    format!("{} to {}", ratio(found.low), ratio(found.high)),
                    format!("{} %", in_percent(found.coverage)),
                ]);
            }
        }
    }
    Some(table)
}

fn pairs(
    results: &Results,
    (first, other): (&TargetResults, &TargetResults),
    seen: f64,
    time: Time,
) -> Vec<(f64, f64)> {
    let mut pairs = Vec::new();
    for run in first.valid_runs(seen) {
        let same = |candidate: &&Run| candidate.repeat == run.repeat;
        let Some(same_work) = other.valid_runs(seen).into_iter().find(same) else { continue };
        for (ours, theirs) in run.blocks.iter().zip(&same_work.blocks) {
            if ours.txs < 2 || !results.plan.is_measured(&ours.phase) {
                continue;
            }
            let value = |block: &BlockRecord| time.of(block, block.relay.as_ref()?);
            pairs.extend(value(ours).zip(value(theirs)));
        }
    }
    pairs
}

pub(super) fn prose(results: &Results) -> Vec<String> {
    let observer = "A second peer, which wants compact blocks at once, sees when the node passes a block on; that may be before the node has verified it (BIP152).";
    let clock = results.plan.feed.mock_time.then(|| {
        "The node's clock was set to the time of each block: nodes take compact blocks only near the time of their tip.".to_owned()
    });
    let mut prose = vec![format!(
        "Times begin when the first byte of the compact block, or of the header that announces the block, is sent. {observer}"
    )];
    prose.extend(clock);
    prose
}

fn milliseconds(seconds: f64) -> String {
    format!("{:.2}", seconds * 1000.0)
}
