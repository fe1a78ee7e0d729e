//! Figures of the load by program.

use std::time::{Duration, Instant};

use assay_report::record::{Cell, Record, Unit, bytes, count};
use assay_report::stats::median;
use assay_report::stats::ratio::Ratio;

use super::Programs;
use super::message::Traffic;
use super::net::Net;
use super::record::{Sight, Sights};
use crate::target::Family;

#[derive(Debug, Clone, Copy, Default, PartialEq)]
struct CompactFigures {
    /// Blocks first received as a compact block.
    blocks: u64,
    /// Blocks of these reconstructed without a request.
    at_once: u64,
    /// Blocks of these with a request for missing transactions.
    asked: u64,
    /// Transactions requested for them.
    missing: u64,
    /// Blocks of these finally requested in full.
    given_up: u64,
    /// Blocks received in full.
    whole: u64,
}

/// Cells of the figures of each program, and of the ratios of Assay's times to those of the others.
pub(super) fn cells(net: &Net, programs: &Programs) -> Vec<Cell> {
    let (sights, mut record) = (net.record.lock(), Record::default());
    let Programs { targets, of_nodes } = programs;
    for (program, target) in targets.iter().enumerate() {
        let nodes: Vec<usize> = (0..of_nodes.len()).filter(|at| of_nodes[*at] == program).collect();
        add_program(&mut record, &sights, &target.name, &nodes);
    }
    let is_ours = |program: &usize| targets[*program].family == Family::Assay;
    for ours in (0..targets.len()).filter(is_ours) {
        for other in (0..targets.len()).filter(|program| !is_ours(program)) {
            let (name, against) = (&targets[ours].name, &targets[other].name);
            let case = format!("{name} / {against}");
            for figure in Figure::ALL {
                if let Some(ratio) = figure.ratio(&sights, of_nodes, (ours, other)) {
                    record.add_interval((name, &case), (figure.name(), Unit::Ratio), &ratio);
                }
            }
        }
    }
    record.cells
}

fn add_program(record: &mut Record, sights: &Sights, program: &str, nodes: &[usize]) {
    record.add((program, "", None), &[count("nodes", nodes.len() as u64)]);
    for figure in Figure::ALL {
        let of_nodes = |all: &Vec<Sight>| -> Vec<f64> {
            nodes.iter().filter_map(|node| figure.time(sights, &all[*node])).collect()
        };
        let mut times: Vec<f64> = figure.objects(sights).flat_map(of_nodes).collect();
        times.sort_by(f64::total_cmp);
        let [number, middle, p90] =
            ["number", "median", "p90"].map(|part| format!("{}, {part}", figure.name()));
        record.add(
            (program, "", None),
            &[
                (&middle, Unit::Seconds, (!times.is_empty()).then(|| median(&times))),
                (&p90, Unit::Seconds, times.get(times.len() * 9 / 10).copied()),
                count(&number, times.len() as u64),
            ],
        );
    }
    for (what, traffic) in [
        ("transactions", Traffic::Txs),
        ("blocks", Traffic::Blocks),
        ("other messages", Traffic::Other),
    ] {
        let of_node = |node: &usize| sights.bytes[*node][traffic as usize];
        let sum = |direction: usize| -> u64 { nodes.iter().map(|at| of_node(at)[direction]).sum() };
        record.add(
            (program, "", None),
            &[bytes(&format!("{what} received"), sum(0)), bytes(&format!("{what} sent"), sum(1))],
        );
    }
    for (case, is_settled) in [
        ("compact blocks of old transactions", true),
        ("compact blocks of all transactions", false),
    ] {
        let mut compact = CompactFigures::default();
        for block in sights.blocks.values().filter(|block| block.is_settled == Some(is_settled)) {
            for node in nodes {
                compact.add(&block.nodes[*node]);
            }
        }
        let CompactFigures { blocks, at_once, asked, missing, given_up, whole } = compact;
        record.add(
            (program, case, None),
            &[
                count("compact", blocks),
                count("at once", at_once),
                ("rate", Unit::Percent, Some(100.0 * at_once as f64 / blocks as f64)),
                count("with a request", asked),
                count("requested transactions", missing),
                ("each", Unit::Count, Some(missing as f64 / asked as f64)),
                count("requested whole in the end", given_up),
                count("whole", whole),
            ],
        );
    }
}

impl CompactFigures {
    fn add(&mut self, sight: &Sight) {
        if sight.is_whole {
            self.whole += 1;
        }
        if sight.compact.is_none() {
            return;
        }
        self.blocks += 1;
        self.at_once += u64::from(sight.missing.is_none() && !sight.is_given_up);
        self.asked += u64::from(sight.missing.is_some());
        self.missing += sight.missing.unwrap_or(0) as u64;
        self.given_up += u64::from(sight.is_given_up);
    }
}

