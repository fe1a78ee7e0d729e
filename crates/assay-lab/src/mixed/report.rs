//! Results of the network experiment.

use std::path::Path;

use assay_report::Table;
use assay_report::atomic_file::{self, WriteError};
use assay_report::number;
use serde::{Deserialize, Serialize};

use super::converge::{Convergence, Leftover, Rejection};
use super::faults::{self, Departure, Fault};
use super::figures::{CompactFigures, Figures, Latency, ProgramFigures, RatioOf};
use super::load::Load;
use super::net::Net;
use super::outdated::Outdated;
use super::{MixedOptions, Programs};
use crate::machine::Machine;
use crate::machine::clock::{iso8601, unix_ms};

/// Version of `network.json`.
const SCHEMA: u32 = 1;

/// Results of the experiment; written as `network.json`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MixedReport {
    pub schema: u32,
    /// End of the run, ISO 8601 in UTC.
    pub created: String,
    pub nodes: Vec<NodeEntry>,
    pub links: usize,
    /// Rate of each link, bits per second.
    pub bits_per_s: f64,
    /// Round-trip time of a link in milliseconds.
    pub round_trip_ms: f64,
    /// Seed of all random choices.
    pub seed: u64,
    pub load: LoadFigures,
    pub programs: Vec<ProgramFigures>,
    /// Assay against the other programs.
    pub ratios: Vec<RatioOf>,
    /// Convergence after the load.
    pub convergence: Convergence,
    /// Log lines that blame a peer.
    pub faults: Vec<Fault>,
    /// Connections closed by nodes.
    pub departures: Vec<Departure>,
    pub machine: Machine,
    /// Version of Assay.
    pub assay: String,
    /// Command line that repeats the run.
    pub rerun: String,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct NodeEntry {
    pub name: String,
    /// Version string of its program.
    pub version: String,
    pub cpu_s: Option<f64>,
    /// Peak resident memory.
    pub memory_peak_bytes: Option<u64>,
}

/// Counts of the load.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct LoadFigures {
    /// Duration in seconds.
    pub seconds: f64,
    /// Accepted transactions.
    pub txs: u64,
    /// Replacements, and conflicts with transactions at other nodes.
    pub replacements: u64,
    pub blocks: u64,
    /// Blocks of transactions at least ten seconds old.
    pub settled_blocks: u64,
    /// Partitions that delayed messages.
    pub held: u64,
    /// Partitions that closed connections.
    pub broken: u64,
    pub partitioned_s: f64,
    /// RPC rejections: program, reason and number.
    pub rejected: Vec<(String, String, u64)>,
}

impl MixedReport {
    pub(super) fn blank(options: &MixedOptions, machine: &Machine) -> Self {
        Self {
            schema: SCHEMA,
            created: iso8601(unix_ms()),
            nodes: Vec::new(),
            links: 0,
            bits_per_s: options.bits_per_s,
            round_trip_ms: options.round_trip.as_secs_f64() * 1000.0,
            seed: options.seed,
            load: LoadFigures::default(),
            programs: Vec::new(),
            ratios: Vec::new(),
            convergence: Convergence::default(),
            faults: Vec::new(),
            departures: Vec::new(),
            machine: machine.clone(),
            assay: options.assay_version.clone(),
            rerun: options.rerun.clone(),
        }
    }

    pub(super) fn fill(
        &mut self,
        net: &Net,
        programs: &Programs,
        load: &Load<'_>,
        figures: Figures,
    ) {
        let entry = |member: &super::net::Member| {
            let look = member.node.look();
            NodeEntry {
                name: member.name.clone(),
                version: programs.targets[member.program].version.clone(),
                cpu_s: look.cpu_s,
                memory_peak_bytes: look.rss_peak_bytes,
            }
        };
        self.nodes = net.members.iter().map(entry).collect();
        self.links = net.links();
        let tally = &load.tally;
        let rejected = tally.rejected.iter().map(|((program, reason), count)| {
            (programs.targets[*program].name.clone(), reason.clone(), *count)
        });
        self.load = LoadFigures {
            seconds: tally.took.as_secs_f64(),
            txs: tally.txs,
            replacements: tally.replacements,
            blocks: tally.blocks,
            settled_blocks: tally.settled_blocks,
            held: tally.held,
            broken: tally.broken,
            partitioned_s: tally.partitioned.as_secs_f64(),
            rejected: rejected.collect(),
        };
        self.departures = faults::departures(net);
        (self.programs, self.ratios) = (figures.programs, figures.ratios);
    }

