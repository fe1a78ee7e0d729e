//! The sentences of the report.

use assay_report::number::{count, percent, rate, ratio, seconds, whole_percent};
use assay_report::stats::{median, rate as divide};

use super::{own_chain, series};
use crate::machine::ReferenceRate;
use crate::plan::{Delivery, Rate, SeenMode};
use crate::results::{Results, Run, Status, disturbance};

pub(super) const BLOCKS: &str = "Service time runs from sending the first byte of a block to its \
being the tip, as a second connection sees it; it includes transfer, hexadecimal and JSON decoding. \
Waiting is the time a block was due but not sent: the laboratory reads and encodes it, and asks for \
the mempool. Waiting is not part of any rate. Vertical axes are logarithmic. Disk use is what the \
node's process read from the disk and wrote to it, past the page cache: during service times, and \
between blocks, when it takes transactions and writes in the background. An index in the node's \
process is a part of it; what is written at shutdown is in the resources of the run only.";

pub(super) const RESOURCES: &str = "Sampled ten times a second from outside. Read and written count \
what reached the disk, not the page cache. Start runs from starting the process to its first answer; \
stop from the call of `stop` to the end of the process, so it includes what the node writes out at \
the end. The laboratory's own CPU time during the run is shown because it shares the cores: reading \
and encoding blocks, sending, sampling. The control load is a fixed integer loop of the laboratory, run before and after.";

/// The same for syncs.
pub(super) const RESOURCES_OF_SYNCS: &str = "Sampled ten times a second from outside. Read and written \
count what reached the disk, not the page cache. Start runs from starting the process to its first \
answer, of programs that answer. Stop runs to the end of the process, from the call of `stop`, or \
from the tip where a program ends by itself, so it includes what is written out at the end. The \
laboratory's own CPU time during the run is shown because it shares the cores. The control load is a \
fixed integer loop of the laboratory, run before and after.";

/// Change of the control load above which the machine was not quiet.
const UNREST: f64 = 0.1;

pub(super) const VERIFICATION: &str = "A run counts only if the target ends on the tip of the \
ledger, and if everything else it reports is equal too: its UTXO set, its number of transactions in \
every block. The tip's hash commits to the contents of every block, hence to the inputs and outputs \
counted here.";

/// Sentences of the first section.
pub(super) fn summary(results: &Results) -> Vec<String> {
    let chain = &results.chain;
    let what = own_chain::sentence(results).unwrap_or_else(|| {
        format!(
            "{} blocks with {} transactions, {} inputs, {} outputs and {} signatures ({} at scale {}, \
             seed {})",
            count(u64::from(chain.height)),
            count(chain.txs),
            count(chain.inputs),
            count(chain.outputs),
            count(chain.signatures),
            chain.recipe,
            chain.scale,
            chain.seed,
        )
    });
    let mut out = vec![format!(
        "{what}, validated by {} in {}.",
        versions(results).join(", "),
        match results.runs().count() {
            1 => "one run".to_owned(),
            runs => format!("{runs} runs"),
        },
    )];
    out.push(format!("Measured on {}.", results.machine.in_short()));
    out.extend(headlines(results).into_iter().map(|line| format!("- {line}")));
    out
}

/// Figures of each series, the index and the reference rate in words, for the section on runs.
pub(super) fn headlines(results: &Results) -> Vec<String> {
    let mut out: Vec<String> = Vec::new();
    let is_sync = super::sync::is_one(results);
    out.extend(super::sync::standing(results).filter(|_| is_sync));
    for series in series::all(results) {
        if is_sync {
            out.extend(super::sync::headline(results, &series));
            continue;
        }
        let value = |figure| series.phase("total", figure).unwrap_or_default();
        out.push(format!(
            "{}: {} tx/s, {} inputs/s, {} MiB/s over {} s of service time; {} of the transactions \
             were really in the mempool",
            series.label,
            rate(value(|phase| phase.tx_per_s)),
            rate(value(|phase| phase.inputs_per_s)),
            rate(value(|phase| phase.mib_per_s)),
            seconds(value(|phase| phase.seconds)),
            percent(value(|phase| phase.seen_measured)),
        ));
    }
    if is_sync {
        out.extend(super::sync::doubts(results));
    }
    out.extend(super::scaling::headlines(results));
    out.extend(super::index::headlines(results));
    out.extend(reference_rate(results));
    out.extend(noise(results).map(|(line, _)| line));
    out
}

