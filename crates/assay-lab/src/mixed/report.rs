//! Record of the network experiment.

use assay_report::record::{Cell, Outcome, Record, Unit, count};

use super::converge::Convergence;
use super::load::Load;
use super::net::Net;
use super::{MixedOptions, Programs, faults};
use crate::machine::new_record;

pub(super) fn record(
    (options, programs): (&MixedOptions, &Programs),
    net: &Net,
    load: &Load<'_>,
    figures: Vec<Cell>,
    convergence: Convergence,
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
    record.cells.extend(figures);
    let nodes = net.members.len() as u64;
    add_agreement(&mut record, nodes, convergence);
    add_check(&mut record, "no node blames a peer", nodes, faults::blame(net));
    add_check(&mut record, "no node ends a connection", nodes, faults::departures(net));
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

fn add_agreement(record: &mut Record, nodes: u64, found: Convergence) {
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
    pools.extend(found.leftovers.into_iter().chain(found.differences));
    record.notes.extend(found.known_leftovers);
    add_check(record, "mempools, after each node was handed what it lacked", nodes, pools);
    record.notes.extend(found.rejected);
    let fresh = failure(found.fresh_s.is_some(), "not in all mempools");
    record.check("transactions after the load", Outcome::of(found.fresh_txs as u64, fresh));
    let emptied = failure(found.is_emptied, "a mempool is not empty, or tips differ");
    record.check("mempools empty and tips the same at the end", Outcome::of(nodes, emptied));
    let known = found.muhash.iter().filter(|hash| !hash.is_empty()).count() as u64;
    let coins = failure(found.is_muhash_same, "the MuHash of the coins differs");
    record.check("coins", Outcome::of(known.saturating_sub(1), coins));
}
