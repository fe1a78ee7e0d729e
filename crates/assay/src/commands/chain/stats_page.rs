//! Output of `assay chain stats`: text, CSV, Markdown, and a page with charts.

use std::fmt::Write;

use assay_lab::machine::utc_now;
use assay_report::number::count as group;
use assay_report::{Line, LineChart, Look, Page, Section, Table};
use assay_stats::{Counts, OutputKind, RangeRow};

use super::stats::Report;
use super::tables::{add_count_names, add_counts};

pub(super) fn text(report: &Report) -> String {
    let mut out = summary(report);
    out.push('\n');
    for table in tables(report) {
        table.text(&mut out);
        out.push('\n');
    }
    out.push_str(&verdicts(report).join("\n"));
    out.push('\n');
    out
}

pub(super) fn page(report: &Report) -> Page {
    let section = |id: &str, title: &str| Section {
        id: id.to_owned(),
        title: title.to_owned(),
        ..Section::default()
    };
    let mut sections = Vec::new();
    sections.push(Section {
        prose: points(report),
        charts: charts(report).iter().filter_map(LineChart::draw).collect(),
        ..section("overview", "Overview")
    });
    sections.push(Section { tables: tables(report), ..section("counts", "Counts") });
    Page {
        title: format!("What is in {}", report.chain),
        summary: format!(
            "{} blocks from height {} to {}, read from block files. Inputs are without the coinbases'.",
            group(report.total.blocks),
            report.first_height,
            report.last_height
        ),
        created: utc_now(),
        sections,
        ..Page::default()
    }
}

/// CSV with one row per range.
pub(super) fn csv(report: &Report) -> String {
    let mut out = String::from("first_height,last_height,blocks");
    add_count_names(&mut out);
    out.push_str(",segwit_tx_share,segwit_input_share\n");
    let share = |share: Option<f64>| share.map_or_else(String::new, |share| format!("{share:.6}"));
    for RangeRow { first, last, counts } in &report.ranges {
        // Writing to a string cannot fail.
        let _ = write!(out, "{first},{last},{}", counts.blocks);
        add_counts(counts, &mut out);
        let (txs, inputs) = (counts.segwit_tx_share(), counts.segwit_input_share());
        let _ = writeln!(out, ",{},{}", share(txs), share(inputs));
    }
    out
}

/// Width of the labels in a summary.
const NAME_CHARS: usize = 13;

fn points(report: &Report) -> Vec<String> {
    let (summary, verdicts) = (summary(report), verdicts(report));
    let mut points: Vec<String> = Vec::new();
    for line in summary.lines().chain(verdicts.iter().map(String::as_str)) {
        let Some((name, text)) = line.split_at_checked(NAME_CHARS) else { continue };
        match (name.trim(), points.last_mut()) {
            ("", Some(last)) => last.extend(["; ", text]),
            (name, _) => points.push(format!("- {name}: {text}")),
        }
    }
    points
}

fn summary(report: &Report) -> String {
    let total = &report.total;
    let unit = unit(report);
    let obfuscated = if report.is_obfuscated { ", obfuscated" } else { "" };
    format!(
        "chain        {}, height {} to {}\n\
         tip          {}\n\
         files        {} with {} bytes{obfuscated}; {} stale blocks, {} copies, {} unconnected, {} damaged places\n\
         blocks       {} with {} bytes, {} stripped, weight {}\n\
         transactions {}, SegWit {}\n\
         inputs       {}, SegWit {}\n\
         outputs      {}, {} {unit}, of it {} {unit} of coinbases\n\
         many inputs  {} SegWit and {} legacy transactions with more than {}; the largest has {}\n",
        report.chain,
        report.first_height,
        report.last_height,
        report.tip_hash,
        report.files,
        group(report.file_bytes),
        report.stale_blocks,
        report.duplicates,
        report.unconnected,
        report.stray_places,
        group(total.blocks),
        group(total.bytes),
        group(total.stripped_bytes),
        group(total.weight),
        group(total.txs),
        percent(total.segwit_tx_share()),
        group(total.inputs),
        percent(total.segwit_input_share()),
        group(total.outputs),
        coins(total.output_value),
        coins(total.coinbase_value),
        group(total.many_input_segwit_txs),
        group(total.many_input_legacy_txs),
        report.many_inputs,
        group(total.largest_tx_inputs),
    )
}

