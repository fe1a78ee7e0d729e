//! Blocks delivered by peers: missing transactions of compact blocks, and times until the node had the block and relayed it.

use assay_report::number::whole_percent;
use assay_report::record::{Record, Unit, count};
use assay_report::stats::median_of;
use assay_report::stats::ratio::Ratio;

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

/// Adds medians over the blocks, from their announcement on, and the times of each other target over those of the first. A second
/// peer sees when the node passes a block on, which may be before it verified the block (BIP152).
pub(super) fn add(results: &Results, record: &mut Record) {
    if !is_there(results) {
        return;
    }
    for target in &results.targets {
        for seen in target.seen_shares() {
            let blocks = blocks(results, target, seen);
            let number = |is_it: fn(&BlockRelay) -> bool| {
                blocks.iter().filter(|(_, relay)| is_it(relay)).count() as u64
            };
            let of_block = |value: fn(&BlockRelay) -> u64| {
                median_of(blocks.iter().map(|(_, relay)| value(relay) as f64))
            };
            let time = |time: Time| {
                median_of(blocks.iter().filter_map(|(block, relay)| time.of(block, relay)))
            };
            let figures = [
                ("relay | until it requests what it lacks", Unit::Seconds, time(Time::Request)),
                ("relay | until the tip", Unit::Seconds, time(Time::Tip)),
                ("relay | until it passes it on", Unit::Seconds, time(Time::Relay)),
                count("relay | blocks", blocks.len() as u64),
                count(
                    "relay | compact, nothing requested",
                    number(|relay| relay.block_at_s.is_none() && relay.missing == 0),
                ),
                count(
                    "relay | compact, some requested",
                    number(|relay| relay.block_at_s.is_none() && relay.missing > 0),
                ),
                count("relay | whole block requested", number(|relay| relay.block_at_s.is_some())),
                ("relay | requested of a block", Unit::Count, of_block(|relay| relay.missing)),
                ("relay | size of these", Unit::Bytes, of_block(|relay| relay.missing_bytes)),
            ];
            let label = format!("{}, {} pre-relayed", target.name, whole_percent(seen));
            record.add((&label, "", None), &figures);
        }
    }
    let Some((first, others)) = results.targets.split_first() else { return };
    // Another chain is other work.
    for other in others.iter().filter(|other| other.distinct_keys == first.distinct_keys) {
        for seen in first.seen_shares() {
            for time in Time::ALL {
                let pairs = pairs(results, (first, other), seen, time);
                let (ours, theirs): (Vec<f64>, Vec<f64>) = pairs.into_iter().unzip();
                let Some(ratio) = Ratio::of_pairs(&theirs, &ours) else { continue };
                let target = format!("{} over {}", other.name, first.name);
                let case = format!("{} pre-relayed, {}", whole_percent(seen), time.name());
                let metric = ("relay ratios | time", Unit::Ratio);
                record.add_interval((&target, &case), metric, &ratio);
            }
        }
    }
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
