//! Tables of the report.

use assay_report::Table;
use assay_report::number::{
    UNAVAILABLE, count, mib, or_unavailable, percent, rate, ratio, seconds, whole_percent,
};
use assay_report::stats::median;

use super::NONE;
use super::own_chain;
use super::series::{
    has_valid, measured_phases, of_phase, phase_of, published as published_figure, spread_of_phase,
};
use crate::machine::table_of;
use crate::plan::{Figure, FigureKind};
use crate::results::{ChainSummary, PhaseResult, Results, Run, Status, TargetResults};

/// One of the four rates that the published report prints.
struct Metric {
    unit: &'static str,
    ours: fn(&PhaseResult) -> f64,
    published: fn(&Figure) -> Option<f64>,
}

const METRICS: [Metric; 4] = [
    Metric { unit: "tx/s", ours: |p| p.tx_per_s, published: |f| f.tx_per_s },
    Metric { unit: "inputs/s", ours: |p| p.inputs_per_s, published: |f| f.inputs_per_s },
    Metric { unit: "outputs/s", ours: |p| p.outputs_per_s, published: |f| f.outputs_per_s },
    Metric { unit: "MiB/s", ours: |p| p.mib_per_s, published: |f| f.mib_per_s },
];

/// All pre-relayed shares side by side, with the published figure.
pub(super) fn side_by_side(results: &Results, target: &TargetResults) -> Table {
    let shares = target.seen_shares();
    let is_published = results.plan.published.is_some() && !target.distinct_keys;
    let has_ratio = is_published && is_full_size(results);
    let mut head = vec!["Phase".to_owned(), "Per second".to_owned()];
    for seen in &shares {
        head.push(format!("{} pre-relayed", whole_percent(*seen)));
        if is_published {
            head.push("published".to_owned());
        }
        if has_ratio {
            head.push("ratio".to_owned());
        }
    }
    let ends = shares.first().zip(shares.last()).filter(|_| shares.len() > 1);
    if let Some((first, last)) = ends {
        head.push(format!("{} / {}", whole_percent(*last), whole_percent(*first)));
    }
    let caption = format!("{}: service rate per phase", target.name);
    let mut table = Table { caption, head, rows: Vec::new(), word_columns: 2 };
    let mut phases = measured_phases(results);
    phases.push(("total".to_owned(), "All of these".to_owned()));
    for (name, title) in &phases {
        for (index, metric) in METRICS.iter().enumerate() {
            let ours = |seen: f64| of_phase(&target.valid_runs(seen), name, metric.ours);
            let title = if index == 0 { title.clone() } else { String::new() };
            let mut row = vec![title, metric.unit.to_owned()];
            for seen in &shares {
                let value = ours(*seen);
                row.push(with_spread(target, *seen, name, metric));
                if is_published {
                    let figure = published_figure(results, FigureKind::Node, name, *seen);
                    let figure = figure.and_then(metric.published);
                    row.push(figure.map_or_else(|| NONE.to_owned(), rate));
                    if has_ratio {
                        row.push(quotient(value, figure));
                    }
                }
            }
            if let Some((first, last)) = ends {
                row.push(quotient(ours(*last), ours(*first)));
            }
            table.rows.push(row);
        }
    }
    table
}

/// The figure, with its spread if there are several runs.
fn with_spread(target: &TargetResults, seen: f64, phase: &str, metric: &Metric) -> String {
    let runs = target.valid_runs(seen);
    let Some(value) = of_phase(&runs, phase, metric.ours) else { return "void".to_owned() };
    match spread_of_phase(&runs, phase, metric.ours) {
        Some(spread) => format!("{} (spread {})", rate(value), percent(spread)),
        None => rate(value),
    }
}

/// True if the chain has the size of the published figures.
pub(super) fn is_full_size(results: &Results) -> bool {
    (results.chain.scale - 1.0).abs() < 1e-9
}

pub(super) fn quotient(above: Option<f64>, below: Option<f64>) -> String {
    match above.zip(below) {
        Some((above, below)) if below > 0.0 => ratio(above / below),
        _ => NONE.to_owned(),
    }
}

