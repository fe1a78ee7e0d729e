//! Reports of a mempool benchmark.

use std::path::Path;

use assay_report::atomic_file::{self, WriteError};
use assay_report::number::{count, mib, rate, ratio, seconds};
use assay_report::stats::median;
use assay_report::stats::ratio::Ratio;
use assay_report::{BarChart, Bars, Chart, Figure, Front, Look, Page, Section, Table};

use super::plan::{By, Case, What};
use super::results::{CaseRun, MempoolResults};
use crate::machine::table;

/// Writes `results.json`, `report.md` and `report.html`.
///
/// # Errors
/// When one of them cannot be written.
pub fn write_all(results: &MempoolResults, dir: &Path) -> Result<(), WriteError> {
    let path = dir.join(crate::results::FILE);
    let json = serde_json::to_vec_pretty(results)
        .map_err(|error| WriteError { path: path.clone(), source: error.into() })?;
    atomic_file::create_folder(dir)?;
    atomic_file::write(&path, &json)?;
    let page = page(results);
    atomic_file::write(&dir.join("report.md"), page.markdown().as_bytes())?;
    atomic_file::write(&dir.join("report.html"), page.html().as_bytes())
}

/// Summary and tables for a terminal.
pub fn terminal(results: &MempoolResults) -> String {
    let mut out = String::new();
    front(results).text(&mut out);
    for table in [throughput(results), outcome(results)] {
        out.push('\n');
        table.text(&mut out);
    }
    out
}

pub fn page(results: &MempoolResults) -> Page {
    let section = |id: &str, title: &str, prose: Vec<String>, tables| Section {
        id: id.to_owned(),
        title: title.to_owned(),
        prose,
        tables,
        ..Section::default()
    };
    let machine = vec![table(&results.machine), software(results)];
    Page {
        title: results.plan.title.clone(),
        summary: results.plan.summary.clone(),
        created: results.created.clone(),
        front: Some(front(results)),
        sections: vec![
            section("throughput", "Transactions per second", vec![], vec![throughput(results)]),
            section("outcome", "What became of them", vec![], vec![outcome(results)]),
            section("faults", "Checks", checks(results), faults(results)),
            section("machine", "Machine and software", vec![], machine),
            section("method", "Method", method(results), vec![]),
        ],
    }
}

fn title(case: &Case) -> String {
    let script = case.script.title();
    let what = match case.what {
        What::Admit if case.depth > 1 => format!("{script}, chains of {}", case.depth),
        What::Admit => script.to_owned(),
        What::Package => format!("{script}, packages of 2"),
        What::Orphans => format!("{script}, orphans"),
        What::Replace => format!("{script}, replacements"),
        What::Evict => format!("{script}, full mempool"),
    };
    match (case.what, case.by) {
        (What::Admit, By::P2p) => format!("{what}, from a peer"),
        _ => what,
    }
}

/// Median with its interval.
fn with_interval(value: &Ratio, show: fn(f64) -> String) -> String {
    format!("{} ({} to {})", show(value.median), show(value.low), show(value.high))
}

fn front(results: &MempoolResults) -> Front {
    let targets = &results.targets;
    let cases = &results.plan.cases;
    let answer = match &targets[..] {
        [first, other, ..] => {
            let ratios: Vec<(String, Ratio)> = cases
                .iter()
                .filter_map(|case| Some((title(case), results.ratio(&case.name, &other.name)?)))
                .collect();
            let by = |a: &&(String, Ratio), b: &&(String, Ratio)| a.1.median.total_cmp(&b.1.median);
            let (least, most) = (ratios.iter().min_by(by), ratios.iter().max_by(by));
            let part = |entry: Option<&(String, Ratio)>| {
                entry.map_or_else(String::new, |(name, value)| {
                    format!("{} with {name}", with_interval(value, ratio))
                })
            };
            let (least, most) = (part(least), part(most));
            format!(
                "{} admits {least} to {most} the transactions per second of {}.",
                first.name, other.name
            )
        }
        [only] => {
            let rates: Vec<f64> = cases
                .iter()
                .filter_map(|case| Some(results.rate(&case.name, &only.name)?.median))
                .collect();
            let end = |choose: fn(f64, f64) -> f64| rates.iter().copied().reduce(choose);
            let text = |value: Option<f64>| value.map_or_else(String::new, rate);
            let (least, most) = (text(end(f64::min)), text(end(f64::max)));
            format!("{} admits {least} to {most} transactions per second, by case.", only.name)
        }
        [] => "Nothing was measured.".to_owned(),
    };
    Front { answer, figures: figures(results), chart: chart(results), caveats: caveats(results) }
}

