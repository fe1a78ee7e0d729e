//! Record of a load test.

use std::time::Duration;

use assay_report::record::{Outcome, Record, Unit, count};
use assay_report::stats::{median, median_of, rate};
use clap::ValueEnum as _;
use hdrhistogram::Histogram;

use super::LoadOptions;
use super::check::Counts;
use super::context::Context;
use super::feeder::FedBlock;
use super::mix::Mix;
use super::recorder::{Phase, Place, latency};
use crate::chain::Chain;
use crate::machine::new_record;
use crate::swarm::AttackReport;

/// Lag of the generator at the 99th percentile that is worth a note.
const LAG_MAX: Duration = Duration::from_millis(5);
/// Percentiles of the ratio of two passes.
const PERCENTILES: [&str; 3] = ["p50", "p95", "p99"];

#[derive(Debug)]
pub(super) struct Ended<'a> {
    pub(super) place: Place<'a>,
    /// Numbers of honest and hostile clients.
    pub(super) clients: [usize; 2],
    pub(super) cx: Context<'a>,
    /// Subscriptions made while the clients connected, and the seconds that it took.
    pub(super) start: (u64, f64),
    /// Last statuses of the subscriptions.
    pub(super) subscriptions: Counts,
    pub(super) height: u32,
    /// True if the requesting thread had real-time priority.
    pub(super) is_first: bool,
    pub(super) attacks: Vec<AttackReport>,
    /// Memory of the server: at the start, and its peak.
    pub(super) memory_bytes: [Option<u64>; 2],
}

#[derive(Debug, Default)]
pub(super) struct Sums {
    answers: Counts,
    subscriptions: Counts,
    /// True if a requesting thread had normal priority.
    is_preempted: bool,
    is_late: bool,
    has_memory: bool,
    /// Name and protocol of the server.
    server: [String; 2],
}

pub(super) fn new(options: &LoadOptions, chain: Option<&Chain>) -> Record {
    let here = std::path::Path::new(".");
    let mut record = new_record("load", &options.software, &options.rerun, here);
    record.set("clients", options.clients);
    if let Some(mix) = options.mix.to_possible_value() {
        record.set("mix", mix.get_name());
    }
    if options.mix == Mix::Subscribe {
        record.set("subscriptions of each", options.subscriptions);
    }
    match options.rate {
        Some(rate) => record.set("requests per second", rate),
        None => record.set("requests in flight of each", options.depth),
    }
    record.set("seed", options.seed);
    if let Some(chain) = chain {
        record.set("chain", &chain.header);
    }
    record
}

impl Ended<'_> {
    pub(super) fn add_to(self, record: &mut Record, sums: &mut Sums) {
        let Self { place, cx, subscriptions, attacks, .. } = self;
        let (place, recorder) = (&place, &cx.recorder);
        let blocks = cx.feed.map(|feed| feed.blocks().clone()).unwrap_or_default();
        let phases = if cx.feed.is_some() { &Phase::ALL[..] } else { &Phase::ALL[..2] };
        for phase in phases {
            recorder.add_latencies(record, place, *phase);
        }
        let mut add = |name, histogram: &Histogram<u64>| {
            place.add(record, &[name], &latency(histogram));
        };
        add("notified of headers", &recorder.header_notifications);
        add("notified of scripts", &recorder.script_notifications);
        add("lag", &recorder.lag);
        for phase in phases {
            recorder.add_sums(record, place, *phase);
        }
        add_blocks(record, place, &blocks);
        let [first, peak] = self.memory_bytes.map(|bytes| bytes.map(|bytes| bytes as f64));
        let (answers, (made, seconds)) = (&cx.checker.counts, self.start);
        place.add(
            record,
            &["all phases"],
            &[
                count("honest clients", self.clients[0] as u64),
                count("hostile clients", self.clients[1] as u64),
                count("subscriptions at the start", made),
                ("subscriptions per second", Unit::PerSecond, Some(rate(made as f64, seconds))),
                count("right", answers.right),
                count("stale", answers.stale),
                count("wrong", answers.wrong),
                count("unknown", answers.unknown),
                count("last statuses right", subscriptions.right),
                count("last statuses wrong", subscriptions.stale + subscriptions.wrong),
                count("lost connections", cx.disconnects),
                count("height at the end", self.height.into()),
                count("real-time priority", self.is_first.into()),
                ("server memory", Unit::Bytes, first),
                ("server memory, peak", Unit::Bytes, peak),
            ],
        );
        for attack in &attacks {
            place.add(record, &[&attack.attack], &attack.figures());
        }
        sums.is_preempted |= !self.is_first;
        let lag_ns = recorder.lag.value_at_quantile(0.99);
        sums.is_late |= u128::from(lag_ns) > LAG_MAX.as_nanos();
        sums.has_memory |= peak.is_some();
        sums.answers.add(cx.checker.counts);
        sums.subscriptions.add(subscriptions);
        sums.server = [cx.software, cx.protocol];
    }
}

