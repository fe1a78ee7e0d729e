//! Writes the report: `results.json`, `blocks.csv`, `report.md` and `report.html`.
//!
//! All four depend on [`Results`] alone, so a report can be rebuilt from `results.json` at any time: [`crate::results::load`] and
//! [`write_all`].

mod charts;
mod content;
mod csv;
mod finding;
mod front;
mod index;
mod own_chain;
mod placement;
mod profiles;
mod prose;
mod relay;
mod scaling;
mod series;
mod sync;
mod tables;
#[cfg(test)]
mod tests;
mod verdict;

use std::path::Path;

use assay_report::atomic_file::{self, WriteError};
use assay_report::{Chart, Page, Section, Table};

use crate::compare::{CompareError, Comparison};
use crate::results::Results;

pub use self::finding::finding;

/// Empty cell.
const NONE: &str = "–";

pub const FILES: [&str; 4] = [crate::results::FILE, "blocks.csv", "report.md", "report.html"];

/// Additional files of syncs: elapsed seconds by height.
pub const CURVES: [&str; 2] = ["curves.csv", "curves-long.csv"];

/// Additional file of plans with transaction kinds of several widths.
pub const SCALING_FILE: &str = "scaling.csv";

/// Writes the four files into `dir`, plus [`CURVES`] for syncs and [`SCALING_FILE`] for widths, each atomically, the results first.
///
/// # Errors
/// When a file cannot be written; the error names it.
pub fn write_all(results: &Results, dir: &Path) -> Result<(), WriteError> {
    atomic_file::create_folder(dir)?;
    let json_path = dir.join(FILES[0]);
    let json = serde_json::to_vec_pretty(results)
        .map_err(|error| WriteError { path: json_path.clone(), source: error.into() })?;
    atomic_file::write(&json_path, &json)?;
    atomic_file::write(&dir.join(FILES[1]), csv::blocks(results).as_bytes())?;
    if scaling::is_there(results) {
        atomic_file::write(&dir.join(SCALING_FILE), scaling::csv(results).as_bytes())?;
    }
    if sync::is_one(results) {
        atomic_file::write(&dir.join(CURVES[0]), sync::wide_csv(results).as_bytes())?;
        atomic_file::write(&dir.join(CURVES[1]), sync::long_csv(results).as_bytes())?;
    }
    let page = page(results);
    atomic_file::write(&dir.join(FILES[2]), page.markdown().as_bytes())?;
    atomic_file::write(&dir.join(FILES[3]), page.html().as_bytes())
}

/// Final terminal output: the phase tables, then the answer with its figures and caveats.
pub fn terminal(results: &Results) -> String {
    let mut out = String::new();
    for table in scaling::by_width(results) {
        table.text(&mut out);
        out.push('\n');
    }
    for target in &results.targets {
        if !(sync::is_one(results) || scaling::is_there(results)) {
            tables::side_by_side(results, target).text(&mut out);
            out.push('\n');
        }
        if target.index.is_some() {
            index::side_by_side(results, target).text(&mut out);
            out.push('\n');
        }
    }
    if relay::is_there(results) {
        for table in relay::tables(results) {
            table.text(&mut out);
            out.push('\n');
        }
    }
    if sync::is_one(results) {
        let ways = own_chain::starts(results).into_iter().chain([sync::delivery_methods(results)]);
        for table in ways.chain(sync::differences(results)) {
            table.text(&mut out);
            out.push('\n');
        }
    }
    let verdict = verdict::of(results);
    front::of(results, verdict.as_ref()).text(&mut out);
    // The first is the answer.
    let sentences = verdict.as_ref().map(|verdict| verdict::sentences(results, verdict));
    for line in sentences.into_iter().flatten().skip(1) {
        out.push_str(&line);
        out.push('\n');
    }
    out
}

fn machine_tables(results: &Results) -> Vec<Table> {
    let mut tables = vec![tables::machine(results)];
    tables.extend(tables::chains(results));
    tables.push(tables::commands(results));
    tables
}

fn index_tables(results: &Results) -> Vec<Table> {
    let mut tables = Vec::new();
    for target in index::targets(results) {
        tables.extend([index::side_by_side(results, target), index::against_node(results, target)]);
    }
    tables.extend(index::between_targets(results));
    tables.push(index::ends(results));
    tables
}

pub fn page(results: &Results) -> Page {
    let verdict = verdict::of(results);
    Page {
        title: results.plan.title.clone(),
        summary: results.plan.summary.clone(),
        created: results.created.clone(),
        front: Some(front::of(results, verdict.as_ref())),
        sections: sections(results, verdict.as_ref()),
    }
}

fn section(
    id: &str,
    title: &str,
    prose: Vec<String>,
    tables: Vec<Table>,
    charts: Vec<Chart>,
) -> Section {
    Section { id: id.to_owned(), title: title.to_owned(), prose, tables, charts, is_folded: false }
}

fn folded(id: &str, title: &str, prose: Vec<String>, tables: Vec<Table>) -> Section {
    Section { is_folded: true, ..section(id, title, prose, tables, Vec::new()) }
}