/// Caveats independent of the plan.
pub(super) fn caveats(results: &Results) -> Vec<String> {
    let mut out = Vec::new();
    for run in results.void_runs() {
        let reason = run.void_reason.as_deref().unwrap_or("no reason was kept");
        out.push(format!("{} is discarded: {reason}", run.id));
    }
    out.extend(disturbances(results));
    out.extend(noise(results).filter(|(_, is_unrest)| *is_unrest).map(|(line, _)| line));
    out.extend(super::verdict::ran_once(results));
    out
}

/// Distinct versions of the targets.
fn versions(results: &Results) -> Vec<&str> {
    let mut versions: Vec<&str> = Vec::new();
    for target in &results.targets {
        if !versions.contains(&target.version.as_str()) {
            versions.push(&target.version);
        }
    }
    versions
}

/// ECDSA verifications per second of the reference library on one thread, times the cores.
pub(super) fn reference_per_s(results: &Results) -> Option<f64> {
    mean(results, |rates| rates.ecdsa_verify_per_s)
        .map(|verify| verify * results.machine.cores as f64)
}

fn mean(results: &Results, rate: fn(&ReferenceRate) -> Option<f64>) -> Option<f64> {
    let rates: Vec<f64> = results.reference_rates.iter().filter_map(rate).collect();
    (!rates.is_empty()).then(|| rates.iter().sum::<f64>() / rates.len() as f64)
}

/// Signatures per second against the reference library on all cores.
fn reference_rate(results: &Results) -> Vec<String> {
    let cores = results.machine.cores;
    let mut out = Vec::new();
    if let Some(all) = reference_per_s(results) {
        let verify = all / cores as f64;
        let library = results
            .reference_rates
            .iter()
            .find_map(|reference_rate| reference_rate.library.as_deref());
        out.push(format!(
            "reference library ({}), one thread: {} ECDSA verifications/s; times {cores} cores: {}",
            library.unwrap_or("unnamed"),
            rate(verify),
            rate(all)
        ));
        // The signatures of a chain that was not forged are unknown.
        let all_series = series::all(results);
        let counted = all_series.iter().filter(|_| results.chain.signatures > 0);
        for series in counted.filter(|series| series.seen <= 0.0) {
            let ours = if super::sync::is_one(results) {
                super::sync::signatures_per_s(results, series)
            } else {
                series.phase("total", |phase| phase.signatures_per_s).unwrap_or_default()
            };
            out.push(format!(
                "{}: {} signatures/s measured from outside = {} of cores × reference library",
                series.label,
                rate(ours),
                percent(divide(ours, all))
            ));
        }
    }
    out.extend(batches(results));
    let forged = results.chain.forge_s.filter(|seconds| *seconds > 0.0);
    if let Some((sign, forge_s)) = mean(results, |rates| rates.ecdsa_sign_per_s).zip(forged) {
        let ours = results.chain.signatures as f64 / forge_s;
        let all = sign * cores as f64;
        out.push(format!(
            "forge: {} signatures/s over the whole of forging = {} of cores × the reference \
             library's signing rate ({} per thread)",
            rate(ours),
            percent(divide(ours, all)),
            rate(sign)
        ));
    }
    out
}

/// Signatures per second per phase, next to the rate of Assay's batches on all cores.
fn batches(results: &Results) -> Vec<String> {
    let cores = results.machine.cores;
    let Some(verify) = mean(results, |rates| rates.batch_ecdsa_verify_per_s) else {
        return Vec::new();
    };
    let all = verify * cores as f64;
    let backend = results.reference_rates.iter().find_map(|rates| rates.batch_backend.as_deref());
    let mut out = vec![format!(
        "our own batches ({}), one thread: {} ECDSA verifications/s; times {cores} cores: {}",
        backend.unwrap_or("unnamed"),
        rate(verify),
        rate(all)
    )];
    let all_series = series::all(results);
    let cold = all_series.iter().filter(|series| series.seen <= 0.0);
    for series in cold.filter(|_| !super::sync::is_one(results)) {
        let share = |(name, title): (String, String)| {
            let done = series.phase(&name, |phase| phase.signatures_per_s)?;
            (done > 0.0).then(|| format!("{title} {}", percent(divide(done, all))))
        };
        let shares: Vec<String> =
            series::measured_phases(results).into_iter().filter_map(share).collect();
        if !shares.is_empty() {
            let shares = shares.join(", ");
            out.push(format!("{}, of cores × our own batches: {shares}", series.label));
        }
    }
    out
}