/// Adds a row for each submitted block, and medians.
fn add_blocks(record: &mut Record, place: &Place<'_>, blocks: &[FedBlock]) {
    let time = |metric, ns: Option<u64>| (metric, Unit::Seconds, ns.map(|ns| ns as f64 / 1e9));
    let times = |block: &FedBlock| {
        [
            time("node's response", block.reply_ns),
            time("first header", block.first_header_ns),
            time("last header", block.last_header_ns),
            time("last script", block.last_script_ns),
        ]
    };
    let row = |block: &FedBlock| {
        let [reply, first, last, script] = times(block);
        let (height, txs) =
            (count("height", block.height.into()), count("transactions", block.txs));
        [height, txs, reply, first, last, script, count("scripts", block.script_notifications)]
    };
    let case = [Phase::Blocks.name()];
    place.add_series(record, &case, &blocks.iter().map(row).collect::<Vec<_>>());
    let Some(first) = blocks.first() else { return };
    place.add(record, &case, &[count("blocks", blocks.len() as u64)]);
    for (index, (name, unit, _)) in times(first).into_iter().enumerate() {
        let middle = median_of(blocks.iter().filter_map(|block| times(block)[index].2));
        place.add(record, &case, &[(&format!("{name}, median"), unit, middle)]);
    }
}

/// Adds ratios, checks and notes. `is_known` is true if the scripts of the chain are known.
pub(super) fn finish(record: &mut Record, options: &LoadOptions, is_known: bool, sums: Sums) {
    let [software, protocol] = &sums.server;
    let tls = if options.tls { " (TLS)" } else { "" };
    let server = format!("{software} at {}{tls}, protocol {protocol}", options.address);
    record.setup.insert(0, ("server".to_owned(), server));
    let [quiet, hostile] = ["quiet, idle, all", "hostile, idle, all"];
    record.add_ratios(hostile, quiet);
    let ratios = format!("{hostile} / {quiet}");
    let is_pair = !record.values(&ratios, PERCENTILES[0]).is_empty();
    let (case, unit) =
        if is_pair { (ratios.as_str(), Unit::Ratio) } else { ("idle, all", Unit::Seconds) };
    let latencies = PERCENTILES.map(|percentile| {
        format!("{percentile} {}", unit.format(median(&record.values(case, percentile))))
    });
    let what = if is_pair { "latency with hostile clients over without" } else { "latency" };
    record.headline = format!("{software}: {what} {}.", latencies.join(", "));

    let Sums { answers, subscriptions, .. } = sums;
    let mut check = |name, counts: &Counts| {
        let bad = counts.stale + counts.wrong;
        let failure = (bad > 0).then(|| {
            let example = counts.examples.first().map_or("", String::as_str);
            format!("{bad} of {} are not, the first {example}", counts.compared())
        });
        record.check(name, Outcome::of(counts.compared(), failure));
    };
    check("responses are those of the chain", &answers);
    // Wallets may have no subscription at the end.
    if options.mix == Mix::Subscribe || subscriptions.compared() > 0 {
        check("statuses are those of the last block", &subscriptions);
    }
    record.notes.extend(answers.examples.into_iter().chain(subscriptions.examples));
    let is_watched = options.server_pid.is_some() || options.server_metrics.is_some();
    let notes = [
        (cfg!(debug_assertions), "This is a debug build."),
        (
            options.rate.is_none(),
            "Without a rate each client waits for its responses, so a stall of the server delays the requests behind it and \
             is not part of their latency; --rate includes it.",
        ),
        (
            options.rate.is_some() && sums.is_preempted,
            "The system gives the generator no real-time priority: latencies include the time that its thread waits for a core.",
        ),
        (
            !is_known,
            "The scripts of the chain are not known: responses about used ones were not checked.",
        ),
        (is_watched && !sums.has_memory, "The server's memory could not be read."),
        (sums.is_late, "The generator was late: latencies include its own delay (lag)."),
    ];
    let notes = notes.into_iter().filter(|(is_true, _)| *is_true);
    record.notes.extend(notes.map(|(_, note)| note.to_owned()));
}