fn figures(results: &MempoolResults) -> Vec<Figure> {
    let Some(first) = results.targets.first() else { return Vec::new() };
    let figure = |case: &Case| {
        let value = results.rate(&case.name, &first.name)?;
        let of = format!("{}, {}", first.name, title(case));
        Some(Figure { value: rate(value.median), unit: "tx/s".to_owned(), of })
    };
    results.plan.cases.iter().filter_map(figure).take(6).collect()
}

fn chart(results: &MempoolResults) -> Option<Chart> {
    let series = results.targets.iter().enumerate().map(|(number, target)| Bars {
        label: target.name.clone(),
        look: Look { colour: Some(number), dashed: false },
        values: results
            .plan
            .cases
            .iter()
            .map(|case| results.rate(&case.name, &target.name).map(|rate| rate.median))
            .collect(),
    });
    let chart = BarChart {
        title: "Transactions admitted per second".to_owned(),
        y_label: "tx/s".to_owned(),
        groups: results.plan.cases.iter().map(|case| case.name.clone()).collect(),
        series: series.collect(),
        ..BarChart::default()
    };
    chart.draw()
}

fn caveats(results: &MempoolResults) -> Vec<String> {
    let mut out = Vec::new();
    let faulty = results.faulty().count();
    if faulty > 0 {
        out.push(format!("{faulty} of {} runs failed a check", results.runs.len()));
    }
    if results.plan.repeat < 6 {
        let rounds = results.plan.repeat;
        out.push(format!("{rounds} rounds: with fewer than six the intervals have less than 95 %"));
    }
    let times: Vec<f64> = results.runs.iter().map(|run| run.seconds).collect();
    let shortest = times.iter().copied().fold(f64::INFINITY, f64::min);
    if shortest < SHORT_S {
        out.push(format!(
            "the shortest run took {} s: a larger --scale measures more and noise less",
            seconds(shortest)
        ));
    }
    out
}

/// Below this, start-up and noise dominate.
const SHORT_S: f64 = 0.05;

fn throughput(results: &MempoolResults) -> Table {
    let mut head = vec!["Case".to_owned(), "By".to_owned(), "Transactions".to_owned()];
    for (at, target) in results.targets.iter().enumerate() {
        head.push(format!("{}, tx/s", target.name));
        if at > 0 {
            head.push(format!("{} / {}", results.targets[0].name, target.name));
        }
    }
    let caption = "Admitted per second: median of rounds with its interval".to_owned();
    let mut table = Table { caption, head, rows: Vec::new(), word_columns: 2 };
    for case in &results.plan.cases {
        let by = match case.by {
            By::Rpc => "rpc",
            By::P2p => "p2p",
        };
        let mut row = vec![title(case), by.to_owned(), count(results.plan.txs_of(case) as u64)];
        for (at, target) in results.targets.iter().enumerate() {
            let cell = |value: Option<Ratio>, show| {
                value.map_or_else(|| "–".to_owned(), |value| with_interval(&value, show))
            };
            row.push(cell(results.rate(&case.name, &target.name), rate));
            if at > 0 {
                row.push(cell(results.ratio(&case.name, &target.name), ratio));
            }
        }
        table.rows.push(row);
    }
    table
}