/// Latency of transactions or blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Figure {
    /// From the first announcement of a transaction to a node until its announcement to the observer: request and acceptance.
    TxAccepted,
    /// The same to its first announcement to a peer, including the protocol's relay delay: a whole hop.
    TxHop,
    /// From the first announcement of a block, or the first message with it, until the node's announcement to the observer.
    BlockAccepted,
    /// The same to its first announcement to a peer: a whole hop.
    BlockHop,
}

impl Figure {
    const ALL: [Self; 4] = [Self::TxAccepted, Self::TxHop, Self::BlockAccepted, Self::BlockHop];

    const fn name(self) -> &'static str {
        match self {
            Self::TxAccepted => "tx accepted",
            Self::TxHop => "tx hop",
            Self::BlockAccepted => "block accepted",
            Self::BlockHop => "block hop",
        }
    }

    fn objects(self, sights: &Sights) -> Box<dyn Iterator<Item = &Vec<Sight>> + '_> {
        match self {
            Self::TxAccepted | Self::TxHop => Box::new(sights.txs.iter()),
            Self::BlockAccepted | Self::BlockHop => {
                let of_load = sights.blocks.values().filter(|block| block.is_settled.is_some());
                Box::new(of_load.map(|block| &block.nodes))
            }
        }
    }

    /// Time taken; `None` if a link was cut or restored meanwhile or shortly before.
    fn time(self, sights: &Sights, sight: &Sight) -> Option<f64> {
        let end = match self {
            Self::TxAccepted | Self::BlockAccepted => sight.observed?,
            Self::TxHop | Self::BlockHop => sight.passed?,
        };
        let heard = sight.heard.filter(|_| !sight.is_origin)?;
        let took = end.checked_duration_since(heard)?;
        is_quiet(&sights.changes, heard, end).then_some(took.as_secs_f64()).filter(|s| *s > 0.0)
    }

    /// Per object, the median time of Assay's nodes over that of the other program's.
    fn ratio(self, sights: &Sights, of_nodes: &[usize], pair: (usize, usize)) -> Option<Ratio> {
        let middle = |all: &[Sight], program: usize| {
            let nodes = (0..all.len()).filter(|node| of_nodes[*node] == program);
            let times: Vec<f64> = nodes.filter_map(|node| self.time(sights, &all[node])).collect();
            (!times.is_empty()).then(|| median(&times))
        };
        let (ours, others): (Vec<f64>, Vec<f64>) = self
            .objects(sights)
            .filter_map(|all| Some((middle(all, pair.0)?, middle(all, pair.1)?)))
            .unzip();
        Ratio::of_pairs(&ours, &others)
    }
}

fn is_quiet(changes: &[Instant], from: Instant, to: Instant) -> bool {
    let from = from.checked_sub(RECOVERY).unwrap_or(from);
    !changes.iter().any(|change| (from..=to).contains(change))
}

/// Time after a change of links in which delayed messages arrive in bursts.
const RECOVERY: Duration = Duration::from_secs(3);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_with_a_change_of_links_are_left_out() {
        let start = Instant::now();
        let at = |ms| start + Duration::from_millis(ms);
        let sight = Sight { heard: Some(at(5_000)), passed: Some(at(5_250)), ..Sight::default() };
        let mut sights = Sights::default();
        assert_eq!(Figure::TxHop.time(&sights, &sight), Some(0.25));
        assert_eq!(Figure::TxAccepted.time(&sights, &sight), None);
        assert_eq!(Figure::TxHop.time(&sights, &Sight { is_origin: true, ..sight }), None);
        for (change, is_taken) in [(1_000, true), (2_500, false), (5_100, false), (6_000, true)] {
            sights.changes = vec![at(change)];
            assert_eq!(Figure::TxHop.time(&sights, &sight).is_some(), is_taken, "{change}");
        }
    }

    #[test]
    fn compact_blocks_are_counted_once() {
        let compact = Some(Instant::now());
        let mut figures = CompactFigures::default();
        figures.add(&Sight { compact, ..Sight::default() });
        figures.add(&Sight { compact, missing: Some(3), ..Sight::default() });
        figures.add(&Sight { compact, missing: Some(2), is_given_up: true, ..Sight::default() });
        figures.add(&Sight { is_whole: true, ..Sight::default() });
        figures.add(&Sight::default());
        let expected =
            CompactFigures { blocks: 3, at_once: 1, asked: 2, missing: 5, given_up: 1, whole: 1 };
        assert_eq!(figures, expected);
    }
}
