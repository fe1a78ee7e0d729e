//! Record of the network experiment.

use assay_report::record::{Outcome, Record, Unit, bytes, count};

use super::converge::{Convergence, Difference, Leftover, Rejection};
use super::faults::{Departure, Fault, departures};
use super::figures::{CompactFigures, Figures, Latency, ProgramFigures, RatioOf};
use super::load::Load;
use super::net::Net;
use super::outdated::Outdated;
use super::{MixedOptions, Programs};
use crate::machine::new_record;

pub(super) fn record(
    (options, programs): (&MixedOptions, &Programs),
    net: &Net,
    load: &Load<'_>,
    figures: &Figures,
    convergence: &Convergence,
    faults: &[Fault],
) -> Record {
    let mut record = new_record("network", &options.software, &options.rerun, &options.out_dir);
    record.set("links", net.links());
    record.set("rate of each link", format!("{} Mbit/s", options.bits_per_s / 1e6));
    let round_trip_ms = options.round_trip.as_secs_f64() * 1000.0;
    record.set("round trip", format!("{round_trip_ms} ms"));
    record.set("seed", options.seed);
    for (member, missed) in net.members.iter().zip(&convergence.missed) {
        let look = member.node.look();
        record.set(&member.name, &programs.targets[member.program].version);
        record.add(
            (&member.name, "", None),
            &[
                ("CPU time", Unit::Seconds, look.cpu_s),
                ("peak memory", Unit::Bytes, look.rss_peak_bytes.map(|bytes| bytes as f64)),
                count("transactions lacked after relay", *missed as u64),
            ],
        );
    }
    for (member, muhash) in net.members.iter().zip(&convergence.muhash) {
        record.set(&format!("MuHash at {}", member.name), muhash);
    }
    add_load(&mut record, programs, load);
    figures.programs.iter().for_each(|program| add_program(&mut record, program));
    for RatioOf { figure, ours, against, ratio } in &figures.ratios {
        let case = format!("{ours} / {against}");
        record.add_interval((ours, &case), (figure, Unit::Ratio), ratio);
    }
    add_agreement(&mut record, net.members.len() as u64, convergence);
    let nodes = net.members.len() as u64;
    let blame = faults.iter().map(|Fault { node, count, lines }| {
        format!("{node} blames peers in {count} lines of its log: {}", lines.join("; "))
    });
    add_check(&mut record, "no node blames a peer", nodes, blame.collect());
    let end = departures(net).into_iter().map(|Departure { by, from, count, first_s }| {
        format!("{by} ended its connection to {from} {count} times, first after {first_s:.1} s")
    });
    add_check(&mut record, "no node ends a connection", nodes, end.collect());
    let agree = if record.has_passed() { "agree" } else { "do NOT agree" };
    record.headline = format!(
        "{nodes} nodes {agree} after {} transactions, {} blocks and {} partitions.",
        load.tally.txs,
        load.tally.blocks,
        load.tally.held + load.tally.broken
    );
    record
}

/// Adds a check that fails with the first of `findings`; all of them become notes.
fn add_check(record: &mut Record, name: &str, compared: u64, findings: Vec<String>) {
    record.check(name, Outcome::of(compared, findings.first().cloned()));
    record.notes.extend(findings);
}

fn add_load(record: &mut Record, programs: &Programs, load: &Load<'_>) {
    let tally = &load.tally;
    record.add(
        ("load", "", None),
        &[
            ("duration", Unit::Seconds, Some(tally.took.as_secs_f64())),
            count("transactions", tally.txs),
            count("replacements and conflicts", tally.replacements),
            count("blocks", tally.blocks),
            count("blocks of old transactions", tally.settled_blocks),
            count("partitions that delay messages", tally.held),
            count("partitions that close connections", tally.broken),
            ("time with a partition", Unit::Seconds, Some(tally.partitioned.as_secs_f64())),
        ],
    );
    for ((program, reason), rejected) in &tally.rejected {
        let metric = format!("rejected by {}: {reason}", programs.targets[*program].name);
        record.add(("load", "", None), &[count(&metric, *rejected)]);
    }
}