fn sections(results: &Results, verdict: Option<&Result<Comparison, CompareError>>) -> Vec<Section> {
    let is_sync = sync::is_one(results);
    let mut summary = prose::summary(results);
    if let Some(verdict) = verdict {
        // After the sentences about the setup, before the figures.
        let at = summary.len().min(2);
        summary.splice(at..at, verdict::sentences(results, verdict));
    }
    let outcome = if is_sync { vec![sync::outcome(results)] } else { tables::outcome(results) };
    let mut all = vec![section("summary", "Runs", summary, outcome, Vec::new())];
    if scaling::is_there(results) {
        all.push(section(
            "scaling",
            "Time against the width of transactions",
            scaling::prose(results),
            scaling::tables(results),
            scaling::charts(results),
        ));
    }
    all.extend(if is_sync { sync_sections(results) } else { block_sections(results) });
    if let Some(verdict) = verdict {
        let prose = verdict.as_ref().map(Comparison::notes).unwrap_or_default();
        let prose = prose.into_iter().map(|note| format!("- {note}")).collect();
        all.push(section("verdict", "Verdict in detail", prose, verdict::tables(verdict), vec![]));
    }
    let prose = profiles::prose(results);
    all.push(section("profiles", "Where the time goes", prose, profiles::tables(results), vec![]));
    all.extend(common_sections(results, is_sync));
    let is_filled = |section: &Section| {
        !(section.prose.is_empty() && section.tables.is_empty() && section.charts.is_empty())
    };
    all.into_iter().filter(is_filled).collect()
}

/// Sections of targets that sync at their own pace.
fn sync_sections(results: &Results) -> Vec<Section> {
    let mut tables: Vec<Table> = own_chain::starts(results).into_iter().collect();
    tables.push(sync::delivery_methods(results));
    tables.extend(sync::differences(results));
    tables.extend(content::slopes(results));
    let mut charts = sync::charts(results);
    // Below the first chart on the same axis: time against height.
    let below = charts.len().min(1);
    charts.splice(below..below, content::charts(results, &sync::bands(results)));
    vec![section("curves", "Curves", sync::prose(results), tables, charts)]
}

/// Sections of targets that are fed block by block.
fn block_sections(results: &Results) -> Vec<Section> {
    let per_target = |make: fn(&Results, &crate::results::TargetResults) -> Table| {
        results.targets.iter().map(|target| make(results, target)).collect::<Vec<_>>()
    };
    let mut throughput = per_target(tables::side_by_side);
    throughput.extend(tables::between_targets(results));
    let mut throughput_prose = prose::throughput(results);
    if scaling::is_there(results) {
        // Redundant with the section on widths.
        throughput.clear();
        throughput_prose.clear();
    }
    let mut detail = per_target(tables::detail);
    detail.extend(results.targets.iter().filter_map(|target| tables::disk(results, target)));
    let any_sent = results.runs().any(|run| run.total.admission.sent > 0);
    let has_index = index::is_there(results);
    let relay = if relay::is_there(results) {
        section(
            "relay",
            "Blocks from a peer",
            relay::prose(results),
            relay::tables(results),
            vec![],
        )
    } else {
        section("relay", "", Vec::new(), Vec::new(), Vec::new())
    };
    let placement = if placement::is_there(results) {
        section(
            "placement",
            "Placement of coins",
            placement::prose(results),
            placement::tables(results),
            vec![],
        )
    } else {
        Section::default()
    };
    vec![
        placement,
        relay,
        section(
            "throughput",
            "Throughput per phase",
            throughput_prose,
            throughput,
            charts::per_phase(results),
        ),
        section(
            "index",
            "Index and node",
            if has_index { index::prose(results) } else { Vec::new() },
            if has_index { index_tables(results) } else { Vec::new() },
            Vec::new(),
        ),
        section(
            "blocks",
            "Block by block",
            vec![prose::BLOCKS.to_owned()],
            detail,
            charts::per_block(results),
        ),
        section(
            "admission",
            "Transactions before their block",
            if any_sent { prose::admission(results) } else { Vec::new() },
            if any_sent { per_target(tables::admission) } else { Vec::new() },
            charts::admission(results),
        ),
    ]
}

fn common_sections(results: &Results, is_sync: bool) -> Vec<Section> {
    let method = if is_sync { sync::method(results) } else { prose::method(results) };
    vec![
        section(
            "resources",
            "Resources, start and stop",
            vec![if is_sync { prose::RESOURCES_OF_SYNCS } else { prose::RESOURCES }.to_owned()],
            vec![tables::resources(results)],
            charts::resources(results),
        ),
        folded(
            "verification",
            "Verification",
            vec![
                own_chain::verification(results).unwrap_or_else(|| prose::VERIFICATION.to_owned()),
            ],
            vec![tables::verification(results)],
        ),
        folded(
            "published",
            "Published figures",
            prose::published(results),
            tables::published(results),
        ),
        section(
            "machine",
            "Machine, software, chain",
            prose::rerun(results),
            machine_tables(results),
            vec![],
        ),
        folded("method", "Method", method, vec![]),
        folded("limitations", "Limitations", prose::limitations(results), vec![]),
    ]
}