/// Several targets on the first chain; `None` for a single one.
pub(super) fn between_targets(results: &Results) -> Option<Table> {
    let is_distinct = results.targets.first()?.distinct_keys;
    let on_first =
        |target: &&TargetResults| target.distinct_keys == is_distinct && has_valid(target);
    let targets: Vec<&TargetResults> = results.targets.iter().filter(on_first).collect();
    let (first, others) = targets.split_first().filter(|(_, others)| !others.is_empty())?;
    let mut head = vec!["Phase".to_owned(), "Seen".to_owned(), first.name.clone()];
    for other in others {
        head.extend([other.name.clone(), format!("{} / {}", first.name, other.name)]);
    }
    let caption = "Targets compared: transactions per second of service time".to_owned();
    let mut table = Table { caption, head, rows: Vec::new(), word_columns: 2 };
    let mut phases = measured_phases(results);
    phases.push(("total".to_owned(), "All of these".to_owned()));
    for (name, title) in &phases {
        for seen in first.seen_shares() {
            let value = |target: &TargetResults| {
                of_phase(&target.valid_runs(seen), name, |phase| phase.tx_per_s)
            };
            let ours = value(first);
            let mut row = vec![title.clone(), whole_percent(seen), or_unavailable(ours, rate)];
            for other in others {
                let theirs = value(other);
                row.extend([or_unavailable(theirs, rate), quotient(ours, theirs)]);
            }
            table.rows.push(row);
        }
    }
    Some(table)
}

/// Runs with their end.
pub(super) fn outcome(results: &Results) -> Vec<Table> {
    let head = ["Run", "Outcome", "Seen", "Blocks", "Seconds", "tx/s", "MiB/s", "Signatures/s"];
    let mut table = Table::new("Runs (sums over the measured phases)", &head, 2);
    for run in results.runs() {
        let total = &run.total;
        table.push([
            run.id.clone(),
            match run.status {
                Status::Valid => "valid".to_owned(),
                Status::Disturbed => "disturbed".to_owned(),
                Status::Void => "VOID".to_owned(),
            },
            percent(run.seen_measured),
            count(total.blocks),
            seconds(total.seconds),
            rate(total.tx_per_s),
            rate(total.mib_per_s),
            rate(total.signatures_per_s),
        ]);
    }
    vec![table]
}

pub(super) fn detail(results: &Results, target: &TargetResults) -> Table {
    let head = [
        "Phase",
        "Seen",
        "Blocks",
        "Transactions",
        "Inputs",
        "Outputs",
        "MiB",
        "Service, s",
        "Median block, s",
        "Longest block, s",
        "Until reply, s",
        "Waiting, s",
        "CPU, s",
        "Cores in use",
        "Signatures/s",
    ];
    let mut table = Table::new(&format!("{}: phases in detail", target.name), &head, 2);
    let valid = target.runs.iter().filter(|run| run.status == Status::Valid);
    for (run, phase) in valid.flat_map(|run| run.phases.iter().map(move |phase| (run, phase))) {
        table.push([
            results.plan.phase_title(&phase.name).to_owned(),
            run_share(target, run),
            count(phase.blocks),
            count(phase.txs),
            count(phase.inputs),
            count(phase.outputs),
            mib(phase.bytes),
            seconds(phase.seconds),
            seconds(phase.service_s_median),
            seconds(phase.service_s_max),
            seconds(phase.rpc_s),
            seconds(phase.queue_s),
            or_unavailable(phase.cpu_s, |cpu| format!("{cpu:.2}")),
            cores_in_use(phase),
            rate(phase.signatures_per_s),
        ]);
    }
    table
}

/// Disk usage of the node, and of a separate index process, in each phase.
pub(super) fn disk(results: &Results, target: &TargetResults) -> Option<Table> {
    let head = [
        "Phase",
        "Seen",
        "Read in blocks, MiB",
        "Written in blocks, MiB",
        "Read between, MiB",
        "Written between, MiB",
        "Index read, MiB",
        "Index written, MiB",
    ];
    let mut table = Table::new(&format!("{}: disk use per phase", target.name), &head, 2);
    for run in target.runs.iter().filter(|run| run.status == Status::Valid) {
        for phase in &run.phases {
            let Some(disk) = &phase.disk else { continue };
            let index = run.index.as_ref();
            let index = index.and_then(|index| index.phases.iter().find(|p| p.name == phase.name));
            let index = index.and_then(|phase| phase.disk);
            let cell = |bytes: Option<u64>| bytes.map_or_else(|| NONE.to_owned(), mib);
            table.push([
                results.plan.phase_title(&phase.name).to_owned(),
                run_share(target, run),
                mib(disk.service.read_bytes),
                mib(disk.service.written_bytes),
                mib(disk.between.read_bytes),
                mib(disk.between.written_bytes),
                cell(index.map(|disk| disk.read_bytes)),
                cell(index.map(|disk| disk.written_bytes)),
            ]);
        }
    }
    (!table.rows.is_empty()).then_some(table)
}