/// Statement about the control load, and true if it is a caveat.
fn noise(results: &Results) -> Option<(String, bool)> {
    let times: Vec<f64> =
        results.runs().flat_map(|run| &run.control_ns).map(|ns| *ns as f64).collect();
    let spread = assay_report::stats::spread(&times)?;
    let (ms, times) = (median(&times) / 1e6, times.len());
    let unrest = if spread > UNREST {
        ": the machine was not quiet, and small differences mean nothing"
    } else {
        ""
    };
    let line = format!(
        "machine noise: the control load took {ms:.1} ms (median of {times}), with a spread of {}{unrest}",
        percent(spread)
    );
    Some((line, spread > UNREST))
}

/// Runs with interference, and unequal CPU time for equal work.
fn disturbances(results: &Results) -> Vec<String> {
    let mut out = Vec::new();
    for run in results.runs() {
        let Some(reason) = &run.disturbance else { continue };
        out.push(match run.status {
            Status::Disturbed => format!("disturbed, left out: {}: {reason}", run.id),
            _ => {
                format!("disturbed, and no undisturbed run of the same work: {}: {reason}", run.id)
            }
        });
    }
    for target in &results.targets {
        for share in target.seen_shares() {
            out.extend(disturbance::unequal_work(&target.name, &target.valid_runs(share)));
        }
    }
    out
}

/// Notes for the main tables.
pub(super) fn throughput(results: &Results) -> Vec<String> {
    let mut out = vec![
        "Counts of the blocks of a phase divided by the sum of their service times. Transactions \
         include coinbases; inputs and signatures do not. MiB is 2^20 bytes."
            .to_owned(),
    ];
    if let Some(published) = &results.plan.published {
        let ratios = if super::tables::is_full_size(results) {
            "Ratio is our figure divided by the published one; it compares two machines and two clocks, \
             and is no comparison of programs."
        } else {
            "Published figures are of the full size (scale 1) and ours are not: no ratio is printed."
        };
        out.push(format!(
            "Published: {} ({}), measured on: {}. {ratios}",
            published.title, published.source, published.machine
        ));
    }
    out
}

/// Description of the pre-relayed transactions.
pub(super) fn admission(results: &Results) -> Vec<String> {
    let mode = match results.plan.feed.seen_mode {
        SeenMode::Prefix => "the front of the order in which they were generated",
        SeenMode::Random => "a seeded random choice, closed under ancestors inside the block",
    };
    let feed = &results.plan.feed;
    let pace = match feed.rate {
        Rate::Asap if feed.by.is_relay() => "as fast as it did".to_owned(),
        Rate::Asap => "each batch as soon as the previous one was answered".to_owned(),
        Rate::Interval => "spread over the time until the block was due".to_owned(),
        rate => format!("at {rate}, {} at once", feed.burst),
    };
    let how = if feed.by.is_relay() {
        let over = connections(feed.connections);
        format!("Announced by peers over {over} and sent when the node requested them, {pace}")
    } else {
        let batch = feed.batch;
        format!("Sent with `sendrawtransaction` in batches of {batch} over one connection, {pace}")
    };
    let mut out = vec![format!(
        "{how}; which: {mode}. The share in the mempool is that of `getrawmempool` just before the block."
    )];
    if feed.orphans > 0.0 {
        let orphans: u64 = results.runs().flat_map(|run| &run.blocks).map(|b| b.orphans).sum();
        out.push(format!(
            "{} of those sent were put before a parent in the same block; {} came before a parent.",
            whole_percent(feed.orphans),
            count(orphans)
        ));
    }
    let errors = |run: &Run| {
        let id = run.id.clone();
        run.tx_errors
            .iter()
            .map(move |(message, times)| format!("- {id}: {} × `{message}`", count(*times)))
            .collect::<Vec<_>>()
    };
    out.extend(results.runs().flat_map(errors));
    out
}

fn connections(count: usize) -> String {
    if count == 1 { "one connection".to_owned() } else { format!("{count} connections") }
}

