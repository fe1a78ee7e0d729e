//! Load balance of thread pools: a loop of unequal rows, recorded by each pool.

use anyhow::Result;
use assay_bench::suite::{Extent, Study, StudyLaneGroup, StudyLanes};
use assay_bench::{Progress, wrong_answer};
use assay_report::number::duration;

use super::protocol::{Order, Thread, Trace};
use super::ranking::table;
use super::subjects::{Subject, Subjects};

const CURVE: &str = "pool";
const OPERATION: &str = "render";

/// Left out of the chart: one lane as long as all threads' rows together would dwarf the others.
const SEQUENTIAL: &str = "sequential";

/// Number of runs per pool; the one with the median time is shown.
const RUNS: usize = 5;

/// Number of rows of the image; the larger one takes about 45 ms on one thread.
const ROWS: usize = 512;
const ROWS_SMOKE: usize = 32;

/// Number of slices of the time axis.
const SLICES: usize = 120;

#[derive(Clone, Debug)]
pub(super) struct Load {
    name: String,
    trace: Trace,
}

/// Requests traces of all subjects that support them, interleaved, after comparing their results; fastest first.
pub(super) fn measure(
    subjects: &Subjects,
    seed: u64,
    extent: Extent,
    progress: &dyn Progress,
) -> Result<Vec<Load>> {
    let is_smoke = extent == Extent::Smoke;
    let order = Order {
        curve: CURVE.to_owned(),
        operation: OPERATION.to_owned(),
        size: if is_smoke { ROWS_SMOKE } else { ROWS },
        threads: 0,
        seed,
        inputs: String::new(),
    };
    let takers: Vec<&Subject> =
        subjects.all.iter().filter(|subject| subject.has_trace(CURVE, OPERATION)).collect();
    let benchmark = format!("{CURVE}/{OPERATION}");
    let mut answers = Vec::with_capacity(takers.len());
    for subject in &takers {
        answers.push(subject.prepare(&order)?);
    }
    super::agree(&benchmark, &answers, &takers)?;
    let runs = if is_smoke { 1 } else { RUNS };
    progress.begin("traces of pools", (runs * takers.len()) as u64);
    let mut traces: Vec<Vec<Trace>> = vec![Vec::with_capacity(runs); takers.len()];
    for _ in 0..runs {
        for ((subject, answer), traces) in takers.iter().zip(&answers).zip(&mut traces) {
            let trace = subject.trace(&order)?;
            if trace.digest != answer.digest {
                let detail = format!("{} when traced, {} before", trace.digest, answer.digest);
                return Err(wrong_answer(&benchmark, &subject.name, detail));
            }
            traces.push(trace);
            progress.step();
        }
    }
    let load = |(subject, traces): (&&Subject, Vec<Trace>)| {
        Some(Load { name: subject.name.clone(), trace: median(traces)? })
    };
    let mut loads: Vec<Load> = takers.iter().zip(traces).filter_map(load).collect();
    loads.sort_by_key(|load| load.trace.wall_ns);
    Ok(loads)
}

fn median(mut traces: Vec<Trace>) -> Option<Trace> {
    traces.sort_by_key(|trace| trace.wall_ns);
    let middle = traces.len() / 2;
    traces.into_iter().nth(middle)
}

/// Columns of the table; [`Load::line`] makes its lines.
const HEAD: [&str; 7] = [
    "pool",
    "time",
    "threads",
    "busy",
    "least busy thread",
    "busiest thread",
    "wait of the first idle thread",
];

/// Adds lanes and a table of the traces to a study, if there are any.
pub(super) fn added(study: Study, loads: &[Load]) -> Study {
    let Study { mut prose, mut tables, mut lanes, .. } = study;
    if !loads.is_empty() {
        prose.push(
            "Load: each pool draws the same image, a row at a time; the costliest rows take two hundred times as long as the cheapest ones. \
             Each thread is a lane, solid while it works on rows and pale while it waits; lanes end when the pool has finished. A thread that loses its core within a row counts as working. \
             Each pool runs several times, interleaved, and the run with the median time is shown. \
             `sequential` needs no lane, and is in the table only."
                .to_owned(),
        );
        tables.push(table(
            "Load of threads: an image whose rows differ in cost; shares are of the whole time",
            &HEAD,
            1,
            loads.iter().map(Load::line).collect(),
        ));
        lanes.extend(chart(loads));
    }
    Study { prose, tables, lanes, ..study }
}

/// The chart without `sequential`; `None` if no pool is left.
fn chart(loads: &[Load]) -> Option<StudyLanes> {
    let pools = || loads.iter().filter(|load| load.name != SEQUENTIAL);
    let end_ns = pools().map(|load| load.trace.wall_ns).max()?;
    let group = |load: &Load| StudyLaneGroup {
        label: load.name.clone(),
        note: duration(load.trace.wall_ns as f64),
        end: load.trace.wall_ns as f64 / NS_PER_MS,
        lanes: load.trace.threads.iter().map(|thread| thread.shares(end_ns)).collect(),
    };
    Some(StudyLanes {
        title: "Load of each thread over time".to_owned(),
        x_label: "ms since the loop began".to_owned(),
        x_end: end_ns as f64 / NS_PER_MS,
        groups: pools().map(group).collect(),
    })
}

