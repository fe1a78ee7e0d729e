//! `README.md` of the folder of published results: one table per published report.

use std::fmt::Write as _;

use assay_bench::overview::{self, Report};
use assay_report::{Finding, Table};
use serde::Serialize;

use super::folder::Entry;

pub(super) const FILE: &str = "README.md";

const HEAD: &str = "# Results

The five published reports, rerun: what they asked, what they found, what was measured here. `assay publish` writes this page \
from the `results.json.gz` next to each report; no figure is typed by hand. Machines differ, so published times compare with \
ours in kind only, and no ratio is taken across machines.

";

pub(super) fn text(entries: &[Entry]) -> String {
    let mut out = HEAD.to_owned();
    machines(entries).markdown(&mut out);
    for report in overview::reports() {
        section(&report, entries, &mut out);
    }
    let mut page = out.trim_end().to_owned();
    page.push('\n');
    page
}

/// Table of the machines, without repetitions.
fn machines(entries: &[Entry]) -> Table {
    let head = ["Machine", "Processor", "Extensions", "Cores", "Memory", "System"];
    let mut table = Table::new("Machines", &head, 6);
    for same in entries.chunk_by(|a, b| a.machine == b.machine) {
        let Entry { machine, results, .. } = &same[0];
        let record = results.machine();
        let text = |value: &Option<String>| value.clone().unwrap_or_else(|| "unknown".to_owned());
        let gib = |bytes: u64| format!("{:.0} GiB", bytes as f64 / f64::from(1 << 30));
        let kind = if record.virtual_machine { ", virtual machine" } else { "" };
        table.push([
            machine.clone(),
            format!("{}, {}{kind}", text(&record.cpu), text(&record.cpu_model)),
            record.cpu_features.join(" "),
            record.cores.to_string(),
            record.memory_bytes.map_or_else(|| "unknown".to_owned(), gib),
            text(&record.system),
        ]);
    }
    table
}

fn section(report: &Report, entries: &[Entry], out: &mut String) {
    // Writing to a string cannot fail.
    let _ = writeln!(out, "## {}\n\nPublished: {}.\n", report.title, report.source);
    let rows = rows_of(report, entries);
    if rows.is_empty() {
        out.push_str("No results yet.\n");
    }
    for same in rows.chunk_by(|a, b| a.machine == b.machine) {
        let head = ["Question", "Published", "Measured here", "Verdict", "Caveat"];
        let mut table = Table::new(same[0].machine, &head, 5);
        table.rows.extend(same.iter().map(Row::cells));
        table.markdown(out);
    }
    let runs: Vec<&Entry> = entries.iter().filter(|entry| is_of(report, entry)).collect();
    if !runs.is_empty() {
        out.push_str("Whole reports, and how to make them again:\n\n");
    }
    for entry in runs {
        let day = entry.results.created().split('T').next().unwrap_or_default();
        let (report, rerun) = (entry.report(), entry.results.rerun());
        let _ = writeln!(out, "- [{}, {}]({report}), {day}: `{rerun}`", entry.plan, entry.machine);
    }
    out.push('\n');
}

#[derive(Debug, Serialize)]
pub(super) struct Row<'a> {
    plan: String,
    machine: &'a str,
    question: String,
    #[serde(flatten)]
    found: Finding,
}

impl Row<'_> {
    fn cells(&self) -> Vec<String> {
        let Finding { published, measured, verdict, caveat } = &self.found;
        let or_dash = |text: &String| if text.is_empty() { "-".to_owned() } else { text.clone() };
        let mut cells = vec![self.question.clone()];
        cells.extend([published, measured, verdict, caveat].map(or_dash));
        cells
    }
}

pub(super) fn rows(entries: &[Entry]) -> Vec<Row<'_>> {
    overview::reports().iter().flat_map(|report| rows_of(report, entries)).collect()
}

fn rows_of<'a>(report: &Report, entries: &'a [Entry]) -> Vec<Row<'a>> {
    let mut rows = Vec::new();
    for same in entries.chunk_by(|a, b| a.machine == b.machine) {
        for question in &report.questions {
            let plan = question.plan.as_ref().unwrap_or(&report.plan);
            let entry = same.iter().find(|entry| entry.plan == *plan);
            if let Some(found) = entry.and_then(|entry| entry.results.finding(question)) {
                let (plan, question) = (plan.clone(), question.ask.clone());
                rows.push(Row { plan, machine: &same[0].machine, question, found });
            }
        }
    }
    rows
}

/// True if the entry is a run of one of the report's plans.
fn is_of(report: &Report, entry: &Entry) -> bool {
    let named = report.questions.iter().filter_map(|question| question.plan.as_ref());
    named.chain([&report.plan]).any(|plan| *plan == entry.plan)
}