    pub(super) fn write(&self, out_dir: &Path) -> Result<(), WriteError> {
        let path = out_dir.join("network.json");
        let json = serde_json::to_vec_pretty(self)
            .map_err(|error| WriteError { path: path.clone(), source: error.into() })?;
        atomic_file::write(&path, &json)
    }

    /// True if all nodes agree at the end, and none blamed another or closed a connection.
    pub fn is_good(&self) -> bool {
        self.convergence.is_good() && self.faults.is_empty() && self.departures.is_empty()
    }

    pub fn terminal(&self) -> String {
        let mut text = self.front();
        self.latencies().text(&mut text);
        text.push('\n');
        self.compact().text(&mut text);
        text.push('\n');
        if !self.ratios.is_empty() {
            self.ratio_table().text(&mut text);
            text.push('\n');
        }
        text.push_str(&self.agreement());
        text
    }

    fn front(&self) -> String {
        let load = &self.load;
        let mut names: Vec<String> = Vec::new();
        for program in &self.programs {
            names.push(format!("{} {}", program.nodes, program.program));
        }
        format!(
            "{}; {} links of {:.0} Mbit/s and {:.0} ms round trip; {:.0} s, {} transactions ({} replacements), {} blocks, {} partitions ({:.0} s)\n\n",
            names.join(", "),
            self.links,
            self.bits_per_s / 1e6,
            self.round_trip_ms,
            load.seconds,
            number::count(load.txs),
            number::count(load.replacements),
            number::count(load.blocks),
            load.held + load.broken,
            load.partitioned_s,
        )
    }

    fn latencies(&self) -> Table {
        let head = [
            "program",
            "tx accepted",
            "p90",
            "tx hop",
            "p90",
            "block accepted",
            "p90",
            "block hop",
            "p90",
            "MiB in",
            "out",
        ];
        let title = "Latency from the first announcement that a node gets, median and p90, ms";
        let mut table = Table::new(title, &head, 1);
        for program in &self.programs {
            let bytes = |direction: usize| {
                program.tx_bytes[direction]
                    + program.block_bytes[direction]
                    + program.other_bytes[direction]
            };
            let [accepted, accepted_p90] = program.tx_accepted.cells();
            let [hop, hop_p90] = program.tx_hop.cells();
            let [block_accepted, block_accepted_p90] = program.block_accepted.cells();
            let [block_hop, block_hop_p90] = program.block_hop.cells();
            table.push([
                program.program.clone(),
                accepted,
                accepted_p90,
                hop,
                hop_p90,
                block_accepted,
                block_accepted_p90,
                block_hop,
                block_hop_p90,
                number::mib(bytes(0)),
                number::mib(bytes(1)),
            ]);
        }
        table
    }

    fn compact(&self) -> Table {
        let head = [
            "program",
            "blocks of",
            "compact",
            "at once",
            "rate",
            "requested txs",
            "each",
            "whole",
        ];
        let mut table = Table::new("Compact blocks", &head, 2);
        for program in &self.programs {
            let kinds = [
                ("old transactions", &program.compact_settled),
                ("all transactions", &program.compact_fresh),
            ];
            for (kind, figures) in kinds {
                table.push(figures.row(&program.program, kind));
            }
        }
        table
    }