const NS_PER_MS: f64 = 1e6;

impl Load {
    fn line(&self) -> Vec<String> {
        let Trace { wall_ns, threads, .. } = &self.trace;
        let wall = (*wall_ns).max(1) as f64;
        let percent = |share: f64| format!("{:.1} %", share * 100.0);
        let shares: Vec<f64> = threads.iter().map(|thread| thread.busy_ns as f64 / wall).collect();
        let mean = shares.iter().sum::<f64>() / shares.len().max(1) as f64;
        let [least, most] = [f64::min, f64::max].map(|of| shares.iter().copied().reduce(of));
        let first_idle_ns = threads.iter().map(Thread::end_ns).min().unwrap_or(0);
        vec![
            self.name.clone(),
            duration(*wall_ns as f64),
            threads.len().to_string(),
            percent(mean),
            percent(least.unwrap_or(0.0)),
            percent(most.unwrap_or(0.0)),
            duration(wall_ns.saturating_sub(first_idle_ns) as f64),
        ]
    }
}

impl Thread {
    /// End of the last row; 0 without rows.
    fn end_ns(&self) -> u64 {
        self.spans.last().map_or(0, |(_, end_ns)| *end_ns)
    }

    /// Busy share of each slice of the axis, in hundredths.
    fn shares(&self, axis_ns: u64) -> Vec<f64> {
        let slice_ns = axis_ns as f64 / SLICES as f64;
        let share = |slice: usize| {
            let (from, to) = (slice as f64 * slice_ns, (slice + 1) as f64 * slice_ns);
            let inside = |&(start_ns, end_ns): &(u64, u64)| {
                ((end_ns as f64).min(to) - (start_ns as f64).max(from)).max(0.0)
            };
            let busy_ns: f64 = self.spans.iter().map(inside).sum();
            (busy_ns / slice_ns * 100.0).round() / 100.0
        };
        (0..SLICES).map(share).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A load from the spans of each thread in µs.
    fn load(name: &str, wall_us: u64, threads: &[&[(u64, u64)]]) -> Load {
        let thread = |spans: &&[(u64, u64)]| Thread {
            busy_ns: spans.iter().map(|(start, end)| (end - start) * 1_000).sum(),
            spans: spans.iter().map(|(start, end)| (start * 1_000, end * 1_000)).collect(),
        };
        let threads = threads.iter().map(thread).collect();
        let trace = Trace { wall_ns: wall_us * 1_000, threads, digest: String::new() };
        Load { name: name.to_owned(), trace }
    }

    #[test]
    fn a_table_and_lanes_from_traces() {
        let loads = [
            load("even", 12_000, &[&[(0, 12_000)], &[(0, 3_000), (6_000, 11_000)]]),
            load("uneven", 24_000, &[&[(0, 24_000)], &[]]),
            load(SEQUENTIAL, 48_000, &[&[(0, 48_000)], &[]]),
        ];
        let study = added(Study::default(), &loads);
        let lines: Vec<Vec<&str>> = study.tables[0]
            .rows
            .iter()
            .map(|line| line.iter().map(String::as_str).collect())
            .collect();
        assert_eq!(
            lines,
            [
                ["even", "12.0 ms", "2", "83.3 %", "66.7 %", "100.0 %", "1.00 ms"],
                ["uneven", "24.0 ms", "2", "50.0 %", "0.0 %", "100.0 %", "24.0 ms"],
                ["sequential", "48.0 ms", "2", "50.0 %", "0.0 %", "100.0 %", "48.0 ms"],
            ]
        );
        let [lanes] = &study.lanes[..] else { panic!("{:?}", study.lanes) };
        assert!((lanes.x_end - 24.0).abs() < 1e-9, "the longest pool, not `sequential`");
        let labels: Vec<&str> = lanes.groups.iter().map(|group| group.label.as_str()).collect();
        assert_eq!(labels, ["even", "uneven"]);
        // Each slice is 200 µs long.
        let second = &lanes.groups[0].lanes[1];
        let busy: Vec<usize> = (0..SLICES).filter(|slice| second[*slice] > 0.5).collect();
        assert_eq!(busy, (0..15).chain(30..55).collect::<Vec<_>>());
        assert!(lanes.draw().is_some());
    }

    #[test]
    fn shares_of_slices_that_are_cut() {
        let load = load("one", 120, &[&[(0, 1), (2, 3)], &[(1, 2)]]);
        let shares = load.trace.threads[0].shares(240_000);
        assert_eq!(shares[..3], [0.5, 0.5, 0.0]);
        assert!((load.trace.threads[1].shares(240_000)[0] - 0.5).abs() < 1e-9);
    }

    #[test]
    fn the_median_run() {
        let walls = [30, 10, 20].map(|wall| load("x", wall, &[]).trace).to_vec();
        assert_eq!(median(walls).map(|trace| trace.wall_ns), Some(20_000));
        assert!(median(Vec::new()).is_none());
    }

    #[test]
    fn without_traces_a_study_is_unchanged() {
        assert_eq!(added(Study::default(), &[]), Study::default());
        let alone = [load(SEQUENTIAL, 48, &[&[(0, 48)]])];
        let study = added(Study::default(), &alone);
        assert!(study.lanes.is_empty() && study.tables.len() == 1);
    }
}
