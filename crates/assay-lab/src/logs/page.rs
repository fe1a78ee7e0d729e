//! Tables and charts of logs.

use std::path::Path;

use assay_report::{Chart, Line, LineChart, Look, Page, Section, Table};

use super::{FileSummary, Row, Throughput};
use crate::machine::clock;

/// Maximum number of points of a curve; every second one is dropped on overflow.
const POINTS_MAX: usize = 2000;
/// Rows of a curve in the terminal.
const ROWS_SHOWN: usize = 12;
const MIB: f64 = 1_048_576.0;

/// A log's curves, thinned on the fly, so that memory is bounded.
#[derive(Debug, Clone, Default)]
pub struct Charted {
    points: Vec<Point>,
    last: Option<Point>,
    /// Rows from one point to the next.
    every: u64,
    rows: u64,
}

#[derive(Debug, Clone, Copy)]
struct Point {
    running_s: f64,
    session: u32,
    height: u32,
    txs: Option<u64>,
    cache_mib: Option<f64>,
    /// Whole block, connect, flush and write, in milliseconds.
    block_ms: Option<f64>,
}

impl Charted {
    /// Adds a row; rows without a time and of the background chainstate are skipped.
    pub fn take(&mut self, row: &Row) {
        let Some(running_s) = row.running_s.filter(|_| !row.progress.background) else { return };
        let point = Point {
            running_s,
            session: row.session,
            height: row.progress.height,
            txs: row.txs_total,
            cache_mib: row.progress.cache_bytes.map(|bytes| bytes as f64 / MIB),
            block_ms: row.steps.and_then(|steps| steps.of(super::Step::Total)),
        };
        self.last = Some(point);
        self.every = self.every.max(1);
        if self.rows.is_multiple_of(self.every) {
            self.points.push(point);
            if self.points.len() >= POINTS_MAX {
                let mut index = 0;
                self.points.retain(|_| {
                    index += 1;
                    index % 2 == 1
                });
                self.every *= 2;
            }
        }
        self.rows += 1;
    }

    /// All points, always including the last.
    fn points(&self) -> Vec<Point> {
        let mut points = self.points.clone();
        let is_new = |last: &Point| {
            points
                .last()
                .is_none_or(|point| point.height != last.height || point.running_s < last.running_s)
        };
        let last = self.last.filter(is_new);
        points.extend(last);
        points
    }
}

pub fn terminal(files: &[(FileSummary, Charted)], read: &Throughput) -> String {
    let mut out = String::new();
    for table in tables(files) {
        table.text(&mut out);
        out.push('\n');
    }
    for (summary, charted) in files {
        if let Some(table) = curve(summary, charted) {
            table.text(&mut out);
            out.push('\n');
        }
    }
    out.push_str(&speed(read));
    out.push('\n');
    out
}

pub fn html(files: &[(FileSummary, Charted)], read: &Throughput) -> String {
    let files = &in_short(files);
    let section = |id: &str, title: &str, prose: Vec<String>, tables, charts| Section {
        id: id.to_owned(),
        title: title.to_owned(),
        prose,
        tables,
        charts,
        ..Section::default()
    };
    let clock = "Time is the log's own clock, counted from the program's first line, or from its \
                 first progress where that line is missing. Time between sessions, when the program \
                 did not run, is left out; a clock that is set back does not take the curve back.";
    let page = Page {
        title: "Block progress in logs".to_owned(),
        summary: read_files(files),
        created: clock::iso8601(clock::unix_ms()),
        sections: vec![
            section("curves", "Curves", vec![clock.to_owned()], Vec::new(), charts(files)),
            section("logs", "Logs", vec![speed(read)], tables(files), Vec::new()),
            section(
                "heights",
                "Heights",
                Vec::new(),
                files.iter().filter_map(|(summary, charted)| curve(summary, charted)).collect(),
                Vec::new(),
            ),
        ],
        ..Page::default()
    };
    page.html()
}

/// The curve of heights over time as SVG; `None` without a curve.
pub fn svg(files: &[(FileSummary, Charted)]) -> Option<String> {
    let unit = unit(files);
    heights(files, unit).map(|chart| chart.standalone())
}