fn add_program(record: &mut Record, figures: &ProgramFigures) {
    let program = figures.program.as_str();
    record.add((program, "", None), &[count("nodes", figures.nodes as u64)]);
    for (name, Latency { count: samples, median_s, p90_s }) in &figures.latencies {
        let [number, median, p90] =
            ["number", "median", "p90"].map(|part| format!("{name}, {part}"));
        let time = |time_s: f64| (*samples > 0).then_some(time_s);
        record.add(
            (program, "", None),
            &[
                (&median, Unit::Seconds, time(*median_s)),
                (&p90, Unit::Seconds, time(*p90_s)),
                count(&number, *samples as u64),
            ],
        );
    }
    for (what, [received, sent]) in [
        ("transactions", figures.tx_bytes),
        ("blocks", figures.block_bytes),
        ("other messages", figures.other_bytes),
    ] {
        record.add(
            (program, "", None),
            &[bytes(&format!("{what} received"), received), bytes(&format!("{what} sent"), sent)],
        );
    }
    for (case, compact) in [
        ("compact blocks of old transactions", &figures.compact_settled),
        ("compact blocks of all transactions", &figures.compact_fresh),
    ] {
        let CompactFigures { blocks, at_once, asked, missing, given_up, whole } = *compact;
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

fn add_agreement(record: &mut Record, nodes: u64, found: &Convergence) {
    record.add(
        ("agreement", "", None),
        &[
            count("blocks until all tips are the same", found.tip_blocks.into()),
            ("all tips the same after", Unit::Seconds, found.tip_s),
            count("height", found.height.into()),
            count("transactions of all mempools", found.pool_txs as u64),
            count("transactions after the load", found.fresh_txs as u64),
            ("in all mempools after", Unit::Seconds, found.fresh_s),
            count("last blocks", found.last_blocks.into()),
        ],
    );
    let failure = |is_good: bool, text: &str| (!is_good).then(|| text.to_owned());
    let tips = failure(found.tip_s.is_some(), "the tips differ");
    record.check("tips", Outcome::of(nodes, tips));
    let mut pools: Vec<String> = Vec::new();
    pools.extend(failure(found.is_pool_same, "the mempools differ"));
    for Leftover { node, because, txs, txid, is_known } in &found.leftovers {
        let which = match because {
            Outdated::Confirmed => "that are confirmed",
            Outdated::DoubleSpent => "whose inputs other confirmed ones spend",
        };
        let text = format!("{node} keeps {txs} {which} (such as {txid})");
        if *is_known {
            record.notes.push(text + ", as btcd does after reorganisations");
        } else {
            pools.push(text);
        }
    }
    pools.extend(found.differences.iter().map(|Difference { node, txid, reason }| {
        let reason = if reason.is_empty() { "was not asked" } else { reason };
        format!("{node} lacks {txid}: {reason}")
    }));
    add_check(record, "mempools, after each node was handed what it lacked", nodes, pools);
    for Rejection { node, reason, txs, txid } in &found.rejected {
        record.notes.push(format!("{node} rejected {txs}: {reason} (such as {txid})"));
    }
    let fresh = failure(found.fresh_s.is_some(), "not in all mempools");
    record.check("transactions after the load", Outcome::of(found.fresh_txs as u64, fresh));
    let emptied = failure(found.is_emptied, "a mempool is not empty, or tips differ");
    record.check("mempools empty and tips the same at the end", Outcome::of(nodes, emptied));
    let known = found.muhash.iter().filter(|hash| !hash.is_empty()).count() as u64;
    let coins = failure(found.is_muhash_same, "the MuHash of the coins differs");
    record.check("coins", Outcome::of(known.saturating_sub(1), coins));
}