    fn ratio_table(&self) -> Table {
        let head = ["figure", "programs", "pairs", "ratio", "low", "high"];
        let mut table =
            Table::new("Time of ours / time of the other, same transactions and blocks", &head, 2);
        for RatioOf { figure, ours, against, ratio } in &self.ratios {
            table.push([
                figure.clone(),
                format!("{ours} / {against}"),
                ratio.pairs.to_string(),
                number::ratio(ratio.median),
                number::ratio(ratio.low),
                number::ratio(ratio.high),
            ]);
        }
        table
    }

    /// Sentences about the agreement of nodes.
    fn agreement(&self) -> String {
        let found = &self.convergence;
        let mut lines = vec![match found.tip_s {
            Some(seconds) => format!(
                "tips: the same at height {}, {seconds:.1} s after the load or the last of {} blocks made for it",
                found.height, found.tip_blocks
            ),
            None => "tips: NOT the same".to_owned(),
        }];
        let missed: Vec<String> =
            self.nodes.iter().zip(&found.missed).map(|(n, m)| format!("{} {m}", n.name)).collect();
        lines.push(format!(
            "mempools: {} transactions; lacked after relay: {}; after each was handed what it lacked: {}",
            found.pool_txs,
            missed.join(", "),
            if found.is_pool_same { "the same" } else { "NOT the same" }
        ));
        for Leftover { node, because, txs, txid, is_known } in &found.leftovers {
            let known = if *is_known { ", as btcd does after reorganisations" } else { "" };
            let which = match because {
                Outdated::Confirmed => "that are confirmed",
                Outdated::DoubleSpent => "whose inputs other confirmed ones spend",
            };
            lines.push(format!("  {node} keeps {txs} {which}{known} (such as {txid})"));
        }
        for Rejection { node, reason, txs, txid } in &found.rejected {
            lines.push(format!("  {node} rejected {txs}: {reason} (such as {txid})"));
        }
        for difference in found.differences.iter().take(DIFFERENCES) {
            let reason =
                if difference.reason.is_empty() { "was not asked" } else { &difference.reason };
            lines.push(format!("  {} lacks {}: {reason}", difference.node, difference.txid));
        }
        lines.push(match found.fresh_s {
            Some(seconds) => format!(
                "{} transactions after the load: in all mempools after {seconds:.1} s",
                found.fresh_txs
            ),
            None => format!("{} transactions after the load: NOT in all mempools", found.fresh_txs),
        });
        lines.push(format!(
            "after {} blocks more: mempools {}, coins {}",
            found.last_blocks,
            if found.is_emptied { "empty and tips the same" } else { "NOT empty" },
            if found.is_muhash_same { "the same" } else { "NOT the same" }
        ));
        for Departure { by, from, count, first_s } in &self.departures {
            let times = format!("{count} times, first after {first_s:.1} s");
            lines.push(format!("{by} ended its connection to {from} {times}"));
        }
        for Fault { node, count, lines: found } in &self.faults {
            lines.push(format!("{node} blames peers in {count} lines of its log:"));
            lines.extend(found.iter().map(|line| format!("  {line}")));
        }
        if self.faults.is_empty() && self.departures.is_empty() {
            lines.push("no node blamed a peer or ended a connection".to_owned());
        }
        lines.join("\n") + "\n"
    }
}

impl Latency {
    fn cells(&self) -> [String; 2] {
        if self.count == 0 {
            return Default::default();
        }
        [self.median_s, self.p90_s].map(|seconds| format!("{:.1}", seconds * 1000.0))
    }
}

impl CompactFigures {
    fn row(&self, program: &str, kind: &str) -> [String; 8] {
        let each = |count: u64, of: u64| {
            if of == 0 { String::new() } else { format!("{:.1}", count as f64 / of as f64) }
        };
        [
            program.to_owned(),
            kind.to_owned(),
            self.blocks.to_string(),
            self.at_once.to_string(),
            self.rate().map(number::percent).unwrap_or_default(),
            self.missing.to_string(),
            each(self.missing, self.asked),
            self.whole.to_string(),
        ]
    }
}

/// Maximum number of printed differences.
const DIFFERENCES: usize = 20;