/// The same with file names instead of paths, if these are distinct.
fn in_short(files: &[(FileSummary, Charted)]) -> Vec<(FileSummary, Charted)> {
    let name = |file: &str| {
        let name = Path::new(file).file_name().map(|name| name.to_string_lossy().into_owned());
        name.unwrap_or_else(|| file.to_owned())
    };
    let mut names: Vec<String> = files.iter().map(|(summary, _)| name(&summary.file)).collect();
    names.sort_unstable();
    let is_clear = names.windows(2).all(|pair| pair[0] != pair[1]);
    let mut files = files.to_vec();
    for (summary, _) in files.iter_mut().filter(|_| is_clear) {
        summary.file = name(&summary.file);
    }
    files
}

/// One sentence per log with program and final height; only a count if there are many logs.
fn read_files(files: &[(FileSummary, Charted)]) -> String {
    const TOLD: usize = 6;
    let of = |(summary, charted): &(FileSummary, Charted)| {
        let Some(last) = charted.last else {
            return format!("{}: no block progress recognised.", summary.file);
        };
        let program = summary.sessions.iter().rev().find_map(|session| session.version.clone());
        let program = program.unwrap_or_else(|| "a program without a name".to_owned());
        let to = (last.height, time(last.running_s));
        format!("{}: {program} reached height {} in {}.", summary.file, to.0, to.1)
    };
    let mut said: Vec<String> = files.iter().take(TOLD).map(of).collect();
    let more = files.len().saturating_sub(TOLD);
    said.extend((more > 0).then(|| format!("And {} more.", count_of(more, "log"))));
    said.join(" ")
}

fn speed(read: &Throughput) -> String {
    format!(
        "read {:.1} MB in {:.3} s: {:.2} GB/s",
        read.bytes as f64 / 1e6,
        read.seconds,
        read.bytes_per_s() / 1e9
    )
}

fn count_of(count: usize, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}

fn tables(files: &[(FileSummary, Charted)]) -> Vec<Table> {
    let mut tables = vec![formats(files), sessions(files)];
    let notes = notes(files);
    tables.extend((!notes.rows.is_empty()).then_some(notes));
    tables.extend(files.iter().filter_map(|(summary, _)| steps(summary)));
    tables
}

fn formats(files: &[(FileSummary, Charted)]) -> Table {
    let mut table = Table::new("What the lines are", &["Log", "Format", "One line is", "Lines"], 3);
    for (summary, _) in files {
        for format in &summary.formats {
            table.push([
                summary.file.clone(),
                format.format.to_owned(),
                format.meaning.clone(),
                format.rows.to_string(),
            ]);
        }
        if summary.formats.is_empty() {
            let nothing = "no block progress recognised".to_owned();
            table.push([summary.file.clone(), nothing, String::new(), "0".to_owned()]);
        }
    }
    table
}

fn sessions(files: &[(FileSummary, Charted)]) -> Table {
    let head = ["Log", "Session", "Program", "From height", "To height", "Time", "Blocks/s"];
    let mut table = Table::new("From start to start", &head, 3);
    for (summary, _) in files {
        for (index, session) in summary.sessions.iter().enumerate() {
            let (Some(first), Some(last)) = (session.first_height, session.last_height) else {
                continue;
            };
            let rate = session
                .seconds
                .filter(|seconds| *seconds > 0.0)
                .map(|seconds| format!("{:.2}", f64::from(last.saturating_sub(first)) / seconds));
            table.push([
                summary.file.clone(),
                (index + 1).to_string(),
                session.version.clone().unwrap_or_else(|| "not named".to_owned()),
                first.to_string(),
                last.to_string(),
                session.seconds.map_or_else(|| "no clock".to_owned(), time),
                rate.unwrap_or_default(),
            ]);
        }
    }
    table
}

/// Caveats on the curves.
fn notes(files: &[(FileSummary, Charted)]) -> Table {
    let mut table = Table::new("To know before believing a curve", &["Log", "What", "Count"], 2);
    for (summary, _) in files {
        let counts = [
            ("faulty lines", summary.faults),
            ("clock set back", summary.clock_set_back),
            ("heights that jump in a log with a line per block", summary.height_jumps),
            ("requests to the node that timed out", summary.timeouts),
        ];
        for (what, count) in counts.into_iter().filter(|(_, count)| *count > 0) {
            table.push([summary.file.clone(), what.to_owned(), count.to_string()]);
        }
    }
    table
}