fn verdicts(report: &Report) -> Vec<String> {
    let mut lines = Vec::new();
    if report.damaged_blocks > 0 {
        lines.push(format!("damage       {} blocks could not be counted", report.damaged_blocks));
    }
    match &report.ledger {
        Some(check) if check.equal => {
            lines.push(format!("ledger       equals the ledger in all {} blocks", check.blocks));
        }
        Some(check) => lines.push(format!(
            "ledger       DIFFERS from the ledger: {} differences in {} blocks",
            check.difference_count, check.blocks
        )),
        None => {}
    }
    let speed = &report.speed;
    lines.push(format!(
        "speed        {:.1} MB/s, {:.0} blocks/s on {} threads, {:.3} s with the search for headers",
        speed.mb_per_s, speed.blocks_per_s, speed.threads, speed.seconds
    ));
    if let Some(rpc) = &report.rpc {
        lines.push(format!(
            "by RPC       {:.1} MB/s, {:.0} blocks/s, {:.3} s for {} of {} blocks; block files are {:.1} times as fast",
            rpc.speed.mb_per_s,
            rpc.speed.blocks_per_s,
            rpc.speed.seconds,
            rpc.blocks,
            report.total.blocks,
            rpc.ratio
        ));
        lines.push(if rpc.equal {
            "             counts by RPC equal ours".to_owned()
        } else {
            format!("             counts by RPC DIFFER: {}", rpc.differences.join("; "))
        });
    }
    lines
}

fn tables(report: &Report) -> Vec<Table> {
    let many = format!("> {}", report.many_inputs);
    let (segwit, legacy) = (format!("{many} SegWit"), format!("{many} legacy"));
    let head = [
        "Heights",
        "blocks",
        "MB",
        "MWU",
        "txs",
        "inputs",
        "outputs",
        "SegWit txs",
        "SegWit inputs",
        &segwit,
        &legacy,
        "largest",
    ];
    let mut tables = Vec::new();
    if !report.phases.is_empty() {
        let mut table = Table::new("By phase", &[&["Phase"], &head[..]].concat(), 2);
        for row in &report.phases {
            let mut cells = vec![row.phase.clone()];
            cells.extend(cells_of(&row.range));
            table.rows.push(cells);
        }
        tables.push(table);
    }
    let mut table = Table::new("Outputs by kind", &["Kind", "outputs", "share", unit(report)], 1);
    for kind in OutputKind::ALL {
        let count = report.total.of_kind(kind);
        let share = count.outputs as f64 / report.total.outputs.max(1) as f64;
        table.push([
            kind.name().to_owned(),
            group(count.outputs),
            percent(Some(share)),
            coins(count.value),
        ]);
    }
    tables.push(table);
    let mut table = Table::new("By range of heights", &head, 1);
    table.rows.extend(report.ranges.iter().map(cells_of));
    tables.push(table);
    tables
}

fn cells_of(range: &RangeRow) -> Vec<String> {
    let RangeRow { first, last, counts } = range;
    vec![
        if first == last { first.to_string() } else { format!("{first} … {last}") },
        group(counts.blocks),
        format!("{:.2}", counts.bytes as f64 / 1e6),
        format!("{:.2}", counts.weight as f64 / 1e6),
        group(counts.txs),
        group(counts.inputs),
        group(counts.outputs),
        percent(counts.segwit_tx_share()),
        percent(counts.segwit_input_share()),
        group(counts.many_input_segwit_txs),
        group(counts.many_input_legacy_txs),
        group(counts.largest_tx_inputs),
    ]
}