/// CPU time per service time. Ticks of 10 ms are too coarse for phases of less than a second.
fn cores_in_use(phase: &PhaseResult) -> String {
    match phase.cpu_s {
        Some(cpu_s) if phase.seconds >= 0.5 => format!("{:.2}", cpu_s / phase.seconds),
        Some(_) => NONE.to_owned(),
        None => UNAVAILABLE.to_owned(),
    }
}

/// Pre-relayed share of a run, with its repeat if there are several.
fn run_share(target: &TargetResults, run: &Run) -> String {
    let share = whole_percent(run.seen_requested);
    let repeated = target.runs.iter().any(|other| other.repeat > 0);
    if repeated { format!("{share}, run {}", run.repeat + 1) } else { share }
}

/// Pre-relayed transactions.
pub(super) fn admission(results: &Results, target: &TargetResults) -> Table {
    let head = [
        "Phase",
        "Asked for",
        "In the mempool",
        "Sent",
        "Accepted",
        "Rejected",
        "Seconds",
        "tx/s",
        "MiB/s",
    ];
    let caption = format!("{}: transactions before their block", target.name);
    let mut table = Table::new(&caption, &head, 2);
    let sent = |run: &&Run| run.status == Status::Valid && run.total.admission.sent > 0;
    for run in target.runs.iter().filter(sent) {
        for (name, title) in measured_phases(results) {
            let Some(phase) = phase_of(run, &name) else { continue };
            let admission = &phase.admission;
            let mib_per_s =
                assay_report::stats::rate(admission.bytes as f64 / 1_048_576.0, admission.seconds);
            table.push([
                title,
                run_share(target, run),
                percent(phase.seen_measured),
                count(admission.sent),
                count(admission.accepted),
                count(admission.sent - admission.accepted),
                seconds(admission.seconds),
                rate(admission.tx_per_s),
                rate(mib_per_s),
            ]);
        }
    }
    table
}

/// Start, stop, memory, CPU, disk.
pub(super) fn resources(results: &Results) -> Table {
    let head = [
        "Run",
        "Start, s",
        "Stop, s",
        "CPU, s",
        "Peak memory, MiB",
        "Written, MiB",
        "Read, MiB",
        "Threads, most",
        "Laboratory's CPU, s",
        "Control load, ms",
    ];
    let mut table = Table::new("Resources of the target, per run", &head, 1);
    for run in results.runs() {
        let samples = &run.samples;
        let last = |column: &[Option<u64>]| column.iter().rev().find_map(|value| *value);
        let cpu_s = samples.cpu_s.iter().rev().find_map(|value| *value);
        let control: Vec<f64> = run.control_ns.iter().map(|ns| *ns as f64 / 1e6).collect();
        table.push([
            run.id.clone(),
            or_unavailable(run.startup_s, seconds),
            or_unavailable(run.shutdown_s, seconds),
            or_unavailable(cpu_s, |cpu| format!("{cpu:.2}")),
            or_unavailable(samples.rss_peak_bytes, mib),
            or_unavailable(last(&samples.write_bytes), mib),
            or_unavailable(last(&samples.read_bytes), mib),
            or_unavailable(samples.threads.iter().copied().max().flatten(), count),
            or_unavailable(run.lab_cpu_s, |cpu| format!("{cpu:.2}")),
            format!("{:.1}", median(&control)),
        ]);
    }
    table
}

/// Comparisons with the ledger.
pub(super) fn verification(results: &Results) -> Table {
    let (caption, expected) = match own_chain::files(results) {
        Some(_) => ("End state against the ledger and the first report of the coins", "Expected"),
        None => ("End state against the ledger", "Ledger"),
    };
    let mut table = Table::new(caption, &["Run", "What", "Verdict", expected], 4);
    for run in results.runs() {
        for check in &run.checks {
            let verdict = match &check.found {
                None => "not reported by the target".to_owned(),
                Some(found) if check.differs() => format!("DIFFERS: {found}"),
                Some(_) => "equal".to_owned(),
            };
            let (id, what) = (run.id.clone(), check.what.clone());
            table.push([id, what, verdict, check.expected.clone()]);
        }
    }
    table
}

