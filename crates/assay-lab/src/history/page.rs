//! Tables and charts of a history.

use assay_report::{Line, LineChart, Look, Page, Section, Table};

use super::{History, Series};
use crate::machine::utc_now;

/// Maximum number of figures in the table of a series; the latest are shown.
const ROWS_MAX: usize = 30;

pub(super) fn page(history: &History) -> Page {
    let mut sections = vec![Section {
        id: "changes".to_owned(),
        title: "Changes".to_owned(),
        prose: vec![
            format!(
                "{} series under {}. A change is where a level moves for good by at least {:.1} %, with a probability of at \
                 most {} by chance (E-divisive means, decided by Student's t test); a single slow result is none.",
                history.series.len(),
                history.folder,
                history.size_min * 100.0,
                history.p_max
            ),
            "A series holds the same work (tip and UTXO set), by the same kind of target, on the same machine.".to_owned(),
        ],
        tables: vec![changes(history)],
        ..Section::default()
    }];
    for (number, series) in history.series.iter().enumerate() {
        sections.push(Section {
            id: format!("series-{}", number + 1),
            title: series.name.clone(),
            prose: Vec::new(),
            tables: vec![points(series)],
            charts: chart(series).draw().into_iter().collect(),
            ..Section::default()
        });
    }
    Page {
        title: "History of results".to_owned(),
        summary: "Times of runs in order of time, and where they changed.".to_owned(),
        created: utc_now(),
        sections,
        ..Page::default()
    }
}

/// All changes, latest first.
pub(super) fn changes(history: &History) -> Table {
    let head = ["Since", "Series", "Version", "before, s", "after, s", "change", "p"];
    let mut table = Table::new("Changes of level; a positive change is slower", &head, 3);
    let mut rows: Vec<_> = history
        .series
        .iter()
        .flat_map(|series| series.changes.iter().map(move |change| (series, change)))
        .filter_map(|(series, change)| Some((series.points.get(change.index)?, series, change)))
        .collect();
    rows.sort_by(|a, b| b.0.time.cmp(&a.0.time));
    for (point, series, change) in rows {
        table.push([
            point.time.clone(),
            series.name.clone(),
            point.version.clone(),
            format!("{:.3}", change.before),
            format!("{:.3}", change.after),
            format!("{:+.1} %", (change.after / change.before - 1.0) * 100.0),
            format!("{:.1e}", change.p),
        ]);
    }
    table
}

/// The latest figures of a series.
pub(super) fn points(series: &Series) -> Table {
    let skipped = series.points.len().saturating_sub(ROWS_MAX);
    let caption = match skipped {
        0 => series.name.clone(),
        _ => format!("{}: the last {ROWS_MAX} of {}", series.name, series.points.len()),
    };
    let head = ["When", "Version", "runs", "median, s", "range, s", "level, s", "change"];
    let mut table = Table::new(&caption, &head, 2);
    for (index, point) in series.points.iter().enumerate().skip(skipped) {
        let change = series.changes.iter().find(|change| change.index == index);
        let share =
            change.map(|change| format!("{:+.1} %", (change.after / change.before - 1.0) * 100.0));
        table.push([
            point.time.clone(),
            point.version.clone(),
            point.runs.to_string(),
            format!("{:.3}", point.seconds),
            format!("{:.3} … {:.3}", point.min_s, point.max_s),
            format!("{:.3}", series.level(index)),
            share.unwrap_or_default(),
        ]);
    }
    table
}

fn chart(series: &Series) -> LineChart {
    let at = |index: usize| index as f64 + 1.0;
    let ours = Look { colour: Some(0), dashed: false };
    let measured =
        series.points.iter().enumerate().map(|(index, point)| (at(index), point.seconds)).collect();
    let mut ends: Vec<usize> = series.changes.iter().map(|change| change.index).collect();
    ends.insert(0, 0);
    ends.push(series.points.len());
    let levels = ends
        .windows(2)
        .map(|stretch| {
            let level = series.level(stretch[0]);
            vec![(at(stretch[0]) - 0.4, level), (at(stretch[1]) - 0.6, level)]
        })
        .collect();
    LineChart {
        title: series.name.clone(),
        x_label: "result, in order of time".to_owned(),
        whole_x: true,
        y_label: "seconds".to_owned(),
        series: vec![
            Line {
                label: "median of runs".to_owned(),
                look: ours,
                pieces: vec![measured],
                points: true,
            },
            Line {
                label: "level".to_owned(),
                look: Look { colour: Some(1), dashed: true },
                pieces: levels,
                points: false,
            },
        ],
        ..LineChart::default()
    }
}