const COLOURS: usize = 8;

fn charts(report: &Report) -> [LineChart; 4] {
    let line = |label: &str, colour: usize, value: &dyn Fn(&Counts) -> Option<f64>| Line {
        label: label.to_owned(),
        look: Look { colour: Some(colour), dashed: colour >= COLOURS },
        pieces: pieces(&report.ranges, value),
        points: report.ranges.len() == 1,
    };
    let chart = |title: String, y_label: &str, series: Vec<Line>| LineChart {
        title,
        x_label: "height".to_owned(),
        y_label: y_label.to_owned(),
        series,
        ..LineChart::default()
    };
    let hundred = |share: Option<f64>| share.map(|share| share * 100.0);
    [
        chart(
            "SegWit share".to_owned(),
            "%",
            vec![
                line("of transactions", 0, &|counts| hundred(counts.segwit_tx_share())),
                line("of inputs", 1, &|counts| hundred(counts.segwit_input_share())),
            ],
        ),
        chart(
            format!("Transactions with more than {} inputs", report.many_inputs),
            "transactions in the range",
            vec![
                line("SegWit", 0, &|counts| Some(counts.many_input_segwit_txs as f64)),
                line("legacy", 1, &|counts| Some(counts.many_input_legacy_txs as f64)),
            ],
        ),
        chart(
            "What a block holds".to_owned(),
            "per block",
            vec![
                line("inputs", 0, &|counts| Some(per_block(counts.inputs, counts))),
                line("outputs", 1, &|counts| Some(per_block(counts.outputs, counts))),
            ],
        ),
        chart(
            "Outputs by kind".to_owned(),
            "% of the outputs",
            OutputKind::ALL
                .into_iter()
                .filter(|kind| report.total.of_kind(*kind).outputs > 0)
                .enumerate()
                .map(|(number, kind)| {
                    line(kind.name(), number, &|counts| {
                        let share = counts.of_kind(kind).outputs as f64 / counts.outputs as f64;
                        (counts.outputs > 0).then_some(share * 100.0)
                    })
                })
                .collect(),
        ),
    ]
}

fn per_block(count: u64, counts: &Counts) -> f64 {
    count as f64 / counts.blocks.max(1) as f64
}

/// Line segments over the centres of the ranges, split at missing values.
fn pieces(ranges: &[RangeRow], value: &dyn Fn(&Counts) -> Option<f64>) -> Vec<Vec<(f64, f64)>> {
    let mut pieces = vec![Vec::new()];
    for range in ranges {
        let middle = f64::midpoint(f64::from(range.first), f64::from(range.last));
        match (value(&range.counts), pieces.last_mut()) {
            (Some(value), Some(piece)) => piece.push((middle, value)),
            _ => pieces.push(Vec::new()),
        }
    }
    pieces.retain(|piece| !piece.is_empty());
    pieces
}

fn percent(share: Option<f64>) -> String {
    share.map_or_else(|| "-".to_owned(), |share| format!("{:.1} %", share * 100.0))
}

/// Name of the currency unit.
fn unit(report: &Report) -> &'static str {
    if report.chain.starts_with("bch") { "BCH" } else { "BTC" }
}

/// Formats satoshi as a decimal number of coins.
fn coins(value: i128) -> String {
    const COIN: u128 = 100_000_000;
    let sign = if value < 0 { "-" } else { "" };
    let size = value.unsigned_abs();
    format!("{sign}{}.{:08}", size / COIN, size % COIN)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_for_people() {
        let numbers = [0, 999, 1000, 1_234_567].map(group);
        assert_eq!(numbers, ["0", "999", "1,000", "1,234,567"]);
        assert_eq!(coins(-150_000_001), "-1.50000001");
        assert_eq!((percent(None), percent(Some(0.125))), ("-".to_owned(), "12.5 %".to_owned()));
    }
}