/// All published figures, also of software that this plan does not run.
pub(super) fn published(results: &Results) -> Vec<Table> {
    let Some(published) = &results.plan.published else { return Vec::new() };
    let head = ["Software", "Phase", "Seen", "Note", "tx/s", "inputs/s", "outputs/s", "MiB/s"];
    let mut table = Table::new(&published.title, &head, 4);
    for figure in &published.figures {
        let value = |value: Option<f64>| value.map_or_else(|| NONE.to_owned(), rate);
        table.push([
            figure.subject.clone(),
            results.plan.phase_title(&figure.phase).to_owned(),
            whole_percent(figure.seen),
            figure.note.clone().unwrap_or_default(),
            value(figure.tx_per_s),
            value(figure.inputs_per_s),
            value(figure.outputs_per_s),
            value(figure.mib_per_s),
        ]);
    }
    let head = ["Phase", "Published heights", "Heights here", "Blocks here"];
    let mut heights = Table::new("Heights", &head, 1);
    for phase in &results.plan.phases {
        let here = results.runs().next().map(|run| {
            let of_phase = run.blocks.iter().filter(|block| block.phase == phase.name);
            of_phase.map(|block| block.height).collect::<Vec<_>>()
        });
        let here = here.unwrap_or_default();
        let range = |ends: Option<(u32, u32)>| {
            ends.map_or_else(|| NONE.to_owned(), |(first, last)| format!("{first}–{last}"))
        };
        heights.push([
            phase.title.clone(),
            range(phase.published_heights.map(|[first, last]| (first, last))),
            range(here.first().copied().zip(here.last().copied())),
            count(here.len() as u64),
        ]);
    }
    vec![table, heights]
}

pub(super) fn machine(results: &Results) -> Table {
    let software = &results.software;
    let mut table = table_of("Machine and software", &results.machine);
    let build = format!("{} ({})", software.assay, software.profile);
    table.push(["Assay".to_owned(), build]);
    table.push(["Compiler".to_owned(), software.rustc.clone()]);
    for target in &results.targets {
        let index = target.index.iter().map(|index| index.version.as_str());
        let versions: Vec<&str> = std::iter::once(target.version.as_str()).chain(index).collect();
        table.push([format!("Target {}", target.name), versions.join(" + ")]);
    }
    table
}

pub(super) fn chains(results: &Results) -> Vec<Table> {
    std::iter::once(&results.chain).chain(&results.more_chains).map(chain).collect()
}

fn chain(chain: &ChainSummary) -> Table {
    if let Some(files) = &chain.files {
        return own_chain::table(chain, files);
    }
    let caption = if chain.distinct_keys { "Chain, distinct keys" } else { "Chain" };
    let mut table = Table::new(caption, &["What", "Value"], 2);
    let keys = if chain.distinct_keys { "one per output" } else { "as published" };
    let rows = [
        ("Recipe", chain.recipe.clone()),
        ("Chain parameters", chain.chain.clone()),
        ("Seed", chain.seed.to_string()),
        ("Scale", chain.scale.to_string()),
        ("Variant", chain.variant.clone()),
        ("Keys", keys.to_owned()),
        ("Blocks", count(u64::from(chain.height))),
        ("Transactions", count(chain.txs)),
        ("Inputs", count(chain.inputs)),
        ("Outputs", count(chain.outputs)),
        ("Signatures", count(chain.signatures)),
        ("MiB", mib(chain.bytes)),
        ("Tip", chain.tip.clone()),
        ("UTXO count", count(chain.utxo_count)),
        ("UTXO MuHash", chain.utxo_muhash.clone()),
        ("Forged by version", chain.assay_version.clone()),
        ("Forged in, s", chain.forge_s.map_or_else(|| "found, not forged now".to_owned(), seconds)),
    ];
    for (what, value) in rows {
        table.push([what.to_owned(), value]);
    }
    table
}

pub(super) fn commands(results: &Results) -> Table {
    let mut table = Table::new("Command lines of the targets", &["Run", "Command"], 2);
    for run in results.runs() {
        table.push([run.id.clone(), run.command.join(" ")]);
        if let Some(index) = run.index.as_ref().filter(|index| !index.command.is_empty()) {
            table.push([format!("{}, index", run.id), index.command.join(" ")]);
        }
    }
    table
}