fn steps(summary: &FileSummary) -> Option<Table> {
    (!summary.steps.is_empty()).then_some(())?;
    let caption =
        format!("Steps of {} blocks in {} (-debug=bench)", summary.step_blocks, summary.file);
    let head = ["Step", "Blocks", "Total s", "Mean ms", "Longest ms"];
    let mut table = Table::new(&caption, &head, 1);
    for step in &summary.steps {
        table.push([
            step.step.trim_end_matches("_ms").replace('_', " "),
            step.blocks.to_string(),
            format!("{:.3}", step.total_ms / 1e3),
            format!("{:.3}", step.total_ms / step.blocks as f64),
            format!("{:.2}", step.max_ms),
        ]);
    }
    Some(table)
}

/// Selected points of a curve.
fn curve(summary: &FileSummary, charted: &Charted) -> Option<Table> {
    let points = charted.points();
    (!points.is_empty()).then_some(())?;
    let caption = format!("Heights over time in {}", summary.file);
    let head = ["Time", "Session", "Height", "Transactions", "Cache MiB"];
    let mut table = Table::new(&caption, &head, 0);
    let last = points.len() - 1;
    let parts = last.clamp(1, ROWS_SHOWN - 1);
    let mut shown: Vec<usize> = (0..=parts).map(|part| last * part / parts).collect();
    shown.dedup();
    for point in shown.into_iter().map(|index| points[index]) {
        table.push([
            time(point.running_s),
            point.session.to_string(),
            point.height.to_string(),
            point.txs.map(|txs| txs.to_string()).unwrap_or_default(),
            point.cache_mib.map(|mib| format!("{mib:.1}")).unwrap_or_default(),
        ]);
    }
    Some(table)
}

/// `1:02:03`, or fractional seconds for short times.
fn time(seconds: f64) -> String {
    if seconds < 600.0 {
        return format!("{seconds:.3} s");
    }
    let whole = seconds as u64;
    format!("{}:{:02}:{:02} h", whole / 3600, whole / 60 % 60, whole % 60)
}

/// Unit of time axes, and its length in seconds.
fn unit(files: &[(FileSummary, Charted)]) -> (&'static str, f64) {
    let last = files.iter().filter_map(|(_, charted)| charted.last);
    match last.map(|point| point.running_s).fold(0.0, f64::max) {
        longest if longest > 3.0 * 3600.0 => ("hours", 3600.0),
        longest if longest > 600.0 => ("minutes", 60.0),
        _ => ("seconds", 1.0),
    }
}

fn charts(files: &[(FileSummary, Charted)]) -> Vec<Chart> {
    let unit @ (name, worth) = unit(files);
    let time = |point: &Point| point.running_s / worth;
    let height = |point: &Point| f64::from(point.height);
    let over_time = format!("{name} since the start");
    let others = [
        lines(files, "Time over heights", ("height", &over_time), |point| {
            Some((height(point), time(point)))
        }),
        lines(files, "Transactions over time", (&over_time, "transactions"), |point| {
            Some((time(point), point.txs? as f64))
        }),
        lines(files, "Cache over heights", ("height", "MiB"), |point| {
            Some((height(point), point.cache_mib?))
        }),
        lines(files, "Time per block (-debug=bench)", ("height", "ms"), |point| {
            Some((height(point), point.block_ms?))
        }),
    ];
    heights(files, unit).into_iter().chain(others.into_iter().flatten()).collect()
}

fn heights(files: &[(FileSummary, Charted)], (name, worth): (&str, f64)) -> Option<Chart> {
    let over_time = format!("{name} since the start");
    lines(files, "Heights over time", (&over_time, "height"), |point| {
        Some((point.running_s / worth, f64::from(point.height)))
    })
}

/// One line per log, one segment per session.
fn lines(
    files: &[(FileSummary, Charted)],
    title: &str,
    (x_label, y_label): (&str, &str),
    place: impl Fn(&Point) -> Option<(f64, f64)>,
) -> Option<Chart> {
    let line = |(index, (summary, charted)): (usize, &(FileSummary, Charted))| {
        let points = charted.points();
        let sessions = points.chunk_by(|a, b| a.session == b.session);
        let pieces: Vec<Vec<_>> =
            sessions.map(|points| points.iter().filter_map(&place).collect()).collect();
        let label = summary.file.clone();
        let look = Look { colour: Some(index), dashed: false };
        let is_drawn = pieces.iter().any(|piece| !piece.is_empty());
        is_drawn.then_some(Line { label, look, pieces, points: false })
    };
    let chart = LineChart {
        title: title.to_owned(),
        x_label: x_label.to_owned(),
        y_label: y_label.to_owned(),
        series: files.iter().enumerate().filter_map(line).collect(),
        ..LineChart::default()
    };
    chart.draw()
}