fn outcome(results: &MempoolResults) -> Table {
    let head = [
        "Case",
        "Target",
        "Sent",
        "Accepted",
        "Rejected",
        "Orphans",
        "Replaced",
        "Evicted",
        "In the mempool",
        "Memory, MiB",
        "Least fee, sat/kvB",
    ];
    let mut table = Table::new("Counts of the node itself, medians over rounds", &head, 2);
    for case in &results.plan.cases {
        for target in &results.targets {
            let runs = results.of(&case.name, &target.name);
            let middle = |figure: fn(&CaseRun) -> u64| {
                let values: Vec<f64> = runs.iter().map(|run| figure(run) as f64).collect();
                median(&values) as u64
            };
            let orphans = runs.iter().all(|run| run.orphans.is_some()) && !runs.is_empty();
            let orphans = orphans.then(|| middle(|run| run.orphans.unwrap_or_default()));
            table.push([
                title(case),
                target.name.clone(),
                count(middle(|run| run.sent)),
                count(middle(|run| run.accepted)),
                count(middle(|run| run.rejected.values().sum())),
                orphans.map_or_else(|| "–".to_owned(), count),
                count(middle(|run| run.replaced)),
                count(middle(|run| run.evicted)),
                count(middle(|run| run.in_mempool)),
                mib(middle(|run| run.usage_bytes)),
                count(middle(|run| run.min_sat_per_kvb)),
            ]);
        }
    }
    table
}

fn checks(results: &MempoolResults) -> Vec<String> {
    let faulty = results.faulty().count();
    let all = results.runs.len();
    vec![format!(
        "{} of {all} runs passed: afterwards the mempool holds exactly the transactions that were sent \
         last, the same on all targets, and the node counts as many as it lists. A full mempool keeps \
         what pays most, within its limit; how much that is depends on how a program counts its memory, \
         so it is not compared between targets.",
        all - faulty
    )]
}

fn faults(results: &MempoolResults) -> Vec<Table> {
    let mut table =
        Table::new("Failed checks and rejections", &["Case", "Target", "Round", "What"], 4);
    for run in &results.runs {
        let rejected = run.rejected.iter().map(|(why, times)| format!("{times} rejected: {why}"));
        for what in run.faults.iter().cloned().chain(rejected) {
            let round = count(u64::from(run.repeat) + 1);
            table.push([run.case.clone(), run.target.clone(), round, what]);
        }
    }
    if table.rows.is_empty() { Vec::new() } else { vec![table] }
}

fn software(results: &MempoolResults) -> Table {
    let mut table = Table::new("Software", &["What", "Value"], 2);
    table.push(["Assay".to_owned(), results.assay.clone()]);
    for target in &results.targets {
        table.push([target.name.clone(), target.version.clone()]);
    }
    table.push(["Command".to_owned(), results.rerun.clone()]);
    table
}

fn method(results: &MempoolResults) -> Vec<String> {
    let plan = &results.plan;
    [
        "All transactions are made and signed before a node starts, from a seed, and are the same for \
         every target. Nodes start with an empty data folder and a chain that gives the coins, and are not \
         synced: they are as at the tip, since the chain ends now."
            .to_owned(),
        format!(
            "By RPC, batches of {} calls go over one connection, one after the other; bodies are put together \
             beforehand. The clock runs from the first byte to the last answer. From a peer, transactions are \
             announced and given when requested, and the clock stops when `getmempoolinfo` counts all of them. \
             The peer has the permissions noban and relay, so that what a node waits for with others is not measured.",
            plan.batch
        ),
        "Orphans: fifty children are given first, the node's orphans are counted, then their parents are given. \
         Replacements pay five times as much as what they replace. For the full mempool each transaction has forty \
         outputs and fees rise from the first to the last; that node has a mempool of its own size. Between two \
         cases blocks empty the mempool."
            .to_owned(),
        format!(
            "{} rounds; in each, a case runs on one target after the other, in an order that alternates. Ratios are of \
             the same round. Intervals lie between sorted values and have at least 95 % coverage from six rounds on.",
            plan.repeat
        ),
    ]
    .into()
}
