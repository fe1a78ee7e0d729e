//! Figures of the load by program.

use std::time::{Duration, Instant};

use assay_report::stats::median;
use assay_report::stats::ratio::Ratio;

use super::Programs;
use super::net::Net;
use super::record::{BlockSights, Sight, Sights};
use crate::target::Family;

/// Figures of the nodes of one program.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct ProgramFigures {
    pub(super) program: String,
    pub(super) nodes: usize,
    /// By figure.
    pub(super) latencies: [(&'static str, Latency); 4],
    /// Compact blocks of transactions at least ten seconds old.
    pub(super) compact_settled: CompactFigures,
    /// Compact blocks of the miner's whole mempool.
    pub(super) compact_fresh: CompactFigures,
    /// Bytes of transaction messages, received and sent.
    pub(super) tx_bytes: [u64; 2],
    /// Bytes of block messages, received and sent.
    pub(super) block_bytes: [u64; 2],
    /// Bytes of other messages, received and sent.
    pub(super) other_bytes: [u64; 2],
}

#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Latency {
    pub(super) count: usize,
    pub(super) median_s: f64,
    pub(super) p90_s: f64,
}

#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct CompactFigures {
    /// Blocks first received as a compact block.
    pub(super) blocks: u64,
    /// Blocks of these reconstructed without a request.
    pub(super) at_once: u64,
    /// Blocks of these with a request for missing transactions.
    pub(super) asked: u64,
    /// Transactions requested for them.
    pub(super) missing: u64,
    /// Blocks of these finally requested in full.
    pub(super) given_up: u64,
    /// Blocks received in full.
    pub(super) whole: u64,
}

/// Assay against another program: times of the same transactions or blocks.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct RatioOf {
    pub(super) figure: String,
    pub(super) ours: String,
    pub(super) against: String,
    /// Ratio to the other's time, per transaction or block that nodes of both received from peers.
    pub(super) ratio: Ratio,
}

pub(super) struct Figures {
    pub(super) programs: Vec<ProgramFigures>,
    pub(super) ratios: Vec<RatioOf>,
}

pub(super) fn of(net: &Net, programs: &Programs) -> Figures {
    let sights = net.record.lock();
    let of = |program: usize| {
        let nodes: Vec<usize> =
            (0..net.members.len()).filter(|at| net.members[*at].program == program).collect();
        program_figures(&sights, &nodes, &programs.targets[program].name)
    };
    let all = (0..programs.targets.len()).map(of).collect();
    let families: Vec<Family> = programs.targets.iter().map(|target| target.family).collect();
    let of_nodes = &programs.of_nodes;
    let mut ratios = Vec::new();
    for ours in (0..families.len()).filter(|at| families[*at] == Family::Assay) {
        for other in (0..families.len()).filter(|at| families[*at] != Family::Assay) {
            let name = |program: usize| programs.targets[program].name.clone();
            for figure in Figure::ALL {
                if let Some(ratio) = figure.ratio(&sights, of_nodes, (ours, other)) {
                    let (ours, against) = (name(ours), name(other));
                    ratios.push(RatioOf { figure: figure.name().to_owned(), ours, against, ratio });
                }
            }
        }
    }
    Figures { programs: all, ratios }
}

fn program_figures(sights: &Sights, nodes: &[usize], name: &str) -> ProgramFigures {
    let latency = |figure: Figure| {
        let of_nodes = |all: &Vec<Sight>| -> Vec<f64> {
            nodes.iter().filter_map(|node| figure.time(sights, &all[*node])).collect()
        };
        Latency::of(figure.objects(sights).flat_map(of_nodes).collect())
    };
    let mut found = ProgramFigures {
        program: name.to_owned(),
        nodes: nodes.len(),
        latencies: Figure::ALL.map(|figure| (figure.name(), latency(figure))),
        ..ProgramFigures::default()
    };
    for node in nodes {
        let bytes = &sights.bytes[*node];
        for direction in 0..2 {
            found.tx_bytes[direction] += bytes.txs[direction];
            found.block_bytes[direction] += bytes.blocks[direction];
            found.other_bytes[direction] += bytes.other[direction];
        }
        for block in sights.blocks.values() {
            match block.is_settled {
                Some(true) => found.compact_settled.add(&block.nodes[*node]),
                Some(false) => found.compact_fresh.add(&block.nodes[*node]),
                None => {}
            }
        }
    }
    found
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

impl Latency {
    fn of(mut times: Vec<f64>) -> Self {
        times.sort_by(f64::total_cmp);
        let p90_s = times.get(times.len() * 9 / 10).copied().unwrap_or_default();
        Self { count: times.len(), median_s: median(&times), p90_s }
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
                Box::new(sights.blocks.values().filter(|block| is_of_load(block)).map(|b| &b.nodes))
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

fn is_of_load(block: &BlockSights) -> bool {
    block.is_settled.is_some()
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
