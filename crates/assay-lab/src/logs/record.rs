//! Record of logs.

use std::path::Path;

use assay_report::record::{Figure, Record, Unit, count};

use super::{FileSummary, Row, Throughput};
use crate::machine::clock;

/// Maximum number of points of a curve; every second one is dropped on overflow.
const POINTS_MAX: usize = 2000;
/// Rows of a curve in the terminal.
const ROWS_SHOWN: usize = 12;

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
    cache_bytes: Option<u64>,
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
            cache_bytes: row.progress.cache_bytes,
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

/// Record of logs. Time is the log's own clock, counted from the program's first line, or from its first progress where that line is
/// missing, without the time between sessions.
pub fn record(files: &[(FileSummary, Charted)], read: &Throughput) -> Record {
    let files = in_short(files);
    let mut record = Record {
        kind: "logs".to_owned(),
        schema: assay_report::record::SCHEMA,
        created: clock::iso8601(clock::unix_ms()),
        title: "Block progress in logs".to_owned(),
        headline: read_files(&files),
        ..Record::default()
    };
    for (summary, charted) in &files {
        add(summary, charted, &mut record);
    }
    let speed = read.bytes_per_s() / 1e9;
    let (mb, seconds) = (read.bytes as f64 / 1e6, read.seconds);
    record.set("read", format!("{mb:.1} MB in {seconds:.3} s: {speed:.2} GB/s"));
    record
}

fn add(summary: &FileSummary, charted: &Charted, record: &mut Record) {
    let file = summary.file.as_str();
    for format in &summary.formats {
        let value = format!("{}, {} lines of {}", format.meaning, format.rows, format.format);
        record.set(&format!("lines of {file}"), value);
    }
    for (number, session) in (1..).zip(&summary.sessions) {
        let (Some(first), Some(last)) = (session.first_height, session.last_height) else {
            continue;
        };
        let case = format!("session {number}");
        let version = session.version.as_deref().unwrap_or("a program that is not named");
        record.set(&format!("{case} of {file}"), version);
        let seconds = session.seconds.filter(|seconds| *seconds > 0.0);
        let rate = seconds.map(|seconds| f64::from(last.saturating_sub(first)) / seconds);
        let figures = [
            count("from height", first.into()),
            count("to height", last.into()),
            ("time", Unit::Seconds, session.seconds),
            ("blocks per second", Unit::PerSecond, rate),
        ];
        record.add((file, &case, None), &figures);
    }
    for step in &summary.steps {
        let time = |metric, ms: f64| (metric, Unit::Seconds, Some(ms / 1e3));
        let figures = [
            count("blocks", step.blocks),
            time("total", step.total_ms),
            time("mean", step.total_ms / step.blocks as f64),
            time("longest", step.max_ms),
        ];
        let name = step.step.trim_end_matches("_ms").replace('_', " ");
        record.add((file, &name, None), &figures);
    }
    let notes = [
        ("faulty lines", summary.faults),
        ("times the clock was set back", summary.clock_set_back),
        ("heights that jump in a log with a line per block", summary.height_jumps),
        ("requests to the node that timed out", summary.timeouts),
    ];
    let notes = notes.into_iter().filter(|(_, count)| *count > 0);
    record.notes.extend(notes.map(|(what, count)| format!("{file}: {count} {what}")));

    let points = charted.points();
    let last = points.len().saturating_sub(1);
    let parts = last.clamp(1, ROWS_SHOWN - 1);
    let mut shown: Vec<usize> = (0..=parts).map(|part| last * part / parts).collect();
    shown.dedup();
    for point in shown.into_iter().filter_map(|index| points.get(index)) {
        let case = format!("after {}", time(point.running_s));
        record.add((file, &case, None), &point.figures());
    }
    let row = |point: &Point| {
        let time = ("running time", Unit::Seconds, Some(point.running_s));
        let [height, txs, cache] = point.figures();
        let block = point.block_ms.map(|ms| ms / 1e3);
        [time, height, txs, cache, ("time of a block", Unit::Seconds, block)]
    };
    let sessions = points.chunk_by(|a, b| a.session == b.session);
    let rows = sessions.flat_map(|points| {
        // A row without figures ends the line of a session.
        let gap = points.last().map(|point| row(point).map(|(name, unit, _)| (name, unit, None)));
        let gap = gap.map(|mut gap| {
            gap[0].2 = points.last().map(|point| point.running_s);
            gap
        });
        points.iter().map(row).chain(gap).collect::<Vec<_>>()
    });
    record.add_series((file, "", None), &rows.collect::<Vec<_>>());
}

impl Point {
    fn figures(&self) -> [Figure<'static>; 3] {
        [
            count("height", self.height.into()),
            ("transactions", Unit::Count, self.txs.map(|txs| txs as f64)),
            ("cache", Unit::Bytes, self.cache_bytes.map(|bytes| bytes as f64)),
        ]
    }
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

fn count_of(count: usize, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}

/// `1:02:03`, or fractional seconds for short times.
fn time(seconds: f64) -> String {
    if seconds < 600.0 {
        return format!("{seconds:.3} s");
    }
    let whole = seconds as u64;
    format!("{}:{:02}:{:02} h", whole / 3600, whole / 60 % 60, whole % 60)
}