/// Notes on the published figures.
pub(super) fn published(results: &Results) -> Vec<String> {
    let Some(published) = &results.plan.published else { return Vec::new() };
    let head = format!(
        "{}: {}. Machine: {}. Published heights are ours plus {} on the chain as published; the \
         table below has the heights of each phase.",
        published.title, published.source, published.machine, published.height_offset
    );
    std::iter::once(head).chain(published.notes.iter().map(|note| format!("- {note}"))).collect()
}

/// Instructions to repeat the run.
pub(super) fn rerun(results: &Results) -> Vec<String> {
    if results.rerun.is_empty() {
        return Vec::new();
    }
    vec![format!("To make these results again: `{}`", results.rerun)]
}

pub(super) fn method(results: &Results) -> Vec<String> {
    let seen = &results.plan.feed.seen;
    let shares: Vec<String> = seen.iter().map(|share| whole_percent(*share)).collect();
    let points = [
        format!(
            "Every target is a process of its own with a fresh data folder, fed {}. {} \
             per pre-relayed share ({}); {}.",
            match results.plan.feed.by {
                Delivery::P2p => "by peers with whole blocks",
                Delivery::Compact => "by peers with compact blocks (BIP152)",
                _ => "over JSON-RPC",
            },
            match results.plan.runs.repeat {
                1 => "One run".to_owned(),
                repeats => format!("{repeats} runs, every second round in reverse order,"),
            },
            shares.join(", "),
            match results.plan.runs.warmup {
                0 => "no warm-up".to_owned(),
                runs => format!("{runs} unrecorded warm-up runs"),
            },
        ),
        "All times are from one monotonic clock of the laboratory. The tip is watched with \
         `waitforblockheight` on a second connection, asked before the block is sent."
            .to_owned(),
        "The body of a block is read and encoded before its clock starts, in the gap after its \
         predecessor became the tip; the transactions sent beforehand are parts of the same encoded \
         body. While a block is in flight the laboratory waits on its sockets; one thread samples \
         the target."
            .to_owned(),
        "A block is sent when its predecessor is the tip and all its transactions sent beforehand \
         are answered, so one block is in flight at a time and no service time contains another."
            .to_owned(),
        "Signatures in the blocks are counted by the forge. With transactions seen beforehand many \
         of them were verified on admission, so signatures per second of service time is then not a \
         rate of verification."
            .to_owned(),
        "Figures over several runs are medians; spread is largest minus smallest, relative to the \
         median. Curves show the run in the middle."
            .to_owned(),
    ];
    points.into_iter().map(|point| format!("- {point}")).collect()
}

pub(super) fn limitations(results: &Results) -> Vec<String> {
    let mut points = Vec::new();
    if results.plan.runs.repeat < 3 {
        points.push(format!(
            "Runs per target and share: {}. That is too few to say how far a difference is chance.",
            results.plan.runs.repeat
        ));
    }
    if results.chain.scale < 1.0 && results.plan.published.is_some() {
        points.push(format!(
            "The chain is {} of the published size; caches hold more of it.",
            ratio(results.chain.scale)
        ));
    }
    if results.plan.feed.by.is_sync() {
        points.extend(super::sync::limitations(results));
    } else {
        points.push(
            "Laboratory and target share one machine: sending, the kernel's copying of the block \
             and the target's decoding compete for the same cores."
                .to_owned(),
        );
    }
    if !results.chain.distinct_keys && results.chain.recipe.starts_with("bch-scaling") {
        points.push(
            "Keys are derived from height and amount as published, so that few addresses receive \
             most outputs. A validating node does not care; an index of addresses does: see \
             `keys` in plans/README.md."
                .to_owned(),
        );
    }
    if results.machine.virtual_machine {
        points.push(
            "The machine is virtual: neighbours on the same host may have slowed single blocks."
                .to_owned(),
        );
    }
    if results.runs().any(|run| run.checks.iter().any(|check| check.found.is_none())) {
        points.push(
            "Some targets do not report everything that is compared; see the table of verification."
                .to_owned(),
        );
    }
    points.push(
        "CPU time comes in ticks of 10 ms; for blocks shorter than that only sums mean something."
            .to_owned(),
    );
    points.into_iter().map(|point| format!("- {point}")).collect()
}
